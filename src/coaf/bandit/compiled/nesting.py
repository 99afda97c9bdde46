"""The compiled inner loops of nested beliefs: sums over rows, and elimination of groups."""

import math

import numpy as np

from coaf.bandit.arrays import FloatArray, IntArray
from coaf.bandit.compiled.simd import compiled


@compiled
def expand(
    which: IntArray,
    starts: IntArray,
    Z: FloatArray,
    y: FloatArray,
    weights: FloatArray,
    spots: FloatArray,
    eta: FloatArray,
    near: float,
    noise: float,
    at: FloatArray,
    w: FloatArray,
    MZ: FloatArray,
    own: FloatArray,
    logdets: FloatArray,
    roots: FloatArray,
) -> None:
    """Squares that touch the log likelihood at η, for the rows of some groups.

    Weights are w = p(1 − p), responses η + (y − p)/w; their own squares are left out. With `noise`
    rewards are Gaussian of this variance: weights are 1/noise, responses y. Rows of a group whose
    places are near are alike: with C = e^−distance between them, their precision is
    M = (W⁻¹ + near·C)⁻¹ in place of W. MZ becomes M·(x, 1, response), `own` the variance that is
    left of what a row shares with those near it, given all else, logdets ln det(I + near·W·C), and
    roots the Cholesky factor of I + near·√W·C·√W. The first group is that of rows without one,
    which are near nobody.
    """
    P = Z.shape[1]
    for k in range(which.shape[0]):
        g = which[k]
        first, last = starts[g], starts[g + 1]
        joined = near > 0.0 and g > 0
        for r in range(first, last):
            at[r] = eta[r]
            p = 0.5 + 0.5 * math.tanh(0.5 * eta[r])
            w[r] = weights[r] / noise if noise > 0.0 else weights[r] * p * (1.0 - p)
            if joined:  # else what is divided by it would be lost in rounding
                w[r] = max(w[r], 1e-5 * weights[r], 1e-12)
            for i in range(P):
                MZ[r, i] = w[r] * Z[r, i]
            MZ[r, P] = w[r] * y[r] if noise > 0.0 else w[r] * eta[r] + weights[r] * (y[r] - p)
            own[r] = 0.0
        logdets[g] = 0.0
        if joined:
            logdets[g] = _join(
                spots[first:last],
                near,
                w[first:last],
                MZ[first:last],
                own[first:last],
                roots[first:last],
            )


@compiled
def _forward(L: FloatArray, X: FloatArray) -> None:
    """X becomes L⁻¹·X."""
    n, width = X.shape
    for i in range(n):
        for k in range(i):
            for j in range(width):
                X[i, j] -= L[i, k] * X[k, j]
        for j in range(width):
            X[i, j] /= L[i, i]


@compiled
def _backward(L: FloatArray, X: FloatArray) -> None:
    """X becomes L⁻ᵀ·X."""
    n, width = X.shape
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            for j in range(width):
                X[i, j] -= L[k, i] * X[k, j]
        for j in range(width):
            X[i, j] /= L[i, i]


@compiled
def _join(
    spots: FloatArray, near: float, w: FloatArray, MZ: FloatArray, own: FloatArray, L: FloatArray
) -> float:
    """W·z becomes M·z, by the Cholesky factor L of B = I + near·√W·C·√W: M = √W·B⁻¹·√W."""
    n, width = MZ.shape
    _joint_root(spots, near, w, L)
    logdet = 0.0
    for i in range(n):
        logdet += 2.0 * math.log(L[i, i])
    for i in range(n):
        s = math.sqrt(w[i])
        for j in range(width):
            MZ[i, j] /= s
    _forward(L, MZ)
    _backward(L, MZ)
    for i in range(n):
        s = math.sqrt(w[i])
        for j in range(width):
            MZ[i, j] *= s
    inverse = np.zeros((n, n))
    for j in range(n):  # the diagonal of B⁻¹ = L⁻ᵀ·L⁻¹ is what the rows have left
        inverse[j, j] = 1.0 / L[j, j]
        for i in range(j + 1, n):
            total = 0.0
            for k in range(j, i):
                total -= L[i, k] * inverse[k, j]
            inverse[i, j] = total / L[i, i]
        total = 0.0
        for i in range(j, n):
            total += inverse[i, j] * inverse[i, j]
        own[j] = max(1.0 - total, 0.0) / w[j]
    return logdet


@compiled
def _alike(some: FloatArray, i: int, others: FloatArray, j: int) -> float:
    """e^−distance between two places; `math.hypot` would take as long as all the rest."""
    x, y = some[i, 0] - others[j, 0], some[i, 1] - others[j, 1]
    return math.exp(-math.sqrt(x * x + y * y))


@compiled
def _joint_root(spots: FloatArray, near: float, w: FloatArray, L: FloatArray) -> None:
    """L becomes the Cholesky factor of I + near·√W·C·√W, with C = e^−distance between places."""
    n = spots.shape[0]
    for j in range(n):
        for i in range(j, n):
            total = near * _alike(spots, i, spots, j) * math.sqrt(w[i] * w[j])
            if i == j:
                total += 1.0
            for k in range(j):
                total -= L[i, k] * L[j, k]
            L[i, j] = math.sqrt(total) if i == j else total / L[j, j]


