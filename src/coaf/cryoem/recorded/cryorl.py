"""CryoRL's two files: a list of holes with predictions, and a sheet with the truth."""

import math
import re
from pathlib import Path

import numpy as np

from coaf.cryoem.recorded.build import APART, HoleRow, ShotRow, from_rows
from coaf.cryoem.recorded.columns import MEASURED, Column, RecordingError
from coaf.cryoem.recorded.recording import Recording
from coaf.cryoem.recorded.seconds import Seconds
from coaf.cryoem.recorded.sheet import parse_number, read_text, records
from coaf.cryoem.reward import NO_FIT

HOLE_LIST = "*_by_hl.txt"
# 21mar02c_grid1c_00019gr_00023sq_v01_00006hl_v01_00005en-a: tile, square, patch, exposure, aligned
_NAME = re.compile(
    r"^(?P<patch>(?P<square>(?P<tile>.+?\d+gr(?:_v\d+)*(?=_))?.*?\d+sq)(?:_v\d+)*_\d+hl)"
    r"(?:_v\d+)*_\d+en(?:-.+)?$"
)
_PIXEL = 0.01  # µm
_COLUMNS = {
    "prediction": Column("before", "Å", "CTFMaxRes that a network predicts"),
    "ctf": MEASURED["ctf"],
}


def read_cryorl(
    folder: Path | None = None, *, holes: Path | None = None, truth: Path | None = None
) -> Recording:
    """Read a grid that was exposed in full; the prediction is known before exposure.

    Offsets are in pixels of the patch's image, whose size is not told, and patches have no place
    of their own: positions are made of pixels of 0.01 µm and patches in a row.

    Parameters
    ----------
    folder
        Holds one `*_by_hl.txt` and one CSV with the truth of all the holes it lists.
    holes, truth
        The files, where the folder has more than one of a kind, or other names.
    """
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
    found = sorted(Path(folder).glob(HOLE_LIST))
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise RecordingError(
            f"{folder} should hold one {HOLE_LIST}, and has: {names}; name it: holes"
        )
    return found[0]


def _read_list(path: Path) -> dict[str, float]:
    listed: dict[str, float] = {}
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        if not line.strip():
            continue
        fields, where = line.split(), f"{path}, line {number}"
        if len(fields) != 2:
            raise RecordingError(f"{where}: expected a name and a prediction, got {line!r}")
        name, value = fields[0], parse_number(fields[1], f"{where}, the prediction")
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
    for number, fields in records(path):
        if fields[0] not in wanted:
            continue
        name, where = fields[0], f"{path}, line {number}"
        if len(fields) < 4:
            raise RecordingError(f"{where}: expected name, x, y, CTFMaxRes, confidence")
        if name in found:
            raise RecordingError(f"{where}: hole {name} is there a second time")
        x, y = (parse_number(text, f"{where}, a position") for text in fields[1:3])
        if not (math.isfinite(x) and math.isfinite(y)):
            raise RecordingError(f"{where}: the position is ({x}, {y}); it must be finite")
        text = fields[3]
        # A fit that failed is written in many ways; each is counted, none is a good hole.
        ctf = (
            math.nan
            if text.lower() in ("", "nan", "inf")
            else parse_number(text, f"{where}, CTFMaxRes")
        )
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
    name = files[0].name.removesuffix(HOLE_LIST[1:]).strip() or "cryorl"
    rows: list[HoleRow] = []
    places: dict[str, float] = {}
    # In order of names, as the microscope numbered them, whatever the file's order.
    for patch, hole, square, tile in sorted(map(_levels, listed)):
        x, y, _ = found[hole]
        place = places.setdefault(patch, APART * len(places))
        x, y = place + _PIXEL * x, _PIXEL * y
        rows.append(HoleRow(hole, patch, square, name, x, y, [listed[hole]], tile))
    shots = (ShotRow(hole, 0, values={"ctf": found[hole][2]}) for hole in listed)
    told = {
        "format": "CryoRL",
        "positions": f"in patches only: {_PIXEL} µm a pixel is made up, and patches stand in a row",
        "seconds": "means of the paper",
    }
    return from_rows(name, rows, shots, _COLUMNS, Seconds(), provenance=told, files=files)


def _levels(hole: str) -> tuple[str, str, str, str]:
    match = _NAME.match(hole)
    assert match is not None
    return match["patch"], hole, match["square"], match["tile"] or ""
