"""The reference has every public name, and no other."""

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"
ROOMS = ("coaf", "coaf.worlds", "coaf.cryoem")
# What these name in backticks may be listed: what others may bring, and the bounds.
PAGES = ("extending.md", "howto/own_model.md", "bounds.md")
CONTRACTS = "\n".join((DOCS / page).read_text("utf-8") for page in PAGES)
# What a page for users names in full, or imports, is public; these are for those who work on it.
INSIDE = ("architecture.md", "decisions.md", "release.md")
TAUGHT = "\n".join(
    page.read_text("utf-8")
    for page in [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]
    if "reference" not in page.parts and page.name not in INSIDE
)
DIRECTIVE = re.compile(r"^\.\. auto\w+:: (\S+)$", re.MULTILINE)
DOTTED = re.compile(r"`(coaf(?:\.\w+)+)")
IMPORTED = re.compile(r"^from (coaf[\w.]*) import (.+)$", re.MULTILINE)


def found(name: str) -> Any:
    """What a dotted name leads to."""
    above, _, last = name.rpartition(".")
    if above and hasattr(found(above), last):  # a function may have its module's name
        return getattr(found(above), last)
    return importlib.import_module(name)


def public() -> dict[str, Any]:
    """What the rooms export, and what pages name in full or import."""
    names = {f"{room}.{name}" for room in ROOMS for name in found(room).__all__}
    names |= set(DOTTED.findall(TAUGHT))
    for module, imported in IMPORTED.findall(TAUGHT):
        names |= {f"{module}.{name.partition(' as ')[0]}" for name in imported.split(", ")}
    return {name: found(name) for name in sorted(names)}


def reference() -> dict[str, Any]:
    pages = sorted((DOCS / "reference").glob("*.md"))
    names = [name for page in pages for name in DIRECTIVE.findall(page.read_text("utf-8"))]
    twice = {name for name in names if names.count(name) > 1}
    assert not twice, f"the reference has these twice: {sorted(twice)}"
    return {name: found(name) for name in names}


def documents(name: str, value: Any, names: dict[str, Any]) -> bool:
    """Whether a name, or another name of the same class, function or module, is among these."""
    return name in names or (hasattr(value, "__name__") and any(value is v for v in names.values()))


def is_contract(name: str, value: Any) -> bool:
    """A protocol, or named in backticks on one of the pages."""
    short = re.escape(name.rpartition(".")[2])
    return getattr(value, "_is_protocol", False) or bool(re.search(rf"`{short}\b", CONTRACTS))


def helper(value: Any) -> bool:
    """A module that is only named as the place where something is found."""
    return type(value).__name__ == "module" and value.__name__.startswith("coaf.")


def missing(public_names: dict[str, Any], named: dict[str, Any]) -> list[str]:
    return [
        name
        for name, value in public_names.items()
        if not documents(name, value, named) and not helper(value)
    ]


def strangers(public_names: dict[str, Any], named: dict[str, Any]) -> list[str]:
    return [
        name
        for name, value in named.items()
        if not documents(name, value, public_names) and not is_contract(name, value)
    ]


def test_every_public_name_is_in_the_reference() -> None:
    assert missing(public(), reference()) == []


def test_the_reference_names_nothing_that_is_not_public() -> None:
    assert strangers(public(), reference()) == []


@pytest.mark.parametrize("name", ["coaf.COAF", "coaf.cryoem.FAST", "coaf.bandit.rates.rate.Rate"])
def test_a_name_that_is_left_out_is_missed(name: str) -> None:
    named = reference()
    del named[name]
    assert missing(public(), named) == [name]


def test_a_name_that_is_not_public_is_noticed() -> None:
    name = "coaf.bandit.policies.ledger.Ledger"
    assert strangers(public(), reference() | {name: found(name)}) == [name]


def test_public_names_say_what_they_are() -> None:
    silent = [
        name
        for name, value in public().items()
        if callable(value) and not (value.__doc__ or "").strip()
    ]
    assert silent == []
