"""The compiled loop that plays one policy through a batch of rounds.

It calls the same compiled mathematics as the live policy, in the same order: decide, commit, learn.
"""

import math

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import FloatArray, IntArray
from coaf.bandit.compiled.confidence import draw, upper
from coaf.bandit.compiled.linear import (
    CHUNK,
    ESTIMATE,
    NUMBERS,
    PICKED,
    REWARD,
    ROWS,
    STATED,
    THETA,
    absorb,
    parts,
    score,
)
from coaf.bandit.compiled.scale_free import (
    MEAN_SQUARE,
    REFERENCE,
    absorb_free,
    centre,
    upper_free,
)
from coaf.bandit.compiled.simd import (
    Block,
    block,
    columns,
    compiled,
    fma,
    keep,
    load,
    smaller,
    splat,
    store,
    whole_lanes,
)
from coaf.bandit.compiled.threshold import pick, threshold_root
from coaf.bandit.rates.rate import robbins_monro
from coaf.bandit.rates.restarting import Eleven, Sums, one_visit_later
from coaf.worlds.codes import (
    CUT,
    EVERYTHING,
    FREE,
    INITIAL,
    L_MIN,
    MEAN_BOUND,
    MEANS,
    MEMORY,
    N_MAX,
    RENEWAL,
    RESTARTING,
    ROBBINS_MONRO,
    SIZE,
    THOMPSON,
    TRUTH,
    UPPER,
    XI,
)

_step = compiled(robbins_monro)
_one_visit_later = compiled(one_visit_later)
FRESH: Eleven = (*Sums(),)


@compiled
def fill(
    items: FloatArray, shown: npt.NDArray[np.integer], counts: IntArray, features: FloatArray
) -> None:
    """Copy the features of the items shown into lanes; the rest of the last lanes is zero."""
    d = items.shape[1]
    for j in range(shown.shape[0]):
        for a in range(counts[j]):
            for i in range(d):
                features[j * d + i, a] = items[shown[j, a], i]
        for a in range(counts[j], whole_lanes(counts[j])):
            for i in range(d):
                features[j * d + i, a] = 0.0


@compiled
def estimate(
    kind: int,
    M: Block,
    Q: Block,
    d: int,
    X: Block,
    x0: int,
    n: int,
    Z: Block,
    S: Block,
    theta: FloatArray,
    means: FloatArray,
    j: int,
) -> None:
    """The estimates that choose, into S, whatever the index; Z is scratch for centred arms."""
    dp = columns(M)
    if kind == FREE:
        centre(M, d + 1, X, x0, n, Z)
        score(M, Q, d + 1, Z, 0, n, S)
        upper_free(M, d + 1, Z, n, S)
        return
    if kind == TRUTH:
        for a in range(n):
            S[dp + ESTIMATE, a] = means[j, a]
        return
    if kind == UPPER:
        score(M, Q, d, X, x0, n, S)
        upper(M, Q, d, X, x0, n, S)
        return
    for a in range(n):
        total = 0.0
        for i in range(d):
            total += theta[i] * X[x0 + i, a]
        S[dp + ESTIMATE, a] = total


@compiled
def run(
    learner: FloatArray,
    arena: FloatArray,
    index: int,
    kind: int,
    rates: FloatArray,
    noise: FloatArray,
    d: int,
    features: FloatArray,
    counts: IntArray,
    base: FloatArray,
    setup: FloatArray,
    costs: FloatArray,
    means: FloatArray,
    rewards: FloatArray,
    trace: FloatArray,
) -> None:
    """Play a batch; `trace` gets the rate used, the seconds and the true mean reward of each."""
    M, Q, Z, S, E = parts(learner, arena, d + 1 if index == FREE else d)
    X, C = block(features), block(costs)
    dp, lanes = columns(M), costs.shape[1]
    rate, floor, spent, earned = rates[INITIAL], 0.0, 0.0, 0.0
    most, least = 1.0, math.inf
    sums = FRESH
    ones, nothing = np.ones((1, lanes)), np.zeros(0)
    unit = block(ones)
    size = int(rates[SIZE])
    memory = np.empty(size * lanes if kind == MEMORY else 0)
    memory_costs = np.empty((1, size * lanes if kind == MEMORY else 0))
    for j in range(counts.shape[0]):
        n, x0 = counts[j], j * d
        theta = nothing
        blind = index == FREE and M[2 * dp + STATED, MEAN_SQUARE] == 0.0
        if index == THOMPSON:
            theta = draw(M, Q, noise[j])
        elif index == MEANS:
            theta = learner[2 * dp + THETA, :d]
        if kind == MEMORY and j > 0:
            first = max(j - size, 0)
            position = 0
            for t in range(first, j):
                estimate(index, M, Q, d, X, t * d, counts[t], Z, S, theta, means, t)
                for a in range(counts[t]):
                    memory[position] = 0.0 if blind else S[dp + ESTIMATE, a]
                    memory_costs[0, position] = costs[t, a]
                    position += 1
            rate = threshold_root(
                memory, counts[first:j], base[first:j], setup[first:j], memory_costs, rates[INITIAL]
            )
        estimate(index, M, Q, d, X, x0, n, Z, S, theta, means, j)
        if blind:
            count, seconds, reward = pick(
                n, 0.0, base[j], setup[j], C, j, 0, S, dp + ESTIMATE, dp + PICKED
            )
        elif kind == CUT:
            count, seconds, reward = pick(
                n, rate, base[j], 0.0, unit, 0, 0, S, dp + ESTIMATE, dp + PICKED
            )
        elif kind == EVERYTHING:
            count = n
            for a in range(n):
                S[dp + PICKED, a] = float(a)
        else:
            count, seconds, reward = pick(
                n, rate, base[j], setup[j], C, j, 0, S, dp + ESTIMATE, dp + PICKED
            )
        if not blind and (kind == CUT or kind == EVERYTHING):
            seconds, reward = 0.0, 0.0
            for i in range(count):
                seconds += costs[j, int(S[dp + PICKED, i])]
            seconds += base[j] + (setup[j] if count > 0 else 0.0)
        mean = 0.0
        for i in range(count):
            mean += means[j, int(S[dp + PICKED, i])]
        trace[j, 0], trace[j, 1], trace[j, 2] = rate, seconds, mean
        if blind:
            pass  # what it seemed to bring is no number
        elif kind == ROBBINS_MONRO:
            floor += base[j]
            most = rates[N_MAX] if rates[N_MAX] > 0.0 else max(most, float(n))
            least = rates[L_MIN] if rates[L_MIN] > 0.0 else min(least, base[j])
            bound = most * rates[MEAN_BOUND] / least  # infinite where no bound was given
            rate = _step(rate, seconds * rate - reward, floor, rates[XI], bound)
        elif kind == RENEWAL:
            spent += seconds
            earned += reward
            rate = earned / spent
        elif kind == RESTARTING:
            sums = _one_visit_later(sums, reward, seconds)
            rate = sums[0] / sums[1]
        if index == FREE:
            _learn_free(M, Q, d + 1, X, x0, n, count, rewards, j, Z, S, E)
        elif index != TRUTH:
            _learn(M, Q, d, X, x0, n, count, rewards, j, S, E, index)
    keep(ones)


