"""A grid that was collected in full once: every decision can be played over it again."""

import csv
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from coaf.bandit.arrays import FloatArray, IntArray
from coaf.cryoem.reward import NO_FIT

LISTED = "*_by_hl.txt"
# 21mar02c_grid1c_00019gr_00023sq_v01_00006hl_v01_00005en-a: tile, square, patch, exposure, aligned
_NAME = re.compile(r"^(?P<patch>(?P<square>.+?\d+sq)(?:_v\d+)*_\d+hl)(?:_v\d+)*_\d+en(?:-.+)?$")


class Times(NamedTuple):
    """Seconds to survey a patch, to move to it, and to expose a hole; the paper's means."""

    survey: float = 12.09
    move: float = 51.99
    expose: float = 6.66


class RecordingError(ValueError):
    """A recording cannot be read: which file, which line, and what would be right."""


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """The holes of a recorded grid, patch after patch.

    Attributes
    ----------
    names
        Of the holes.
    predicted : (n,)
        A network's prediction of CTFMaxRes, in Å.
    ctf : (n,)
        CTFMaxRes as it turned out, in Å; NaN where there was no fit.
    x, y : (n,)
        Where the hole is in the image of its patch, in pixels from the centre.
    starts : (patches + 1,)
        Where each patch begins, and the end.
    patches, squares
        Names of the patches, and of the square that each lies in.
    files
        What was read.
    """

    names: tuple[str, ...]
    predicted: FloatArray
    ctf: FloatArray
    x: FloatArray
    y: FloatArray
    starts: IntArray
    patches: tuple[str, ...]
    squares: tuple[str, ...]
    files: tuple[Path, Path]

    @property
    def failed(self) -> int:
        """How many holes have no fit: they cost their time and are not good."""
        return int(np.isnan(self.ctf).sum())

    def good(self, cut: float) -> FloatArray:
        """1 for each hole whose fit is better than `cut` Å, else 0."""
        return np.where(np.nan_to_num(self.ctf, nan=math.inf) < cut, 1.0, 0.0)

    def part(self, patches: Sequence[int]) -> "Recording":
        """Some of the patches, as a recording of their own."""
        rows = np.concatenate([np.arange(self.starts[p], self.starts[p + 1]) for p in patches])
        counts = [self.starts[p + 1] - self.starts[p] for p in patches]
        return Recording(
            tuple(self.names[i] for i in rows),
            self.predicted[rows],
            self.ctf[rows],
            self.x[rows],
            self.y[rows],
            np.concatenate([[0], np.cumsum(counts)]),
            tuple(self.patches[p] for p in patches),
            tuple(self.squares[p] for p in patches),
            self.files,
        )


def read_recording(
    folder: Path | None = None, *, holes: Path | None = None, truth: Path | None = None
) -> Recording:
    """Read a recorded grid.

    Parameters
    ----------
    folder
        Holds one `*_by_hl.txt` and one CSV with the truth of all the holes it lists.
    holes, truth
        The files, where the folder has more than one of a kind, or other names.
    """
    if folder is not None and not Path(folder).is_dir():
        raise RecordingError(f"{folder} is not a folder")
    if holes is None:
        holes = _only_list(folder)
    listed = _read_list(Path(holes))
    if truth is None:
        truth, found = _matching_table(folder, set(listed))
    else:
        found = _read_table(Path(truth), set(listed))
        _check_all(listed, found, Path(truth))
    return _assemble(listed, found, (Path(holes), Path(truth)))


def _only_list(folder: Path | None) -> Path:
    if folder is None:
        raise RecordingError("give a folder, or the files with holes and truth")
    found = sorted(Path(folder).glob(LISTED))
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise RecordingError(f"{folder} should hold one {LISTED}, and has: {names}; name it: holes")
    return found[0]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RecordingError(f"cannot read {path}: {error}") from error


