"""The settings of a kernel belief that make labelled examples likeliest."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import FloatArray, IntArray, floats
from coaf.bandit.beliefs.kernel.basis import KernelKind, Part, correlation, distances, steepness
from coaf.bandit.beliefs.rows import check_rewards
from coaf.bandit.threads import one_thread

MOST = 300  # examples looked at: the cost of one look grows with their cube
STARTS = (0.2, 1.0, 4.0)  # length scales that the search starts from, in units of the data's spread
_JITTER = 1e-10


@one_thread
def likeliest(
    features: npt.ArrayLike,
    rewards: npt.ArrayLike,
    *,
    space: Sequence[int] = (),
    kind: KernelKind = "rbf",
    per_feature: bool = False,
) -> dict[str, Any]:
    """Keywords for `Kernel` that maximise the marginal likelihood of labelled examples.

    Parameters
    ----------
    features, rewards : (n, dim), (n,)
        Of more than 300 rows, 300 are looked at, evenly spaced.
    space
        Columns that are coordinates, which get a covariance of their own.
    kind
        "rbf" or "matern".
    per_feature
        A length scale for each feature, which needs many examples. Otherwise length scales are in
        proportion to the spread of their columns, and coordinates share one.

    Notes
    -----
    ln p(y) = −½ (y − ȳ)ᵀ K⁻¹ (y − ȳ) − ½ ln det K − n/2 ln 2π with K = k(X, X) + noise² I
    (Rasmussen and Williams, 2006, eq. 5.8), by L-BFGS on the logarithms from three starts.

    Examples
    --------
    >>> X = np.linspace(0.0, 10.0, 80)[:, None]
    >>> found = likeliest(X, np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=80))
    >>> 1.0 < found["length_scale"][0] < 4.0, 0.07 < found["noise"] < 0.13
    (True, True)
    """
    from scipy.optimize import minimize

    X = floats("features", features, ndim=2)
    y = check_rewards(rewards, len(X))
    if len(y) < 3 or np.ptp(y) == 0.0:
        raise ValueError(
            f"rewards must be at least 3, and not all equal, to choose settings by; got {len(y)}"
        )
    if len(y) > MOST:
        rows = np.linspace(0, len(y) - 1, MOST).astype(np.int64)
        X, y = X[rows], y[rows]
    search = _Search(X, y, space, kind, per_feature)
    found = [
        minimize(search, start, jac=True, method="L-BFGS-B", bounds=search.bounds)
        for start in search.starts()
    ]
    return search.settings(min(found, key=lambda result: float(result.fun)).x)


def columns_of(space: Sequence[int], dim: int) -> tuple[IntArray, IntArray]:
    """The columns that are features, and those that are coordinates."""
    chosen = np.array(space, dtype=object).reshape(-1)
    fits = all(isinstance(c, int | np.integer) and 0 <= c < dim for c in chosen)
    if not fits or len(set(chosen)) < len(chosen):
        raise ValueError(f"space is {space!r}; it must be distinct columns in 0 .. {dim - 1}")
    coordinates = chosen.astype(np.int64)
    return np.setdiff1d(np.arange(dim), coordinates), coordinates


def lengths_of(name: str, value: npt.ArrayLike, columns: IntArray) -> FloatArray:
    """One length scale for each column."""
    given = floats(name, np.atleast_1d(np.asarray(value, dtype=np.float64)), ndim=1)
    if len(given) not in (1, len(columns)) or not (given > 0.0).all():
        raise ValueError(
            f"{name} is {value!r}; it must be a positive number, or {len(columns)} of them"
        )
    return np.broadcast_to(given, len(columns)).copy()


class _Search:
    """−ln p(y) and its gradient in (ln of lengths, ln of signals, ln of noise)."""

    def __init__(
        self,
        X: FloatArray,
        y: FloatArray,
        space: Sequence[int],
        kind: KernelKind,
        per_feature: bool,
    ) -> None:
        self.space, self.kind = tuple(int(c) for c in space), kind
        self.mean, self.spread = float(y.mean()), float(y.std())
        self.X, self.y = X, y - self.mean
        self.columns = [c for c in columns_of(space, X.shape[1]) if len(c)]
        self.units: list[FloatArray] = []  # lengths at ln = 0
        owners: list[FloatArray] = []  # which parameter is the length of which column
        for columns in self.columns:
            spread = X[:, columns].std(axis=0)
            spread[spread == 0.0] = 1.0
            coordinates = columns[0] in self.space
            if coordinates:  # a micrometre is as long along x as along y
                spread[:] = spread.max()
            self.units.append(spread * math.sqrt(len(columns)))
            one = np.ones((1, len(columns)))
            owners.append(np.eye(len(columns)) if per_feature and not coordinates else one)
        self.owners = owners
        self.lengths = sum(len(owner) for owner in owners)
        signal, noise = (math.log(0.03), math.log(10.0)), (math.log(0.05), math.log(2.0))
        reach = (-math.log(50.0), math.log(50.0))
        self.bounds = [reach] * self.lengths + [signal] * len(owners) + [noise]

    def starts(self) -> list[FloatArray]:
        """Half of the variance signal, half noise, and lengths from short to long."""
        half = math.log(math.sqrt(0.5))
        rest = [half - 0.5 * math.log(len(self.owners))] * len(self.owners) + [half]
        return [np.array([math.log(start)] * self.lengths + rest) for start in STARTS]

    def parts(self, at: FloatArray) -> list[Part]:
        """The covariance at these parameters."""
        parts, first = [], 0
        for i, (columns, unit, owner) in enumerate(
            zip(self.columns, self.units, self.owners, strict=True)
        ):
            logs = at[first : first + len(owner)] @ owner
            signal = self.spread * math.exp(at[self.lengths + i])
            parts.append(Part(columns, unit * np.exp(logs), signal))
            first += len(owner)
        return parts

    def __call__(self, at: FloatArray) -> tuple[float, FloatArray]:
        from scipy.linalg import cho_solve

        n, noise2 = len(self.y), (self.spread * math.exp(at[-1])) ** 2
        parts = self.parts(at)
        squares = [distances(self.X, self.X, part) for part in parts]
        terms = [
            part.signal**2 * correlation(square, self.kind)
            for part, square in zip(parts, squares, strict=True)
        ]
        K = np.sum(terms, axis=0) + (noise2 + _JITTER * self.spread**2) * np.eye(n)
        L = np.linalg.cholesky(K)
        inverse = cho_solve((L, True), np.eye(n), check_finite=False)
        alpha = inverse @ self.y
        value = 0.5 * float(self.y @ alpha) + float(np.log(np.diag(L)).sum())
        W = 0.5 * (inverse - np.outer(alpha, alpha))  # d value = Σ W · dK
        lengths: list[FloatArray] = []
        for part, square, owner in zip(parts, squares, self.owners, strict=True):
            slope = W * part.signal**2 * steepness(square, self.kind)
            scaled = self.X[:, part.columns] / part.length_scale
            # Σ_ij slope_ij (x_ic − x_jc)², for each column c
            each = 2.0 * (
                slope.sum(axis=1) @ scaled**2 - np.einsum("ic,ij,jc->c", scaled, slope, scaled)
            )
            lengths.append(owner @ each)
        signals = [2.0 * float(np.sum(W * term)) for term in terms]
        noise = 2.0 * noise2 * float(np.trace(W))
        return value, np.concatenate([*lengths, signals, [noise]])

    def settings(self, at: FloatArray) -> dict[str, Any]:
        """Keywords for `Kernel`."""
        noise = self.spread * math.exp(at[-1])
        found: dict[str, Any] = {"kind": self.kind, "noise": noise, "prior_mean": self.mean}
        for part in self.parts(at):
            if part.columns[0] in self.space:
                found["space"] = self.space
                found["space_length"] = float(part.length_scale[0])
                found["space_signal"] = part.signal
            else:
                found["length_scale"] = part.length_scale.tolist()
                found["signal"] = part.signal
        return found
