"""Generalised linear beliefs: successes and counts, whose noise goes with their mean."""

from collections.abc import Mapping
from statistics import NormalDist
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import FloatArray, number
from coaf.bandit.beliefs.glm_rows import Recent
from coaf.bandit.beliefs.links import Exponential, Link, Posterior, Sigmoid
from coaf.bandit.beliefs.registry import register
from coaf.bandit.beliefs.rows import check_factor, check_features, check_rewards, check_scale
from coaf.bandit.groups import Groups
from coaf.bandit.state import entry, seal, unseal
from coaf.bandit.threads import on_one_thread

_SPREAD = 2.0  # standard deviation of the intercept: from 0.02 to 0.98 around a rate of 0.5
_SETTINGS = ("regularization", "width", "intercept", "typical", "mean_bound")


@on_one_thread("interval", "draw")
class GLM:
    """What `Logistic` and `Poisson` share: mean rewards g(θ·x), and a Gaussian posterior of θ."""

    kind: ClassVar[str]
    link: ClassVar[Link]

    def __init__(
        self,
        dim: int,
        *,
        regularization: float = 0.25,
        width: float = 1.645,
        intercept: bool = True,
        typical: float | None = None,
        mean_bound: float | None = None,
    ) -> None:
        if dim < 1 or int(dim) != dim:
            raise ValueError(f"dim is {dim!r}; it must be a positive integer")
        self.dim = int(dim)
        self.regularization = number("regularization", regularization, above=0.0)
        self.width = number("width", width, low=0.0)
        self.intercept = bool(intercept)
        self.typical = None if typical is None else number("typical", typical, above=0.0)
        self.mean_bound = (
            None if mean_bound is None else number("mean_bound", mean_bound, above=0.0)
        )
        theta, ridge = np.zeros(self.dim), np.full(self.dim, self.regularization)
        if self.intercept:
            usual = self.link.typical if self.typical is None else self.typical
            if usual >= self.link.largest:
                raise ValueError(f"typical is {usual}; it must be below {self.link.largest:g}")
            theta = np.append(theta, self.link.natural(usual))
            ridge = np.append(ridge, _SPREAD**-2)
        elif self.typical is not None:
            raise ValueError(f"typical is {typical}, but without intercept it has no effect")
        self._prior = self._known = Posterior.of(theta, np.diag(ridge), 0.0)
        self._recent = Recent.after(self._prior)

    @property
    def rows(self) -> float:
        """How many rows were learned; what was forgotten in part counts in part."""
        return self._known.rows

    @property
    def theta(self) -> FloatArray:
        """The estimate θ̄, the intercept last."""
        return self._known.theta.copy()

    @property
    def precision(self) -> FloatArray:
        """H, the precision of θ; its inverse is the covariance."""
        return self._known.precision.copy()

    def _rows(self, features: npt.ArrayLike) -> FloatArray:
        """Features as they are learned, with a constant one if there is an intercept."""
        X = check_features(features, self.dim)
        check_scale(X)
        if not self.intercept:
            return X
        with_constant = np.ones((len(X), self.dim + 1))
        with_constant[:, :-1] = X
        return with_constant

    def _rewards(self, rewards: npt.ArrayLike, n: int) -> FloatArray:
        y = check_rewards(rewards, n)
        if n and not (y.min() >= 0.0 and y.max() <= self.link.largest):
            bad = (y < 0.0) | (y > self.link.largest)
            raise ValueError(
                f"rewards[{int(bad.argmax())}] is {y[bad.argmax()]:g}; {type(self).__name__} "
                f"learns rewards from 0 to {self.link.largest:g}"
            )
        return y

    def _predictors(self, features: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of θ·x."""
        X = self._rows(features)
        squares = np.vecdot(X @ self._known.covariance, X)
        return X @ self._known.theta, np.sqrt(np.maximum(squares, 0.0))

    def _means(self, predictors: FloatArray) -> FloatArray:
        """g, within the bound."""
        means = self.link.mean(predictors)
        return means if self.mean_bound is None else np.minimum(means, self.mean_bound)

    def mean(self, features: npt.ArrayLike, groups: Groups | None = None) -> FloatArray:
        """g(θ̄·x), the median of what the mean reward may be; groups make no difference here."""
        return self._means(self._rows(features) @ self._known.theta)

    def upper(self, features: npt.ArrayLike, groups: Groups | None = None) -> FloatArray:
        """The exact maximum of g(θ·x) over ‖θ − θ̄‖_H ≤ width: g(θ̄·x + width ‖x‖_{H⁻¹})."""
        m, s = self._predictors(features)
        return self._means(m + self.width * s)

    def interval(
        self, features: npt.ArrayLike, level: float = 0.9
    ) -> tuple[FloatArray, FloatArray]:
        """Between which numbers each mean reward lies, with this probability."""
        if not 0.0 < number("level", level) < 1.0:
            raise ValueError(f"level is {level}; it must be between 0 and 1")
        m, s = self._predictors(features)
        z = NormalDist().inv_cdf(0.5 + 0.5 * level)
        return self._means(m - z * s), self._means(m + z * s)

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """One draw of θ from N(θ̄, H⁻¹), the intercept last."""
        z, half = rng.standard_normal(len(self._known.theta)), np.linalg.cholesky(self.precision)
        theta: FloatArray = self._known.theta + np.linalg.solve(half.T, z)
        return theta

    def sample(
        self, features: npt.ArrayLike, rng: np.random.Generator, groups: Groups | None = None
    ) -> FloatArray:
        """g(θ·x) for each arm, for one draw of θ from N(θ̄, H⁻¹)."""
        return self._means(self._rows(features) @ self.draw(rng))

    def learn(
        self, features: npt.ArrayLike, rewards: npt.ArrayLike, groups: Groups | None = None
    ) -> None:
        """Add rows one after another, in time that does not grow with how many there were."""
        X = self._rows(features)
        y = self._rewards(rewards, len(X))
        self._recent, self._known = self._recent.add(self.link, self._known, X, y)

    def refit(
        self, features: npt.ArrayLike, rewards: npt.ArrayLike, groups: Groups | None = None
    ) -> None:
        """Start again from the prior with these rows, fitted together: what `learn` comes near."""
        X = self._rows(features)
        y = self._rewards(rewards, len(X))
        chunks = ((X, y, 1.0),) if len(y) else ()
        self._recent, self._known = Recent(self._prior, self._prior, chunks, len(y)).together(
            self.link
        )

    def forget(self, factor: float) -> None:
        """Let the information of the rows learned, H and Hθ̄, count `factor` of what it did."""
        if check_factor(factor) < 1.0:
            self._known = self._known.discounted(self._prior, float(factor))
            self._recent = self._recent.discounted(self._prior, float(factor))

    def settle(self) -> None:
        """Let what is known now be the prior."""
        self._prior = self._known
        self._recent = Recent.after(self._known)

    def state(self) -> dict[str, Any]:
        """Everything, as JSON."""
        settings = {name: getattr(self, name) for name in ("dim", *_SETTINGS)}
        parts = {"known": self._known.state(), "prior": self._prior.state()}
        return seal(self.kind, {**settings, **parts, "recent": self._recent.state()})

    @classmethod
    def restore(cls, state: Mapping[str, Any] | str) -> Self:
        """The belief that `state` was taken from."""
        state = unseal(cls.kind, state)
        belief = cls(entry(state, "dim"), **{name: entry(state, name) for name in _SETTINGS})
        size = belief.dim + belief.intercept
        belief._known = Posterior.restore(entry(state, "known"), size)
        belief._prior = Posterior.restore(entry(state, "prior"), size)
        belief._recent = Recent.restore(entry(state, "recent"), size)
        return belief


@register("logistic")
class Logistic(GLM):
    """Mean rewards 1 / (1 + exp(−θ·x)): successes and failures, or fractions from 0 to 1.

    Parameters
    ----------
    dim
        Number of features; best scaled so that most lie within ±1.
    regularization
        λ: before any row is seen, each coefficient is N(0, 1/λ). The default's standard deviation
        of 2 lets the odds of an arm of unit length differ sevenfold from the usual.
    width
        The confidence set is ‖θ − θ̄‖_H ≤ width. The default bounds each arm's mean reward from
        above with probability 0.95, so that it is the upper end of `interval` at 0.9.
    intercept
        Whether there is a constant feature beside those given, with a weak prior of its own.
        Where successes are rare it carries most of what is known.
    typical
        The mean reward of a usual arm, as far as known beforehand: where the intercept starts,
        give or take a factor of seven (of the odds). 0.5 unless given.
    mean_bound
        The largest mean reward there is, if known: estimates are capped by it.

    Notes
    -----
    The posterior is kept as N(θ̄, H⁻¹). A row moves θ̄ along H⁻¹x to the mode of its likelihood
    times that Gaussian, and on by the next term of Laplace's expansion, to the mean; its weight in
    H is the variance μ(1 − μ) there. `refit` does the same with all rows at once (iteratively
    reweighted least squares), which `learn` comes near but does not equal: it does so with the last
    4,096 rows whenever they have grown by a quarter, since weights given when more was expected
    would be wrong for good. State is O(d²) and those rows.

    There is no guarantee in the worst case, as `Linear` has: widths are those of the Gaussian, and
    docs/beliefs/glm.md says how often they hold.

    Examples
    --------
    >>> belief = Logistic(2)
    >>> belief.learn([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], [1.0, 0.0, 0.0])
    >>> belief.mean([[1.0, 0.0], [0.0, 1.0]]).round(2)
    array([0.76, 0.12])
    >>> low, high = belief.interval([[1.0, 0.0]], level=0.9)
    >>> bool(high[0] - belief.upper([[1.0, 0.0]])[0] < 1e-4)
    True
    """

    kind = "logistic"
    link = Sigmoid()


@register("poisson")
class Poisson(GLM):
    """Mean rewards exp(θ·x): counts from 0 to 10⁹.

    Parameters
    ----------
    dim, regularization, width, intercept
        As for `Logistic`; factors are of the count.
    typical
        The mean count of a usual arm, as far as known beforehand; 1 unless given. It is soon
        learned, but the first estimates are optimistic by factors of it.
    mean_bound
        The largest mean count there is: estimates are capped by it. Give it. Optimism about
        exponentials has no measure, and a rate that has once believed in a million takes long to
        come down: until then nothing is worth its time.

    Notes
    -----
    As for `Logistic`; a row's weight in H is its mean. Scores are capped at e³⁰ ≈ 10¹³, which only
    arms far from all that was learned come near.

    Examples
    --------
    >>> belief = Poisson(2, typical=100.0)
    >>> belief.learn([[1.0, 0.0], [0.0, 1.0]], [250.0, 40.0])
    >>> belief.mean([[1.0, 0.0], [0.0, 1.0]]).round()
    array([249.,  40.])
    """

    kind = "poisson"
    link = Exponential()
