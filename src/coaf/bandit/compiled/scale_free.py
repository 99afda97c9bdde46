"""The compiled linear learner that needs no units: what it keeps, scores and learns.

It is ridge regression on x̃ = (x − r, 1), with r the first row learned. The constant is free; the
ridge of feature i is RIDGE·(its range in the rows learned)², so that θ_i·range has no unit but that
of rewards. When a range grows, so does its ridge: by a rank-one step, as if a row had been learned.
A feature that has not varied yet is left out of all algebra (its rows of V and P are zero).

The learner is that of `linear.py` for D = d + 1 coefficients, the constant last, and has besides

- in NUMBERS: Σ y² and the number of the rewards that are neither 0 nor extreme;
- STATED: the mean of y² over all rows, a cap on estimates, and by how much the rewards of arms
  whose mean was estimated beyond the cap exceed it, how many these are, a factor on widths, and
  what was last found of the extremes;
- rows 2dp + 4 to 2dp + 6: r, and the least and the largest x − r;
- row 2dp + 7: Σ x̃ y without the extremes;
- at the end, the extremes (see `extremes.py`).
"""

import math

import numpy as np

from coaf.bandit.arrays import LARGEST, FloatArray
from coaf.bandit.compiled.extremes import (
    EXTREMES,
    MARKS,
    REST,
    add_rest,
    any_limited,
    count_rest,
    enlist,
    extremes_at,
    judge,
    nothing_stands_out,
    recount,
    sum_of_squares,
    take_back,
)
from coaf.bandit.compiled.guards import first_bad
from coaf.bandit.compiled.linear import (
    CHUNK,
    ESTIMATE,
    LOSS,
    MEAN,
    NUMBERS,
    PENDING,
    PICKED,
    REFRESH,
    REWARD,
    ROWS,
    SINCE,
    SMALL,
    SQUARE,
    STATED,
    THETA,
    WAITING,
    eliminate,
    fit,
    fold,
    parts,
    score,
)
from coaf.bandit.compiled.simd import (
    Block,
    block,
    columns,
    compiled,
    fma,
    load,
    splat,
    store,
    whole_lanes,
)

RIDGE = 1.0 / 32.0  # of a feature with range 1, in rows
FEW = 4.0  # rows' worth of doubt that the noise of an arm is that of all

MEAN_SQUARE, CAP, EXCESS, BOUNDED, WIDTH = range(5)  # columns of STATED
REFERENCE, LOW, HIGH = 4, 5, 6  # rows from 2dp on


@compiled
def centre(M: Block, D: int, F: Block, f0: int, n: int, X: Block) -> None:
    """x̃ of n arms that lie in lanes of F from row f0, into X."""
    dp, lanes = columns(M), whole_lanes(n)
    for i in range(D - 1):
        c, r = 0, splat(-M[2 * dp + REFERENCE, i])
        while c < lanes:
            store(X, i, c, fma(r, splat(1.0), load(F, f0 + i, c)))
            c += 8
    for a in range(lanes):
        X[D - 1, a] = 1.0 if a < n else 0.0
    for i in range(D - 1):
        for a in range(n, lanes):
            X[i, a] = 0.0


@compiled
def centre_rows(M: Block, D: int, rows: FloatArray, first: int, n: int, X: Block) -> None:
    """x̃ of n arms, one a row of `rows` from row `first`, into lanes of X."""
    dp, lanes = columns(M), whole_lanes(n)
    for i in range(D - 1):
        r = M[2 * dp + REFERENCE, i]
        for a in range(n):
            X[i, a] = rows[first + a, i] - r
    for i in range(D):
        for a in range(n, lanes):
            X[i, a] = 0.0
    for a in range(n):
        X[D - 1, a] = 1.0


@compiled
def unvaried(M: Block, D: int) -> bool:
    """Whether some feature has not varied yet."""
    dp, found = columns(M), False
    for i in range(D - 1):
        found |= M[2 * dp + LOW, i] == M[2 * dp + HIGH, i]
    return found


@compiled
def news(M: Block, D: int, X: Block, a: int) -> float:
    """How many features of arm a differ for the first time from what all rows had."""
    dp, count = columns(M), 0.0
    for i in range(D - 1):
        if M[2 * dp + LOW, i] == M[2 * dp + HIGH, i] and X[i, a] != 0.0:
            count += 1.0
    return count


