"""Compiled checks of what comes in with every round: the first thing wrong, or -1."""

import math

from coaf.bandit.arrays import BoolArray, FloatArray, IntArray
from coaf.bandit.compiled.simd import compiled

FINE, NO_SUCH_ARM, NOT_EXECUTED, TWICE, NOT_FINITE = range(5)


@compiled
def first_bad(rows: FloatArray, bound: float, rewards: FloatArray) -> tuple[int, int]:
    """The first row whose norm is not within `bound`, and the first reward not finite; or -1."""
    row, reward = -1, -1
    for a in range(rows.shape[0] - 1, -1, -1):
        total = 0.0
        for i in range(rows.shape[1]):
            total += rows[a, i] * rows[a, i]
        if not total <= bound * bound:
            row = a
    for a in range(rewards.shape[0] - 1, -1, -1):
        if not math.isfinite(rewards[a]):
            reward = a
    return row, reward


@compiled
def all_within(values: FloatArray, bound: float) -> bool:
    """Whether no entry is beyond ±bound, or no number."""
    fine = True
    for i in range(values.shape[0]):
        fine &= abs(values[i]) <= bound
    return fine


@compiled
def first_wrong(
    arms: IntArray, rewards: FloatArray, done: BoolArray, learned: BoolArray
) -> tuple[int, int]:
    """The first position where a reward cannot be learned, and why. `learned` ends as it was."""
    position, reason, marked = -1, FINE, 0
    for k in range(arms.shape[0]):
        arm = arms[k]
        if arm < 0 or arm >= done.shape[0]:
            reason = NO_SUCH_ARM
        elif not done[arm]:
            reason = NOT_EXECUTED
        elif learned[arm]:
            reason = TWICE
        elif not math.isfinite(rewards[k]):
            reason = NOT_FINITE
        if reason != FINE:
            position = k
            break
        learned[arm] = True  # so that a second reward in this very call is seen
        marked = k + 1
    for k in range(marked):
        learned[arms[k]] = False
    return position, reason
