"""Rewards that come good first and bad later, or the other way round, leave the same belief."""

import numpy as np
import pytest

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.glm import GLM, Logistic, Poisson
from coaf.bandit.beliefs.glm_rows import KEPT, next_fit


def both(belief: GLM, y: FloatArray) -> tuple[float, float, float]:
    """Where `learn` and `refit` put the predictor, apart in standard deviations of `refit`."""
    X = np.zeros((len(y), belief.dim))
    for start in range(0, len(y), 7):
        belief.learn(X[start : start + 7], y[start : start + 7])
    online, spread = (float(v[0]) for v in belief._predictors(X[:1]))
    belief.refit(X, y)
    exact, sd = (float(v[0]) for v in belief._predictors(X[:1]))
    return (online - exact) / sd, spread / sd, exact


ORDERS = {
    "good, then bad": np.r_[np.ones(100), np.zeros(900)],
    "bad, then good": np.r_[np.zeros(900), np.ones(100)],
    "three good, then bad": np.r_[np.ones(3), np.zeros(300)],
    "one good, then bad": np.r_[1.0, np.zeros(1000)],
    "all bad": np.zeros(3000),
}


@pytest.mark.parametrize("order", ORDERS)
def test_successes_in_any_order(order: str) -> None:
    apart, spread, _ = both(Logistic(1), ORDERS[order])
    assert abs(apart) < 0.3
    assert spread == pytest.approx(1.0, abs=0.15)


@pytest.mark.parametrize(
    "y", [np.r_[np.full(3, 5.0), np.zeros(300)], np.r_[np.full(3, 300.0), np.full(300, 3.0)]]
)
@pytest.mark.parametrize("turned", [False, True])
def test_counts_in_any_order(y: FloatArray, turned: bool) -> None:
    apart, spread, _ = both(Poisson(1), y[::-1] if turned else y)
    assert abs(apart) < 0.5
    assert spread == pytest.approx(1.0, abs=0.2)


def test_rows_beyond_those_kept_still_count() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(KEPT + 3000, 2))
    chance = 1.0 / (1.0 + np.exp(1.0 - X @ [2.0, -1.0]))
    y = (rng.random(len(X)) < chance).astype(float)
    online, together = Logistic(2), Logistic(2)
    online.learn(X, y)
    together.refit(X, y)
    assert online.rows == together.rows == len(X)
    sd = np.sqrt(np.diag(np.linalg.inv(together.precision)))
    assert np.all(np.abs(online.theta - together.theta) < 0.3 * sd)
    assert np.allclose(online.precision, together.precision, rtol=0.02)


def test_the_schedule_of_fits_does_not_depend_on_pieces() -> None:
    assert [next_fit(n) for n in (0, 16, 17)] == [16, 32, 32]
    steps = np.diff([0, *(n for n in range(1, 20_000) if next_fit(n - 1) == n)])
    assert steps.max() == 1024
    assert steps.min() == 16
    assert (np.diff(steps) >= 0).all()
