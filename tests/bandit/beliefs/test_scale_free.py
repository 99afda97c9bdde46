"""The default belief against its formula written out, and what single rewards may do to it."""

import json
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coaf
from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.scale_free import ScaleFree


def counted(y: FloatArray) -> FloatArray:
    """What rewards count for: the rule, written out."""
    sizes = np.sort(np.abs(y[y != 0.0]))[::-1]
    judged = min(8, len(sizes) // 10)
    if judged == 0:
        return y
    limit = 10.0 * np.sqrt((sizes[judged:] ** 2).mean())
    extreme = np.abs(y) >= sizes[judged - 1]
    return np.where(extreme, np.clip(y, -limit, limit), y)


def written_out(
    X: FloatArray, y: FloatArray, Z: FloatArray, weights: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Mean and upper of the arms Z after the rows (X, y)."""
    w = np.ones(len(y)) if weights is None else weights
    v, n, D = counted(y), w.sum(), X.shape[1] + 1
    ranges = np.ptp(X, axis=0)
    varied = ranges > 0.0
    middle = X[:, varied].mean(axis=0)
    A = np.column_stack([X[:, varied] - middle, np.ones(len(y))])
    B = np.column_stack([Z[:, varied] - middle, np.ones(len(Z))])
    V = A.T @ (w[:, None] * A) + np.diag(np.append(ranges[varied] ** 2 / 32.0, 0.0))
    theta = np.linalg.solve(V, A.T @ (w * v))
    loss = max(float((w * v) @ v - (A.T @ (w * v)) @ theta), 0.0)
    news = (Z[:, ~varied] != X[0, ~varied]).sum(axis=1)
    q = np.einsum("ij,ij->i", B, np.linalg.solve(V, B.T).T) + 32.0 * news
    noise2, size2 = loss / n, float((w * v) @ v) / n
    error2 = q / (1.0 + q) * (noise2 + 4.0 * q * size2) / (1.0 + 4.0 * q)
    return B @ theta, B @ theta + np.sqrt((1.0 + np.log(1.0 + n * q / D)) * error2)


def table(seed: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Rows with columns of all kinds and rewards of all kinds, and arms to score."""
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(1, 8)), int(rng.integers(1, 120))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, d) + 10.0 * rng.normal(size=d)
    for j in range(d):
        kind = rng.integers(6)
        if kind == 0:
            X[:, j] = 3.7
        elif kind == 1:
            X[: n // 2, j] = 0.0
        elif kind == 2 and d > 2:
            X[:, j] = X[:, (j + 1) % d] + X[:, (j + 2) % d]
    y = rng.normal(size=n) + rng.normal()
    if rng.random() < 0.3:
        y = (rng.random(n) < 0.3).astype(np.float64)
    if rng.random() < 0.5:
        y[rng.integers(0, n, rng.integers(1, 4))] = 1e5 * rng.normal()
    return X, y, np.vstack([X[:5] + rng.normal(size=(min(5, n), d)), X[:3]])


def learned(X: FloatArray, y: FloatArray, *cuts: int) -> ScaleFree:
    belief = ScaleFree(X.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", coaf.AssumptionWarning)
        for rows, rewards in zip(np.split(X, cuts), np.split(y, cuts), strict=True):
            belief.learn(rows, rewards)
    return belief


def agree(a: FloatArray, b: FloatArray, tolerance: float) -> None:
    assert np.abs(a - b).max() <= tolerance * (1.0 + np.abs(b).max())


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_any_rows_in_any_pieces_in_any_order(seed: int) -> None:
    X, y, Z = table(seed)
    rng = np.random.default_rng([seed, 1])
    order, cuts = rng.permutation(len(y)), np.sort(rng.integers(0, len(y) + 1, 2))
    belief = learned(X[order], y[order], *cuts.tolist())
    if not y.any():
        assert belief.reward_size == 0.0
        return
    mean, upper = written_out(X, y, Z)
    agree(belief.mean(Z), mean, 1e-8)
    agree(belief.upper(Z), upper, 1e-8)
    assert belief.reward_size == pytest.approx(float(np.sqrt((counted(y) ** 2).mean())))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.1, 0.9))
def test_forgetting_weighs_rows_and_leaves_ranges(seed: int, factor: float) -> None:
    X, y, Z = table(seed)
    y = np.clip(y, -2.0, 2.0)  # the rule about extremes goes by weights, too
    belief = learned(X, y)
    belief.forget(factor)
    if y.any():
        mean, upper = written_out(X, y, Z, np.full(len(y), factor))
        agree(belief.mean(Z), mean, 1e-7)
        agree(belief.upper(Z), upper, 1e-7)


@pytest.mark.parametrize("seed", range(5))
def test_what_was_settled_is_not_forgotten(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60) * np.where(np.arange(60) % 7, 1.0, 4.0)
    belief = learned(X[:30], y[:30])
    belief.settle()
    belief.learn(X[30:], y[30:])
    belief.forget(0.25)
    weights = np.where(np.arange(60) < 30, 1.0, 0.25)
    mean, upper = written_out(X, y, X, weights)
    agree(belief.mean(X), mean, 1e-9)
    agree(belief.upper(X), upper, 1e-9)


