"""A recording as a folder: `recording.toml`, `holes.csv` and `shots.csv`."""

import csv
import io
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.cryoem.recorded.build import HoleRow, ShotRow, from_rows
from coaf.cryoem.recorded.columns import MEASURED, RESERVED, SHOT, Column, RecordingError
from coaf.cryoem.recorded.description import Description, description_text, read_description
from coaf.cryoem.recorded.recording import Recording
from coaf.cryoem.recorded.sheet import Line, Sheet, read_sheet

DESCRIPTION, HOLES, SHOTS = "recording.toml", "holes.csv", "shots.csv"
_OF_HOLES = ("hole", "patch", "square", "tile", "grid", "x", "y")
_OF_SHOTS = ("hole", "shot", "when")


def read_folder(folder: Path) -> Recording:
    """Read what `write_recording` wrote, or a person."""
    files = tuple(Path(folder) / name for name in (DESCRIPTION, HOLES, SHOTS))
    said = read_description(files[0])
    holes = read_sheet(files[1], ("hole", "patch"))
    shots = read_sheet(files[2], ("hole", "shot"))
    there = {
        **_further(holes, _OF_HOLES, said, ("before",)),
        **_further(shots, _OF_SHOTS, said, ("shot", "measured")),
    }
    for name, told in said.columns.items():
        if name not in there:
            path = holes.path if told.role == "before" else shots.path
            raise RecordingError(
                f"{path}, line 1: there is no column {name!r}, which {DESCRIPTION} describes; "
                "add it, or take its description out"
            )
    described = {**said.columns, **there}  # in the order they are described
    known = [name for name, told in described.items() if told.role == "before"]
    taken = {name: told for name, told in described.items() if told.role != "before"}
    rows = _hole_rows(holes, known, said.name)
    return from_rows(
        said.name,
        rows,
        _shot_rows(shots, taken, {row.hole for row in rows}),
        described,
        said.seconds,
        provenance=said.provenance,
        files=files,
    )


def _further(
    sheet: Sheet, reserved: Sequence[str], said: Description, roles: Sequence[str]
) -> dict[str, Column]:
    """The columns of a sheet beside those that every recording has, and what they mean."""
    found = {}
    for name in sheet.columns:
        if name in reserved:
            continue
        where = f"{sheet.path}, line 1, column {name!r}"
        told = said.columns.get(name) or (MEASURED | SHOT).get(name)
        if name in RESERVED:
            raise RecordingError(f"{where}: it belongs into {HOLES if 'shot' in roles else SHOTS}")
        if told is None:
            raise RecordingError(
                f"{where}: {DESCRIPTION} does not say what it is; write there, under [columns], "
                f"{name} = {{ role = {f'{roles[0]}'!r} }}"
            )
        if told.role not in roles:
            raise RecordingError(
                f"{where}: its role is {told.role}; columns here have the role {' or '.join(roles)}"
            )
        found[name] = told
    return found


def _hole_rows(sheet: Sheet, columns: Sequence[str], name: str) -> list[HoleRow]:
    if not sheet.lines:
        raise RecordingError(f"{sheet.path} lists no holes")
    rows: dict[str, HoleRow] = {}
    lies_in: dict[tuple[str, str], tuple[str, Line]] = {}
    placed = {"x", "y"} & set(sheet.columns)
    if len(placed) == 1:
        raise RecordingError(f"{sheet.path}, line 1: there is only {placed.pop()} of x and y")
    for line in sheet.lines:
        hole, patch = line.name("hole"), line.name("patch")
        # A level that is not there is one of its kind, called as what it lies in.
        grid = line.name("grid") if "grid" in sheet.columns else name
        tile = line.name("tile") if "tile" in sheet.columns else ""
        square = line.name("square") if "square" in sheet.columns else tile or grid
        if hole in rows:
            raise RecordingError(f"{line.where('hole')}: hole {hole!r} is there a second time")
        tiled = [("square", square, "tile", tile), ("tile", tile, "grid", grid)]
        for what, which, level, above in (
            ("patch", patch, "square", square),
            *(tiled if "tile" in sheet.columns else [("square", square, "grid", grid)]),
        ):
            other, first = lies_in.setdefault((what, which), (above, line))
            if other != above:
                raise RecordingError(
                    f"{line.where(what)}: {what} {which!r} is in {level} {above!r}, and on line "
                    f"{first.number} in {other!r}; it lies in one, so give each a name of its own, "
                    f"such as {f'{above}/{which}'!r}"
                )
        x, y = (line.value(c) if placed else math.nan for c in ("x", "y"))
        known = [line.value(c) for c in columns]
        rows[hole] = HoleRow(hole, patch, square, grid, x, y, known, tile)
    return list(rows.values())


