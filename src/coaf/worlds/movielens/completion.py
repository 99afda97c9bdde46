"""Matrix completion: the ratings nobody gave, predicted by minimising a Schatten-p norm.

Nie, Huang and Ding (2012) minimise ½ Σ_observed (R − X)² + λ Σ_k σ_k(X)^p. We do it by
majorisation: fill the gaps with the present X, then take the proximal step, which shrinks singular
values. For p = 1 this is soft-impute (Mazumder, Hastie and Tibshirani 2010); for p < 1 large
singular values are shrunk less, so fewer of them are needed. Exact steps never raise the objective;
ours follow the leading singular values only.

What is completed are the ratings less an offset of the film and one of the user.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import FloatArray
from coaf.worlds.movielens.ratings import Ratings
from coaf.worlds.progress import Progress

Floats32 = npt.NDArray[np.float32]

RANK = 100  # singular values that are followed
PATH = np.geomspace(0.9, 0.1, 12)  # thresholds to try, as shares of the largest singular value
_STEPS, _LAST_STEPS, _STILL = 12, 60, 1e-3  # steps along the path, at its end, and when to stop
_ROWS = 1024  # users at a time, so that memory does not grow with them


@dataclass(frozen=True, slots=True, eq=False)
class Completion:
    """Completed ratings in factors, and how well held-out ratings were predicted.

    Attributes
    ----------
    p, threshold, rank
        The norm, the singular value below which all are cut, and how many are left.
    held_out, film_mean
        Root mean square errors on ratings that neither fitted nor chose anything: of the fit that
        was chosen, and of predicting each film's mean. The final fit has these ratings as well.
    """

    p: float
    threshold: float
    rank: int
    held_out: float
    film_mean: float
    left: FloatArray
    right: FloatArray

    def predict(self, low: float, high: float) -> Floats32:
        """Every film's rating by every user, (films, users), within the scale."""
        whole = np.empty((len(self.right), len(self.left)), dtype=np.float32)
        for first in range(0, len(self.left), _ROWS):
            rows = slice(first, first + _ROWS)
            whole[:, rows] = np.clip(self.right @ self.left[rows].T, low, high)
        return whole


