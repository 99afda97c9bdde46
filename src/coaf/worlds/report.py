"""Self-contained HTML reports: one file, no request leaves the machine, fit for print."""

import base64
import io
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE = """
:root { color-scheme: light dark; --ink: #1c1f23; --paper: #fff; --soft: #4a5560; --line: #d9dde2;
  --rule: #9aa4ad; --link: #0059a0; --yes: #00694d; --no: #a63c00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7ea; --paper: #15181c; --soft: #a3adb7;
  --line: #353b42; --rule: #66707a; --link: #7ab8f0; --yes: #3fd0a0; --no: #ff9a5c; }
  figure img { filter: invert(.915) hue-rotate(180deg); } }
body { font: 16px/1.55 system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif;
  color: var(--ink); background: var(--paper); margin: 2.5rem auto; max-width: 68rem;
  padding: 0 1.25rem; }
h1 { font-size: 1.8rem; line-height: 1.25; margin: 0 0 .3rem; }
h2 { font-size: 1.25rem; margin: 2.6rem 0 .6rem; padding-top: .9rem;
  border-top: 1px solid var(--line); }
p { max-width: 46rem; margin: .6rem 0; }
p.lead { color: var(--soft); font-size: 1.05rem; }
nav { margin: 1rem 0; font-size: .95rem; }
nav a { margin-right: 1.1rem; }
a { color: var(--link); }
table { border-collapse: collapse; margin: .8rem 0; font-size: .94rem; }
caption { text-align: left; color: var(--soft); padding-bottom: .35rem; }
th, td { text-align: left; vertical-align: top; padding: .34rem .9rem .34rem 0;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; border-bottom: 1px solid var(--rule); }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.scroll { overflow-x: auto; }
figure { margin: 1.2rem 0; }
figure img { width: 100%; height: auto; }
figcaption { color: var(--soft); font-size: .94rem; max-width: 46rem; }
details { margin: .8rem 0; }
summary { cursor: pointer; color: var(--link); }
.yes { color: var(--yes); font-weight: 600; white-space: nowrap; }
.no { color: var(--no); font-weight: 600; white-space: nowrap; }
footer { margin-top: 3rem; padding-top: .8rem; border-top: 1px solid var(--line);
  color: var(--soft); font-size: .9rem; }
@media print { body { margin: 0; max-width: none; } nav { display: none; }
  figure, tr { break-inside: avoid; } }
"""

Cell = str | float | int | bool | None


class Page:
    """A page that is built from top to bottom, and written as one file.

    Text is text: whatever it holds is escaped.

    Parameters
    ----------
    title, lead
        What it is about, and the first lines.
    style, script
        More of both, for what is added by `inline`.

    Examples
    --------
    >>> report = Page("Good micrographs per hour", lead="One grid, two policies.")
    >>> report.section("Result")
    >>> report.table(["policy", "rate"], [["take all", 44.0], ["coaf", 98.0]])
    >>> "98</td>" in report.html()
    True
    """

    def __init__(self, title: str, *, lead: str = "", style: str = "", script: str = "") -> None:
        self.title, self._style, self._script = title, _STYLE + style, script
        self._sections: list[str] = []
        self._parts: list[str] = [f"<h1>{escape(title)}</h1>"]
        if lead:
            self._parts.append(f'<p class="lead">{escape(lead)}</p>')
        self._contents = len(self._parts)  # links to the sections stand here

    def section(self, heading: str) -> None:
        """Begin a section."""
        self._sections.append(heading)
        self._parts.append(f'<h2 id="s{len(self._sections)}">{escape(heading)}</h2>')

    def text(self, paragraph: str) -> None:
        """Add a paragraph."""
        self._parts.append(f"<p>{escape(paragraph)}</p>")

    def table(
        self,
        headings: Sequence[str],
        rows: Iterable[Sequence[Cell]],
        *,
        caption: str = "",
        folded: str = "",
    ) -> None:
        """Add a table; numbers are rounded and aligned. `folded` hides it behind these words."""
        body = [list(row) for row in rows]
        numeric = [
            bool(body) and all(isinstance(row[k], float | int | None) for row in body)
            for k in range(len(headings))
        ]
        yes_no = [all(isinstance(row[k], bool) for row in body) for k in range(len(headings))]
        right = [n and not b for n, b in zip(numeric, yes_no, strict=True)]
        head = "".join(_cell("th", h, r) for h, r in zip(headings, right, strict=True))
        lines = "".join(
            f"<tr>{''.join(_cell('td', c, r) for c, r in zip(row, right, strict=True))}</tr>\n"
            for row in body
        )
        title = f"<caption>{escape(caption)}</caption>" if caption else ""
        table = f"<table>{title}<thead><tr>{head}</tr></thead><tbody>\n{lines}</tbody></table>"
        whole = f'<div class="scroll">{table}</div>'
        if folded:
            whole = f"<details><summary>{escape(folded)}</summary>{whole}</details>"
        self._parts.append(whole)

    def figure(self, drawing: bytes, *, caption: str, alt: str) -> None:
        """Add a figure, drawn as SVG; `alt` says what it shows to those who cannot see it."""
        data = base64.b64encode(drawing).decode()
        image = f'<img src="data:image/svg+xml;base64,{data}" alt="{escape(alt, quote=True)}">'
        self._parts.append(f"<figure>{image}<figcaption>{escape(caption)}</figcaption></figure>")

    def inline(self, html: str) -> None:
        """Add HTML or SVG as it is: who makes it escapes what it holds."""
        self._parts.append(html)

    def footer(self, text: str) -> None:
        """Add the small print."""
        self._parts.append(f"<footer>{escape(text)}</footer>")

    def html(self) -> str:
        """The page."""
        links = "".join(
            f'<a href="#s{number}">{escape(heading)}</a>'
            for number, heading in enumerate(self._sections, start=1)
        )
        parts = list(self._parts)
        if len(self._sections) > 1:
            parts.insert(self._contents, f"<nav>{links}</nav>")
        if self._script:
            parts.append(f"<script>{self._script}</script>")
        body = "\n".join(parts)
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{escape(self.title)}</title>\n<style>{self._style}</style></head>\n"
            f"<body>\n{body}\n</body></html>\n"
        )

    def write(self, path: Path) -> Path:
        """Write the page."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.html(), encoding="utf-8")
        return path


def _cell(tag: str, value: Cell, right: bool) -> str:
    kind = ' class="number"' if right else ""
    if isinstance(value, bool):
        kind, text = (' class="yes"', "yes") if value else (' class="no"', "no")
    elif value is None:
        text = "–"
    elif isinstance(value, float):
        text = f"{value:.4g}"
    else:
        text = f"{value:,}" if isinstance(value, int) else value
    return f"<{tag}{kind}>{escape(text)}</{tag}>"


def svg(figure: "Figure") -> bytes:
    """A figure as SVG, the same bytes for the same figure."""
    import matplotlib as mpl  # an extra

    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # all is in its place, and need not be placed for each file
    held = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "coaf", "svg.fonttype": "path"}):
        figure.savefig(held, format="svg", metadata={"Date": None})
    return held.getvalue()


def save(figure: "Figure", folder: Path, name: str) -> list[Path]:
    """A figure as PNG and SVG files."""
    folder.mkdir(parents=True, exist_ok=True)
    png, vector = folder / f"{name}.png", folder / f"{name}.svg"
    vector.write_bytes(svg(figure))
    figure.savefig(png, dpi=150)
    return [png, vector]
