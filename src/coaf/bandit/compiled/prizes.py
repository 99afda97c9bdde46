"""Prize-collecting paths: points put in, left out and dropped.

`at` is each node's position on the path, or -1. Work is counted in places weighed.
"""

import math
from typing import NamedTuple

import numpy as np

from coaf.bandit.arrays import BoolArray, FloatArray, IntArray
from coaf.bandit.compiled.paths import PROGRESS, length
from coaf.bandit.compiled.simd import compiled

# Paths shorter than this are searched for a place from end to end.
_SHORT = 16

# How many points are dropped together before longer stretches are looked at.
SHORT_STRETCH = 12

LOSS, SECONDS = 0, 1


class Prizes(NamedTuple):
    """A path pays `price` for its length and earns the scores of its points.

    Its length over `speed` and the seconds of its points must fit into `spare`, and its points
    number at most `high`. `table` and `near` are distances and neighbours, as in `compiled.paths`.
    """

    price: float
    scores: FloatArray
    each: FloatArray
    table: FloatArray
    near: IntArray
    speed: float
    high: int
    spare: float


@compiled
def place(
    path: IntArray, at: IntArray, size: int, table: FloatArray, near: IntArray, j: int
) -> tuple[float, int]:
    """The smallest detour that visits j, and the position that j then has."""
    best, where = math.inf, -1
    if size <= _SHORT:
        for i in range(1, size):
            a, b = path[i - 1], path[i]
            x = table[a, j] + table[b, j] - table[a, b]
            if x < best:
                best, where = x, i
        return best, where
    for k in range(near.shape[1]):
        i = at[near[j, k]]
        if i > 0:
            a, b = path[i - 1], path[i]
            x = table[a, j] + table[b, j] - table[a, b]
            if x < best:
                best, where = x, i
        if 0 <= i < size - 1:
            a, b = path[i], path[i + 1]
            x = table[a, j] + table[b, j] - table[a, b]
            if x < best:
                best, where = x, i + 1
    return best, where


@compiled
def insert(path: IntArray, at: IntArray, size: int, j: int, where: int) -> None:
    for i in range(size, where, -1):
        path[i] = path[i - 1]
        at[path[i]] = i
    path[where] = j
    at[j] = where


@compiled
def remove(path: IntArray, at: IntArray, size: int, first: int, last: int) -> None:
    """Take the stretch from position `first` to `last` out."""
    for i in range(first, last + 1):
        at[path[i]] = -1
    for i in range(last + 1, size):
        path[i - (last + 1 - first)] = path[i]
        at[path[i]] = i - (last + 1 - first)


@compiled
def sums(prizes: Prizes, path: IntArray, size: int, total: FloatArray) -> None:
    """Write the loss and the seconds of a path."""
    way = length(path, size, prizes.table)
    total[LOSS], total[SECONDS] = prizes.price * way, way / prizes.speed
    for i in range(1, size - 1):
        total[LOSS] -= prizes.scores[path[i]]
        total[SECONDS] += prizes.each[path[i]]


@compiled
def wait(queue: IntArray, waiting: BoolArray, last: int, node: int) -> int:
    """Put a node into the queue unless it is there; the end of the queue."""
    if waiting[node]:
        return last
    waiting[node] = True
    queue[last] = node
    return last + 1


