"""Which belief suits a table of rows: a small cross-validated comparison."""

import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import FloatArray, floats
from coaf.bandit.beliefs.belief import Belief
from coaf.bandit.beliefs.glm import Logistic, Poisson
from coaf.bandit.beliefs.kernel.kernel import Kernel
from coaf.bandit.beliefs.kernel.likelihood import likeliest
from coaf.bandit.beliefs.nested.nested import Nested
from coaf.bandit.beliefs.regression import Regression
from coaf.bandit.beliefs.rows import check_features, check_rewards
from coaf.bandit.beliefs.scale_free import ScaleFree
from coaf.bandit.extras import require_extra
from coaf.bandit.groups import Groups, check_groups
from coaf.bandit.threads import one_thread

FOLDS = 5
NOTHING = "the average"
Maker = Callable[[FloatArray, FloatArray], Belief]  # labelled examples -> a belief that knows none


@dataclass(frozen=True, slots=True, eq=False)
class Recommendation:
    """What was compared, and what is recommended.

    Attributes
    ----------
    name
        The recommended belief, or "the average" where features tell nothing.
    belief
        A fresh one, with none of the rows learned; None for the average.
    table
        Flat rows, simplest belief first: `belief`, `error` (root mean square, of rows held out),
        `explained` (the share of variance that it explains), `worse` and `worse_error` (how much
        larger its squared error is than the best's, and the standard error of that), `us_per_row`
        (to learn).
    why
        A sentence.
    skipped
        Beliefs that were left out, and why: they could not learn these rows, or need an extra.
    """

    name: str
    belief: Belief | None
    table: list[dict[str, Any]]
    why: str
    skipped: dict[str, str]

    def __str__(self) -> str:
        lines = [f"{'belief':22} {'error':>8} {'explained':>9} {'worse by':>19} {'us per row':>10}"]
        for row in self.table:
            worse = f"{row['worse']:.4g} ± {row['worse_error']:.4g}"
            mark = "  <- recommended" if row["belief"] == self.name else ""
            lines.append(
                f"{row['belief']:22} {row['error']:8.4g} {row['explained']:9.1%} {worse:>19} "
                f"{row['us_per_row']:10.0f}{mark}"
            )
        rest = [f"{name} was left out: {why}" for name, why in self.skipped.items()]
        return "\n".join([*lines, *rest, self.why])


@one_thread
def choose_belief(
    features: npt.ArrayLike,
    rewards: npt.ArrayLike,
    groups: Groups | None = None,
    *,
    seed: int = 0,
) -> Recommendation:
    """Compare beliefs by how well they predict rows they have not learned, and recommend one.

    Five folds at random; every belief learns four of them and predicts the fifth. Settings come
    from the rows learned alone, and units make no difference: of features, or of rewards that are
    neither 0 and 1 nor counts. The recommendation is the simplest belief whose squared error is
    not clearly larger than the best's: by no more than one standard error of their difference,
    row by row. It judges means alone; whether intervals hold, each belief's page says.

    Parameters
    ----------
    features : (n, d)
        Rows that were scored, 50 or more.
    rewards : (n,)
        Their rewards. Zeros and ones bring in `Logistic`, other whole numbers `Poisson`.
    groups : (n,) or (n, levels)
        Their groups, if any, which bring in `Nested`. Rows of one group fall into different folds,
        as in a patch of which some holes were seen.
    seed
        Of the folds.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.7, 0.7, size=(150, 2))
    >>> choose_belief(X, X @ [0.8, -0.3] + 0.05 * rng.normal(size=150)).name
    'linear'
    """
    given = floats("features", features, ndim=2)
    X = check_features(given, given.shape[1])
    y = check_rewards(rewards, len(X))
    labels = None if groups is None else check_groups(groups, len(X))
    if len(X) < 50:
        raise ValueError(f"features has {len(X)} rows; a comparison needs at least 50")
    makers = candidates(X, y, labels) if np.ptp(y) > 0.0 else {}
    fold = np.random.default_rng(seed).permutation(len(X)) % FOLDS
    average = np.empty(len(X))
    for held in range(FOLDS):
        average[fold == held] = y[fold != held].mean()
    squares, seconds, skipped = {NOTHING: (y - average) ** 2}, {NOTHING: 0.0}, {}
    fresh: dict[str, Belief] = {}
    for name, make in makers.items():
        try:
            squares[name], seconds[name] = _held_out(make, X, y, labels, fold)
            fresh[name] = make(X, y)
        except (ArithmeticError, ModuleNotFoundError, RuntimeError, ValueError) as error:
            squares.pop(name, None)
            skipped[name] = str(error)
    return _recommend(squares, seconds, fresh, skipped)


