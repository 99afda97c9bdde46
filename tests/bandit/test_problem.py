"""Rounds refuse what cannot be decided; decisions explain themselves."""

import math
from typing import Any

import numpy as np
import pytest

from coaf.bandit.actions import AtMost, Capped, Exactly, Grouped, Listed, OneOf
from coaf.bandit.index import Truth
from coaf.bandit.latency import Additive, ByCount, Setup, Table
from coaf.bandit.policies.baselines import TakeAll
from coaf.bandit.policies.coaf import COAF
from coaf.bandit.problem import Round
from coaf.bandit.rates.rate import Fixed

latency = Additive(base=5.0, each=1.0)


def test_features_are_copied_and_kept_from_change() -> None:
    features = np.zeros((2, 3))
    patch = Round(features, latency)
    features[0, 0] = 9.0
    assert patch.features[0, 0] == 0.0
    assert (patch.n, patch.floor) == (2, 5.0)
    with pytest.raises(ValueError, match="read-only"):
        patch.features[0, 0] = 1.0


@pytest.mark.parametrize(
    ("features", "mistake"),
    [
        ([1.0, 2.0], r"features must have 2 dimension\(s\), got shape \(2,\)"),
        ([[[1.0]]], r"features must have 2 dimension\(s\), got shape \(1, 1, 1\)"),
        ([[0.0, 1.0], [math.nan, 2.0]], r"features\[1, 0\] is nan"),
        ([[0.0, math.inf]], r"features\[0, 1\] is inf"),
        ([["a"]], "features must be an array of numbers"),
    ],
)
def test_features_that_are_no_table(features: Any, mistake: str) -> None:
    with pytest.raises(ValueError, match=mistake):
        Round(features, latency)


@pytest.mark.parametrize(
    ("arguments", "mistake"),
    [
        ({"latency": Additive(1.0, [1.0, 2.0])}, "each has 2 entries for a round of 3 arms"),
        ({"latency": ByCount(1.0, [0.0, 1.0])}, "by_count has 2 entries"),
        ({"actions": Exactly(4)}, "needs a round of at least 4 arms, got 3"),
        ({"actions": Grouped(1)}, "Grouped needs groups"),
        ({"actions": Listed([(0, 3)])}, "3"),
        ({"groups": ["a", "b"]}, r"groups must be integers or strings of shape \(3,\), or"),
        ({"groups": [0.5, 1.0, 2.0]}, r"got shape \(3,\) of float64"),
        ({"groups": [["a"], ["b"]]}, r"or \(3, levels\) with the outermost first; got shape"),
        ({"groups": np.zeros((3, 0), int)}, r"got shape \(3, 0\)"),
        ({"groups": np.zeros((3, 1, 1), int)}, r"got shape \(3, 1, 1\)"),
        ({"key": 7}, "key must be a string, got 7"),
    ],
)
def test_arguments_that_do_not_fit(arguments: dict[str, Any], mistake: str) -> None:
    with pytest.raises(ValueError, match=mistake):
        Round(**{"features": np.zeros((3, 2)), "latency": latency, **arguments})


@pytest.mark.parametrize(
    ("actions", "floor"),
    [
        (AtMost(1), 12.0),
        (Exactly(2), 12.0 + 50.0 + 2 * 6.0),
        (OneOf(), 68.0),
        (Listed([(0, 1), (1,)]), 68.0),
        (Capped(100.0, Exactly(1)), 68.0),
    ],
)
def test_the_floor_is_the_quickest_allowed_subset(actions: Any, floor: float) -> None:
    assert Round(np.zeros((3, 1)), Setup(12.0, 50.0, 6.0), actions=actions).floor == floor


@pytest.mark.parametrize(
    "free", [Additive(base=0.0, each=1.0), Table([(), (0,)], [0.0, 1.0]), ByCount(0.0, [0, 1, 2])]
)
def test_only_a_follow_up_may_be_free(free: Any) -> None:
    with pytest.raises(ValueError, match=r"latency may be 0 s.*positive base.*follow-up"):
        Round(np.zeros((2, 1)), free)
    assert Round(np.zeros((2, 1)), free, follows=0).floor == 0.0


def test_a_round_may_have_no_arms() -> None:
    decision = COAF(dim=2).decide(Round(np.zeros((0, 2)), latency))
    assert decision.chosen.shape == (0,)
    assert decision.seconds == 5.0
    assert decision.why.startswith("Take none of 0")


def test_why_says_what_was_weighed() -> None:
    policy = COAF(index=Truth(lambda features: features[:, 0]), rate=Fixed(0.1))
    patch = Round(np.array([[0.9], [0.5], [0.05]]), Setup(base=2.0, setup=3.0, each=1.0))
    taken = policy.decide(patch)
    assert taken.chosen.tolist() == [True, True, False]
    assert (taken.seconds, taken.rate) == (7.0, 0.1)
    assert taken.reward == pytest.approx(1.4, abs=1e-15)
    assert taken.gap == pytest.approx(7.0 * 0.1 - 1.4, abs=1e-15)
    for words in ("Take 2 of 3", "1.4", "a second is worth 0.1", "best arm left", "0.05"):
        assert words in taken.why
    dear = COAF(index=Truth(lambda features: features[:, 0]), rate=Fixed(9.0)).decide(patch)
    assert dear.why.startswith("Take none of 3")
    assert "best arm left" not in TakeAll().decide(patch).why
