"""The docs build without a warning, ask no network for anything, and no link leads nowhere."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import coaf

DOCS = Path(__file__).resolve().parent.parent / "docs"
SOURCES = Path(coaf.__file__).parent
NEEDS = ("sphinx", "myst_parser", "furo", "grimp", "sphinx-mathjax-offline")


class Page(HTMLParser):
    """Where a page leads, what it loads, and the places in it that can be led to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.places: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name == "id" and value:
                self.places.add(value)
            elif name in ("href", "src", "data", "srcset", "poster") and value:
                (self.links if tag == "a" else self.loads).append(value)


def leads_nowhere(pages: dict[Path, Page]) -> Iterator[str]:
    """Links and loads within the docs that have no file, or no such place in it."""
    for path, page in pages.items():
        for link in (*page.links, *page.loads):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = unquote(parts.fragment)
            if not there.is_file():
                yield f"{path.name}: {link} has no file"
            elif place and there in pages and place not in pages[there].places:
                yield f"{path.name}: {link} has no such place"


def asks_a_network(pages: dict[Path, Page]) -> Iterator[str]:
    """What pages load from elsewhere; an ordinary link loads nothing."""
    for path, page in pages.items():
        for load in page.loads:
            if re.match(r"(https?:)?//", load):
                yield f"{path.name} loads {load}"


def included() -> list[Path]:
    """What pages include, from the folder of the docs."""
    return [
        (path.parent / name).relative_to(DOCS)
        for path in sorted(DOCS.rglob("*.md"))
        for name in re.findall(r"^```\{include\} (\S+)$", path.read_text("utf-8"), re.MULTILINE)
    ]


def read(folder: Path) -> dict[Path, Page]:
    return {path.resolve(): Page(path) for path in sorted(folder.rglob("*.html"))}


@pytest.mark.skipif(
    any(find_spec(name) is None for name in NEEDS), reason=f"building docs needs {', '.join(NEEDS)}"
)
def test_docs_build_and_stand_alone(tmp_path: Path) -> None:
    out = (tmp_path / "html").resolve()
    build = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", str(DOCS), str(out)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert build.returncode == 0, build.stderr
    pages = read(out)
    assert len(pages) > len(list(DOCS.rglob("*.md"))) / 2
    assert [path for path in included() if out / path.with_suffix(".html") in pages] == []
    assert list(asks_a_network(pages)) == []
    assert list(leads_nowhere(pages)) == []
    for sheet in out.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", sheet.read_text("utf-8"))

    # Types are named, formulas have what draws them, and the pictures show all there is.
    reference = "".join(path.read_text("utf-8") for path in (out / "reference").glob("*.html"))
    assert "FloatArray" in reference
    assert not re.search(r"ndarray\[|_NestedSequence|&lt;factory&gt;| object at 0x", reference)
    assert any("tex-svg.js" in load for load in pages[(out / "problem.html").resolve()].loads)
    architecture = drawn((out / "architecture.html").read_text("utf-8"))
    rooms = [path.parent for path in SOURCES.glob("*/__init__.py")]
    modules = [path for room in rooms for path in room.rglob("*.py") if path.name != "__init__.py"]
    unseen = [path.name for path in modules if f">{path.stem}<" not in architecture]
    assert unseen == []
    for verb in ("Round.__init__", ".decide<", ".commit<", ".learn<"):
        assert verb in architecture


def drawn(html: str) -> str:
    """With tooltips left out, and modules of packages in packages by their last name."""
    return re.sub(r">(?:\w+/)+(?=\w+<)", ">", re.sub(r"<title>.*?</title>", "", html))


def test_the_checks_see_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<p id="here"></p><a href="https://example.org/">elsewhere</a><a href="#here">fine</a>'
        '<a href="#gone">no place</a><a href="b.html">no file</a><img src="//example.org/x.png">'
        '<script src="https://example.org/x.js"></script>',
        encoding="utf-8",
    )
    pages = read(tmp_path)
    assert list(leads_nowhere(pages)) == [
        "a.html: #gone has no such place",
        "a.html: b.html has no file",
    ]
    assert list(asks_a_network(pages)) == [
        "a.html loads //example.org/x.png",
        "a.html loads https://example.org/x.js",
    ]