def test_many_features_and_many_rows_agree_with_the_formula() -> None:
    """Beyond 64 features rows wait to be folded in; beyond 4,096 rows P is derived anew."""
    rng = np.random.default_rng(0)
    for d, n in ((90, 400), (5, 9000)):
        X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, d)
        y = rng.normal(size=n)
        belief = learned(X, y, *range(13, n, 13))
        mean, upper = written_out(X, y, X[:20])
        agree(belief.mean(X[:20]), mean, 1e-9)
        agree(belief.upper(X[:20]), upper, 1e-9)


class TestASingleReward:
    def test_counts_for_ten_times_the_others_at_most_and_that_is_said(self) -> None:
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(100, 2)), rng.normal(size=100)
        y[40] = 1e5
        belief = ScaleFree(2)
        belief.learn(X[:40], y[:40])
        with pytest.warns(coaf.AssumptionWarning, match=r"a reward of 100000 counts for"):
            belief.learn(X[40:], y[40:])
        ((reward, counts),) = belief.limited
        others = np.sort(np.abs(y))[:-8]
        assert reward == 1e5
        assert counts == pytest.approx(10.0 * np.sqrt((others**2).mean()))
        belief.learn(X[:1], y[:1])  # once is enough

    @pytest.mark.parametrize("at", [0, 3, 50, 199])
    def test_whenever_it_comes(self, at: int) -> None:
        """A marker of 1e15 leaves no trace but what it counts for: 1e-6 of rounding."""
        rng = np.random.default_rng(1)
        X, y = rng.normal(size=(200, 2)), rng.normal(size=200)
        y[at] = 1e15
        belief = learned(X, y, *range(1, 200))
        mean, upper = written_out(X, y, X)
        agree(belief.mean(X), mean, 1e-6)
        agree(belief.upper(X), upper, 1e-6)

    def test_moves_the_rate_by_little_and_not_for_good(self) -> None:
        def share(spoil: float) -> float:
            policy, rng = coaf.COAF(2), np.random.default_rng(3)
            reward = seconds = 0.0
            for j in range(600):
                X = rng.normal(size=(8, 2))
                mu = 0.2 + X @ [0.3, -0.2]
                y = mu + 0.5 * rng.normal(size=8)
                decision = policy.decide(coaf.Round(X, coaf.Additive(5.0, 1.0)))
                policy.commit(decision)
                arms = np.flatnonzero(decision.chosen)
                y[arms[:1]] += spoil * (j == 100)
                policy.learn(decision, arms, y[arms])
                if j >= 300:
                    reward += float(mu[arms].sum())
                    seconds += decision.seconds
            return reward / seconds

        with pytest.warns(coaf.AssumptionWarning, match="counts for"):
            spoiled = share(1e5)
        assert spoiled > 0.99 * share(0.0)

    @pytest.mark.parametrize("p", [0.01, 0.5, 0.99])
    def test_successes_count_in_full(self, p: float) -> None:
        rng = np.random.default_rng(2)
        belief = ScaleFree(2)
        for _ in range(300):
            belief.learn(rng.normal(size=(20, 2)), (rng.random(20) < p).astype(np.float64))
        assert belief.limited == []

    @pytest.mark.parametrize("mean", [0.01, 0.3, 1.0, 4.0, 300.0])
    def test_counts_count_in_full(self, mean: float) -> None:
        rng = np.random.default_rng(2)
        belief = ScaleFree(2)
        for _ in range(300):
            belief.learn(rng.normal(size=(20, 2)), rng.poisson(mean, 20).astype(np.float64))
        assert belief.limited == []

    def test_more_outliers_than_the_rule_holds_are_said_to_be_too_many(self) -> None:
        rng = np.random.default_rng(4)
        belief = ScaleFree(1)
        belief.learn(rng.normal(size=(5000, 1)), rng.normal(size=5000))

        def spoil() -> None:
            for _ in range(9):
                belief.learn(rng.normal(size=(1, 1)), [1e6])

        with pytest.warns(coaf.AssumptionWarning) as caught:
            spoil()
        texts = [str(one.message) for one in caught]
        assert len(texts) == 2
        assert "others as large may count in full" in texts[1]

    def test_is_refused_where_a_range_was_given(self) -> None:
        policy = coaf.COAF(1, reward_range=(0.0, 1.0))
        decision = policy.decide(coaf.Round([[0.1], [0.2]], coaf.Additive(1.0, 1.0)))
        policy.commit(decision)
        before = json.dumps(policy.state())
        with pytest.raises(ValueError, match=r"rewards\[1\], of arm 1, is 100000, outside of"):
            policy.learn(decision, [0, 1], [0.5, 1e5])
        assert json.dumps(policy.state()) == before
        policy.learn(decision, [0], [0.5])


