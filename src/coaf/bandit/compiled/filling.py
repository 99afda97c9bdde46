"""Allowed subsets made of best subsets that ignore limits: what fits of them, and what fits yet."""

import math

import numpy as np

from coaf.bandit.arrays import BoolArray, FloatArray, IntArray
from coaf.bandit.compiled.relaxed import follow, walk
from coaf.bandit.compiled.simd import compiled
from coaf.bandit.selection.steps import ARM, Steps

WORTH, SECONDS, COUNT = 0, 1, 2


@compiled
def take(
    steps: Steps,
    t: int,
    room: float,
    most: float,
    taken: BoolArray,
    counts: IntArray,
    total: FloatArray,
) -> None:
    """Take the arm of step t, and open the nodes it needs, if all limits allow that."""
    g, due, node = steps.group[t], steps.time[t], steps.inside[t]
    if total[COUNT] >= most or (g >= 0 and counts[g] == steps.limit[g]):
        return
    while node >= 0 and not taken[node] and total[SECONDS] + due <= room:
        due += steps.time[node]
        node = steps.inside[node]
    if total[SECONDS] + due > room:
        return
    node = t
    while node >= 0 and not taken[node]:
        taken[node] = True
        total[WORTH] += steps.score[node]
        total[SECONDS] += steps.time[node]
        node = steps.inside[node]
    total[COUNT] += 1.0
    if g >= 0:
        counts[g] += 1


@compiled
def fill(
    steps: Steps,
    order: IntArray,
    room: float,
    fewest: float,
    most: float,
    wanted: BoolArray,
    by_order: bool,
    taken: BoolArray,
    counts: IntArray,
    total: FloatArray,
) -> None:
    """Take what is wanted as long as limits allow, then further arms at the nodes then open.

    What is wanted comes step by step or in the order given, the rest in that order. Arms that are
    worth nothing are added only while there are not enough.
    """
    for f in range(3):
        total[f] = 0.0
    for g in range(counts.shape[0]):
        counts[g] = 0
    for t in range(taken.shape[0]):
        taken[t] = False
    if by_order:
        for i in range(order.shape[0]):
            if wanted[order[i]]:
                take(steps, order[i], room, most, taken, counts, total)
    else:
        for t in range(taken.shape[0]):
            if wanted[t] and steps.kind[t] == ARM:
                take(steps, t, room, most, taken, counts, total)
    for i in range(order.shape[0]):
        t = order[i]
        is_open = steps.inside[t] < 0 or taken[steps.inside[t]]
        if is_open and not taken[t] and (steps.score[t] > 0.0 or total[COUNT] < fewest):
            take(steps, t, room, most, taken, counts, total)


@compiled
def bounds(
    steps: Steps,
    gain: FloatArray,
    rates: FloatArray,
    order: IntArray,
    room: float,
    fewest: float,
    most: float,
    ahead: FloatArray,
) -> tuple[float, BoolArray]:
    """Write to ahead[t, b, r] what the steps from t on are worth at rates[r], at most.

    Returns what the best of the subsets made on the way is worth, or -inf, and its steps.
    """
    T = steps.kind.shape[0]
    value, used = np.empty((T + 1, 2)), np.empty((2, T + 1, 2))
    wanted, taken = np.zeros(T, dtype=np.bool_), np.zeros(T, dtype=np.bool_)
    best, total = np.zeros(T, dtype=np.bool_), np.empty(3)
    counts = np.zeros(steps.limit.shape[0], dtype=np.int64)
    found: float = -math.inf
    for r in range(rates.shape[0]):
        walk(steps, gain, rates[r], 1, value, used)
        for t in range(T + 1):
            ahead[t, 0, r], ahead[t, 1, r] = value[t, 0], value[t, 1]
        follow(steps, gain, rates[r], value, wanted)
        for by_order in (False, True):
            fill(steps, order, room, fewest, most, wanted, by_order, taken, counts, total)
            if total[WORTH] > found and total[COUNT] >= fewest:
                found = total[WORTH]
                for t in range(T):
                    best[t] = taken[t]
    return found, best
