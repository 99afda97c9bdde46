"""Beliefs around a regressor that somebody else wrote: its rows, its fits, and their spread."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import LARGEST, FloatArray, number
from coaf.bandit.beliefs.assumptions import check_mean_bound, check_noise
from coaf.bandit.beliefs.estimators import decode_estimator, encode_estimator
from coaf.bandit.beliefs.lock import Lock
from coaf.bandit.beliefs.rows import check_dim, check_factor, check_features, check_rewards
from coaf.bandit.beliefs.spread import SeenScale
from coaf.bandit.groups import Groups
from coaf.bandit.policies.faults import BeliefWarning
from coaf.bandit.shown import Shown
from coaf.bandit.state import entry, pack, seal, unpack, unseal
from coaf.bandit.threads import on_one_thread

_LIGHTEST = 1e-12
_RIDGE = 1e-10  # of a row for each row: with less, V may be singular by rounding
_COLUMNS = ("features", "rewards", "weights")


def epochs(rows: int) -> list[int]:
    """The row counts up to `rows` at which regressors are fitted: each about a quarter more.

    They depend on nothing else, so that rows may come in any pieces.

    Examples
    --------
    >>> epochs(20)
    [0, 1, 2, 3, 4, 6, 8, 11, 14, 18]
    """
    found = [0]
    while (following := found[-1] + 1 + found[-1] // 4) <= rows:
        found.append(following)
    return found


def weight_name(regressor: Any) -> str | None:
    """How `fit` calls the weights of rows; those of a pipeline's last step; None if it has none."""
    if "sample_weight" in signature(regressor.fit).parameters:
        return "sample_weight"
    name, last = (getattr(regressor, "steps", None) or [("", None)])[-1]
    inner = weight_name(last) if hasattr(last, "fit") else None
    return None if inner is None else f"{name}__{inner}"


def finite(values: Any, n: int) -> FloatArray:
    """What a regressor predicts, as `n` numbers."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (n,) or not (np.abs(array) <= LARGEST).all():
        raise ArithmeticError(f"it does not predict a finite number for each of {n} rows")
    return array


@dataclass(frozen=True)
class Fit:
    """What is known at an epoch; `models` are of epoch `good`, earlier where later fits failed."""

    scale: SeenScale
    good: int
    models: tuple[Any, ...]
    unit: float  # of what models predict
    average: float  # reward
    width: float  # how many standard deviations `upper` is above the mean
    R: FloatArray  # RᵀR = V⁻¹


class Scores(NamedTuple):
    """Estimates of n arms; D with the copies' variances Σ_b D_b²; σRx̃, the same of the linear."""

    centre: FloatArray
    D: FloatArray
    linear: FloatArray
    width: float


