"""Generalised linear beliefs: successes and counts, whose noise goes with their mean."""

import math
from collections.abc import Mapping
from statistics import NormalDist
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import FloatArray, number
from coaf.bandit.beliefs.assumptions import compare
from coaf.bandit.beliefs.glm_rows import LastRows
from coaf.bandit.beliefs.links import Link, LogitLink, LogLink, Posterior
from coaf.bandit.beliefs.registry import register
from coaf.bandit.beliefs.rows import check_dim, check_features, check_rewards, check_scale
from coaf.bandit.beliefs.runs import Run
from coaf.bandit.beliefs.units import Unitless, Units
from coaf.bandit.groups import Groups
from coaf.bandit.state import entry, seal, unseal
from coaf.bandit.threads import on_one_thread

_SPREAD = 2.0  # standard deviation of the intercept: from 0.02 to 0.98 around a rate of 0.5
_CEILING = 4.0  # times the largest count seen, no mean is expected to be
_SETTINGS = ("regularization", "width", "intercept", "typical", "mean_bound", "dispersion")


@on_one_thread("interval", "draw")
class GLM(Unitless):
    """What `Logistic` and `Poisson` share: mean rewards g(θ·x), and a Gaussian posterior of θ."""

    kind: ClassVar[str]
    link: ClassVar[Link]
    dispersion: float | None = 0.0  # α of variances μ + αμ²; None: learned
    counts: ClassVar[bool]  # whether rewards have a size that is not known beforehand

    def __init__(
        self,
        dim: int,
        *,
        regularization: float | None = None,
        width: float = 1.645,
        intercept: bool = True,
        typical: float | None = None,
        mean_bound: float | None = None,
    ) -> None:
        self.dim = check_dim(dim)
        self.regularization = (
            None if regularization is None else number("regularization", regularization, above=0.0)
        )
        self.width = number("width", width, low=0.0)
        self.intercept = bool(intercept)
        self.typical = None if typical is None else number("typical", typical, above=0.0)
        self.mean_bound = (
            None if mean_bound is None else number("mean_bound", mean_bound, above=0.0)
        )
        if self.typical is not None and self.typical >= self.link.largest:
            raise ValueError(f"typical is {typical}; it must be below {self.link.largest:g}")
        if self.typical is not None and not self.intercept:
            raise ValueError(f"typical is {typical}, but without intercept it has no effect")
        self._units = Units.none(self.dim) if regularization is None else None
        self._sized = self.counts and self.typical is None
        self._warned: set[str] = set()
        self._beyond = (0.0, 0.0)
        self._start()

    def _start(self) -> None:
        usual = self.link.typical if self.typical is None else self.typical
        ridge = self.regularization
        if ridge is None:
            assert self._units is not None
            # Arms as they come have predictors N(·, 4), whatever the number of features.
            ridge = (self._units.long or 1.0) / _SPREAD**2
            if self._sized:
                usual = self._units.mean or usual
        theta, precision = np.zeros(self.dim), np.full(self.dim, ridge)
        if self.intercept:
            theta = np.append(theta, self.link.natural(usual))
            precision = np.append(precision, _SPREAD**-2)
        self._prior = self._known = Posterior.of(theta, np.diag(precision), 0.0)
        self._recent = LastRows.after(self._prior, self.dispersion or 0.0)

    @property
    def _settled(self) -> bool:
        return self._prior.rows > 0.0

    @property
    def rows(self) -> float:
        """How many rows were learned; what was forgotten in part counts in part."""
        return self._known.rows

    @property
    def theta(self) -> FloatArray:
        """The estimate θ̄, the intercept last; in learned units, of features from −1 to 1."""
        return self._known.theta.copy()

    @property
    def precision(self) -> FloatArray:
        """H, the precision of θ; its inverse is the covariance."""
        return self._known.precision.copy()

    def _rows(self, features: npt.ArrayLike) -> FloatArray:
        """Features as they are learned, with a constant one if there is an intercept."""
        return self._in_units(check_features(features, self.dim))

    def _in_units(self, X: FloatArray) -> FloatArray:
        if self._units is None:
            check_scale(X)
        else:
            X = self._units.centred(X) if self.intercept else self._units.scaled(X)
        if not self.intercept:
            return X
        with_constant = np.ones((len(X), self.dim + 1))
        with_constant[:, :-1] = X
        return with_constant

    def _checked(
        self, features: npt.ArrayLike, rewards: npt.ArrayLike, groups: Groups | None
    ) -> Run:
        X = check_features(features, self.dim)
        if self._units is None:
            check_scale(X)
        y = check_rewards(rewards, len(X))
        if len(y) and not (y.min() >= 0.0 and y.max() <= self.link.largest):
            bad = (y < 0.0) | (y > self.link.largest)
            raise ValueError(
                f"rewards[{int(bad.argmax())}] is {y[bad.argmax()]:g}; {type(self).__name__} "
                f"learns rewards from 0 to {self.link.largest:g}"
            )
        return Run(X, y, None)

    def _predictors(self, features: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of θ·x."""
        X = self._rows(features)
        squares = np.vecdot(X @ self._known.covariance, X)
        return X @ self._known.theta, np.sqrt(np.maximum(squares, 0.0))

    def _means(self, predictors: FloatArray) -> FloatArray:
        """g, within the bound."""
        means, bound = self.link.mean(predictors), self.mean_bound
        if bound is None and self.counts and self._units is not None and self._units.largest:
            bound = _CEILING * self._units.largest
        return means if bound is None else np.minimum(means, bound)

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

    def _add(self, rows: Run) -> None:
        X = self._in_units(rows.X)
        if self._units is not None and self._recent.seen == 0:
            self._fit(rows)
            return
        self._recent, self._known = self._recent.add(
            self.link, self._known, X, rows.y, self.dispersion
        )

    def _fit(self, rows: Run) -> None:
        chunks = ((self._in_units(rows.X), rows.y, 1.0),) if len(rows) else ()
        recent = LastRows(self._prior, self._prior, chunks, len(rows))
        self._recent, self._known = recent.together(self.link, self.dispersion)

    def _compare(self, rows: Run) -> None:
        if self.mean_bound is not None:
            variance = self.link.variance(min(self.mean_bound, self.link.largest))
            noise = math.sqrt(variance * (1.0 + self._recent.dispersion * self.mean_bound))
            means = self.link.mean(self._in_units(rows.X) @ self._known.theta)
            compare(self, means, rows.y, self.mean_bound, noise)

    def _fade(self, factor: float) -> None:
        self._known = self._known.discounted(self._prior, factor)
        self._recent = self._recent.discounted(self._prior, factor)

    def _settle(self) -> None:
        self._prior = self._known
        self._recent = LastRows.after(self._known, self._recent.dispersion)

    def _rewind(self) -> None:
        self._known = self._prior
        self._recent = LastRows.after(self._prior, 0.0)

    def state(self) -> dict[str, Any]:
        """Everything, as JSON."""
        settings = {name: getattr(self, name) for name in ("dim", *_SETTINGS)}
        parts = {"known": self._known.state(), "prior": self._prior.state()}
        units = None if self._units is None else self._units.state()
        more = {"recent": self._recent.state(), "units": units}
        said = {"beyond": list(self._beyond), "warned": sorted(self._warned)}
        return seal(self.kind, {**settings, **parts, **more, **said})

    @classmethod
    def restore(cls, state: Mapping[str, Any] | str) -> Self:
        """The belief that `state` was taken from."""
        state = unseal(cls.kind, state)
        settings = {name: entry(state, name) for name in _SETTINGS}
        dispersion = settings.pop("dispersion")
        if cls.counts:
            settings["dispersion"] = dispersion
        belief = cls(entry(state, "dim"), **settings)
        size = belief.dim + belief.intercept
        belief._known = Posterior.restore(entry(state, "known"), size)
        belief._prior = Posterior.restore(entry(state, "prior"), size)
        belief._recent = LastRows.restore(entry(state, "recent"), size)
        if entry(state, "units") is not None:
            belief._units = Units.restore(state["units"])
        belief._beyond = tuple(entry(state, "beyond"))
        belief._warned = set(entry(state, "warned"))
        return belief


@register("logistic")
class Logistic(GLM):
    """Mean rewards 1 / (1 + exp(−θ·x)): successes and failures, or fractions from 0 to 1.

    Parameters
    ----------
    dim
        Number of features.
    regularization
        λ: before any row is seen, each coefficient is N(0, 1/λ). Unless given, features count
        relative to their ranges in the rows learned, and λ is such that the predictors θ·x of arms
        as they come have a standard deviation of 2: the odds differ sevenfold from the usual. If
        given, features are taken as they are, and are best scaled so that most lie within ±1.
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

    Ranges are found in the first 4,096 rows, at first with each of them and later when their
    number has doubled, and all is done over in the new ones. `theta` and `precision` are in these
    units: of features from −1 to 1.

    There is no guarantee in the worst case, as `Linear` has: widths are those of the Gaussian, and
    docs/beliefs/glm.md says how often they hold.

    Examples
    --------
    >>> belief = Logistic(2)
    >>> belief.learn([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], [1.0, 0.0, 0.0])
    >>> belief.mean([[1.0, 0.0], [0.0, 1.0]]).round(2)
    array([0.89, 0.06])
    >>> low, high = belief.interval([[1.0, 0.0]], level=0.9)
    >>> bool(high[0] - belief.upper([[1.0, 0.0]])[0] < 1e-4)
    True
    """

    kind = "logistic"
    link = LogitLink()
    counts = False


@register("poisson")
class Poisson(GLM):
    """Mean rewards exp(θ·x): counts from 0 to 10⁹.

    Parameters
    ----------
    dim, regularization, width, intercept
        As for `Logistic`; factors are of the count.
    typical
        The mean count of a usual arm, as far as known beforehand; the average of those learned
        unless given.
    mean_bound
        The largest mean count there is: estimates are capped by it. Unless given, by four times
        the largest count learned: optimism about exponentials has no measure of its own.
    dispersion
        α of counts whose variance is μ + αμ² (negative binomial): learned unless given; 0 is
        Poisson's own.

    Notes
    -----
    As for `Logistic`; a row's weight in H is its mean μ, divided by 1 + αμ. Whenever rows are
    fitted together, α is what makes Σ (y − μ)²/(μ + αμ²) as large as it should be. Scores are
    capped at e³⁰ ≈ 10¹³.

    Until a count other than 0 is learned nothing is known of how large they are (`reward_size` is
    0), and policies take all that is allowed.

    Examples
    --------
    >>> belief = Poisson(2)
    >>> belief.learn([[1.0, 0.0], [0.0, 1.0]], [250.0, 40.0])
    >>> belief.mean([[1.0, 0.0], [0.0, 1.0]]).round()
    array([249.,  40.])
    """

    kind = "poisson"
    link = LogLink()
    counts = True

    def __init__(self, dim: int, *, dispersion: float | None = None, **settings: Any) -> None:
        self.dispersion = None if dispersion is None else number("dispersion", dispersion, low=0.0)
        super().__init__(dim, **settings)