def _number(text: str, what: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise RecordingError(f"{where}: {what} is {text!r}; it must be a number")
    return value


def _read_list(path: Path) -> dict[str, float]:
    listed: dict[str, float] = {}
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        fields, where = line.split(), f"{path}, line {number}"
        if len(fields) != 2:
            raise RecordingError(f"{where}: expected a name and a prediction, got {line!r}")
        name, value = fields[0], _number(fields[1], "the prediction", where)
        if not 0.0 < value < math.inf:
            raise RecordingError(
                f"{where}: the prediction is {value} Å; it must be finite and above 0"
            )
        if name in listed:
            raise RecordingError(f"{where}: hole {name} is there a second time")
        if not _NAME.match(name):
            raise RecordingError(
                f"{where}: {name!r} does not name a square, patch and exposure, as "
                "..._00023sq_v01_00006hl_v01_00005en-a does"
            )
        listed[name] = value
    if not listed:
        raise RecordingError(f"{path} lists no holes")
    return listed


_Row = tuple[float, float, float]  # x, y, CTFMaxRes


def _read_table(path: Path, wanted: set[str]) -> dict[str, _Row]:
    """x, y and the truth of the wanted holes; rows of other levels are passed over."""
    found: dict[str, _Row] = {}
    for number, fields in enumerate(csv.reader(_lines(path)), start=1):
        if not fields or fields[0] not in wanted:
            continue
        name, where = fields[0], f"{path}, line {number}"
        if len(fields) < 4:
            raise RecordingError(f"{where}: expected name, x, y, CTFMaxRes, confidence")
        if name in found:
            raise RecordingError(f"{where}: hole {name} is there a second time")
        x, y = (_number(text, "a position", where) for text in fields[1:3])
        text = fields[3].strip()
        # A fit that failed is written in many ways; each is counted, none is a good hole.
        ctf = math.nan if text.lower() in ("", "nan", "inf") else _number(text, "CTFMaxRes", where)
        if ctf <= 0.0:
            raise RecordingError(f"{where}: CTFMaxRes is {ctf:g} Å; it must be above 0")
        found[name] = (x, y, math.nan if ctf >= NO_FIT else ctf)
    return found


def _check_all(listed: dict[str, float], found: dict[str, _Row], path: Path) -> None:
    missing = [name for name in listed if name not in found]
    if missing:
        raise RecordingError(
            f"{path} does not have the truth of {len(missing)} of {len(listed)} holes listed: "
            f"{missing[0]} for one"
        )


def _matching_table(folder: Path | None, wanted: set[str]) -> tuple[Path, dict[str, _Row]]:
    """The CSV with the truth of every hole. Several are as good as one if they agree."""
    if folder is None:
        raise RecordingError("give a folder, or the file with the truth")
    tables = sorted(Path(folder).glob("*.csv"))
    fitting: list[tuple[Path, dict[str, _Row]]] = []
    reasons = []
    for path in tables:
        try:
            found = _read_table(path, wanted)
        except RecordingError as error:
            reasons.append(str(error))
            continue
        if len(found) == len(wanted):
            fitting.append((path, found))
        else:
            reasons.append(f"{path.name} has the truth of {len(found)} of {len(wanted)} holes")
    if not fitting:
        told = "; ".join(reasons) or "it has no CSV"
        raise RecordingError(f"{folder} should hold a CSV with the truth of all holes: {told}")
    first = fitting[0][1]
    for path, found in fitting[1:]:
        if any(not np.allclose(found[n], first[n], equal_nan=True) for n in first):
            raise RecordingError(
                f"{fitting[0][0].name} and {path.name} in {folder} differ; name one: truth"
            )
    return fitting[0]


def _assemble(
    listed: dict[str, float], found: dict[str, _Row], files: tuple[Path, Path]
) -> Recording:
    members: dict[str, list[str]] = {}
    squares: dict[str, str] = {}
    for name in listed:
        match = _NAME.match(name)
        assert match is not None
        members.setdefault(match["patch"], []).append(name)
        squares[match["patch"]] = match["square"]
    patches = tuple(sorted(members))  # as the microscope numbered them, whatever the file's order
    names = tuple(name for patch in patches for name in sorted(members[patch]))
    x, y, ctf = np.array([found[name] for name in names]).T.copy()
    counts = [len(members[patch]) for patch in patches]
    return Recording(
        names,
        np.array([listed[name] for name in names]),
        ctf,
        x,
        y,
        np.concatenate([[0], np.cumsum(counts)]),
        patches,
        tuple(squares[patch] for patch in patches),
        files,
    )
