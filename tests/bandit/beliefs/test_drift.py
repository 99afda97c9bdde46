import json
import pickle
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.belief import Belief
from coaf.bandit.beliefs.drift import Drift
from coaf.bandit.beliefs.finite import Finite
from coaf.bandit.beliefs.linear import Linear
from coaf.bandit.beliefs.prior import start_from
from coaf.bandit.beliefs.registry import register, restore_belief
from coaf.bandit.beliefs.rows import check_factor
from coaf.bandit.checks.beliefs import check_belief
from coaf.bandit.groups import Groups, check_groups, innermost
from coaf.bandit.latency import Additive
from coaf.bandit.policies.coaf import COAF
from coaf.bandit.problem import Round
from coaf.bandit.state import entry, seal, unseal

# Rewards beyond what was stated are meant.
pytestmark = pytest.mark.filterwarnings("ignore::coaf.AssumptionWarning")


@register("latest, of a test")
class Latest:
    """Every arm is worth the weighted mean of the rewards in its group, 0.5 with weight 1 first.

    Its rows are open to see: (group, reward, weight) in the order in which they are held.
    """

    dim = 2

    def __init__(self) -> None:
        self.rows: list[tuple[str, float, float]] = []
        self.prior = 0

    def mean(self, features: FloatArray, groups: Groups | None = None) -> FloatArray:
        return np.array([self._of(label) for label in self._labels(features, groups)])

    def _labels(self, features: FloatArray, groups: Groups | None) -> list[str]:
        if np.shape(features)[1:] != (self.dim,):
            raise ValueError(f"features must have {self.dim} columns")
        n = len(features)
        return [""] * n if groups is None else list(map(repr, innermost(check_groups(groups, n))))

    def _of(self, label: str) -> float:
        mine = [(0.5, 1.0), *((y, weight) for group, y, weight in self.rows if group == label)]
        return sum(y * weight for y, weight in mine) / sum(weight for _, weight in mine)

    def upper(self, features: FloatArray, groups: Groups | None = None) -> FloatArray:
        return self.mean(features, groups) + 1.0

    def sample(
        self, features: FloatArray, rng: np.random.Generator, groups: Groups | None = None
    ) -> FloatArray:
        return self.mean(features, groups) + rng.uniform()

    def learn(
        self, features: FloatArray, rewards: FloatArray, groups: Groups | None = None
    ) -> None:
        labels = self._labels(features, groups)
        if len(rewards) != len(features) or not np.isfinite(rewards).all():
            raise ValueError("rewards must be one finite number per row")
        if (np.asarray(rewards) > 100.0).any():
            raise ValueError(f"rewards[{np.argmax(rewards)}] is more than 100")
        self.rows += [(a, float(y), 1.0) for a, y in zip(labels, rewards, strict=True)]

    def refit(
        self, features: FloatArray, rewards: FloatArray, groups: Groups | None = None
    ) -> None:
        fresh = Latest()
        fresh.learn(features, rewards, groups)
        self.rows = self.rows[: self.prior] + fresh.rows

    def forget(self, factor: float) -> None:
        factor = check_factor(factor)
        since = [(group, y, weight * factor) for group, y, weight in self.rows[self.prior :]]
        self.rows = self.rows[: self.prior] + since

    def settle(self) -> None:
        self.prior = len(self.rows)

    def state(self) -> dict[str, Any]:
        return seal("latest, of a test", {"rows": self.rows, "prior": self.prior})

    @classmethod
    def restore(cls, state: Mapping[str, Any] | str) -> Self:
        state = unseal("latest, of a test", state)
        belief = cls()
        belief.rows = [(row[0], row[1], row[2]) for row in entry(state, "rows")]
        belief.prior = entry(state, "prior")
        return belief


PARAMETERS = np.random.default_rng(0).uniform(-0.7, 0.7, (50, 2))
INNER: dict[str, Callable[[], Belief]] = {
    "linear": lambda: Linear(3),
    "tuned": lambda: Linear.tuned(5),
    "printed": lambda: Linear(2, radius="printed", feature_bound=2.0),
    "latest": Latest,
    "finite": lambda: Finite(2, PARAMETERS),
}
# A trial has 40 rows at dim 3: windows of one row, of part of a call, of all, and of more.
HOW: list[dict[str, Any]] = [
    *({"half_life": half_life} for half_life in (1.0, 7.5, 50.0)),
    *({"window": window} for window in (1, 10, 40, 1000)),
]


@pytest.mark.parametrize("how", HOW, ids=str)
@pytest.mark.parametrize("inner", INNER)
def test_contract(inner: str, how: dict[str, Any]) -> None:
    check_belief(Drift(INNER[inner](), **how))


