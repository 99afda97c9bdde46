"""The kernel belief: a Gaussian process that stays cheap, and stays honest about what it drops."""

import json
import pickle
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coaf
from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.kernel.kernel import Kernel
from coaf.bandit.beliefs.prior import start_from
from coaf.bandit.checks import check_belief, check_policy
from coaf.bandit.index import Thompson

STATED: dict[str, Any] = {"length_scale": 0.5, "signal": 0.5, "noise": 0.5, "prior_mean": 0.0}
BELIEFS: dict[str, Callable[[], Kernel]] = {
    "rbf": lambda: Kernel(3, length_scale=[0.4, 0.6, 2.0], noise=0.3, signal=0.8, prior_mean=0.2),
    "matern": lambda: Kernel(2, kind="matern", mean_bound=1.0, **STATED),
    "few points": lambda: Kernel(2, points=7, kind="matern", **STATED),
    "features and place": lambda: Kernel(
        4, space=(0, 2), space_length=0.3, space_signal=0.2, **STATED
    ),
    "place alone": lambda: Kernel(
        2, space=(1, 0), space_length=[0.3, 0.6], space_signal=0.5, **STATED
    ),
    "found": lambda: Kernel(3),
    "found, few points": lambda: Kernel(2, points=7),
    "found, with a place": lambda: Kernel(4, space=(0, 2), space_length=0.3),
    "found in part": lambda: Kernel(2, noise=0.3),
    "one feature": lambda: Kernel(1),
    "certain": lambda: Kernel(2, width=0.0),
}


