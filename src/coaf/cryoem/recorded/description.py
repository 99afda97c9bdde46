"""`recording.toml`: what a recording is called, what its columns mean, and what things took."""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from coaf.cryoem.recorded.columns import (
    Column,
    RecordingError,
    check_columns,
    check_name,
    check_text,
)
from coaf.cryoem.recorded.recording import Recording
from coaf.cryoem.recorded.seconds import Seconds
from coaf.cryoem.recorded.sheet import read_text
from coaf.cryoem.timing import SWITCHES

FORMAT = 1
_KEYS = ("format", "name", "seconds", "columns", "provenance")


class Description(NamedTuple):
    """What `recording.toml` says."""

    name: str
    seconds: Seconds
    columns: dict[str, Column]
    provenance: dict[str, str]


def read_description(path: Path) -> Description:
    """Read `recording.toml`."""
    text = read_text(path)
    try:
        # TOML knows no other ends of lines; those of an old Mac are an error.
        said = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise RecordingError(f"{path} is not TOML: {error}") from None
    try:
        return _described(said)
    except _WrongError as error:
        raise RecordingError(f"{path}, line {_line_of(error.keys, text)}: {error}") from None


class _WrongError(Exception):
    """What these keys say, one inside the other, cannot be."""

    def __init__(self, keys: Sequence[str], why: str) -> None:
        super().__init__(why)
        self.keys = tuple(keys)


@contextmanager
def _about(*keys: str, what: str = "") -> Iterator[None]:
    """What is found wrong is in what these keys say."""
    try:
        yield
    except (ValueError, OverflowError) as error:
        raise _WrongError(keys, f"{what}{error}") from None


def _line_of(keys: tuple[str, ...], text: str) -> int:
    """The line that says these keys, or the innermost that is there of what they are in."""
    table: tuple[str, ...] = ()
    found: dict[tuple[str, ...], int] = {(): 1}
    for number, line in enumerate(text.split("\n"), start=1):
        header = line.lstrip().startswith("[")
        here = _keys_of(line if header else f"{line.partition('=')[0]} = 0")
        table = here if header and here else table
        for depth in range(1, len(here) + 1 if here else 0):
            found.setdefault(here[:depth] if header else (*table, *here[:depth]), number)
    return next(found[keys[:n]] for n in range(len(keys), -1, -1) if keys[:n] in found)


def _keys_of(line: str) -> tuple[str, ...]:
    """The keys of a line of TOML, one inside the other; none if it has none."""
    try:
        said = tomllib.loads(line)
    except (tomllib.TOMLDecodeError, RecursionError):
        return ()
    keys: list[str] = []
    while isinstance(said, dict) and said:
        keys.append(next(iter(said)))
        said = said[keys[-1]]
    return tuple(keys)


def _described(said: dict[str, Any]) -> Description:
    _check_keys((), said, _KEYS, needed=("name", "seconds"))
    if said.get("format", FORMAT) != FORMAT:
        why = f"format is {said['format']!r}; this version reads {FORMAT}"
        raise _WrongError(("format",), why)
    name = _text(("name",), said["name"])
    with _about("name"):
        check_name("the recording", name)
    seconds = _table(("seconds",), said["seconds"])
    needed = [name for name in Seconds._fields if name not in SWITCHES]
    _check_keys(("seconds",), seconds, Seconds._fields, needed=needed)
    for key, value in seconds.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            why = f"seconds.{key} is {value!r}; it must be a number"
            raise _WrongError(("seconds", key), why)
        with _about("seconds", key, what="seconds: "):
            Seconds()._replace(**{key: value}).checked()
    columns: dict[str, Column] = {}
    for key, value in _table(("columns",), said.get("columns", {})).items():
        columns[key] = _column(key, _table(("columns", key), value))
        with _about("columns", key):
            check_columns({key: columns[key]})
    provenance = _table(("provenance",), said.get("provenance", {}))
    for key, value in provenance.items():
        if isinstance(value, dict | list):
            why = f"provenance.{key} is {value!r}; give text"
            raise _WrongError(("provenance", key), why)
        with _about("provenance", key):
            check_name("a key of provenance", key)
            check_text(f"provenance.{key}", str(value))
    times = Seconds(**seconds).checked()
    return Description(name, times, columns, {key: str(v) for key, v in provenance.items()})


def _column(name: str, said: dict[str, Any]) -> Column:
    where = ("columns", name)
    _check_keys(where, said, Column._fields, needed=("role",))
    return Column(**{key: _text((*where, key), value) for key, value in said.items()})


def _table(keys: tuple[str, ...], value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        where = ".".join(keys)
        raise _WrongError(keys, f"{where} is {value!r}; it must be a table, [{where}]")
    return value


def _text(keys: tuple[str, ...], value: Any) -> Any:
    if not isinstance(value, str):
        raise _WrongError(keys, f"{'.'.join(keys)} is {value!r}; it must be text in quotes")
    return value


def _check_keys(
    where: tuple[str, ...],
    said: Mapping[str, Any],
    allowed: Iterable[str],
    *,
    needed: Iterable[str],
) -> None:
    for key in said:
        if key not in allowed:
            why = f"there is no key {'.'.join((*where, key))}; there are {', '.join(allowed)}"
            raise _WrongError((*where, key), why)
    for key in needed:
        if key not in said:
            raise _WrongError((*where, key), f"{'.'.join((*where, key))} is missing")


def description_text(recording: Recording) -> str:
    """`recording.toml` of a recording."""
    lines = [f"format = {FORMAT}", f"name = {_quoted(recording.name)}", "", "[seconds]"]
    lines += [
        f"{key} = {value!r}"
        for key, value in recording.seconds._asdict().items()
        if value or key not in SWITCHES
    ]
    lines += ["", "[columns]"]
    for name, column in recording.described.items():
        told = (f"{key} = {_quoted(text)}" for key, text in column._asdict().items() if text)
        lines.append(f"{_key(name)} = {{ {', '.join(told)} }}")
    if recording.provenance:
        lines += ["", "[provenance]"]
        lines += [f"{_key(key)} = {_quoted(text)}" for key, text in recording.provenance.items()]
    return "\n".join(lines) + "\n"


def _key(text: str) -> str:
    return text if re.fullmatch("[A-Za-z0-9_-]+", text) else _quoted(text)


def _quoted(text: str) -> str:
    """A basic string: JSON's escapes are TOML's, but for one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
