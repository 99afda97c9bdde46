"""What worlds are built from: ranges, streams of random numbers, batches of items."""

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import FloatArray, IntArray, floats
from coaf.worlds.batch import Batch, gather


def arm_range(arms: tuple[int, int]) -> tuple[int, int]:
    """How many arms a round may show."""
    low, high = int(arms[0]), int(arms[1])
    if not 0 <= low <= high:
        raise ValueError(f"arms is {arms}; it must be a range of counts, as (6, 20)")
    return low, high


def shares(weights: npt.ArrayLike | None, count: int) -> FloatArray:
    """Weights in any unit as shares of 1; equal ones unless given."""
    if weights is None:
        return np.full(count, 1.0 / count)
    given = floats("weights", weights, ndim=1, low=0.0)
    if len(given) != count or given.sum() <= 0.0:
        raise ValueError(f"weights is {weights!r}; it must hold {count} numbers, not all zero")
    result: FloatArray = given / given.sum()
    return result


def sphere(rng: np.random.Generator, n: int, dim: int) -> FloatArray:
    """Points uniform on the unit sphere."""
    rows = rng.standard_normal((n, dim))
    result: FloatArray = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return result


def streams(seed: int, replicate: int) -> list[np.random.Generator]:
    """A stream for each quantity, so that a longer run begins with the same rounds."""
    children = np.random.SeedSequence([seed, 1, replicate]).spawn(4)
    return [np.random.Generator(np.random.SFC64(child)) for child in children]


def batch_of(
    items: FloatArray,
    shown: npt.NDArray[np.integer],
    counts: IntArray,
    *,
    times: tuple[float | FloatArray, float, float],
    means: FloatArray,
    rewards: FloatArray,
) -> Batch:
    """A batch of items: which are shown, and what base, setup and each take in all rounds."""
    (rounds, high), (base, setup, each) = shown.shape, times
    features = gather(items, shown, counts)
    lanes = features.shape[1]
    spare = ((0, 0), (0, lanes - high))
    return Batch(
        dim=items.shape[1],
        features=features,
        counts=counts,
        base=np.broadcast_to(base, rounds).copy(),
        setup=np.full(rounds, setup),
        costs=np.full((rounds, lanes), each),
        means=np.pad(means, spare),
        rewards=np.pad(rewards, spare),
    )
