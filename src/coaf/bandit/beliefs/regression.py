"""Mean rewards by any regressor that takes weights: the paper's general case."""

import math
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import FloatArray, number
from coaf.bandit.beliefs.estimators import decode_estimator
from coaf.bandit.beliefs.registry import register
from coaf.bandit.beliefs.regressor import Regressor
from coaf.bandit.beliefs.rows import check_features
from coaf.bandit.groups import Groups
from coaf.bandit.threads import on_one_thread

_HALVINGS = 12  # of ln w between the weights that `upper_exact` tries: to a hundredth


@register("regression")
@on_one_thread("upper_exact")
class Regression(Regressor):
    """Mean rewards ψ(x) of any function that a regressor can fit.

    Parameters
    ----------
    dim
        Number of features.
    regressor
        Like scikit-learn's: gradient boosting, a forest, a kernel ridge, a pipeline. It is copied,
        never fitted itself. Its `fit` must take `sample_weight`; use `Ensemble` if it does not.
        Features reach it as they are: if it minds their units, put a scaler before it.
    noise
        Sub-Gaussian scale σ of a reward around its mean (at most half its range). Unless given, it
        is how far the rewards learned are from a line.
    mean_bound
        The largest mean reward there is, if known: estimates are within ±mean_bound; draws may pass
        it. Unless given, the size of rewards is learned (`reward_size`), and rewards times c change
        no decision.
    delta
        The chance that `upper` is too low for an arm, if the regressor is a linear smoother of
        small bias. It is for one arm at one time, not for all at once as in `Linear`.
    beta
        How much more squared loss than the best fit's a function may have, and still count as
        possible, in the square of the unit of rewards; 2σ² ln 1/δ unless given. The paper's is
        8σ² ln N/δ for a class of N functions.
    copies
        How many refits measure the spread.
    seed
        Of the copies' noise, and the `random_state` of a regressor that has none.

    Notes
    -----
    The confidence set is that of RegCB (Foster et al., 2018, "Practical contextual bandits with
    regression oracles"): every ψ with Σ w (ψ(x_i) − y_i)² within β of the least; the paper's
    general case has it around ψ̄ instead. `upper_exact` finds its largest ψ(x) with a dozen fits
    for each arm. For a class that is linear in its parameters it is ψ̄(x) + √(β h(x)), where
    h(x) = Var ψ̄(x)/σ² is the leverage of x: one over the number of rows that speak for it.

    `upper` takes this formula for any regressor, and measures h: refitted to rewards with noise
    σε/√w added, B copies answer (1/B) Σ_b (ψ_b(x) − ψ̄(x))² = σ² h(x), up to chance. It costs B fits
    at each epoch, and none for an arm. `sample` is a joint Gaussian draw with the same spread.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> belief = Regression(1, DecisionTreeRegressor(min_samples_leaf=3))
    >>> belief.learn([[-0.3], [-0.2], [-0.1], [0.1], [0.2], [0.3]], [0, 0, 0, 500, 500, 500])
    >>> belief.mean([[-0.15], [0.15]]).round()
    array([  0., 500.])
    """

    kind = "regression"
    settings: ClassVar = ("noise", "mean_bound", "delta", "beta", "copies", "seed")

    def __init__(
        self,
        dim: int,
        regressor: Any,
        *,
        noise: float | None = None,
        mean_bound: float | None = None,
        delta: float = 0.05,
        beta: float | None = None,
        copies: int = 8,
        seed: int = 0,
    ) -> None:
        super().__init__(
            dim, regressor, copies=copies, noise=noise, mean_bound=mean_bound, seed=seed
        )
        if self._weights is None:
            raise ValueError(
                f"{type(regressor).__name__}.fit takes no sample_weight, which Regression needs; "
                "Ensemble does without"
            )
        self.delta = number("delta", delta, above=0.0)
        if self.delta >= 1.0:
            raise ValueError(f"delta is {self.delta}; it must be less than 1")
        self._beta = None if beta is None else number("beta", beta, above=0.0)
        self.fits = 1 + self.copies

    @property
    def beta(self) -> float:
        """β, as given, or 2σ² ln 1/δ."""
        noise = self._measured().noise
        return -2.0 * noise**2 * math.log(self.delta) if self._beta is None else self._beta

    @property
    def width(self) -> float:
        """√β/σ, how many standard deviations `upper` is above the mean."""
        return self._width(self._measured().noise)

    def _setting(self, name: str) -> Any:
        return self._beta if name == "beta" else super()._setting(name)

    def _nothing_known(self) -> float:
        return 1.0 if self._beta is None else math.sqrt(self._beta)

    def _width(self, noise: float) -> float:
        if self._beta is None:
            return math.sqrt(-2.0 * math.log(self.delta))
        return math.sqrt(self._beta) / noise

    def _train(self, copy: int, X: FloatArray, y: FloatArray, w: FloatArray, noise: float) -> Any:
        if copy > 0:  # the first is the estimate
            rng = np.random.Generator(np.random.Philox(key=[self.seed, copy]))
            y = y + noise * rng.standard_normal(len(y)) / np.sqrt(w)
        return decode_estimator(self._recipe, self.seed).fit(X, y, **{str(self._weights): w})

    def _spread(self, predicted: FloatArray) -> tuple[FloatArray, FloatArray]:
        centre = predicted[0]
        return centre, (predicted[1:] - centre) / math.sqrt(self.copies)

    def sample(
        self, features: npt.ArrayLike, rng: np.random.Generator, groups: Groups | None = None
    ) -> FloatArray:
        """One joint Gaussian draw with the spread that `upper` has."""
        centre, D, linear, width = self._scores(features)
        both = np.concatenate([D, linear])
        drawn: FloatArray = np.einsum("b,bn->n", rng.standard_normal(len(both)), both)
        copies, least = np.sum(D**2, axis=0), np.sum(linear**2, axis=0)
        scale: FloatArray = width * np.sqrt(np.maximum(copies, least) / (copies + least))
        return self._bounded(centre) + scale * drawn

    def upper_exact(self, features: npt.ArrayLike) -> FloatArray:
        """The largest ψ(x) in the confidence set, by the bisection of RegCB: for small problems.

        The regressor is fitted again with the arm as one more row of weight w, and of a reward
        beyond all that may be: `mean_bound`; or, unless that is given, 2ω above `upper` and all
        rewards. The larger w, the higher ψ(x), and the larger the loss on the rows learned; the
        result is ψ(x) at the largest w for which that stays within β of the loss of the fit.
        """
        X = check_features(features, self.dim)
        fit, upper = self._fit(), self.upper(X)
        if not fit.models:
            return upper if self.mean_bound is None else np.full(len(X), self.mean_bound)
        seen, y, w = self._first(fit.good)
        if self.mean_bound is None:
            tops = np.maximum(upper, y.max()) / fit.unit + 2.0
        else:
            tops = np.full(len(X), self.mean_bound)
        y, beta = y / fit.unit, self.beta / fit.unit**2
        least = w @ (fit.models[0].predict(seen) - y) ** 2

        def raised(x: FloatArray, top: float, weight: float) -> tuple[float, bool]:
            model = decode_estimator(self._recipe, self.seed)
            weights = {str(self._weights): np.append(w, weight)}
            model.fit(np.vstack([seen, x]), np.append(y, top), **weights)
            excess = w @ (model.predict(seen) - y) ** 2 - least
            return float(model.predict(x)[0]), bool(excess <= beta)

        def bound(x: FloatArray, top: float) -> float:
            result = float(fit.models[0].predict(x)[0])
            low, high = math.log(1e-3), math.log(1e3 * (1.0 + w.sum()))
            value, fits = raised(x, top, math.exp(high))
            if fits:
                return max(result, value)
            for _ in range(_HALVINGS):
                middle = 0.5 * (low + high)
                value, fits = raised(x, top, math.exp(middle))
                if fits:
                    low, result = middle, max(result, value)
                else:
                    high = middle
            return result

        found = [bound(x[None], float(top)) for x, top in zip(X, tops, strict=True)]
        return self._bounded(fit.unit * np.array(found, dtype=np.float64))
