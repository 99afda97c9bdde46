"""What is done with partial subsets one by one, or with a list of them.

A partial subset has a row of numbers and a row of tags: where its trail ends, then its key.
"""

import math

import numpy as np

from coaf.bandit.arrays import BoolArray, FloatArray, IntArray
from coaf.bandit.compiled.relaxed import largest
from coaf.bandit.compiled.simd import compiled


@compiled
def ceiling(
    rates: FloatArray,
    ahead: FloatArray,
    fees: FloatArray,
    t: int,
    b: int,
    left: float,
    count: float,
    at: IntArray,
) -> float:
    """What the steps from t on can add in `left` seconds, at most.

    fees[f] is a fee for each arm and what is paid back of it in all; ahead[f, t, b, r] is what the
    steps from t on add at most if arms cost that fee and seconds rates[r]. In `r` this is convex,
    and at[f] is where it was lowest the last time.
    """
    best = np.inf
    last = rates.shape[0] - 1
    for f in range(fees.shape[0]):
        r = at[f]
        x = rates[r] * left + ahead[f, t, b, r]
        while r < last and rates[r + 1] * left + ahead[f, t, b, r + 1] < x:
            r += 1
            x = rates[r] * left + ahead[f, t, b, r]
        while r > 0 and rates[r - 1] * left + ahead[f, t, b, r - 1] < x:
            r -= 1
            x = rates[r] * left + ahead[f, t, b, r]
        at[f] = r
        best = min(best, x - fees[f, 0] * count + fees[f, 1])
    return best


@compiled
def beaten(
    keys: IntArray,
    row: int,
    value: float,
    stamps: IntArray,
    stamp: int,
    tops: FloatArray,
    owners: IntArray,
) -> bool:
    """Whether a quicker partial subset with the same key is worth as much; else remember this."""
    words = keys.shape[1]
    mask = stamps.shape[0] - 1
    h = 0
    for w in range(1, words):
        h = (h ^ keys[row, w]) * 0x2545F4914F6CDD1D
        h ^= (h >> 29) & 0x7FFFFFFFF
    h &= mask
    while stamps[h] == stamp:
        same = True
        for w in range(1, words):
            same &= owners[h, w] == keys[row, w]
        if same:
            if value <= tops[h]:
                return True
            tops[h] = value
            return False
        h = (h + 1) & mask
    stamps[h] = stamp
    tops[h] = value
    for w in range(1, words):
        owners[h, w] = keys[row, w]
    return False


@compiled
def move(
    states: FloatArray, tags: IntArray, i: int, other: FloatArray, labels: IntArray, j: int
) -> None:
    """Copy row i of the first pair to row j of the second."""
    for f in range(states.shape[1]):
        other[j, f] = states[i, f]
    for w in range(tags.shape[1]):
        labels[j, w] = tags[i, w]


@compiled
def thin(marks: FloatArray, size: int, width: int, keep: BoolArray) -> float:
    """Keep the `width` largest of the marks; the largest that is not kept."""
    copy = np.empty(size)
    for i in range(size):
        copy[i] = marks[i]
    level = largest(copy, size, width - 1)
    above, level_size, dropped = 0, 0, -math.inf
    for i in range(size):
        above += marks[i] > level
        level_size += marks[i] == level
        if marks[i] < level:
            dropped = max(dropped, marks[i])
    room, seen = width - above, 0
    for i in range(size):
        keep[i] = marks[i] > level
        if marks[i] == level:  # of those that are alike, evenly many from all along the list
            keep[i] = (seen + 1) * room // level_size > seen * room // level_size
            seen += 1
    return level if room < level_size else dropped
