"""The default belief: linear, and without units."""

import functools
import math
import warnings
from collections.abc import Mapping
from copy import copy
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import LARGEST, FloatArray, locked, number
from coaf.bandit.beliefs.assumptions import check_mean_bound
from coaf.bandit.beliefs.learner import Views, copied, filled, precision, saved, views
from coaf.bandit.beliefs.registry import register
from coaf.bandit.beliefs.rows import check_dim, check_factor, check_rewards, shaped
from coaf.bandit.groups import Groups
from coaf.bandit.policies.faults import AssumptionWarning
from coaf.bandit.shown import Shown
from coaf.bandit.state import entry, seal, unseal


@functools.cache
def _compiled() -> tuple[Any, Any, Any, Any]:
    """The modules that load numba, on first use."""
    from coaf.bandit.compiled import extremes, linear, scale_free, workspace

    return scale_free, extremes, linear, workspace


@register("scale-free")
class ScaleFree(Shown):
    """Mean rewards θ₀ + θ·x, with every scale learned: of rewards, of their noise, of features.

    Parameters
    ----------
    dim
        Number of features; a constant is not needed among them.
    mean_bound
        The largest mean reward there is, if that is known: estimates are capped by it.
    width
        A factor on how far `upper` is above the estimate: more explores longer.

    Notes
    -----
    Ridge regression with a free constant, in which feature i counts relative to its range in the
    rows learned: θ_i·range has a ridge of 1/32 of a row. So a feature times c, rewards times c or
    a feature plus c change no decision. A feature that differs for the first time is as little
    known as can be.

    With q = x̃ᵀV⁻¹x̃, one over the number of rows that speak for an arm, `upper` is its estimate plus

        √((1 + ln(1 + n·q/D)) · q/(1 + q) · (σ̂² + 4q·ω²)/(1 + 4q)),

    for n rows, D = dim + 1 coefficients, the residual variance σ̂² and the mean square ω² of
    rewards. The last factor is the noise: where four rows or fewer speak for an arm nobody knows
    how noisy it is, and it is taken from the size of rewards. The logarithm grows only for arms
    that are left behind, so that none is given up for good: see `patience`.

    No guarantee comes with this width; docs/study.md says how it was chosen, and docs/stress.md
    how it does where it was not. `Linear(dim)` has the paper's confidence set.

    **A single reward has bounded influence.** The eight largest rewards (in magnitude) count for
    no more than ten times the root mean square of the others that are not 0; of m rewards other
    than 0 only the m/10 largest are judged. This depends on the rows, not on their order, and
    leaves rewards of 0 and 1 alone, and counts. `limited` lists what counts
    for less, and an `AssumptionWarning` says so once.

    Until a reward other than 0 is learned nothing is known of their size (`reward_size` is 0):
    `upper` then is between 0 and 1, and only says of which arm least is known.

    Examples
    --------
    >>> belief = ScaleFree(2)
    >>> X = [[5000.0, 0.01], [5100.0, 0.01], [5000.0, 0.02], [5100.0, 0.02]]
    >>> belief.learn(X, [1.0, 3.0, 2.0, 4.0])
    >>> belief.mean([[5050.0, 0.015]])
    array([2.5])
    """

    def __init__(self, dim: int, *, mean_bound: float | None = None, width: float = 1.0) -> None:
        self.dim = check_dim(dim)
        self.mean_bound = (
            None if mean_bound is None else number("mean_bound", mean_bound, above=0.0)
        )
        self.width = number("width", width, low=0.0)
        self._learner = self._fresh()
        columns = self._learner.shape[1]
        self._size_at = (2 * columns + _compiled()[0].STATED, int(_compiled()[0].MEAN_SQUARE))
        self._prior: FloatArray | None = None
        self._warned: set[str] = set()

    def _fresh(self) -> FloatArray:
        cap = np.inf if self.mean_bound is None else self.mean_bound
        learner: FloatArray = _compiled()[3].free_learner(self.dim, cap, self.width)
        return learner

    def _at(self, row: int, column: int | slice) -> Any:
        """What stands `row` rows below V and P."""
        return self._learner[2 * self._learner.shape[1] + row, column]

    @property
    def rows(self) -> float:
        """How many rows were learned; what was forgotten in part counts in part."""
        return float(self._at(_compiled()[2].NUMBERS, _compiled()[2].ROWS))

    @property
    def reward_size(self) -> float:
        """ω, the root mean square of the rewards learned; 0 while nothing is known of it."""
        return math.sqrt(self._learner.item(self._size_at))  # asked for at every decision

    @property
    def noise(self) -> float:
        """σ̂, the standard deviation of rewards around their estimates."""
        return float(
            np.sqrt(
                max(self._at(_compiled()[2].NUMBERS, _compiled()[2].LOSS), 0.0)
                / max(self.rows, 1.0)
            )
        )

    @property
    def theta(self) -> FloatArray:
        """The coefficients of the features, and last the constant."""
        theta: FloatArray = self._at(_compiled()[2].THETA, slice(self.dim + 1)).copy()
        theta[-1] -= theta[:-1] @ self._reference
        return theta

    @property
    def _reference(self) -> FloatArray:
        reference: FloatArray = self._at(_compiled()[0].REFERENCE, slice(self.dim))
        return reference

    @property
    def limited(self) -> list[tuple[float, float]]:
        """Rewards that count for less than they are: what each is, and what it counts for."""
        _, rewards, counted, weights = _extremes_of(self._learner, self.dim)
        less = (weights > 0.0) & (rewards != counted)
        return [(float(y), float(v)) for y, v in zip(rewards[less], counted[less], strict=True)]

    def patience(self, tries: int, lead: float, *, noise: float = 0.0) -> float:
        """Rows after which an arm is tried again that was tried `tries` times with bad luck.

        For an arm that is told apart by a feature of its own, as one of a few types. By then
        `upper` of the others may be above its average by `lead`, and σ̂ at least `noise`, both in
        units of `reward_size`. Rows are those learned of all arms together.

        Examples
        --------
        Two arms, one of which failed at its first three trials while the other always brings the
        same; and with noise:

        >>> round(ScaleFree(2).patience(3, lead=1.0))
        3990
        >>> round(ScaleFree(2).patience(3, lead=0.7, noise=0.7))
        33
        """
        q = 1.0 / (tries + _compiled()[0].RIDGE)
        few = _compiled()[0].FEW * q
        error2 = q * (noise**2 + few) / ((1.0 + q) * (1.0 + few))
        return float(
            (np.exp(max((lead / self.width) ** 2 / error2 - 1.0, 0.0)) - 1.0) * (self.dim + 1) / q
        )

    def mean(self, features: npt.ArrayLike, groups: Groups | None = None) -> FloatArray:
        """The estimate of each arm; groups make no difference here."""
        X = self._checked(features)
        theta = self._at(_compiled()[2].THETA, slice(self.dim + 1))
        result: FloatArray = (X - self._reference) @ theta[:-1] + theta[-1]
        return result

    def _checked(self, features: npt.ArrayLike) -> FloatArray:
        X = shaped(features, self.dim)
        if not np.abs(X).max(initial=0.0) < LARGEST:
            row = int(np.argmax(~(np.abs(X) < LARGEST).all(axis=1)))
            raise self._beyond(X, row)
        return X

    def upper(self, features: npt.ArrayLike, groups: Groups | None = None) -> FloatArray:
        """The estimate and how far above it the mean may be; see Notes."""
        X = shaped(features, self.dim)
        free, _, _, workspace = _compiled()
        arena = workspace.arena(self.dim + 1, len(X))
        result: FloatArray
        result, bad = free.upper_rows_free(self._learner, arena, X)
        if bad >= 0:
            raise self._beyond(X, bad)
        return result

    def _beyond(self, X: FloatArray, row: int) -> ValueError:
        column = int(np.argmax(~(np.abs(X[row]) < LARGEST)))
        return ValueError(
            f"features[{row}, {column}] is {X[row, column]}; every entry must be a number within "
            f"±{LARGEST:g}"
        )

    def sample(
        self, features: npt.ArrayLike, rng: np.random.Generator, groups: Groups | None = None
    ) -> FloatArray:
        """One joint draw of mean rewards, whose standard deviation is the width of `upper`."""
        X = self._checked(features)
        free = _compiled()[0]
        u = free.draw_free(self._learner, self.dim + 1, rng.standard_normal(self.dim + 1))
        away = X - self._reference
        same = self._at(free.LOW, slice(self.dim)) == self._at(free.HIGH, slice(self.dim))
        away[:, same] = np.sign(away[:, same]) / np.sqrt(free.RIDGE)
        drawn = away @ u[:-1] + u[-1]
        width, error = self._widths(X)
        result: FloatArray = self.mean(X) + drawn * width / error
        return result

    def _widths(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """How far `upper` is above the mean, uncapped, and √q."""
        free, _, _, workspace = _compiled()
        arena = workspace.arena(self.dim + 1, len(X))
        widths: FloatArray
        errors: FloatArray
        widths, errors = free.widths_free(self._learner, arena, X)
        return widths, errors

    def learn(
        self, features: npt.ArrayLike, rewards: npt.ArrayLike, groups: Groups | None = None
    ) -> None:
        """Add any number of rows."""
        X = shaped(features, self.dim)
        y = locked(np.ascontiguousarray(rewards, dtype=np.float64))
        if y.shape != (len(X),):
            raise ValueError(f"rewards has shape {y.shape} for {len(X)} rows of features")
        free, _, _, workspace = _compiled()
        arena = workspace.arena(self.dim + 1, 1)
        row, reward, limited = free.learn_rows_free(self._learner, arena, X, y)
        if row >= 0:
            raise self._beyond(X, row)
        if reward >= 0:
            raise ValueError(
                f"rewards[{reward}] is {y[reward]}; every entry must be a number within "
                f"±{LARGEST:g}"
            )
        if limited:
            self._say_limited()
        if self.mean_bound is not None:
            excess, count = self._at(free.STATED, free.EXCESS), self._at(free.STATED, free.BOUNDED)
            found = float(excess), float(count), self.noise
            check_mean_bound(self, self.mean_bound, *found, instead="leave it out")

    def _say_limited(self) -> None:
        """Say once what the rule about single rewards does, and once where it is at its end."""
        found = self.limited
        everyone = len(found) == _compiled()[1].EXTREMES
        subject = "many" if everyone else "some"
        if not found or subject in self._warned:
            return
        self._warned.add(subject)
        reward, counted = max(found, key=lambda pair: abs(pair[0]))
        what = f"a reward of {reward:.6g} counts for {counted:.6g}"
        if everyone:
            what += f", and so do {len(found) - 1} more: others as large may count in full"
        warnings.warn(
            f"rewards: {what}, because it is far beyond the others (see ScaleFree.limited). If it "
            "stands for a missing score, abandon it instead; reward_range refuses such rewards",
            AssumptionWarning,
            stacklevel=4,
        )

    def _start(self) -> FloatArray:
        """A learner that knows the prior alone."""
        return self._fresh() if self._prior is None else copied(self._prior)

    def refit(
        self, features: npt.ArrayLike, rewards: npt.ArrayLike, groups: Groups | None = None
    ) -> None:
        """Start again from the prior with these rows."""
        fresh = copy(self)
        fresh._learner = self._start()
        fresh.learn(features, rewards, groups)
        self._learner = fresh._learner

    def correct(
        self,
        features: npt.ArrayLike,
        previous: npt.ArrayLike,
        rewards: npt.ArrayLike,
        groups: Groups | None = None,
    ) -> None:
        """Let rows that were learned with rewards `previous` have `rewards`."""
        X = self._checked(features)
        before, now = check_rewards(previous, len(X)), check_rewards(rewards, len(X))
        free, _, _, workspace = _compiled()
        new = copied(self._learner)
        if self.rows < len(X) or not free.correct_rows_free(
            new, workspace.arena(self.dim + 1, 1), X, before, now
        ):
            raise ValueError(
                "a reward counts for less than it is (see ScaleFree.limited), so that corrections "
                "need all rows: use keep_rows=True, or refit"
            )
        self._learner = new

    def forget(self, factor: float) -> None:
        """Let the rows learned count `factor` of what they did; ranges of features stay."""
        if check_factor(factor) < 1.0 and self.rows > 0.0:
            free, _, _, workspace = _compiled()
            new = _discounted(self._learner, self._start(), self.dim, float(factor))
            free.derive_all(new, workspace.arena(self.dim + 1, 1), self.dim + 1)
            self._learner = new

    def settle(self) -> None:
        """Let what is known now be the prior."""
        self._prior = self.learner()

    def learner(self) -> FloatArray:
        """A copy of what is known, as the array that `coaf.bandit.compiled` learns with."""
        return copied(self._learner)

    def state(self) -> dict[str, Any]:
        """Everything, as JSON."""
        return seal(
            "scale-free",
            {
                "dim": self.dim,
                "mean_bound": self.mean_bound,
                "width": self.width,
                "learner": saved(_views(self._learner, self.dim)),
                "prior": None if self._prior is None else saved(_views(self._prior, self.dim)),
                "warned": sorted(self._warned),
            },
        )

    @classmethod
    def restore(cls, state: Mapping[str, Any] | str) -> Self:
        """The belief that `state` was taken from."""
        state = unseal("scale-free", state)
        settings = {name: entry(state, name) for name in ("mean_bound", "width")}
        belief = cls(entry(state, "dim"), **settings)
        belief._learner = belief._loaded(state, "learner")
        if entry(state, "prior") is not None:
            belief._prior = belief._loaded(state, "prior")
        belief._warned = set(entry(state, "warned"))
        return belief

    def _loaded(self, state: Mapping[str, Any], name: str) -> FloatArray:
        fresh = self._fresh()
        return filled(fresh, _views(fresh, self.dim), state, name)


def _views(learner: FloatArray, dim: int) -> Views:
    """What is known, by name."""
    (free, extremes, _, _), D, top = _compiled(), dim + 1, 2 * learner.shape[1]
    yield from views(learner, D)
    yield "found", learner[top + 3, :8]
    yield "ranges", learner[top + free.REFERENCE : top + free.HIGH + 1, :dim]
    yield "rest", learner[top + extremes.REST, :D]
    yield "extremes", learner[-extremes.TAIL :][: extremes.EXTREMES, :D]
    yield "judged", learner[-extremes.TAIL :][extremes.EXTREMES :, : extremes.EXTREMES]


def _extremes_of(
    learner: FloatArray, dim: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Views of the extremes: rows x̃, rewards, what they count for, and weights."""
    module = _compiled()[1]
    tail, count = learner[-module.TAIL :], module.EXTREMES
    numbers = (tail[row, :count] for row in (module.REWARDS, module.COUNTED, module.WEIGHTS))
    rewards, counted, weights = numbers
    return tail[:count, : dim + 1], rewards, counted, weights


def _ridge(learner: FloatArray, dim: int) -> FloatArray:
    """The part of V that is no row's."""
    free, top = _compiled()[0], 2 * learner.shape[1]
    ranges = learner[top + free.HIGH, :dim] - learner[top + free.LOW, :dim]
    return np.diag(np.append(free.RIDGE * ranges * ranges, 0.0))


def _known(learner: FloatArray, dim: int) -> FloatArray:
    """Σ x̃ x̃ᵀ over the rows learned."""
    return precision(learner, dim + 1) - _ridge(learner, dim)


def _discounted(learner: FloatArray, prior: FloatArray, dim: int, factor: float) -> FloatArray:
    """The learner with what came since `prior` at `factor` of its weight; to be derived."""
    _, module, linear, _ = _compiled()
    D, top = dim + 1, 2 * learner.shape[1]
    result = copied(learner)
    before = _known(prior, dim)
    result[:D, :D] = _ridge(learner, dim) + before + factor * (_known(learner, dim) - before)
    result[top + 2, linear.WAITING] = 0.0
    sums = [(top + module.REST, slice(D)), (top + 2, module.SQUARES), (top + 2, module.NONZERO)]
    sums.append((top + 2, linear.ROWS))
    # What was an extreme of the prior's and is one still keeps its weight; what is none any more
    # is among the rest now, and was not then.
    old, now = _extremes_of(prior, dim), _extremes_of(result, dim)
    kept = np.zeros(len(now[3]), dtype=np.bool_)
    earlier = [prior[at].copy() if isinstance(at[1], slice) else float(prior[at]) for at in sums]
    for x, reward, _, weight in zip(*old, strict=True):
        same = (now[3] > 0.0) & ~kept & (now[1] == reward) & (now[0] == x).all(axis=1)
        if weight > 0.0 and same.any():
            kept[int(same.argmax())] = True
        elif weight > 0.0:
            moved = (weight * reward * x, weight * reward * reward, weight, 0.0)
            earlier = [a + b for a, b in zip(earlier, moved, strict=True)]
    for at, then in zip(sums, earlier, strict=True):
        result[at] = then + factor * (learner[at] - then)
    now[3][~kept] *= factor
    return result
