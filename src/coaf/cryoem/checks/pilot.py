"""The contract of a pilot: run it in the tests of your own."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.checks.contract import ContractError, require
from coaf.cryoem.grid import Hole, Patch, Square
from coaf.cryoem.microscope import Survey
from coaf.cryoem.pilot import Choice, Left, Open, Other, Pilot, Scored, guess_of, in_any_order
from coaf.cryoem.pilots.knowledge import Knowledge
from coaf.cryoem.session import events as ev
from coaf.cryoem.session.engine import Engine
from coaf.cryoem.session.instructions import Instruction

COLUMNS = ("ice", "neighbours", "prediction")
_ASKED = ("grid", "square", "patch", "hole", "estimates", "knowledge")
_TOLD = ("loaded", "saw", "opened", "moved", "exposed", "done", "scored")
_PARTS = (*_ASKED, *_TOLD, "state", "restore")
_SQUARES = 3
# Which squares lie on which grid: on the one that is there, or on those of a cassette.
_ONE = {"": (0, 1, 2)}
_CASSETTE = {"grid 0": (0, 1), "grid 1": (2,)}
_LATE = 3  # exposures after which a score comes
_END = 200  # instructions; there is less to do
_ROUNDING = 0.02  # variances are estimated to two decimals, and may end on the next
_OFTEN = 11  # questions after which others are asked the same


def check_pilot(make: Callable[[], Pilot], columns: Sequence[str] = COLUMNS) -> None:
    """Check the promises of `Pilot` in a small session that is made up.

    A broken promise raises `ContractError`, which says what was seen.

    Parameters
    ----------
    make
        Gives a new pilot each time, told nothing, all alike.
    columns
        Names of the features that it is shown of holes.

    Examples
    --------
    >>> from coaf.cryoem.pilots.baselines import EveryHole
    >>> check_pilot(EveryHole)
    >>> class Counting(EveryHole):
    ...     asked = 0
    ...     def hole(self, here, left, *, inside):
    ...         self.asked += 1
    ...         return Choice(here.patch.holes[here.rest[self.asked % len(here.rest)]].name)
    >>> check_pilot(Counting)
    Traceback (most recent call last):
    ...
    coaf.bandit.checks.contract.ContractError: Counting: hole() gave another answer when asked \
