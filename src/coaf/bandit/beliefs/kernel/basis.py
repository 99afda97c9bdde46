"""Covariances, and the orthonormal basis that grows with the points a kernel belief keeps."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from coaf.bandit.arrays import FloatArray, IntArray

WAVES = 64  # of a random function
KernelKind = Literal["rbf", "matern"]


@dataclass(frozen=True)
class Part:
    """One term of a covariance: signal² κ(D), D² = Σ_c (x_c − z_c)²/ℓ_c² over these columns."""

    columns: IntArray
    length_scale: FloatArray
    signal: float


def distances(X: FloatArray, Z: FloatArray, part: Part) -> FloatArray:
    """D² between the rows of X and of Z.

    Summed column by column: ‖x‖² − 2 x·z + ‖z‖² is quicker, but loses the digits of stage
    coordinates that are large and close together.
    """
    total = np.zeros((len(X), len(Z)))
    for column, length in zip(part.columns, part.length_scale, strict=True):
        total += np.subtract.outer(X[:, column] / length, Z[:, column] / length) ** 2
    return total


def correlation(squares: FloatArray, kind: KernelKind) -> FloatArray:
    """κ(D): e^(−D²/2), or (1 + √3 D) e^(−√3 D) for "matern" (ν = 3/2)."""
    if kind == "rbf":
        return np.asarray(np.exp(-0.5 * squares))
    a = np.sqrt(3.0 * squares)
    return np.asarray((1.0 + a) * np.exp(-a))


def steepness(squares: FloatArray, kind: KernelKind) -> FloatArray:
    """−2 dκ/dD², so that dκ/dln ℓ_c is this times (x_c − z_c)²/ℓ_c²."""
    if kind == "rbf":
        return np.asarray(np.exp(-0.5 * squares))
    return np.asarray(3.0 * np.exp(-np.sqrt(3.0 * squares)))


@dataclass(frozen=True)
class Covariance:
    """The sum of its parts, all of one kind."""

    parts: Sequence[Part]
    kind: KernelKind

    def __call__(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        """k(x, z) for the rows of X and of Z."""
        total = np.zeros((len(X), len(Z)))
        for part in self.parts:
            total += part.signal**2 * correlation(distances(X, Z, part), self.kind)
        return total

    def draw(self, rng: np.random.Generator) -> Callable[[FloatArray], FloatArray]:
        """A random function with this covariance: waves at frequencies of the kernel's spectrum.

        Frequencies are drawn anew each time, so that over draws the covariance is k itself, not
        an estimate of it; and k(x, x) is right for each choice of them (Rahimi and Recht, 2007).
        """
        terms = []
        for part in self.parts:
            w = rng.standard_normal((len(part.columns), WAVES)) / part.length_scale[:, None]
            if self.kind == "matern":  # Student's t with 2ν = 3 degrees of freedom
                w *= np.sqrt(3.0 / rng.chisquare(3.0, WAVES))
            heights = rng.standard_normal((2, WAVES)) * part.signal / math.sqrt(WAVES)
            terms.append((part.columns, w, heights))

        def function(X: FloatArray) -> FloatArray:
            total = np.zeros(len(X))
            for columns, w, (a, b) in terms:
                phases = X[:, columns] @ w
                total += np.cos(phases) @ a + np.sin(phases) @ b
            return total

        return function

    @property
    def variance(self) -> float:
        """k(x, x), the same everywhere."""
        return sum(part.signal**2 for part in self.parts)


def solve(R: FloatArray, b: FloatArray, *, transposed: bool = False) -> FloatArray:
    """R⁻¹ b, or R⁻ᵀ b, for R lower triangular."""
    from scipy.linalg import solve_triangular

    if not len(R):
        return b
    solved: FloatArray = solve_triangular(
        R, b, lower=True, trans=int(transposed), check_finite=False
    )
    return solved


@dataclass(frozen=True)
class Basis:
    """Functions φ_1, φ_2, ..., orthonormal in the space of the kernel, that span k(·, z).

    φ(x) = C k(Z, x), with C the inverse of the Cholesky factor of k(Z, Z). A point more adds a
    function, and leaves those that were there alone: what was learned of them stays true. (They
    are the Newton basis of Müller and Schaback, 2009; their squares sum to Nyström's k̂(x, x).)
    """

    covariance: Covariance
    points: FloatArray
    coefficients: FloatArray

    @classmethod
    def empty(cls, covariance: Covariance, dim: int) -> "Basis":
        """No points yet."""
        return cls(covariance, np.zeros((0, dim)), np.zeros((0, 0)))

    def __len__(self) -> int:
        return len(self.points)

    def __call__(self, X: FloatArray) -> FloatArray:
        """φ(x) for each row."""
        phi: FloatArray = self.covariance(X, self.points) @ self.coefficients.T
        return phi

    def residual(self, phi: FloatArray) -> FloatArray:
        """k(x, x) − ‖φ(x)‖², the variance that the points say nothing of."""
        missing: FloatArray = self.covariance.variance - np.einsum("ij,ij->i", phi, phi)
        return np.maximum(missing, 0.0)

    def grown(self, x: FloatArray) -> "Basis":
        """With the point x, which must not lie in the span of the others."""
        m = len(self)
        phi = self.coefficients @ self.covariance(self.points, x[None])[:, 0]
        d = math.sqrt(self.covariance.variance - float(phi @ phi))
        C = np.zeros((m + 1, m + 1))
        C[:m, :m] = self.coefficients
        C[m, :m] = -(phi @ self.coefficients) / d
        C[m, m] = 1.0 / d
        return Basis(self.covariance, np.vstack([self.points, x]), C)

    def thinned(self, novelty: float) -> "Basis":
        """With those points alone that are news to those before them."""
        m, limit = len(self), novelty * self.covariance.variance
        K, L, kept = self.covariance(self.points, self.points), np.zeros((m, m)), list[int]()
        left = np.diag(K).copy()
        for j in range(m):
            if left[j] > limit:
                n = len(kept)
                L[:, n] = (K[:, j] - L[:, :n] @ L[j, :n]) / math.sqrt(left[j])
                left -= L[:, n] ** 2
                kept.append(j)
        C = solve(L[kept, : len(kept)], np.eye(len(kept)))
        return Basis(self.covariance, self.points[kept], np.ascontiguousarray(C))

    def extends(self, other: "Basis") -> bool:
        """Whether it has the points of the other, and perhaps some more."""
        return np.array_equal(self.points[: len(other)], other.points)