def _shot_rows(sheet: Sheet, columns: dict[str, Column], holes: set[str]) -> Iterable[ShotRow]:
    seen: dict[tuple[str, int], int] = {}
    for line in sheet.lines:
        hole, number = line.name("hole"), line.count("shot")
        if hole not in holes:
            raise RecordingError(f"{line.where('hole')}: {HOLES} has no hole {hole!r}")
        first = seen.setdefault((hole, number), line.number)
        if first != line.number:
            raise RecordingError(
                f"{line.where('shot')}: shot {number} of hole {hole!r} is there a second time; "
                f"line {first} has it"
            )
        when = line.value("when") if "when" in sheet.columns else math.nan
        values = {c: line.value(c, measured=told.role == "measured") for c, told in columns.items()}
        yield ShotRow(hole, number, when, values)


def write_recording(recording: Recording, folder: Path) -> Path:
    """Write a recording into a folder, which is made if it is not there.

    Each file is there whole or as it was before. A folder that holds another recording is left as
    it is; one that holds a recording of the same name is written anew.

    Returns
    -------
    Path
        The folder.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RecordingError(f"cannot make the folder {folder}: {error.strerror}") from error
    _check_own(folder, recording.name)
    texts = {
        HOLES: _holes_text(recording),
        SHOTS: _shots_text(recording),
        DESCRIPTION: description_text(recording),  # last: without one a folder is not complete
    }
    parts = {folder / f".{name}.part": text for name, text in texts.items()}
    try:
        for part, text in parts.items():
            _write(part, text)
        for part, name in zip(parts, texts, strict=True):
            os.replace(part, folder / name)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)
    return folder


def _check_own(folder: Path, name: str) -> None:
    there = [one for one in (DESCRIPTION, HOLES, SHOTS) if (folder / one).exists()]
    if not there:
        return
    if DESCRIPTION not in there:
        raise RecordingError(
            f"{folder} holds {there[0]} and no {DESCRIPTION}; name another folder, or empty it"
        )
    held = read_description(folder / DESCRIPTION).name
    if held != name:
        raise RecordingError(
            f"{folder} holds the recording {held!r}; name another folder for {name!r}"
        )


def _write(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _holes_text(held: Recording) -> str:
    patch = held.patch.tolist()
    columns: dict[str, Iterable[str]] = {
        "hole": held.holes,
        "patch": [held.patches[p] for p in patch],
        "square": [held.squares[p] for p in patch],
        "grid": [held.grids[p] for p in patch],
    }
    if held.tiles:
        columns["tile"] = [held.tiles[p] for p in patch]
    if not np.isnan([held.x, held.y]).all():
        columns |= {"x": _cells(held.x), "y": _cells(held.y)}
    known = {name: _cells(held.known[:, k]) for k, name in enumerate(held.columns)}
    return _csv({**columns, **known})


def _shots_text(held: Recording) -> str:
    shots = held.shots
    columns: dict[str, Iterable[str]] = {
        "hole": [held.holes[i] for i in shots.hole],
        "shot": map(str, shots.number.tolist()),
    }
    if not np.isnan(shots.when).all():
        columns["when"] = _cells(shots.when)
    return _csv({**columns, **{name: _cells(values) for name, values in shots.values.items()}})


def _cells(values: FloatArray) -> list[str]:
    return ["" if math.isnan(value) else repr(value) for value in values.tolist()]


def _csv(columns: dict[str, Iterable[str]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()
