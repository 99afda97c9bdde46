"""What happens in a session. All that is known of one is the fold of its events.

Events are frozen, have an id and a time, and go to JSON and back. Times are seconds since the
session began, on the clock of whoever reports.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from math import isfinite
from typing import Any, ClassVar, Literal

import numpy as np

from coaf.bandit.arrays import number
from coaf.cryoem.grid import Square, check_unique
from coaf.cryoem.microscope import Survey
from coaf.cryoem.pilots.knowledge import Knowledge
from coaf.cryoem.session.codec import plain, read
from coaf.cryoem.session.instructions import Instruction, Plan
from coaf.cryoem.timing import FAST, Timing

VERSION = 1
CASSETTE = 12  # grids
Attempt = Literal["grid", "atlas", "square", "move", "exposure", "scores", "wait"]
EVENTS: "dict[str, type[Event]]" = {}  # by kind


@dataclass(frozen=True, slots=True)
class Settings:
    """What a session is to do.

    Attributes
    ----------
    pilot
        Who decides, by name.
    reward
        What a score is worth, as `parse_reward` reads it.
    hours
        The time there is; None for no end.
    seed, explore
        Of all that is drawn, and the share of what would be skipped that is taken to find out.
    columns
        Names of the features of holes.
    timing
        What to expect before anything was measured.
    grids
        Names of the grids of a cassette, twelve at most, in order; none if the one that is there is
        the only one.
    plan_hours
        How long the holes of a plan stay planned after anything was last reported of them, or
        it was given; None: until the plan is closed.
    tries
        How often a hole or a patch is tried that fails before the beam was on.
    knowledge
        What an earlier session taught, for a pilot that learns to begin with; for another reward
        or other columns it says nothing.
    """

    pilot: str = "coaf"
    reward: str = "ctf<3.8"
    hours: float | None = None
    seed: int = 0
    explore: float = 0.0
    columns: tuple[str, ...] = ()
    timing: Timing = FAST
    grids: tuple[str, ...] = ()
    plan_hours: float | None = None
    tries: int = 2
    knowledge: Knowledge | None = None

    def __post_init__(self) -> None:
        for name in ("hours", "plan_hours"):
            if getattr(self, name) is not None:
                number(name, getattr(self, name), above=0.0)
        number("tries", self.tries, low=1)
        if len(self.grids) > CASSETTE:
            raise ValueError(f"{len(self.grids)} grids; a cassette holds {CASSETTE}")
        check_unique("grid", self.grids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something happened.

    Attributes
    ----------
    id
        Unique in the session: told twice, it counts once.
    time
        Seconds since the session began.
    """

    kind: ClassVar[str] = ""
    id: str
    time: float

    def __init_subclass__(cls, kind: str = "") -> None:
        cls.kind = kind or cls.kind  # a class with slots is made twice, the second time without it
        EVENTS[cls.kind] = cls

    def __post_init__(self) -> None:
        if not self.id or not isinstance(self.id, str):
            raise ValueError(f"id of a {self.kind!r} event is {self.id!r}; give it a name")
        for name in _CHECKS.keys() & {one.name for one in fields(self)}:
            value = _CHECKS[name](f"{name} of event {self.id!r}", getattr(self, name))
            object.__setattr__(self, name, value)


def _seconds(what: str, value: float) -> float:
    return number(what, value, low=0.0)


def _hours(what: str, value: float | None) -> float | None:
    return None if value is None else number(what, value, above=0.0)


def _shots(what: str, value: int | None) -> int | None:
    return None if value is None else int(number(what, value, low=1.0))


def _numbers(what: str, given: Mapping[str, float | None]) -> dict[str, float | None]:
    """Where there is no number there is None."""
    found: dict[str, float | None] = {}
    for name, value in given.items():
        if value is not None and not isinstance(value, int | float | np.number):
            raise ValueError(f"{what}[{name!r}] is {value!r}; it must be a number")
        found[name] = value if value is not None and isfinite(value) else None
    return found


def _seen(what: str, squares: Iterable[Square]) -> tuple[Square, ...]:
    """Of a square whose features are no numbers the atlas tells none."""
    found = []
    for k, one in enumerate(squares):
        if not isinstance(one, Square):
            raise ValueError(f"{what}[{k}] is {one!r}; it must be a Square")
        fine = all(map(isfinite, one.features))
        found.append(one if fine else replace(one, features=()))
    return tuple(found)


# What is told is what will be read: JSON has no NaN, and images are not kept.
_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "time": _seconds,
    "seconds": _seconds,
    "hours": _hours,
    "shots": _shots,
    "x": number,
    "y": number,
    "values": _numbers,
    "known": _numbers,
    "survey": lambda what, survey: replace(survey, image=None),
    "squares": _seen,
}


# The session


