"""Groups of arms, nested or not: whom limits count together, and what remembered rounds keep."""

from typing import Any

import numpy as np
import pytest

from coaf.bandit.actions import Grouped
from coaf.bandit.arrays import FloatArray
from coaf.bandit.groups import Groups
from coaf.bandit.index import Truth
from coaf.bandit.latency import Additive
from coaf.bandit.policies.coaf import COAF
from coaf.bandit.problem import Round
from coaf.bandit.rates.memory_root import root
from coaf.bandit.rates.rate import Fixed

latency = Additive(base=5.0, each=1.0)


def test_groups_may_be_nested() -> None:
    """Patch 1 of one square is another patch than patch 1 of the other."""
    nested = np.array([[1, 1], [1, 1], [2, 1], [2, 2]])
    means = Truth(lambda features: features[:, 0])
    X = np.array([[0.9], [0.8], [0.7], [0.6]])
    limits: list[tuple[Any, list[int]]] = [
        (1, [0, 2, 3]),
        ({(1, 1): 0}, [2, 3]),
        ({(2, np.int64(1)): 0}, [0, 1, 3]),
    ]
    for limit, taken in limits:
        patch = Round(X, latency, Grouped(limit), groups=nested)
        decision = COAF(index=means, rate=Fixed(0.1)).decide(patch)
        assert np.flatnonzero(decision.chosen).tolist() == taken
        assert patch.actions.allows(decision.chosen, patch.groups)
        assert not patch.actions.allows(np.ones(4, dtype=bool), patch.groups)


@pytest.mark.parametrize(
    ("groups", "calls"),
    [
        ([None, None, None], 1),
        ([["a", "b"], ["ccc", "a"], ["b", "b"]], 1),
        ([[[1, 2], [1, 3]], [[2, 2], [2, 2]], [[0, 0], [1, 0]]], 1),
        ([[1, 2], ["a", "b"], None], 3),
        ([[1, 2], [[1, 2], [1, 3]], [3, 4]], 3),
    ],
)
def test_memory_root_scores_rounds_with_their_groups(groups: list[Any], calls: int) -> None:
    """In one call where their labels can be joined; never with labels of another kind."""
    remembered = [
        Round([[0.1], [0.2]], Additive(2.0, 1.0), groups=labels, key=f"{labels}")
        for labels in groups
    ]
    asked: list[Any] = []

    def score(features: FloatArray, labels: Groups | None) -> FloatArray:
        asked.extend([None] * len(features) if labels is None else labels.tolist())
        counted.append(len(features))
        return np.ones(len(features))

    counted: list[int] = []
    assert root(remembered, score, 0.0) == pytest.approx(0.5)
    assert asked == [label for labels in groups for label in labels or [None, None]]
    assert len(counted) == calls
