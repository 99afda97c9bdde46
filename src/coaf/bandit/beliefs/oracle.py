"""Beliefs around a regressor that somebody else wrote: its rows, its fits, and their spread."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import FloatArray, number
from coaf.bandit.beliefs.estimators import decode_estimator, encode_estimator
from coaf.bandit.beliefs.rows import check_factor, check_features, check_rewards
from coaf.bandit.faults import LARGEST, BeliefWarning
from coaf.bandit.groups import Groups
from coaf.bandit.lock import Lock
from coaf.bandit.state import entry, pack, seal, unpack, unseal
from coaf.bandit.threads import on_one_thread

_LIGHTEST = 1e-12
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

    epoch: int
    good: int
    models: tuple[Any, ...]
    average: float  # reward
    R: FloatArray  # RᵀR = V⁻¹


@on_one_thread()
class Oracle:
    """What `Regression` and `Ensemble` share; they say how one copy differs from another.

    Notes
    -----
    A fit is a function of the rows up to the last epoch and of their weights. It is made when
    scores are first asked for, and kept: learning is quick, and a replay fits once.

    The variance of an estimate is that of the copies, and at least what a linear model with
    intercept would have, σ² x̃ᵀV⁻¹x̃ with x̃ = (1, x) and V = λI + Σ w x̃x̃ᵀ: a model that can do
    more knows less, though its copies agree where there are no rows, or all rewards were equal.
    λ = (width·σ/mean_bound)², which makes the prior as wide as `mean_bound`.
    """

    kind: ClassVar[str]
    settings: ClassVar[tuple[str, ...]]
    fits: int  # how many regressors are fitted at an epoch
    width: float  # how many standard deviations `upper` is above the mean

    def __init__(
        self, dim: int, regressor: Any, *, copies: int, noise: float, mean_bound: float, seed: int
    ) -> None:
        for name, value, low in (("dim", dim, 1), ("copies", copies, 2), ("seed", seed, 0)):
            if value < low or int(value) != value:
                raise ValueError(f"{name} is {value!r}; it must be an integer of at least {low}")
        missing = [n for n in ("fit", "predict", "get_params") if not hasattr(regressor, n)]
        if missing or isinstance(regressor, type):
            what = f"has no {missing[0]}" if missing else "is a class; give an instance"
            raise ValueError(f"regressor {regressor!r} {what}; it must be like scikit-learn's")
        self.dim, self.copies, self.seed = int(dim), int(copies), int(seed)
        self.noise = number("noise", noise, above=0.0)
        self.mean_bound = number("mean_bound", mean_bound, above=0.0)
        self.fault = ""  # what went wrong with the regressor last, "" if nothing did
        self._recipe, self._weights = (
            encode_estimator(regressor, "regressor"),
            weight_name(regressor),
        )
        self._count, self._settled = 0, 0  # rows, and how many of them are the prior
        self._columns: tuple[FloatArray, ...] = (np.empty((0, self.dim)), np.empty(0), np.empty(0))
        self._new: list[tuple[FloatArray, FloatArray]] = []
        self._known: Fit | None = None
        self._lock = Lock()  # of rows joined and fits made when scores are first asked for

    def _train(self, copy: int, X: FloatArray, y: FloatArray, w: FloatArray) -> Any:
        """A copy of the regressor, fitted."""
        raise NotImplementedError

    def _spread(self, predicted: FloatArray) -> tuple[FloatArray, FloatArray]:
        """From what the models predict (fits, n): the estimates, and D with variances Σ_b D_b²."""
        raise NotImplementedError

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

    def _fit_at(self, epoch: int) -> tuple[Any, ...]:
        rows, models = self._first(epoch), []
        for copy in range(self.fits if epoch else 0):
            models.append(self._train(copy, *(column.copy() for column in rows)))
            finite(models[-1].predict(rows[0]), epoch)
        return tuple(models)

    def _last_good(self, epoch: int) -> tuple[int, tuple[Any, ...], str]:
        """The last epoch whose fits did not fail, its models, and what failed after it."""
        fault, known = "", self._known
        for good in reversed(epochs(epoch)):
            if known is not None and good <= known.epoch:
                return known.good, known.models, fault
            try:
                return good, self._fit_at(good), fault
            except Exception as error:
                fault = fault or f"fitting {good} rows failed: {type(error).__name__} ({error})"
        return 0, (), fault

    def _fit(self) -> Fit:
        epoch = epochs(self._count)[-1]
        with self._lock:
            if self._known is not None and self._known.epoch == epoch:
                return self._known
            good, models, fault = self._last_good(epoch)
            X, y, w = self._first(epoch)
            X1 = np.column_stack([np.ones(epoch), X])
            ridge = (self.width * self.noise / self.mean_bound) ** 2
            V = ridge * np.eye(self.dim + 1) + X1.T @ (w[:, None] * X1)
            average = float(w @ y / w.sum()) if epoch else 0.0
            known = Fit(epoch, good, models, average, np.linalg.inv(np.linalg.cholesky(V)))
            self._known, self.fault = known, ""
            if fault:
                instead = f"{average:.3g}, their average reward,"
                instead = f"the fit of {good} rows" if good else instead
                self._report(f"{fault}; {instead} stands in")
            return known

    def _predict(self, model: Any, X: FloatArray, average: float) -> FloatArray:
        try:
            return finite(model.predict(X), len(X))
        except Exception as error:
            what = f"{type(error).__name__} ({error}); {average:.3g}, the average reward, stands in"
            self._report(f"predicting failed: {what}")
            return np.full(len(X), average)

    def _scores(self, features: npt.ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Estimates, D with the copies' variances Σ_b D_b², and σRx̃, the same of the linear."""
        X = check_features(features, self.dim)
        fit = self._fit()
        linear = self.noise * (fit.R @ np.column_stack([np.ones(len(X)), X]).T)
        if not fit.models or not len(X):
            return np.full(len(X), fit.average), np.zeros((0, len(X))), linear
        predicted = np.array([self._predict(model, X, fit.average) for model in fit.models])
        return *self._spread(predicted), linear

    def _bounded(self, centre: FloatArray) -> FloatArray:
        return np.minimum(np.maximum(centre, -self.mean_bound), self.mean_bound)

    def mean(self, features: npt.ArrayLike, groups: Groups | None = None) -> FloatArray:
        """What is predicted, within ±mean_bound; 0 before any row. Groups make no difference."""
        return self._bounded(self._scores(features)[0])

    def upper(self, features: npt.ArrayLike, groups: Groups | None = None) -> FloatArray:
        """The mean and `width` standard deviations, at most `mean_bound`."""
        centre, D, linear = self._scores(features)
        sd = np.sqrt(np.maximum(np.sum(D**2, axis=0), np.sum(linear**2, axis=0)))
        return self._bounded(self._bounded(centre) + self.width * sd)

    def learn(
        self, features: npt.ArrayLike, rewards: npt.ArrayLike, groups: Groups | None = None
    ) -> None:
        """Add any number of rows."""
        X = check_features(features, self.dim)
        self._new.append((X, check_rewards(rewards, len(X))))
        self._count += len(X)

    def refit(
        self, features: npt.ArrayLike, rewards: npt.ArrayLike, groups: Groups | None = None
    ) -> None:
        """Start again from the prior with these rows."""
        X = check_features(features, self.dim)
        y = check_rewards(rewards, len(X))
        self._columns, self._known = self._first(self._settled), None
        self._new, self._count = [(X, y)], self._settled + len(y)

    def forget(self, factor: float) -> None:
        """Let the rows learned since `settle` weigh `factor` of what they did; a fit follows."""
        if check_factor(factor) < 1.0:
            X, y, w = self._first(self._count)
            factors = np.where(np.arange(self._count) < self._settled, 1.0, float(factor))
            # Never quite 0: regressors are not made for rows without weight.
            self._columns, self._known = (X, y, np.maximum(w * factors, _LIGHTEST)), None

    def settle(self) -> None:
        """Let the rows learned so far be the prior."""
        self._settled = self._count

    def state(self) -> dict[str, Any]:
        """The rows, the settings and how to make the regressor, as JSON."""
        columns = zip(_COLUMNS, self._first(self._count), strict=True)
        settings = {name: getattr(self, name) for name in ("dim", *self.settings)}
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
        return belief