@dataclass(frozen=True, slots=True, kw_only=True)
class Started(Event, kind="started"):
    """A session began: the first event."""

    settings: Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class TimePassed(Event, kind="time passed"):
    """Nothing happened, until now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep(Event, kind="upkeep"):
    """Maintenance took time, which says nothing of how long anything else takes."""

    what: str = "maintenance"
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused(Event, kind="paused"):
    """Someone stopped the session for a while."""

    who: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed(Event, kind="resumed"):
    """Someone let it go on."""

    who: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetChanged(Event, kind="target changed"):
    """Scores are worth something else from now on, and in hindsight."""

    reward: str
    who: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetChanged(Event, kind="budget changed"):
    """There is more time, or less: hours since the session began, None for no end."""

    hours: float | None
    who: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultAcknowledged(Event, kind="fault acknowledged"):
    """Someone looked at the instrument: what is taken from now on is learned again."""

    who: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended(Event, kind="ended"):
    """The session is over. Scores may still come."""

    why: str = ""


# The grid


@dataclass(frozen=True, slots=True, kw_only=True)
class GridLoaded(Event, kind="grid loaded"):
    """A grid of the cassette is in the microscope."""

    grid: str
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AtlasSeen(Event, kind="atlas seen"):
    """The squares of the grid that is loaded."""

    squares: tuple[Square, ...]
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SquareOpened(Event, kind="square opened"):
    """A square was imaged, and these patches found; `survey.image` is not kept."""

    survey: Survey
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SquareRefused(Event, kind="square refused"):
    """A square is not to be opened, or could not be."""

    square: str
    why: str
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchOffered(Event, kind="patch offered"):
    """A patch can be had now or never, as when a recorded grid is passed over.

    `survey` holds this patch alone; `seconds` is what showing it took.
    """

    survey: Survey
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HolesAdded(Event, kind="holes added"):
    """Holes were added to patches of an opened square, or new patches to it.

    Patches of a square that was never opened wait to be looked at: they are known ahead. `survey`
    holds only what is new: patches with their new holes.
    """

    survey: Survey
    who: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoleMoved(Event, kind="hole moved"):
    """A hole is elsewhere than was thought: µm on the stage."""

    hole: str
    x: float
    y: float
    who: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HolesDeleted(Event, kind="holes deleted"):
    """These are no holes."""

    holes: tuple[str, ...]
    who: str = ""


# What was told, and done


@dataclass(frozen=True, slots=True, kw_only=True)
class Instructed(Event, kind="instructed"):
    """The microscope was told to do this, verbatim."""

    instruction: Instruction


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanGiven(Event, kind="plan given"):
    """A client was given this list, verbatim, to work through or as advice."""

    plan: Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSuperseded(Event, kind="plan superseded"):
    """Another plan takes the place of this one; what was not taken of it is in play again."""

    plan: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanClosed(Event, kind="plan closed"):
    """A client is done with a plan; what was not taken of it is in play again."""

    plan: str
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved(Event, kind="moved"):
    """The stage is at a patch, and focused; `seconds` without maintenance.

    `instruction` is the id of the one that was followed, where one was.
    """

    patch: str
    seconds: float = 0.0
    instruction: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposed(Event, kind="exposed"):
    """A hole was exposed, whoever decided it; `seconds` without maintenance.

    `shots` is how many micrographs were taken, None for as many as the hole has. `known` are
    numbers known of the exposure itself, of all its shots: its defocus in µm, or others
    by the names of `coaf.cryoem.circumstances`. `instruction` is the id of the one that was
    followed, where one was.
    """

    hole: str
    seconds: float = 0.0
    shots: int | None = None
    known: Mapping[str, float | None] = field(default_factory=dict)
    instruction: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed(Event, kind="failed"):
    """Something told was not done.

    Attributes
    ----------
    what, name
        "grid", "square", "move" or "exposure", and of which grid, square, patch or hole; "atlas",
        "scores" (to ask for them) or "wait".
    beam
        Of an exposure: "off" if it failed before the beam was on, "unknown" if it may have
        happened.
    why
        What the instrument said.
    instruction
        The id of the instruction that could not be followed: told again it counts once.
    """

    what: Attempt
    name: str = ""
    beam: Literal["off", "unknown"] = "unknown"
    why: str = ""
    seconds: float = 0.0
    instruction: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled(Event, kind="reconciled"):
    """It turned out whether a hole was exposed that may have been."""

    hole: str
    taken: bool
    who: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overridden(Event, kind="overridden"):
    """Someone decided: "exclude" from play, "force" to be taken next, or "return" to play."""

    who: str
    do: Literal["exclude", "force", "return"]
    what: Literal["hole", "patch", "square"]
    name: str


# Scores


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreCame(Event, kind="scored"):
    """What was measured of a shot: "ctf" in Å, None for a fit that failed; "particles"; others.

    What the shot was taken under is among them, by the names of `coaf.cryoem.circumstances`.
    """

    hole: str
    shot: int = 0
    values: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreCorrected(Event, kind="corrected"):
    """What was measured of a shot was something else."""

    hole: str
    shot: int = 0
    values: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreLost(Event, kind="lost"):
    """The score of a shot will never come."""

    hole: str
    shot: int = 0


# JSON


def check_readable(event: Event) -> None:
    """Refuse an event that could not be read back from JSON, by the entry that is wrong."""
    from_json(to_json(event))


def to_json(event: Event) -> dict[str, Any]:
    """An event as JSON, which `from_json` reads.

    Examples
    --------
    >>> to_json(ScoreLost(id="e7", time=12.5, hole="h1"))
    {'event': 'lost', 'version': 1, 'id': 'e7', 'time': 12.5, 'hole': 'h1', 'shot': 0}
    """
    return {"event": event.kind, "version": VERSION, **plain(event)}


def from_json(given: Mapping[str, Any]) -> Event:
    """The event that `to_json` wrote.

    Raises
    ------
    ValueError
        If it is none: which entry is missing, unknown or wrong.
    """
    if not isinstance(given, Mapping) or str(given.get("event")) not in EVENTS:
        raise ValueError(f"no event: {str(given)[:80]}; 'event' must be one of {', '.join(EVENTS)}")
    kind, version = str(given["event"]), given.get("version")
    if version != VERSION:
        raise ValueError(f"a {kind!r} event has version {version!r}; this release reads {VERSION}")
    rest = {name: value for name, value in given.items() if name not in ("event", "version")}
    event: Event = read(EVENTS[kind], rest, f"a {kind!r} event")
    return event