@compiled
def _learn(
    M: Block,
    Q: Block,
    d: int,
    X: Block,
    x0: int,
    n: int,
    count: int,
    rewards: FloatArray,
    j: int,
    S: Block,
    E: Block,
    index: int,
) -> None:
    """Learn every pick of the round, CHUNK at a time; a first chunk reuses what scoring found."""
    dp = columns(M)
    first = 0
    while first < count:
        size = min(CHUNK, count - first)
        if first > 0 or index != UPPER:
            score(M, Q, d, X, x0, n, S)
        for i in range(size):
            S[dp + PICKED, i] = S[dp + PICKED, first + i]
            S[dp + REWARD, i] = rewards[j, int(S[dp + PICKED, i])]
        absorb(M, Q, d, X, x0, size, S, E)
        first += size


@compiled
def _learn_free(
    M: Block,
    Q: Block,
    D: int,
    F: Block,
    f0: int,
    n: int,
    count: int,
    rewards: FloatArray,
    j: int,
    Z: Block,
    S: Block,
    E: Block,
) -> None:
    """The same for a learner without units, whose arms lie centred in Z."""
    dp = columns(M)
    if count > 0 and M[2 * dp + NUMBERS, ROWS] == 0.0:
        for i in range(D - 1):
            M[2 * dp + REFERENCE, i] = F[f0 + i, int(S[dp + PICKED, 0])]
        centre(M, D, F, f0, n, Z)
    first = 0
    while first < count:
        size = min(CHUNK, count - first)
        for i in range(size):
            S[dp + PICKED, i] = S[dp + PICKED, first + i]
            S[dp + REWARD, i] = rewards[j, int(S[dp + PICKED, i])]
        absorb_free(M, Q, D, Z, n, size, S, E, first == 0)
        first += size


@compiled
def best_gaps(
    means: FloatArray,
    counts: IntArray,
    base: FloatArray,
    setup: FloatArray,
    costs: FloatArray,
    rate: float,
) -> tuple[FloatArray, FloatArray]:
    """The smallest gap of every round under its true means, and the seconds of that choice."""
    rounds, lanes = means.shape
    work = np.empty((2, lanes + 1))
    S, C = block(work), block(costs)
    gaps, times = np.empty(rounds), np.empty(rounds)
    for j in range(rounds):
        for a in range(counts[j]):
            S[0, a] = means[j, a]
        _, seconds, reward = pick(counts[j], rate, base[j], setup[j], C, j, 0, S, 0, 1)
        gaps[j], times[j] = seconds * rate - reward, seconds
    keep(work)
    return gaps, times


@compiled
def first_beyond(features: FloatArray, counts: IntArray, d: int, bound: float) -> int:
    """The first round in which an arm's norm is not within `bound`, or -1."""
    X, work = block(features), np.empty((1, 8))
    S, none = block(work), splat(0.0)
    worst = none  # the negative of the largest square so far, lane by lane: one test at the end
    for j in range(counts.shape[0]):
        c = 0
        while c < counts[j]:
            squares = none
            for i in range(d):
                x = load(X, j * d + i, c)
                squares = fma(x, x, squares)
            worst = smaller(fma(splat(-1.0), squares, none), worst)
            c += 8
    store(S, 0, 0, worst)
    within = True
    for a in range(8):
        within = within and -S[0, a] <= bound * bound
    keep(work)
    if within:
        return -1
    for j in range(counts.shape[0]):
        for a in range(counts[j]):
            square = 0.0
            for i in range(d):
                square += X[j * d + i, a] ** 2
            if not square <= bound * bound:
                return j
    return -1
