"""A recording: what was known of every hole of a grid, and what each shot of it gave."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from coaf.bandit.arrays import FloatArray, IntArray, locked
from coaf.cryoem.grid import check_unique
from coaf.cryoem.microscope import Score
from coaf.cryoem.recorded.columns import (
    Column,
    RecordingError,
    check_columns,
    check_name,
    check_text,
    impossible,
)
from coaf.cryoem.recorded.seconds import Seconds
from coaf.cryoem.reward import NO_FIT, Reward


class Rewards(NamedTuple):
    """What the holes of a recording are worth.

    Attributes
    ----------
    rewards : (n,)
        The sum over the shots of each hole.
    missing
        How many shots have no reward; they count as 0.
    """

    rewards: FloatArray
    missing: int


@dataclass(frozen=True, slots=True, eq=False)
class Shots:
    """The shots of a recording, hole after hole.

    Attributes
    ----------
    hole : (m,)
        The index of its hole.
    number : (m,)
        Which of the hole's shots it is; ascending within a hole.
    when : (m,)
        Seconds since the session began; NaN where not known.
    values : name -> (m,)
        Columns; NaN where there is no value. A CTF of 100000 Å or more is a fit that failed, too.
    """

    hole: IntArray
    number: IntArray
    when: FloatArray
    values: Mapping[str, FloatArray]

    def __len__(self) -> int:
        return len(self.hole)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Recording:
    """The holes of a recorded grid, patch after patch, and their shots.

    Attributes
    ----------
    name
        Of the recording.
    holes
        Names; those of a patch stand together.
    starts : (patches + 1,)
        Where each patch begins, and the end.
    patches, squares, grids
        Names of the patches, and of the square and grid that each lies in.
    x, y : (n,)
        Where the holes are, in µm; NaN where not known.
    described
        Every column, by name. The names of those known before exposure are `columns`.
    known : (n, k)
        What was known of each hole before it was exposed; NaN where not known.
    shots
        What was taken. A hole may have several shots, or none.
    seconds
        What things took.
    provenance
        Where it comes from.
    files
        What was read.
    tiles
        Names of the tiles of the atlas that the patches lie in; without any, a grid is one tile.
    """

    name: str
    holes: tuple[str, ...]
    starts: IntArray
    patches: tuple[str, ...]
    squares: tuple[str, ...]
    grids: tuple[str, ...]
    x: FloatArray
    y: FloatArray
    described: Mapping[str, Column]
    known: FloatArray
    shots: Shots
    seconds: Seconds = Seconds()  # noqa: RUF009
    provenance: Mapping[str, str] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    tiles: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_name("the name of the recording", self.name)
        try:
            object.__setattr__(self, "seconds", Seconds(*self.seconds).checked())
        except ValueError as error:
            raise RecordingError(f"seconds of recording {self.name!r}: {error}") from None
        self._check_holes()
        check_columns(self.described)
        self._settle("known", self.known, (len(self.holes), len(self.columns)))
        self._check_shots()

    def __repr__(self) -> str:
        return (
            f"Recording({self.name!r}: {len(self.shots)} shots of {len(self.holes)} holes in "
            f"{len(self.patches)} patches)"
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of what is known before exposure: the columns of `known`."""
        return tuple(name for name, told in self.described.items() if told.role == "before")

    @property
    def patch(self) -> IntArray:
        """(n,): the index of the patch of each hole."""
        return np.repeat(np.arange(len(self.patches)), np.diff(self.starts))

    @property
    def counts(self) -> IntArray:
        """(n,): how many shots each hole has."""
        return np.bincount(self.shots.hole, minlength=len(self.holes))

    @property
    def failed(self) -> int:
        """How many shots have no CTF fit; 0 where no CTF was recorded at all."""
        return int(np.isnan(self.shots.values.get("ctf", np.zeros(0))).sum())

    def column(self, name: str) -> FloatArray:
        """(n,): what a column says of each hole."""
        if name not in self.columns:
            there = ", ".join(self.columns) or "none"
            raise RecordingError(
                f"recording {self.name!r} has no column {name!r} known before exposure; "
                f"there are: {there}"
            )
        return self.known[:, self.columns.index(name)]

    def shots_of(self, hole: int) -> range:
        """Where the shots of a hole, given by its index, stand in `shots`."""
        first, last = np.searchsorted(self.shots.hole, [hole, hole + 1]).tolist()
        return range(first, last)

    def scores(self, hole: int) -> list[Score]:
        """The scores of a hole, given by its index, shot by shot, as if told at once."""
        return [self._score(i) for i in self.shots_of(hole)]

    def worth(self, reward: Reward) -> Rewards:
        """What each hole is worth by this reward, all its shots together."""
        given = [reward(self._score(i)) for i in range(len(self.shots))]
        each = np.array([0.0 if value is None else value for value in given])
        summed = np.bincount(self.shots.hole, each, minlength=len(self.holes))
        return Rewards(summed.astype(np.float64), given.count(None))

    def part(self, patches: Sequence[int]) -> "Recording":
        """Some of the patches, as a recording of their own."""
        return self._keep([i for p in patches for i in range(*self.starts[p : p + 2].tolist())])

    def seen_by(self, columns: Sequence[str]) -> "Recording":
        """The same with no columns known before exposure but these."""
        kept = [self.column(name) for name in columns]  # an error for those that are not there
        described = {
            name: told
            for name, told in self.described.items()
            if told.role != "before" or name in columns
        }
        order = [name for name in described if name in columns]
        known = (
            np.column_stack([kept[columns.index(n)] for n in order])
            if order
            else (np.zeros((len(self.holes), 0)))
        )
        return replace(self, described=described, known=known)

    def playable(self) -> "Recording":
        """The holes that a pilot can be tried on: known whole before exposure, and with shots."""
        fine = np.isfinite(self.known).all(axis=1) & (self.counts > 0)
        if not fine.any():
            raise RecordingError(
                f"no hole of recording {self.name!r} has both a shot and a number in every column "
                f"known before exposure ({', '.join(self.columns) or 'none'})"
            )
        return self if fine.all() else self._keep(np.flatnonzero(fine).tolist())

    def _keep(self, holes: list[int]) -> "Recording":
        patch = self.patch[holes]
        first = np.flatnonzero(np.diff(patch, prepend=-1))
        patches = patch[first].tolist()
        rows = [row for hole in holes for row in self.shots_of(hole)]
        shots = Shots(
            np.repeat(np.arange(len(holes)), self.counts[holes]),
            self.shots.number[rows],
            self.shots.when[rows],
            {name: values[rows] for name, values in self.shots.values.items()},
        )
        return replace(
            self,
            holes=tuple(self.holes[i] for i in holes),
            starts=np.append(first, len(holes)),
            patches=tuple(self.patches[p] for p in patches),
            squares=tuple(self.squares[p] for p in patches),
            grids=tuple(self.grids[p] for p in patches),
            tiles=tuple(self.tiles[p] for p in patches if self.tiles),
            x=self.x[holes],
            y=self.y[holes],
            known=self.known[holes],
            shots=shots,
        )

    def _score(self, row: int) -> Score:
        values = {
            name: float(column[row])
            for name, column in self.shots.values.items()
            if not math.isnan(column[row])
        }
        ctf, particles = values.pop("ctf", None), values.pop("particles", None)
        hole, when = self.holes[self.shots.hole[row]], float(self.shots.when[row])
        return Score(hole, int(self.shots.number[row]), ctf, particles, when, when, values)

    def _settle(self, name: str, value: Any, shape: tuple[int, ...]) -> None:
        object.__setattr__(self, name, _numbers(f"{name} of recording {self.name!r}", value, shape))

    def _check_holes(self) -> None:
        if not self.holes:
            raise RecordingError(f"recording {self.name!r} has no holes")
        _check_names("hole", self.holes)
        _check_names("patch", self.patches)
        levels = (
            *map(len, (self.patches, self.squares, self.grids)),
            len(self.starts) - 1,
        )
        if len(set(levels)) > 1:
            raise RecordingError(
                f"recording {self.name!r} has patches, squares, grids and starts for "
                f"{levels} patches; each is one entry a patch, and starts one more"
            )
        starts = np.array(self.starts, dtype=np.int64)
        if starts[0] != 0 or starts[-1] != len(self.holes) or (np.diff(starts) < 1).any():
            raise RecordingError(
                f"starts of recording {self.name!r} must rise from 0 to its {len(self.holes)} holes"
            )
        object.__setattr__(self, "starts", locked(starts))
        self._check_inside("square", self.squares, "grid", self.grids)
        if self.tiles:
            if len(self.tiles) != len(self.patches):
                raise RecordingError(
                    f"recording {self.name!r} has {len(self.tiles)} tiles for {len(self.patches)} "
                    "patches; each is one entry a patch"
                )
            self._check_inside("square", self.squares, "tile", self.tiles)
            self._check_inside("tile", self.tiles, "grid", self.grids)
        for name in ("x", "y"):
            self._settle(name, getattr(self, name), (len(self.holes),))
        for key, text in self.provenance.items():
            check_name("a key of provenance", key)
            check_text(f"provenance {key!r}", text)

    def _check_inside(
        self, what: str, inner: Sequence[str], level: str, outer: Sequence[str]
    ) -> None:
        """Each lies in one of what is coarser."""
        of: dict[str, str] = {}
        for name, lies_in in zip(inner, outer, strict=True):
            check_name(f"a {what}", name)
            check_name(f"a {level}", lies_in)
            if of.setdefault(name, lies_in) != lies_in:
                raise RecordingError(
                    f"{what} {name!r} is in {level}s {of[name]!r} and {lies_in!r}; it lies in one"
                )

    def _check_shots(self) -> None:
        shots, m = self.shots, len(self.shots)
        named = [name for name, told in self.described.items() if told.role != "before"]
        if set(shots.values) != set(named):
            raise RecordingError(
                f"shots of recording {self.name!r} have the columns {sorted(shots.values)}; "
                f"described are {sorted(named)}"
            )
        hole, number = (np.array(v, dtype=np.int64) for v in (shots.hole, shots.number))
        if len(number) != m or (m and not 0 <= hole.min() <= hole.max() < len(self.holes)):
            raise RecordingError(
                f"shots of recording {self.name!r} must each name one of its holes"
            )
        if (number < 0).any() or not np.all(
            (np.diff(hole) > 0) | ((np.diff(hole) == 0) & (np.diff(number) > 0))
        ):
            raise RecordingError(
                f"shots of recording {self.name!r} must stand hole after hole, by number from 0 on"
            )
        given = {name: np.array(shots.values[name], dtype=np.float64) for name in named}
        if "ctf" in given:
            given["ctf"][given["ctf"] >= NO_FIT] = math.nan
        values = {name: _numbers(f"column {name!r}", found, (m,)) for name, found in given.items()}
        when = _numbers("when", shots.when, (m,))
        for name, column in {"when": when, **values}.items():
            least = float(np.min(column, initial=np.inf, where=~np.isnan(column)))
            if why := impossible(name, least):
                raise RecordingError(f"{name} of recording {self.name!r} is {least:g}; {why}")
        object.__setattr__(self, "shots", Shots(locked(hole), locked(number), when, values))


def _numbers(what: str, value: Any, shape: tuple[int, ...]) -> FloatArray:
    """Numbers, or NaN where there is none."""
    found: FloatArray = np.array(value, dtype=np.float64)
    if found.shape != shape:
        raise RecordingError(f"{what} has shape {found.shape}; it must be {shape}")
    if np.isinf(found).any():
        raise RecordingError(f"{what} has infinite entries; NaN stands for what is not known")
    return locked(found)


def _check_names(what: str, names: Sequence[str]) -> None:
    for name in names:
        check_name(f"a {what}", name)
    try:
        check_unique(what, names)
    except ValueError as error:
        raise RecordingError(str(error)) from None