def dense(
    belief: Kernel, X: FloatArray, y: FloatArray, Z: FloatArray, noise: float
) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance at Z of the Gaussian process given rows, as textbooks have them."""

    def k(A: FloatArray, B: FloatArray) -> FloatArray:
        total = np.zeros((len(A), len(B)))
        features = [c for c in range(belief.dim) if c not in belief.space]
        own = (features, belief.length_scale, belief.signal or 0.0)
        place = (list(belief.space), belief.space_length, belief.space_signal or 0.0)
        for columns, lengths, signal in (own, place):
            if lengths is None:
                continue
            D = np.sqrt((((A[:, None, columns] - B[None, :, columns]) / lengths) ** 2).sum(axis=2))
            shape = np.exp(-0.5 * D**2)
            if belief.kind == "matern":
                shape = (1.0 + np.sqrt(3.0) * D) * np.exp(-np.sqrt(3.0) * D)
            total += signal**2 * shape
        return total

    G = np.linalg.solve(k(X, X) + noise**2 * np.eye(len(X)), k(X, Z)).T
    usual = belief.prior_mean or 0.0
    return usual + G @ (y - usual), k(Z, Z) - G @ k(X, Z)


def rows(seed: int, n: int, dim: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, dim))
    return X, np.sin(3.0 * X[:, 0]) + 0.3 * rng.standard_normal(n)


@pytest.mark.parametrize("name", BELIEFS)
def test_it_keeps_the_contract(name: str) -> None:
    belief = BELIEFS[name]()
    rng = np.random.default_rng(0)
    check_belief(belief, features=rng.uniform(-1.0, 1.0, (20, belief.dim)))


@pytest.mark.parametrize("name", ["rbf", "matern", "features and place", "place alone"])
@given(seed=st.integers(0, 1000), n=st.integers(1, 40))
@settings(max_examples=15, deadline=None, derandomize=True)
def test_with_enough_points_it_is_the_exact_process(name: str, seed: int, n: int) -> None:
    """Within 1e-4: a row may leave a share of 1e-6 of its variance to noise."""
    belief = BELIEFS[name]()
    X, y = rows(seed, n, belief.dim)
    Z = np.random.default_rng(seed + 1).uniform(-2.0, 2.0, (10, belief.dim))
    belief.learn(X, y)
    mean, covariance = dense(belief, X, y, Z, belief.noise or 0.0)
    np.testing.assert_allclose(belief.mean(Z), mean, atol=1e-4)
    np.testing.assert_allclose(belief.deviation(Z) ** 2, np.diag(covariance), atol=1e-4)
    upper = belief.mean(Z) + belief.width * belief.deviation(Z)
    cap = np.inf if belief.mean_bound is None else belief.mean_bound
    np.testing.assert_allclose(belief.upper(Z), np.minimum(upper, cap), atol=1e-12)


@pytest.mark.parametrize("name", ["rbf", "matern", "few points", "features and place"])
def test_draws_have_the_mean_and_covariance_of_the_posterior(name: str) -> None:
    """4000 draws: means within 5 standard errors, covariances within 0.06 of the largest."""
    belief = BELIEFS[name]()
    X, y = rows(3, 12, belief.dim)
    Z = np.random.default_rng(4).uniform(-1.5, 1.5, (5, belief.dim))
    belief.learn(X, y)
    rng = np.random.default_rng(5)
    draws = np.array([belief.sample(Z, rng) for _ in range(4000)])
    sd = belief.deviation(Z)
    assert (np.abs(draws.mean(axis=0) - belief.mean(Z)) < 5.0 * sd / np.sqrt(4000)).all()
    np.testing.assert_allclose(draws.std(axis=0), sd, rtol=0.08)
    if name != "few points":
        _, covariance = dense(belief, X, y, Z, belief.noise or 0.0)
        np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.06 * covariance.max())


def test_a_draw_is_one_function() -> None:
    """Arms keep their values whichever are asked with them, and in which order."""
    belief = BELIEFS["rbf"]()
    X, y = rows(6, 30, 3)
    belief.learn(X, y)
    Z = np.random.default_rng(7).uniform(-2.0, 2.0, (8, 3))
    order = np.random.default_rng(8).permutation(8)
    together = belief.sample(Z, np.random.default_rng(9))
    np.testing.assert_allclose(belief.sample(Z[order], np.random.default_rng(9)), together[order])
    twice = belief.sample(np.repeat(Z, 2, axis=0), np.random.default_rng(9)).reshape(8, 2)
    np.testing.assert_allclose(twice[:, 0], twice[:, 1], rtol=1e-10)


@given(seed=st.integers(0, 10_000), points=st.integers(1, 12), n=st.integers(0, 60))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_variance_lies_between_nothing_and_the_prior(seed: int, points: int, n: int) -> None:
    kind: Any = "matern" if seed % 2 else "rbf"
    belief = Kernel(2, points=points, noise=1e-3, kind=kind, signal=0.7)
    X, y = rows(seed, n, 2)
    belief.learn(X, y)
    sd = belief.deviation(np.vstack([X, 50.0 + X]))
    assert (sd >= 0.0).all()
    assert (sd <= 0.7 * (1.0 + 1e-9)).all()
    assert len(belief.kept) <= points


def test_far_from_all_rows_it_knows_as_much_as_before() -> None:
    belief = Kernel(2, signal=0.7, width=3.0, prior_mean=0.1)
    belief.learn(*rows(0, 500, 2))
    far = [[40.0, 0.0], [-3.0, 50.0]]
    np.testing.assert_allclose(belief.mean(far), 0.1, atol=1e-9)
    np.testing.assert_allclose(belief.upper(far), 0.1 + 3.0 * 0.7, atol=1e-9)


def test_the_factor_is_of_the_precision_after_thousands_of_single_rows() -> None:
    belief = Kernel(2, points=40, noise=0.1)
    X, y = rows(1, 3000, 2)
    for x, reward in zip(X, y, strict=True):
        belief.learn(x[None], [reward])
    R, _ = belief._memory.posterior()
    inverse = np.linalg.solve(R @ R.T, np.eye(len(R)))
    np.testing.assert_allclose(belief.precision @ inverse, np.eye(len(R)), atol=1e-9)
    at_once = Kernel(2, points=40, noise=0.1)
    at_once.learn(X, y)
    np.testing.assert_array_equal(belief.kept, at_once.kept)
    np.testing.assert_allclose(belief.precision, at_once.precision, rtol=1e-8, atol=1e-6)
    assert belief.rows == 3000


@pytest.mark.parametrize("kind", ["rbf", "matern"])
def test_fewer_points_cost_accuracy_and_it_says_so(kind: Any) -> None:
    """The exact process errs by e; ours by less than 1.5 e, and claims no less than it errs."""
    X, _ = rows(2, 900, 2)
    stated = STATED | {"signal": 1.0, "noise": 0.3}
    belief = Kernel(2, kind=kind, points=60, **stated)
    rng = np.random.default_rng(3)
    f = belief._memory.basis.covariance.draw(rng)(X)
    y = f + 0.3 * rng.standard_normal(900)
    belief.learn(X[:600], y[:600])
    exact, _ = dense(belief, X[:600], y[:600], X[600:], 0.3)
    ours = np.sqrt(np.mean((belief.mean(X[600:]) - f[600:]) ** 2))
    theirs = np.sqrt(np.mean((exact - f[600:]) ** 2))
    claimed = np.sqrt(np.mean(belief.deviation(X[600:]) ** 2))
    assert theirs < ours + 1e-3
    assert ours < 1.5 * theirs
    assert ours < 1.1 * claimed
    assert len(belief.kept) <= 60
    assert belief.novelty > 1e-6
    assert 0.9 < belief.covered < 1.0


@pytest.mark.parametrize("points", [200, 30])
def test_coverage_of_functions_from_the_prior(points: int) -> None:
    """40 functions, 100 arms each: two sided 95.4 %, and 97.7 % below upper, within 2 %."""
    inside, below = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        belief = Kernel(2, length_scale=0.4, signal=0.6, noise=0.4, prior_mean=0.0, points=points)
        f = belief._memory.basis.covariance.draw(rng)
        X, Z = rng.uniform(-1.0, 1.0, (150, 2)), rng.uniform(-1.0, 1.0, (100, 2))
        belief.learn(X, f(X) + 0.4 * rng.standard_normal(150))
        z = (f(Z) - belief.mean(Z)) / belief.deviation(Z)
        inside.append(np.abs(z) <= 2.0)
        below.append(f(Z) <= belief.upper(Z))
    assert np.mean(inside) > 0.954 - 0.02
    assert np.mean(below) > 0.977 - 0.02


def test_forgetting_half_is_noise_of_twice_the_variance() -> None:
    belief = BELIEFS["rbf"]()
    X, y = rows(4, 25, 3)
    belief.learn(X, y)
    belief.forget(0.5)
    Z = rows(5, 6, 3)[0]
    mean, covariance = dense(belief, X, y, Z, belief.noise * np.sqrt(2.0))
    np.testing.assert_allclose(belief.mean(Z), mean, atol=1e-4)
    np.testing.assert_allclose(belief.deviation(Z) ** 2, np.diag(covariance), atol=1e-4)
    assert belief.rows == 12.5


def test_a_prior_outlives_points_that_were_dropped() -> None:
    """Forgetting all but nothing leaves the prior, though it is now told by other points."""
    belief = Kernel(2, points=60, **STATED)
    belief.learn(*rows(6, 40, 2))
    before, Z = deepcopy(belief), rows(8, 20, 2)[0]
    belief.settle()
    belief.learn(*rows(7, 400, 2))
    assert belief.novelty > before.novelty
    for _ in range(40):
        belief.forget(0.5)
    np.testing.assert_allclose(belief.mean(Z), before.mean(Z), atol=0.02)
    np.testing.assert_allclose(belief.deviation(Z), before.deviation(Z), atol=0.02)
    tomorrow = start_from(belief)
    tomorrow.refit(np.zeros((0, 2)), np.zeros(0))
    np.testing.assert_array_equal(tomorrow.mean(Z), belief.mean(Z))


def test_neighbours_share_and_what_is_irrelevant_does_not_matter() -> None:
    lengths: dict[str, Any] = {"length_scale": 1e6, "space": (1, 2), "space_length": 20.0}
    belief = Kernel(3, signal=0.5, noise=0.1, prior_mean=0.0, **lengths)
    belief.learn([[0.3, 1000.0, 2000.0]], [1.0])
    near, far = belief.mean([[0.3, 1005.0, 2000.0], [0.3, 1500.0, 2000.0]])
    assert near > far + 0.3
    np.testing.assert_allclose(*belief.mean([[0.3, 1000.0, 2000.0], [9.0, 1000.0, 2000.0]]))


def test_copies_and_pickles_are_the_same() -> None:
    belief = BELIEFS["few points"]()
    belief.learn(*rows(13, 50, 2))
    belief.settle()
    belief.learn(*rows(14, 50, 2))
    Z = rows(15, 9, 2)[0]
    for other in (
        deepcopy(belief),
        pickle.loads(pickle.dumps(belief)),
        Kernel.restore(json.dumps(belief.state())),
    ):
        np.testing.assert_array_equal(other.upper(Z), belief.upper(Z))
        assert json.dumps(other.state()) == json.dumps(belief.state())


def test_a_policy_with_it_is_saved_and_restored() -> None:
    check_policy(coaf.COAF(belief=Kernel(3, points=10)))
    check_policy(coaf.COAF(belief=Kernel(3, points=10), index=Thompson(), draws=3))


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"points": 0}, "points is 0; it must be a positive integer"),
        ({"noise": 0.0}, "noise is 0.0; it must be greater than 0"),
        ({"signal": -1.0}, "signal is -1.0; it must be greater than 0"),
        ({"kind": "cubic"}, 'kind is \'cubic\'; it must be "rbf" or "matern"'),
        ({"length_scale": [1.0, 2.0]}, "length_scale is .*; it must be a positive number, or 3"),
        ({"length_scale": 0.0}, "length_scale is 0.0; it must be a positive number"),
        ({"space": (1, 3)}, r"space is \(1, 3\); it must be distinct columns in 0 .. 2"),
        ({"space": (1, 1)}, r"space is \(1, 1\); it must be distinct columns"),
        ({"space": (1,)}, "give space_length"),
        ({"space": (1,), "space_length": [1.0, 2.0]}, "space_length is .* or 1 of them"),
        ({"width": float("nan")}, "width is nan"),
    ],
)
def test_settings_that_cannot_be(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Kernel(3, **keywords)


def test_a_damaged_state_is_refused() -> None:
    belief = BELIEFS["few points"]()
    belief.learn(*rows(16, 20, 2))
    state = belief.state()
    state["memory"] = {**state["memory"], "moment": belief.state()["memory"]["points"]}
    with pytest.raises(ValueError, match="state entry 'moment' has shape"):
        Kernel.restore(state)
