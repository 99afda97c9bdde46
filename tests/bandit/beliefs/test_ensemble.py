"""Bootstrapped copies of any regressor as a belief."""

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coaf
from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.ensemble import Ensemble, poisson
from coaf.bandit.beliefs.registry import restore_belief
from coaf.bandit.beliefs.regressor import epochs
from coaf.bandit.checks import check_belief
from coaf.bandit.problem import Round

Ridge = pytest.importorskip("sklearn.linear_model").Ridge
Tree = pytest.importorskip("sklearn.tree").DecisionTreeRegressor
Neighbours = pytest.importorskip("sklearn.neighbors").KNeighborsRegressor


def rows(n: int, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 2))
    return X, np.where(X[:, 0] > 0.0, 0.6, 0.1) + rng.normal(0.0, 0.3, n)


ARMS = rows(30, seed=99)[0]


class Count:
    """Predicts how many rows it was given; it takes no weights, and fails at sizes told."""

    def __init__(self, bad: tuple[int, ...] = ()) -> None:
        self.bad = bad

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"bad": self.bad}

    def fit(self, X: FloatArray, y: FloatArray) -> "Count":
        if len(y) in self.bad:
            raise RuntimeError(f"in no mood for {len(y)}")
        self.rows = len(y)
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        return np.full(len(X), float(self.rows))


@pytest.mark.parametrize(
    "belief",
    [
        Ensemble(2, Tree(min_samples_leaf=4), copies=3),
        Ensemble(2, Tree(min_samples_leaf=4), noise=1.0, mean_bound=1.0, copies=3),
        Ensemble(2, Tree(min_samples_leaf=4), mean_bound=1.0, copies=3),
        Ensemble(1, Count(), noise=0.5, mean_bound=1000.0),
    ],
    ids=["weights", "stated", "bound", "repeated rows"],
)
@pytest.mark.filterwarnings("ignore::coaf.AssumptionWarning")  # there are more rows than reward
def test_contract(belief: Ensemble) -> None:
    check_belief(belief)


def test_before_any_row_nothing_is_known() -> None:
    belief = Ensemble(2, Ridge(), noise=1.0, mean_bound=3.0)
    assert (belief.mean(ARMS) == 0.0).all()
    assert (belief.upper(ARMS) == 3.0).all()
    rng = np.random.default_rng(0)
    draws = [belief.sample(np.zeros((1, 2)), rng)[0] for _ in range(400)]
    assert np.std(draws) == pytest.approx(3.0 / belief.width, rel=0.15)


@given(st.integers(0, 50), st.integers(0, 20), st.integers(1, 60), st.integers(0, 40))
def test_a_rows_number_depends_on_nothing_but_its_place(
    seed: int, copy: int, n: int, more: int
) -> None:
    assert np.array_equal(
        poisson(seed, copy, np.ones(n)), poisson(seed, copy, np.ones(n + more))[:n]
    )


@pytest.mark.parametrize("mean", [1.0, 0.3])
def test_the_numbers_are_poisson(mean: float) -> None:
    n = 100_000
    counts = poisson(3, 1, np.full(n, mean))
    for k in range(5):
        share = mean**k * math.exp(-mean) / math.factorial(k)
        assert np.mean(counts == k) == pytest.approx(share, abs=4.0 * math.sqrt(share / n))


def test_a_forgotten_row_never_comes_more_often() -> None:
    assert (poisson(0, 0, np.full(500, 0.4)) <= poisson(0, 0, np.full(500, 0.8))).all()


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 9), max_size=8))
def test_rows_may_come_in_any_pieces(pieces: list[int]) -> None:
    X, y = rows(sum(pieces))
    at_once, bit_by_bit = (Ensemble(2, Neighbours(1), copies=2) for _ in range(2))
    at_once.learn(X, y)
    for end, piece in zip(np.cumsum(pieces, dtype=int), pieces, strict=True):
        bit_by_bit.learn(X[end - piece : end], y[end - piece : end])
        bit_by_bit.upper(ARMS)
    assert np.array_equal(at_once.upper(ARMS), bit_by_bit.upper(ARMS))


def test_weights_and_repeated_rows_are_the_same_bootstrap() -> None:
    belief = Ensemble(2, Ridge(alpha=0.1), copies=3)
    X, y = rows(74)
    belief.learn(X, y)
    found = []
    for copy in range(3):
        repeated = np.repeat(np.arange(74), poisson(0, copy, np.ones(74)))
        found.append(Ridge(alpha=0.1).fit(X[repeated], y[repeated]).predict(ARMS))
    np.testing.assert_allclose(belief.mean(ARMS), np.mean(found, axis=0), atol=1e-10)