def test_contract_of_one_inside_another() -> None:
    check_belief(Drift(Drift(Linear(1), window=20), half_life=9.0))


def some_rows(n: int, dim: int = 3, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    return rng.uniform(-0.5, 0.5, (n, dim)), rng.normal(size=n)


def test_half_life_is_ridge_with_fading_weights() -> None:
    X, y = some_rows(60)
    belief = Drift(Linear(3, regularization=0.7), half_life=9.0)
    belief.learn(X, y)
    weights = 0.5 ** (np.arange(59, -1, -1) / 9.0)
    V = 0.7 * np.eye(3) + (X.T * weights) @ X
    inner = belief.belief
    assert isinstance(inner, Linear)
    np.testing.assert_allclose(inner.precision, V, atol=1e-12)
    np.testing.assert_allclose(inner.theta, np.linalg.solve(V, X.T @ (weights * y)), atol=1e-12)
    assert inner.rows == pytest.approx(weights.sum())


def test_window_is_a_fresh_fit_of_the_last_rows() -> None:
    X, y = some_rows(60)
    belief, fresh = Drift(Linear(3), window=13), Linear(3)
    for start in range(0, 60, 7):
        belief.learn(X[start : start + 7], y[start : start + 7])
    fresh.learn(X[-13:], y[-13:])
    for ours, theirs in ((belief.mean(X), fresh.mean(X)), (belief.upper(X), fresh.upper(X))):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


LABELS: dict[str, Callable[[int], Any]] = {
    "none": lambda n: None,
    "numbers": lambda n: np.arange(n) % 2,
    "unsigned": lambda n: (np.arange(n) % 2).astype(np.uint8),
    "words": lambda n: np.array(["left", "b"])[np.arange(n) % 2],
    "nested": lambda n: np.column_stack([np.arange(n) % 2, np.arange(n) % 3]),
}
ROWS = st.tuples(st.integers(0, 5), st.sampled_from(sorted(LABELS)))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["learn", "learn", "refit"]), ROWS),
        st.tuples(st.just("forget"), st.sampled_from([0.5, 0.25, 1.0])),
        st.tuples(st.just("settle"), st.none()),
        st.tuples(st.just("save"), st.none()),
    ),
    max_size=12,
)


def label(labels: Any, i: int) -> str:
    return "" if labels is None else repr(innermost(labels)[i])


@settings(max_examples=300, deadline=None)
@given(steps=STEPS, length=st.integers(1, 6), windowed=st.booleans())
def test_any_history_holds_the_rows_it_should(
    steps: list[tuple[str, Any]], length: int, windowed: bool
) -> None:
    """Against a plain list of rows, with every row's weight worked out one by one."""
    how: dict[str, Any] = {"window": length} if windowed else {"half_life": length}
    belief: Drift = Drift(Latest(), **how)
    prior: list[tuple[str, float, float]] = []
    since: list[tuple[str, float, float]] = []
    count = 0.0
    for name, what in steps:
        if name in ("learn", "refit"):
            n, kind = what
            labels, y = LABELS[kind](n), count + np.arange(n)
            count = (count + n) % 90.0
            getattr(belief, name)(np.zeros((n, 2)), y, labels)
            since = [] if name == "refit" else since
            for i in range(n):
                if windowed:
                    since = [*since, (label(labels, i), float(y[i]), 1.0)][-length:]
                else:
                    since = [(g, r, w * 0.5 ** (1 / length)) for g, r, w in since]
                    since.append((label(labels, i), float(y[i]), 1.0))
        elif name == "forget":
            belief.forget(what)
            since = [(g, r, w * what) for g, r, w in since]
        elif name == "settle":
            belief.settle()
            prior, since = prior + since, []
        else:
            belief = Drift.restore(json.loads(json.dumps(belief.state())))
        assert isinstance(belief.belief, Latest)
        held, expected = belief.belief.rows, prior + since
        assert [row[:2] for row in held] == [row[:2] for row in expected]
        assert [row[2] for row in held] == pytest.approx([row[2] for row in expected])


