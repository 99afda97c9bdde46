"""The nested belief: what the first holes of a patch say about the rest of it."""

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import FloatArray, IntArray, number
from coaf.bandit.beliefs.factors import Factors
from coaf.bandit.beliefs.nested.gaussian import GaussianTable
from coaf.bandit.beliefs.nested.groups import GroupTree, Seats, paths_of
from coaf.bandit.beliefs.nested.known import Known
from coaf.bandit.beliefs.nested.laplace import LogisticTable, flattened, sigmoid
from coaf.bandit.beliefs.nested.nearby import Nearby, nesting
from coaf.bandit.beliefs.nested.placed import PlacedTable
from coaf.bandit.beliefs.nested.prior import coefficient_prior
from coaf.bandit.beliefs.nested.variances import last_visit
from coaf.bandit.beliefs.registry import register
from coaf.bandit.beliefs.rows import check_dim, check_features, check_rewards, check_scale
from coaf.bandit.beliefs.runs import Run
from coaf.bandit.beliefs.units import Unitless, Units
from coaf.bandit.groups import Groups, check_groups
from coaf.bandit.state import entry, seal, unseal
from coaf.bandit.threads import on_one_thread

Family = Literal["gaussian", "logistic"]
_SCALE = 2.5  # standard deviation of θ·x: logistic, or in spreads of gaussian rewards
_NOISE = math.sqrt(0.5)  # of a gaussian reward, in spreads
_SETTINGS = ("family", "effects", "near", "noise", "variances", "scale", "centre", "width")
_LATER = ("centre", "near")  # states without them expect zeros, and know no places
_PLACES = 2
# Rows nearby, the places of arms, and their groups; where arms have places.
Around = tuple[Nearby, FloatArray, IntArray] | None
# By family, and whether arms have places.
_TABLES: dict[tuple[str, bool], Any] = {
    ("gaussian", False): GaussianTable,
    ("gaussian", True): PlacedTable,
    ("logistic", False): LogisticTable,
    ("logistic", True): LogisticTable,
}