@on_one_thread()
class Regressor(Shown):
    """What `Regression` and `Ensemble` share; they say how one copy differs from another.

    Notes
    -----
    A fit is a function of the rows up to the last epoch and of their weights. It is made when
    scores are first asked for, and kept: learning is quick, and a replay fits once.

    Regressors are shown rewards in units of ω, the root mean square of those up to the epoch, and
    features as they are: scaling these is the pipeline's business. Where `mean_bound` is stated
    rewards are shown as they are, too.

    The variance of an estimate is that of the copies, and at least what a linear model with
    intercept would have, σ² x̃ᵀV⁻¹x̃ with V = λI + Σ w x̃x̃ᵀ: a model that can do more knows less,
    though its copies agree where there are no rows, or all rewards were equal. x̃ = (1, z), where
    z goes from −1 to 1 over the rows; x̃ = (1, x) where `mean_bound` is stated.
    λ = (width·σ/2ω)² makes the prior as wide as 2ω, or as a stated `mean_bound`.
    """

    kind: ClassVar[str]
    settings: ClassVar[tuple[str, ...]]
    fits: int  # how many regressors are fitted at an epoch

    def __init__(
        self,
        dim: int,
        regressor: Any,
        *,
        copies: int,
        noise: float | None,
        mean_bound: float | None,
        seed: int,
    ) -> None:
        self.dim = check_dim(dim)
        for name, value, low in (("copies", copies, 2), ("seed", seed, 0)):
            if value < low or int(value) != value:
                raise ValueError(f"{name} is {value!r}; it must be an integer of at least {low}")
        missing = [n for n in ("fit", "predict", "get_params") if not hasattr(regressor, n)]
        if missing or isinstance(regressor, type):
            what = f"has no {missing[0]}" if missing else "is a class; give an instance"
            raise ValueError(f"regressor {regressor!r} {what}; it must be like scikit-learn's")
        self.copies, self.seed = int(copies), int(seed)
        self.noise = None if noise is None else number("noise", noise, above=0.0)
        self.mean_bound = (
            None if mean_bound is None else number("mean_bound", mean_bound, above=0.0)
        )
        self.fault = ""  # what went wrong with the regressor last, "" if nothing did
        self._recipe, self._weights = (
            encode_estimator(regressor, "regressor"),
            weight_name(regressor),
        )
        self._count, self._settled = 0, 0  # rows, and how many of them are the prior
        self._rewarded = 0  # the number of the first row whose reward is not 0
        self._columns: tuple[FloatArray, ...] = (np.empty((0, self.dim)), np.empty(0), np.empty(0))
        self._new: list[tuple[FloatArray, FloatArray]] = []
        self._scale: SeenScale | None = None
        self._known: Fit | None = None
        self._warned: set[str] = set()  # as `fault` not saved: scoring leaves the state as it is
        self._lock = Lock()  # of rows joined and fits made when scores are first asked for

    def _train(self, copy: int, X: FloatArray, y: FloatArray, w: FloatArray, noise: float) -> Any:
        """A copy of the regressor, fitted to rewards of this noise."""
        raise NotImplementedError

    def _spread(self, predicted: FloatArray) -> tuple[FloatArray, FloatArray]:
        """From what the models predict (fits, n): the estimates, and D with variances Σ_b D_b²."""
        raise NotImplementedError

    def _width(self, noise: float) -> float:
        """How many standard deviations `upper` is above the mean."""
        raise NotImplementedError

    def _nothing_known(self) -> float:
        """What stands in for the noise while nothing is known of rewards."""
        return 1.0

    @property
    def reward_size(self) -> float:
        """ω at the last epoch; 0 while all rewards are 0, infinite where mean_bound is stated."""
        return np.inf if self.mean_bound is not None else self._measured().size

    @property
    def rows(self) -> float:
        """How many rows were learned; what was forgotten in part counts in part."""
        return float(self._first(self._count)[2].sum())

    def _first(self, rows: int) -> tuple[FloatArray, ...]:
        """Features, rewards and weights of the first `rows` rows."""
        with self._lock:
            if self._new:  # joined only now, so that learning a row does not copy all others
                parts = [self._columns, *((X, y, np.ones(len(y))) for X, y in self._new)]
                self._columns = tuple(np.concatenate(c) for c in zip(*parts, strict=True))
                self._new = []
            return tuple(column[:rows] for column in self._columns)

    def _report(self, fault: str) -> None:
        self.fault = fault
        warnings.warn(f"{type(self).__name__}: {fault}", BeliefWarning, stacklevel=6)

    def _epochs(self, rows: int) -> list[int]:
        """Those up to `rows`; the first reward other than 0 makes one, for it brings the unit."""
        found = epochs(rows)
        if self.mean_bound is None and 0 < self._rewarded <= rows:
            found = sorted({*found, self._rewarded})
        return found

    def _measured(self, epoch: int | None = None) -> SeenScale:
        """The scale at an epoch, the last unless given."""
        with self._lock:
            at = self._epochs(self._count)[-1] if epoch is None else epoch
            if self._scale is None or self._scale.epoch != at:
                self._scale = SeenScale.of(
                    *self._first(at),
                    noise=self.noise,
                    mean_bound=self.mean_bound,
                    nothing_known=self._nothing_known(),
                )
            return self._scale

    def _fit_at(self, epoch: int) -> tuple[tuple[Any, ...], FloatArray]:
        """The models of an epoch, and what they estimate its rows at."""
        scale, models, predicted = self._measured(epoch), [], []
        X, y, w = self._first(epoch)
        for copy in range(self.fits if epoch else 0):
            rows = (X.copy(), y / scale.unit, w.copy())
            models.append(self._train(copy, *rows, scale.noise / scale.unit))
            predicted.append(finite(models[-1].predict(X), epoch))
        centre = self._spread(np.array(predicted))[0] if models else np.zeros(epoch)
        return tuple(models), scale.unit * centre

    def _last_good(self, epoch: int) -> tuple[int, tuple[Any, ...], FloatArray | None, str]:
        """The last epoch whose fits did not fail, its models and estimates, and what failed since.

        Without estimates where the models are those known before.
        """
        fault, known = "", self._known
        for good in reversed(self._epochs(epoch)):
            if known is not None and good <= known.scale.epoch:
                return known.good, known.models, None, fault
            try:
                return good, *self._fit_at(good), fault
            except Exception as error:
                fault = fault or f"fitting {good} rows failed: {type(error).__name__} ({error})"
        return 0, (), None, fault

    def _fit(self) -> Fit:
        epoch = self._epochs(self._count)[-1]
        with self._lock:
            if self._known is not None and self._known.scale.epoch == epoch:
                return self._known
            good, models, estimates, fault = self._last_good(epoch)
            unit, scale = self._measured(good).unit, self._measured(epoch)
            X, y, w = self._first(epoch)
            X1, width = scale.rows(X), self._width(scale.noise)
            if self.mean_bound is None:
                ridge = max((0.5 * width * scale.noise / scale.unit) ** 2, _RIDGE * epoch)
            else:
                ridge = (width * scale.noise / self.mean_bound) ** 2
            V = ridge * np.eye(self.dim + 1) + X1.T @ (w[:, None] * X1)
            average = float(w @ y / w.sum()) if epoch else 0.0
            R = np.linalg.inv(np.linalg.cholesky(V))
            known = Fit(scale, good, models, unit, average, width, R)
            self._known, self.fault = known, ""
            if fault:
                instead = f"{average:.3g}, their average reward,"
                instead = f"the fit of {good} rows" if good else instead
                self._report(f"{fault}; {instead} stands in")
            if good and estimates is not None:
                self._compare(good, estimates)
            return known

    def _compare(self, rows: int, estimates: FloatArray) -> None:
        """Do the rows that were fitted keep to what was stated?"""
        _, y, w = self._first(rows)
        noise = self._measured(rows).noise
        if self.mean_bound is not None:
            at = estimates >= self.mean_bound
            excess, count = float(w[at] @ (y[at] - self.mean_bound)), float(w[at].sum())
            # A regressor that follows each reward finds those beyond the bound by chance: as far
            # as their noise.
            if excess > noise * count:
                how = "leave it out"
                check_mean_bound(self, self.mean_bound, excess, count, noise, instead=how)
        if self.noise is not None:
            loss = float(w @ (y - estimates) ** 2)
            how = "leave it out, and it is learned"
            check_noise(self, self.noise, loss, float(w.sum()), instead=how)

    def _predict(self, model: Any, X: FloatArray, fit: Fit) -> FloatArray:
        try:
            return finite(model.predict(X), len(X))
        except Exception as error:
            what = f"{type(error).__name__} ({error}); {fit.average:.3g}, the average reward,"
            self._report(f"predicting failed: {what} stands in")
            return np.full(len(X), fit.average / fit.unit)

    def _scores(self, features: npt.ArrayLike) -> Scores:
        X = check_features(features, self.dim)
        fit = self._fit()
        linear = fit.scale.noise * (fit.R @ fit.scale.rows(X).T)
        if not fit.models or not len(X):
            return Scores(np.full(len(X), fit.average), np.zeros((0, len(X))), linear, fit.width)
        predicted = np.array([self._predict(model, X, fit) for model in fit.models])
        centre, D = self._spread(predicted)
        return Scores(fit.unit * centre, fit.unit * D, linear, fit.width)

    def _bounded(self, centre: FloatArray) -> FloatArray:
        if self.mean_bound is None:
            return centre
        return np.minimum(np.maximum(centre, -self.mean_bound), self.mean_bound)

    def mean(self, features: npt.ArrayLike, groups: Groups | None = None) -> FloatArray:
        """What is predicted, within ±mean_bound; 0 before any row. Groups make no difference."""
        return self._bounded(self._scores(features).centre)

    def upper(self, features: npt.ArrayLike, groups: Groups | None = None) -> FloatArray:
        """The mean and `width` standard deviations, at most `mean_bound`."""
        centre, D, linear, width = self._scores(features)
        sd = np.sqrt(np.maximum(np.sum(D**2, axis=0), np.sum(linear**2, axis=0)))
        return self._bounded(self._bounded(centre) + width * sd)

    def learn(
        self, features: npt.ArrayLike, rewards: npt.ArrayLike, groups: Groups | None = None
    ) -> None:
        """Add any number of rows."""
        X = check_features(features, self.dim)
        self._add(X, check_rewards(rewards, len(X)))

    def _add(self, X: FloatArray, y: FloatArray) -> None:
        if not self._rewarded and y.any():
            self._rewarded = self._count + int((y != 0.0).argmax()) + 1
        self._new.append((X, y))
        self._count += len(y)

    def refit(
        self, features: npt.ArrayLike, rewards: npt.ArrayLike, groups: Groups | None = None
    ) -> None:
        """Start again from the prior with these rows."""
        X = check_features(features, self.dim)
        y = check_rewards(rewards, len(X))
        self._columns, self._scale, self._known = self._first(self._settled), None, None
        self._new, self._count = [], self._settled
        if self._rewarded > self._settled:
            self._rewarded = 0
        self._add(X, y)

    def forget(self, factor: float) -> None:
        """Let the rows learned since `settle` weigh `factor` of what they did; a fit follows."""
        if check_factor(factor) < 1.0:
            X, y, w = self._first(self._count)
            factors = np.where(np.arange(self._count) < self._settled, 1.0, float(factor))
            # Never quite 0: regressors are not made for rows without weight.
            self._columns = (X, y, np.maximum(w * factors, _LIGHTEST))
            self._scale, self._known = None, None

    def settle(self) -> None:
        """Let the rows learned so far be the prior."""
        self._settled = self._count

    def _setting(self, name: str) -> Any:
        """What was given as this argument."""
        return getattr(self, name)

    def state(self) -> dict[str, Any]:
        """The rows, the settings and how to make the regressor, as JSON."""
        columns = zip(_COLUMNS, self._first(self._count), strict=True)
        settings = {"dim": self.dim} | {name: self._setting(name) for name in self.settings}
        known = {"regressor": self._recipe, "settled": self._settled}
        return seal(self.kind, settings | known | {name: pack(one) for name, one in columns})

    @classmethod
    def restore(cls, state: Mapping[str, Any] | str) -> Self:
        """The belief that `state` was taken from; the regressor is fitted again when asked."""
        state = unseal(cls.kind, state)
        recipe, settings = entry(state, "regressor"), {n: entry(state, n) for n in cls.settings}
        belief = cls(entry(state, "dim"), decode_estimator(recipe, settings["seed"]), **settings)
        X, y, w = (unpack(state, name) for name in _COLUMNS)
        if X.shape != (len(y), belief.dim) or w.shape != y.shape:
            shapes = f"shapes {X.shape}, {y.shape}, {w.shape}"
            raise ValueError(f"state has rows of {shapes}, which do not fit with dim={belief.dim}")
        belief._recipe, belief._columns, belief._count = recipe, (X, y, w), len(y)
        belief._settled = int(entry(state, "settled"))
        belief._rewarded = int((y != 0.0).argmax()) + 1 if y.any() else 0
        return belief
