"""Every action space keeps the contract that `check_actions` ships to users."""

import itertools
from typing import Any

import pytest

from bandit.checks.subjects import ACTIONS, Neighbours
from coaf.bandit.actions import Actions, AnySubset, AtMost, Capped, Exactly, Grouped, Listed
from coaf.bandit.arrays import BoolArray
from coaf.bandit.checks import ContractError, check_actions
from coaf.bandit.groups import Groups
from coaf.bandit.select import best


@pytest.mark.parametrize("name", ACTIONS)
def test_ours(name: str) -> None:
    check_actions(ACTIONS[name], 5, groups=["a", "b", "a", "b", "c"])


@pytest.mark.parametrize("n", [0, 1, 7])
def test_a_users(n: int) -> None:
    check_actions(Neighbours(), n)


class Broken(Neighbours):
    """Says `said` of subsets of `count` arms."""

    def __init__(self, said: Any, count: int = 2) -> None:
        self.said, self.count = said, count

    def allows(self, chosen: BoolArray, groups: Groups | None = None) -> bool:
        if int(chosen.sum()) != self.count:
            return super().allows(chosen, groups)
        said: bool = self.said(chosen)
        return said


class Nothing(Neighbours):
    def allows(self, chosen: BoolArray, groups: Groups | None = None) -> bool:
        return False


class Crashes(Neighbours):
    def check(self, n: int, groups: Groups | None = None) -> None:
        if n < 3:
            raise IndexError("list index out of range")


class Strict(AtMost):
    """Not known to selection, which takes it for what it is made of."""

    def allows(self, chosen: Any, groups: Groups | None = None) -> bool:
        return super().allows(chosen, groups) and not chosen[:1].any()


def spoil(chosen: BoolArray) -> bool:
    chosen[:] = False
    return True


calls = itertools.count()


@pytest.mark.parametrize(
    ("actions", "mistake"),
    [
        (AnySubset, "AnySubset is a class, not an action space"),
        (object(), "object: lacks allows, check"),
        (Broken(lambda chosen: chosen.sum()), r"allows of arms \[0, 1\] is .*2.*; it must be True"),
        (Broken(lambda chosen: next(calls) % 2 == 0), r"is True, and False when asked again"),
        (Broken(spoil), r"allows of arms \[0, 1\] changed the mask"),
        (Nothing(), r"check\(0\) finds nothing wrong, but no subset of 0 arms is allowed"),
        (Crashes(), r"check\(0\) raised IndexError .*; where .* it must raise ValueError"),
    ],
)
def test_mistakes_are_named(actions: Actions, mistake: str) -> None:
    with pytest.raises(ContractError, match=mistake):
        check_actions(actions, 4)


def test_what_selection_would_not_keep_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were selection to look at the base class, or to miss something, it would show."""
    check_actions(Strict(2), 4)

    def blindly(rate: float, mu: Any, latency: Any, actions: Any, groups: Any) -> Any:
        return best(rate, mu, latency, AtMost(2), groups)

    monkeypatch.setattr("coaf.bandit.checks.actions.best", blindly)
    with pytest.raises(
        ContractError, match=r"selection takes arms \[.*\], which it does not allow"
    ):
        check_actions(Strict(2), 4)
    with pytest.raises(ContractError, match="though it allows a subset of smaller gap"):
        check_actions(AnySubset(), 4)


def test_arms_that_it_does_not_serve_are_its_own_error() -> None:
    with pytest.raises(ValueError, match=r"Exactly.5. needs a round of at least 5 arms"):
        check_actions(Exactly(5), 4)
    with pytest.raises(ValueError, match="Grouped needs groups"):
        check_actions(Grouped(1), 4)
    with pytest.raises(ValueError, match="n is 13; it must be from 0 to 12"):
        check_actions(Listed([()]), 13)


def test_a_cap_that_nothing_meets_is_for_selection_to_say() -> None:
    check_actions(Capped(0.5, AtMost(2)), 3)
