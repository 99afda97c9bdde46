"""Mean rewards by bootstrapped copies of any regressor."""

import math
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import FloatArray, IntArray, number
from coaf.bandit.beliefs.estimators import decode_estimator
from coaf.bandit.beliefs.registry import register
from coaf.bandit.beliefs.regressor import Regressor
from coaf.bandit.groups import Groups
from coaf.bandit.threads import on_one_thread

_MOST = 12  # a Poisson number of mean 1 is larger once in 10¹⁰ times


@register("ensemble")
@on_one_thread()
class Ensemble(Regressor):
    """Mean rewards by copies of a regressor, each fitted to its own resampling of the rows.

    Parameters
    ----------
    dim
        Number of features.
    regressor
        Like scikit-learn's, any: nearest neighbours, neural networks, a pipeline. It is copied,
        never fitted itself. Features reach it as they are: if it minds their units, put a scaler
        before it.
    copies
        How many there are.
    width
        How many standard deviations of the copies `upper` is above their mean. 2.5 would be too
        low once in 160 times for a Gaussian whose spread were known; of ten copies it is not, and
        Student's law says once in 60.
    noise
        Sub-Gaussian scale of a reward around its mean; for the least spread alone, see Notes.
        Unless given, it is how far the rewards learned are from a line.
    mean_bound
        The largest mean reward there is, if known: estimates are within ±mean_bound. Unless given,
        the size of rewards is learned (`reward_size`), and rewards times c change no decision.
    seed
        Of the resampling; and copy b of a regressor without a `random_state` gets seed + b.

    Notes
    -----
    In copy b, row i counts a Poisson number of times of mean 1, drawn from (seed, b, i): the online
    bootstrap (Oza & Russell, 2001), which does not depend on how rows came. Where `fit` takes no
    `sample_weight`, rows are repeated; one that was forgotten to weight w comes a Poisson number
    of times of mean w.

    The copies' standard deviation estimates the standard error of the mean, whatever the noise
    is. They agree too well where rows are few or rewards were all equal, so the spread is never
    less than that of a linear model with this noise (Osband & Van Roy, 2015, on why a bootstrap
    alone does not explore). `sample` is one of the copies, plus what that spread has more.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> belief = Ensemble(1, KNeighborsRegressor(1))
    >>> belief.learn([[-0.3], [-0.2], [-0.1], [0.1], [0.2], [0.3]], [0, 0, 0, 500, 500, 500])
    >>> belief.mean([[-0.3], [0.3]]).round()
    array([ 50., 500.])
    """

    kind = "ensemble"
    settings: ClassVar = ("copies", "width", "noise", "mean_bound", "seed")

    def __init__(
        self,
        dim: int,
        regressor: Any,
        *,
        copies: int = 10,
        width: float = 2.5,
        noise: float | None = None,
        mean_bound: float | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(
            dim, regressor, copies=copies, noise=noise, mean_bound=mean_bound, seed=seed
        )
        self.fits = self.copies
        self.width = number("width", width, above=0.0)

    def _width(self, noise: float) -> float:
        return self.width

    def _train(self, copy: int, X: FloatArray, y: FloatArray, w: FloatArray, noise: float) -> Any:
        model = decode_estimator(self._recipe, self.seed + copy)
        if self._weights is not None:
            counts = poisson(self.seed, copy, np.ones(len(y)))
            w = w * counts if counts.any() else w
            return model.fit(X[w > 0], y[w > 0], **{self._weights: w[w > 0]})
        counts = poisson(self.seed, copy, w)
        rows = np.repeat(np.arange(len(y)), counts if counts.any() else 1)
        return model.fit(X[rows], y[rows])

    def _spread(self, predicted: FloatArray) -> tuple[FloatArray, FloatArray]:
        centre = predicted.mean(axis=0)
        return centre, (predicted - centre) / math.sqrt(self.copies - 1)

    def sample(
        self, features: npt.ArrayLike, rng: np.random.Generator, groups: Groups | None = None
    ) -> FloatArray:
        """What one of the copies predicts, with the noise that it lacks."""
        centre, D, linear, _ = self._scores(features)
        copy, z = rng.integers(self.copies), rng.standard_normal(len(linear))
        picked = centre + math.sqrt(self.copies - 1) * D[copy] if len(D) else centre
        copies, least = np.sum(D**2, axis=0), np.sum(linear**2, axis=0)
        lacking: FloatArray = np.sqrt(np.maximum(0.0, 1.0 - copies / least))
        more: FloatArray = np.einsum("b,bn->n", z, linear)
        return self._bounded(picked) + lacking * more


def poisson(seed: int, copy: int, means: FloatArray) -> IntArray:
    """Poisson numbers of these means, at most 1 each; that of a row depends on (seed, copy, row).

    The smaller a mean, the smaller its number: a row that is forgotten never comes more often.

    Examples
    --------
    >>> poisson(0, 1, np.array([1.0, 1.0, 1.0, 1.0, 1.0]))
    array([2, 2, 1, 1, 1])
    >>> poisson(0, 1, np.array([0.5, 0.5, 1.0]))
    array([1, 1, 1])
    """
    uniform = np.random.Generator(np.random.Philox(key=[seed, copy])).random(len(means))
    counts = np.zeros(len(means), dtype=np.int64)
    term = np.exp(-means)
    reached = term.copy()
    for k in range(1, _MOST + 1):
        counts += uniform > reached
        term = term * means / k
        reached += term
    return counts