@register("nested")
@on_one_thread("moments", "factors", "interval", "leave")
class Nested(Unitless):
    """Mean rewards from features and from effects of nested groups: squares, and patches in them.

    The natural parameter is η = θ·x + θ₀ + b_square + c_patch with independent normal effects. A
    reward is N(η, σ²), or 0 or 1 with probability sigmoid(η) of 1.

    Parameters
    ----------
    dim
        Number of features; a constant one is added.
    family
        "logistic" for rewards that are 0 or 1, or a share in between; "gaussian" for others.
    effects
        Standard deviations of the effects of groups, outermost first: (1, 1) for logistic rewards
        unless given, and for gaussian ones half of their spread (`reward_size`), twice. As many as
        there are levels: (1,) has patches alone, and () no groups at all.
    near
        Standard deviation of what arms of an innermost group share with those near them, or True
        for that of the group's effect. The first two of the `dim` columns are then an arm's place
        in its group, no feature: likeness falls with e^−distance, and rewards of one arm share
        all of it. Logistic rewards need a stated scale for that.
    noise
        Standard deviation σ of a gaussian reward; 0.7 of their spread unless given.
    variances
        "empirical": the above are guesses, and the variances are estimated from the rows
        whenever these have grown by a fifth; "fixed": they are as given.
    scale
        Standard deviation of each coefficient of θ, a priori: one number, or one for each feature
        and last the intercept's; features are then taken as they are, and their scale should be
        about 1. Unless given, features count relative to their ranges in the rows learned, and
        θ·x of arms as they come has a standard deviation of 2.5 (gaussian: times the spread of
        rewards, around their average).
    centre
        The coefficients that are expected a priori, as many; zeros unless given. Rows overrule
        them as soon as they say otherwise: how soon is `scale`, then 2.5 unless given.
    width
        `upper` is this many standard deviations of η above its mean: by default, the upper end
        of a 90 % interval.

    Notes
    -----
    Group effects are integrated out exactly, one level after the other, so scores that come late
    for a patch left behind reach all that is shared. Gaussian posteriors are exact. Logistic ones
    are normal with the curvature at the mode (Laplace), around the mean to first order; learning
    ends at the mode. Whether rows came one by one or together, variances are the same, and
    logistic means are to four digits.

    Labels beyond the number of levels only tell groups apart, the outermost first. An arm with
    fewer labels, or none, is in outer groups that were never seen; arms without labels that are
    scored together share them, and rows learned without labels each have their own.

    What is not given is found in the first 4,096 rows, at first with each of them and later when
    their number has doubled, and all is done over with it. Until a gaussian reward other than 0 is
    learned nothing is known of their size: `upper` then has no unit, and only says of which arm
    least is known.

    `settle` keeps the groups and their labels. `leave` is for a new grid, where the same labels
    stand for other groups.

    Examples
    --------
    Two bad holes speak against the rest of their patch, less against their square, and least
    against other squares:

    >>> belief = Nested(1, variances="fixed")
    >>> belief.learn([[0.5], [0.5]], [0.0, 0.0], groups=[[1, 1], [1, 1]])
    >>> belief.mean([[0.5]] * 3, groups=[[1, 1], [1, 2], [2, 1]]).round(2)
    array([0.14, 0.19, 0.24])
    """

    def __init__(
        self,
        dim: int,
        *,
        family: Family = "logistic",
        effects: Sequence[float] | None = None,
        near: float | Literal[True] | None = None,
        noise: float | None = None,
        variances: Literal["empirical", "fixed"] = "empirical",
        scale: float | Sequence[float] | None = None,
        centre: Sequence[float] | None = None,
        width: float = 1.645,
    ) -> None:
        if (family, False) not in _TABLES:
            raise ValueError(f'family is {family!r}; it must be "gaussian" or "logistic"')
        if variances not in ("empirical", "fixed"):
            raise ValueError(f'variances is {variances!r}; it must be "empirical" or "fixed"')
        self.dim, self.family, self.variances = check_dim(dim), family, variances
        self.effects = effects
        if effects is not None:
            checked = (number(f"effects[{i}]", e, above=0.0) for i, e in enumerate(effects))
            self.effects = tuple(checked)
        self.near = near if near is None or near is True else number("near", near, above=0.0)
        self._places = 0 if near is None else _PLACES
        if self._places and self.effects == ():
            raise ValueError("near needs groups: arms are near each other in one")
        if self._places and family == "logistic" and scale is None:
            raise ValueError("near needs a stated scale where rewards are logistic")
        if self.dim <= self._places and near is not None:
            raise ValueError(f"dim is {dim}; with near, the first two columns are places")
        self.noise = None if noise is None else number("noise", noise, above=0.0)
        self.scale: float | tuple[float, ...] | None = None
        self.centre: tuple[float, ...] | None = None
        if scale is not None or centre is not None:
            stated = _SCALE if scale is None else scale
            count = self.dim - self._places
            self.scale, self.centre, _ = coefficient_prior(count, stated, centre)
        self.width = number("width", width, low=0.0)
        gaussian = family == "gaussian"
        self._sized = gaussian and None in (self.effects, self.noise, self.scale)
        found = self._sized or self.scale is None
        self._units = self._no_units if found else None
        self._start()

    def widened(self, more: int, scale: float = _SCALE) -> "Nested":
        """A belief that begins as this one did, with `more` features after those it has.

        Of those nothing is expected. `scale` is the standard deviation of their coefficients, where
        scales are stated.
        """
        wide, centre = self.scale, self.centre
        if wide is not None:
            own = wide if isinstance(wide, tuple) else (wide,) * (self.dim - self._places + 1)
            wide = (*own[:-1], *(scale,) * more, own[-1])
        if centre is not None:
            centre = (*centre[:-1], *(0.0,) * more, centre[-1])
        settings: dict[str, Any] = {name: getattr(self, name) for name in _SETTINGS}
        return Nested(self.dim + more, **{**settings, "scale": wide, "centre": centre})

    @property
    def _no_units(self) -> Units:
        return Units.none(self.dim, places=self._places)

    def _start(self) -> None:
        units = self._no_units if self._units is None else self._units
        # Gaussian rewards are learned in these units, so that those they came in do not matter.
        self._size = (units.size or 1.0) if self._sized else 1.0
        self._usual = units.mean if self._sized and self.scale is None else 0.0
        gaussian, size = self.family == "gaussian", self._size
        effects = self.effects
        if effects is None:
            effects = (0.5 * size, 0.5 * size) if gaussian else (1.0, 1.0)
        noise = _NOISE * size if self.noise is None else self.noise
        count = self.dim - self._places
        if self.scale is None:
            wide = _SCALE / math.sqrt(units.long or 1.0)
            _, _, ridge = coefficient_prior(count, (wide,) * count + (_SCALE,), None)
        else:
            scale = self.scale if isinstance(self.scale, tuple) else (self.scale,) * (count + 1)
            centre = None if self.centre is None else tuple(c / size for c in self.centre)
            _, _, ridge = coefficient_prior(count, tuple(s / size for s in scale), centre)
        near = () if self.near is None else (effects[-1] if self.near is True else self.near,)
        last = (noise,) if gaussian else ()
        self._guess = 2.0 * np.log(np.array([*effects, *near, *last]) / size)
        tree = GroupTree.empty(len(effects))
        kind = _TABLES[self.family, self.near is not None]
        table = kind.empty(ridge, tree, places=self._places)
        self._prior = Known(tree, table, self._guess, 0)
        self._know(self._prior)

    def _know(self, known: Known) -> None:
        self._posterior, self._known = known.posterior(), known

    @property
    def rows(self) -> int:
        """How many rows were learned, forgotten or not."""
        return self._known.rows

    @property
    def theta(self) -> FloatArray:
        """The posterior mean of the coefficients; last, the intercept.

        Where they are found in the rows: of features from −1 to 1, in spreads of rewards around
        their average.
        """
        return self._posterior.theta.copy()

    @property
    def spread(self) -> FloatArray:
        """The posterior standard deviations of the coefficients; last, of the intercept."""
        root = self._posterior.root
        found: FloatArray = np.sqrt(np.einsum("ij,ij->j", root, root))
        return found

    @property
    def deviations(self) -> FloatArray:
        """Standard deviations in use: of effects, outermost first; of near; of gaussian noise."""
        return self._size * np.sqrt(self._known.variances)

    @property
    def evidence(self) -> float:
        """The logarithm of how likely the rows since the prior were, before they came.

        By Laplace's approximation for logistic rewards, and with the variances in use.
        """
        known, prior = self._known, self._prior
        if known.rows == prior.rows:
            return 0.0
        after = known.table.evidence(known.variances, known.tree, self._posterior)
        return after - (prior.table.weighed(known.variances, prior.tree)[1] if prior.rows else 0.0)

    def _forms(
        self, features: npt.ArrayLike, groups: Groups | None
    ) -> tuple[FloatArray, FloatArray, Seats, FloatArray, Around]:
        """η = z·(θ, −1) + Σ a_l ε_l + own for each arm: z, a, whose ε, variances of own."""
        X = check_features(features, self.dim)
        spots, X = X[:, : self._places], self._in_units(X[:, self._places :])
        seats = self._known.tree.seats(groups, len(X))
        F, a = self._posterior.forms(seats.nodes)
        a = a[seats.which]
        Z = np.column_stack([X, np.ones(len(X)), np.zeros(len(X))])
        nearby = self._posterior.nearby
        if nearby is None:
            Z += F[seats.which]
            return Z, a, seats, np.zeros(len(X)), None
        nodes = seats.nodes[seats.which, -1]
        own = nearby.tell(Z, spots, nodes)
        much = Z[:, -2:-1].copy()  # what is shared by the group, of which the neighbours tell, too
        Z += much * F[seats.which]
        return Z, much * a, seats, own, (nearby, spots, nodes)

    def _marginals(
        self, features: npt.ArrayLike, groups: Groups | None
    ) -> tuple[FloatArray, FloatArray]:
        """The mean and variance of each arm's η."""
        Z, a, _, own, _ = self._forms(features, groups)
        half = Z[:, :-1] @ self._posterior.root.T
        variance = np.einsum("ij,ij->i", half, half) + np.einsum("ij,ij->i", a, a) + own
        return self._usual + self._size * (Z @ self._posterior.v), self._size**2 * variance

    def moments(
        self, features: npt.ArrayLike, groups: Groups | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """The mean (n,) and covariance (n, n) of the arms' η: what is shared, and what is not.

        η is the mean reward itself, or for logistic rewards its logit. Arms of one patch share
        its effect, seen or not, and all share the uncertainty of θ.
        """
        Z, a, seats, _, around = self._forms(features, groups)
        shared = seats.shared[seats.which]
        half = Z[:, :-1] @ self._posterior.root.T
        covariance = half @ half.T
        for level in range(a.shape[1]):
            same = shared[:, level, None] == shared[:, level]
            covariance += np.where(same, np.outer(a[:, level], a[:, level]), 0.0)
        if around is not None:
            nearby, spots, nodes = around
            covariance += nearby.left(spots, nodes, shared[:, -1])
        return self._usual + self._size * (Z @ self._posterior.v), self._size**2 * covariance

    def factors(self, features: npt.ArrayLike, groups: Groups | None = None) -> Factors:
        """What arms of one innermost group share, as `moments` has it; for many groups at once.

        What is left over is an arm's own: that arms near each other share some of it is not told.
        """
        Z, a, _, own, _ = self._forms(features, groups)
        H = np.hstack([Z[:, :-1] @ self._posterior.root.T, a])
        m = self._usual + self._size * (Z @ self._posterior.v)
        return Factors(m, self._size * H, self._size**2 * own)

    def _reward(self, eta: FloatArray) -> FloatArray:
        return sigmoid(eta) if self.family == "logistic" else eta

    def _mean(self, m: FloatArray, variance: FloatArray) -> FloatArray:
        return sigmoid(flattened(m, variance)) if self.family == "logistic" else m

    def mean(self, features: npt.ArrayLike, groups: Groups | None = None) -> FloatArray:
        """The posterior mean reward of each arm, averaged over what is not known of η."""
        return self._mean(*self._marginals(features, groups))

    def upper(self, features: npt.ArrayLike, groups: Groups | None = None) -> FloatArray:
        """The reward at `width` standard deviations of η above its mean, or `mean` if larger."""
        m, variance = self._marginals(features, groups)
        top = self._reward(m + self.width * np.sqrt(variance))
        return np.maximum(top, self._mean(m, variance))

    def interval(
        self, features: npt.ArrayLike, groups: Groups | None = None, *, level: float = 0.9
    ) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends that hold each arm's mean reward with probability `level`."""
        if not 0.0 < (level := number("level", level)) < 1.0:
            raise ValueError(f"level is {level}; it must be between 0 and 1")
        m, variance = self._marginals(features, groups)
        far = NormalDist().inv_cdf(0.5 + 0.5 * level) * np.sqrt(variance)
        return self._reward(m - far), self._reward(m + far)

    def sample(
        self, features: npt.ArrayLike, rng: np.random.Generator, groups: Groups | None = None
    ) -> FloatArray:
        """Mean rewards under one joint draw of θ and of all effects, of new groups too."""
        Z, a, seats, _, around = self._forms(features, groups)
        shared = seats.shared[seats.which]
        known = self._posterior
        theta = known.theta + known.root.T @ rng.standard_normal(len(known.theta))
        noise = rng.standard_normal(int(shared.max(initial=-1)) + 1)
        eta = Z @ np.append(theta, -1.0) + np.einsum("ij,ij->i", a, noise[shared])
        if around is not None:
            nearby, spots, nodes = around
            # Row by row, so that an arm's draw does not depend on those that follow.
            root = nesting().semidefinite_root(nearby.left(spots, nodes, shared[:, -1]))
            eta += root @ rng.standard_normal(len(Z))
        return self._reward(self._usual + self._size * eta)

    @property
    def _settled(self) -> bool:
        return self._prior.rows > 0

    def _in_units(self, X: FloatArray) -> FloatArray:
        return X if self.scale is not None or self._units is None else self._units.centred(X)

    def _checked(
        self, features: npt.ArrayLike, rewards: npt.ArrayLike, groups: Groups | None
    ) -> Run:
        X = check_features(features, self.dim)
        if self.scale is not None:
            check_scale(X[:, self._places :])
        y = check_rewards(rewards, len(X))
        if self.family == "logistic" and ((y < 0.0) | (y > 1.0)).any():
            bad = int(((y < 0.0) | (y > 1.0)).argmax())
            raise ValueError(f"rewards[{bad}] is {y[bad]:g}; a logistic reward is between 0 and 1")
        return Run(X, y, None if groups is None else check_groups(groups, len(X)))

    def _add(self, rows: Run) -> None:
        spots, X = rows.X[:, : self._places], self._in_units(rows.X[:, self._places :])
        Z = np.column_stack([X, np.ones(len(rows))])
        y = (rows.y - self._usual) / self._size
        paths, known = paths_of(rows.groups, len(rows)), self._known
        # Whether rows come one by one or together, variances are estimated from the same ones.
        visit = last_visit(known.rows + len(y)) - known.rows
        if self.variances == "empirical" and len(self._guess) and visit > 0:
            known = known.added(Z[:visit], y[:visit], paths[:visit], spots[:visit])
            known = known.estimated(self._guess, self._prior.log_variances)
            Z, y, paths, spots = Z[visit:], y[visit:], paths[visit:], spots[visit:]
        self._know(known.added(Z, y, paths, spots).at_mode())

    def _fade(self, factor: float) -> None:
        self._know(self._known.discounted(self._prior, factor).at_mode())

    def _settle(self) -> None:
        self._prior = self._known.settled()
        self._know(self._prior)

    def _leave(self) -> None:
        self._prior = self._known.settled().left()
        self._know(self._prior)

    def _rewind(self) -> None:
        self._know(self._prior)

    def leave(self) -> None:
        """Settle, and let labels stand for other groups from now on: a new grid.

        What the groups left behind say of θ and of the variances stays.
        """
        self._mark("_leave")

    def state(self) -> dict[str, Any]:
        """Everything, as JSON."""
        return seal(
            "nested",
            {
                "dim": self.dim,
                **{name: getattr(self, name) for name in _SETTINGS if name not in _LATER},
                "effects": None if self.effects is None else list(self.effects),
                "scale": list(self.scale) if isinstance(self.scale, tuple) else self.scale,
                **({} if self.centre is None else {"centre": list(self.centre)}),
                **({} if self.near is None else {"near": self.near}),
                "known": self._known.state(),
                "prior": self._prior.state(),
                "units": None if self._units is None else self._units.state(),
            },
        )

    @classmethod
    def restore(cls, state: Mapping[str, Any] | str) -> Self:
        """The belief that `state` was taken from."""
        state = unseal("nested", state)
        settings = {name: entry(state, name) for name in _SETTINGS if name not in _LATER}
        settings |= {name: state.get(name) for name in _LATER}
        belief = cls(entry(state, "dim"), **settings)
        if entry(state, "units") is not None:
            belief._units = Units.restore(state["units"])
            belief._start()
        start = belief._prior
        belief._prior = Known.restore(entry(state, "prior"), start)
        belief._know(Known.restore(entry(state, "known"), start))
        return belief
