"""The compiled choice by threshold, and the steps of the rate."""

import math
from typing import Any

import numpy as np

from coaf.bandit.arrays import BoolArray, FloatArray, IntArray
from coaf.bandit.compiled.simd import Block, block, compiled, keep
from coaf.bandit.rates.dinkelbach import STEPS, TOLERANCE


@compiled
def pick(
    n: int,
    rate: float,
    base: float,
    setup: float,
    C: Block,
    row: int,
    c0: int,
    S: Block,
    estimate: int,
    picked: int,
) -> tuple[int, float, float]:
    """The subset of smallest gap for t + setup·1{A≠∅} + Σ c_i: its size, seconds and reward.

    Estimates are read from row `estimate` of S, and the arms picked are written to row `picked`;
    the costs c_i stand in row `row` of C from column c0. An arm is worth its time if μ_i > Γ c_i.
    With a negative rate the set-up itself has a negative price, so a single arm may pay although
    none does alone.
    """
    seconds, reward, count = 0.0, 0.0, 0
    best, favourite = -math.inf, -1
    for i in range(n):  # without branches: whether an arm pays is a coin the machine cannot guess
        mu, cost = S[estimate, i], C[row, c0 + i]
        gain = mu - rate * cost
        pays = gain > 0.0
        S[picked, count] = float(i)
        count += pays
        seconds += cost if pays else 0.0
        reward += mu if pays else 0.0
        favourite = i if gain > best else favourite
        best = max(best, gain)
    if count == 0 and favourite >= 0 and best > rate * setup:
        S[picked, 0] = float(favourite)
        count, seconds, reward = 1, C[row, c0 + favourite], S[estimate, favourite]
    elif reward - rate * seconds <= rate * setup:
        count, seconds, reward = 0, 0.0, 0.0
    seconds += base + (setup if count > 0 else 0.0)
    return count, seconds, reward


@compiled
def pick_arms(
    estimates: FloatArray, rate: float, base: float, setup: float, each: Any
) -> tuple[BoolArray, float, float]:
    """`pick` for a live round: which arms, their seconds, their reward; `each` may be a number."""
    n = estimates.shape[0]
    work = np.empty((3, n + 1))
    work[0, :n] = estimates
    work[2, :n] = each
    S = block(work)
    count, seconds, reward = pick(n, rate, base, setup, S, 2, 0, S, 0, 1)
    chosen = np.zeros(n, dtype=np.bool_)
    for j in range(count):
        chosen[int(S[1, j])] = True
    keep(work)
    return chosen, seconds, reward


@compiled
def threshold_root(
    estimates: FloatArray,
    counts: IntArray,
    base: FloatArray,
    setup: FloatArray,
    costs: FloatArray,
    rate: float,
) -> float:
    """`dinkelbach` over rounds whose arms follow one another in `estimates` and `costs`."""
    most = 0
    for j in range(counts.shape[0]):
        most = max(most, counts[j])
    work = np.empty((2, most + 1))
    S, C = block(work), block(costs)
    for _ in range(STEPS):
        total_reward, total_seconds, first = 0.0, 0.0, 0
        for j in range(counts.shape[0]):
            for i in range(counts[j]):
                S[0, i] = estimates[first + i]
            _, seconds, reward = pick(counts[j], rate, base[j], setup[j], C, 0, first, S, 0, 1)
            total_reward += reward
            total_seconds += seconds
            first += counts[j]
        previous, rate = rate, total_reward / total_seconds
        if abs(rate - previous) <= TOLERANCE * max(abs(rate), abs(previous)):
            break
    keep(work)
    return rate
