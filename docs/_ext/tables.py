"""Tables that can be read on a phone: what must stay on a line does, and the rest scrolls."""

import re

from docutils import nodes
from sphinx.application import Sphinx

NUMBER = re.compile(r"[<+\-−]?\s?\d.{0,22}")  # with its unit, its error, or its interval
BRACKETED = re.compile(r"[<+\-−]?\s?\d[^()]*\([^()]*\)")  # what is in brackets may go below it
MANY = 7  # columns, from which on a table is set in small print
ALIGNED = re.compile(r"\S {2,}\S.*\n.*\S {2,}\S")  # columns in what a program prints
LONG = 20  # letters, beyond which what a row is about needs some room


def _mark(_app: Sphinx, page: nodes.document) -> None:
    for block in page.findall(nodes.literal_block):
        if ALIGNED.search(block.astext()):
            block["classes"].append("aligned")
    for table in page.findall(nodes.table):
        if any(len(row) >= MANY for row in table.findall(nodes.row)):
            table["classes"].append("dense")
        for row in table.findall(nodes.row):
            if len(row[0].astext()) > LONG:
                row[0]["classes"].append("label")
            for entry in row:
                if BRACKETED.fullmatch(entry.astext()):
                    for text in list(entry.findall(nodes.Text)):
                        text.parent.replace(text, nodes.Text(re.sub(r" (?!\()", "\xa0", text)))
                elif NUMBER.fullmatch(entry.astext()):
                    entry["classes"].append("number")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", _mark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
