"""Circumstances: learned beside arms, and judged at what is usual."""

import numpy as np
import pytest

from coaf.bandit.beliefs.beside import Beside
from coaf.bandit.beliefs.mixture import Mixture
from coaf.bandit.beliefs.nested.nested import Nested
from coaf.bandit.beliefs.registry import restore_belief

ARMS = np.random.default_rng(0).uniform(-1.0, 1.0, (60, 2))
SPOILT = np.tile([0.0, 0.0, 0.0, 0.0, 1.0], 12)[:, None] - 0.2
GROUPS = np.repeat(["a", "b", "c"], 20)


def test_arms_are_judged_at_usual_circumstances() -> None:
    belief = Beside(Nested(3, scale=2.0), [-0.2])
    rows = np.hstack([ARMS, SPOILT])
    belief.learn(rows, (SPOILT[:, 0] < 0.0).astype(float), GROUPS)
    inner, usual = belief.belief, np.full((60, 1), -0.2)
    np.testing.assert_array_equal(
        belief.mean(ARMS, GROUPS), inner.mean(np.hstack([ARMS, usual]), GROUPS)
    )
    assert belief.mean(ARMS, GROUPS).min() > 0.8
    assert inner.mean(np.hstack([ARMS, usual + 1.0]), GROUPS).max() < 0.2
    same = restore_belief(belief.state())
    np.testing.assert_array_equal(same.mean(ARMS, GROUPS), belief.mean(ARMS, GROUPS))


def test_rows_that_say_nothing_were_had_under_usual_circumstances() -> None:
    silent, told = (Beside(Nested(3, scale=2.0), [0.5]) for _ in range(2))
    good = (ARMS[:, 0] > 0.0).astype(float)
    silent.learn(ARMS, good, GROUPS)
    told.learn(np.hstack([ARMS, np.full((60, 1), 0.5)]), good, GROUPS)
    np.testing.assert_array_equal(silent.mean(ARMS, GROUPS), told.mean(ARMS, GROUPS))


def test_what_is_widened_begins_as_it_did() -> None:
    """More columns that say nothing change nothing, but for rounding."""
    first = Nested(2, centre=(1.0, -1.0, 0.5), scale=(0.5, 1.0, 2.0), effects=(0.5,))
    for belief in (first, Nested(2), Mixture([first, Nested(2, scale=3.0)], weights=(0.7, 0.3))):
        good = (ARMS.sum(axis=1) > 0.0).astype(float)
        belief.learn(ARMS, good, GROUPS)  # what it begins with is its prior all the same
        wide = belief.widened(2)
        assert (wide.dim, wide.rows) == (4, 0)
        wide.learn(np.hstack([ARMS, np.zeros((60, 2))]), good, GROUPS)
        X = np.hstack([ARMS, np.zeros((60, 2))])
        np.testing.assert_allclose(wide.mean(X, GROUPS), belief.mean(ARMS, GROUPS), atol=1e-3)


def test_arms_need_a_feature() -> None:
    with pytest.raises(ValueError, match="2 of the belief's 2 columns are circumstances"):
        Beside(Nested(2), [0.0, 0.0])
