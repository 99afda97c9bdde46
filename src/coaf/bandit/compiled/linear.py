"""The compiled algebra of one linear learner: score arms, absorb feedback.

Called both by the live policy and by the compiled replicates, so the mathematics stands here once.
Matrices are blocks (see `simd.py`), padded with zeros to whole lanes.

`M`, the learner, has dp = d rounded up to whole lanes columns, and these rows:

- 0 to dp: V = λI + Σ x xᵀ, the precision, which is the truth (its lower triangle);
- dp to 2dp: P = V⁻¹, derived from it;
- 2dp: b = Σ x y, the truth; THETA: θ̄ = P b, derived;
- NUMBERS: rows learned, log det V, rows waiting, rows since P was last derived afresh, the least
  penalised squared error Σ (y − θ̄·x)² + θ̄ᵀ(V − Σ x xᵀ)θ̄, and by how much the rewards of arms whose
  mean was estimated beyond the mean bound exceed it, and how many these are;
- STATED: settings of the confidence set (see `confidence.py`).

`Q`, as wide, holds rows that wait to be folded in, in three parts: x, u and v. What is meant is
V + Σ x xᵀ and P + Σ v uᵀ. Up to SMALL features nothing waits between calls, and Q is scratch;
beyond, it follows M in the learner's array.

Arms lie in lanes: `X[x0 + i, a]` is feature i of arm a, and `S[row, a]` is about arm a. S, scratch,
has W = V⁻¹ X in rows 0 to dp, and then the rows named below. E is scratch for eliminating.
"""

import math

import numpy as np

from coaf.bandit.arrays import FloatArray, IntArray
from coaf.bandit.compiled.guards import first_bad
from coaf.bandit.compiled.products import accumulate, add_both, add_lower, product
from coaf.bandit.compiled.simd import (
    Block,
    below,
    block,
    columns,
    compiled,
    fma,
    load,
    splat,
    store,
    whole_lanes,
)

CHUNK = 32  # rows eliminated together
PENDING = 32  # rows that may wait where P and V have outgrown the cache
SMALL = 64  # up to this many features P and V sit in the cache, and rows are folded in at once
REFRESH = 4096  # rows after which P is derived from V again, so that rounding cannot build up
PART = CHUNK + PENDING  # rows in each part of Q

THETA, NUMBERS, STATED = 1, 2, 3  # rows from 2dp on
ROWS, LOGDET, WAITING, SINCE, LOSS, EXCESS, BOUNDED = range(7)  # columns of NUMBERS
CAP = 6  # column of STATED: the mean bound
MEAN, SQUARE, ESTIMATE, PICKED, REWARD, SCRATCH = range(6)  # rows of S past dp

HEAD = 8  # rows of a learner past V and P, rounded up


@compiled
def score(M: Block, Q: Block, d: int, X: Block, x0: int, n: int, S: Block) -> None:
    """For n arms: W = V⁻¹ X, the means θ̄·x and the squared widths xᵀ V⁻¹ x, into S."""
    dp = columns(M)
    lanes = whole_lanes(n)
    product(M, dp, d, X, x0, d, S, 0, lanes)
    waiting = int(M[2 * dp + NUMBERS, WAITING])
    if waiting > 0:
        product(Q, PART, waiting, X, x0, d, S, dp + SCRATCH, lanes)
        accumulate(S, 0, d, Q, 2 * PART, S, dp + SCRATCH, waiting, lanes)
    c = 0
    while c < lanes:
        m = splat(0.0)
        q = m
        for i in range(d):
            x = load(X, x0 + i, c)
            m = fma(splat(M[2 * dp + THETA, i]), x, m)
            q = fma(load(S, i, c), x, q)
        store(S, dp + MEAN, c, m)
        store(S, dp + SQUARE, c, q)
        c += 8


@compiled
def refresh(M: Block, d: int) -> None:
    """Derive P, θ̄ and log det V from V and b."""
    dp = columns(M)
    V = np.empty((d, d))
    for i in range(d):
        for k in range(i + 1):
            V[i, k] = V[k, i] = M[i, k]
    factor = np.linalg.cholesky(V)
    logdet = 0.0
    for i in range(d):
        logdet += 2.0 * math.log(factor[i, i])
    inverse = np.linalg.inv(V)
    for i in range(d):
        total = 0.0
        for k in range(d):
            M[dp + i, k] = 0.5 * (inverse[i, k] + inverse[k, i])
            total += M[dp + i, k] * M[2 * dp, k]
        M[2 * dp + THETA, i] = total
    M[2 * dp + NUMBERS, LOGDET] = logdet
    M[2 * dp + NUMBERS, SINCE] = 0.0


