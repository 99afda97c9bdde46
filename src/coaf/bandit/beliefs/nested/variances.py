"""Variances from the rows themselves: empirical Bayes, with a weak prior."""

from collections.abc import Callable
from itertools import combinations

import numpy as np

from coaf.bandit.arrays import FloatArray

FIRST_VISIT = 10
SPREAD = 1.5  # standard deviation of a log variance, a priori
_FAR = 12.0  # how far a log variance may be from its guess: a factor of 400 in τ
_H, _STEPS, _LONGEST, _CLOSE = 0.05, 60, 2.0, 3e-3


def last_visit(rows: int) -> int:
    """The largest number of rows, up to `rows`, at which variances are estimated; 0 if none.

    10, and from there on whenever rows have grown by a fifth.

    Examples
    --------
    >>> [last_visit(n) for n in (9, 10, 11, 12, 5000)]
    [0, 10, 10, 12, 4766]
    """
    last, upcoming = 0, FIRST_VISIT
    while upcoming <= rows:
        last, upcoming = upcoming, -(-6 * upcoming // 5)
    return last


def estimate(
    evidence: Callable[[FloatArray], float], guess: FloatArray, start: FloatArray
) -> FloatArray:
    """The logarithms of the expected variances, to two decimals.

    Parameters
    ----------
    evidence
        The log marginal likelihood of log variances.
    guess
        The logarithms of what is expected a priori. Each log variance is normal with standard
        deviation 1.5, so that τ within a factor of 4.5 is no surprise: enough to keep a variance
        from 0 and infinity where there are few groups.
    start
        Where to start.

    Notes
    -----
    The mode is found by Newton's method, with derivatives by differences; around it, log variances
    are taken to be normal with the curvature there. The expected variance is what the spread of a
    prediction needs: with the mode in its place, intervals were too narrow. More than two decimals
    mean nothing, and without them rounding errors, which depend on how rows came, cannot reach a
    decision.

    Examples
    --------
    >>> estimate(lambda u: -50.0 * float(u @ u), np.zeros(2), np.ones(2))
    array([0., 0.])
    """
    centre = guess - 0.5 * SPREAD**2

    def height(u: FloatArray) -> float:
        return evidence(u) - 0.5 * float(np.sum((u - centre) ** 2)) / SPREAD**2

    low, high = guess - _FAR, guess + _FAR  # rewards without noise would drive its variance to 0
    u, top = start, height(start)
    for _ in range(_STEPS):
        slope, bend = derivatives(height, u, top)
        curves, axes = np.linalg.eigh(-bend)
        curves = np.maximum(np.abs(curves), SPREAD**-2.0)
        step = axes @ ((slope @ axes) / curves)
        step *= min(1.0, _LONGEST / max(float(np.abs(step).max()), 1e-300))
        step = np.clip(u + step, low, high) - u
        while (reached := height(u + step)) < top and np.abs(step).max() > _CLOSE:
            step *= 0.5
        u, top = u + step, reached
        if np.abs(step).max() <= _CLOSE:
            break
    variance = (axes**2) @ (1.0 / curves)
    expected: FloatArray = np.clip(u + 0.5 * variance, low, high)
    return np.round(expected, 2) + 0.0


def derivatives(
    f: Callable[[FloatArray], float], u: FloatArray, top: float
) -> tuple[FloatArray, FloatArray]:
    """The slope and the bend (second derivatives) of `f` at `u`, where it is `top`."""
    k = len(u)
    unit = _H * np.eye(k)
    up = np.array([f(u + e) for e in unit])
    down = np.array([f(u - e) for e in unit])
    bend = np.diag((up + down - 2.0 * top) / _H**2)
    for i, j in combinations(range(k), 2):
        bend[i, j] = bend[j, i] = (f(u + unit[i] + unit[j]) - up[i] - up[j] + top) / _H**2
    return (up - down) / (2.0 * _H), bend
