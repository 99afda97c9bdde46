"""The nested belief from session to session: settled, left, saved, and given what it cannot use."""

import json
import pickle
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.nested.nested import Nested
from coaf.bandit.beliefs.prior import start_from
from coaf.bandit.beliefs.registry import restore_belief
from coaf.bandit.groups import Groups
from coaf.bandit.latency import Setup
from coaf.bandit.policies.coaf import COAF
from coaf.bandit.problem import Round


def batch(rng: np.random.Generator, n: int, dim: int) -> tuple[FloatArray, FloatArray, Groups]:
    return rng.normal(size=(n, dim)), rng.normal(size=n), rng.integers(0, 3, size=(n, 2))


def test_labels_of_a_grid_beyond_the_levels_tell_groups_apart() -> None:
    belief = Nested(1, variances="fixed")
    belief.learn([[0.0]] * 3, [0.0] * 3, np.array([["g", "1", "1"]] * 3))
    same, other = belief.moments([[0.0]] * 2, np.array([["g", "1", "1"], ["h", "1", "1"]]))[0]
    assert same < other


def test_settled_groups_are_kept_and_left_ones_are_not() -> None:
    rng = np.random.default_rng(2)
    X, y, groups = batch(rng, 40, 2)
    for family in ("gaussian", "logistic"):
        belief = Nested(2, family=family)
        belief.learn(X, (y > 0).astype(float), groups)
        before, unseen = belief.moments(X, groups), belief.moments(X, groups + 100)
        belief.settle()
        for a, b in zip(before, belief.moments(X, groups), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-9)
        belief.leave()
        for a, b in zip(unseen, belief.moments(X, groups), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-9)
        belief.learn(X, (y > 0).astype(float), groups)
        again = Nested.restore(json.dumps(belief.state()))
        np.testing.assert_array_equal(belief.upper(X, groups), again.upper(X, groups))


def test_restored_pickled_and_copied_it_goes_on_with_the_same_bits() -> None:
    rng = np.random.default_rng(4)
    for family in ("gaussian", "logistic"):
        belief = Nested(3, family=family)
        for _ in range(3):
            X, y, groups = batch(rng, 9, 3)
            belief.learn(X, (y > 0).astype(float), groups)
        restored = restore_belief(json.loads(json.dumps(belief.state())))
        others = [restored, pickle.loads(pickle.dumps(belief)), deepcopy(belief)]
        X, y, groups = batch(rng, 12, 3)
        for one in (belief, *others):
            one.learn(X, (y > 0).astype(float), groups)
        for one in others:
            assert json.dumps(one.state()) == json.dumps(belief.state())
            np.testing.assert_array_equal(one.upper(X, groups), belief.upper(X, groups))


def test_a_policy_with_it_is_restored_and_starts_the_next_session() -> None:
    microscope = Setup(base=12.0, setup=52.0, each=6.7)
    rng = np.random.default_rng(0)
    policy = COAF(belief=Nested(2))
    for patch in range(4):
        labels = np.column_stack([np.zeros(6, dtype=int), np.full(6, patch)])
        decision = policy.decide(Round(rng.normal(size=(6, 2)), microscope, groups=labels))
        policy.commit(decision)
        arms = np.flatnonzero(decision.chosen)
        policy.learn(decision, arms, rng.integers(0, 2, len(arms)))
    again = COAF.restore(json.loads(json.dumps(policy.state())))
    patch_again = Round(rng.normal(size=(6, 2)), microscope, groups=labels)
    ours, theirs = policy.decide(patch_again), again.decide(patch_again)
    np.testing.assert_array_equal(ours.estimates, theirs.estimates)
    assert policy.belief is not None
    tomorrow = start_from(policy.belief, discount=0.5)
    assert tomorrow.mean([[0.0, 0.0]]).shape == (1,)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dim": 0}, "dim is 0"),
        ({"family": "poisson"}, "family is 'poisson'"),
        ({"variances": "guessed"}, "variances is 'guessed'"),
        ({"effects": (1.0, 0.0)}, r"effects\[1\] is 0.0; it must be greater than 0"),
        ({"noise": 0.0}, "noise is 0.0"),
        ({"width": -1.0}, "width is -1.0"),
    ],
)
def test_settings_that_cannot_be_right(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Nested(**{"dim": 2, **settings})


def test_what_it_cannot_learn_leaves_it_as_it_was() -> None:
    belief = Nested(2)
    belief.learn([[0.1, 0.2]], [1.0], np.array([[1, 1]]))
    before = json.dumps(belief.state())
    with pytest.raises(ValueError, match=r"rewards\[1\] is 1.5; a logistic reward is between"):
        belief.learn([[0.1, 0.2]] * 2, [1.0, 1.5])
    with pytest.raises(ValueError, match="groups must be integers or strings"):
        belief.learn([[0.1, 0.2]], [1.0], np.array([0.5]))
    with pytest.raises(ValueError, match=r"level is 1\.0; it must be between"):
        belief.interval([[0.1, 0.2]], level=1.0)
    assert json.dumps(belief.state()) == before
    damaged = belief.state()
    damaged["known"]["groups"] = []
    with pytest.raises(ValueError, match="state entry 'columns' has shape"):
        Nested.restore(damaged)
