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
from coaf.cryoem.simulator.cassette import Cassette
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
    def upkeep(self) -> dict[str, float]:
        return {"dewar": 10.0 * self.clock}


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


def _plus(seconds: float, verb: str, **kept: Any) -> dict[str, Any]:
    """A verb that spends more than it should."""

    def spends(self: Any, *args: Any) -> Any:
        self._clock += seconds
        return getattr(Simulator, verb)(self, *args)

    return {verb: spends, **kept}


def _seen(change: Callable[[Any, Survey], Survey]) -> dict[str, Any]:
    """A survey that shows something else."""
    return {"survey": lambda self, square: change(self, Simulator.survey(self, square))}


def _scored(change: Callable[[Any, list[Score]], list[Score]]) -> dict[str, Any]:
    """Scores that are something else."""
    return {"collect": lambda self: change(self, Simulator.collect(self))}


def _turns(self: Any, some: Any) -> Any:
    """The other way round each time."""
    self.asked = getattr(self, "asked", 0) + 1
    return some[::-1] if self.asked % 2 else some


def _unnamed(self: Any, square: str) -> Survey:
    if square not in [one.name for one in self.squares()]:
        raise KeyError("what is that?")
    return Simulator.survey(self, square)


def _charges(self: Any, square: str) -> Survey:
    self._clock += square not in [one.name for one in self.squares()]
    return Simulator.survey(self, square)


def _renames(self: Any, hole: Hole) -> float:
    self.feature_names = (*self.feature_names[:-1], "other")
    return Simulator.expose(self, hole)


def _backwards(self: Any, patch: Patch) -> float:
    seconds = Simulator.move(self, patch)
    self._clock -= 2.0 * seconds
    return -seconds


def _at_once(self: Any, patch: Patch) -> float:
    now = self._clock
    Simulator.move(self, patch)
    self._clock = now
    return 0.0


def _noted(self: Any, square: str) -> Survey:
    self.peeked = True
    return Simulator.peek(self, square)


def _slower(self: Any, square: str) -> Survey:
    peeking, self.peeked = getattr(self, "peeked", False), False
    self._clock += 10.0 * peeking
    return Simulator.survey(self, square)


def _begun(self: Any) -> Any:
    same: Any = Simulator.again(self)
    same.clean = True
    return same


def _foretold(self: Any, reward: Callable[[Score], float | None]) -> dict[str, float]:
    told = Simulator.worth(self, reward)
    return told if told or getattr(self, "clean", False) else {"some hole": 1.0}


def _visit(change: Callable[[Any, float], float]) -> dict[str, Any]:
    def first_visit(self: Any, reward: Callable[[Score], float | None], hole: str) -> float:
        return change(reward, Simulator.first_visit(self, reward, hole))

    return {"first_visit": first_visit}


def _services(self: Any, hole: Hole) -> float:
    self.serviced = getattr(self, "serviced", 0.0) + 100.0
    return Simulator.expose(self, hole)


def _upkeep(extra: Callable[[Any], float]) -> property:
    return property(lambda self: {"own": extra(self), **Simulator.upkeep.fget(self)})  # type: ignore[attr-defined]


