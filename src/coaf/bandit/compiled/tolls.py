"""Tolls for groups that have arms at several nodes of a tree, by subgradient steps.

There no sort tells what a place in a group is worth, since that depends on which nodes are opened.
Prices rise where more is taken than allowed, and fall where less, in steps as long as the bound is
above the best subset known (Polyak). A subset is made of each relaxed one: the best arms of each
group at the nodes that it opens, without nodes that then do not pay, filled up while arms fit.
"""

import math

import numpy as np

from coaf.bandit.arrays import BoolArray, FloatArray, IntArray
from coaf.bandit.compiled.filling import WORTH, fill
from coaf.bandit.compiled.relaxed import charge, follow, largest, walk
from coaf.bandit.compiled.simd import compiled
from coaf.bandit.compiled.spanning import PATIENCE
from coaf.bandit.selection.steps import ARM, OPEN, Steps


@compiled
def prune(steps: Steps, rate: float, taken: BoolArray, gain: FloatArray, worth: FloatArray) -> None:
    """Write what steps are worth, or -inf for all arms but the best of each group at open nodes."""
    t = 0
    for t in range(gain.shape[0]):
        gain[t] = -math.inf
    t = 0
    while t < gain.shape[0]:
        if steps.kind[t] == OPEN and not taken[t]:
            t = steps.jump[t] + 1
            continue
        if steps.kind[t] == OPEN or steps.score[t] > rate * steps.time[t]:
            gain[t] = steps.score[t]
        t += 1
    for g in range(steps.limit.shape[0]):
        size = 0
        for i in range(steps.first[g], steps.first[g + 1]):
            t = steps.members[i]
            if gain[t] > -math.inf:
                worth[size] = gain[t] - rate * steps.time[t]
                size += 1
        if size <= steps.limit[g]:
            continue
        level = largest(worth, size, steps.limit[g] - 1)
        left = steps.limit[g]
        for i in range(size):
            left -= worth[i] > level
        for i in range(steps.first[g], steps.first[g + 1]):
            t = steps.members[i]
            if gain[t] > -math.inf:
                x = gain[t] - rate * steps.time[t]
                if x < level or (x == level and left == 0):
                    gain[t] = -math.inf
                elif x == level:
                    left -= 1


@compiled
def settle(
    steps: Steps,
    order: IntArray,
    room: float,
    most: float,
    rate: float,
    fee: float,
    worth: float,
    rounds: int,
    tolls: FloatArray,
    kept: BoolArray,
) -> tuple[float, float, float, float]:
    """Tolls that make the bound low; with them the bound, rate and fee; and the best worth known.

    Parameters
    ----------
    steps
        The round.
    order
        The steps of arms, those worth most per second first.
    room, most
        How many seconds and arms are allowed.
    rate, fee
        Where to begin.
    worth
        What the best subset known so far is worth.
    rounds
        How many steps to make.
    tolls, kept
        The tolls, and the steps of a better subset if one is met, are written here.
    """
    T, groups = steps.kind.shape[0], tolls.shape[0]
    gain, value, used = np.empty(T), np.empty((T + 1, 2)), np.empty((2, T + 1, 2))
    taken, made, filled = np.zeros(T, np.bool_), np.zeros(T, np.bool_), np.zeros(T, np.bool_)
    scratch, total = np.empty(T), np.empty(3)
    now, slope, counts = np.zeros(groups), np.zeros(groups), np.zeros(groups, np.int64)
    best, best_rate, best_fee = math.inf, rate, fee
    pace, stale, guess = 1.0, 0, rate
    unit = room / most  # seconds, so that a price of time weighs as much as one of arms
    for _ in range(rounds):
        back = charge(steps, fee, now, gain)
        walk(steps, gain, rate, 1, value, used)
        bound = back + value[0, 0] + rate * room + fee * most
        _, seconds, count = follow(steps, gain, rate, value, taken)
        stale += 1
        if bound < best:
            if bound < best - 1e-6 * (best - worth):
                stale = 0
            best, best_rate, best_fee = bound, rate, fee
            for g in range(groups):
                tolls[g] = now[g]
        if stale == PATIENCE:
            pace, stale = 0.5 * pace, 0

        for g in range(groups):
            open_scope = steps.scope[g] < 0 or taken[steps.scope[g]]
            slope[g] = steps.limit[g] if open_scope else 0
        for t in range(T):
            if taken[t] and steps.kind[t] == ARM and steps.group[t] >= 0:
                slope[steps.group[t]] -= 1.0
        late, crowd = room - seconds, most - count

        prune(steps, rate, taken, gain, scratch)
        guess = max(guess, 0.5 * rate)
        walk(steps, gain, guess, 1, value, used)
        _, seconds, count = follow(steps, gain, guess, value, made)
        guess = 0.98 * guess if seconds <= room and count <= most else 1.05 * guess + 1e-3 * rate
        for by_order in (False, True):
            fill(steps, order, room, 0.0, most, made, by_order, filled, counts, total)
            if total[WORTH] > worth:
                worth = total[WORTH]
                for t in range(T):
                    kept[t] = filled[t]

        # A price of 0 cannot fall.
        norm = 0.0
        for g in range(groups):
            slope[g] = slope[g] if now[g] > 0.0 or slope[g] < 0.0 else 0.0
            norm += slope[g] * slope[g]
        late = late / unit if unit > 0.0 and (rate > 0.0 or late < 0.0) else 0.0
        crowd = crowd if fee > 0.0 or crowd < 0.0 else 0.0
        norm += late * late + crowd * crowd
        if norm == 0.0:
            break
        stride = pace * (bound - worth) / norm
        for g in range(groups):
            now[g] = max(0.0, now[g] - stride * slope[g])
        if unit > 0.0:
            rate = max(0.0, rate - stride * late / unit)
        fee = max(0.0, fee - stride * crowd)
    return best, best_rate, best_fee, worth
