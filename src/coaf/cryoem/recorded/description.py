"""`recording.toml`: what a recording is called, what its columns mean, and what things took."""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
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
    try:
        # TOML knows no other ends of lines; those of an old Mac are an error.
        said = tomllib.loads(read_text(path))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise RecordingError(f"{path} is not TOML: {error}") from None
    try:
        return _described(said)
    except ValueError as error:
        raise RecordingError(f"{path}: {error}") from None


def _described(said: dict[str, Any]) -> Description:
    _check_keys("", said, _KEYS, needed=("name", "seconds"))
    if said.get("format", FORMAT) != FORMAT:
        raise RecordingError(f"format is {said['format']!r}; this version reads {FORMAT}")
    name = _text("name", said["name"])
    check_name("the recording", name)
    seconds = _table("seconds", said["seconds"])
    needed = [name for name in Seconds._fields if name not in SWITCHES]
    _check_keys("seconds.", seconds, Seconds._fields, needed=needed)
    for key, value in seconds.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise RecordingError(f"seconds.{key} is {value!r}; it must be a number")
    try:
        times = Seconds(**seconds).checked()
    except (ValueError, OverflowError) as error:
        raise RecordingError(f"seconds: {error}") from None
    columns = {
        key: _column(key, _table(f"columns.{key}", value))
        for key, value in _table("columns", said.get("columns", {})).items()
    }
    check_columns(columns)
    provenance = _table("provenance", said.get("provenance", {}))
    for key, value in provenance.items():
        check_name("a key of provenance", key)
        if isinstance(value, dict | list):
            raise RecordingError(f"provenance.{key} is {value!r}; give text")
        check_text(f"provenance.{key}", str(value))
    return Description(name, times, columns, {key: str(v) for key, v in provenance.items()})


def _column(name: str, said: dict[str, Any]) -> Column:
    _check_keys(f"columns.{name}.", said, Column._fields, needed=("role",))
    return Column(**{key: _text(f"columns.{name}.{key}", value) for key, value in said.items()})


def _table(where: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise RecordingError(f"{where} is {value!r}; it must be a table, [{where}]")
    return value


def _text(where: str, value: Any) -> Any:
    if not isinstance(value, str):
        raise RecordingError(f"{where} is {value!r}; it must be text in quotes")
    return value


def _check_keys(
    where: str, said: Mapping[str, Any], allowed: Iterable[str], *, needed: Iterable[str]
) -> None:
    for key in said:
        if key not in allowed:
            raise RecordingError(f"there is no key {where}{key}; there are {', '.join(allowed)}")
    for key in needed:
        if key not in said:
            raise RecordingError(f"{where}{key} is missing")


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
