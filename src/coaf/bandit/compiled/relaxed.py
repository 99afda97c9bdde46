"""What limits cost: a round whose cap and counts are turned into prices.

A cap on seconds acts like a higher rate, a limit on a count like a toll on each arm (Lagrange).
At any such prices the best subset is found in one walk back over the steps of a round, and what it
is worth, with what is left of each limit paid back, is at least what any allowed subset is worth.
The prices found here make that bound small.
"""

import math

import numpy as np

from coaf.bandit.arrays import BoolArray, FloatArray
from coaf.bandit.compiled.simd import compiled
from coaf.bandit.selection.steps import ARM, CLOSE, OPEN, Steps

# Tangents of a convex function meet at its lowest point, mostly after a handful.
_TANGENTS = 16


@compiled
def walk(
    steps: Steps, gain: FloatArray, rate: float, insist: int, value: FloatArray, used: FloatArray
) -> None:
    """From every step on, what the best of the rest is worth if a second costs `rate` more.

    used[0] is how many seconds it takes and used[1] how many arms. If `insist` is 1, an arm must be
    taken inside every node opened; column 1 is for subsets that have not done so yet.
    """
    kind, time, jump = steps.kind, steps.time, steps.jump
    T = kind.shape[0]
    value[T, 0], value[T, 1] = 0.0, -math.inf
    for b in range(2):
        used[0, T, b], used[1, T, b] = 0.0, 0.0
    for t in range(T - 1, -1, -1):
        other, landing, arms = t + 1, 0, 0.0
        take = -math.inf
        if kind[t] == ARM:
            arms = 1.0
            take = gain[t] - rate * time[t] + value[t + 1, 0]
        elif kind[t] == OPEN:
            other, landing = jump[t] + 1, insist
            take = gain[t] - rate * time[t] + value[t + 1, insist]
        for b in range(2):
            if take > value[other, b]:
                value[t, b] = take
                used[0, t, b] = used[0, t + 1, landing] + time[t]
                used[1, t, b] = used[1, t + 1, landing] + arms
            else:
                value[t, b] = value[other, b]
                used[0, t, b] = used[0, other, b]
                used[1, t, b] = used[1, other, b]
        if kind[t] == CLOSE:
            value[t, 1] = -math.inf


@compiled
def largest(values: FloatArray, size: int, rank: int) -> float:
    """The entry of this rank among the first `size`, 0 being the largest; reorders them."""
    low, high = 0, size - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if rank <= j:
            high = j
        elif rank >= i:
            low = i
        else:
            break
    return float(values[rank])


@compiled
def charge(steps: Steps, fee: float, tolls: FloatArray, gain: FloatArray) -> float:
    """Write what each step is worth after fee and tolls; what groups pay back in any case.

    A group pays its toll back for as many arms as its limit allows, where its node is opened.
    """
    for t in range(gain.shape[0]):
        gain[t] = steps.score[t]
        if steps.kind[t] == ARM:
            gain[t] -= fee
            if steps.group[t] >= 0:
                gain[t] -= tolls[steps.group[t]]
    back = 0.0
    for g in range(tolls.shape[0]):
        if steps.scope[g] >= 0:
            gain[steps.scope[g]] += tolls[g] * steps.limit[g]
        else:
            back += tolls[g] * steps.limit[g]
    return back


@compiled
def relax(
    steps: Steps,
    rate: float,
    fee: float,
    tolls: FloatArray,
    gain: FloatArray,
    value: FloatArray,
    used: FloatArray,
) -> float:
    """What the best subset is worth if a second costs `rate` and an arm `fee` more.

    The toll of a group is what the first arm beyond its limit is worth.
    """
    worth = np.empty(steps.members.shape[0])
    for g in range(tolls.shape[0]):
        size = steps.first[g + 1] - steps.first[g]
        for i in range(size):
            t = steps.members[steps.first[g] + i]
            worth[i] = steps.score[t] - rate * steps.time[t] - fee
        tolls[g] = max(largest(worth, size, steps.limit[g]), 0.0)
    back = charge(steps, fee, tolls, gain)
    walk(steps, gain, rate, 1, value, used)
    return back + float(value[0, 0])


@compiled
def meet(bracket: FloatArray) -> tuple[float, float]:
    """Where the tangents at both ends of the bracket meet, and how high.

    Each row is an end: place, height, slope. The first falls, the second rises.
    """
    x0, f0, down, x1, f1, up = (
        bracket[0, 0],
        bracket[0, 1],
        bracket[0, 2],
        bracket[1, 0],
        bracket[1, 1],
        bracket[1, 2],
    )
    x = x0 + (f1 - f0 + up * (x0 - x1)) / (down - up)
    x = min(max(x, min(x0, x1)), max(x0, x1))
    return x, f0 + down * (x - x0)


