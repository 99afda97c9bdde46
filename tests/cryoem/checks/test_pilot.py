"""`check_pilot` passes the pilots that are shipped, and finds what is broken."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest

from coaf.bandit.arrays import FloatArray
from coaf.bandit.checks.contract import ContractError
from coaf.cryoem.checks.pilot import COLUMNS, check_pilot, surveys
from coaf.cryoem.grid import Patch, Square
from coaf.cryoem.microscope import Survey
from coaf.cryoem.pilot import Choice, Left, Open, Pilot, Scored
from coaf.cryoem.pilots.baselines import EveryHole
from coaf.cryoem.pilots.catalogue import GRID_RULES, PILOTS, pilot_for
from coaf.cryoem.pilots.clairvoyant import Clairvoyant
from coaf.cryoem.session.events import Settings
from coaf.cryoem.timing import FAST, Timing


def clairvoyant() -> Clairvoyant:
    shown = surveys()
    names = [hole.name for survey in shown for patch in survey.patches for hole in patch.holes]
    worth = {name: float(len(name) % 2 + k % 3) for k, name in enumerate([*names, "extra"])}
    return Clairvoyant(worth, shown, FAST, 7200.0)


@pytest.mark.parametrize("explore", [0.0, 0.5])
@pytest.mark.parametrize("name", PILOTS)
def test_pilots_that_are_shipped_keep_their_promises(name: str, explore: float) -> None:
    if name == "clairvoyant":
        check_pilot(clairvoyant)
    else:
        settings = Settings(pilot=name, columns=COLUMNS, explore=explore, seed=3)
        check_pilot(lambda: pilot_for(settings))


@pytest.mark.parametrize("name", ["coaf", *GRID_RULES])
def test_pilots_of_a_cassette_too(name: str) -> None:
    settings = Settings(pilot=name, columns=COLUMNS, hours=2.0, grids=("grid 0", "grid 1"))
    check_pilot(lambda: pilot_for(settings))


def test_without_columns_too() -> None:
    check_pilot(lambda: pilot_for(Settings(pilot="coaf")), columns=())


class Counting(EveryHole):
    """Answers otherwise each time."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def patch(self, patches: Sequence[Open], left: Left) -> Choice:
        self.asked += 1
        return Choice(patches[self.asked % len(patches)].patch.name)


class Hoarding(EveryHole):
    """Keeps in its state what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def square(self, squares: Sequence[Square], left: Left) -> Choice:
        self.asked += 1
        return super().square(squares, left)

    def state(self) -> dict[str, Any]:
        return {"asked": self.asked}


class Brooding(EveryHole):
    """Remembers the first question for ever."""

    def __init__(self) -> None:
        super().__init__()
        self.first: float | None = None

    def hole(self, here: Open, left: Left, *, inside: bool) -> Choice:
        self.first = left.timing.expose if self.first is None else self.first
        return Choice(here.patch.holes[here.rest[0]].name, rate=self.first)


class Elsewhere(EveryHole):
    def hole(self, here: Open, left: Left, *, inside: bool) -> Choice:
        return Choice(here.patch.holes[0].name)


class Nameless(EveryHole):
    def square(self, squares: Sequence[Square], left: Left) -> Any:
        return squares[0].name if squares else None


class Short(EveryHole):
    def estimates(self, patch: Patch) -> FloatArray:
        return np.zeros(3)


class Frozen(EveryHole):
    """Does not know holes that were added."""

    def opened(self, survey: Survey, timing: Timing) -> None:
        self.features = {**survey.features, **self.features}

    def estimates(self, patch: Patch) -> FloatArray:
        return self.features[patch.name][:, 0]


class Means(EveryHole):
    """Learns means of patches; what it saves of them is up to its children."""

    def __init__(self) -> None:
        super().__init__()
        self.sums: dict[str, list[float]] = {}

    def estimates(self, patch: Patch) -> FloatArray:
        known = self.sums.get(patch.name, [])
        return np.full(len(patch.holes), float(np.mean(known)) if known else 0.5)

    def scored(self, scores: Sequence[Scored]) -> None:
        for score in scores:
            self.sums.setdefault(score.hole.rpartition(" hole")[0], []).append(score.reward)

    def state(self) -> Mapping[str, Any] | None:
        return {"sums": self.sums}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.sums = {name: list(one) for name, one in state["sums"].items()}


class Forgetful(Means):
    def restore(self, state: Mapping[str, Any]) -> None:
        pass


class Hasty(Means):
    """What a score is worth depends on how many patches were visited when it came."""

    any_order = True

    def __init__(self) -> None:
        super().__init__()
        self.visits = 0

    def moved(self, here: Open, left: Left, rate: float | None) -> None:
        self.visits += 1

    def scored(self, scores: Sequence[Scored]) -> None:
        super().scored([replace(score, reward=score.reward * self.visits) for score in scores])


class Unsaid(Means):
    def state(self) -> Mapping[str, Any] | None:
        return {"sums": np.array(list(self.sums.values()), dtype=object)}


class InOrder(Means):
    """Wants scores in the order of shots."""

    def scored(self, scores: Sequence[Scored]) -> None:
        for score in scores:
            if score.shot:
                self.sums[f"{score.hole} {score.shot - 1}"]
            self.sums[f"{score.hole} {score.shot}"] = [score.reward]


LUCK = count()


def lucky() -> Pilot:
    """Each time with another seed."""
    share, seed = 0.5, next(LUCK)
    return pilot_for(Settings(pilot="window", columns=COLUMNS, explore=share, seed=seed))


class Impossible(EveryHole):
    """Says that what it chooses is never chosen."""

    def hole(self, here: Open, left: Left, *, inside: bool) -> Choice:
        return replace(super().hole(here, left, inside=inside), propensity=0.0)


class Speechless(EveryHole):
    def guess(self) -> int:
        return 7


class Rambling(EveryHole):
    def __init__(self) -> None:
        super().__init__()
        self.said = 0

    def guess(self) -> str:
        self.said += 1
        return "This is what I expect." * self.said


class Bare:
    """Has only what is asked first."""

    def square(self, squares: Sequence[Square], left: Left) -> Choice:
        return Choice(None)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (Counting, "patch.. gave another answer when asked again"),
        (Hoarding, "square.. changed the state; it only asks"),
        (Brooding, "is asking remembered"),
        (Impossible, "hole.. has a propensity of 0.0"),
        (Elsewhere, "hole.. chose 'square 0 patch 0 hole 0', and it was offered"),
        (Nameless, "square.. gave 'square 0'; it must be a Choice"),
        (Short, r"estimates.. has shape \(3,\); it must be a number, or nan, for each of 4 holes"),
        (Frozen, r"estimates.. has shape \(4,\); .* of 5 holes"),
        (Forgetful, "restored from its state, it answers otherwise"),
        (Unsaid, "state.. is not JSON"),
        (InOrder, "scored.. raised KeyError"),
        (Speechless, r"guess.. is 7; it must be sentences"),
        (Rambling, "square.. changed the state; it only asks"),
        (Hasty, "any_order says that scores may come late"),
        (lucky, "two made alike decided differently"),
        (Bare, "lacks grid, patch, hole, estimates, knowledge, loaded"),
    ],
)
def test_what_is_broken_is_found(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(ContractError, match=said):
        check_pilot(make)


def test_one_that_learns_and_says_all_passes() -> None:
    check_pilot(Means)
