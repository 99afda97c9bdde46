"""Recent rows of a generalised linear belief, which are fitted together again as they pile up."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.links import Link, Posterior
from coaf.bandit.state import entry, pack, unpack

KEPT = 4096  # rows
_LEAST, _MOST = 16, 1024  # rows between two fits
_NEGLIGIBLE = 1e-12  # weights from which a row is gone
_ROUNDS = 3  # of weighting rows by their means, and fitting them

_COLUMNS = ("features", "rewards", "weights")
Chunk = tuple[FloatArray, FloatArray, float]  # features, rewards, weight


def next_fit(rows: int) -> int:
    """The next number of rows at which all are fitted together: about a quarter more.

    Examples
    --------
    >>> [next_fit(n) for n in (0, 15, 16, 100, 10_000)]
    [16, 16, 32, 125, 10529]
    """
    at = 0
    while at <= rows:
        at += max(_LEAST, min(at // 4, _MOST))
    return at


def dispersion_of(y: FloatArray, mu: FloatArray, weights: FloatArray, free: float) -> float:
    """α such that variances μ + αμ² are what rewards show: Σ (y − μ)²/(μ + αμ²) = n − free.

    `free` coefficients were fitted to these rows. 0 where counts vary no more than Poisson's.

    Examples
    --------
    >>> rng, mu = np.random.default_rng(0), np.full(4000, 20.0)
    >>> y = rng.poisson(mu * rng.gamma(4.0, 0.25, 4000))
    >>> round(dispersion_of(y.astype(float), mu, np.ones(4000), 1.0), 2)
    0.26
    """
    left = float(weights.sum()) - free
    if left <= 0.0:
        return 0.0
    squares, mu = weights * (y - mu) ** 2, np.maximum(mu, 1e-12)
    low, high = 0.0, float((squares / mu**2).sum()) / left
    if float((squares / mu).sum()) <= left:
        return 0.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        enough = float((squares / (mu + middle * mu**2)).sum()) <= left
        low, high = (low, middle) if enough else (middle, high)
    return high


@dataclass(frozen=True)
class LastRows:
    """The last rows, the posterior of all before them, and the one of the last fit.

    A row that is learned alone is weighted by the mean expected at that moment. If expectations
    change, as when a good square is followed by a bad one, those weights are wrong for good. So
    the last `KEPT` rows are fitted together again whenever they have grown by a quarter, at least
    every 1,024 rows, and, looking every 16, when the estimate has moved by two standard deviations
    since the last fit: a cost per row that does not grow. Older rows keep their last weights.
    """

    base: Posterior
    last: Posterior
    chunks: tuple[Chunk, ...] = ()
    seen: int = 0
    dispersion: float = 0.0  # by the last fit, unless stated

    @classmethod
    def after(cls, known: Posterior, dispersion: float) -> Self:
        """No rows, after what is known."""
        return cls(known, known, dispersion=dispersion)

    def _all(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        size = len(self.base.theta)
        X = np.concatenate([np.empty((0, size)), *(x for x, _, _ in self.chunks)])
        y = np.concatenate([np.empty(0), *(y for _, y, _ in self.chunks)])
        weights = np.concatenate([np.empty(0), *(np.full(len(y), w) for _, y, w in self.chunks)])
        return X, y, weights

    def add(
        self,
        link: Link,
        known: Posterior,
        X: FloatArray,
        y: FloatArray,
        stated: float | None,
    ) -> tuple["LastRows", Posterior]:
        """Learn rows one after another; now and then, all kept ones together.

        Rewards have the dispersion `stated`, or that of the last fit.
        """
        recent, first = self, 0
        while first < len(y):
            stop = min(next_fit(recent.seen), recent.seen - recent.seen % _LEAST + _LEAST)
            last = min(len(y), first + stop - recent.seen)
            some, rewards = X[first:last], y[first:last]
            known = known.learned(link, some, rewards, recent.dispersion)
            chunks, seen = (*recent.chunks, (some, rewards, 1.0)), recent.seen + last - first
            recent = replace(recent, chunks=chunks, seen=seen)
            if seen == next_fit(seen - 1) or (seen == stop and recent.moved(known)):
                recent, known = recent.together(link, stated)
            first = last
        return recent, known

    def moved(self, known: Posterior) -> bool:
        """Whether the estimate is more than two standard deviations from the last fit's."""
        move = known.theta - self.last.theta
        return float(move @ self.last.precision @ move) > 4.0

    def together(self, link: Link, stated: float | None) -> tuple["LastRows", Posterior]:
        """All kept rows fitted at once; what is beyond `KEPT` goes into the base as it is now."""
        if not self.chunks:
            return self, self.base
        X, y, weights = self._all()
        rows = float(weights.sum())
        dispersion = 0.0 if stated is None else stated
        known, lighter = self.base.fitted(link, X, y, weights), weights
        # How rows are weighted depends on their means, and these on how rows are weighted.
        for _ in range(_ROUNDS if stated is None or stated > 0.0 else 0):
            mu = link.mean(X @ known.theta)
            if stated is None:
                free = len(known.theta) - float(np.vdot(self.base.precision, known.covariance))
                dispersion = dispersion_of(y, mu, weights, free)
            lighter = weights / (1.0 + dispersion * mu)
            known = self.base.fitted(link, X, y, lighter, rows)
        over = max(len(y) - KEPT, 0)
        base = self.base.absorbed(
            link, known.theta, X[:over], y[:over], lighter[:over], float(weights[:over].sum())
        )
        chunks = _chunks(X[over:], y[over:], weights[over:])
        return LastRows(base, known, chunks, self.seen, dispersion), known

    def discounted(self, prior: Posterior, factor: float) -> "LastRows":
        """Every row at `factor` of its weight."""
        lighter = ((X, y, w * factor) for X, y, w in self.chunks)
        kept = tuple(chunk for chunk in lighter if chunk[2] > _NEGLIGIBLE)
        base, last = (p.discounted(prior, factor) for p in (self.base, self.last))
        return LastRows(base, last, kept, self.seen, self.dispersion)

    def state(self) -> dict[str, Any]:
        rows = {name: pack(part) for name, part in zip(_COLUMNS, self._all(), strict=True)}
        fits = {"base": self.base.state(), "last": self.last.state()}
        return {**fits, "seen": self.seen, "dispersion": self.dispersion, **rows}

    @classmethod
    def restore(cls, state: Mapping[str, Any], size: int) -> Self:
        X, y, weights = (unpack(state, name) for name in _COLUMNS)
        if X.shape != (len(y), size) or weights.shape != y.shape:
            raise ValueError(f"state has rows of shape {X.shape} for {size} coefficients")
        base, last = (Posterior.restore(entry(state, name), size) for name in ("base", "last"))
        # Older states know of no dispersion.
        dispersion = float(state.get("dispersion", 0.0))
        return cls(base, last, _chunks(X, y, weights), entry(state, "seen"), dispersion)


def _chunks(X: FloatArray, y: FloatArray, weights: FloatArray) -> tuple[Chunk, ...]:
    """Runs of rows of equal weight."""
    edges = np.flatnonzero(np.diff(weights)) + 1
    parts = (np.split(column, edges) for column in (X, y, weights))
    return tuple((x, r, float(w[0])) for x, r, w in zip(*parts, strict=True) if len(r))
