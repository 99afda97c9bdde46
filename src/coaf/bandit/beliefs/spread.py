"""How large rewards are, and how far from a line: what a belief measures that is told neither."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.units import Units

_EQUAL = 1e-6  # of their size, below which rewards differ by rounding, or not at all


def size_of(rewards: FloatArray, weights: FloatArray) -> float:
    """ω, the root mean square of rewards; 0 only if all are.

    Examples
    --------
    >>> size_of(np.array([0.0, 300.0, 400.0, 0.0]), np.ones(4))
    250.0
    """
    largest = float(np.abs(rewards).max(initial=0.0))
    if largest == 0.0:
        return 0.0
    scaled = rewards / largest  # whose squares neither overflow nor vanish
    return largest * math.sqrt(float(weights @ scaled**2 / weights.sum()))


def noise_of(Z: FloatArray, rewards: FloatArray, weights: FloatArray) -> float:
    """σ̂, how far rewards are from a line with intercept, in the unit of rewards.

    With the variance s² of n rewards, and R their squared distance from the line of p coefficients
    that fits best, σ̂² = R/(n − p) + s²/(n − p + 1)², and s² where that is less. The second term is
    for few rows: as many coefficients as rows leave R = 0, which says nothing, and σ̂ is s then.
    Rewards that are all equal say nothing of their noise either, and their size ω stands in. So σ̂
    is 0 only if all rewards are.

    Rows of unequal weight count as n = (Σ w)²/Σ w².

    Examples
    --------
    >>> Z = np.linspace(-1.0, 1.0, 100)[:, None]
    >>> y = 30.0 * Z[:, 0] + np.random.default_rng(0).normal(0.0, 0.1, 100)
    >>> round(noise_of(Z, y, np.ones(100)), 1)
    0.2
    >>> noise_of(Z, np.full(100, 7.0), np.ones(100))
    7.0
    """
    size = size_of(rewards, weights)
    if size == 0.0:
        return 0.0
    share, y = weights / weights.sum(), rewards / size
    n = 1.0 / float(share @ share)
    root = np.sqrt(n * share)
    away = root * (y - share @ y)
    variance = float(away @ away) / (n - 1.0) if n > 1.0 + _EQUAL else 0.0
    if variance <= _EQUAL**2:
        return size
    F = root[:, None] * np.column_stack([np.ones(len(Z)), Z])
    theta, _, rank, _ = np.linalg.lstsq(F, root * y)
    apart, free = root * y - F @ theta, max(n - float(rank), 0.0)
    line = float(apart @ apart) / max(free, 1.0) + variance / (free + 1.0) ** 2
    return size * math.sqrt(min(variance, line))


@dataclass(frozen=True)
class SeenScale:
    """How large rewards and features are in some rows, as far as it is not stated."""

    epoch: int  # how many rows
    size: float  # ω, the root mean square of rewards; infinite where mean_bound is stated
    unit: float  # of the rewards that a regressor is shown
    noise: float  # σ
    ranges: Units | None  # of features; None where they count as they are

    @classmethod
    def of(
        cls,
        X: FloatArray,
        y: FloatArray,
        w: FloatArray,
        *,
        noise: float | None,
        mean_bound: float | None,
        nothing_known: float,
    ) -> Self:
        """By these rows; `nothing_known` stands in for the noise while all rewards are 0."""
        n, dim = X.shape
        ranges = Units(X.min(axis=0), X.max(axis=0), rows=n) if n else Units.none(dim)
        if noise is None:
            noise = noise_of(ranges.centred(X), y, w) or mean_bound or nothing_known
        if mean_bound is not None:
            return cls(n, np.inf, 1.0, noise, None)
        size = size_of(y, w)
        return cls(n, size, size or noise, noise, ranges)

    def rows(self, X: FloatArray) -> FloatArray:
        """x̃ = (1, z), or (1, x)."""
        Z = X if self.ranges is None else self.ranges.centred(X)
        return np.column_stack([np.ones(len(X)), Z])
