"""The compiled confidence set of the linear class, and the exact maximum over it.

The set is the ellipsoid ‖θ − θ̄‖_V ≤ r, met with the ball ‖θ‖ ≤ m if one is asked for.
"""

import math

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.compiled.linear import (
    CAP,
    ESTIMATE,
    LOGDET,
    MEAN,
    NUMBERS,
    ROWS,
    SQUARE,
    STATED,
    THETA,
    WAITING,
    into_lanes,
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
    root,
    smaller,
    splat,
    store,
)

# The confidence set as numbers, in the learner's row of settings.
NORM_BOUND, FEATURE_BOUND, NOISE, LAMBDA, LOG_DELTA, SCALE, _, FORM = range(8)  # and CAP
PRINTED, BALL = 1, 2  # bits of FORM


@compiled
def radius(M: Block, d: int) -> float:
    """√β: how far θ* may be from θ̄ in the norm of V, with probability 1 − δ, at all times at once.

    m √λ + σ √(2 ln 1/δ + ln det V / λ^d), by `lm: lcb_cr`; as printed in the paper, ln det V is
    replaced by its bound d ln(λ + n L²/d).
    """
    dp = columns(M)
    s = 2 * dp + STATED
    ridge = M[s, LAMBDA]
    if int(M[s, FORM]) & PRINTED:
        most = M[s, FEATURE_BOUND] ** 2 * M[2 * dp + NUMBERS, ROWS]
        volume = d * math.log((d * ridge + most) / (d * ridge))
    else:
        volume = max(M[2 * dp + NUMBERS, LOGDET] - d * math.log(ridge), 0.0)
    spread = M[s, NOISE] * math.sqrt(2.0 * M[s, LOG_DELTA] + volume)
    result: float = M[s, SCALE] * (M[s, NORM_BOUND] * math.sqrt(ridge) + spread)
    return result


@compiled
def precision(M: Block, Q: Block, d: int) -> FloatArray:
    """V, rows that wait included, as an array of its own."""
    dp = columns(M)
    V = np.empty((d, d))
    waiting = int(M[2 * dp + NUMBERS, WAITING])
    for i in range(d):
        for k in range(i + 1):
            V[i, k] = M[i, k]
            for j in range(waiting):
                V[i, k] += Q[j, i] * Q[j, k]
            V[k, i] = V[i, k]
    return V


@compiled
def _point(
    nu: float, values: FloatArray, center: FloatArray, z: FloatArray, r: float, m: float
) -> tuple[float, float]:
    """Maximise z·θ over E_ν = {‖θ − θ̄‖²_V − r² + ν (‖θ‖² − m²) ≤ 0}.

    In the eigenbasis of V. Returns the maximum and ‖θ‖² − m² at the maximiser.
    """
    room = r * r + nu * m * m
    linear, width = 0.0, 0.0
    for i in range(values.shape[0]):
        a = values[i] + nu
        linear += z[i] * values[i] * center[i] / a
        width += z[i] * z[i] / a
        room -= values[i] * nu * center[i] ** 2 / a
    scale = math.sqrt(max(room, 0.0) / width) if width > 0.0 else 0.0
    norm = 0.0
    for i in range(values.shape[0]):
        norm += ((values[i] * center[i] + scale * z[i]) / (values[i] + nu)) ** 2
    return linear + scale * width, norm - m * m


@compiled
def _maximum(values: FloatArray, center: FloatArray, z: FloatArray, r: float, m: float) -> float:
    """Min over ν ≥ 0 of the maximum over E_ν, which is the maximum over ellipsoid and ball.

    Both constraints lie in every E_ν, so each ν gives a valid upper bound, and by convex duality
    the best ν gives the maximum itself. It is where ‖θ‖ = m; regula falsi (Illinois) finds it.
    """
    low, high = 0.0, values[-1]
    best, at_low = _point(low, values, center, z, r, m)
    value, at_high = _point(high, values, center, z, r, m)
    best = min(best, value)
    for _ in range(60):
        if at_high <= 0.0:
            break
        low, at_low, high = high, at_high, 8.0 * high
        value, at_high = _point(high, values, center, z, r, m)
        best = min(best, value)
    side = 0
    for _ in range(80):
        if high - low <= 1e-10 * high or at_low == at_high:
            break
        nu = (low * at_high - high * at_low) / (at_high - at_low)
        value, excess = _point(nu, values, center, z, r, m)
        best = min(best, value)
        if abs(excess) <= 1e-12 * m * m:
            break
        if excess > 0.0:
            at_high *= 0.5 if side > 0 else 1.0  # the Illinois rule: an end that stays counts less
            low, at_low, side = nu, excess, 1
        else:
            at_low *= 0.5 if side < 0 else 1.0
            high, at_high, side = nu, excess, -1
    return best


@compiled
def _shortest(values: FloatArray, center: FloatArray, m: float) -> float:
    """The ν at which (V + νI)⁻¹ V θ̄, the nearest to θ̄ in the norm of V, has norm m."""
    low, high = 0.0, float(values[-1])
    for _ in range(2000):
        norm = 0.0
        for i in range(values.shape[0]):
            norm += (values[i] * center[i] / (values[i] + high)) ** 2
        if norm <= m * m:
            break
        low, high = high, 2.0 * high
    for _ in range(100):
        nu, norm = 0.5 * (low + high), 0.0
        for i in range(values.shape[0]):
            norm += (values[i] * center[i] / (values[i] + nu)) ** 2
        if norm > m * m:
            low = nu
        else:
            high = nu
    return high


@compiled
def _dot(a: FloatArray, b: FloatArray) -> float:
    total = 0.0
    for i in range(a.shape[0]):
        total += float(a[i]) * float(b[i])
    return total


