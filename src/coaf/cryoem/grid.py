"""What a microscope is pointed at: a grid of squares, patches of holes in them, shots in holes.

Positions are stage coordinates in micrometres.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite

from coaf.bandit.arrays import number


@dataclass(frozen=True, slots=True)
class Hole:
    """A hole in the foil, or what a hole finder took for one.

    Parameters
    ----------
    name
        Unique on the grid.
    x, y
        Where it is on the stage, in µm.
    radius
        In µm. A grid may have holes of several sizes.
    shots
        How many micrographs one visit takes of it. Its reward is their sum.
    """

    name: str
    x: float
    y: float
    radius: float = 0.6
    shots: int = 1

    def __post_init__(self) -> None:
        if not (isfinite(self.x) and isfinite(self.y)):
            raise ValueError(f"hole {self.name!r} is at ({self.x}, {self.y}); give finite µm")
        number(f"radius of hole {self.name!r}", self.radius, above=0.0)
        if int(self.shots) != self.shots or self.shots < 1:
            raise ValueError(f"hole {self.name!r} has {self.shots} shots; it needs at least one")


@dataclass(frozen=True, slots=True)
class Patch:
    """Holes that one stage move reaches: a round.

    Attributes
    ----------
    name, square
        Its own name, and its square's.
    holes
        What beam shift reaches from its centre.
    x, y
        Its centre, where the stage goes.
    focus
        Where to focus, away from holes; None if nowhere was found.
    """

    name: str
    square: str
    holes: tuple[Hole, ...]
    x: float
    y: float
    focus: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if not self.holes:
            raise ValueError(f"patch {self.name!r} has no holes")
        check_unique("hole", (hole.name for hole in self.holes))


@dataclass(frozen=True, slots=True)
class Square:
    """A square as the atlas shows it: where it is, how large, and what its image says.

    Parameters
    ----------
    name
        Unique on the grid.
    x, y
        Its centre on the stage, in µm.
    size
        Its side, in µm.
    features
        What the atlas tells of it (`vision.square_features`).
    tile, grid
        What it lies in, where there are several: the coarser image, and the grid.
    """

    name: str
    x: float
    y: float
    size: float = 60.0
    features: tuple[float, ...] = ()
    tile: str = ""
    grid: str = ""


@dataclass(frozen=True, slots=True)
class Shot:
    """One micrograph: of which hole, and which of its shots."""

    hole: str
    number: int = 0


@dataclass(frozen=True, slots=True)
class Grid:
    """The squares of a grid."""

    name: str
    squares: tuple[Square, ...]

    def __post_init__(self) -> None:
        check_unique("square", (square.name for square in self.squares))


def check_unique(what: str, names: Iterable[str]) -> None:
    """An error that names what is there twice."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        more = f", and {len(twice) - 1} more" if len(twice) > 1 else ""
        raise ValueError(f"{what} {twice[0]!r} is there more than once{more}")