def _held_out(
    make: Maker, X: FloatArray, y: FloatArray, labels: Groups | None, fold: npt.NDArray[np.int64]
) -> tuple[FloatArray, float]:
    """Squared errors of rows held out, and the seconds it took to learn."""
    squares, seconds = np.empty(len(X)), 0.0
    for held in range(FOLDS):
        out, known = fold == held, fold != held
        belief = make(X[known], y[known])
        other = deepcopy(belief)  # code may have to be compiled or loaded first
        other.learn(X[:1], y[:1], None if labels is None else labels[:1])
        other.mean(X[:1])
        start = time.perf_counter()
        belief.learn(X[known], y[known], None if labels is None else labels[known])
        means = belief.mean(X[out], None if labels is None else labels[out])
        seconds += time.perf_counter() - start
        squares[out] = (y[out] - means) ** 2
    if not np.isfinite(squares).all():
        raise ArithmeticError("its predictions are not finite")
    return squares, seconds


def _recommend(
    squares: dict[str, FloatArray],
    seconds: dict[str, float],
    fresh: dict[str, Belief],
    skipped: dict[str, str],
) -> Recommendation:
    best = min(squares, key=lambda name: float(squares[name].mean()))
    spread = float(squares[NOTHING].mean())
    table: list[dict[str, Any]] = []
    for name, own in squares.items():
        apart = own - squares[best]
        table.append(
            {
                "belief": name,
                "error": float(np.sqrt(own.mean())),
                "explained": 1.0 - float(own.mean()) / spread if spread > 0.0 else 0.0,
                "worse": float(apart.mean()),
                "worse_error": float(apart.std(ddof=1) / np.sqrt(len(apart))),
                "us_per_row": 1e6 * seconds[name] / ((FOLDS - 1) * len(own)),
            }
        )
    close = [row["belief"] for row in table if row["worse"] <= row["worse_error"]]
    name = str(close[0])
    if name == NOTHING:
        why = "No belief predicts clearly better than the average: these features tell nothing."
    elif name == best:
        why = f"{name} predicts best, and no simpler belief comes within a standard error of it."
    else:
        why = f"{name} is the simplest belief within a standard error of the best, {best}."
    return Recommendation(name, fresh.get(name), table, why, skipped)


def with_constant(features: FloatArray) -> FloatArray:
    """Features and a constant: states of release 0.1.0 name it, as the map before `Linear`."""
    return np.hstack([features, np.ones((len(features), 1))])


def candidates(X: FloatArray, y: FloatArray, labels: Groups | None) -> dict[str, Maker]:
    """Beliefs that could suit these rows, simplest first; in any units."""
    dim = X.shape[1]
    zero_one = bool(np.isin(y, (0.0, 1.0)).all())
    counts = not zero_one and bool((y >= 0.0).all() and (y == np.round(y)).all())
    makers: dict[str, Maker] = {"linear": lambda _, known: ScaleFree(dim)}
    if zero_one:
        makers["logistic"] = lambda _, known: Logistic(dim)
    if counts:
        makers["poisson"] = lambda _, known: Poisson(dim)
    if labels is not None:
        levels = 1 if labels.ndim == 1 else labels.shape[1]
        makers["nested"] = lambda _, known: _nested(dim, zero_one, levels, known)
    makers["kernel"] = lambda seen, known: Kernel(dim, **likeliest(seen, known))
    makers["regression (boosting)"] = lambda _, known: _boosting(dim)
    return makers


def _nested(dim: int, zero_one: bool, levels: int, known: FloatArray) -> Nested:
    if zero_one:
        return Nested(dim, family="logistic", effects=(0.7,) * levels)
    effect = 0.5 * float(known.std()) or 1.0
    return Nested(dim, family="gaussian", effects=(effect,) * levels)


def _boosting(dim: int) -> Regression:
    require_extra("sklearn", "it")
    from sklearn.ensemble import GradientBoostingRegressor  # an extra
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    trees = GradientBoostingRegressor(n_estimators=60, min_samples_leaf=5)
    # In single precision, as trees see them, features far from 0 would be all alike.
    return Regression(dim, make_pipeline(StandardScaler(), trees))
