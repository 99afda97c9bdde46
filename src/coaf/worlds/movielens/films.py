"""Films as arms: completed ratings, principal components, and what is known of both."""

import hashlib
import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.cache import cache_folder
from coaf.bandit.threads import one_thread
from coaf.worlds.movielens import completion
from coaf.worlds.movielens.completion import Completion, Floats32, complete
from coaf.worlds.movielens.ratings import DataError, Ratings
from coaf.worlds.progress import Progress

# Of the 3,706 films of 1M, 3,416 have at least five ratings by published counts; the paper's 3,461
# should be those with at least four.
LEAST = 4
COMPONENTS = 20  # kept, so that fewer can be chosen without preparing again


@dataclass(frozen=True, slots=True, eq=False)
class Films:
    """What the experiment needs of a set of ratings.

    Attributes
    ----------
    source, digest
        Which data this is, in words, and as a key that tells one from another.
    completed : (films, users)
        Every film's rating by every user: as given, or predicted where none was.
    components : (films, COMPONENTS)
        Principal components of the films, largest first: films are samples, users variables.
    explained : (COMPONENTS,)
        Each component's share of the variance.
    facts
        Counts, the scale, and how the completion did, as JSON.
    seconds
        How long it took to prepare, when that was done.
    """

    source: str
    digest: str
    completed: Floats32
    components: FloatArray
    explained: FloatArray
    facts: dict[str, Any]
    seconds: float = 0.0

    @property
    def scale(self) -> tuple[float, float]:
        """The lowest and the highest rating there is."""
        low, high = self.facts["scale"]
        return float(low), float(high)


def prepare(
    ratings: Ratings,
    *,
    least: int = LEAST,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Films:
    """Complete the ratings of films with at least `least` of them, and find their components.

    The result is kept in the cache folder, and found there when the same ratings come again.
    """
    key = hashlib.sha256(f"{ratings.digest} {least} {COMPONENTS} {_code()}".encode()).hexdigest()
    path = (cache or cache_folder() / "movielens") / f"prepared-{key[:16]}.npz"
    found = _load(path, ratings.source, key)
    if found is None:
        # Completion is many small products, between which further threads would only wait.
        with one_thread:
            start = time.perf_counter()
            found = _prepare(ratings, key, least, progress)
            found = replace(found, seconds=time.perf_counter() - start)
        _save(path, found)
    return found


def _prepare(ratings: Ratings, key: str, least: int, progress: Progress | None) -> Films:
    kept = ratings.frequent(least)
    if kept.shape[1] <= COMPONENTS or kept.shape[0] <= COMPONENTS:
        raise DataError(
            f"{ratings.source}: {kept.shape[1]} films with at least {least} ratings, by "
            f"{kept.shape[0]} users; {COMPONENTS} components need more of both"
        )
    low, high = float(kept.values.min()), float(kept.values.max())
    if low == high:
        raise DataError(f"{ratings.source}: every rating is {low:g}, so nothing can be learned")
    completions = complete(kept, progress=progress)
    completed = completions[0].predict(low, high)
    completed[kept.films, kept.users] = kept.values
    components, explained = principal(completed, COMPONENTS)
    facts = {
        "ratings": len(ratings.values),
        "users": ratings.shape[0],
        "films": ratings.shape[1],
        "least_ratings": least,
        "kept_ratings": len(kept.values),
        "kept_users": kept.shape[0],
        "kept_films": kept.shape[1],
        "density": kept.density,
        "scale": [low, high],
        "noise": sub_gaussian_scale(completed),
        "completion": [_describe(c) for c in completions],
    }
    return Films(ratings.source, key, completed, components, explained, facts)


def _describe(c: Completion) -> dict[str, float]:
    return {"p": c.p, "rank": c.rank, "held_out": c.held_out, "film_mean": c.film_mean}


def principal(table: Floats32, count: int) -> tuple[FloatArray, FloatArray]:
    """The first principal components of the rows, and each one's share of the variance."""
    from scipy.sparse.linalg import svds  # slow to load

    centred = table - table.mean(axis=0)
    start = np.random.default_rng(0).standard_normal(min(table.shape)).astype(np.float32)
    left, singular, _ = svds(centred, k=count, v0=start)
    order = np.argsort(-singular)
    left, singular = left[:, order].astype(np.float64), singular[order].astype(np.float64)
    # A singular vector's sign is nobody's choice: let its largest entry be positive.
    largest = np.abs(left).argmax(axis=0)
    left *= np.sign(left[largest, np.arange(count)])
    total = float(np.square(centred, dtype=np.float64).sum())
    return left * singular, singular**2 / total


def sub_gaussian_scale(table: Floats32) -> float:
    """The smallest σ with E exp(λ(y − Ey)) ≤ exp(λ²σ²/2) for all λ, y uniform in any row.

    The supremum over λ is found on a grid, first a coarse one for all rows, then a fine one for
    those that come near. As λ → 0 it is the standard deviation, and it never passes half the range
    (Hoeffding).

    Examples
    --------
    >>> round(sub_gaussian_scale(np.array([[1.0, 5.0]], dtype=np.float32)), 6)
    2.0
    """
    coarse = np.concatenate(
        [_scales(table[k : k + 256], 2.0, 8) for k in range(0, len(table), 256)]
    )
    near = np.argsort(-coarse)[:30]
    return float(max(coarse.max(), _scales(table[near], 2.0**0.125, 64).max()))


def _scales(rows: Floats32, factor: float, steps: int) -> FloatArray:
    """σ of each row, λ on a grid of so many steps from half the inverse of its range upwards."""
    off = rows.astype(np.float64)
    off -= off.mean(axis=1, keepdims=True)
    span = np.ptp(off, axis=1)
    unit = off / np.where(span > 0.0, span, 1.0)[:, None]
    squares: FloatArray = unit.var(axis=1)
    for step in range(steps):
        tilt = 0.5 * factor**step
        for sign in (-tilt, tilt):
            grown = np.log(np.exp(sign * unit).mean(axis=1))
            squares = np.maximum(squares, 2.0 * grown / tilt**2)
    result: FloatArray = np.sqrt(squares) * span
    return result


def _code() -> str:
    """What prepared data depends on besides the ratings: a change there makes it anew."""
    sources = (Path(__file__), Path(completion.__file__))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()


def _load(path: Path, source: str, key: str) -> Films | None:
    """Prepared data, unless there is none or it cannot be read."""
    try:
        with path.open("rb") as file, np.load(file) as held:
            return Films(
                source,
                key,
                held["completed"],
                held["components"],
                held["explained"],
                json.loads(str(held["facts"])),
                float(held["seconds"]),
            )
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        return None


def _save(path: Path, films: Films) -> None:
    """Keep prepared data, whole or not at all; a cache that cannot be written to is no loss."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            np.savez(
                file,
                completed=films.completed,
                components=films.components,
                explained=films.explained,
                facts=json.dumps(films.facts),
                seconds=films.seconds,
            )
        part.replace(path)
    with suppress(OSError):
        part.unlink()
