"""Arms by their numbers, wherever a mask is taken."""

from typing import Any

import numpy as np
import pytest

import coaf
from bandit.checks.subjects import ACTIONS, LATENCIES
from coaf.bandit.actions import Actions
from coaf.bandit.latency import Latency, Table
from coaf.bandit.selection.listed import every_subset

GROUPS = np.array(["a", "a", "b", "b", "c"])


@pytest.mark.parametrize("latency", LATENCIES.values(), ids=LATENCIES)
def test_numbers_take_as_long_as_their_mask(latency: Latency) -> None:
    known = latency.subsets if isinstance(latency, Table) else None
    for chosen in every_subset(4):
        numbers: Any = np.flatnonzero(chosen).tolist()
        if known is None or tuple(numbers) in known:
            for given in (numbers, numbers[::-1], chosen.tolist()):
                assert latency.seconds(given) == latency.seconds(chosen)


@pytest.mark.parametrize("actions", ACTIONS.values(), ids=ACTIONS)
def test_numbers_are_allowed_where_their_mask_is(actions: Actions) -> None:
    for chosen in every_subset(5):
        numbers: Any = np.flatnonzero(chosen).tolist()
        for given in (numbers, numbers[::-1], chosen.tolist()):
            assert actions.allows(given, GROUPS) == actions.allows(chosen, GROUPS)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1, 0, 1, 0], "names an arm twice; if it is a mask, give booleans"),
        ([-1], r"chosen\[0\] is -1; the round has arms 0"),
        ([0.5], "mask over .*arms or their numbers"),
        (1, "mask over .*arms or their numbers"),
    ],
)
@pytest.mark.parametrize(
    "asked",
    [
        coaf.Additive(5.0, 1.0).seconds,
        coaf.Setup(1.0, 2.0, [1, 2, 3, 4]).seconds,
        coaf.AtMost(2).allows,
        coaf.Listed([(), (0,)]).allows,
    ],
    ids=["additive", "setup", "at most", "listed"],
)
def test_what_is_neither_is_refused(asked: Any, given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        asked(given)


def test_an_arm_that_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match=r"chosen\[1\] is 4; the round has arms 0 to 3"):
        coaf.Additive(5.0, [1, 2, 3, 4]).seconds([0, 4])
