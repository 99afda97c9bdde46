"""What decides in a session: which square, which patch, which hole, and when to leave."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from coaf.bandit.arrays import FloatArray
from coaf.cryoem.grid import Patch, Square
from coaf.cryoem.microscope import Survey
from coaf.cryoem.pilots.knowledge import Knowledge
from coaf.cryoem.timing import Timing


@dataclass(frozen=True, slots=True)
class Choice:
    """One thing to do next, and why.

    Attributes
    ----------
    name
        The square, patch or hole chosen; None for none: leave, or stop.
    why
        A sentence a person can disagree with.
    estimate
        The reward expected of it, where there is one.
    rate
        What a second was worth (reward per second), if the pilot knows.
    propensity
        The probability with which it was chosen: 1 but where the choice was random.
    """

    name: str | None
    why: str = ""
    estimate: float = float("nan")
    rate: float = float("nan")
    propensity: float = 1.0


@dataclass(frozen=True, slots=True)
class Open:
    """A patch that can be gone to, and what is in play of it.

    Attributes
    ----------
    patch
        The patch.
    rest
        Positions in `patch.holes` of the holes that may be taken.
    entered
        Whether the stage was there before: its survey is paid then.
    explored
        Whether one of its holes was taken by chance.
    """

    patch: Patch
    rest: tuple[int, ...]
    entered: bool = False
    explored: bool = False


@dataclass(frozen=True, slots=True)
class Other:
    """A grid of the cassette that could be loaded instead of the one that is there.

    Attributes
    ----------
    name
        The grid.
    seen
        Whether it was loaded before, so that its atlas is known.
    squares
        Of its atlas, never opened.
    """

    name: str
    seen: bool = False
    squares: tuple[Square, ...] = ()


@dataclass(frozen=True, slots=True)
class Left:
    """What is left of a session.

    Attributes
    ----------
    seconds
        Of its time; infinite where it has no end.
    timing
        What things take, as far as is known.
    squares
        Never opened, and with time enough to open one.
    patches
        That can be gone to.
    returning
        Whether no square is opened any more, and what was left behind is looked at again.
    blindly
        Whether scores come only after all that is being planned was taken.
    at
        The square that the stage is in; None if nobody knows.
    ahead
        Whether patches of a square just opened wait to be looked at.
    idle
        Whether nothing more is wanted of the grid that is loaded, or none is.
    elsewhere
        What a second is worth on other grids of the cassette, the way there paid: nothing is begun
        here that is worth less.
    """

    seconds: float
    timing: Timing
    squares: tuple[Square, ...] = ()
    patches: tuple[Open, ...] = ()
    returning: bool = False
    blindly: bool = False
    at: Square | None = None
    ahead: bool = False
    idle: bool = False
    elsewhere: float = 0.0


@dataclass(frozen=True, slots=True)
class Scored:
    """What one shot of a hole was worth.

    Attributes
    ----------
    hole, shot, reward
        Of which shot, and its worth.
    waited
        How long its score was waited for, in seconds.
    circumstances
        What it was taken under that is not the ice, as far as is known: by the names and in the
        units of `coaf.cryoem.circumstances`.
    """

    hole: str
    shot: int
    reward: float
    waited: float = 0.0
    circumstances: Mapping[str, float] = field(default_factory=dict, hash=False)


class Pilot(Protocol):
    """Decides for a session, and is told all that happens. It never touches the microscope.

    To ask changes nothing: the same things told and the same question give the same answer. So a
    session that is told again, after a restart or with a score corrected, is the same session.
    `square` is asked until it names one or nothing is left to open, then `patch` for each of its
    patches until it answers None, then for each patch `hole` until it answers None; the first
    answer of a patch decides about entering it. Where a session has a cassette, `grid` is asked
    before each square and each patch, and when nothing more is wanted of a grid (`Left.idle`).
    """

    # Asked

    def grid(self, others: Sequence[Other], left: Left) -> Choice:
        """Which grid to load instead of the one that is there; None to stay."""

    def square(self, squares: Sequence[Square], left: Left) -> Choice:
        """Which of the squares never opened to open next; None when none is worth it."""

    def patch(self, patches: Sequence[Open], left: Left) -> Choice:
        """Which patch to look at next, of those of a square just opened not looked at yet.

        When returning, of all that still have holes in play. None: none of them.
        """

    def hole(self, here: Open, left: Left, *, inside: bool) -> Choice:
        """Which hole of a patch to expose next; None to leave it.

        `inside` says whether the stage is there. If it is not, None means not to move there at all.
        """

    def estimates(self, patch: Patch) -> FloatArray:
        """The mean reward expected of each hole of a patch (n,), for people to see."""

    def knowledge(self) -> Knowledge | None:
        """What it learned that may hold on another grid; None if nothing does."""

    # Told

    def loaded(self, grid: str) -> None:
        """A grid of the cassette is there now."""

    def saw(self, squares: Sequence[Square]) -> None:
        """The atlas of the grid that is loaded shows these squares."""

    def opened(self, survey: Survey, timing: Timing) -> None:
        """Patches were found in a square; told again of those whose holes have changed.

        `timing` is what things take, as far as was known then.
        """

    def moved(self, here: Open, left: Left, rate: float | None) -> None:
        """The stage is at a patch. `rate` is the price at which that was decided, if it was."""

    def exposed(self, hole: str) -> None:
        """A hole was exposed, whoever decided it."""

    def done(self, here: Open, left: Left) -> None:
        """A patch is done with for now, entered or not."""

    def scored(self, scores: Sequence[Scored]) -> None:
        """Rewards of shots arrived. What never arrives, or was spoilt by a fault, is never told."""

    def state(self) -> Mapping[str, Any] | None:
        """What it learned of scores, as JSON; None if telling them again is as quick."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Know what `state` says, in a pilot that was told all but the scores."""


@runtime_checkable
class AnyOrder(Protocol):
    """A pilot that may say that scores can come at any place among what else it is told.

    It is then told all scores of earlier visits at once, and learns them many times as quickly.
    """

    @property
    def any_order(self) -> bool:
        """Whether that is so."""


@runtime_checkable
class Guessing(Protocol):
    """A pilot that expects something before any score, and may say so."""

    def guess(self) -> str:
        """Sentences for a report: what was expected, and what scores made of it."""


def guess_of(pilot: Pilot) -> str:
    """What a pilot says of its guess; nothing if it makes none."""
    return pilot.guess() if isinstance(pilot, Guessing) else ""


def in_any_order(pilot: Pilot) -> bool:
    """Whether a pilot says that scores may come in any order."""
    return isinstance(pilot, AnyOrder) and pilot.any_order