def complete(
    ratings: Ratings,
    *,
    powers: Sequence[float] = (1.0, 0.5),
    rank: int = RANK,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[Completion]:
    """Complete with each p; the one that predicts best comes first, fitted to all ratings.

    A tenth of the ratings is held out: one half of it chooses p and the threshold, the other half
    judges. The winner is then fitted again with nothing held out.
    """
    for p in powers:
        if not 0.0 < p <= 1.0:
            raise ValueError(f"p is {p}; the Schatten-p norm needs 0 < p <= 1")
    rng = np.random.default_rng([seed, 5])
    fold = rng.permutation(len(ratings.values)) % 20
    fit, choose, judge = fold > 1, fold == 0, fold == 1
    known = _Known(ratings, fit)
    steps = len(powers) * len(PATH) + 1
    found = []
    for number, p in enumerate(powers):
        best, worse = None, 0
        start = _start(known, rank, rng)
        for k, share in enumerate(PATH):
            if progress is not None:
                progress(number * len(PATH) + k, steps)
            start = _descend(known, start, share * start.largest, p, _STEPS)
            error = known.error(start, choose)
            if best is None or error < best[0]:
                best, worse = (error, share * start.largest, start), 0
            else:
                worse += 1
            if worse == 2:  # past the minimum: what follows only fits noise
                break
        assert best is not None
        error, threshold, factors = best
        left, right = known.whole(factors)
        completion = Completion(
            p=p,
            threshold=threshold,
            rank=int((factors.singular > 0.0).sum()),
            held_out=known.error(factors, judge),
            film_mean=known.film_mean_error(judge),
            left=left,
            right=right,
        )
        found.append((error, completion, factors))
    found.sort(key=lambda item: item[0])
    _, winner, factors = found[0]
    if progress is not None:
        progress(steps - 1, steps)
    everything = _Known(ratings, np.ones(len(fold), dtype=np.bool_))
    factors = _descend(everything, factors, winner.threshold, winner.p, _LAST_STEPS)
    left, right = everything.whole(factors)
    final = replace(winner, rank=int((factors.singular > 0.0).sum()), left=left, right=right)
    if progress is not None:
        progress(steps, steps)
    return [final, *(completion for _, completion, _ in found[1:])]


def shrink(singular: FloatArray, threshold: float, p: float) -> FloatArray:
    """Minimise ½ (s − σ)² + λ s^p over s ≥ 0 for each σ (Zuo et al. 2013).

    λ is that for which every σ up to `threshold` becomes 0; at p = 1 it is the threshold itself.
    """
    if p == 1.0:
        return np.maximum(singular - threshold, 0.0)
    q = 2.0 * (1.0 - p)
    unit = q ** (1.0 / (2.0 - p)) + p * q ** ((p - 1.0) / (2.0 - p))
    weight = (threshold / unit) ** (2.0 - p)
    kept = singular > threshold
    above = np.where(kept, singular, threshold + 1.0)
    shrunk = above.copy()
    for _ in range(50):  # a contraction above the threshold
        shrunk = above - weight * p * shrunk ** (p - 1.0)
    return np.where(kept, shrunk, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class _Factors:
    """X = left · diag(singular) · rightᵀ, and the largest singular value of the data."""

    left: Floats32
    singular: FloatArray
    right: Floats32
    largest: float


class _Known:
    """Ratings less the offsets of their users and films, in the order of a sparse matrix."""

    def __init__(self, ratings: Ratings, used: npt.NDArray[np.bool_]) -> None:
        self.shape = ratings.shape
        users, films = self.shape
        self.users, self.films, self.values = ratings.users, ratings.films, ratings.values
        u, f, r = self.users[used], self.films[used], self.values[used]
        self.scale = (float(self.values.min()), float(self.values.max()))
        self.centre = float(r.mean())
        self.film = _shrunken(f, r - self.centre, films, 5.0)
        self.user = _shrunken(u, r - self.centre - self.film[f], users, 10.0)
        counts = np.bincount(f, minlength=films)
        means = np.bincount(f, r, films) / np.maximum(counts, 1)
        self.film_means = np.where(counts > 0, means, self.centre)
        order = np.lexsort((f, u))
        self.u, self.f = u[order], f[order]
        target = r - self.centre - self.film[f] - self.user[u]
        self.target = target[order].astype(np.float32)
        self.starts = np.searchsorted(self.u, np.arange(users + 1))

    def at(self, factors: _Factors) -> Floats32:
        """X where ratings are known."""
        left = factors.left * factors.singular.astype(np.float32)
        result = np.empty(len(self.u), dtype=np.float32)
        for first in range(0, self.shape[0], _ROWS):
            last = min(first + _ROWS, self.shape[0])
            some = slice(self.starts[first], self.starts[last])
            result[some] = (left[first:last] @ factors.right.T)[self.u[some] - first, self.f[some]]
        return result

    def whole(self, factors: _Factors) -> tuple[FloatArray, FloatArray]:
        """Offsets and X as one product, left (users, k) times right (films, k) transposed."""
        kept = factors.singular > 0.0
        left = (factors.left * factors.singular)[:, kept]
        ones = np.ones((self.shape[0], 1))
        return (
            np.hstack([left, self.centre + self.user[:, None], ones]),
            np.hstack([factors.right[:, kept], np.ones((self.shape[1], 1)), self.film[:, None]]),
        )

    def error(self, factors: _Factors, used: npt.NDArray[np.bool_]) -> float:
        """Root mean square error of the ratings used."""
        left, right = self.whole(factors)
        u, f, r = self.users[used], self.films[used], self.values[used]
        predicted = np.empty(len(u))
        for first in range(0, len(u), 100_000):
            some = slice(first, first + 100_000)
            predicted[some] = np.einsum("ik,ik->i", left[u[some]], right[f[some]])
        return _rms(np.clip(predicted, *self.scale) - r)

    def film_mean_error(self, used: npt.NDArray[np.bool_]) -> float:
        return _rms(self.film_means[self.films[used]] - self.values[used])


def _start(known: _Known, rank: int, rng: np.random.Generator) -> _Factors:
    """X = 0, with the leading singular vectors of what is known to begin with."""
    rank = min(rank, *known.shape)
    noise = rng.standard_normal((known.shape[1], rank)).astype(np.float32)
    right = np.linalg.qr(noise)[0]
    left = np.zeros((known.shape[0], rank), dtype=np.float32)
    start = _Factors(left, np.zeros(rank), right, 0.0)
    for _ in range(4):
        left, singular, right = _singular(known, start)
        start = _Factors(left, np.zeros(rank), right, float(singular[0]))
    return start


def _descend(known: _Known, start: _Factors, threshold: float, p: float, steps: int) -> _Factors:
    """Proximal steps until the singular values stand still."""
    factors = start
    for _ in range(steps):
        left, singular, right = _singular(known, factors)
        shrunk = shrink(singular, threshold, p)
        moved = float(np.abs(shrunk - factors.singular).max())
        factors = _Factors(left, shrunk, right, start.largest)
        if moved <= _STILL * float(shrunk.max(initial=0.0)):
            break
    return factors


def _singular(known: _Known, factors: _Factors) -> tuple[Floats32, FloatArray, Floats32]:
    """The leading singular triples of X with the known ratings put in.

    One step of subspace iteration from those of X itself, which are nearly the same. The matrix is
    never formed: it is X, of low rank, plus residuals, which are sparse.
    """
    from scipy import sparse  # slow to load

    residuals = sparse.csr_array(
        (known.target - known.at(factors), known.f, known.starts), shape=known.shape
    )
    left = factors.left * factors.singular.astype(np.float32)
    image = left @ (factors.right.T @ factors.right) + residuals @ factors.right
    basis = np.linalg.qr(image)[0]
    inner = (basis.T @ left) @ factors.right.T + (residuals.T @ basis).T
    u, singular, vt = np.linalg.svd(inner, full_matrices=False)
    return basis @ u, singular.astype(np.float64), vt.T


def _shrunken(
    index: npt.NDArray[np.int32], values: FloatArray, count: int, prior: float
) -> FloatArray:
    """The mean of the values of each index, drawn to 0 as if `prior` zeros were among them."""
    result: FloatArray = np.bincount(index, values, count) / (
        np.bincount(index, minlength=count) + prior
    )
    return result


def _rms(errors: FloatArray) -> float:
    return float(np.sqrt(np.mean(errors**2)))