class TestCorrected:
    @settings(max_examples=60, deadline=None)
    @given(st.integers(0, 2**32 - 1))
    def test_rows_equal_a_fresh_fit(self, seed: int) -> None:
        """To 1e-7 where rows are: columns that add up to others cost digits, and far away more."""
        X, y, Z = table(seed)
        y = np.clip(y, -2.0, 2.0)
        rng = np.random.default_rng([seed, 2])
        rows = rng.choice(len(y), min(len(y), 7), replace=False)
        wrong = y.copy()
        wrong[rows] += rng.normal(size=len(rows))
        belief, fresh = learned(X, wrong), learned(X, y)
        if belief.limited or fresh.limited:
            return
        belief.correct(X[rows], wrong[rows], y[rows])
        agree(belief.mean(X), fresh.mean(X), 1e-7)
        agree(belief.mean(Z), fresh.mean(Z), 1e-6)
        if y.any():
            agree(belief.upper(X), fresh.upper(X), 1e-7)
            agree(belief.upper(Z), fresh.upper(Z), 1e-6)

    def test_needs_all_rows_where_a_reward_is_limited(self) -> None:
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(100, 2)), rng.normal(size=100)
        belief = learned(X, np.where(np.arange(100) == 7, 1e5, y))
        before = belief.state()
        with pytest.raises(ValueError, match="keep_rows=True"):
            belief.correct(X[7:8], [1e5], [0.5])
        assert belief.state() == before


@pytest.mark.parametrize("failures", [1, 2, 3])
@pytest.mark.parametrize("luck", [0.0, 0.5])
def test_patience_is_a_bound_on_the_rows_until_an_arm_is_tried_again(
    failures: int, luck: float
) -> None:
    """Two arms: the second fails at first, the first brings 0.5, for certain or on average."""
    rng, eye, tried, rows = np.random.default_rng(0), np.eye(2), 0, 0
    policy = coaf.COAF(2)
    belief = policy.belief
    assert isinstance(belief, ScaleFree)
    while tried <= failures:
        decision = policy.decide(coaf.Round(eye, coaf.Additive(1.0, 1.0), coaf.OneOf()))
        arm = int(decision.chosen.argmax())
        if tried == failures and arm == 0:
            lead = float(decision.estimates[0] - belief.mean(eye)[1]) / belief.reward_size
            noise = belief.noise / belief.reward_size
            assert rows <= belief.patience(failures, lead, noise=noise)
        policy.commit(decision)
        reward = float(rng.choice([0.5 - luck, 0.5 + luck])) if arm == 0 else 0.0
        policy.learn(decision, [arm], [reward])
        tried, rows = tried + arm, rows + 1
    assert rows < 10_000


def test_state_and_estimates_in_words() -> None:
    belief = ScaleFree(2)
    belief.learn([[5000.0, 0.01], [5100.0, 0.01], [5000.0, 0.02]], [1.0, 3.0, 2.0])
    again = ScaleFree.restore(json.loads(json.dumps(belief.state())))
    X = np.array([[5050.0, 0.015], [4000.0, 0.0]])
    np.testing.assert_array_equal(again.upper(X), belief.upper(X))
    np.testing.assert_allclose(X @ belief.theta[:-1] + belief.theta[-1], belief.mean(X))
    assert belief.noise >= 0.0


@pytest.mark.parametrize(
    ("call", "mistake"),
    [
        (lambda b: b.learn([[1.0, np.nan]], [1.0]), r"features\[0, 1\] is nan"),
        (lambda b: b.learn([[1.0, 1e200]], [1.0]), r"features\[0, 1\] is 1e\+200"),
        (lambda b: b.learn([[1.0, 2.0]], [1e200]), r"rewards\[0\] is 1e\+200; .* within ±1e\+150"),
        (lambda b: b.upper([[1.0, np.inf]]), r"features\[0, 1\] is inf"),
        (lambda b: b.mean([[1.0]]), "features have 1 columns, but this belief has dim=2"),
        (lambda b: ScaleFree(0), "dim is 0"),
        (lambda b: ScaleFree(2, mean_bound=-1.0), "mean_bound is -1.0"),
        (lambda b: ScaleFree.restore({**b.state(), "dim": 9}), "entry 'precision' has shape"),
    ],
)
def test_what_cannot_be_is_refused(call: Any, mistake: str) -> None:
    belief = ScaleFree(2)
    belief.learn([[1.0, 2.0]], [1.0])
    before = belief.state()
    with pytest.raises(ValueError, match=mistake):
        call(belief)
    assert belief.state() == before


def test_a_bound_that_was_stated_cuts_and_is_doubted_if_rewards_contradict_it() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 2))
    belief = ScaleFree(2, mean_bound=0.5)
    belief.learn(X[:10], 3.0 + rng.normal(size=10))
    with pytest.warns(coaf.AssumptionWarning, match=r"ScaleFree\(mean_bound=0.5\): \d+ rewards"):
        belief.learn(X[10:], 3.0 + rng.normal(size=190))
    assert belief.upper(X).max() == 0.5