# What else a microscope may get wrong: the verbs that differ, and what is said of it.
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"survey": _unnamed}, "surveying an unknown square, the message must name"),
    ({"survey": _charges}, "refusing surveying an unknown square moved the clock"),
    ({"expose": _renames}, "feature_names changed on the way"),
    ({"clock": property(lambda self: self._clock - 1e4)}, "the clock starts at -10000"),
    ({"squares": lambda self: _turns(self, Simulator.squares(self))}, "from one call to the next"),
    (_plus(1.0, "squares"), r"squares\(\) took time"),
    (_seen(lambda self, seen: replace(seen, patches=_turns(self, seen.patches))), "other patches"),
    (_seen(lambda self, seen: replace(seen, square="x")), "a survey is of another square"),
    (_seen(lambda self, seen: replace(seen, features={})), "must have one entry per patch"),
    (
        _seen(
            lambda self, seen: replace(
                seen, patches=(*seen.patches[:-1], replace(seen.patches[-1], square="x"))
            )
        ),
        "is of another square",
    ),
    ({"move": _backwards}, "move moved the clock back"),
    ({"move": _at_once}, "move took no time"),
    (_plus(1.0, "collect"), r"collect\(\) took time"),
    ({"upkeep": _upkeep(lambda self: 1e9)}, "upkeep is more than the clock"),
    ({"upkeep": 0.0}, "give seconds by kind"),
    (
        {"expose": _services, "upkeep": _upkeep(lambda self: getattr(self, "serviced", 0.0))},
        "upkeep grew by 100 s in an exposure",
    ),
    (_plus(1.0, "wait"), r"wait\(10\) moved the clock by 11 s"),
    (
        _scored(lambda self, new: [replace(s, arrived_at=s.arrived_at + 1e3) for s in new]),
        "was collected before it arrived",
    ),
    (
        _scored(lambda self, new: new if self._taken else [Score("h", 0, 3.0, None, 0.0, 0.0)]),
        "there are scores before anything was exposed",
    ),
    (_scored(lambda self, new: new[::-1]), "scores must come oldest first"),
    ({"peek": _noted, "survey": _slower}, "takes another time to survey"),
    ({"worth": _foretold, "again": _begun}, "knows holes before any was exposed"),
    (
        _visit(lambda reward, told: told + float(reward.__name__ == "_none")),
        r"first_visit\(\) must count a reward that is None as 0",
    ),
    (
        _visit(lambda reward, told: float("nan") if reward.__name__ == "_fine" else told),
        "a first visit of .* gives nan",
    ),
]


@pytest.mark.parametrize(("verbs", "mistake"), WRONG, ids=[mistake for _, mistake in WRONG])
def test_whatever_verb_is_wrong_is_named(verbs: dict[str, Any], mistake: str) -> None:
    broken: Callable[..., Simulator] = type("Wrong", (Simulator,), verbs)
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


class Loader(Cassette):
    """Two grids, right in all but what a subclass says."""

    def __init__(self) -> None:
        super().__init__([Simulator(seed, squares=2, pixels=False) for seed in (1, 2)])


class LoadsInNoTime(Loader):
    def load(self, grid: str) -> float:
        super().load(grid)
        return 5.0


class LoadsBackwards(Loader):
    def load(self, grid: str) -> float:
        super().load(grid)
        return -5.0


class LoadsAnything(Loader):
    def load(self, grid: str) -> float:
        return super().load(grid if grid in self.grids else self.grids[0])


class Forgets(Loader):
    loads = 0

    def load(self, grid: str) -> float:
        self.loads += 1
        return super().load(grid)

    def squares(self) -> list[Square]:
        return super().squares()[: 3 - self.loads] if self.loads > 2 else super().squares()


class Mixes(Loader):
    def squares(self) -> list[Square]:
        return [replace(one, name=f"square {k}") for k, one in enumerate(super().squares())]


class Lists(Loader):
    def __init__(self) -> None:
        super().__init__()
        self.grids: Any = list(self.grids)


def test_one_that_loads_grids_keeps_its_promises() -> None:
    check_microscope(Loader)


@pytest.mark.parametrize(
    ("broken", "mistake"),
    [
        (LoadsInNoTime, "load returned 5.0 s, but the clock moved by 240 s"),
        (LoadsBackwards, "load returned -5.0 s"),
        (LoadsAnything, "loading an unknown grid must raise"),
        (Forgets, "grid 'grid 1' has other squares when it is loaded again"),
        (Lists, "it must be a tuple of names, at least one"),
    ],
)
def test_each_promise_of_loading_can_fail(broken: type[Loader], mistake: str) -> None:
    with pytest.raises(ContractError, match=mistake):
        check_microscope(broken)


def test_grids_need_squares_of_different_names() -> None:
    with pytest.raises(ValueError, match="square 'square 0' is there more than once"):
        check_microscope(Mixes)