@compiled
def _within_ball(
    M: Block, Q: Block, d: int, X: Block, x0: int, n: int, S: Block, r: float, m: float
) -> None:
    """Tighten the ellipsoid's estimates in S to the maximum over ellipsoid and ball.

    Where the two do not meet, the set is empty; then every arm gets its mean under the point of the
    ball nearest to θ̄ in the norm of V, which is what the maximum tends to as r shrinks to where
    they touch, and is the least-squares estimate under ‖θ‖ ≤ m.
    """
    dp = columns(M)
    theta_norm = 0.0
    for i in range(d):
        theta_norm += M[2 * dp + THETA, i] ** 2
    ready, meet = False, True
    values, vectors = np.empty(0), np.empty((0, 0))
    center, nearest, z = np.empty(d), np.empty(d), np.empty(d)
    for a in range(n):
        along, length, inner = 0.0, 0.0, 0.0
        for i in range(d):
            along += M[2 * dp + THETA, i] * S[i, a]
            length += S[i, a] ** 2
            inner += X[x0 + i, a] ** 2
        step = r / math.sqrt(S[dp + SQUARE, a]) if S[dp + SQUARE, a] > 0.0 else 0.0
        # The common case: the ellipsoid's own maximiser θ̄ + r V⁻¹x / ‖x‖_{V⁻¹} is in the ball.
        if theta_norm + 2.0 * step * along + step * step * length <= m * m:
            continue
        if not ready:
            values, vectors = np.linalg.eigh(precision(M, Q, d))
            distance = 0.0
            for k in range(d):
                center[k] = 0.0
                for i in range(d):
                    center[k] += vectors[i, k] * M[2 * dp + THETA, i]
            if theta_norm > m * m:
                nu = _shortest(values, center, m)
                for k in range(d):
                    point = values[k] * center[k] / (values[k] + nu)
                    distance += values[k] * (center[k] - point) ** 2
                    nearest[k] = point
            ready, meet = True, distance < r * r
        for k in range(d):
            z[k] = 0.0
            for i in range(d):
                z[k] += vectors[i, k] * X[x0 + i, a]
        if not meet:
            S[dp + ESTIMATE, a] = _dot(z, nearest)
            continue
        # The other easy case: the ball's own maximiser m x / ‖x‖ is in the ellipsoid.
        outside, length = 0.0, math.sqrt(inner)
        for k in range(d):
            outside += values[k] * (m * z[k] / length - center[k]) ** 2
        best = min(S[dp + ESTIMATE, a], m * length)
        if outside > r * r:
            best = min(best, _maximum(values, center, z, r, m))
        S[dp + ESTIMATE, a] = best


@compiled
def upper(M: Block, Q: Block, d: int, X: Block, x0: int, n: int, S: Block) -> None:
    """The largest mean reward that the confidence set allows each arm, into S, after `score`."""
    dp = columns(M)
    r, cap = radius(M, d), M[2 * dp + STATED, CAP]
    ball = int(M[2 * dp + STATED, FORM]) & BALL
    c = 0
    while c < n:
        value = fma(splat(r), root(load(S, dp + SQUARE, c)), load(S, dp + MEAN, c))
        store(S, dp + ESTIMATE, c, value if ball else smaller(value, splat(cap)))
        c += 8
    if ball:
        _within_ball(M, Q, d, X, x0, n, S, r, M[2 * dp + STATED, NORM_BOUND])
        for a in range(n):
            S[dp + ESTIMATE, a] = min(S[dp + ESTIMATE, a], cap)


@compiled
def upper_rows(
    learner: FloatArray, arena: FloatArray, rows: FloatArray, bound: float
) -> tuple[FloatArray, int]:
    """`upper` for arms that lie in rows, and the first of them beyond `bound`, or -1."""
    n, d = rows.shape
    M, Q, X, S, _ = parts(learner, arena, d)
    bad = into_lanes(rows, 0, n, X, S, columns(M) + SQUARE, bound)
    score(M, Q, d, X, 0, n, S)
    upper(M, Q, d, X, 0, n, S)
    result = np.empty(n)
    for a in range(n):
        result[a] = S[columns(M) + ESTIMATE, a]
    return result, bad


@compiled
def draw(M: Block, Q: Block, noise: FloatArray) -> FloatArray:
    """θ̄ + √β L⁻ᵀ z with V = L Lᵀ, which is one draw from N(θ̄, β V⁻¹) for z standard normal."""
    d, dp = noise.shape[0], columns(M)
    L = np.linalg.cholesky(precision(M, Q, d))
    r = radius(M, d)
    theta = np.empty(d)
    for i in range(d - 1, -1, -1):
        total = noise[i]
        for k in range(i + 1, d):
            total -= L[k, i] * theta[k]
        theta[i] = total / L[i, i]
    for i in range(d):
        theta[i] = M[2 * dp + THETA, i] + r * theta[i]
    return theta


@compiled
def draw_theta(learner: FloatArray, arena: FloatArray, noise: FloatArray) -> FloatArray:
    """`draw` for a learner's array."""
    M, Q, _, _, _ = parts(learner, arena, noise.shape[0])
    return draw(M, Q, noise)


@compiled
def radius_of(learner: FloatArray, d: int) -> float:
    """`radius` for a learner's array."""
    return radius(block(learner), d)


@compiled
def precision_of(learner: FloatArray, arena: FloatArray, d: int) -> FloatArray:
    """`precision` for a learner's array."""
    M, Q, _, _, _ = parts(learner, arena, d)
    return precision(M, Q, d)
