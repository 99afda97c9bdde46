"""Short open paths through many points: 2-opt and Or-opt over near neighbours, and kicks.

Node n of a distance table is the start and node n + 1 an end that is 0 away from everything, so
that the last point needs no case of its own. `path` runs from the start to the end.
"""

import numpy as np

from coaf.bandit.arrays import BoolArray, FloatArray, IntArray
from coaf.bandit.compiled.simd import compiled

# A move must save this part of what is at stake, or rounding could cycle for ever.
PROGRESS = 1e-12

# How many neighbours of a node to look at, the end among them.
NEAR = 11

# How often to try exchanging two stretches of a path, and as often as there are points.
KICKS = 200

# How many moves to make for each point at most; a handful is usual.
MOVES = 100


@compiled
def table_of(points: FloatArray, start: FloatArray) -> FloatArray:
    """Distances between the points, the start and the end."""
    n, d = points.shape
    table = np.zeros((n + 2, n + 2))
    for i in range(n):
        for j in range(i + 1, n + 1):
            total = 0.0
            for c in range(d):
                x = points[i, c] - (points[j, c] if j < n else start[c])
                total += x * x
            table[i, j] = table[j, i] = np.sqrt(total)
    return table


@compiled
def nearest(table: FloatArray, many: int) -> IntArray:
    """The `many` nearest nodes of each, the nearest first; fewer where there are not so many."""
    size = table.shape[0]
    many = min(many, size - 1)
    result = np.empty((size, many), np.int64)
    far = np.empty(many)
    for i in range(size):
        filled = 0
        for j in range(size):
            x = table[i, j]
            if j == i or (filled == many and x >= far[many - 1]):
                continue
            at = filled if filled < many else many - 1
            while at > 0 and far[at - 1] > x:
                far[at] = far[at - 1]
                result[i, at] = result[i, at - 1]
                at -= 1
            far[at] = x
            result[i, at] = j
            filled = min(filled + 1, many)
    return result


@compiled
def length(path: IntArray, size: int, table: FloatArray) -> float:
    total = 0.0
    for i in range(size - 1):
        total += table[path[i], path[i + 1]]
    return total


@compiled
def grain(table: FloatArray) -> float:
    """What a move must save: a part of the largest distance from the start."""
    n = table.shape[0] - 2
    largest = 0.0
    for i in range(n):
        largest = max(largest, table[n, i])
    return PROGRESS * largest


@compiled
def reverse(path: IntArray, at: IntArray, i: int, j: int) -> None:
    """Turn the stretch from position i to j round."""
    while i < j:
        path[i], path[j] = path[j], path[i]
        at[path[i]], at[path[j]] = i, j
        i += 1
        j -= 1
    if i == j:
        at[path[i]] = i


@compiled
def turn(
    path: IntArray, at: IntArray, size: int, table: FloatArray, near: IntArray, a: int, slack: float
) -> float:
    """Make the first reversal that puts a beside a near neighbour and helps; what it saves."""
    for side in range(2):
        i = at[a]
        if (side == 0 and i == size - 1) or (side == 1 and i == 0):
            continue
        b = path[i + 1] if side == 0 else path[i - 1]
        old = table[a, b]
        for k in range(near.shape[1]):
            c = near[a, k]
            if table[a, c] >= old:
                break
            j = at[c]
            if j < 0 or (side == 0 and j == size - 1) or (side == 1 and j == 0):
                continue
            d = path[j + 1] if side == 0 else path[j - 1]
            saved: float = old + table[c, d] - table[a, c] - table[b, d]
            if saved > slack:
                # The edges (a, b) and (c, d) become (a, c) and (b, d).
                if side == 0:
                    reverse(path, at, min(i, j) + 1, max(i, j))
                else:
                    reverse(path, at, min(i, j), max(i, j) - 1)
                return saved
    return 0.0


@compiled
def shift(
    path: IntArray, at: IntArray, size: int, table: FloatArray, near: IntArray, a: int, slack: float
) -> float:
    """Make the first move of one to three points from a on that helps; what it saves."""
    for far in range(-2, 3):
        i, j = min(at[a], at[a] + far), max(at[a], at[a] + far)
        if i < 1 or j > size - 2:
            continue
        before, after = path[i - 1], path[j + 1]
        # a is put beside its neighbour; b is the other end of the stretch.
        b = path[j] if at[a] == i else path[i]
        freed = table[before, path[i]] + table[path[j], after] - table[before, after]
        if freed <= slack:
            continue
        for k in range(near.shape[1]):
            c = near[a, k]
            p = at[c]
            if p < 0 or i <= p <= j:
                continue
            for side in range(2):
                q = p + 1 if side == 0 else p - 1
                if q < 0 or q >= size or i <= q <= j:
                    continue
                d = path[q]
                saved: float = freed + table[c, d] - table[a, c] - table[b, d]
                if saved > slack:
                    # Three reversals move the stretch between c and d, whichever way round.
                    gap = min(p, q)
                    first_is_a = path[i] == a
                    a_first = side == 0  # c comes first, then a
                    if gap > j:
                        turned = first_is_a != a_first
                        reverse(path, at, i, gap)
                        reverse(path, at, i, gap - (j - i) - 1)
                        if not turned:
                            reverse(path, at, gap - (j - i), gap)
                    else:
                        turned = first_is_a != a_first
                        reverse(path, at, gap + 1, j)
                        reverse(path, at, gap + 1 + (j - i) + 1, j)
                        if not turned:
                            reverse(path, at, gap + 1, gap + 1 + (j - i))
                    return saved
    return 0.0


