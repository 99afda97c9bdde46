"""The linear belief: ridge regression and its confidence ellipsoid."""

import itertools
import math
from collections.abc import Mapping
from copy import copy
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import FloatArray, IntArray, locked, number
from coaf.bandit.beliefs import learner
from coaf.bandit.beliefs.assumptions import (
    ENOUGH,
    check_mean_bound,
    check_noise,
    check_norm_bound,
)
from coaf.bandit.beliefs.learner import compiled, scratch
from coaf.bandit.beliefs.registry import register
from coaf.bandit.beliefs.rows import (
    beyond,
    check_dim,
    check_factor,
    check_rewards,
    limit_of,
    shaped,
)
from coaf.bandit.groups import Groups
from coaf.bandit.shown import Shown
from coaf.bandit.state import entry, seal, unseal

_MANY = 512  # features from which finding an arm again is quicker than scoring it again
_SETTINGS = (
    "regularization",
    "noise",
    "norm_bound",
    "feature_bound",
    "mean_bound",
    "delta",
    "scale",
    "within",
)


@register("linear")
class Linear(Shown):
    """Mean rewards θ·x with ‖θ‖ ≤ norm_bound, learned by ridge regression.

    Parameters
    ----------
    dim
        Number of features.
    regularization
        λ of the ridge.
    noise
        Sub-Gaussian scale σ of a reward around its mean (at most half its range).
    norm_bound, feature_bound
        m ≥ ‖θ*‖ and L ≥ ‖x‖. Features beyond the bound are an error.
    mean_bound
        The largest mean reward there is; norm_bound·feature_bound unless given. Estimates are
        capped by it.
    delta
        The set holds θ* at all times at once with probability 1 − δ (`lm: lcb_cr`).
    radius
        "determinant": m √λ + σ √(2 ln 1/δ + ln det V/λ^d). "printed": with the paper's bound
        d ln(1 + n L²/(dλ)) in place of the last term, n counting learned rows; never smaller.
    scale
        A factor on that radius. Below 1 the guarantee is given up for speed of learning.
    within
        "ball": the confidence set is the ellipsoid met with ‖θ‖ ≤ norm_bound, as in the paper;
        "ellipsoid": the ellipsoid alone, which is quicker.

    Notes
    -----
    `sample` draws θ from N(θ̄, β V⁻¹). The paper prints √β·V for the covariance, a slip: it would
    explore most where most is known.

    The truth kept is V and Σ x y; V⁻¹ is derived from V afresh every few thousand rows. The prior
    is λI and 0 until `settle` makes it what is known by then; ln det V stays relative to λI.

    Examples
    --------
    >>> belief = Linear(2, noise=0.1)
    >>> belief.learn([[1.0, 0.0], [0.0, 1.0]], [0.8, 0.2])
    >>> belief.mean([[1.0, 0.0]])
    array([0.4])
    """

    def __init__(
        self,
        dim: int,
        *,
        regularization: float = 1.0,
        noise: float = 1.0,
        norm_bound: float = 1.0,
        feature_bound: float = 1.0,
        mean_bound: float | None = None,
        delta: float = 0.05,
        radius: Literal["determinant", "printed"] = "determinant",
        scale: float = 1.0,
        within: Literal["ball", "ellipsoid"] = "ball",
    ) -> None:
        self.dim = check_dim(dim)
        self.regularization = number("regularization", regularization, above=0.0)
        self.noise = number("noise", noise, low=0.0)
        self.norm_bound = number("norm_bound", norm_bound, above=0.0)
        self.feature_bound = number("feature_bound", feature_bound, above=0.0)
        if mean_bound is None:
            mean_bound = self.norm_bound * self.feature_bound
        self.mean_bound = number("mean_bound", mean_bound, above=0.0)
        self.delta = number("delta", delta, above=0.0)
        if self.delta >= 1.0:
            raise ValueError(f"delta is {self.delta}; it must be less than 1")
        if radius not in ("determinant", "printed"):
            raise ValueError(f'radius is {radius!r}; it must be "determinant" or "printed"')
        if within not in ("ball", "ellipsoid"):
            raise ValueError(f'within is {within!r}; it must be "ball" or "ellipsoid"')
        self.radius_form = radius
        self.scale = number("scale", scale, low=0.0)
        self.within = within
        _, confidence, workspace, _ = compiled()
        settings = (
            self.norm_bound,
            self.feature_bound,
            self.noise,
            self.regularization,
            -math.log(self.delta),
            self.scale,
            self.mean_bound,
            confidence.PRINTED * (radius == "printed") + confidence.BALL * (within == "ball"),
        )
        self._learner: FloatArray = workspace.learner(self.dim, self.regularization, settings)
        self._prior: FloatArray | None = None  # a learner, once something was settled
        self._scored: tuple[FloatArray, int, int] | None = None
        self._limit = limit_of(self.feature_bound)
        self._warned: set[str] = set()
        self._next_check = ENOUGH

    @classmethod
    def tuned(cls, dim: int, **settings: Any) -> Self:
        """The settings that did best in the study (docs/study.md): a tenth of the valid radius.

        Takes the keywords of `Linear`; the guarantee of the full radius is given up.
        """
        defaults = {"scale": 0.1, "regularization": 0.1, "within": "ellipsoid"}
        return cls(dim, **{**defaults, **settings})

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_scored": None}  # scratch is neither copied nor sent anywhere

    @property
    def rows(self) -> float:
        """How many rows were learned; what was forgotten in part counts in part."""
        return learner.rows(self._learner)

    @property
    def theta(self) -> FloatArray:
        """The ridge estimate θ̄."""
        return learner.theta(self._learner, self.dim)

    @property
    def precision(self) -> FloatArray:
        """V = λI + Σ x xᵀ."""
        return learner.precision(self._learner, self.dim)

    @property
    def radius(self) -> float:
        """√β, the radius of the ellipsoid in the norm of V."""
        return float(compiled()[1].radius_of(self._learner, self.dim))

    def _check(self, X: FloatArray) -> None:
        row = compiled()[3].first_bad(X, self._limit, np.empty(0))[0]
        if row >= 0:
            raise beyond(X, row, self.feature_bound)

    def mean(self, features: npt.ArrayLike, groups: Groups | None = None) -> FloatArray:
        """θ̄·x for each arm; groups make no difference here."""
        X = shaped(features, self.dim)
        self._check(X)
        return X @ self.theta

    def upper(self, features: npt.ArrayLike, groups: Groups | None = None) -> FloatArray:
        """The exact maximum of θ·x over the confidence set, capped at `mean_bound`.

        Where ellipsoid and ball do not meet, the set is empty, and each arm gets its mean under
        the ridge estimate constrained to the ball, which the maximum tends to as they part.
        """
        X = shaped(features, self.dim)
        _, confidence, workspace, _ = compiled()
        arena = workspace.arena(self.dim, len(X))
        result: FloatArray
        result, bad = confidence.upper_rows(self._learner, arena, X, self._limit)
        if bad >= 0:
            raise beyond(X, bad, self.feature_bound)
        if self.dim >= _MANY:
            self._scored = (arena, len(X), workspace.uses())
        return result

    def _arms_scored(self, X: FloatArray) -> IntArray | None:
        """Which arms of the last `upper` these rows are, if the scratch still holds their V⁻¹ x.

        With many features that is most of the work of learning them.
        """
        linear, _, workspace, _ = compiled()
        arena, n, uses = self._scored or (np.empty(0), 0, -1)
        if uses != workspace.uses() or not 0 < len(X) <= linear.CHUNK:
            return None
        held = arena[: self.dim, :n].T
        arms = [int(np.argmax((held == row).all(axis=1))) for row in X]
        rising = all(a < b for a, b in itertools.pairwise(arms))
        return np.array(arms) if rising and np.array_equal(held[arms], X) else None

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """One draw of θ from N(θ̄, β V⁻¹)."""
        noise = rng.standard_normal(self.dim)
        theta: FloatArray = compiled()[1].draw_theta(self._learner, scratch(self.dim), noise)
        return theta

    def sample(
        self, features: npt.ArrayLike, rng: np.random.Generator, groups: Groups | None = None
    ) -> FloatArray:
        """θ·x for each arm, for one draw of θ from N(θ̄, β V⁻¹)."""
        X = shaped(features, self.dim)
        self._check(X)
        return X @ self.draw(rng)

    def learn(
        self, features: npt.ArrayLike, rewards: npt.ArrayLike, groups: Groups | None = None
    ) -> None:
        """Add any number of rows."""
        X = shaped(features, self.dim)
        y = locked(np.ascontiguousarray(rewards, dtype=np.float64))
        if y.shape != (len(X),):
            raise ValueError(f"rewards has shape {y.shape} for {len(X)} rows of features")
        linear, arms = compiled()[0], None
        if self._scored is not None:
            arms, arena = self._arms_scored(X), self._scored[0]
            self._scored = None
        if arms is not None and np.isfinite(y).all():
            linear.learn_scored(self._learner, arena, self.dim, arms, y)
            return
        row, reward = linear.learn_rows(self._learner, scratch(self.dim), X, y, self._limit)
        if row >= 0:
            raise beyond(X, row, self.feature_bound)
        if reward >= 0:
            raise ValueError(f"rewards[{reward}] is {y[reward]}; every entry must be finite")
        if self.rows >= self._next_check:
            self._next_check = 2 * int(self.rows)
            self._check_assumptions()

    def _check_assumptions(self) -> None:
        """Whether rewards keep to what was stated of them; looked at whenever rows have doubled."""
        linear, numbers = compiled()[0], learner.numbers(self._learner)
        loss, rows = numbers[linear.LOSS], numbers[linear.ROWS]
        excess, count = numbers[linear.EXCESS], numbers[linear.BOUNDED]
        check_mean_bound(self, self.mean_bound, excess, count, self.noise)
        check_noise(self, self.noise, loss, rows)
        doubt = math.sqrt(loss / rows * learner.uncertainty(self._learner, self.dim))
        norm = float(np.linalg.norm(self.theta))
        check_norm_bound(self, self.norm_bound, norm, doubt)

    def _start(self) -> FloatArray:
        """A learner that knows the prior alone."""
        if self._prior is not None:
            return learner.copied(self._prior)
        return learner.fresh(self._learner, self.dim, self.regularization)

    def refit(
        self, features: npt.ArrayLike, rewards: npt.ArrayLike, groups: Groups | None = None
    ) -> None:
        """Start again from the prior with these rows."""
        fresh = copy(self)
        fresh._learner = self._start()
        fresh.learn(features, rewards, groups)
        self._learner, self._scored = fresh._learner, None

    def correct(
        self,
        features: npt.ArrayLike,
        previous: npt.ArrayLike,
        rewards: npt.ArrayLike,
        groups: Groups | None = None,
    ) -> None:
        """Let rows that were learned with rewards `previous` have `rewards`."""
        X = shaped(features, self.dim)
        self._check(X)
        before, now = check_rewards(previous, len(X)), check_rewards(rewards, len(X))
        compiled()[0].correct_rows(self._learner, scratch(self.dim), X, before, now)
        self._scored = None

    def forget(self, factor: float) -> None:
        """Let the rows learned count `factor` of what they did.

        The radius is that of weighted rows: valid at any one time, if θ* has not moved.
        """
        if check_factor(factor) < 1.0:
            new = learner.discounted(self._learner, self._start(), self.dim, float(factor))
            self._learner, self._scored = new, None

    def settle(self) -> None:
        """Let what is known now be the prior."""
        self._prior = self.learner()

    def learner(self) -> FloatArray:
        """A copy of what is known, as the array that `coaf.bandit.compiled` learns with."""
        return learner.copied(self._learner)

    def state(self) -> dict[str, Any]:
        """Everything, as JSON."""
        return seal(
            "linear",
            {
                **{name: getattr(self, name) for name in ("dim", *_SETTINGS)},
                "radius": self.radius_form,
                "learner": self._saved(self._learner),
                "prior": None if self._prior is None else self._saved(self._prior),
            },
        )

    def _saved(self, known: FloatArray) -> dict[str, Any]:
        return learner.saved(learner.views(known, self.dim))

    @classmethod
    def restore(cls, state: Mapping[str, Any] | str) -> Self:
        """The belief that `state` was taken from."""
        state = unseal("linear", state)
        belief = cls(
            entry(state, "dim"),
            radius=entry(state, "radius"),
            **{name: entry(state, name) for name in _SETTINGS},
        )
        belief._learner = belief._loaded(state, "learner")
        if entry(state, "prior") is not None:
            belief._prior = belief._loaded(state, "prior")
        return belief

    def _loaded(self, state: Mapping[str, Any], name: str) -> FloatArray:
        fresh = learner.fresh(self._learner, self.dim, self.regularization)
        return learner.filled(fresh, learner.views(fresh, self.dim), state, name)
