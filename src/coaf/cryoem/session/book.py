"""What is known of a grid, and what may be done with it: squares, patches, holes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.cryoem.grid import Hole, Patch, Square
from coaf.cryoem.microscope import Survey
from coaf.cryoem.pilot import Open

# free: may be taken. planned: on a list that someone works through. told: instructed, and not
# reported. unknown: it may have been exposed, and is not told again until that is settled.
# taken: exposed. failed: tried in vain, and left. excluded: by a person. deleted: no hole.
State = Literal["free", "planned", "told", "unknown", "taken", "failed", "excluded", "deleted"]


@dataclass(slots=True)
class HoleEntry:
    """A hole: where it is, and how things stand with it."""

    patch: str
    position: int
    state: State = "free"
    tries: int = 0
    forced: str = ""  # by whom
    plan: str | None = None


@dataclass(slots=True)
class PatchEntry:
    """A patch: its holes, and what was done there."""

    patch: Patch
    features: FloatArray
    entered: bool = False
    explored: bool = False
    failures: int = 0
    gone: bool = False  # it can never be had again
    open: Open | None = None  # as pilots see it; None where it must be made anew


@dataclass(slots=True)
class SquareEntry:
    """A square: whether it was opened, and if not why it is not to be."""

    square: Square
    opened: bool = False
    refused: str = ""
    grid: str | None = None  # where there are several
    patches: list[str] = field(default_factory=list)


class Book:
    """Squares, patches and holes by name.

    Every change of a hole's state goes through `mark`, so that what pilots are offered is always
    what may be taken.
    """

    def __init__(self) -> None:
        self.squares: dict[str, SquareEntry] = {}
        self.patches: dict[str, PatchEntry] = {}
        self.holes: dict[str, HoleEntry] = {}

    # Squares

    def saw(self, squares: Iterable[Square]) -> None:
        """The atlas shows these; what was known of them stays."""
        for square in squares:
            if square.name in self.squares:
                self.squares[square.name].square = square
            else:
                self.squares[square.name] = SquareEntry(square)

    def unopened(self) -> list[Square]:
        """Squares that may be opened."""
        return [e.square for e in self.squares.values() if not e.opened and not e.refused]

    def opened(self, survey: Survey, grid: str | None = None) -> Survey:
        """Take in a survey; returned are the patches that are new or have changed, whole."""
        square = self.squares.setdefault(
            survey.square, SquareEntry(Square(survey.square, 0.0, 0.0))
        )
        square.opened, square.grid = True, grid
        changed = []
        for patch in survey.patches:
            self._check_new(patch)
            known = self.patches.get(patch.name)
            if known is None:
                known = self.patches[patch.name] = PatchEntry(patch, survey.features[patch.name])
                square.patches.append(patch.name)
                first = 0
            else:
                first = len(known.patch.holes)
                known.patch = replace(known.patch, holes=(*known.patch.holes, *patch.holes))
                rows = [known.features, survey.features[patch.name]]
                known.features, known.open = np.concatenate(rows), None
            for k, hole in enumerate(patch.holes, start=first):
                self.holes[hole.name] = HoleEntry(patch.name, k)
            changed.append(patch.name)
        return self.survey(survey.square, changed)

    def survey(self, square: str, patches: Iterable[str]) -> Survey:
        """Patches of a square as they are known now."""
        known = [self.patches[name] for name in patches]
        return Survey(
            square, tuple(p.patch for p in known), {p.patch.name: p.features for p in known}
        )

    def _check_new(self, patch: Patch) -> None:
        known = self.patches.get(patch.name)
        if known is not None and known.patch.square != patch.square:
            raise ValueError(
                f"patch {patch.name!r} is of square {patch.square!r}, and was of "
                f"{known.patch.square!r}"
            )
        for hole in patch.holes:
            if hole.name in self.holes:
                raise ValueError(f"hole {hole.name!r} is known already; move it, or name it anew")

    # Holes

    def hole(self, name: str) -> HoleEntry:
        """What is known of a hole."""
        if name not in self.holes:
            raise ValueError(f"there is no hole {name!r} in this session")
        return self.holes[name]

    def patch(self, name: str) -> PatchEntry:
        """What is known of a patch."""
        if name not in self.patches:
            raise ValueError(f"there is no patch {name!r} in this session")
        return self.patches[name]

    def square(self, name: str) -> SquareEntry:
        """What is known of a square."""
        if name not in self.squares:
            raise ValueError(f"there is no square {name!r} in this session")
        return self.squares[name]

    def mark(self, name: str, state: State) -> None:
        """How things stand with a hole has changed."""
        entry = self.hole(name)
        entry.state = state
        if state != "free":
            entry.forced = ""
        if state != "planned":
            entry.plan = None
        self.patches[entry.patch].open = None

    def moved(self, name: str, x: float, y: float) -> Survey:
        """A hole is elsewhere; its patch as it is now."""
        entry = self.hole(name)
        known = self.patches[entry.patch]
        holes = list(known.patch.holes)
        holes[entry.position] = replace(holes[entry.position], x=x, y=y)
        known.patch, known.open = replace(known.patch, holes=tuple(holes)), None
        return self.survey(known.patch.square, [entry.patch])

    def the_hole(self, name: str) -> Hole:
        """A hole as the grid has it."""
        entry = self.hole(name)
        return self.patches[entry.patch].patch.holes[entry.position]

    def named(self, what: str, name: str) -> list[str]:
        """The holes of a hole, a patch or a square."""
        if what == "hole":
            self.hole(name)
            return [name]
        patches = [name] if what == "patch" else self.square(name).patches
        return [hole.name for patch in patches for hole in self.patch(patch).patch.holes]

    # What is offered

    def open(self, name: str) -> Open:
        """A patch as pilots see it."""
        known = self.patch(name)
        if known.open is None:
            rest = tuple(
                k
                for k, hole in enumerate(known.patch.holes)
                if self.holes[hole.name].state == "free"
            )
            known.open = Open(known.patch, rest, known.entered, known.explored)
        return known.open

    def offered(self) -> Iterator[Open]:
        """Patches that can be gone to, with holes in play."""
        for name, known in self.patches.items():
            if not known.gone and (found := self.open(name)).rest:
                yield found

    def forced(self) -> str | None:
        """A hole that someone wants to be taken next."""
        wanted = (n for n, e in self.holes.items() if e.forced and e.state == "free")
        return next((n for n in wanted if not self.patches[self.holes[n].patch].gone), None)

    def planned(self, plan: str) -> list[str]:
        """What is still to be taken of a plan."""
        return [name for name, entry in self.holes.items() if entry.plan == plan]