@compiled
def shorten(
    path: IntArray,
    at: IntArray,
    size: int,
    table: FloatArray,
    near: IntArray,
    queue: IntArray,
    waiting: BoolArray,
    last: int,
    slack: float,
) -> tuple[float, int]:
    """Move the nodes that wait, and those disturbed by that, until nothing helps.

    Returns what that saves, and how many nodes and moves were looked at for it. `queue` is a ring
    of which the first `last` entries wait. Each move saves more than `slack`, so there is an end to
    them, but nobody knows when: their number is limited too.
    """
    first, saved, looked, ring, moves = 0, 0.0, 0, queue.shape[0], MOVES * size
    while last > 0:
        a = queue[first]
        first = (first + 1) % ring
        last -= 1
        waiting[a] = False
        looked += 1
        while moves > 0 and at[a] >= 0:
            i = at[a]
            left = path[i - 1] if i > 0 else a
            right = path[i + 1] if i < size - 1 else a
            gain = turn(path, at, size, table, near, a, slack)
            if gain == 0.0:
                gain = shift(path, at, size, table, near, a, slack)
            if gain == 0.0:
                break
            saved += gain
            moves -= 1
            looked += 1
            i = at[a]
            for b in (left, right, path[max(i - 1, 0)], path[min(i + 1, size - 1)]):
                if not waiting[b]:
                    waiting[b] = True
                    queue[(first + last) % ring] = b
                    last += 1
    return saved, looked


@compiled
def improve(path: IntArray, table: FloatArray, near: IntArray) -> None:
    """Shorten the path until no reversal and no shift to near neighbours helps."""
    size = path.shape[0]
    at, waiting = np.full(table.shape[0], -1), np.ones(table.shape[0], np.bool_)
    queue = np.empty(table.shape[0], np.int64)
    for i in range(size):
        at[path[i]] = i
        queue[i] = path[i]
    shorten(path, at, size, table, near, queue, waiting, size, grain(table))


@compiled
def by_nearest(table: FloatArray) -> IntArray:
    """A path that always goes to the nearest point not yet visited."""
    n = table.shape[0] - 2
    path, left = np.empty(n + 2, np.int64), np.arange(n)
    path[0], path[n + 1] = n, n + 1
    for i in range(n):
        best = 0
        for k in range(1, n - i):
            if table[path[i], left[k]] < table[path[i], left[best]]:
                best = k
        path[i + 1] = left[best]
        for k in range(best, n - i - 1):  # in order, so that of equals the lowest is first
            left[k] = left[k + 1]
    return path


@compiled
def kicked(path: IntArray, table: FloatArray, near: IntArray, kicks: int) -> None:
    """Exchange two neighbouring stretches at random, shorten, and keep what is shorter."""
    size = path.shape[0]
    if size < 6:
        return
    at, waiting = np.empty(table.shape[0], np.int64), np.zeros(table.shape[0], np.bool_)
    queue, kept = np.empty(table.shape[0], np.int64), path.copy()
    for i in range(size):
        at[path[i]] = i
    slack, seed = grain(table), 1
    for _ in range(kicks):
        # i, j and k are where the two stretches begin, meet and end.
        seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
        i = 1 + (seed >> 8) % (size - 3)
        seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
        j = min(i + (seed >> 8) % 25, size - 3)
        seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
        k = min(j + 1 + (seed >> 8) % 25, size - 2)
        a, b, c, d = path[i - 1], path[i], path[j], path[j + 1]
        e, f = path[k], path[k + 1]
        change = table[a, d] + table[e, b] + table[c, f] - table[a, b] - table[c, d] - table[e, f]
        reverse(path, at, i, k)
        reverse(path, at, i, i + k - j - 1)
        reverse(path, at, i + k - j, k)
        last = 0
        for node in (a, b, c, d, e, f):
            if not waiting[node]:
                waiting[node] = True
                queue[last] = node
                last += 1
        saved, _ = shorten(path, at, size, table, near, queue, waiting, last, slack)
        if change - saved < -slack:
            for x in range(size):
                kept[x] = path[x]
        else:
            for x in range(size):
                path[x] = kept[x]
                at[path[x]] = x


@compiled
def short_path(table: FloatArray, near: IntArray) -> IntArray:
    """A short path through all points of the table."""
    path = by_nearest(table)
    improve(path, table, near)
    kicked(path, table, near, KICKS + path.shape[0])
    return path
