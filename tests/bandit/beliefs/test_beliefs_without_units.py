"""Beliefs that are given no scale find it: units of rewards and of features make no difference."""

import json
import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coaf
from coaf import COAF, Drift, Kernel, Logistic, Mapped, Nested, Poisson, Stepwise
from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.belief import Belief, LearnsSize
from coaf.bandit.beliefs.registry import restore_belief
from coaf.bandit.beliefs.runs import Run
from coaf.bandit.beliefs.units import ROWS, Units

Make = Callable[[int], Belief]

# Those whose rewards may have any unit (but for effects that are stated in one); those of
# successes and counts may not.
SIZED: dict[str, Make] = {
    "kernel": Kernel,
    "kernel, matern, few points": lambda dim: Kernel(dim, kind="matern", points=9),
    "nested, gaussian": lambda dim: Nested(dim, family="gaussian"),
    "nested, gaussian, one level": lambda dim: Nested(
        dim, family="gaussian", effects=(0.25,), variances="fixed"
    ),
    "drifting kernel": lambda dim: Drift(Kernel(dim), half_life=30),
}
RANGED: dict[str, Make] = SIZED | {
    "logistic": Logistic,
    "logistic, no intercept": lambda dim: Logistic(dim, intercept=False),
    "poisson": Poisson,
    "nested": Nested,
}


