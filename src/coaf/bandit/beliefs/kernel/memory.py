"""What a kernel belief has learned: Bayesian linear regression on a basis that grows."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coaf.bandit.arrays import FloatArray, number
from coaf.bandit.beliefs.kernel.basis import Basis, Covariance, solve
from coaf.bandit.state import entry, pack, unpack

FIRST, LAST, STEP = 1e-6, 0.4, 1.25  # novelty: share of the variance that makes a row a point
_CHUNK = 256


@dataclass(frozen=True)
class Memory:
    """The posterior N(V⁻¹ b, V⁻¹) of the weights w of f(x) = w·φ(x) + rest, w ~ N(0, I) before.

    Attributes
    ----------
    basis
        φ.
    precision, moment
        V = I + Σ φ φᵀ/s² and b = Σ φ y/s², with s² = noise² + k(x, x) − ‖φ(x)‖² for each row.
    rows, missed
        How many rows there were, and the sum of their shares 1 − ‖φ(x)‖²/k(x, x).
    novelty
        The share from which a row becomes a point.
    """

    basis: Basis
    precision: FloatArray
    moment: FloatArray
    rows: float
    missed: float
    novelty: float

    @classmethod
    def empty(cls, covariance: Covariance, dim: int) -> "Memory":
        """Nothing learned."""
        basis = Basis.empty(covariance, dim)
        return cls(basis, np.zeros((0, 0)), np.zeros(0), 0.0, 0.0, FIRST)

    def learned(self, X: FloatArray, y: FloatArray, noise: float, points: int) -> "Memory":
        """With these rows; those that are news become points while there is room."""
        known, start, chunk = self, 0, 16
        while start < len(X):
            rows = slice(start, start + chunk)
            phi = known.basis(X[rows])
            rest = known.basis.residual(phi)
            news = np.flatnonzero(rest > known.novelty * known.basis.covariance.variance)
            full = len(known.basis) >= points and known.novelty >= LAST
            count = len(phi) if full or not len(news) else int(news[0])
            known = known._absorbed(phi[:count], y[rows][:count], noise**2 + rest[:count], rest)
            start += count
            # New points come in clusters: after one, few rows are looked at ahead.
            chunk = min(2 * chunk, _CHUNK) if count == len(phi) else 4
            if count < len(phi):
                room = len(known.basis) < points
                known = known._grown(X[start]) if room else known._thinned()
        return known

    def _absorbed(
        self, phi: FloatArray, y: FloatArray, variance: FloatArray, rest: FloatArray
    ) -> "Memory":
        if not len(y):
            return self
        scaled = phi / np.sqrt(variance)[:, None]
        return replace(
            self,
            precision=self.precision + scaled.T @ scaled,
            moment=self.moment + phi.T @ (y / variance),
            rows=self.rows + len(y),
            missed=self.missed + float(rest[: len(y)].sum()) / self.basis.covariance.variance,
        )

    def _grown(self, x: FloatArray) -> "Memory":
        return self.seen_from(self.basis.grown(x))

    def _thinned(self) -> "Memory":
        """Fewer points, further apart."""
        novelty = min(STEP * self.novelty, LAST)
        return replace(self.seen_from(self.basis.thinned(novelty)), novelty=novelty)

    def seen_from(self, basis: Basis) -> "Memory":
        """The same knowledge in terms of another basis.

        With w = A w' + e, e ~ N(0, R), what is known of w, Λ = V − I and b, tells of w' that
        Λ' = Aᵀ (Λ⁻¹ + R)⁻¹ A and b' = Aᵀ (I + Λ R)⁻¹ b. From a basis with more points it is exact.
        """
        m, new = len(self.basis), len(basis)
        if basis.extends(self.basis):
            V, b = np.eye(new), np.zeros(new)
            V[:m, :m], b[:m] = self.precision, self.moment
            return replace(self, basis=basis, precision=V, moment=b)
        eye, known = np.eye(m), self.precision - np.eye(m)
        A = self.basis.coefficients @ basis(self.basis.points)
        R = eye - A @ A.T
        solved = np.linalg.solve(eye + known @ R, np.column_stack([known @ A, self.moment]))
        information = A.T @ solved[:, :new]
        V = np.eye(new) + 0.5 * (information + information.T)
        return replace(self, basis=basis, precision=V, moment=A.T @ solved[:, new])

    def faded(self, prior: "Memory", factor: float) -> "Memory":
        """The prior and `factor` of what was learned since, on the points there are now."""
        before = prior.seen_from(self.basis)
        return replace(
            self,
            precision=before.precision + factor * (self.precision - before.precision),
            moment=before.moment + factor * (self.moment - before.moment),
            rows=before.rows + factor * (self.rows - before.rows),
            missed=before.missed + factor * (self.missed - before.missed),
        )

    def posterior(self) -> tuple[FloatArray, FloatArray]:
        """R, lower, with R Rᵀ = V; and the mean V⁻¹ b of the weights."""
        R: FloatArray = np.linalg.cholesky(self.precision).astype(np.float64, copy=False)
        return R, solve(R, solve(R, self.moment), transposed=True)

    def root(self) -> FloatArray:
        """V^(−½), the symmetric one, which the same points in another order only turn."""
        values, vectors = np.linalg.eigh(self.precision)
        root: FloatArray = (vectors / np.sqrt(values)) @ vectors.T
        return root

    def state(self) -> dict[str, Any]:
        """Everything but the covariance, as JSON."""
        return {
            "points": pack(self.basis.points),
            "coefficients": pack(self.basis.coefficients),
            "precision": pack(self.precision),
            "moment": pack(self.moment),
            **{name: getattr(self, name) for name in ("rows", "missed", "novelty")},
        }

    @classmethod
    def restore(cls, state: Mapping[str, Any], covariance: Covariance, dim: int) -> "Memory":
        """What `state` was taken from."""
        points = unpack(state, "points")
        m = len(points)
        shapes = {"points": (m, dim), "coefficients": (m, m), "precision": (m, m), "moment": (m,)}
        arrays = {name: unpack(state, name) for name in shapes}
        for name, shape in shapes.items():
            if arrays[name].shape != shape:
                raise ValueError(
                    f"state entry {name!r} has shape {arrays[name].shape}, expected {shape}"
                )
        basis = Basis(covariance, points, arrays["coefficients"])
        numbers = [number(name, entry(state, name)) for name in ("rows", "missed", "novelty")]
        return cls(basis, arrays["precision"], arrays["moment"], *numbers)
