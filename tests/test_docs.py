"""What the pages show is what happens: every fenced block of them runs, or is checked.

Python blocks of a page run one after another in one namespace, in an empty folder. A page that
needs more than it shows has it in a comment, `<!-- python ... -->`. A text block holds exactly what
the Python block before it printed. Commands are not run, but must be ones that exist.
"""

import contextlib
import io
import json
import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer.main
from markdown_it import MarkdownIt

from coaf.cli import app

ROOT = Path(__file__).resolve().parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if "_build" not in page.parts]
HIDDEN = "<!-- python\n"
COMMANDS = ("coaf", "make", "pip", "python")
READERS: dict[str, Callable[[str], Any]] = {"toml": tomllib.loads, "json": json.loads}


@dataclass(frozen=True)
class Block:
    """A fenced block, or a comment with Python in it."""

    page: Path
    line: int  # of its first line of content, from 1
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        line = 0 if token.map is None else token.map[0] + 2
        if token.type == "fence":
            yield Block(page, line, token.info.strip(), token.content)
        elif token.type == "code_block":
            yield Block(page, line - 1, "indented", token.content)
        elif token.type == "html_block" and token.content.startswith(HIDDEN):
            text = token.content.removeprefix(HIDDEN).rstrip().removesuffix("-->")
            yield Block(page, line, "hidden", text)


BLOCKS = [block for page in PAGES for block in blocks(page)]


def of(*languages: str) -> list[Block]:
    return [block for block in BLOCKS if block.language in languages]


def test_every_block_is_of_a_kind_that_is_checked() -> None:
    known = {"python", "hidden", "text", "sh", "console", "dockerfile", *READERS}
    unknown = [
        f"{block}: {block.language!r}"
        for block in BLOCKS
        if block.language not in known
        and not re.match(r"\{[a-z-]+\}", block.language)  # Sphinx checks directives
    ]
    assert not unknown
    for block in of(*READERS):
        READERS[block.language](block.text)


def test_text_follows_the_python_that_prints_it() -> None:
    alone = [
        str(block)
        for before, block in zip([None, *BLOCKS], BLOCKS, strict=False)
        if block.language == "text"
        and (before is None or before.page != block.page or before.language != "python")
    ]
    assert not alone


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any(block.page == page for block in of("python"))],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_python_runs_and_prints_what_is_shown(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)  # so that other processes find its classes
    namespace = vars(module)
    printed = ""
    for block in blocks(page):
        if block.language in ("python", "hidden"):
            # Empty lines before it, so that a traceback names the line of the page.
            code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
            held = io.StringIO()
            with contextlib.redirect_stdout(held):
                exec(code, namespace)
            printed = held.getvalue()
        elif block.language == "text":
            assert printed == block.text, f"{block} is not what was printed"


def commands_of(block: Block) -> Iterator[str]:
    """The commands of a block, without prompts and what they print."""
    for line in block.text.splitlines():
        if block.language == "console" and not line.startswith("$ "):
            continue
        if block.language == "dockerfile" and not line.startswith("RUN "):
            continue
        bare = line.removeprefix("$ ").removeprefix("RUN ").partition("  #")[0]
        yield from (part.strip() for part in bare.split("&&") if part.strip())


def check_command(command: str) -> None:
    """Raise an error if it could not be run as it stands."""
    name, *arguments = shlex.split(command.replace("python -m pip", "pip"))
    arguments = [str(ROOT) if word == "DIR" else word for word in arguments]
    assert name in COMMANDS, f"{command!r}: {name} is not checked"
    if name == "coaf":
        found: Any = typer.main.get_command(app)
        while hasattr(found, "commands"):
            name, *arguments = arguments
            if name == "--version":
                return
            assert name in found.commands, f"{command!r}: there is no command {name}"
            found = found.commands[name]
        found.make_context(name, arguments)  # reads the options, and refuses what is none
    elif name == "make":
        targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert set(arguments) <= set(targets), f"{command!r}: the Makefile has {targets}"
    elif name == "pip":
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        extras = [x for list_ in re.findall(r"\[(.*?)\]", command) for x in list_.split(",")]
        assert set(extras) <= set(project["optional-dependencies"]), command
    else:
        assert (ROOT / arguments[0]).is_file(), f"{command!r}: there is no {arguments[0]}"


@pytest.mark.parametrize("block", of("sh", "console", "dockerfile"), ids=str)
def test_commands_exist(block: Block) -> None:
    for command in commands_of(block):
        check_command(command)


def inline(page: Path) -> Iterator[str]:
    """What stands in backticks in a page's prose."""
    for token in MarkdownIt().enable("table").parse(page.read_text(encoding="utf-8")):
        for child in token.children or ():
            if child.type == "code_inline":
                yield child.content


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_named_in_prose_exist(page: Path) -> None:
    for text in inline(page):
        # `coaf reproduce ... --dask ADDRESS` and `coaf[dask]` are no commands as they stand.
        if re.match(r"(coaf|make|python) [a-z]", text) and "..." not in text:
            check_command(text)


@pytest.mark.parametrize(
    "wrong",
    [
        "coaf fly",
        "coaf run --wings 2",
        "coaf replay DIR --orders none",
        "coaf reproduce everything",
        "make tea",
        "pip install '.[tea]'",
        "python benchmarks/tea.py",
        "curl example.org",
    ],
)
def test_a_wrong_command_is_found(wrong: str) -> None:
    with pytest.raises(Exception, match=r".+"):
        check_command(wrong)


def test_links_of_the_front_pages_lead_somewhere() -> None:
    for page in ROOT.glob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (ROOT / target).exists(), f"{page.name} links to {target}"
