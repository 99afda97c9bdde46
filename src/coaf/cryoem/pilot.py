"""What decides in a session: which square, which patch, which hole, and when to leave."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from coaf.cryoem.grid import Patch, Square
from coaf.cryoem.microscope import Survey


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
        What a second was worth (reward per second); 0 for pilots that do not know.
    propensity
        The probability with which it was chosen: 1 but where the choice was random.
    """

    name: str | None
    why: str = ""
    estimate: float = float("nan")
    rate: float = 0.0
    propensity: float = 1.0


@dataclass(frozen=True, slots=True)
class Left:
    """What is left of a session: seconds of its time, and squares never opened."""

    seconds: float
    squares: int


class Pilot(Protocol):
    """Decides for a session, and is told all that happens. It never touches the microscope.

    The session asks `square`, then for each opened square `patch` until it answers None, then for
    each patch `hole` until it answers None; the first hole of a patch decides about entering it.
    In between it says what happened.
    """

    def square(self, squares: Sequence[Square], left: Left) -> Choice:
        """Which of the squares never opened to open next; None when none is worth it.

        Asked again once nothing is left to open: `squares` is empty then.
        """

    def opened(self, survey: Survey, seconds: float) -> None:
        """A square was opened, and what that took."""

    def patch(self, patches: Sequence[Patch], left: Left) -> Choice:
        """Which patch to look at next, of those of this square not looked at yet.

        Where no square is left to open, of all patches that still have holes not exposed: what
        was skipped can be returned to. None: none of them.
        """

    def hole(self, patch: Patch, rest: Sequence[int], left: Left) -> Choice:
        """Which hole of `patch` to expose next; None to leave it.

        `rest` are positions in patch.holes of those not exposed. Before the first, None means not
        to move there at all.
        """

    def exposed(self, hole: str, seconds: float) -> None:
        """A hole was exposed: the seconds of the exposure, with the move where it was the first."""

    def left(self, patch: Patch) -> None:
        """The patch is done with for now."""

    def scored(self, hole: str, shot: int, reward: float) -> None:
        """The reward of one shot of a hole arrived. What never arrives is never told."""

    def estimates(self, patch: Patch) -> Any:
        """The mean reward expected of each hole of a patch (n,), for people to see."""
