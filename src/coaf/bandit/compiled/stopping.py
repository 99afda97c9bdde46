"""The compiled Bellman recursions of taking arms one by one, free to stop after each."""

import math

import numpy as np

from coaf.bandit.arrays import FloatArray, IntArray
from coaf.bandit.compiled.simd import compiled


@compiled
def coin_chances(
    p: FloatArray, weights: FloatArray, lag: int, gain: FloatArray, seen: FloatArray
) -> None:
    """What counting successes tells: for arms taken in order, rewards 0 or 1.

    p[k, q] is the chance of arm k if what the arms share has its q-th value, of weight weights[q].
    gain[k, s] becomes the chance of arm k given s successes among the max(k − lag, 0) arms whose
    rewards are in; seen[k, s] the chance of the arm whose reward comes in next.
    """
    n, nodes = p.shape
    w = np.zeros((n + 1, nodes))
    w[0, :] = weights
    known = 0  # how many rewards `w` has counted
    for k in range(n):
        if k - lag > known:
            for s in range(known, -1, -1):  # from above, so that w can be overwritten
                for q in range(nodes):
                    w[s + 1, q] += w[s, q] * p[known, q]
                    w[s, q] *= 1.0 - p[known, q]
            known += 1
        for s in range(known + 1):
            total, mine, other = 0.0, 0.0, 0.0
            for q in range(nodes):
                total += w[s, q]
                mine += w[s, q] * p[k, q]
                other += w[s, q] * p[known, q]
            gain[k, s] = mine / total if total > 0.0 else 0.0
            seen[k, s] = other / total if total > 0.0 else 0.0


@compiled
def coin_stop(
    rate: float, gain: FloatArray, seen: FloatArray, each: FloatArray, lag: int
) -> tuple[float, float]:
    """The value of going on, and the seconds expected to be spent then; gain may be scaled.

    V(k, s) = max(0, gain[k, s] − rate·each[k] + E V(k + 1, s')), where s' counts one more reward
    once more than `lag` are due.
    """
    n = gain.shape[0]
    value, spent = np.zeros(n + 2), np.zeros(n + 2)
    for k in range(n - 1, -1, -1):
        known = max(k - lag, 0)
        moves = k + 1 - lag > known  # whether a reward comes in before the next decision
        for s in range(known + 1):  # s' ≥ s: upwards, s + 1 is still the next stage's
            b = seen[k, s] if moves else 0.0
            ahead = b * value[s + 1] + (1.0 - b) * value[s]
            here = gain[k, s] - rate * each[k] + ahead
            if here > 0.0:
                spent[s] = each[k] + b * spent[s + 1] + (1.0 - b) * spent[s]
                value[s] = here
            else:
                value[s] = spent[s] = 0.0
    return value[0], spent[0]


@compiled
def normal_stop(
    rate: float,
    mean: FloatArray,
    noise: FloatArray,
    parts: FloatArray,
    shared: float,
    each: FloatArray,
    lag: int,
    nodes: FloatArray,
    weights: FloatArray,
) -> tuple[float, float]:
    """As `coin_stop`, for arms that bring parts·(mean + b + e): b has variance `shared`, e `noise`.

    The state is the posterior mean of b, a Gaussian walk whose steps are known beforehand; it is
    kept on a grid of four deviations either way.
    """
    n, size = mean.shape[0], 65
    left = np.empty(n + 1)  # the variance of b that is left after each reward
    left[0] = shared
    for k in range(n):
        left[k + 1] = left[k] * noise[k] / (left[k] + noise[k])
    span = 4.0 * math.sqrt(shared) + 1e-12
    h = 2.0 * span / (size - 1)
    value, spent = np.zeros(size), np.zeros(size)
    for k in range(n - 1, -1, -1):
        step = math.sqrt(max(left[max(k - lag, 0)] - left[max(k + 1 - lag, 0)], 0.0))
        v, t = np.zeros(size), np.zeros(size)
        for g in range(size):
            b = -span + g * h
            ahead, time_ahead = 0.0, 0.0
            for q in range(nodes.shape[0]):
                at = min(max((b + step * nodes[q] + span) / h, 0.0), size - 1.000001)
                i = int(at)
                f = at - i
                ahead += weights[q] * ((1.0 - f) * value[i] + f * value[i + 1])
                time_ahead += weights[q] * ((1.0 - f) * spent[i] + f * spent[i + 1])
            gain = parts[k] * (mean[k] + b)
            here = gain - rate * each[k] + ahead
            if here > 0.0:
                v[g], t[g] = here, each[k] + time_ahead
        value, spent = v, t
    middle = (size - 1) // 2
    return value[middle], spent[middle]


@compiled
def coin_rounds(
    chance: FloatArray,
    weights: FloatArray,
    counts: IntArray,
    lag: int,
    gain: FloatArray,
    seen: FloatArray,
) -> None:
    """`coin_chances` of rounds whose arms follow one another."""
    first = 0
    for j in range(counts.shape[0]):
        last = first + counts[j]
        coin_chances(chance[first:last], weights, lag, gain[first:last], seen[first:last])
        first = last


@compiled
def coin_worth(
    rate: float,
    gain: FloatArray,
    seen: FloatArray,
    counts: IntArray,
    each: FloatArray,
    lag: int,
    values: FloatArray,
    seconds: FloatArray,
) -> None:
    """The value of each round's arms at a rate, and the seconds expected to be spent on them."""
    first = 0
    for j in range(counts.shape[0]):
        last = first + counts[j]
        values[j], seconds[j] = coin_stop(
            rate, gain[first:last], seen[first:last], each[first:last], lag
        )
        first = last


@compiled
def normal_worth(
    rate: float,
    mean: FloatArray,
    noise: FloatArray,
    parts: FloatArray,
    shared: FloatArray,
    counts: IntArray,
    each: FloatArray,
    lag: int,
    nodes: FloatArray,
    weights: FloatArray,
    values: FloatArray,
    seconds: FloatArray,
) -> None:
    """As `coin_worth`, for normal rewards."""
    first = 0
    for j in range(counts.shape[0]):
        last = first + counts[j]
        values[j], seconds[j] = normal_stop(
            rate,
            mean[first:last],
            noise[first:last],
            parts[first:last],
            shared[j],
            each[first:last],
            lag,
            nodes,
            weights,
        )
        first = last
