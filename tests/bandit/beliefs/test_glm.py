"""Successes and counts: the posterior that rows leave, and what it says of arms."""

import json
import math
import pickle
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coaf
from coaf.bandit.arrays import LARGEST, FloatArray
from coaf.bandit.beliefs.glm import GLM, Logistic, Poisson
from coaf.bandit.beliefs.links import Link, LogitLink, LogLink, absorb
from coaf.bandit.beliefs.prior import start_from
from coaf.bandit.beliefs.registry import restore_belief
from coaf.bandit.checks import check_belief
from coaf.worlds.catalogue import sphere

each_family = pytest.mark.parametrize("family", [Logistic, Poisson])
each_link = pytest.mark.parametrize("link", [LogitLink(), LogLink()])


def table(
    family: type[GLM], n: int, dim: int = 3, seed: int = 0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Rows, rewards, and the coefficients behind them, the intercept last."""
    rng = np.random.default_rng(seed)
    X, theta = sphere(rng, n, dim), rng.standard_normal(dim + 1)
    means = family.link.mean(X @ theta[:-1] + theta[-1])
    y = rng.uniform(size=n) < means if family is Logistic else rng.poisson(means)
    return X, y.astype(np.float64), theta


def stated(family: type[GLM], **settings: Any) -> GLM:
    """A belief of three features that takes them, and the noise, as they are."""
    if family is Poisson:
        settings["dispersion"] = 0.0
    return family(3, regularization=0.25, **settings)


# The contract.


@each_family
@pytest.mark.parametrize(
    "options",
    [
        {"dim": 1},
        {"dim": 10},
        {"dim": 3, "intercept": False, "regularization": 2.0},
        {"dim": 3, "width": 0.0},
        {"dim": 3, "typical": 0.03, "width": 3.0},
    ],
)
def test_the_contract(family: type[GLM], options: dict[str, Any]) -> None:
    check_belief(family(**options), exact_online=False)


def test_the_contract_with_fractions_and_with_large_counts() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    groups = [[i % 2, i % 5] for i in range(30)]
    check_belief(
        Logistic(2), features=X, rewards=rng.uniform(size=30), groups=groups, exact_online=False
    )
    counts = rng.poisson(300.0, size=30)
    check_belief(Poisson(2), features=X, rewards=counts, groups=groups, exact_online=False)


@each_family
def test_rows_in_pieces_are_rows_at_once(family: type[GLM]) -> None:
    """One after another in their order, so to the same bits; also where H⁻¹ is derived afresh."""
    X, y, _ = table(family, 1500)
    once, pieces = family(3), family(3)
    once.learn(X, y)
    for rows in np.array_split(np.arange(1500), 40):
        pieces.learn(X[rows], y[rows])
    assert json.dumps(once.state()) == json.dumps(pieces.state())


@each_family
def test_copies_pickles_and_policies(family: type[GLM]) -> None:
    X, y, _ = table(family, 20)
    belief = family(3)
    belief.learn(X, y)
    for twin in (deepcopy(belief), pickle.loads(pickle.dumps(belief))):
        twin.learn(X, y)
        assert twin.rows == 40
        assert belief.rows == 20
    policy = coaf.COAF(belief=belief, index=coaf.Thompson(), seed=5)
    twin_policy = coaf.COAF.restore(json.dumps(policy.state()))
    patch = coaf.Round(features=X, latency=coaf.Additive(base=5.0, each=1.0), key="patch")
    np.testing.assert_array_equal(
        policy.decide(patch).estimates, twin_policy.decide(patch).estimates
    )
    assert type(restore_belief(belief.state())) is family


# One row, and all of them.


@each_link
@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    m=st.floats(-30.0, 30.0),
    v=st.floats(1e-8, 1e4),
    y=st.sampled_from([0.0, 0.25, 1.0, 7.0, 1e5]),
)
def test_a_row_moves_a_predictor_near_its_posterior_mean(
    link: Link, m: float, v: float, y: float
) -> None:
    """Against numerical integration: to 0.08 standard deviations where v ≤ 4.

    The mode is up to 0.34 away.
    """
    y = min(y, link.largest)
    eta, weight = absorb(link, m, v, y)
    assert math.isfinite(eta)
    assert 0.0 <= weight < math.inf
    if v > 4.0:
        return
    around = np.linspace(-12.0, 12.0, 4001)
    grid = eta + around / math.sqrt(1.0 / v + weight)
    log = -((grid - m) ** 2) / (2.0 * v) + y * grid - link.log_partition(grid)
    p = np.exp(log - log.max())
    p /= p.sum()
    mean = float(p @ grid)
    sd = math.sqrt(float(p @ (grid - mean) ** 2))
    assert abs(eta - mean) <= 0.08 * sd + 1e-9


@each_family
def test_refit_stops_at_the_mode_but_for_the_skewness(family: type[GLM]) -> None:
    """With the known third-order shift undone, the gradient is zero to 1e-6 of its scale."""
    X, y, _ = table(family, 200)
    belief = stated(family)
    belief.refit(X, y)
    Z, link = np.column_stack([X, np.ones(200)]), family.link
    prior = np.diag([0.25] * 4)
    theta = belief.theta
    for _ in range(50):  # to the mode from where refit ended, by another route
        mu = link.mean(Z @ theta)
        H = prior + (Z.T * link.variance(mu)) @ Z
        theta = theta - np.linalg.solve(H, prior @ theta + Z.T @ (mu - y))
    C = np.linalg.inv(H)
    spread = np.einsum("ij,jk,ik->i", Z, C, Z)
    shift = 0.5 * C @ Z.T @ (link.skewness(mu) * spread)
    np.testing.assert_allclose(belief.theta, theta - shift, atol=1e-6)


@each_family
@pytest.mark.parametrize(("n", "apart"), [(50, 0.5), (500, 0.25), (5000, 0.15)])
def test_online_is_close_to_refit(family: type[GLM], n: int, apart: float) -> None:
    """In standard deviations of θ·x, on average over arms and ten worlds; widths to a tenth."""
    distances, ratios = [], []
    for seed in range(10 if n < 5000 else 3):
        X, y, _ = table(family, n, seed=seed)
        online, refitted = family(3), family(3)
        online.learn(X, y)
        refitted.refit(X, y)
        arms = sphere(np.random.default_rng(seed), 30, 3)
        (m, s), (m_all, s_all) = online._predictors(arms), refitted._predictors(arms)
        distances.append(np.abs(m - m_all) / s_all)
        ratios.append(s / s_all)
    assert np.mean(distances) < apart
    assert abs(np.mean(ratios) - 1.0) < 0.1


@each_family
def test_the_covariance_is_the_inverse_of_the_precision(family: type[GLM]) -> None:
    """After 3,000 rows by themselves, so with fresh derivations between: to 1e-10."""
    X, y, _ = table(family, 3000, dim=8)
    belief = family(8)
    belief.learn(X, y)
    product = belief.precision @ belief._known.covariance
    np.testing.assert_allclose(product, np.eye(9), atol=1e-10)


@each_family
def test_many_rows_find_the_truth(family: type[GLM]) -> None:
    X, y, theta = table(family, 20_000)
    belief = family(3)
    belief.learn(X, y)
    np.testing.assert_allclose(belief.theta, theta, atol=0.15)


# What is said of arms.


@each_family
def test_upper_is_the_maximum_over_the_ellipsoid(family: type[GLM]) -> None:
    """No θ of 20,000 on its surface does better, and the best is within 5 % of the predictor."""
    X, y, _ = table(family, 40)
    belief = stated(family, width=2.0)
    belief.learn(X, y)
    arms = sphere(np.random.default_rng(1), 10, 3)
    Z = np.column_stack([arms, np.ones(10)])
    half = np.linalg.inv(np.linalg.cholesky(belief.precision)).T
    surface = belief.theta + 2.0 * sphere(np.random.default_rng(2), 20_000, 4) @ half.T
    best = family.link.mean(surface @ Z.T).max(axis=0)
    upper = belief.upper(arms)
    assert (best <= upper * (1.0 + 1e-12)).all()
    np.testing.assert_allclose(best, upper, rtol=0.05)


@each_family
def test_draws_come_from_the_posterior(family: type[GLM]) -> None:
    """Mean and covariance of 20,000 draws, to 5 % of their scale."""
    X, y, _ = table(family, 60)
    belief = family(3)
    belief.learn(X, y)
    rng = np.random.default_rng(0)
    draws = np.array([belief.draw(rng) for _ in range(20_000)])
    C = np.linalg.inv(belief.precision)
    assert np.abs(draws.mean(axis=0) - belief.theta).max() < 0.05 * np.sqrt(C.max())
    assert np.abs(np.cov(draws.T) - C).max() < 0.05 * C.max()


@each_family
def test_intervals_widen_with_their_level(family: type[GLM]) -> None:
    X, y, _ = table(family, 60)
    belief = family(3)
    belief.learn(X, y)
    (low, high), (lowest, highest) = belief.interval(X, 0.5), belief.interval(X, level=0.99)
    mean = belief.mean(X)
    assert ((lowest < low) & (low < mean) & (mean < high) & (high < highest)).all()
    np.testing.assert_allclose(belief.interval(X)[1], belief.upper(X), rtol=1e-4)
    for level in (0.0, 1.0, math.nan):
        with pytest.raises(ValueError, match="level is"):
            belief.interval(X, level)


@each_family
@pytest.mark.parametrize("features", [1e-3, 1.0, 900.0])
def test_extreme_rows_leave_finite_numbers(family: type[GLM], features: float) -> None:
    rng = np.random.default_rng(0)
    X, largest = features * sphere(rng, 40, 3), min(family.link.largest, 1e6)
    belief = family(3)
    for fit in (belief.learn, belief.refit):
        for y in (np.zeros(40), np.full(40, largest), largest * (rng.uniform(size=40) < 0.5)):
            fit(X, y)
            scores = [belief.mean(X), belief.upper(X), belief.sample(X, rng), *belief.interval(X)]
            assert (np.abs(scores) < LARGEST).all()
            assert (np.array(scores) >= 0.0).all()


# Priors, forgetting, and what is refused.


@each_family
def test_forgetting_scales_the_information(family: type[GLM]) -> None:
    X, y, _ = table(family, 50)
    belief = stated(family, typical=0.2)
    H0, b0 = belief.precision, belief.precision @ belief.theta
    belief.learn(X, y)
    H, b = belief.precision, belief.precision @ belief.theta
    belief.forget(0.3)
    np.testing.assert_allclose(belief.precision, H0 + 0.3 * (H - H0), atol=1e-12)
    np.testing.assert_allclose(belief.precision @ belief.theta, b0 + 0.3 * (b - b0), atol=1e-10)
    assert belief.rows == pytest.approx(15.0)


@each_family
def test_a_session_starts_from_an_earlier_one(family: type[GLM]) -> None:
    X, y, _ = table(family, 200)
    earlier = family(3)
    earlier.learn(X, y)
    later = start_from(earlier.state(), discount=0.5)
    assert isinstance(later, family)
    (m, wide), (m_then, narrow) = later._predictors(X), earlier._predictors(X)
    assert (wide > narrow).all()
    assert np.abs(m - m_then).max() < 1.0
    later.learn(X, y)
    later.refit(X[:0], y[:0])
    np.testing.assert_allclose(later._predictors(X)[0], m, atol=1e-9)


def test_a_typical_reward_is_where_a_belief_starts() -> None:
    assert Logistic(2, typical=0.05).mean([[0.0, 0.0]]) == pytest.approx(0.05)
    assert Poisson(2, typical=300.0).mean([[0.0, 0.0]]) == pytest.approx(300.0)
    assert Logistic(2).mean([[0.0, 0.0]]) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("family", "rewards", "message"),
    [
        (Logistic, [0.0, 1.5, -1.0], r"rewards\[1\] is 1.5; Logistic learns rewards from 0 to 1"),
        (Logistic, [0.0, 1.0, -0.1], r"rewards\[2\] is -0.1"),
        (Poisson, [0.0, -1.0, 2.0], r"rewards\[1\] is -1; Poisson learns rewards from 0 to 1e\+09"),
        (Poisson, [0.0, 1.0, 1e10], r"rewards\[2\] is 1e\+10"),
    ],
)
def test_rewards_of_another_family(family: type[GLM], rewards: list[float], message: str) -> None:
    belief = family(2)
    before = belief.state()
    for fit in (belief.learn, belief.refit):
        with pytest.raises(ValueError, match=message):
            fit(np.zeros((3, 2)), rewards)
    assert belief.state() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dim": 0}, "dim is 0"),
        ({"dim": 2, "regularization": 0.0}, "regularization is 0.0"),
        ({"dim": 2, "width": -1.0}, "width is -1.0"),
        ({"dim": 2, "typical": 1.0}, "typical is 1.0; it must be below 1"),
        ({"dim": 2, "typical": 0.0}, "typical is 0.0; it must be greater than 0"),
        ({"dim": 2, "typical": 0.1, "intercept": False}, "without intercept"),
    ],
)
def test_settings_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Logistic(**options)


def test_features_that_need_scaling() -> None:
    with pytest.raises(ValueError, match=r"features\[1\] has norm 5000, beyond 1000: scale"):
        Logistic(2, regularization=1.0).learn([[0.0, 1.0], [3000.0, 4000.0]], [0.0, 1.0])


def test_a_state_of_another_size() -> None:
    state = Logistic(2).state()
    with pytest.raises(ValueError, match="for 4 coefficients"):
        Logistic.restore({**state, "dim": 3})
    with pytest.raises(ValueError, match="state is of a 'logistic', expected a 'poisson'"):
        Poisson.restore(state)
