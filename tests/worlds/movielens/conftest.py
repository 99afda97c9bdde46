"""A small made-up set of ratings, prepared once, and the real one where it is."""

import pytest

from coaf.worlds.movielens.films import Films, prepare
from coaf.worlds.movielens.generator import generate
from coaf.worlds.movielens.ratings import Ratings, read
from outside import DATA


@pytest.fixture(scope="session")
def ratings() -> Ratings:
    return generate(users=150, films=90, ratings=4000, seed=0)


@pytest.fixture(scope="session")
def films(ratings: Ratings, tmp_path_factory: pytest.TempPathFactory) -> Films:
    return prepare(ratings, cache=tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def real() -> Ratings:
    """MovieLens 100K."""
    folder = DATA
    path = folder / "movielens-100k" / "u.data"
    if not path.exists():
        pytest.skip(f"MovieLens 100K is not at {path}")
    return read(path)


@pytest.fixture(scope="session")
def real_films(real: Ratings, tmp_path_factory: pytest.TempPathFactory) -> Films:
    return prepare(real, cache=tmp_path_factory.mktemp("cache"))