@pytest.mark.filterwarnings("ignore:.*noise=:coaf.AssumptionWarning")  # which is too small
def test_the_spread_is_the_standard_error_of_the_estimate() -> None:
    """Of a linear model, whose error is known: σ √(xᵀ V⁻¹ x)."""
    n = epochs(450)[-1]
    X = rows(n)[0]
    y = X @ [0.3, -0.2] + np.random.default_rng(1).normal(0.0, 0.3, n)
    belief = Ensemble(2, Ridge(1e-9), copies=60, noise=0.01, width=1.0)
    belief.learn(X, y)
    F, A = (np.column_stack([np.ones(len(Z)), Z]) for Z in (X, ARMS))
    error = 0.3 * np.sqrt(np.einsum("ij,ji->i", A, np.linalg.solve(F.T @ F, A.T)))
    np.testing.assert_allclose(belief.upper(ARMS) - belief.mean(ARMS), error, rtol=0.35)


def test_equal_rewards_do_not_make_it_certain() -> None:
    belief = Ensemble(2, Tree(), noise=0.3)
    belief.learn(rows(6)[0], np.zeros(6))
    assert (belief.mean(ARMS) == 0.0).all()
    assert (belief.upper(ARMS) > 0.2).all()
    draws = [belief.sample(ARMS, np.random.default_rng(seed))[0] for seed in range(50)]
    assert np.std(draws) > 0.05


@pytest.mark.filterwarnings("ignore:.*noise=:coaf.AssumptionWarning")  # which is too small
def test_a_draw_is_one_of_the_copies_once_they_differ_enough() -> None:
    belief = Ensemble(2, Tree(), noise=1e-6, mean_bound=9.0, copies=4)
    belief.learn(*rows(60))
    seen = {belief.sample(ARMS, np.random.default_rng(s))[0].round(4) for s in range(60)}
    assert 1 < len(seen) <= 4


def test_upper_covers_nine_means_in_ten_of_a_step() -> None:
    covered = []
    for seed in range(5):
        belief = Ensemble(2, Tree(max_leaf_nodes=8, min_samples_leaf=5), noise=0.3, seed=seed)
        belief.learn(*rows(200, seed))
        covered.append(np.mean(belief.upper(ARMS) >= np.where(ARMS[:, 0] > 0.0, 0.6, 0.1)))
    assert np.mean(covered) > 0.9


def test_restored_by_its_kind() -> None:
    belief = Ensemble(2, Neighbours(2), copies=3, seed=4)
    belief.learn(*rows(20))
    twin = restore_belief(json.dumps(belief.state()))
    assert isinstance(twin, Ensemble)
    assert np.array_equal(twin.upper(ARMS), belief.upper(ARMS))


def test_what_it_cannot_use_is_refused() -> None:
    with pytest.raises(ValueError, match="copies is 1; it must be an integer of at least 2"):
        Ensemble(2, Ridge(), copies=1)
    with pytest.raises(ValueError, match=r"width is 0.0; it must be greater than 0"):
        Ensemble(2, Ridge(), width=0.0)


def test_neighbours_that_cannot_be_found_leave_the_belief_usable() -> None:
    """Five neighbours cannot be asked of fewer rows: until then the average stands in."""
    belief = Ensemble(2, Neighbours(5), noise=0.3)
    X, y = rows(40)
    belief.learn(X[:3], y[:3])
    with pytest.warns(coaf.BeliefWarning, match="fitting 3 rows failed.*their average reward"):
        np.testing.assert_allclose(belief.mean(ARMS), y[:3].mean())
    belief.learn(X[3:], y[3:])
    assert np.ptp(belief.mean(ARMS)) > 0.1
    assert belief.fault == ""


def test_coaf_plays_it_and_resumes() -> None:
    policy = coaf.COAF(belief=Ensemble(2, Tree(max_depth=2), copies=3), index=coaf.Thompson())
    rng = np.random.default_rng(0)
    rounds = [Round(rng.uniform(-0.7, 0.7, (4, 2)), coaf.Additive(2.0, 0.5)) for _ in range(4)]
    for one in rounds[:3]:
        decision = policy.decide(one)
        policy.commit(decision)
        arms = np.flatnonzero(decision.chosen)
        policy.learn(decision, arms, (one.features[arms, 0] > 0.0).astype(float))
    twin = coaf.COAF.restore(json.dumps(policy.state()))
    ours, theirs = policy.decide(rounds[3]), twin.decide(rounds[3])
    assert np.array_equal(ours.estimates, theirs.estimates)
    assert np.array_equal(ours.chosen, theirs.chosen)
