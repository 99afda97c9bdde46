"""Our rewards keep the contract, and each promise can be seen broken."""

from collections.abc import Callable
from math import isnan, nan
from typing import Any

import pytest

from coaf.bandit.checks.contract import ContractError
from coaf.cryoem.checks.reward import check_reward
from coaf.cryoem.microscope import Score
from coaf.cryoem.reward import Combined, GoodBelow, Graded, Particles, Reward


@pytest.mark.parametrize(
    "reward",
    [
        GoodBelow(4.2, failed="missing"),
        Graded(2.5, 5.0, failed="missing"),
        Particles(30.0, failed="bad"),
        Combined((GoodBelow(5.0), GoodBelow(3.0))),
        Combined((Graded(), Particles()), (1.0, -0.25)),
    ],
)
def test_ours_keep_the_contract(reward: Reward) -> None:
    check_reward(reward)


class Bare:
    """A reward of one's own: what a function gives, of a family."""

    def __init__(self, function: Callable[[Any], Any], family: Any = "gaussian") -> None:
        self.function, self.family = function, family

    def __call__(self, score: Score) -> Any:
        return self.function(score)


def _fit(score: Score) -> float | None:
    """As a program may read it: only a number below 100 Å is one."""
    return score.ctf if score.ctf is not None and abs(score.ctf) < 100.0 else None


def _per_angstrom(score: Score) -> float:
    fit = _fit(score)
    return 0.0 if fit is None or fit <= 0.0 else 1.0 / fit


class Counting(Bare):
    """Grows with every score."""

    def __init__(self) -> None:
        super().__init__(_per_angstrom)
        self.seen = 0

    def __call__(self, score: Score) -> float:
        self.seen += 1
        return _per_angstrom(score) + self.seen


class Misprinted(GoodBelow):
    def __str__(self) -> str:
        return "ctf<9"


class Unreadable(GoodBelow):
    def __str__(self) -> str:
        return "good"


def _only_good(score: Score) -> float:
    if _fit(score) is None or _per_angstrom(score) < 0.2:
        raise ValueError("not good enough")
    return 1.0


def _none_is_zero(score: Score) -> float:
    """But 100000 Å is taken for a resolution."""
    return 0.0 if score.ctf is None or isnan(score.ctf) else 1.0 / score.ctf


def _lookup(score: Score) -> float:
    fit = _fit(score)
    return {True: 1.0}[fit > 0.0] if fit is not None else 0.0


@pytest.mark.parametrize(
    ("broken", "mistake"),
    [
        (3.8, "it needs __call__"),
        (_per_angstrom, "family is None; it must be"),
        (Bare(_per_angstrom, "poisson"), "family is 'poisson'; it must be"),
        (Bare(lambda score: nan), "is worth nan; it must be a finite number"),
        (Bare(lambda score: "good"), "is worth 'good'; it must be a finite number"),
        (Bare(lambda score: None), "there is nothing to learn from it"),
        (Bare(lambda score: 9.0 * _per_angstrom(score), "logistic"), "rewards are from 0 to 1"),
        (Bare(lambda score: _per_angstrom(score) - 0.1, "logistic"), "rewards are from 0 to 1"),
        (Counting(), "a reward depends on its score alone"),
        (Bare(lambda score: float(score.ctf < 3.8)), "None Å .* raised TypeError"),
        (Bare(_only_good), "raised ValueError: not good enough"),
        (Bare(_none_is_zero), "must be worth the same however written"),
        (Bare(lambda score: float((_fit(score) or 0.0) < 3.8)), "as much as the best"),
        (Bare(lambda score: -(_fit(score) or 0.0)), "as much as the best"),
        (Bare(_lookup), "which it cannot take, must raise ValueError; it raised KeyError"),
        (Misprinted(), r"by parse_reward\('ctf<9'\) 1.0"),
        (Unreadable(), "cannot read the reward 'good'"),
    ],
)
def test_each_promise_can_fail(broken: Any, mistake: str) -> None:
    with pytest.raises(ContractError, match=mistake):
        check_reward(broken)


def test_one_of_your_own_may_do_without_refusing() -> None:
    check_reward(Bare(_per_angstrom))
