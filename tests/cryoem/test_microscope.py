"""The simulator keeps the contract of microscopes, and each promise can be seen broken."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self

import pytest

from coaf.bandit.checks.contract import ContractError
from coaf.cryoem.checks.microscope import check_microscope
from coaf.cryoem.grid import Hole, Patch, Square
from coaf.cryoem.microscope import Microscope, Rehearsal, Score, Survey
from coaf.cryoem.simulator.simulator import Simulator
from coaf.cryoem.timing import SLOW, Timing

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


class ExpectsNothing(Simulator):
    timing = None  # type: ignore[assignment]


class LearnsItsTiming(Simulator):
    @property
    def timing(self) -> Timing:
        return SLOW if self._taken else super().timing


class NamesTooFew(Simulator):
    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.feature_names = self.feature_names[1:]


class NamesTwice(Simulator):
    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.feature_names = (self.feature_names[0], *self.feature_names[:-1])


class NamesInAList(Simulator):
    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.feature_names = list(self.feature_names)  # type: ignore[assignment]


class IsNotAgain(Simulator):
    def again(self) -> Self:
        return self


class RemembersShots(Simulator):
    def again(self) -> Self:
        same = super().again()
        same._taken = dict(self._taken)
        return same


class RemembersVisits(Simulator):
    def again(self) -> Self:
        same = super().again()
        same._visits = dict(self._visits)
        return same


class StartsItselfAnew(Simulator):
    def again(self) -> Self:
        self._begin(self.feedback.delay)
        return super().again()


class PeeksForMoney(Simulator):
    def peek(self, square: str) -> Survey:
        return self.survey(square)


class PeeksIntoIt(Simulator):
    def peek(self, square: str) -> Survey:
        self._paid.add(square)
        return super().peek(square)


class PeeksElsewhere(Simulator):
    def peek(self, square: str) -> Survey:
        seen = super().peek(square)
        return replace(seen, features={name: 2.0 * rows for name, rows in seen.features.items()})


class CountsHoles(Simulator):
    def worth(self, reward: Callable[[Score], float | None]) -> dict[str, float]:
        return dict.fromkeys(super().worth(reward), 1.0)


class CountsWhatFailed(Simulator):
    def worth(self, reward: Callable[[Score], float | None]) -> dict[str, float]:
        return super().worth(lambda score: 1.0 if reward(score) is None else reward(score))


class OverratesThem(Simulator):
    def worth(self, reward: Callable[[Score], float | None]) -> dict[str, float]:
        return super().worth(lambda score: reward(replace(score, ctf=3.0)))


class VisitsInTruth(Simulator):
    def first_visit(self, reward: Callable[[Score], float | None], hole: str) -> float:
        self.wait(1.0)
        return super().first_visit(reward, hole)


class VisitsAnything(Simulator):
    def first_visit(self, reward: Callable[[Score], float | None], hole: str) -> float:
        known = hole in self._names or "en" in hole
        return super().first_visit(reward, hole) if known else 0.0


class VisitsOneShot(Simulator):
    def first_visit(self, reward: Callable[[Score], float | None], hole: str) -> float:
        shots, self.shots = self.shots, 1
        told = super().first_visit(reward, hole)
        self.shots = shots
        return told


class VisitsChange(Simulator):
    def first_visit(self, reward: Callable[[Score], float | None], hole: str) -> float:
        told = super().first_visit(reward, hole)
        return told if hole not in self._taken else told + 1.0


@pytest.mark.parametrize(
    ("broken", "mistake"),
    [
        (ExpectsNothing, "timing is None; it must be"),
        (LearnsItsTiming, "timing changed"),
        (NamesTooFew, "8 columns, feature_names 7"),
        (NamesTwice, r"feature_names has \['ice'\] twice"),
        (NamesInAList, "it must be a tuple of names"),
        (IsNotAgain, r"again\(\) starts with clock"),
        (RemembersShots, r"again\(\) starts with something exposed"),
        (RemembersVisits, r"again\(\) gave other times or scores"),
        (StartsItselfAnew, "changed the one that it came from"),
        (PeeksForMoney, r"peek\(\) took time"),
        (PeeksIntoIt, "moving to a patch of a square only peeked at must raise"),
        (PeeksElsewhere, "shows something else"),
        (CountsHoles, "add up its shots"),
        (CountsWhatFailed, r"worth\(\) must count a reward that is None as 0"),
        (OverratesThem, "and its scores say"),
        (VisitsInTruth, r"first_visit\(\) took time"),
        (VisitsAnything, "the first visit of an unknown hole must raise"),
        (VisitsOneShot, r"first_visit\(\) of 1 a shot is 1.0, of 2 shots"),
        (VisitsChange, "what a first visit gives changed"),
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
        check_microscope(lambda: broken(2, squares=2, shots=2, pixels=False, delay="none"))


class Plain:
    """A simulator behind the verbs of a microscope alone, and what else is asked for."""

    def __init__(self, *more: str) -> None:
        self._held, self._more = quick(2), more

    def __getattr__(self, name: str) -> Any:
        if name in (*Microscope.__dict__, *self._more) and not name.startswith("_"):
            return getattr(self._held, name)
        raise AttributeError(name)


def test_a_microscope_need_not_be_played_again_but_if_then_in_full() -> None:
    check_microscope(Plain)
    assert not isinstance(Plain(), Rehearsal)
    assert isinstance(quick(2), Rehearsal)
    with pytest.raises(ContractError, match="can be played again, but lacks peek, first_visit"):
        check_microscope(lambda: Plain("again", "worth"))
    with pytest.raises(ContractError, match="lacks timing, feature_names, clock"):
        check_microscope(object)  # type: ignore[arg-type]


def test_a_grid_without_patches_cannot_be_checked() -> None:
    class Bare(Simulator):
        def survey(self, square: str) -> Survey:
            return replace(super().survey(square), patches=(), features={})

    with pytest.raises(ValueError, match="at least two holes"):
        check_microscope(lambda: Bare(2, squares=2, pixels=False))