def rows(seed: int, n: int, dim: int = 3) -> tuple[FloatArray, FloatArray, Any]:
    """Features of very different columns, rewards of 0 or 1, and groups of two levels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, dim)) * np.array([40.0, 0.01, 1.0])[:dim] + [5000.0, 0.0, -3.0][:dim]
    y = (rng.uniform(size=n) < 0.4).astype(np.float64)
    return X, y, np.column_stack([np.arange(n) // 8, np.arange(n) // 4])


def scores(belief: Belief, X: FloatArray, groups: Any) -> FloatArray:
    draw = belief.sample(X, np.random.default_rng(1), groups)
    return np.array([belief.mean(X, groups), belief.upper(X, groups), draw])


@pytest.mark.parametrize("name", RANGED)
@pytest.mark.parametrize("column", [0, 1, 2])
@pytest.mark.parametrize("c", [2.0**-20, 2.0**13])
def test_a_feature_times_a_power_of_two_changes_no_bit(name: str, column: int, c: float) -> None:
    X, y, groups = rows(1, 40)
    factor = np.where(np.arange(3) == column, c, 1.0)
    ours, theirs = RANGED[name](3), RANGED[name](3)
    for at in (slice(0, 1), slice(1, 7), slice(7, 30)):
        ours.learn(X[at], y[at], groups[at])
        theirs.learn(X[at] * factor, y[at], groups[at])
        found = scores(theirs, X * factor, groups)
        np.testing.assert_array_equal(scores(ours, X, groups), found)


@pytest.mark.parametrize("name", [name for name in SIZED if "one level" not in name])
@pytest.mark.parametrize("c", [2.0**-20, 2.0**13])
def test_rewards_times_a_power_of_two_change_no_bit(name: str, c: float) -> None:
    X, y, groups = rows(1, 40)
    ours, theirs = SIZED[name](3), SIZED[name](3)
    for at in (slice(0, 4), slice(4, 7), slice(7, 30)):
        ours.learn(X[at], y[at], groups[at])
        theirs.learn(X[at], c * y[at], groups[at])
        np.testing.assert_array_equal(c * scores(ours, X, groups), scores(theirs, X, groups))


@pytest.mark.parametrize("name", [name for name in SIZED if "one level" not in name])
@pytest.mark.parametrize("c", [1e-6, 1e6])
def test_rewards_and_features_of_other_units(name: str, c: float) -> None:
    """To 1e-6 of the size of rewards: variances are estimated by a search."""
    X, y, groups = rows(2, 60)
    ours, theirs = SIZED[name](3), SIZED[name](3)
    ours.learn(X[:50], y[:50], groups[:50])
    theirs.learn(X[:50] * [c, 1.0, 1.0 / c], c * y[:50], groups[:50])
    found = scores(theirs, X * [c, 1.0, 1.0 / c], groups) / c
    np.testing.assert_allclose(scores(ours, X, groups), found, rtol=0.0, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in RANGED if "no intercept" not in name])
def test_a_shift_of_a_feature_changes_little(name: str) -> None:
    """Columns that vary by 0.01 to 40, moved by 1,000: to 1e-6."""
    X, y, groups = rows(3, 60)
    ours, theirs = RANGED[name](3), RANGED[name](3)
    ours.learn(X[:50], y[:50], groups[:50])
    theirs.learn(X[:50] + 1000.0, y[:50], groups[:50])
    found = scores(theirs, X + 1000.0, groups)
    np.testing.assert_allclose(scores(ours, X, groups), found, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["kernel", "nested, gaussian", "poisson"])
def test_before_rewards_have_a_size_all_is_taken(name: str) -> None:
    belief = RANGED[name](2)
    assert isinstance(belief, LearnsSize)
    policy = COAF(belief=belief)
    shown = coaf.Round([[1.0, 2.0], [3.0, 4.0], [5.0, 5.0]], coaf.Additive(5.0, 1.0))
    for _ in range(3):
        decision = policy.decide(shown)
        assert decision.blind
        assert decision.chosen.all()
        assert (decision.estimates > 0.0).all()
        policy.commit(decision)
        policy.learn(decision, [0, 1, 2], [0.0, 0.0, 0.0])
        assert policy.rate == 0.0
    decision = policy.decide(shown)
    policy.commit(decision)
    policy.learn(decision, [0, 1, 2], [0.0, 3.0, 1.0])
    assert not policy.blind
    assert not policy.decide(shown).blind


def test_a_stepwise_policy_takes_one_arm_while_rewards_have_no_size() -> None:
    policy = Stepwise(Nested(1, family="gaussian"), size=3)
    shown = coaf.Round([[0.1], [0.3]], coaf.Setup(5.0, 10.0, 2.0), groups=[[0, 0], [0, 0]], key="a")
    decision = policy.decide(shown)
    assert decision.blind
    assert decision.chosen.sum() == 1
    assert decision.rate == 0.0
    policy.commit(decision)
    policy.learn(decision, np.flatnonzero(decision.chosen), [700.0])
    rest = np.array([[0.3], [0.1]])[decision.chosen.argmax()]
    later = coaf.Round([rest], coaf.Additive(0.0, 2.0), groups=[[0, 0]], key="b", follows="a")
    following = policy.decide(later)
    assert not following.blind
    assert following.rate > 1.0  # in rewards of hundreds


def test_stated_numbers_are_taken_as_they_are() -> None:
    for belief in (
        Kernel(2, length_scale=0.5, signal=0.5, noise=0.5, prior_mean=0.0),
        Nested(2, family="gaussian", effects=(0.3,), noise=0.5, scale=2.5),
        Nested(2),
        Logistic(2),
        Poisson(2, typical=3.0),
    ):
        assert belief.reward_size == np.inf


@pytest.mark.parametrize("name", [name for name in RANGED if "no intercept" not in name])
def test_a_column_that_was_the_same_tells_more_from_less(name: str) -> None:
    X, y, groups = rows(4, 30)
    X[:, 1] = 0.7
    belief = RANGED[name](3)
    belief.learn(X, y, groups)
    arms = X[:1] + np.array([[0.0, 0.0, 0.0], [0.0, 1e-9, 0.0], [0.0, 1e6, 0.0]])
    same, less, more = belief.upper(arms, groups[[0, 0, 0]])
    assert less == pytest.approx(more, rel=1e-12)
    if name != "nested, gaussian, one level":
        assert more > same


@pytest.mark.parametrize("name", ["logistic", "kernel, matern, few points", "nested, gaussian"])
def test_units_stay_from_some_rows_on_and_the_rows_are_given_up(name: str) -> None:
    X, y, _ = rows(5, ROWS + 40)
    belief: Any = RANGED[name](3)
    belief.learn(X[: ROWS - 1], y[: ROWS - 1])
    assert belief._units.log
    belief.learn(X[ROWS - 1 :], y[ROWS - 1 :])
    assert belief._units.log == ()
    before = belief._units.low.copy()
    belief.learn(X[:5] * 100.0, y[:5])
    np.testing.assert_array_equal(belief._units.low, before)
    again = restore_belief(json.loads(json.dumps(belief.state())))
    np.testing.assert_array_equal(again.upper(X[:9]), belief.upper(X[:9]))
    fresh = RANGED[name](3)
    for one in (belief, fresh):
        one.refit(X[:20], y[:20])
    np.testing.assert_allclose(fresh.upper(X[:9]), belief.upper(X[:9]), rtol=1e-9)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_units_do_not_depend_on_the_pieces_in_which_rows_came(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 150))
    X, y, _ = rows(data.draw(st.integers(0, 99)), n)
    y[: data.draw(st.integers(0, n))] = 0.0
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=6)))
    sized = data.draw(st.booleans())
    found = []
    for pieces in ([0, n], [0, *cuts, n]):
        units = Units.none(3)
        for first, last in pairwise(pieces):
            if last > first:
                units = units.after(Run(X[first:last], y[first:last], None), sized=sized)
        found.append(units)
    one, other = found
    assert (one.mean, one.size, one.long, one.rows) == (
        other.mean,
        other.size,
        other.long,
        other.rows,
    )
    np.testing.assert_array_equal(one.low, other.low)
    np.testing.assert_array_equal(one.high, other.high)
    assert not sized or (one.size > 0.0) == bool(y.any())


@pytest.mark.parametrize(
    "belief",
    [
        Logistic(1, mean_bound=0.3),
        Poisson(1, mean_bound=2.0),
        Kernel(1, mean_bound=2.0),
        Kernel(1, length_scale=1.0, signal=5.0, noise=1.0, prior_mean=0.0, mean_bound=2.0),
    ],
)
def test_a_bound_that_rewards_contradict_is_said_once(belief: Belief) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 1))
    y = np.where(rng.uniform(size=200) < 0.9, 1.0 if isinstance(belief, Logistic) else 9.0, 0.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for at in np.array_split(np.arange(200), 10):
            belief.learn(X[at], y[at])
    assert [w.category for w in caught] == [coaf.AssumptionWarning]
    assert "mean_bound" in str(caught[0].message)
    again = restore_belief(belief.state())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again.learn(X, y)


def test_rows_are_learned_even_if_the_warning_is_raised() -> None:
    belief = Poisson(1, mean_bound=2.0)
    X, y = np.linspace(0.0, 1.0, 50)[:, None], np.full(50, 9.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(coaf.AssumptionWarning):
            belief.learn(X, y)
    assert belief.rows == 50


def test_counts_that_vary_more_than_poissons() -> None:
    """The dispersion of variances μ + μ²/4 and of μ, to a fifth, from 2,000 rows."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (2000, 2))
    mu = np.exp(2.0 + X @ [0.8, -0.5])
    for alpha in (0.0, 0.25, 1.0):
        lively = mu * rng.gamma(1.0 / alpha, alpha, 2000) if alpha else mu
        belief = Poisson(2)
        belief.learn(X, rng.poisson(lively).astype(np.float64))
        assert belief.dispersion is None
        assert belief._recent.dispersion == pytest.approx(alpha, abs=0.2)