@compiled
def cheapest_fee(
    steps: Steps,
    rate: float,
    fewest: float,
    most: float,
    tolls: FloatArray,
    gain: FloatArray,
    value: FloatArray,
    used: FloatArray,
) -> tuple[float, float, float]:
    """The fee per arm that makes the bound lowest at this rate; the bound, and its seconds."""
    span = 0.0
    for t in range(steps.kind.shape[0]):
        span += abs(steps.score[t] - rate * steps.time[t])
    bracket, seconds = np.zeros((2, 3)), np.zeros(2)
    fee, bound, target = 0.0, math.inf, 0.0
    x, line = 0.0, -math.inf
    for tangent in range(_TANGENTS):
        # What is left of a limit is paid back: of `most` if arms cost a fee, of `fewest` if they
        # earn one.
        height = relax(steps, rate, x, tolls, gain, value, used) + x * target
        slope = target - used[1, 0, 0]
        if height < bound:
            fee, bound = x, height
        if tangent == 0:
            if fewest <= used[1, 0, 0] <= most:
                return fee, bound, used[0, 0, 0]
            target = most if used[1, 0, 0] > most else fewest
            slope = target - used[1, 0, 0]
        end = 0 if slope < 0.0 else 1
        bracket[end, 0], bracket[end, 1], bracket[end, 2] = x, height, slope
        seconds[end] = used[0, 0, 0]
        if tangent == 0:
            x = span if slope < 0.0 else -span
            continue
        if slope == 0.0 or height - line <= 1e-14 * span or bracket[0, 2] >= bracket[1, 2]:
            break
        x, line = meet(bracket)
    # Between both ends lies the mixture that takes exactly `target` arms.
    down, up = bracket[0, 2], bracket[1, 2]
    share = up / (up - down) if up > down else 1.0
    return fee, bound, share * seconds[0] + (1.0 - share) * seconds[1]


@compiled
def cheapest_rate(
    steps: Steps,
    room: float,
    worth: float,
    spare: float,
    fewest: float,
    most: float,
    tolls: FloatArray,
    gain: FloatArray,
    value: FloatArray,
    used: FloatArray,
) -> tuple[float, float, float, float]:
    """By how much the rate must rise for `room` seconds; the fee; the bound; the highest rise.

    Some allowed subset is known to be worth `worth` and to leave `spare` seconds. That limits the
    rise: beyond it the bound is higher than with none.
    """
    bracket, top = np.zeros((2, 3)), 0.0
    rate, fee, bound, span = 0.0, 0.0, math.inf, 0.0
    x, line = 0.0, -math.inf
    for tangent in range(_TANGENTS):
        charge, height, seconds = cheapest_fee(steps, x, fewest, most, tolls, gain, value, used)
        height += x * room
        slope = room - seconds
        if height < bound:
            rate, fee, bound = x, charge, height
        end = 0 if slope < 0.0 else 1
        bracket[end, 0], bracket[end, 1], bracket[end, 2] = x, height, slope
        if tangent == 0:
            if slope >= 0.0:
                break
            span, top = abs(height), (height - worth) / spare
            x = top
            continue
        if slope == 0.0 or height - line <= 1e-14 * span or bracket[0, 2] >= bracket[1, 2]:
            break
        x, line = meet(bracket)
    return rate, fee, bound, top


@compiled
def follow(
    steps: Steps, gain: FloatArray, rate: float, value: FloatArray, taken: BoolArray
) -> tuple[float, float, float]:
    """Mark the steps that the best subset at these prices takes; its worth, seconds and count."""
    kind, time = steps.kind, steps.time
    worth, seconds, count = 0.0, 0.0, 0.0
    t, b = 0, 0
    while t < kind.shape[0]:
        other, landing = t + 1, b
        take = -math.inf
        if kind[t] == ARM:
            landing = 0
            take = gain[t] - rate * time[t] + value[t + 1, 0]
        elif kind[t] == OPEN:
            other, landing = steps.jump[t] + 1, 1
            take = gain[t] - rate * time[t] + value[t + 1, 1]
        if take > value[other, b]:
            taken[t] = True
            worth += steps.score[t]
            seconds += time[t]
            count += 1.0 if kind[t] == ARM else 0.0
            t, b = t + 1, landing
        else:
            for skipped in range(t, other):
                taken[skipped] = False
            t = other
    return worth, seconds, count