@compiled
def width(rows: float, coefficients: int, q: float, noise2: float, size2: float) -> float:
    """How far above its estimate the mean reward of an arm may be.

    q = x̃ᵀ V⁻¹ x̃ is one over the number of rows that speak for the arm. The standard error is √q
    times the noise, which is that of all rows, σ̂², but for an arm with few rows the size of
    rewards, ω² (their mean square): nobody knows yet how noisy it is. However little is known,
    it is not beyond ω. The factor in front grows only for arms that were left behind:
    rows·q / coefficients is 1 for the average arm learned.
    """
    few = FEW * q
    error2 = q * (noise2 + few * size2) / ((1.0 + q) * (1.0 + few))
    return math.sqrt((1.0 + math.log(1.0 + rows * q / coefficients)) * error2)


@compiled
def upper_free(M: Block, D: int, X: Block, n: int, S: Block) -> None:
    """Estimates of n arms into S, after `score`.

    While no reward but 0 was learned nothing is known of their size, and the estimate says how
    little is known of the arm, from 0 to 1.
    """
    dp = columns(M)
    rows, size2 = M[2 * dp + NUMBERS, ROWS], M[2 * dp + STATED, MEAN_SQUARE]
    noise2 = max(M[2 * dp + NUMBERS, LOSS], 0.0) / rows if rows > 0.0 else 0.0
    cap, factor, new = M[2 * dp + STATED, CAP], M[2 * dp + STATED, WIDTH], unvaried(M, D)
    for a in range(n):
        q = max(S[dp + SQUARE, a], 0.0)
        if new:
            q += news(M, D, X, a) / RIDGE
        if size2 > 0.0:
            top = S[dp + MEAN, a] + factor * width(rows, D, q, noise2, size2)
            S[dp + ESTIMATE, a] = min(top, cap)
        else:
            S[dp + ESTIMATE, a] = math.sqrt(q / (1.0 + q)) if rows > 0.0 else 1.0


@compiled
def derive_free(M: Block, D: int) -> None:
    """Derive P and θ̄ from V and b; scaled to a unit diagonal, so that units make no difference."""
    dp = columns(M)
    scale = np.ones(D)
    for i in range(D):
        if M[i, i] > 0.0:
            scale[i] = math.sqrt(M[i, i])
    V = np.eye(D)
    for i in range(D):
        for k in range(i):
            V[i, k] = V[k, i] = M[i, k] / (scale[i] * scale[k])
    inverse = np.linalg.inv(V)
    for i in range(D):
        for k in range(D):
            if M[i, i] > 0.0 and M[k, k] > 0.0:
                both = 0.5 * (inverse[i, k] + inverse[k, i])
                M[dp + i, k] = both / (scale[i] * scale[k])
    fit(M, D)
    M[2 * dp + NUMBERS, SINCE] = 0.0


@compiled
def beyond(M: Block, D: int, X: Block, n: int) -> bool:
    """Whether one of n arms, picked or not, lies outside of what was learned so far.

    Mostly none does, and to see that takes a fraction of the time that `widen` does.
    """
    dp, lanes, found = columns(M), whole_lanes(n), 0
    for i in range(D - 1):
        low, high = M[2 * dp + LOW, i], M[2 * dp + HIGH, i]
        for a in range(lanes):  # behind the last arm are zeros, which were seen with the first row
            found |= int(X[i, a] < low) | int(X[i, a] > high)
    return found != 0


@compiled
def widen(M: Block, Q: Block, D: int, X: Block, count: int, S: Block, E: Block) -> bool:
    """Let ranges and ridges take in the arms picked; whether anything changed."""
    dp, changed = columns(M), False
    for i in range(D - 1):
        low = before_low = M[2 * dp + LOW, i]
        high = before_high = M[2 * dp + HIGH, i]
        for j in range(count):
            x = X[i, int(S[dp + PICKED, j])]
            low, high = min(low, x), max(high, x)
        if low == before_low and high == before_high:
            continue
        if M[2 * dp + NUMBERS, WAITING] > 0.0:
            fold(M, Q, D)
        changed = True
        M[2 * dp + LOW, i], M[2 * dp + HIGH, i] = low, high
        old, new = before_high - before_low, high - low
        if old == 0.0:  # nothing learned so far speaks of it
            M[i, i] = RIDGE * new * new
            M[dp + i, i] = 1.0 / M[i, i]
            continue
        more = RIDGE * (new - old) * (new + old)
        part = more / (1.0 + more * M[dp + i, i])
        theta = M[2 * dp + THETA, i]
        M[i, i] += more
        M[2 * dp + NUMBERS, LOSS] += part * theta * theta
        for k in range(D):
            E[0, k] = M[dp + i, k]
        for k in range(D):
            w = E[0, k]
            M[2 * dp + THETA, k] -= part * theta * w
            for t in range(D):
                M[dp + k, t] -= part * w * E[0, t]
    return changed