@compiled
def fold(M: Block, Q: Block, d: int) -> None:
    """Fold the waiting rows into the lower triangle of V, and into P."""
    dp = columns(M)
    waiting = int(M[2 * dp + NUMBERS, WAITING])
    if d <= SMALL:
        add_both(M, 0, dp, d, Q, 0, PART, 2 * PART, waiting)
    else:
        add_lower(M, 0, d, Q, 0, 0, waiting)
        add_lower(M, dp, d, Q, 2 * PART, PART, waiting)
    c = 8
    while c < d:  # mirror P in blocks of eight by eight
        k = 0
        while k < c:
            for i in range(c, min(c + 8, d)):
                for t in range(k, k + 8):
                    M[dp + t, i] = M[dp + i, t]
            k += 8
        c += 8
    M[2 * dp + NUMBERS, WAITING] = 0.0


@compiled
def eliminate(
    M: Block, Q: Block, d: int, X: Block, x0: int, count: int, S: Block, E: Block
) -> None:
    """Learn the rewards of the `count` arms picked in S, at most CHUNK, after `score`; they wait.

    One elimination of I + X_A V⁻¹ X_Aᵀ gives the rank-|A| downdate of P, the step of θ̄ and the
    gain in log det together. Row j of E is x_jᵀ V⁻¹ x_t for every pick t, then u = V⁻¹ x_j, so that
    one loop eliminates both. Picks are in rising order; their columns of S are moved together.
    """
    dp = columns(M)
    start = int(M[2 * dp + NUMBERS, WAITING])
    lanes = whole_lanes(count)
    wide = lanes + dp
    for j in range(count):
        a = int(S[dp + PICKED, j])
        S[dp + MEAN, j] = S[dp + MEAN, a]
        for i in range(d):
            Q[start + j, i] = X[x0 + i, a]
            w = S[i, a]
            S[i, j] = w
            E[j, lanes + i] = w
        for i in range(d, dp):
            E[j, lanes + i] = 0.0
    product(Q, start, count, S, 0, d, E, 0, lanes)
    growth, loss = 1.0, 0.0
    for j in range(count):
        pivot = 1.0 + E[j, j]
        growth *= pivot
        inverse = 1.0 / pivot
        for t in range(j + 1, count):
            f = splat(-E[t, j] * inverse)
            c = 0
            while c < wide:
                store(E, t, c, fma(f, load(E, j, c), load(E, t, c)))
                c += 8
        step = (S[dp + REWARD, j] - S[dp + MEAN, j]) * inverse
        loss += (S[dp + REWARD, j] - S[dp + MEAN, j]) * step
        c = 0
        while c < lanes:
            mean = load(S, dp + MEAN, c)
            store(S, dp + MEAN, c, fma(splat(step), load(E, j, c), mean))
            c += 8
        c = 0
        while c < dp:
            u, r = load(E, j, lanes + c), start + j
            store(Q, PART + r, c, u)
            store(Q, 2 * PART + r, c, fma(splat(-inverse), u, splat(0.0)))
            store(M, 2 * dp + THETA, c, fma(splat(step), u, load(M, 2 * dp + THETA, c)))
            x = load(Q, r, c)
            store(M, 2 * dp, c, fma(splat(S[dp + REWARD, j]), x, load(M, 2 * dp, c)))
            c += 8
        if growth > 1e100:
            M[2 * dp + NUMBERS, LOGDET] += math.log(growth)
            growth = 1.0
    M[2 * dp + NUMBERS, LOGDET] += math.log(growth)
    M[2 * dp + NUMBERS, ROWS] += count
    M[2 * dp + NUMBERS, WAITING] += count
    M[2 * dp + NUMBERS, SINCE] += count
    M[2 * dp + NUMBERS, LOSS] += loss


@compiled
def absorb(M: Block, Q: Block, d: int, X: Block, x0: int, count: int, S: Block, E: Block) -> None:
    """`eliminate`, and fold in what waits once it is time."""
    dp = columns(M)
    eliminate(M, Q, d, X, x0, count, S, E)
    if d <= SMALL or M[2 * dp + NUMBERS, WAITING] > PENDING:
        fold(M, Q, d)
    if M[2 * dp + NUMBERS, SINCE] >= max(REFRESH, 8 * d):
        fold(M, Q, d)
        refresh(M, d)


