"""Starting from labelled examples or an earlier session, and letting what is old count less."""

import json

import numpy as np
import pytest

import coaf
from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.linear import Linear
from coaf.bandit.beliefs.prior import start_from
from coaf.bandit.beliefs.registry import register

# Rewards beyond what was stated are meant.
pytestmark = pytest.mark.filterwarnings("ignore::coaf.AssumptionWarning")

DIMS = [1, 5, 64, 70]  # above 64 features rows wait before they are folded in
NOTHING = np.empty(0)


def table(n: int, dim: int, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, dim))
    X /= 1.0 + np.linalg.norm(X, axis=1, keepdims=True)
    return X, rng.normal(size=n)


@pytest.mark.parametrize("dim", DIMS)
def test_forgetting_is_ridge_regression_with_weights(dim: int) -> None:
    """λI + Σ w x xᵀ, Σ w x y and Σ w rows, with w = 0.4·0.5 and 0.5; to 1e-10."""
    belief = Linear(dim, regularization=0.7, radius="printed")
    (X, y), (Z, z) = table(20, dim), table(13, dim, seed=1)
    belief.learn(X, y)
    belief.forget(0.4)
    belief.learn(Z, z)
    belief.forget(0.5)
    V = 0.7 * np.eye(dim) + 0.2 * X.T @ X + 0.5 * Z.T @ Z
    theta = np.linalg.solve(V, 0.2 * X.T @ y + 0.5 * Z.T @ z)
    rows = 0.2 * 20 + 0.5 * 13
    np.testing.assert_allclose(belief.precision, V, atol=1e-10)
    np.testing.assert_allclose(belief.theta, theta, atol=1e-10)
    assert belief.rows == pytest.approx(rows, rel=1e-12)
    volume = dim * np.log(1.0 + rows / (dim * 0.7))
    radius = np.sqrt(0.7) + np.sqrt(2.0 * np.log(20.0) + volume)
    assert belief.radius == pytest.approx(radius, rel=1e-10)


@pytest.mark.parametrize("dim", DIMS)
def test_the_determinant_stays_relative_to_the_ridge(dim: int) -> None:
    X, y = table(30, dim)
    belief = Linear(dim, regularization=0.7)
    belief.learn(X, y)
    belief.forget(0.3)
    belief.settle()
    _, logdet = np.linalg.slogdet(np.eye(dim) + 0.3 * X.T @ X / 0.7)
    radius = np.sqrt(0.7) + np.sqrt(2.0 * np.log(20.0) + logdet)
    assert belief.radius == pytest.approx(radius, rel=1e-10)


@pytest.mark.parametrize("dim", DIMS)
def test_a_session_after_another(dim: int) -> None:
    """The first counts 0.3 whatever becomes of the second: forgotten, corrected or saved."""
    (X, y), (Z, z) = table(25, dim), table(9, dim, seed=1)
    probe, _ = table(6, dim, seed=2)
    earlier = Linear(dim)
    earlier.learn(X, y)
    later = start_from(json.dumps(earlier.state()), discount=0.3)
    later.learn(Z, 10.0 * z)
    later = Linear.restore(json.loads(json.dumps(later.state())))
    later.refit(Z, z)
    later.forget(0.5)
    V = np.eye(dim) + 0.3 * X.T @ X + 0.5 * Z.T @ Z
    theta = np.linalg.solve(V, 0.3 * X.T @ y + 0.5 * Z.T @ z)
    np.testing.assert_allclose(later.mean(probe), probe @ theta, atol=1e-10)
    later.refit(probe[:0], NOTHING)
    V, b = np.eye(dim) + 0.3 * X.T @ X, 0.3 * X.T @ y
    np.testing.assert_allclose(later.mean(probe), probe @ np.linalg.solve(V, b), atol=1e-10)


def test_what_an_earlier_belief_knew_stays_its_own() -> None:
    X, y = table(10, 3)
    earlier = Linear(3)
    earlier.learn(X, y)
    before = json.dumps(earlier.state())
    later = start_from(earlier, discount=0.5)
    later.learn(X, y)
    assert json.dumps(earlier.state()) == before
    same = start_from(earlier)
    np.testing.assert_array_equal(same.upper(X), earlier.upper(X))


def test_learning_live_is_the_same_with_and_without_a_prior() -> None:
    """Settling only says where a refit begins: the next estimates are the same bits."""
    X, y = table(60, 10)
    plain, settled = Linear(10), Linear(10)
    for belief in (plain, settled):
        belief.learn(X[:20], y[:20])
    settled.settle()
    for belief in (plain, settled):
        belief.learn(X[20:], y[20:])
    np.testing.assert_array_equal(plain.upper(X), settled.upper(X))


def test_a_policy_starts_from_a_prior() -> None:
    """Taught that the first feature pays, it takes what has it, and nothing else."""
    X, _ = table(400, 2)
    taught = Linear.tuned(2, noise=0.1)
    taught.learn(X, X[:, 0])
    taught.settle()
    policy = coaf.COAF(belief=taught, rate=coaf.Fixed(0.2))
    patch = coaf.Round([[0.9, 0.0], [0.0, 0.9]], coaf.Additive(base=1.0, each=1.0))
    assert policy.decide(patch).chosen.tolist() == [True, False]
    policy.refit(np.zeros((0, 2)), NOTHING)
    assert policy.decide(patch).chosen.tolist() == [True, False]
    assert coaf.COAF.restore(policy.state()).decide(patch).chosen.tolist() == [True, False]


@pytest.mark.parametrize("factor", [0.0, -0.5, 1.5, float("nan"), float("inf"), "half"])
def test_factors_that_make_no_sense(factor: float) -> None:
    with pytest.raises(ValueError, match=r"factor (is|must be)"):
        Linear(2).forget(factor)
    with pytest.raises(ValueError, match=r"factor (is|must be)"):
        start_from(Linear(2), discount=factor)


def test_states_that_are_no_belief() -> None:
    with pytest.raises(ValueError, match=r"unknown belief 'coaf', expected one of .*'linear'"):
        start_from(coaf.COAF(2).state())
    with pytest.raises(ValueError, match="state is not a saved belief: it has no 'coaf' entry"):
        start_from({})
    with pytest.raises(ValueError, match=r"is the file truncated\?"):
        start_from('{"coaf": "lin')


def test_a_class_that_is_not_registered_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mine(Linear):
        pass

    assert type(start_from(Mine(2).state(), belief=Mine)) is Mine
    assert type(start_from(Mine(2))) is Mine
    monkeypatch.setattr("coaf.bandit.beliefs.registry._KINDS", {})
    register("linear")(Mine)
    assert type(start_from(Mine(2).state())) is Mine
    assert type(coaf.COAF.restore(coaf.COAF(belief=Mine(2)).state()).belief) is Mine
