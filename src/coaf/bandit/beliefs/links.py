"""Links from a predictor η = θ·x to a mean reward g(η), and the posterior of θ under them.

Both links are canonical: −ln p(y|η) = A(η) − y η with g = A′, so that the slope g′ is the variance
of a reward, and a belief knows its noise from the mean it expects.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.state import entry, pack, unpack

F = TypeVar("F", float, FloatArray)

_STEPS = 100  # Newton takes about five for a row, and ten for all
_REFRESH = 1024  # rows after which rounding in the covariance is worth an inversion
_HIGHEST = 30.0  # e³⁰ ≈ 10¹³ is beyond every count that is learned, and sums of it are harmless
_OVERFLOW = 300.0  # no predictor that the data allow is near


class Link(Protocol):
    """What a family of rewards must say of itself."""

    largest: float  # rewards lie in [0, largest]
    typical: float  # a mean reward to start from, if nobody knows better

    def mean(self, eta: FloatArray) -> FloatArray:
        """g(η) of each arm."""

    def at(self, eta: float) -> float:
        """g(η) of one arm, quickly."""

    def natural(self, mean: float) -> float:
        """η = g⁻¹(μ)."""

    def variance(self, mean: F) -> F:
        """g′(η) as a function of μ = g(η)."""

    def skewness(self, mean: F) -> F:
        """g″(η) as a function of μ = g(η)."""

    def log_partition(self, eta: FloatArray) -> FloatArray:
        """A(η)."""

    def start(self, a: float, v: float) -> float:
        """A point from which Newton solves η + v g(η) = a from one side."""


class LogitLink:
    """Rewards from 0 to 1: g(η) = 1 / (1 + e⁻ᵑ)."""

    largest = 1.0
    typical = 0.5

    def mean(self, eta: FloatArray) -> FloatArray:
        result: FloatArray = np.exp(-np.logaddexp(0.0, -eta))  # never overflows, exact far out
        return result

    def at(self, eta: float) -> float:
        e = math.exp(-abs(eta))
        return (1.0 if eta >= 0.0 else e) / (1.0 + e)

    def natural(self, mean: float) -> float:
        return math.log(mean) - math.log1p(-mean)

    def variance(self, mean: F) -> F:
        return mean * (1.0 - mean)

    def skewness(self, mean: F) -> F:
        return mean * (1.0 - mean) * (1.0 - 2.0 * mean)

    def log_partition(self, eta: FloatArray) -> FloatArray:
        result: FloatArray = np.logaddexp(0.0, eta)
        return result

    def start(self, a: float, v: float) -> float:
        # η + v g(η) is convex left of 0 and concave right of it, and the root is in [a − v, a].
        return min(0.0, a) if v >= 2.0 * a else max(0.0, a - v)


class LogLink:
    """Counts: g(η) = eᵑ."""

    largest = 1e9
    typical = 1.0

    def mean(self, eta: FloatArray) -> FloatArray:
        result: FloatArray = np.exp(np.minimum(eta, _HIGHEST))
        return result

    def at(self, eta: float) -> float:
        return math.exp(eta)

    def natural(self, mean: float) -> float:
        return math.log(mean)

    def variance(self, mean: F) -> F:
        return mean

    def skewness(self, mean: F) -> F:
        return mean

    def log_partition(self, eta: FloatArray) -> FloatArray:
        result: FloatArray = np.exp(np.minimum(eta, _OVERFLOW))
        return result

    def start(self, a: float, v: float) -> float:
        # Convex everywhere. The root is below a and, if positive, below ln(a/v): no overflow.
        return min(a, math.log(a / v)) if a > v else min(a, 0.0)


def absorb(link: Link, m: float, v: float, y: float, w: float = 1.0) -> tuple[float, float]:
    """What one row makes of a predictor η ~ N(m, v): its new mean, and the row's weight w g′ there.

    The mode of −(η − m)²/2v + w (y η − A(η)) solves η + vw g(η) = m + vw y; Newton's method begins
    on the side from which it cannot overshoot. From the mode to the mean it is −½ s⁴ w g″, with s²
    the variance at the mode: the next term of Laplace's expansion.

    Failures say little about how far down η is, so the posterior leans to the left, and a belief
    that only followed modes would keep rare successes too likely.

    Examples
    --------
    >>> eta, weight = absorb(LogitLink(), 0.0, 4.0, 1.0)
    >>> round(eta, 3), round(weight, 3)
    (1.278, 0.17)
    """
    u = v * w
    a = m + u * y
    eta, before = link.start(a, u), 0.0
    for _ in range(_STEPS):
        mu = link.at(eta)
        step = (eta + u * mu - a) / (1.0 + u * link.variance(mu))
        eta -= step
        # A step back can only be rounding.
        if abs(step) <= 1e-13 * (1.0 + abs(eta)) or step * before < 0.0:
            break
        before = step
    mu = link.at(eta)
    s = (1.0 / v + w * link.variance(mu)) ** -0.5
    # Where the expansion asks for more than one standard deviation it cannot be trusted.
    eta -= max(-s, min(s, 0.5 * s**4 * (w * link.skewness(mu))))
    return eta, w * link.variance(link.at(eta))


def _inverse(H: FloatArray) -> FloatArray:
    half = np.linalg.inv(np.linalg.cholesky(H))
    result: FloatArray = half.T @ half
    return result


@dataclass(frozen=True)
class Posterior:
    """θ ~ N(θ̄, H⁻¹). θ̄ and H are the truth; H⁻¹ follows them, and is derived afresh at times."""

    theta: FloatArray
    precision: FloatArray
    covariance: FloatArray
    rows: float
    since: int = 0  # rows since the covariance was derived

    @classmethod
    def of(cls, theta: FloatArray, precision: FloatArray, rows: float) -> Self:
        return cls(theta, precision, _inverse(precision), rows)

    def learned(
        self, link: Link, X: FloatArray, y: FloatArray, dispersion: float = 0.0
    ) -> "Posterior":
        """Rows one after another, each with the posterior so far as its prior."""
        theta, H, C = self.theta.copy(), self.precision.copy(), self.covariance.copy()
        since = self.since
        for x, reward in zip(X, y.tolist(), strict=True):
            u = C @ x  # a row moves θ along H⁻¹x alone
            m, v = float(theta @ x), float(u @ x)
            if v > 0.0:
                w = 1.0 / (1.0 + dispersion * link.at(min(m, _HIGHEST))) if dispersion else 1.0
                eta, weight = absorb(link, m, v, reward, w)
                theta += ((eta - m) / v) * u
                u *= math.sqrt(weight / (1.0 + weight * v))
                C -= np.multiply.outer(u, u)
                row = math.sqrt(weight) * x
                H += np.multiply.outer(row, row)
            since += 1
            if since == _REFRESH:
                C, since = _inverse(H), 0
        return Posterior(theta, H, C, self.rows + len(y), since)

    def fitted(
        self, link: Link, X: FloatArray, y: FloatArray, w: FloatArray, rows: float | None = None
    ) -> "Posterior":
        """All rows at once, weighted: Newton's method to the mode, and from there to the mean.

        They count as so many rows: the sum of their weights unless said.
        """
        theta, H0 = self.theta, self.precision

        def loss(theta: FloatArray) -> float:
            eta, move = X @ theta, theta - self.theta
            return float(0.5 * move @ H0 @ move + w @ (link.log_partition(eta) - y * eta))

        def curvature(mu: FloatArray) -> FloatArray:
            H: FloatArray = H0 + (X.T * (w * link.variance(mu))) @ X
            return H

        for _ in range(_STEPS):
            mu = link.mean(X @ theta)
            gradient = H0 @ (theta - self.theta) + X.T @ (w * (mu - y))
            step = np.linalg.solve(curvature(mu), gradient)
            gain, scale, before = float(gradient @ step), 1.0, loss(theta)
            # Far from the mode a whole step may overshoot; near it, the loss is all rounding.
            while gain > 1e-6 and loss(theta - scale * step) > (
                before - 0.25 * scale * gain + 1e-13 * abs(before)
            ):
                scale *= 0.5
            theta = theta - scale * step
            if gain <= 1e-16:
                break
        else:
            raise RuntimeError(f"Newton's method has not converged after {_STEPS} steps")
        mu = link.mean(X @ theta)
        H = curvature(mu)
        C = _inverse(H)
        shift = 0.5 * C @ (X.T @ (w * link.skewness(mu) * np.einsum("ij,ij->i", X @ C, X)))
        size = math.sqrt(float(shift @ H @ shift) / len(shift))
        theta = theta - shift / max(1.0, size)  # as for one row: not beyond what is uncertain
        rows = float(w.sum()) if rows is None else rows
        return Posterior.of(theta, curvature(link.mean(X @ theta)), self.rows + rows)

    def absorbed(
        self,
        link: Link,
        theta: FloatArray,
        X: FloatArray,
        y: FloatArray,
        w: FloatArray,
        rows: float,
    ) -> "Posterior":
        """With these rows as they look from θ: their likelihood to second order around it."""
        if not len(y):
            return self
        eta = X @ theta
        mu = link.mean(eta)
        weight = w * link.variance(mu)
        H = self.precision + (X.T * weight) @ X
        b = self.precision @ self.theta + X.T @ (w * (y - mu) + weight * eta)
        centre = np.asarray(np.linalg.solve(H, b), dtype=np.float64)
        return Posterior.of(centre, H, self.rows + rows)

    def discounted(self, prior: "Posterior", factor: float) -> "Posterior":
        """The prior plus `factor` of the information, H and Hθ̄, that came since."""
        H0, H = prior.precision, self.precision
        b0, b = H0 @ prior.theta, H @ self.theta
        H = H0 + factor * (H - H0)
        C = _inverse(H)
        rows = prior.rows + factor * (self.rows - prior.rows)
        return Posterior(C @ (b0 + factor * (b - b0)), H, C, rows)

    def state(self) -> dict[str, Any]:
        arrays = ("theta", "precision", "covariance")
        return {
            **{name: pack(getattr(self, name)) for name in arrays},
            "rows": self.rows,
            "since": self.since,
        }

    @classmethod
    def restore(cls, state: Mapping[str, Any], size: int) -> Self:
        theta, H, C = (unpack(state, name) for name in ("theta", "precision", "covariance"))
        if theta.shape != (size,) or H.shape != (size, size) or C.shape != H.shape:
            raise ValueError(
                f"state has a posterior of shapes {theta.shape}, {H.shape} and {C.shape} "
                f"for {size} coefficients"
            )
        return cls(theta, H, C, entry(state, "rows"), entry(state, "since"))
