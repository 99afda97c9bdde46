"""Beliefs in awkward company: rewards without noise, old rows without weight, maps that fail."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import coaf
from coaf.bandit.arrays import FloatArray


def logarithms(features: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.log(features)


@pytest.mark.parametrize("value", [0.0, 0.7])
def test_nested_learns_rewards_that_never_differ(value: float) -> None:
    rng = np.random.default_rng(0)
    X, labels = rng.uniform(-1.0, 1.0, size=(200, 2)), np.arange(200) // 10
    belief = coaf.Nested(2, family="gaussian")
    for start in range(0, 200, 5):
        some = slice(start, start + 5)
        belief.learn(X[some], np.full(5, value), labels[some])
    assert belief.mean(X[:3], labels[:3]) == pytest.approx([value] * 3, abs=0.02)
    assert (belief.upper(X[:3], labels[:3]) < value + 0.2).all()


def test_nested_says_that_features_are_too_long() -> None:
    with pytest.raises(ValueError, match="scale the features"):
        coaf.Nested(2, scale=2.5).learn(np.full((3, 2), 1e6), np.ones(3))


def test_a_map_before_a_drifting_belief_has_its_bounds() -> None:
    inner = coaf.Drift(coaf.Linear(2, feature_bound=3.0, mean_bound=2.0), half_life=20)
    belief = coaf.Mapped(np.exp, inner, dim=2)
    belief.learn(np.full((4, 2), 0.4), np.ones(4))
    assert np.isfinite(belief.upper([[0.4, 0.4]])).all()
    assert [getattr(inner, name) for name in ("feature_bound", "mean_bound")] == [3.0, 2.0]


def test_rows_of_no_weight_do_not_upset_a_regressor() -> None:
    rng = np.random.default_rng(0)
    belief = coaf.Drift(coaf.Regression(2, Ridge(), copies=2), half_life=1)
    X = rng.uniform(-0.5, 0.5, size=(1300, 2))
    belief.learn(X, X[:, 0])
    assert np.isfinite(belief.upper(X[:5])).all()


def test_a_map_that_fails_leaves_the_policy_usable() -> None:
    inner = coaf.Linear(2, feature_bound=10.0)
    policy = coaf.COAF(belief=coaf.Mapped(logarithms, inner, dim=2))
    bad = coaf.Round([[0.5, 0.0], [0.5, 0.5]], coaf.Additive(base=1.0, each=1.0))
    with pytest.warns(coaf.BeliefWarning, match="the feature map failed"):
        decision = policy.decide(bad)
    assert "the feature map failed" in decision.fault
    policy.commit(decision)
    good = policy.decide(coaf.Round([[0.5, 0.5]], coaf.Additive(base=1.0, each=1.0)))
    assert good.fault == ""