@compiled
def absorb_free(
    M: Block, Q: Block, D: int, X: Block, n: int, count: int, S: Block, E: Block, scored: bool
) -> None:
    """Learn the rewards of the `count` arms picked in S, at most CHUNK, of n that lie in X.

    `scored` says that S still holds what `score` found. Before the first row is learned the
    reference must be that row, and it the first pick.
    """
    dp, first, changed, enlisted = columns(M), 0, False, False
    if M[2 * dp + NUMBERS, ROWS] == 0.0:  # x̃ = (0, 1), and all is known that can be: its reward
        enlist(M, D, X, 0, S)  # an extreme, if it is not 0
        judge(M, D, S)
        M[D - 1, D - 1] = M[dp + D - 1, D - 1] = 1.0
        M[2 * dp, D - 1] = M[2 * dp + THETA, D - 1] = S[dp + REWARD, 0]
        M[2 * dp + NUMBERS, ROWS] = 1.0
        first, scored = 1, False
        for j in range(1, count):
            S[dp + PICKED, j - 1] = S[dp + PICKED, j]
            S[dp + REWARD, j - 1] = S[dp + REWARD, j]
    count -= first
    if count > 0:
        if (beyond(M, D, X, n) and widen(M, Q, D, X, count, S, E)) or not scored:
            score(M, Q, D, X, 0, n, S)
        for j in range(count):
            if S[dp + MEAN, int(S[dp + PICKED, j])] > M[2 * dp + STATED, CAP]:
                M[2 * dp + STATED, EXCESS] += S[dp + REWARD, j] - M[2 * dp + STATED, CAP]
                M[2 * dp + STATED, BOUNDED] += 1.0
            changed |= enlist(M, D, X, j, S)
            enlisted |= S[dp + ESTIMATE, j] == 0.0
        if enlisted or not nothing_stands_out(M):
            changed |= judge(M, D, S)
        waiting = int(M[2 * dp + NUMBERS, WAITING])
        eliminate(M, Q, D, X, 0, count, S, E)
        add_rest(M, Q, waiting, count, S)
        if D <= SMALL or M[2 * dp + NUMBERS, WAITING] > PENDING:
            fold(M, Q, D)
        if changed:
            recount(M, Q, D)
        if M[2 * dp + NUMBERS, SINCE] >= max(REFRESH, 8 * D):
            fold(M, Q, D)
            derive_free(M, D)
    M[2 * dp + STATED, MEAN_SQUARE] = sum_of_squares(M) / M[2 * dp + NUMBERS, ROWS]


@compiled
def learn_rows_free(
    learner: FloatArray, arena: FloatArray, rows: FloatArray, rewards: FloatArray
) -> tuple[int, int, bool]:
    """Learn any number of rows, some at a time, unless one is no number or too large.

    Returns the first such row, the first such reward, and whether a reward counts for less than
    it is.
    """
    row, reward = first_bad(rows, LARGEST, rewards)
    for j in range(rewards.shape[0] - 1, -1, -1):
        if not abs(rewards[j]) <= LARGEST:
            reward = j
    if row >= 0 or reward >= 0 or rows.shape[0] == 0:
        return row, reward, False
    D = rows.shape[1] + 1
    M, Q, X, S, E = parts(learner, arena, D)
    dp = columns(M)
    if M[2 * dp + NUMBERS, ROWS] == 0.0:
        for i in range(D - 1):
            M[2 * dp + REFERENCE, i] = rows[0, i]
    chunk = min(CHUNK, columns(X))
    for first in range(0, rows.shape[0], chunk):
        count = min(chunk, rows.shape[0] - first)
        centre_rows(M, D, rows, first, count, X)
        for j in range(count):
            S[dp + PICKED, j] = float(j)
            S[dp + REWARD, j] = rewards[first + j]
        absorb_free(M, Q, D, X, count, count, S, E, False)
    return -1, -1, any_limited(M, D)


@compiled
def upper_rows_free(
    learner: FloatArray, arena: FloatArray, rows: FloatArray
) -> tuple[FloatArray, int]:
    """`upper_free` for arms that lie in rows, and the first of them that is not finite, or -1."""
    n, D = rows.shape[0], rows.shape[1] + 1
    bad, _ = first_bad(rows, LARGEST, np.empty(0))
    result = np.empty(n)
    if bad < 0:
        M, Q, X, S, _ = parts(learner, arena, D)
        dp = columns(M)
        centre_rows(M, D, rows, 0, n, X)
        score(M, Q, D, X, 0, n, S)
        upper_free(M, D, X, n, S)
        for a in range(n):
            result[a] = S[dp + ESTIMATE, a]
    return result, bad