@compiled
def look_around(
    starts: IntArray,
    spots: FloatArray,
    w: FloatArray,
    MZ: FloatArray,
    lean: FloatArray,
    roots: FloatArray,
    near: float,
    at: FloatArray,
    nodes: IntArray,
    Z: FloatArray,
    own: FloatArray,
    half: FloatArray,
) -> None:
    """What rows say of arms near them: Z of the arms loses K·M·z, and `own` K·M·Kᵀ.

    K is near·C between an arm at a place of a group and the group's rows, whose responses are
    `lean` more than M·z has them. Arms of a group follow one another; `half`, if it has columns
    enough, becomes L⁻¹·√W·Kᵀ for each arm.
    """
    before, L, pull = -1, roots, np.zeros((0, 1))
    response = Z.shape[1] - 1
    for a in range(at.shape[0]):
        g = nodes[a]
        if g < 0 or starts[g + 1] == starts[g]:
            continue
        first, last = starts[g], starts[g + 1]
        if g != before:
            L, before = roots[first:last], g
            s = np.sqrt(w[first:last])
            pull = (s * lean[first:last]).reshape(-1, 1)
            _forward(L, pull)
            _backward(L, pull)
            pull[:, 0] *= s
        n = last - first
        h = np.empty(n)
        for k in range(n):
            r = first + k
            K = near * _alike(at, a, spots, r)
            for j in range(Z.shape[1]):
                Z[a, j] -= K * MZ[r, j]
            Z[a, response] -= K * pull[k, 0]
            total = math.sqrt(w[r]) * K
            for i in range(k):
                total -= L[k, i] * h[i]
            h[k] = total / L[k, k]
            own[a] -= h[k] * h[k]
        for k in range(min(n, half.shape[1])):
            half[a, k] = h[k]
        own[a] = max(own[a], 0.0)


@compiled
def semidefinite_root(A: FloatArray) -> FloatArray:
    """The lower L with L·Lᵀ = A; its columns are 0 where nothing is left, as of equal arms."""
    n = A.shape[0]
    L = np.zeros((n, n))
    for j in range(n):
        total = A[j, j]
        for k in range(j):
            total -= L[j, k] * L[j, k]
        if total <= 1e-9 * A[j, j]:
            continue
        L[j, j] = math.sqrt(total)
        for i in range(j + 1, n):
            total = A[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            L[i, j] = total / L[j, j]
    return L


@compiled
def collect(
    starts: IntArray, Z: FloatArray, MZ: FloatArray, gram: FloatArray, columns: FloatArray
) -> None:
    """Add Zᵀ·M·z of all rows to gram, and 1ᵀ·M·z of each group to its column."""
    P = Z.shape[1]
    for g in range(starts.shape[0] - 1):
        for r in range(starts[g], starts[g + 1]):
            for i in range(P):
                for j in range(P + 1):
                    gram[i, j] += Z[r, i] * MZ[r, j]
            if g > 0:
                for j in range(P + 1):
                    columns[g - 1, j] += MZ[r, j]
    for i in range(P):
        gram[P, i] = gram[i, P]


@compiled
def moved(starts: IntArray, eta: FloatArray, at: FloatArray, far: float) -> IntArray:
    """The groups of which a row has moved further than `far` from where it was expanded."""
    found = np.zeros(starts.shape[0] - 1, dtype=np.int64)
    count = 0
    for g in range(starts.shape[0] - 1):
        for r in range(starts[g], starts[g + 1]):
            if not abs(eta[r] - at[r]) <= far:  # never expanded is NaN
                found[count] = g
                count += 1
                break
    return found[:count]


@compiled
def log_likelihood(y: FloatArray, weights: FloatArray, eta: FloatArray) -> float:
    """Σ w (y·η − ln(1 + e^η))."""
    total = 0.0
    for r in range(eta.shape[0]):
        missed = max(eta[r], 0.0) + math.log1p(math.exp(-abs(eta[r])))
        total += weights[r] * (y[r] * eta[r] - missed)
    return total


@compiled
def eliminate(
    E: FloatArray, columns: FloatArray, variance: float, shrink: FloatArray, ratio: FloatArray
) -> float:
    """Take the groups of a level out of E; their shrink and ratio, and the sum of ln(1 + τ²n)."""
    groups, P = columns.shape
    logdet = 0.0
    for g in range(groups):
        n = columns[g, P - 2]
        ratio[g] = 1.0 / (1.0 + variance * n)
        shrink[g] = variance * ratio[g]
        logdet += math.log1p(variance * n)
        for i in range(P):
            c = shrink[g] * columns[g, i]
            for j in range(P):
                E[i, j] -= c * columns[g, j]
    return logdet


@compiled
def fold(columns: FloatArray, ratio: FloatArray, parents: IntArray, above: FloatArray) -> None:
    """Add what is left of the groups' columns to the groups above them."""
    for g in range(columns.shape[0]):
        for i in range(columns.shape[1]):
            above[parents[g], i] += ratio[g] * columns[g, i]


@compiled
def inverse_root(E: FloatArray) -> tuple[FloatArray, float]:
    """R with RᵀR the inverse of E without its last row and column, and the log determinant.

    The determinant is NaN where E is not positive definite.
    """
    n = E.shape[0] - 1
    L, R, logdet = np.zeros((n, n)), np.zeros((n, n)), 0.0
    for j in range(n):
        total = E[j, j]
        for k in range(j):
            total -= L[j, k] * L[j, k]
        if not total > 0.0:
            return R, math.nan
        L[j, j] = math.sqrt(total)
        logdet += math.log(total)
        for i in range(j + 1, n):
            total = E[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            L[i, j] = total / L[j, j]
    for j in range(n):
        R[j, j] = 1.0 / L[j, j]
        for i in range(j + 1, n):
            total = 0.0
            for k in range(j, i):
                total -= L[i, k] * R[k, j]
            R[i, j] = total / L[i, i]
    return R, logdet
