"""What is known of a grid, and what may be done with it: squares, patches, holes."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import inf
from typing import Literal

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.cryoem.grid import Hole, Patch, Square, check_unique
from coaf.cryoem.microscope import Survey
from coaf.cryoem.pilot import Open

# free: may be taken. planned: on a list that someone works through. advised: on one that someone
# may follow. told: instructed, and not reported. unknown: it may have been exposed, and is not told
# again until that is settled. taken: exposed. failed: tried in vain, and left. excluded: by a
# person. deleted: no hole.
State = Literal[
    "free", "planned", "advised", "told", "unknown", "taken", "failed", "excluded", "deleted"
]
LISTED: tuple[State, ...] = ("planned", "advised")  # which ends with the list
Barred = Literal["excluded", "deleted"]


@dataclass(slots=True)
class HoleEntry:
    """A hole: where it is, and how things stand with it."""

    patch: str
    position: int
    state: State = "free"
    barred: Barred | None = None  # it is not to be taken, once it is settled that it was not
    failures: int = 0  # before the beam was on
    forced: str = ""  # by whom
    plan: str | None = None


@dataclass(slots=True)
class PatchEntry:
    """A patch: its holes, and what was done there."""

    patch: Patch
    features: FloatArray
    placed: bool = True  # whether its holes are where their positions say
    entered: bool = False
    since: float = -inf  # when it was gone to last
    explored: bool = False
    excluded: bool = False  # holes added to it, too
    failures: int = 0  # of moves to it
    lost: bool = False  # it could not be reached too often
    gone: bool = False  # it can never be had again
    open: Open | None = None  # as pilots see it; None where it must be made anew


@dataclass(slots=True)
class SquareEntry:
    """A square: whether it was opened, and if not why it is not to be."""

    square: Square
    grid: str | None = None
    opened: bool = False
    refused: str = ""
    excluded: bool = False  # what is found in it, too
    failures: int = 0  # to open it
    forced: str = ""  # by whom it is to be opened next
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
        self.grid: str | None = None  # that is loaded
        self._asked: dict[str, None] = {}  # holes that were ever asked for, in that order
        self._offers: dict[str, Open | None] = {}  # by patch, as they were when last asked for
        self._changed: dict[str, None] = {}  # patches of which that may not hold any more

    def load(self, grid: str) -> None:
        """Another grid is loaded: what is on others cannot be had."""
        if self.grid is None:  # what was seen before is on the one that was there
            for entry in self.squares.values():
                entry.grid = grid
        self.grid = grid
        self._changed.update(dict.fromkeys(self.patches))

    # Squares

    def saw(self, squares: Iterable[Square]) -> None:
        """The atlas shows these; what was known of them stays."""
        for square in squares:
            if square.name in self.squares:
                self.squares[square.name].square = square
            else:
                self.squares[square.name] = SquareEntry(square, self.grid)

    def check_atlas(self, squares: Iterable[Square]) -> None:
        """Refuse squares that are on another grid."""
        for square in squares:
            known = self.squares.get(square.name)
            if known is not None and known.grid != self.grid:
                raise ValueError(
                    f"square {square.name!r} is on grid {known.grid!r}, and {self.grid!r} is "
                    "loaded; squares of several grids need names that tell them apart"
                )

    def here(self, square: str) -> bool:
        """Whether a square is on the grid that is loaded."""
        return self.square(square).grid == self.grid

    def refuse(self, name: str, why: str) -> None:
        """A square is not to be opened."""
        square = self.square(name)
        square.refused, square.forced = why, ""

    def pardon(self, what: str, name: str) -> None:
        """A square, move or exposure that failed was not to blame: what was given up is in play."""
        if what == "square":
            square = self.square(name)
            square.failures, square.refused = 0, ""
        elif what == "move":
            patch = self.patch(name)
            patch.failures, patch.lost = 0, False
            self.changed(name)
        elif what == "exposure":
            self.hole(name).failures = 0
            if self.hole(name).state == "failed":
                self.mark(name, "free")

    def exclude(self, what: str, name: str, *, out: bool) -> None:
        """What is found later in a square or a patch is barred, or is not any more."""
        if what == "square":
            self.square(name).excluded = out
        for patch in self._patches_of(what, name):
            self.patches[patch].excluded = out

    def unopened(self, grid: str | None = None) -> list[Square]:
        """Squares of a grid that may be opened, of the one that is loaded unless given."""
        on = self.grid if grid is None else grid
        here = (e for e in self.squares.values() if e.grid == on)
        return [e.square for e in here if not e.opened and not e.refused]

    def opened(self, survey: Survey) -> Survey:
        """Take in a survey; returned are the patches that are new or have changed, whole."""
        square = self.squares.setdefault(
            survey.square, SquareEntry(Square(survey.square, 0.0, 0.0), self.grid)
        )
        square.opened = True
        changed = []
        for patch in survey.patches:
            known = self.patches.get(patch.name)
            if known is None:
                known = self.patches[patch.name] = PatchEntry(
                    patch, survey.features[patch.name], survey.placed
                )
                square.patches.append(patch.name)
                first = 0
            else:
                first = len(known.patch.holes)
                known.patch = replace(known.patch, holes=(*known.patch.holes, *patch.holes))
                rows = [known.features, survey.features[patch.name]]
                known.features = np.concatenate(rows)
                known.placed = known.placed and survey.placed
            self.changed(patch.name)
            barred: Barred | None = "excluded" if square.excluded or known.excluded else None
            for k, hole in enumerate(patch.holes, start=first):
                self.holes[hole.name] = HoleEntry(patch.name, k, barred or "free", barred)
            changed.append(patch.name)
        return self.survey(survey.square, changed)

    def survey(self, square: str, patches: Iterable[str]) -> Survey:
        """Patches of a square as they are known now."""
        known = [self.patches[name] for name in patches]
        return Survey(
            square,
            tuple(p.patch for p in known),
            {p.patch.name: p.features for p in known},
            placed=all(p.placed for p in known),
        )

    def check(self, survey: Survey, columns: int | None = None) -> None:
        """Refuse a survey that does not fit together, or not to what is known."""
        check_unique("patch", (patch.name for patch in survey.patches))
        check_unique("hole", (hole.name for patch in survey.patches for hole in patch.holes))
        for patch in survey.patches:
            known = self.patches.get(patch.name)
            was = survey.square if known is None else known.patch.square
            if not patch.square == survey.square == was:
                raise ValueError(
                    f"patch {patch.name!r} of square {survey.square!r} is said to be of "
                    f"{was if patch.square == survey.square else patch.square!r}"
                )
            for hole in patch.holes:
                if hole.name in self.holes:
                    raise ValueError(
                        f"hole {hole.name!r} is known already; move it, or name it anew"
                    )
            self._check_features(
                patch, survey, columns if known is None else known.features.shape[1]
            )

    def _check_features(self, patch: Patch, survey: Survey, columns: int | None) -> None:
        shape = survey.features[patch.name].shape if patch.name in survey.features else ()
        right = len(shape) == 2 and shape[0] == len(patch.holes)
        if not right or columns not in (None, shape[1]):
            wide = "some" if columns is None else str(columns)
            raise ValueError(
                f"features of patch {patch.name!r} have shape {shape}; give a row for each of its "
                f"{len(patch.holes)} holes, with {wide} columns"
            )

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
        entry.state = state if state != "free" or entry.barred is None else entry.barred
        if state != "free":
            entry.forced = ""
        if state not in LISTED:
            entry.plan = None
        self.changed(entry.patch)

    def bar(self, name: str, why: Barred) -> None:
        """A hole is not to be taken; one that may have been exposed is settled first."""
        entry = self.hole(name)
        entry.barred, entry.forced = entry.barred if entry.barred == "deleted" else why, ""
        if entry.state in ("free", *LISTED, "failed", "excluded"):
            self.mark(name, "free")

    def free(self, name: str, *, forced: str = "") -> None:
        """A hole may be taken again, its patch reached again; or is to be taken next, by whom."""
        entry = self.hole(name)
        entry.failures, entry.barred = 0, None if entry.barred == "excluded" else entry.barred
        patch = self.patches[entry.patch]
        patch.failures, patch.lost = 0, False
        self.changed(entry.patch)
        if entry.state in ("excluded", "failed") or (forced and entry.state in ("free", *LISTED)):
            self.mark(name, "free")
            entry.forced = forced if entry.state == "free" else ""
            self._asked[name] = None

    def reachable(self, patch: str) -> bool:
        """Whether a patch can be gone to."""
        known = self.patches[patch]
        return not (known.gone or known.lost) and self.here(known.patch.square)

    def moved(self, name: str, x: float, y: float) -> Survey:
        """A hole is elsewhere; its patch as it is now."""
        entry = self.hole(name)
        known = self.patches[entry.patch]
        holes = list(known.patch.holes)
        holes[entry.position] = replace(holes[entry.position], x=x, y=y)
        known.patch = replace(known.patch, holes=tuple(holes))
        self.changed(entry.patch)
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
        patches = self._patches_of(what, name)
        return [hole.name for patch in patches for hole in self.patch(patch).patch.holes]

    def _patches_of(self, what: str, name: str) -> list[str]:
        if what == "hole":
            return []
        return [name] if what == "patch" else self.square(name).patches

    # What is offered

    def changed(self, patch: str) -> None:
        """What is known of a patch has changed."""
        self.patches[patch].open = None
        self._changed[patch] = None

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

    def offered(self) -> tuple[Open, ...]:
        """Patches that can be gone to, with holes in play."""
        for name in self._changed:
            found = self.open(name)
            self._offers[name] = found if found.rest and self.reachable(name) else None
        self._changed.clear()
        return tuple(one for one in self._offers.values() if one is not None)

    def forced(self) -> str | None:
        """A hole that someone wants to be taken next: the first that was asked for."""
        held = ((name, self.holes[name]) for name in self._asked)
        wanted = (n for n, e in held if e.forced and e.state == "free" and self.reachable(e.patch))
        return next(wanted, None)

    def planned(self, plan: str) -> list[str]:
        """What is still to be taken of a plan."""
        return [name for name, entry in self.holes.items() if entry.plan == plan]
