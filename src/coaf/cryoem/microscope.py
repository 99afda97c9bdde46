"""The microscope as the autopilot sees it: survey, move, expose, collect scores."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, Self, runtime_checkable

import numpy as np

from coaf.bandit.arrays import BoolArray, FloatArray
from coaf.cryoem.grid import Hole, Patch, Square
from coaf.cryoem.images import Image
from coaf.cryoem.timing import Timing


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """What opening a square showed.

    Attributes
    ----------
    square
        Its name.
    patches
        Its holes, grouped.
    features
        By patch name, (n, d): one row per hole.
    image
        The square image, where there is one.
    excluded
        Holes left out, by reason: near a grid bar, outside the image.
    placed
        Whether holes are where their positions say; else these are made up, for want of better.
    """

    square: str
    patches: tuple[Patch, ...]
    features: dict[str, FloatArray]
    image: Image | None = None
    excluded: dict[str, int] = field(default_factory=dict)
    placed: bool = True


def whole(survey: Survey) -> Survey:
    """The survey without holes whose features are no numbers; they are counted as excluded."""
    fine: dict[str, BoolArray] = {
        name: np.isfinite(rows.sum(axis=1)) for name, rows in survey.features.items()
    }
    wrong = int(sum(np.count_nonzero(~good) for good in fine.values()))
    if not wrong:
        return survey
    patches = tuple(
        replace(p, holes=tuple(h for h, good in zip(p.holes, fine[p.name], strict=True) if good))
        for p in survey.patches
        if fine[p.name].any()
    )
    features = {p.name: survey.features[p.name][fine[p.name]] for p in patches}
    excluded = {**survey.excluded, "features that are no numbers": wrong}
    return replace(survey, patches=patches, features=features, excluded=excluded)


@dataclass(frozen=True, slots=True)
class Score:
    """A shot's quality, some time after it was taken.

    Attributes
    ----------
    hole, shot
        What was exposed, and which of its shots this is.
    ctf
        Resolution of the CTF fit in Å; None where the fit failed.
    particles
        How many particles were picked; None where picking was not done.
    exposed_at, arrived_at
        Seconds on the microscope's clock.
    more
        What else is known of the shot or was measured of it, by name: what it was taken under
        by the names of `coaf.cryoem.circumstances`.
    """

    hole: str
    shot: int
    ctf: float | None
    particles: float | None
    exposed_at: float
    arrived_at: float
    more: Mapping[str, float] = field(default_factory=dict, hash=False)


class NotExposedError(OSError):
    """An exposure failed before the beam was on: the hole is as it was."""


class Microscope(Protocol):
    """Something that can be driven. Every verb that takes time moves the clock by it.

    Scores arrive by themselves as the clock moves, some never. A verb that does not work raises
    an OSError, RuntimeError, LookupError or ValueError; the session goes on. An exposure that
    failed may have happened all the same, unless it raised `NotExposedError`. The clock always
    works: it is the driver's own.
    """

    @property
    def timing(self) -> Timing:
        """What to expect of its verbs before anything was measured: the same at any time."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """What the columns of a survey's features are called, in order."""

    @property
    def clock(self) -> float:
        """Seconds since the session began."""

    @property
    def upkeep(self) -> Mapping[str, float]:
        """Seconds of the clock that went to maintenance so far, inside verbs that took longer.

        By kind: "dewar", "filter", or whatever it is called. What a move or an exposure took is
        what it returned less what this grew by meanwhile: maintenance says nothing of how long the
        next one takes.
        """

    def squares(self) -> Sequence[Square]:
        """The squares of the atlas, opened or not."""

    def survey(self, square: str) -> Survey:
        """Go to a square, find its height, image it and find its holes. Again it is free."""

    def move(self, patch: Patch) -> float:
        """Move the stage to a patch and focus; the seconds it took."""

    def expose(self, hole: Hole) -> float:
        """Take the shots of a hole of the patch moved to last; the seconds it took."""

    def collect(self) -> list[Score]:
        """The scores that arrived since they were last collected, oldest first."""

    def wait(self, seconds: float) -> None:
        """Let time pass."""


def upkeep_of(microscope: Microscope) -> float:
    """Seconds of the clock that went to maintenance so far, of all kinds."""
    return sum(microscope.upkeep.values())


@runtime_checkable
class Autoloader(Microscope, Protocol):
    """A microscope that loads grids of a cassette itself: none is there in the beginning.

    `squares` are those of the grid that is loaded; to see its atlas for the first time takes time.
    """

    @property
    def grids(self) -> tuple[str, ...]:
        """Names of the grids, in order. Squares, patches and holes of them all differ by name."""

    def load(self, grid: str) -> float:
        """Load a grid instead of the one that is there; the seconds it took."""


@runtime_checkable
class Rehearsal(Microscope, Protocol):
    """A microscope whose grid can be collected again, and that knows what each hole gives.

    Simulators and recordings can; glass and ice cannot. Pilots are compared on it, and the
    clairvoyant goes by it. A reward is any function of a score (`coaf.cryoem.reward`); one that is
    None, as of a fit that failed, is worth 0 here: it is no micrograph that anybody can use.
    """

    def again(self) -> Self:
        """The same grid under the same microscope: its clock at 0, nothing opened or exposed."""

    def peek(self, square: str) -> Survey:
        """What a survey would show, at no cost: for yardsticks, not for pilots."""

    def worth(self, reward: Callable[[Score], float | None]) -> dict[str, float]:
        """By hole that was exposed: what its shots were worth together, scored or not."""

    def first_visit(self, reward: Callable[[Score], float | None], hole: str) -> float:
        """What a hole gives on a first visit to its patch while nothing is at fault."""
