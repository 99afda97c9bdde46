"""The command line. Thin: each command calls the library and prints what it returned."""

from coaf.cli import bench, cryoem, movielens, replay, run, warm
from coaf.cli.base import app

__all__ = ["app", "bench", "cryoem", "movielens", "replay", "run", "warm"]
