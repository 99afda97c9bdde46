"""A sheet of text as people and programs write it: read so that what is wrong can be found."""

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from coaf.cryoem.recorded.columns import RecordingError, check_name, impossible
from coaf.cryoem.reward import NO_FIT


def read_text(path: Path) -> str:
    """A file of UTF-8, with or without a mark at its beginning."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RecordingError(f"cannot read {path}: {error.strerror or error}") from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise RecordingError(
            f"cannot read {path}: line {line} is not UTF-8 (byte {data[error.start]:#04x}); save "
            "the file as UTF-8 text"
        ) from error


def parse_number(text: str, where: str) -> float:
    """A number, which may be infinite but is never NaN."""
    try:
        value = math.nan if "_" in text else float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise RecordingError(f"{where}: {text!r} is not a number, such as 3.8")
    return value


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a sheet."""

    path: Path
    number: int
    cells: Mapping[str, str]

    def where(self, column: str) -> str:
        """What an error begins with."""
        return f"{self.path}, line {self.number}, column {column!r}"

    def name(self, column: str) -> str:
        """A name."""
        text = self.cells[column]
        try:
            check_name(f"a {column}", text)
        except RecordingError as error:
            raise RecordingError(f"{self.where(column)}: {error}") from None
        return text

    def count(self, column: str) -> int:
        """A whole number from 0 on."""
        text = self.cells[column]
        if not (text.isascii() and text.isdecimal() and len(text) < 19):
            raise RecordingError(
                f"{self.where(column)}: {text!r} is not a whole number from 0 on, such as 0 or 12"
            )
        return int(text)

    def value(self, column: str, *, measured: bool = False) -> float:
        """A number; NaN where the cell is empty, or a measurement failed."""
        text = self.cells[column]
        if not text or (measured and text.lower() in ("nan", "+nan", "-nan")):
            return math.nan
        value = parse_number(text, self.where(column))
        # A fit that failed is written in many ways.
        if column == "ctf" and value >= NO_FIT:
            return math.nan
        if math.isinf(value):
            raise RecordingError(
                f"{self.where(column)}: {text!r} is not finite; leave the cell empty where there "
                "is no number"
            )
        if why := impossible(column, value):
            raise RecordingError(f"{self.where(column)}: it is {value:g}; {why}")
        return value


@dataclass(frozen=True, slots=True)
class Sheet:
    """The lines of a file whose first line names the columns."""

    path: Path
    columns: tuple[str, ...]
    lines: tuple[Line, ...]


def read_sheet(path: Path, needed: Sequence[str]) -> Sheet:
    """Read a CSV that has at least the needed columns. Blank lines are passed over."""
    found = records(path)
    number, columns = next(found, (1, []))
    if not columns:
        raise RecordingError(
            f"{path} is empty; its first line must name the columns: {', '.join(needed)}, …"
        )
    _check_header(path, number, columns, needed)
    lines = []
    for number, cells in found:
        if len(cells) != len(columns):
            raise RecordingError(
                f"{path}, line {number}: it has {len(cells)} cells, and the header "
                f"{len(columns)}: {', '.join(columns)}"
            )
        lines.append(Line(path, number, dict(zip(columns, cells, strict=True))))
    return Sheet(path, tuple(columns), tuple(lines))


def records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The number of the line that each record begins on, and its cells."""
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    while True:
        number = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise RecordingError(f"{path}, line {number}: {error}") from None
        if cells is None:
            return
        cells = [cell.strip() for cell in cells]
        if any(cells):
            yield number, cells


def _check_header(path: Path, number: int, columns: list[str], needed: Sequence[str]) -> None:
    where = f"{path}, line {number}"
    if len(columns) == 1 and any(mark in columns[0] for mark in ";\t|"):
        raise RecordingError(f"{where}: columns must be separated by commas: {columns[0]!r}")
    for at, name in enumerate(columns, start=1):
        if not name:
            raise RecordingError(f"{where}: column {at} has no name")
        if columns.index(name) != at - 1:
            raise RecordingError(f"{where}: column {name!r} is there twice")
    for name in needed:
        if name not in columns:
            raise RecordingError(
                f"{where}: there is no column {name!r}; there are {', '.join(columns)}"
            )