@compiled
def into_lanes(
    rows: FloatArray, first: int, n: int, X: Block, S: Block, row: int, bound: float
) -> int:
    """Copy n arms, one a row, into lanes; the first whose norm is not within `bound`, or -1.

    Lanes past the last arm are zero. A row of S is scratch.
    """
    d, lanes = rows.shape[1], whole_lanes(n)
    for i in range(0, d, 8):  # eight features at a time, so that lines are written while at hand
        for a in range(n):
            for k in range(i, min(i + 8, d)):
                X[k, a] = rows[first + a, k]
        for a in range(n, lanes):
            for k in range(i, min(i + 8, d)):
                X[k, a] = 0.0
    c, bad = lanes - 8, -1
    while c >= 0:
        squares = splat(0.0)
        for i in range(d):
            x = load(X, i, c)
            squares = fma(x, x, squares)
        store(S, row, c, squares)
        c -= 8
    for a in range(n - 1, -1, -1):
        if not S[row, a] <= bound * bound:
            bad = a
    return bad


@compiled
def arena_rows(d: int, lanes: int) -> int:
    """How many rows of `lanes` columns hold X, S, E and Q for learners of d features."""
    dp = whole_lanes(d)
    rest = CHUNK * (lanes + dp) + (3 * PART * dp if d <= SMALL else 0)
    return 2 * dp + SCRATCH + PENDING + (rest + lanes - 1) // lanes


@compiled
def parts(
    learner: FloatArray, arena: FloatArray, d: int
) -> tuple[Block, Block, Block, Block, Block]:
    """M, Q, X, S and E."""
    M, X = block(learner), block(arena)
    dp, lanes = columns(M), columns(X)
    S = below(X, dp, lanes)
    E = below(S, dp + SCRATCH + PENDING, lanes + dp)
    Q = below(E, CHUNK, dp) if d <= SMALL else below(M, 2 * dp + HEAD, dp)
    return M, Q, X, S, E


@compiled
def learn_scored(
    learner: FloatArray, arena: FloatArray, d: int, arms: IntArray, rewards: FloatArray
) -> None:
    """Learn arms, in rising order and at most CHUNK, that the arena still holds scored."""
    M, Q, X, S, E = parts(learner, arena, d)
    dp = columns(M)
    for j in range(arms.shape[0]):
        S[dp + PICKED, j] = float(arms[j])
        S[dp + REWARD, j] = rewards[j]
    absorb(M, Q, d, X, 0, arms.shape[0], S, E)


@compiled
def learn_rows(
    learner: FloatArray, arena: FloatArray, rows: FloatArray, rewards: FloatArray, bound: float
) -> tuple[int, int]:
    """Learn any number of rows, some at a time, unless `first_bad` finds one: returns that."""
    row, reward = first_bad(rows, bound, rewards)
    if row >= 0 or reward >= 0:
        return row, reward
    d = rows.shape[1]
    M, Q, X, S, E = parts(learner, arena, d)
    dp = columns(M)
    chunk = min(CHUNK, columns(X))
    for first in range(0, rows.shape[0], chunk):
        count = min(chunk, rows.shape[0] - first)
        into_lanes(rows, first, count, X, S, dp + SQUARE, bound)
        score(M, Q, d, X, 0, count, S)
        for j in range(count):
            S[dp + PICKED, j] = float(j)
            S[dp + REWARD, j] = rewards[first + j]
            if S[dp + MEAN, j] > M[2 * dp + STATED, CAP]:
                M[2 * dp + NUMBERS, EXCESS] += rewards[first + j] - M[2 * dp + STATED, CAP]
                M[2 * dp + NUMBERS, BOUNDED] += 1.0
        absorb(M, Q, d, X, 0, count, S, E)
    return -1, -1


@compiled
def derive(learner: FloatArray, d: int) -> None:
    """`refresh` for a learner's array in which no rows wait."""
    refresh(block(learner), d)


@compiled
def correct_rows(
    learner: FloatArray, arena: FloatArray, rows: FloatArray, previous: FloatArray, now: FloatArray
) -> None:
    """Let rows that were learned with other rewards have these: V stays, b and θ̄ follow."""
    d = rows.shape[1]
    M, Q, _, _, _ = parts(learner, arena, d)
    dp = columns(M)
    if M[2 * dp + NUMBERS, WAITING] > 0.0:
        fold(M, Q, d)
    squares = 0.0
    for k in range(d):
        squares += M[2 * dp, k] * M[2 * dp + THETA, k]
    for j in range(rows.shape[0]):
        squares += now[j] ** 2 - previous[j] ** 2
        for k in range(d):
            M[2 * dp, k] += rows[j, k] * (now[j] - previous[j])
    fit(M, d)
    for k in range(d):
        squares -= M[2 * dp, k] * M[2 * dp + THETA, k]
    M[2 * dp + NUMBERS, LOSS] = max(M[2 * dp + NUMBERS, LOSS] + squares, 0.0)


@compiled
def fit(M: Block, d: int) -> None:
    """θ̄ = P b."""
    dp = columns(M)
    for i in range(d):
        total = 0.0
        for k in range(d):
            total += M[dp + i, k] * M[2 * dp, k]
        M[2 * dp + THETA, i] = total
