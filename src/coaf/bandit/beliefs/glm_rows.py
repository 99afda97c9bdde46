"""Recent rows of a generalised linear belief, which are fitted together again as they pile up."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.links import Link, Posterior
from coaf.bandit.state import entry, pack, unpack

KEPT = 4096  # rows
_LEAST, _MOST = 16, 1024  # rows between two fits
_NEGLIGIBLE = 1e-12  # weights from which a row is gone

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


@dataclass(frozen=True)
class Recent:
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

    @classmethod
    def after(cls, known: Posterior) -> Self:
        """No rows, after what is known."""
        return cls(known, known)

    def _all(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        size = len(self.base.theta)
        X = np.concatenate([np.empty((0, size)), *(x for x, _, _ in self.chunks)])
        y = np.concatenate([np.empty(0), *(y for _, y, _ in self.chunks)])
        weights = np.concatenate([np.empty(0), *(np.full(len(y), w) for _, y, w in self.chunks)])
        return X, y, weights

    def add(
        self, link: Link, known: Posterior, X: FloatArray, y: FloatArray
    ) -> tuple["Recent", Posterior]:
        """Learn rows one after another; now and then, all kept ones together."""
        recent, first = self, 0
        while first < len(y):
            stop = min(next_fit(recent.seen), recent.seen - recent.seen % _LEAST + _LEAST)
            last = min(len(y), first + stop - recent.seen)
            some, rewards = X[first:last], y[first:last]
            known = known.learned(link, some, rewards)
            chunks, seen = (*recent.chunks, (some, rewards, 1.0)), recent.seen + last - first
            recent = Recent(recent.base, recent.last, chunks, seen)
            if seen == next_fit(seen - 1) or (seen == stop and recent.moved(known)):
                recent, known = recent.together(link)
            first = last
        return recent, known

    def moved(self, known: Posterior) -> bool:
        """Whether the estimate is more than two standard deviations from the last fit's."""
        move = known.theta - self.last.theta
        return float(move @ self.last.precision @ move) > 4.0

    def together(self, link: Link) -> tuple["Recent", Posterior]:
        """All kept rows fitted at once; what is beyond `KEPT` goes into the base as it is now."""
        if not self.chunks:
            return self, self.base
        X, y, weights = self._all()
        known = self.base.fitted(link, X, y, weights)
        over = max(len(y) - KEPT, 0)
        base = self.base.absorbed(link, known.theta, X[:over], y[:over], weights[:over])
        chunks = _chunks(X[over:], y[over:], weights[over:])
        return Recent(base, known, chunks, self.seen), known

    def discounted(self, prior: Posterior, factor: float) -> "Recent":
        """Every row at `factor` of its weight."""
        lighter = ((X, y, w * factor) for X, y, w in self.chunks)
        kept = tuple(chunk for chunk in lighter if chunk[2] > _NEGLIGIBLE)
        base, last = (p.discounted(prior, factor) for p in (self.base, self.last))
        return Recent(base, last, kept, self.seen)

    def state(self) -> dict[str, Any]:
        rows = {name: pack(part) for name, part in zip(_COLUMNS, self._all(), strict=True)}
        return {"base": self.base.state(), "last": self.last.state(), "seen": self.seen, **rows}

    @classmethod
    def restore(cls, state: Mapping[str, Any], size: int) -> Self:
        X, y, weights = (unpack(state, name) for name in _COLUMNS)
        if X.shape != (len(y), size) or weights.shape != y.shape:
            raise ValueError(f"state has rows of shape {X.shape} for {size} coefficients")
        base, last = (Posterior.restore(entry(state, name), size) for name in ("base", "last"))
        return cls(base, last, _chunks(X, y, weights), entry(state, "seen"))


def _chunks(X: FloatArray, y: FloatArray, weights: FloatArray) -> tuple[Chunk, ...]:
    """Runs of rows of equal weight."""
    edges = np.flatnonzero(np.diff(weights)) + 1
    parts = (np.split(column, edges) for column in (X, y, weights))
    return tuple((x, r, float(w[0])) for x, r, w in zip(*parts, strict=True) if len(r))
