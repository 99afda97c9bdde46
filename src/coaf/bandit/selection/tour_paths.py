"""Short open paths: exact for a few points, local search for many.

A path runs from the start through points and ends wherever it likes. The distance table has two
rows more than there are points: row n is the start, row n + 1 an end that is 0 away from
everything, so that the last point needs no case of its own.
"""

import functools

import numpy as np

from coaf.bandit.arrays import FloatArray

# Beyond this, 2**n subsets no longer fit a live decision.
EXACT_POINTS = 15

# How many spanning trees to bound a length by; it hardly rises after that.
_TREES = 50


def distances(points: FloatArray, start: FloatArray) -> FloatArray:
    """Table of distances between the points, the start (row n) and the end (row n + 1)."""
    from coaf.bandit.compiled.paths import table_of  # loads numba, which `import coaf` should not

    return table_of(np.array(points), np.array(start))


def subset_lengths(table: FloatArray) -> FloatArray:
    """Shortest length through every subset of the points; entry s reads s as a bit mask."""
    from coaf.bandit.compiled.tours import shortest_lengths  # loads numba

    n = len(table) - 2
    between = np.ascontiguousarray(table[:n, :n])
    return shortest_lengths(np.ascontiguousarray(table[n, :n]), between)


def shortest_length(points: FloatArray, start: FloatArray) -> float:
    """Length of the shortest path from the start through all points.

    Exact for up to 15 points; beyond, a local search of fixed effort gives an upper bound.
    """
    if len(points) <= EXACT_POINTS:
        return float(subset_lengths(distances(points, start))[-1])
    return _short_length(points.shape, points.tobytes(), start.tobytes())


# A decision asks for the time of its subset more than once.
@functools.lru_cache(maxsize=64)
def _short_length(shape: tuple[int, int], points: bytes, start: bytes) -> float:
    from coaf.bandit.compiled.paths import NEAR, length, nearest, short_path  # loads numba

    table = distances(np.frombuffer(points).reshape(shape), np.frombuffer(start))
    path = short_path(table, nearest(table, NEAR))
    return length(path, len(path), table)


def length_bound(points: FloatArray, start: FloatArray) -> float:
    """No path from the start through all points is shorter than this."""
    from coaf.bandit.compiled.paths import NEAR, nearest  # these load numba
    from coaf.bandit.compiled.prizes import Prizes
    from coaf.bandit.compiled.spanning import bound

    n, table = len(points), distances(points, start)
    # A prize that is worth any detour, so that the best path leaves no point out.
    prize = 4.0 * float(table.max(initial=0.0))
    prizes = Prizes(
        price=1.0,
        scores=np.full(n, prize),
        each=np.zeros(n),
        table=table,
        near=nearest(table, NEAR),
        speed=1.0,
        high=n,
        spare=np.inf,
    )
    known = shortest_length(points, start)
    return max(0.0, bound(prizes, known - n * prize, _TREES) + n * prize)
