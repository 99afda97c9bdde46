"""The compiled inner loops of nested beliefs: sums over rows, and elimination of groups."""

import math

import numpy as np

from coaf.bandit.arrays import FloatArray, IntArray
from coaf.bandit.compiled.simd import compiled


@compiled
def touch(
    Z: FloatArray,
    y: FloatArray,
    weights: FloatArray,
    nodes: IntArray,
    eta: FloatArray,
    gram: FloatArray,
    columns: FloatArray,
) -> None:
    """Add to gram and columns what rows whose squares touch the log likelihood at η add.

    Weights are w = p(1 − p), responses η + (y − p)/w; their own squares are left out.
    """
    rows, P = Z.shape
    for r in range(rows):
        p = 0.5 + 0.5 * math.tanh(0.5 * eta[r])
        w = weights[r] * p * (1.0 - p)
        pull = w * eta[r] + weights[r] * (y[r] - p)
        for i in range(P):
            z = w * Z[r, i]
            for j in range(P):
                gram[i, j] += z * Z[r, j]
            gram[i, P] += pull * Z[r, i]
        if nodes[r] >= 0:
            for i in range(P):
                columns[nodes[r], i] += w * Z[r, i]
            columns[nodes[r], P] += pull
    for i in range(P):
        gram[P, i] = gram[i, P]


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