again; to ask changes nothing
    """
    pilot = make()
    lacks = [part for part in _PARTS if not hasattr(pilot, part)]
    require(not lacks, pilot, f"lacks {', '.join(lacks)}")
    for grids in (_ONE, _CASSETTE):
        first = _session(lambda: _Watched(make), columns, grids)
        second = _session(make, columns, grids)
        same = [ev.to_json(e) for e in first.events] == [ev.to_json(e) for e in second.events]
        require(same, pilot, "two made alike decided differently; luck must come from a seed")


def surveys(columns: Sequence[str] = COLUMNS) -> list[Survey]:
    """What the squares of the session hold that pilots are checked in."""
    rng = np.random.default_rng(7)
    found = []
    for k in range(_SQUARES):
        patches = []
        for name in (f"square {k} patch {j}" for j in range(2)):
            holes = tuple(Hole(f"{name} hole {i}", 2.0 * i, 0.0, shots=1 + k) for i in range(4))
            patches.append(Patch(name, f"square {k}", holes, 3.0, 0.0))
        rows = {patch.name: rng.uniform(0.1, 5.0, (4, len(columns))) for patch in patches}
        found.append(Survey(f"square {k}", tuple(patches), rows))
    return found


def _session(
    make: Callable[[], Pilot], columns: Sequence[str], grids: Mapping[str, Sequence[int]]
) -> Engine:
    """Drive an engine to the end: scores late and in another order, something fails."""
    names = tuple(name for name in grids if name)
    settings = ev.Settings(hours=2.0, columns=tuple(columns), tries=1, grids=names)
    engine = Engine(make=lambda _: make())
    clerk = _Clerk(engine, {survey.square: survey for survey in surveys(columns)}, grids)
    clerk.tell(ev.Started, settings=settings)
    if not names:
        clerk.show("")
    for _ in range(_END):
        told = engine.next(clerk.clock)
        if told.do == "stop":
            break
        clerk.obey(told)
    clerk.score(0)
    clerk.disturb()
    engine.next(clerk.clock)
    engine.pilot.knowledge()
    return engine


class _Clerk:
    """Does what an engine says, and tells it what happened."""

    def __init__(
        self, engine: Engine, grid: dict[str, Survey], grids: Mapping[str, Sequence[int]]
    ) -> None:
        self.engine, self.grid, self.grids, self.clock = engine, grid, grids, 0.0
        self._due: list[tuple[str, int]] = []
        self._count = 0

    def tell(self, kind: type[ev.Event], **known: Any) -> None:
        self.engine.tell(kind(id=f"check {len(self.engine.events)}", time=self.clock, **known))

    def show(self, grid: str) -> None:
        """The atlas."""
        looks = {k: (0.4 + k, 0.1, 0.9) for k in self.grids[grid]}
        squares = (Square(f"square {k}", 0.0, 0.0, 60.0, look) for k, look in looks.items())
        self.tell(ev.AtlasSeen, squares=tuple(squares))

    def obey(self, told: Instruction) -> None:
        name = str(told.name)
        seconds = 1.2 * told.seconds  # slower than expected, which is learned
        self.clock += max(seconds, 1.0)
        self._count += 1
        match told.do:
            case "load grid":
                self.tell(ev.GridLoaded, grid=name, seconds=seconds)
                self.show(name)
            case "open square":
                self.tell(ev.SquareOpened, survey=self.grid[name], seconds=seconds)
            case "go":
                self.tell(ev.Moved, patch=name, seconds=seconds)
            case "expose" if self._count % 7 == 0:
                self.tell(ev.Failed, what="exposure", name=name, beam="off", why="made to fail")
            case "expose":
                self.tell(ev.Exposed, hole=name, seconds=seconds)
                shots = self.engine.book.the_hole(name).shots
                self._due += [(name, shot) for shot in range(shots)]
        self.score(_LATE)

    def score(self, left: int) -> None:
        """Scores come, the newest of those due first, until so many are left to come."""
        while len(self._due) > left:
            hole, shot = self._due.pop()
            good = (len(hole) + shot + len(self._due) + self._count) % 3
            values = {"ctf": 3.0 if good else 9.0}
            self.tell(ev.ScoreCame, hole=hole, shot=shot, values=values)

    def disturb(self) -> None:
        """What people do: a hole more, one moved, a patch where nothing is left."""
        extra = Patch("square 0 patch 0", "square 0", (Hole("extra", 9.0, 0.0),), 3.0, 0.0)
        rows = self.grid["square 0"].features[extra.name][:1]
        if "square 0" not in self.engine.book.squares or extra.name not in self.engine.book.patches:
            self.tell(ev.SquareOpened, survey=self.grid["square 0"])
        added = Survey("square 0", (extra,), {extra.name: rows})
        self.tell(ev.HolesAdded, survey=added)
        self.tell(ev.HoleMoved, hole="extra", x=8.0, y=1.0)
        for name in ("square 0 patch 0", "square 0 patch 1"):
            self.tell(ev.Overridden, who="check", do="exclude", what="patch", name=name)
            self.tell(ev.Moved, patch=name)
        self.tell(ev.Moved, patch="square 0 patch 0")


class _Watched:
    """A pilot that is held to its promises each time that it is asked."""

    def __init__(self, make: Callable[[], Pilot]) -> None:
        self.pilot, self._make = make(), make
        self._calls: list[tuple[str, tuple[Any, ...]]] = []
        self._asked = 0

    # Asked

    def grid(self, others: Sequence[Other], left: Left) -> Choice:
        return self._choice("grid", [one.name for one in others], others, left)

    def square(self, squares: Sequence[Square], left: Left) -> Choice:
        return self._choice("square", [one.name for one in squares], squares, left)

    def patch(self, patches: Sequence[Open], left: Left) -> Choice:
        return self._choice("patch", [one.patch.name for one in patches], patches, left)

    def hole(self, here: Open, left: Left, *, inside: bool) -> Choice:
        names = [here.patch.holes[i].name for i in here.rest]
        return self._choice("hole", names, here, left, inside=inside)

    def estimates(self, patch: Patch) -> FloatArray:
        found = self._ask("estimates", patch)
        return _checked(self.pilot, patch, found)

    def knowledge(self) -> Knowledge | None:
        found: Knowledge | None = self._ask("knowledge")
        return found

    def _choice(self, what: str, offered: Sequence[str], *args: Any, **more: Any) -> Choice:
        choice: Choice = self._ask(what, *args, **more)
        right = isinstance(choice, Choice)
        require(right, self.pilot, f"{what}() gave {choice!r}; it must be a Choice")
        among = choice.name is None or choice.name in offered
        offers = f"it was offered {', '.join(offered) or 'nothing'}"
        require(among, self.pilot, f"{what}() chose {choice.name!r}, and {offers}")
        chance = 0.0 < choice.propensity <= 1.0
        require(chance, self.pilot, f"{what}() has a propensity of {choice.propensity}")
        return choice

    def _ask(self, what: str, *args: Any, **more: Any) -> Any:
        before = self._known()
        found = _called(self.pilot, what, *args, **more)
        again = _called(self.pilot, what, *args, **more)
        same = _shown(found) == _shown(again)
        changes = f"{what}() gave another answer when asked again; to ask changes nothing"
        require(same, self.pilot, changes)
        require(self._known() == before, self.pilot, f"{what}() changed the state; it only asks")
        self._asked += 1
        if self._asked % _OFTEN == 1:
            self._compare(what, *args, **more)
        return found

    def _known(self, pilot: Pilot | None = None) -> str:
        """Its state, and what it expects of what it has seen."""
        asked = self.pilot if pilot is None else pilot
        said = guess_of(asked)
        require(isinstance(said, str), asked, f"guess() is {said!r}; it must be sentences, or ''")
        return f"{_state(asked)} {said} {_shown(self._expected(asked))}"

    def _expected(self, asked: Pilot) -> FloatArray:
        """What it expects of all holes that it has seen."""
        opened = [args[0].patches for what, args in self._calls if what == "opened"]
        latest = {patch.name: patch for patches in opened for patch in patches}
        found = [
            _checked(asked, patch, _called(asked, "estimates", patch)) for patch in latest.values()
        ]
        return np.concatenate([np.zeros(0), *found])

    # Told

    def loaded(self, grid: str) -> None:
        self._tell("loaded", grid)

    def saw(self, squares: Sequence[Square]) -> None:
        self._tell("saw", squares)

    def opened(self, survey: Survey, timing: Any) -> None:
        self._tell("opened", survey, timing)

    def moved(self, here: Open, left: Left, rate: float | None) -> None:
        self._tell("moved", here, left, rate)

    def exposed(self, hole: str) -> None:
        self._tell("exposed", hole)

    def done(self, here: Open, left: Left) -> None:
        self._tell("done", here, left)

    def scored(self, scores: Sequence[Scored]) -> None:
        self._tell("scored", scores)

    def _tell(self, what: str, *args: Any) -> None:
        self._calls.append((what, args))
        _called(self.pilot, what, *args)

    def state(self) -> Any:
        return self.pilot.state()

    def restore(self, state: Any) -> None:
        self.pilot.restore(state)

    # Others that were told the same

    def _compare(self, what: str, *args: Any, **more: Any) -> None:
        """One told the same, and one that was restored, must know and answer the same."""
        others = [
            (self._told(), "told the same again, it answers otherwise; is asking remembered?")
        ]
        saved = json.loads(_state(self.pilot))
        if saved is not None:
            restored = self._told(but="scored")
            _called(restored, "restore", saved)
            others.append((restored, "restored from its state, it answers otherwise"))
        ours = _shown(_called(self.pilot, what, *args, **more)), self._known()
        for other, mistake in others:
            theirs = _shown(_called(other, what, *args, **more)), self._known(other)
            require(ours == theirs, self.pilot, f"{mistake} ({what}: {ours[0]} and {theirs[0]})")
        if in_any_order(self.pilot):
            late, known = self._expected(self._told_late()), self._expected(self.pilot)
            same = np.allclose(late, known, rtol=_ROUNDING, atol=_ROUNDING, equal_nan=True)
            says = "any_order says that scores may come late, and then it expects something else"
            require(same, self.pilot, says)

    def _told(self, but: str = "") -> Pilot:
        other = self._make()
        for what, args in self._calls:
            if what != but:
                _called(other, what, *args)
        return other

    def _told_late(self) -> Pilot:
        """One told the scores of earlier visits at once, before the visit under way."""
        visits = [k for k, (what, _) in enumerate(self._calls) if what == "moved"]
        other, waiting = self._make(), list[Scored]()
        for k, (what, args) in enumerate(self._calls):
            if waiting and k == max(visits, default=0):
                _called(other, "scored", waiting)
                waiting = []
            if what == "scored":
                waiting.extend(args[0])
            else:
                _called(other, what, *args)
        if waiting:
            _called(other, "scored", waiting)
        return other


def _checked(pilot: Pilot, patch: Patch, found: Any) -> FloatArray:
    shape, count = np.shape(found), len(patch.holes)
    right = shape == (count,) and np.asarray(found).dtype.kind == "f"
    wanted = f"a number, or nan, for each of {count} holes"
    require(right, pilot, f"estimates() has shape {shape}; it must be {wanted}")
    return np.asarray(found)


def _state(pilot: Pilot) -> str:
    try:
        return json.dumps(pilot.state(), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ContractError(f"{type(pilot).__name__}: state() is not JSON: {error}") from error


def _called(pilot: Pilot, what: str, *args: Any, **more: Any) -> Any:
    try:
        return getattr(pilot, what)(*args, **more)
    except Exception as error:
        name = type(pilot).__name__
        raise ContractError(f"{name}: {what}() raised {type(error).__name__}: {error}") from error


def _shown(value: Any) -> str:
    """To the last bit, and nan is nan."""
    return repr(value.tolist() if isinstance(value, np.ndarray) else value)
