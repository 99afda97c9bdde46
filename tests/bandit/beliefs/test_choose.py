"""Which belief is recommended, and that the comparison is an honest one."""

import sys
from collections.abc import Callable

import numpy as np
import pytest

from coaf.bandit.arrays import FloatArray, IntArray
from coaf.bandit.beliefs.choose import NOTHING, choose_belief
from coaf.bandit.beliefs.scale_free import ScaleFree

# Rewards beyond what was stated are meant.
pytestmark = pytest.mark.filterwarnings("ignore::coaf.AssumptionWarning")

pytest.importorskip("sklearn")


def features(n: int = 300, dim: int = 2, seed: int = 0) -> FloatArray:
    return np.random.default_rng(seed).uniform(-0.7, 0.7, size=(n, dim))


def test_a_plane_is_linear() -> None:
    X = features()
    choice = choose_belief(X, X @ [0.8, -0.3] + 0.05 * np.random.default_rng(1).normal(size=300))
    assert choice.name == "linear"
    assert isinstance(choice.belief, ScaleFree)
    assert choice.belief.rows == 0


def test_a_plane_beside_the_origin_is_linear() -> None:
    X = features()
    rewards = 2.0 + X @ [0.8, -0.3] + 0.05 * np.random.default_rng(1).normal(size=300)
    choice = choose_belief(X, rewards)
    assert choice.name == "linear"
    assert {row["belief"]: row for row in choice.table}["linear"]["explained"] > 0.95


def test_a_steep_chance_is_logistic() -> None:
    X = features(800)
    chance = 1.0 / (1.0 + np.exp(6.0 - 15.0 * X[:, 0]))
    rewards = (np.random.default_rng(1).random(800) < chance).astype(float)
    assert choose_belief(X, rewards).name == "logistic"


def test_a_checkerboard_is_for_trees_or_kernels() -> None:
    X = features(400)
    board = np.where((X[:, 0] > 0.0) == (X[:, 1] > 0.0), 0.9, 0.05)
    choice = choose_belief(X, board + 0.1 * np.random.default_rng(1).normal(size=400))
    assert choice.name in ("kernel", "regression (boosting)")
    rows = {row["belief"]: row for row in choice.table}
    assert rows[choice.name]["explained"] > 0.6
    assert rows["linear"]["explained"] < 0.1


def test_hidden_groups_are_for_nested() -> None:
    X, labels = features(400), np.repeat(np.arange(40), 10)
    rng = np.random.default_rng(1)
    rewards = X[:, 0] + rng.normal(size=40)[labels] + 0.3 * rng.normal(size=400)
    assert choose_belief(X, rewards, labels).name == "nested"


def test_noise_is_nothing() -> None:
    choice = choose_belief(features(), np.random.default_rng(3).normal(size=300))
    assert choice.name == NOTHING
    assert choice.belief is None
    assert "tell nothing" in choice.why


def test_the_table_reads_well_and_is_the_same_each_time() -> None:
    X = features()
    one, other = (choose_belief(X, X[:, 0]) for _ in range(2))
    assert "<- recommended" in str(one)
    assert str(one).splitlines()[-1] == one.why
    for a, b in zip(one.table, other.table, strict=True):
        assert a | {"us_per_row": 0} == b | {"us_per_row": 0}


def test_a_recommended_belief_can_learn_at_once() -> None:
    X = 30.0 + 400.0 * features(dim=3)  # stage coordinates, say
    choice = choose_belief(X, X @ [0.01, 0.0, 0.02])
    assert choice.belief is not None
    choice.belief.learn(X, X @ [0.01, 0.0, 0.02])
    assert np.isfinite(choice.belief.upper(X)).all()


def test_too_little_to_choose_from() -> None:
    with pytest.raises(ValueError, match="at least 50"):
        choose_belief(features(20), np.zeros(20))
    with pytest.raises(ValueError, match="rewards"):
        choose_belief(features(60), np.zeros(59))


def test_features_far_longer_than_those_seen_are_still_scored() -> None:
    X = features()
    choice = choose_belief(X, X @ [0.8, -0.3])
    assert choice.belief is not None
    choice.belief.upper(1.5 * X)


@pytest.mark.parametrize("value", [0.0, 0.7])
def test_rewards_that_never_differ_are_the_average(value: float) -> None:
    choice = choose_belief(features(60), np.full(60, value))
    assert choice.name == NOTHING
    assert len(choice.table) == 1


def test_one_success_is_no_reason_to_stop() -> None:
    rewards = np.zeros(60)
    rewards[7] = 1.0
    choice = choose_belief(features(60), rewards)
    assert choice.name == NOTHING
    assert "kernel" in choice.skipped
    assert "kernel was left out: " in str(choice)


def test_raw_features_are_no_obstacle() -> None:
    X = 1e4 * features(100)
    choice = choose_belief(X, (X[:, 0] > 0.0).astype(float))
    assert choice.skipped == {}
    assert choice.name != NOTHING


def plane(X: FloatArray) -> FloatArray:
    return 2.0 + X @ [0.8, -0.3]


def board(X: FloatArray) -> FloatArray:
    return np.where((X[:, 0] > 0.0) == (X[:, 1] > 0.0), 2.0, 0.0)


def nothing(X: FloatArray) -> FloatArray:
    return np.zeros(len(X))


@pytest.mark.parametrize(
    ("truth", "groups", "found"),
    [
        (plane, None, "linear"),
        (board, None, "kernel"),
        (plane, np.arange(120) // 6, "nested"),
        (nothing, None, NOTHING),
    ],
    ids=["plane", "board", "groups", "nothing"],
)
def test_units_make_no_difference(
    truth: Callable[[FloatArray], FloatArray], groups: IntArray | None, found: str
) -> None:
    X, rng = features(120), np.random.default_rng(1)
    y = truth(X) + 0.2 * rng.normal(size=120)
    if groups is not None:
        y += rng.normal(size=20)[groups]
    ours = choose_belief(X, y, groups)
    assert ours.name == found
    for c, arms in ((1e-3, X), (1e3, X * [1e-4, 1e4] + [30.0, -7e4])):
        theirs = choose_belief(arms, c * y, groups)
        assert theirs.name == ours.name
        for one, other in zip(ours.table, theirs.table, strict=True):
            assert one["belief"] == other["belief"]
            # Searches end, and trees split, where rounding lets them.
            assert other["error"] / c == pytest.approx(one["error"], rel=0.01)


def test_a_mean_far_from_zero_is_learned() -> None:
    X, labels = features(400), np.repeat(np.arange(40), 10)
    rng = np.random.default_rng(1)
    rewards = 1000.0 + X[:, 0] + rng.normal(size=40)[labels] + 0.3 * rng.normal(size=400)
    choice = choose_belief(X, rewards, labels)
    assert choice.name == "nested"
    assert choice.belief is not None
    choice.belief.learn(X, rewards, labels)
    assert choice.belief.mean(X[:1], np.array([10**6])) == pytest.approx(1000.0, abs=2.0)
    rows = {row["belief"]: row for row in choice.table}
    assert rows["linear"]["explained"] > -0.1


def test_what_an_extra_would_add_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["coaf.bandit.extras"], "find_spec", lambda _: None)
    choice = choose_belief(features(60), features(60)[:, 0])
    assert str(choice).count("it needs scikit-learn: pip install 'coaf[experiments]'") == 1