@compiled
def widths_free(
    learner: FloatArray, arena: FloatArray, rows: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """How far `upper_free` is above the means, uncapped, and √q, for arms that lie in rows."""
    n, D = rows.shape[0], rows.shape[1] + 1
    M, Q, X, S, _ = parts(learner, arena, D)
    dp = columns(M)
    centre_rows(M, D, rows, 0, n, X)
    score(M, Q, D, X, 0, n, S)
    seen, size2 = M[2 * dp + NUMBERS, ROWS], M[2 * dp + STATED, MEAN_SQUARE]
    noise2 = max(M[2 * dp + NUMBERS, LOSS], 0.0) / max(seen, 1.0)
    widths, errors = np.ones(n), np.empty(n)
    for a in range(n):
        q = max(S[dp + SQUARE, a], 0.0) + news(M, D, X, a) / RIDGE
        if seen == 0.0:
            q += 1.0
        elif size2 > 0.0:
            widths[a] = M[2 * dp + STATED, WIDTH] * width(seen, D, q, noise2, size2)
        else:
            widths[a] = math.sqrt(q / (1.0 + q))
        errors[a] = math.sqrt(q)
    return widths, errors


@compiled
def derive_all(learner: FloatArray, arena: FloatArray, D: int) -> None:
    """`derive_free`, `judge` and `recount` for a learner's array in which no rows wait."""
    M, Q, _, S, _ = parts(learner, arena, D)
    dp = columns(M)
    derive_free(M, D)
    judge(M, D, S)
    recount(M, Q, D)
    M[2 * dp + STATED, MEAN_SQUARE] = sum_of_squares(M) / M[2 * dp + NUMBERS, ROWS]


@compiled
def draw_free(learner: FloatArray, D: int, noise: FloatArray) -> FloatArray:
    """The coefficients u of one draw: u·x̃ has mean 0 and variance x̃ᵀ V⁻¹ x̃, jointly.

    Around the average row, so that the draw does not depend on which row came first. Those of
    features that have not varied, and of a constant of which nothing is known, are the noise.
    """
    M, d = block(learner), D - 1
    rows, V, scale, middle, u = M[d, d], np.eye(d), np.ones(d), np.zeros(d), noise.copy()
    for i in range(d):
        if M[i, i] > 0.0:
            middle[i] = M[d, i] / rows
            scale[i] = math.sqrt(M[i, i] - rows * middle[i] * middle[i])
    for i in range(d):
        for k in range(i):
            V[i, k] = V[k, i] = (M[i, k] - rows * middle[i] * middle[k]) / (scale[i] * scale[k])
    L = np.linalg.cholesky(V)
    for i in range(d - 1, -1, -1):
        total = noise[i]
        for k in range(i + 1, d):
            total -= L[k, i] * u[k]
        u[i] = total / L[i, i]
    if rows > 0.0:
        u[d] = noise[d] / math.sqrt(rows)
    for i in range(d):
        u[i] /= scale[i]
        u[d] -= u[i] * middle[i]
    return u


@compiled
def correct_rows_free(
    learner: FloatArray, arena: FloatArray, rows: FloatArray, previous: FloatArray, now: FloatArray
) -> bool:
    """Let rows that were learned with other rewards have these; V stays.

    Whether that can be told: not where a reward counts for less than it is, before or after,
    because which are the extremes then depends on rows that are not kept.
    """
    D = rows.shape[1] + 1
    M, Q, X, S, _ = parts(learner, arena, D)
    dp, e = columns(M), extremes_at(M, D)
    if any_limited(M, D):
        return False
    for j in range(rows.shape[0]):
        centre_rows(M, D, rows, j, 1, X)
        if not take_back(M, D, X, previous[j]):
            count_rest(M, previous[j], -1.0)
            for i in range(D):
                M[2 * dp + REST, i] -= previous[j] * X[i, 0]
        S[dp + REWARD, 0], S[dp + PICKED, 0] = now[j], 0.0
        enlist(M, D, X, 0, S)
        if S[dp + ESTIMATE, 0] > 0.0:
            for i in range(D):
                M[2 * dp + REST, i] += now[j] * X[i, 0]
        for i in range(EXTREMES):
            M[e + MARKS, i] = 0.0
    judge(M, D, S)
    recount(M, Q, D)
    M[2 * dp + STATED, MEAN_SQUARE] = sum_of_squares(M) / M[2 * dp + NUMBERS, ROWS]
    return not any_limited(M, D)
