"""Directives for the page on architecture, which is made from the sources whenever docs are built.

`rooms-picture` and `rooms-tables` read imports and docstrings; `round-picture` plays a round.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from pictures import draw_rooms, draw_round
from rooms import ROOT, Family, read_house, sources


def _inline(text: str) -> list[nodes.Node]:
    """Text with code in single backticks."""
    parts = text.split("`")
    return [nodes.literal("", part) if i % 2 else nodes.Text(part) for i, part in enumerate(parts)]


def _table(family: Family) -> nodes.table:
    group = nodes.tgroup("", *(nodes.colspec(colwidth=width) for width in (25, 75)), cols=2)
    rows = [
        nodes.row(
            "",
            nodes.entry("", nodes.paragraph("", "", nodes.literal("", module.name))),
            nodes.entry("", nodes.paragraph("", "", *_inline(module.about))),
        )
        for module in family.modules
    ]
    group += nodes.tbody("", *rows)
    return nodes.table("", group)


class _FromSources(SphinxDirective):
    """Made again when any source has changed."""

    def note_sources(self) -> None:
        for path in sources().values():
            self.env.note_dependency(str(path))


class RoomsPicture(_FromSources):
    def run(self) -> list[nodes.Node]:
        self.note_sources()
        return [nodes.raw("", draw_rooms(read_house()), format="html")]


class RoomsTables(_FromSources):
    def run(self) -> list[nodes.Node]:
        self.note_sources()
        sections: list[nodes.Node] = []
        for room in read_house().rooms:
            section = nodes.section("", nodes.title("", room.name), ids=[f"room-{room.name}"])
            section += nodes.paragraph("", "", *_inline(f"{room.about}."))
            for family in sorted(room.families, key=lambda family: family.name):
                if family.name:
                    name = nodes.literal("", f"{room.name}/{family.name}")
                    section += nodes.paragraph("", "", name, *_inline(f": {family.about}."))
                section += _table(family)
            sections.append(section)
        return sections


class RoundPicture(_FromSources):
    def run(self) -> list[nodes.Node]:
        self.note_sources()
        program = Path(__file__).with_name("one_round.py")
        played = subprocess.run(
            [sys.executable, str(program)],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdout=subprocess.PIPE,
            check=True,
        )
        return [nodes.raw("", draw_round(json.loads(played.stdout), ROOT), format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("rooms-picture", RoomsPicture)
    app.add_directive("rooms-tables", RoomsTables)
    app.add_directive("round-picture", RoundPicture)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