@compiled
def grow(
    prizes: Prizes,
    path: IntArray,
    at: IntArray,
    size: int,
    ready: IntArray,
    listed: BoolArray,
    many: int,
    by_time: bool,
    queue: IntArray,
    waiting: BoolArray,
    last: int,
    total: FloatArray,
) -> tuple[int, int, int]:
    """Insert points while that pays and fits: the first `many` that are ready, and what is near.

    The best comes first: by what it gains, or by what it gains per second. What is inserted waits
    in the queue to be moved. Returns the new size, the end of the queue and the places weighed.
    """
    table, near, weighed = prizes.table, prizes.near, 0
    while size - 2 < prizes.high:
        pick, where, most, added, won = -1, -1, 0.0, 0.0, 0.0
        kept = 0
        for i in range(many):
            j = ready[i]
            if at[j] >= 0:
                listed[j] = False
                continue
            ready[kept] = j
            kept += 1
            detour, here = place(path, at, size, table, near, j)
            weighed += near.shape[1]
            gain = prizes.scores[j] - prizes.price * detour
            more = detour / prizes.speed + prizes.each[j]
            if gain <= 0.0 or total[SECONDS] + more > prizes.spare:
                continue
            mark = gain / more if by_time and more > 0.0 else gain
            if mark > most:
                pick, where, most, added, won = j, here, mark, more, gain
        many = kept
        if pick < 0:
            break
        insert(path, at, size, pick, where)
        size += 1
        total[SECONDS] += added
        total[LOSS] -= won
        weighed += size // 4
        for node in (path[where - 1], pick, path[where + 1]):
            last = wait(queue, waiting, last, node)
        for k in range(near.shape[1]):
            j = near[pick, k]
            if j < table.shape[0] - 2 and at[j] < 0 and not listed[j]:
                listed[j] = True
                ready[many] = j
                many += 1
    for i in range(many):
        listed[ready[i]] = False
    return size, last, weighed


@compiled
def shed(
    prizes: Prizes, path: IntArray, at: IntArray, size: int, keep: int, total: FloatArray
) -> tuple[int, int]:
    """Drop the point that gains most, per second freed, but not `keep`, until the limits hold."""
    table, weighed = prizes.table, 0
    while size - 2 > prizes.high or total[SECONDS] > prizes.spare:
        pick, most, freed, won = -1, -math.inf, 0.0, 0.0
        for i in range(1, size - 1):
            a, j, b = path[i - 1], path[i], path[i + 1]
            saved = table[a, j] + table[j, b] - table[a, b]
            time = saved / prizes.speed + prizes.each[j]
            gain = prizes.price * saved - prizes.scores[j]
            # A loss is spread over the seconds freed; a gain is taken as it is.
            mark = gain / time if gain < 0.0 and time > 0.0 else gain
            if j != keep and mark > most:
                pick, most, freed, won = i, mark, time, gain
        if pick < 0:
            break
        remove(path, at, size, pick, pick)
        total[SECONDS] -= freed
        total[LOSS] -= won
        weighed += size
        size -= 1
    return size, weighed


@compiled
def prune(prizes: Prizes, path: IntArray, at: IntArray, size: int, work: int) -> tuple[int, int]:
    """Drop the stretch that gains most, again and again; stretches, as a far cluster goes as one.

    Short ones first, and any only when none of those is left.
    """
    table, weighed, longest = prizes.table, 0, SHORT_STRETCH
    earned = np.zeros(size + 1)  # by the path up to each position, less what its length costs
    while size > 2 and weighed <= work:
        span = 0.0
        for i in range(1, size):
            step = prizes.price * table[path[i - 1], path[i]]
            earned[i] = earned[i - 1] - step
            if i < size - 1:
                earned[i] += prizes.scores[path[i]]
            span += abs(step)
        first, last, most = -1, -1, PROGRESS * (span + abs(earned[size - 1]))
        for i in range(1, size - 1):
            a = path[i - 1]
            for j in range(i, min(i + longest, size - 1)):
                # Without positions i to j there is a direct step from before i to after j.
                b = path[j + 1]
                own = prizes.scores[b] if j + 1 < size - 1 else 0.0
                gain = earned[i - 1] - prizes.price * table[a, b] + own - earned[j + 1]
                if gain > most:
                    first, last, most = i, j, gain
        weighed += size * min(longest, size // 2)
        if first >= 0:
            remove(path, at, size, first, last)
            size -= last + 1 - first
        elif longest >= size:
            break
        else:
            longest = size
    return size, weighed
