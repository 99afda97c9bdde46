"""The columns of a recording: what they mean, and what may stand in them."""

from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

from coaf.cryoem.circumstances import CIRCUMSTANCES

Role = Literal["before", "shot", "measured"]
ROLES: tuple[Role, ...] = get_args(Role)


class RecordingError(ValueError):
    """A recording cannot be: which file, line and column, and what would be right."""


class Column(NamedTuple):
    """What a column of numbers means.

    Parameters
    ----------
    role
        "before": known of a hole before it is exposed. "shot": known when a shot is taken.
        "measured": found out from the shot.
    unit, meaning
        For people.
    """

    role: Role
    unit: str = ""
    meaning: str = ""


# These mean the same in every recording, and need no description.
RESERVED = ("hole", "patch", "square", "tile", "grid", "x", "y", "shot", "when")
# So do these, which rewards are made of, and those that shots are taken under; a recording may say
# more about them.
MEASURED = {
    "ctf": Column("measured", "Å", "resolution of the CTF fit"),
    "particles": Column("measured", "", "particles picked"),
}
SHOT = {name: Column("shot", *told) for name, told in CIRCUMSTANCES.items()}


def impossible(column: str, value: float) -> str:
    """Why a number cannot stand in a column; empty if it can."""
    if column == "ctf" and value <= 0.0:
        return "a resolution is above 0 Å, and a fit that failed has an empty cell"
    if column == "particles" and value < 0.0:
        return "give a count from 0 on, or an empty cell where none were picked"
    if column == "when" and value < 0.0:
        return "give seconds since the session began, from 0 on"
    return ""


def check_columns(described: Mapping[str, Column]) -> None:
    """An error that names what is wrong with the description of a column."""
    for name, told in described.items():
        check_name("a column", name)
        if name in RESERVED:
            raise RecordingError(
                f"column {name!r} needs no description: it means the same in every recording"
            )
        if told.role not in ROLES:
            raise RecordingError(
                f"the role of column {name!r} is {told.role!r}; there are {', '.join(ROLES)}"
            )
        if name in MEASURED and told.role != "measured":
            raise RecordingError(
                f"the role of column {name!r} is {told.role!r}; it must be measured"
            )
        for text in (told.unit, told.meaning):
            check_text(f"the description of column {name!r}", text)


def check_name(what: str, name: str) -> None:
    """A name is any text that can be seen."""
    if not name or name != name.strip() or not name.isprintable():
        raise RecordingError(
            f"{what} is called {name!r}; a name is text on one line, without spaces at its ends"
        )


def check_text(what: str, text: str) -> None:
    """Text is what UTF-8 can hold."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RecordingError(f"{what} is no text that a file can hold: {error}") from None
