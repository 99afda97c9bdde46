"""The paper's film experiment, from ratings to a report."""

from coaf.worlds.movielens.films import Films, prepare
from coaf.worlds.movielens.generator import generate
from coaf.worlds.movielens.ratings import DataError, Ratings, read
from coaf.worlds.movielens.source import obtain
from coaf.worlds.movielens.world import MovieLens

__all__ = ["DataError", "Films", "MovieLens", "Ratings", "generate", "obtain", "prepare", "read"]