@pytest.mark.parametrize("alpha", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("usual", [0.5, 20.0])
def test_intervals_of_counts_hold(alpha: float, usual: float) -> None:
    """90 % intervals after 200 rows, 30 worlds of 40 arms: 85 to 95 % hold, give or take 3 %."""
    inside = []
    for seed in range(30):
        rng = np.random.default_rng([seed, 5])
        X, theta = rng.uniform(-1.0, 1.0, (240, 3)), rng.normal(size=3)
        mu = usual * np.exp(X @ theta)
        lively = mu * rng.gamma(1.0 / alpha, alpha, 240) if alpha else mu
        belief = Poisson(3)
        belief.learn(X[:200], rng.poisson(lively[:200]).astype(np.float64))
        low, high = belief.interval(X[200:])
        inside.append(np.mean((low <= mu[200:]) & (mu[200:] <= high)))
    assert 0.82 < np.mean(inside) < 0.98


def test_a_mapped_belief_needs_no_units() -> None:
    X, y, _ = rows(6, 40)
    ours, theirs = (Mapped(np.tanh, Kernel(3), dim=3) for _ in range(2))
    ours.learn(X[:, :3] / 5000.0, y)
    theirs.learn(X[:, :3] / 5000.0, 64.0 * y)
    np.testing.assert_array_equal(64.0 * ours.upper(X / 5000.0), theirs.upper(X / 5000.0))