@pytest.mark.parametrize("how", [{"half_life": 5.0}, {"window": 5}])
@pytest.mark.parametrize("verb", ["learn", "refit"])
def test_what_is_refused_changes_nothing(how: dict[str, Any], verb: str) -> None:
    belief = Drift(Latest(), **how)
    belief.learn(np.zeros((4, 2)), np.ones(4))
    before = json.dumps(belief.state())
    late = np.array([1.0, 1.0, 101.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    # The row is named as the caller counts, and refused even where it leaves the window at once.
    with pytest.raises(ValueError, match=r"rewards\[2\] is more than 100"):
        getattr(belief, verb)(np.zeros((9, 2)), late)
    with pytest.raises(ValueError, match="groups must be"):
        getattr(belief, verb)(np.zeros((2, 2)), np.ones(2), [0.5, 1.5])
    with pytest.raises(ValueError, match="columns"):
        getattr(belief, verb)(np.zeros((2, 3)), np.ones(2))
    assert json.dumps(belief.state()) == before


def test_the_belief_given_is_copied() -> None:
    inner = Linear(3)
    X, y = some_rows(5)
    for drift in (Drift(inner, half_life=5), Drift(inner, window=9)):
        drift.learn(X, y)
        assert inner.rows == 0.0


def test_an_earlier_session_is_a_prior_that_stays() -> None:
    X, y = some_rows(30)
    earlier = Linear(3)
    earlier.learn(X, y)
    drift = Drift(start_from(earlier), window=4)
    drift.learn(X, -y)
    drift.refit(X[:0], y[:0])
    np.testing.assert_allclose(drift.mean(X), earlier.mean(X), atol=1e-12)


def test_wrapping_what_has_learned_lets_it_fade_or_leave() -> None:
    X, y = some_rows(30)
    earlier, fresh = Linear(3), Linear(3)
    earlier.learn(X, y)
    fading, leaving = Drift(earlier, half_life=2), Drift(earlier, window=4)
    fading.learn(X[:8], y[:8])
    assert isinstance(fading.belief, Linear)
    assert fading.belief.rows == pytest.approx(30 / 2**4 + sum(0.5 ** (k / 2) for k in range(8)))
    leaving.learn(X[:5], y[:5])
    fresh.learn(X[1:5], y[1:5])
    np.testing.assert_allclose(leaving.mean(X), fresh.mean(X), atol=1e-12)


def test_forgetting_without_end_is_possible() -> None:
    X, y = some_rows(4)
    belief = Drift(Linear(3), window=3)
    belief.learn(X[:2], y[:2])
    for _ in range(50):
        belief.forget(1e-9)
    belief.learn(X[2:], y[2:])
    assert np.isfinite(belief.mean(X)).all()


@pytest.mark.parametrize("how", [{"half_life": 30.0}, {"window": 25}])
def test_a_policy_resumes_with_it(how: dict[str, Any]) -> None:
    rng = np.random.default_rng(3)
    policy = COAF(belief=Drift(Linear.tuned(3), **how))

    def visit(policy: COAF, X: FloatArray, name: str) -> list[float]:
        decision = policy.decide(Round(X, Additive(base=2.0, each=1.0), key=name))
        policy.commit(decision)
        arms = np.flatnonzero(decision.chosen)
        policy.learn(decision, arms, X[arms, 0])
        return list(decision.estimates)

    for j in range(12):
        visit(policy, rng.uniform(-0.5, 0.5, (5, 3)), f"round {j}")
    restored = COAF.restore(json.loads(json.dumps(policy.state())))
    sent = pickle.loads(pickle.dumps(policy.belief))
    assert isinstance(restored, COAF)
    assert isinstance(restored.belief, Drift)
    X = rng.uniform(-0.5, 0.5, (5, 3))
    np.testing.assert_array_equal(sent.upper(X), policy.belief.upper(X))  # type: ignore[union-attr]
    for j in range(12, 24):
        X = rng.uniform(-0.5, 0.5, (5, 3))
        assert visit(policy, X, f"round {j}") == visit(restored, X, f"round {j}")


def test_what_drift_must_be_told() -> None:
    for wrong in ({}, {"half_life": 5.0, "window": 5}):
        with pytest.raises(ValueError, match="one of the two"):
            Drift(Linear(3), **wrong)  # type: ignore[arg-type]
    for window in (0, -3, 2.5):
        with pytest.raises(ValueError, match="window is"):
            Drift(Linear(3), window=window)  # type: ignore[arg-type]
    for half_life in (0.0, 0.5, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="half_life is"):
            Drift(Linear(3), half_life=half_life)
    with pytest.raises(TypeError, match="as Linear"):
        Drift(Linear, window=3)  # type: ignore[arg-type]


def test_a_belief_that_is_not_registered_says_how_to_be_saved() -> None:
    class Mine(Latest):
        pass

    with pytest.raises(ValueError, match='@register\\("mine"\\)'):
        Drift(Mine(), window=3).state()


def test_damaged_state_is_named() -> None:
    belief = Drift(Linear(3), window=9)
    belief.learn(*some_rows(4))
    state = belief.state()
    other = Drift(Linear(2), window=9)
    other.learn(*some_rows(4, dim=2))
    with pytest.raises(ValueError, match="'kept' has features of shape"):
        restore_belief({**state, "kept": other.state()["kept"]})
    with pytest.raises(ValueError, match="no entry 'kept'"):
        restore_belief({name: value for name, value in state.items() if name != "kept"})
