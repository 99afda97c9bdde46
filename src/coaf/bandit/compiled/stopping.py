"""The compiled Bellman recursions of taking arms one by one, free to stop after each."""

import math

import numpy as np

from coaf.bandit.arrays import BoolArray, FloatArray, IntArray
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
    kept on a grid of four deviations either way, and beyond it is what it is at the end. A step is
    as long wherever it begins, so to look ahead is to convolve: `taps` are the weights of nodes,
    each shared by the two places of the grid that it lies between.
    """
    n, size, beyond = mean.shape[0], 65, 34  # no step is longer than half the grid
    left = np.empty(n + 1)  # the variance of b that is left after each reward
    left[0] = shared
    for k in range(n):
        left[k + 1] = left[k] * noise[k] / (left[k] + noise[k])
    span = 4.0 * math.sqrt(shared) + 1e-12
    h = 2.0 * span / (size - 1)
    value, spent = np.zeros(size + 2 * beyond), np.zeros(size + 2 * beyond)
    ahead, time_ahead, taps = np.empty(size), np.empty(size), np.empty(2 * beyond + 1)
    for k in range(n - 1, -1, -1):
        step = math.sqrt(max(left[max(k - lag, 0)] - left[max(k + 1 - lag, 0)], 0.0))
        taps[:], first, last = 0.0, 2 * beyond, 0
        for q in range(nodes.shape[0]):
            at = step * nodes[q] / h
            i = math.floor(at)
            taps[beyond + i] += weights[q] * (1.0 - (at - i))
            taps[beyond + i + 1] += weights[q] * (at - i)
            first, last = min(first, beyond + i), max(last, beyond + i + 1)
        value[:beyond], value[beyond + size :] = value[beyond], value[beyond + size - 1]
        spent[:beyond], spent[beyond + size :] = spent[beyond], spent[beyond + size - 1]
        ahead[:], time_ahead[:] = 0.0, 0.0
        for t in range(first, last + 1):
            for g in range(size):
                ahead[g] += taps[t] * value[g + t]
                time_ahead[g] += taps[t] * spent[g + t]
        for g in range(size):
            here = parts[k] * (mean[k] - span + g * h) - rate * each[k] + ahead[g]
            value[beyond + g] = here if here > 0.0 else 0.0
            spent[beyond + g] = each[k] + time_ahead[g] if here > 0.0 else 0.0
    middle = beyond + (size - 1) // 2
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


@compiled
def hopes(
    rate: float,
    coins: bool,
    mean: FloatArray,
    rest: FloatArray,
    parts: FloatArray,
    each: FloatArray,
    counts: IntArray,
    shared: FloatArray,
    setup: FloatArray,
    nodes: FloatArray,
    weights: FloatArray,
    found: BoolArray,
) -> None:
    """Which rounds might bring more than rate·setup beyond their arms' time, were b known.

    Arms bring rewards of 0 or 1 with logits mean + b + e (`coins`), or parts·(mean + b): b has
    variance `shared`, e `rest`. For coins b has these nodes, in order, and weights.
    """
    arm = 0
    for j in range(counts.shape[0]):
        last, deviation = arm + counts[j], math.sqrt(shared[j])
        floor, total = rate * setup[j], 0.0
        while arm < last and not total > floor:
            cost = rate * each[arm]
            if coins:
                flat = math.sqrt(1.0 + math.pi / 8.0 * rest[arm])
                for q in range(nodes.shape[0] - 1, -1, -1):
                    eta = (mean[arm] + deviation * nodes[q]) / flat
                    gain = parts[arm] * (0.5 + 0.5 * math.tanh(0.5 * eta)) - cost
                    if gain <= 0.0:  # as it is at all lower ones
                        break
                    total += weights[q] * gain
            else:
                middle, far = parts[arm] * mean[arm] - cost, parts[arm] * deviation
                if far > 0.0:
                    z = middle / far
                    total += 0.5 * middle * math.erfc(-z / math.sqrt(2.0))
                    total += far * math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
                elif middle > 0.0:
                    total += middle
            arm += 1
        found[j], arm = total > floor, last
