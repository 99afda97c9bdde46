"""Short open paths: exact for a few points, 2-opt and Or-opt for many.

A path runs from the start through points and ends wherever it likes. The distance table has two
rows more than there are points: row n is the start, row n + 1 an end that is 0 away from
everything, so that the last point needs no case of its own.
"""

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import FloatArray

# Beyond this, 2**n subsets no longer fit a live decision.
EXACT_POINTS = 15

# A move must shorten the path by this part of its length, or rounding could cycle for ever.
_PROGRESS = 1e-12

Path = npt.NDArray[np.intp]


def distances(points: FloatArray, start: FloatArray) -> FloatArray:
    """Table of distances between the points, the start (row n) and the end (row n + 1)."""
    n = len(points)
    places = np.vstack([points, start[None, :]])
    table = np.zeros((n + 2, n + 2))
    table[: n + 1, : n + 1] = np.sqrt(((places[:, None, :] - places[None, :, :]) ** 2).sum(axis=2))
    return table


def subset_lengths(table: FloatArray) -> FloatArray:
    """Shortest length through every subset of the points; entry s reads s as a bit mask."""
    # Loads numba, which `import coaf` should not.
    from coaf.bandit.compiled.tours import shortest_lengths

    n = len(table) - 2
    between = np.ascontiguousarray(table[:n, :n])
    return shortest_lengths(np.ascontiguousarray(table[n, :n]), between)


def shortest_length(points: FloatArray, start: FloatArray) -> float:
    """Length of the shortest path from the start through all points.

    Exact for up to 15 points; beyond, the better of two local searches, which is an upper bound.
    """
    n = len(points)
    table = distances(points, start)
    if n <= EXACT_POINTS:
        return float(subset_lengths(table)[-1])
    return min(
        length(improve(construct(table), table), table) for construct in (_nearest, _farthest)
    )


def length(path: Path, table: FloatArray) -> float:
    return float(table[path[:-1], path[1:]].sum())


def cheapest_insertion(path: Path, arms: Path, table: FloatArray) -> tuple[FloatArray, Path]:
    """For each arm, the smallest detour that visits it and the position where to insert it."""
    before, after = path[:-1, None], path[1:, None]
    detours = table[before, arms] + table[arms, after] - table[before, after]
    at = np.argmin(detours, axis=0)
    return detours[at, np.arange(len(arms))], at + 1


def improve(path: Path, table: FloatArray) -> Path:
    """Shorten the path by the best reversal or segment move until none helps."""
    while True:
        slack = _PROGRESS * length(path, table)
        change, better = min(_reverse(path, table), _shift(path, table), key=lambda move: move[0])
        if change >= -slack:
            return path
        path = better


def _reverse(path: Path, table: FloatArray) -> tuple[float, Path]:
    """The best 2-opt move: reverse the stretch from position i to j."""
    k = len(path) - 2
    if k < 2:
        return 0.0, path
    before, first, last, after = path[:k], path[1 : k + 1], path[1 : k + 1], path[2:]
    change = (
        table[before[:, None], last[None, :]]
        + table[first[:, None], after[None, :]]
        - table[before, first][:, None]
        - table[last, after][None, :]
    )
    change[np.tril_indices(k)] = 0.0
    i, j = divmod(int(np.argmin(change)), k)
    return float(change[i, j]), np.concatenate(
        [path[: i + 1], path[i + 1 : j + 2][::-1], path[j + 2 :]]
    )


def _shift(path: Path, table: FloatArray) -> tuple[float, Path]:
    """The best Or-opt move: put a stretch of one to three points elsewhere, either way round."""
    k = len(path) - 2
    best, better = 0.0, path
    for size in range(1, min(3, k - 1) + 1):
        i = np.arange(1, k - size + 2)
        head, tail = path[i], path[i + size - 1]
        before, after = path[i - 1], path[i + size]
        saved = table[before, head] + table[tail, after] - table[before, after]
        left, right = path[:-1], path[1:]
        gap = np.arange(k + 1)
        inside = (gap[None, :] >= i[:, None] - 1) & (gap[None, :] <= i[:, None] + size - 1)
        for a, b, step in ((head, tail, 1), (tail, head, -1)):
            added = table[left[None, :], a[:, None]] + table[b[:, None], right[None, :]]
            change = added - table[left, right][None, :] - saved[:, None]
            change[inside] = 0.0
            row, at = divmod(int(np.argmin(change)), k + 1)
            if change[row, at] < best:
                best = float(change[row, at])
                stretch = path[i[row] : i[row] + size]
                rest = np.delete(path, slice(i[row], i[row] + size))
                # Gaps after the stretch lie `size` earlier once it is out.
                where = at + 1 if at < i[row] else at + 1 - size
                better = np.concatenate([rest[:where], stretch[::step], rest[where:]])
    return best, better


def _nearest(table: FloatArray) -> Path:
    """Always go to the nearest point not yet visited."""
    n = len(table) - 2
    far = table.copy()
    far[:, n:] = np.inf
    path = [n]
    for _ in range(n):
        path.append(int(np.argmin(far[path[-1]])))
        far[:, path[-1]] = np.inf
    return np.array([*path, n + 1], dtype=np.intp)


def _farthest(table: FloatArray) -> Path:
    """Insert the point with the largest cheapest detour first."""
    n = len(table) - 2
    path = np.array([n, n + 1], dtype=np.intp)
    left = np.arange(n, dtype=np.intp)
    while len(left):
        detours, at = cheapest_insertion(path, left, table)
        pick = int(np.argmax(detours))
        path = np.insert(path, at[pick], left[pick])
        left = np.delete(left, pick)
    return path
