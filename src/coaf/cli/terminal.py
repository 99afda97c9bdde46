"""Where commands print: sentences and tables that any terminal, pipe or file can take."""

import codecs
import os
import sys
import unicodedata
from collections.abc import Sequence
from io import TextIOWrapper
from textwrap import fill

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

console = Console()
errors = Console(stderr=True)

# How a character that an output cannot encode is written instead. Accents are left away by rule.
PLAIN = {
    "Γ": "Gamma",
    "θ": "theta",
    "μ": "mu",
    "ξ": "xi",
    "Σ": "sum",
    "±": "+-",
    "–": "-",
    "—": "-",
    "−": "-",
    "×": "x",
    "·": "*",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "→": "->",
    "√": "sqrt ",
    "‖": "||",
    "‘": "'",
    "’": "'",
    "“": '"',
    "”": '"',
    "•": "*",
}


def plain(text: str) -> str:
    """The text in ASCII, as well as that can be done.

    Examples
    --------
    >>> plain("3.8 Å ± 0.1, Γ*, “é” … 漢")
    '3.8 A +- 0.1, Gamma*, "e" ... ?'
    """
    return "".join(PLAIN.get(letter) or _bare(letter) for letter in text)


def _bare(letter: str) -> str:
    parts = unicodedata.normalize("NFKD", letter)  # a letter, then its accents
    kept = "".join(part for part in parts if part.isascii())
    return kept or ("" if unicodedata.combining(letter) else "?")


def _instead(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return plain(error.object[error.start : error.end]), error.end


codecs.register_error("coaf.plain", _instead)


def never_fail_to_encode() -> None:
    """From now on, what stdout and stderr cannot encode is written in ASCII instead."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            encoding = "ascii" if _asks_for_ascii() else stream.encoding
            stream.reconfigure(encoding=encoding, errors="coaf.plain")


def _asks_for_ascii() -> bool:
    """Whether the locale says so: Python takes C for UTF-8, which such a terminal cannot show."""
    said = os.environ.get("LC_ALL") or os.environ.get("LANG")
    overruled = {"PYTHONIOENCODING", "PYTHONUTF8"} & os.environ.keys()
    return said in ("C", "POSIX") and not overruled


def say(text: str, *, to: Console = console) -> None:
    """Print a sentence. A terminal gets it in lines, but a path or an address stays whole."""
    if to.is_terminal:
        text = "\n".join(
            fill(line, to.width, break_long_words=False, break_on_hyphens=False)
            for line in text.splitlines()
        )
    to.print(Text(text), soft_wrap=True)


def show(
    title: str,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    below: Sequence[Sequence[str]] = (),
) -> None:
    """Print a table; where it is too wide without lines as well, row by row as a list.

    So no number is cut. The first column holds names, the others numbers. Rows `below` stand under
    a line.
    """
    unbound = console.options.update(max_width=10_000)
    for lines in (True, False):
        table = _table(title, headings, rows, below, lines=lines)
        if console.measure(table, options=unbound).maximum <= console.width:
            console.print(table)
            return
    say(title)
    length = max(map(len, headings[1:]))
    for name, *values in (*rows, *below):
        say(name)
        for heading, value in zip(headings[1:], values, strict=True):
            if value:
                say(f"  {heading:{length}}  {value}")


def _table(
    title: str,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    below: Sequence[Sequence[str]],
    *,
    lines: bool,
) -> Table:
    """A table with lines around its cells, or under its headings alone."""
    if lines:
        table = Table(title=title)
    else:
        table = Table(
            title=title, box=SIMPLE, show_edge=False, pad_edge=False, collapse_padding=True
        )
    for k, heading in enumerate(headings):
        table.add_column(heading, justify="right" if k else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    table.add_section()
    for row in below:
        table.add_row(*row, style="dim")
    return table
