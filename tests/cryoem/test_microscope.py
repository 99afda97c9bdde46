"""The simulator keeps the contract of microscopes, and each promise can be seen broken."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

import pytest

from coaf.bandit.checks.contract import ContractError
from coaf.cryoem.checks.microscope import check_microscope
from coaf.cryoem.grid import Hole, Patch, Square
from coaf.cryoem.microscope import Score, Survey
from coaf.cryoem.simulator.simulator import Simulator

quick = partial(Simulator, squares=3, pixels=False)


@pytest.mark.parametrize("regime", ["fast", "slow"])
@pytest.mark.parametrize("shots", [1, 3])
def test_the_simulator_keeps_the_contract(regime: Literal["fast", "slow"], shots: int) -> None:
    check_microscope(lambda: quick(2, regime=regime, shots=shots))


@pytest.mark.parametrize("delay", ["none", 45.0])
def test_whatever_the_delay(delay: Literal["none"] | float) -> None:
    check_microscope(lambda: quick(5, delay=delay))


class ForgetsItWasPaid(Simulator):
    def survey(self, square: str) -> Survey:
        self._paid.discard(square)
        return super().survey(square)


class SaysLess(Simulator):
    def move(self, patch: Patch) -> float:
        return super().move(patch) / 2.0


class GoesAnywhere(Simulator):
    def expose(self, hole: Hole) -> float:
        self._at = self._target(hole.name).patch
        self._visits.setdefault(self._at, 1)
        return super().expose(hole)


class ExposesTwice(Simulator):
    def expose(self, hole: Hole) -> float:
        self._taken.pop(hole.name, None)
        return super().expose(hole)


class TurnsBack(Simulator):
    def wait(self, seconds: float) -> None:
        self._clock += seconds


class ScoresTwice(Simulator):
    def collect(self) -> list[Score]:
        return [score for score in super().collect() for _ in range(2)]


class ScoresEarly(Simulator):
    def collect(self) -> list[Score]:
        return [replace(score, exposed_at=score.arrived_at + 1.0) for score in super().collect()]


class Invents(Simulator):
    def collect(self) -> list[Score]:
        return [replace(score, hole=score.hole + "x") for score in super().collect()]


class Repeats(Simulator):
    def collect(self) -> list[Score]:
        self.held = [*getattr(self, "held", []), *super().collect()]
        return list(self.held)


class WritesNoFitAsNumber(Simulator):
    def collect(self) -> list[Score]:
        return [replace(score, ctf=100000.0) for score in super().collect()]


class Silent(Simulator):
    def collect(self) -> list[Score]:
        return []


class ChangesItsMind(Simulator):
    made = 0

    def collect(self) -> list[Score]:
        ChangesItsMind.made += 1
        grown = ChangesItsMind.made / 1000.0
        return [replace(score, ctf=3.0 + grown) for score in super().collect()]


class LosesSquares(Simulator):
    def squares(self) -> list[Square]:
        return [square for square in super().squares() if square.name not in self._paid]


class CountsTooMuchUpkeep(Simulator):
    @property
    def upkeep(self) -> float:
        return 10.0 * self.clock


class LacksRows(Simulator):
    def survey(self, square: str) -> Survey:
        seen = super().survey(square)
        return replace(seen, features={name: rows[1:] for name, rows in seen.features.items()})


@pytest.mark.parametrize(
    ("broken", "mistake"),
    [
        (ForgetsItWasPaid, "a second survey of a square took time"),
        (SaysLess, "move returned"),
        (GoesAnywhere, "exposing before moving must raise"),
        (ExposesTwice, "exposing a hole twice must raise"),
        (TurnsBack, r"wait\(-1.0\) must raise"),
        (ScoresTwice, "was scored twice"),
        (ScoresEarly, "exposed at"),
        (Invents, "was not exposed"),
        (Repeats, "gave again what it gave before"),
        (WritesNoFitAsNumber, "None without a fit"),
        (Silent, "no score of"),
        (ChangesItsMind, "the same calls on two made alike"),
        (LosesSquares, "changed when a square was surveyed"),
        (CountsTooMuchUpkeep, "upkeep grew by"),
        (LacksRows, "one finite row per hole"),
    ],
)
def test_each_promise_can_fail(broken: Callable[..., Simulator], mistake: str) -> None:
    with pytest.raises(ContractError, match=mistake):
        check_microscope(lambda: broken(2, squares=2, pixels=False, delay="none"))


def test_a_grid_without_patches_cannot_be_checked() -> None:
    class Bare(Simulator):
        def survey(self, square: str) -> Survey:
            return replace(super().survey(square), patches=(), features={})

    with pytest.raises(ValueError, match="at least two holes"):
        check_microscope(lambda: Bare(2, squares=2, pixels=False))
