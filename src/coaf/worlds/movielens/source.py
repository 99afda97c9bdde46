"""Get ratings from where they are: a file, the cache, the network, or the generator."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from coaf.worlds.movielens.download import CHECKSUMS, Received, UnreachableError, fetch
from coaf.worlds.movielens.generator import generate
from coaf.worlds.movielens.ratings import DataError, Ratings, read

GENERATED = "generated"


def obtain(
    data: str | Path | None = None,
    *,
    progress: Received | None = None,
    note: Callable[[str], None] | None = None,
) -> Ratings:
    """Ratings by path or by word; without either MovieLens 1M, or made-up ones in its place.

    Parameters
    ----------
    data
        A path that `read` takes; or 1m, 100k or latest-small, which are fetched unless they were
        before; or generated. A path that exists wins over a word. With None, MovieLens 1M is
        fetched, and if that fails data of its shape are generated and their source says so.
    progress
        Called during a download, as by `fetch`.
    note
        Called with a sentence when generated data take the place of real ones.
    """
    if data is None:
        try:
            return read(fetch("1m", progress=progress))
        except (UnreachableError, DataError) as error:
            return _instead(error, note)
    if not str(data):
        raise DataError("the name of the data is empty")
    if Path(data).exists() or str(data).startswith("~"):
        return read(data)
    word = str(data).lower()
    if word == GENERATED:
        return generate()
    if word in CHECKSUMS:
        return read(fetch(word, progress=progress))
    words = ", ".join([*CHECKSUMS, GENERATED])
    raise DataError(f"there is no file or folder {data}; give one that exists, or one of {words}")


def _instead(error: Exception, note: Callable[[str], None] | None) -> Ratings:
    failed = (
        "the network could not be reached" if isinstance(error, UnreachableError) else str(error)
    )
    made = generate()
    if note is not None:
        note(f"MovieLens 1M is not available, so generated data are used: {error}")
    return replace(made, source=f"{made.source}; used because {failed}")
