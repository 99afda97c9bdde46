"""The command line. Thin: each command calls the library and prints what it returned."""

from coaf.cli.stopped import stopped_with_a_sentence

with stopped_with_a_sentence():  # what commands are made of takes a while to load
    from coaf.cli import bench, cryoem, movielens, replay, run, warm
    from coaf.cli.base import app

__all__ = ["app", "bench", "cryoem", "movielens", "replay", "run", "warm"]
