"""The rooms of the package, their families of modules, and who imports whom: read, never listed.

A room is a package right below the root. A family is a package right below a room, with all that is
in it, or the modules that stand in the room itself.
"""

import ast
import importlib.util
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from pathlib import Path

import grimp

ROOT = "coaf"


@dataclass(frozen=True)
class Module:
    """A file: its name within its family, and the first sentence of its docstring."""

    name: str
    about: str


@dataclass
class Family:
    """Modules that belong together; the name is empty for those of the room itself."""

    name: str
    about: str = ""
    modules: list[Module] = field(default_factory=list)


@dataclass
class Room:
    """A room, the most importing family first; `imports` counts those from family to family."""

    name: str
    about: str
    families: list[Family]
    imports: Counter[tuple[str, str]]


@dataclass
class House:
    """The rooms, the most importing first; `imports` counts those from room to room."""

    rooms: list[Room]
    imports: Counter[tuple[str, str]]


def first_sentence(text: str | None) -> str:
    """The first paragraph of a docstring up to its first full stop, on one line."""
    paragraph = " ".join((text or "").strip().partition("\n\n")[0].split())
    return paragraph.partition(". ")[0].rstrip(".")


def read_house() -> House:
    """What the sources say."""
    paths = sources()
    found = {name: _place(name, paths) for name in paths}
    places = {name: place for name, place in found.items() if place is not None}
    families: dict[str, dict[str, Family]] = {}
    for name, (room, family) in sorted(places.items()):
        line = first_sentence(ast.get_docstring(ast.parse(paths[name].read_text("utf-8"))))
        inner = name.removeprefix(f"{ROOT}.{room}").removeprefix(f".{family}").strip(".")
        one = families.setdefault(room, {}).setdefault(family, Family(family))
        if inner:
            one.modules.append(Module(inner.replace(".", "/"), line))
        else:
            one.about = line
    between: Counter[tuple[str, str]] = Counter()
    within: dict[str, Counter[tuple[str, str]]] = {room: Counter() for room in families}
    for importer, imported in _imports():
        if importer in places and imported in places:
            (room, family), (other, theirs) = places[importer], places[imported]
            if room != other:
                between[room, other] += 1
            elif family != theirs:
                within[room][family, theirs] += 1
    # Importers come last of the sorter, and first on the page.
    order = TopologicalSorter(
        {room: {other for one, other in between if one == room} for room in families}
    ).static_order()
    rooms = [
        Room(room, families[room][""].about, _ordered(families[room], within[room]), within[room])
        for room in reversed(list(order))
    ]
    return House(rooms, between)


def sources() -> dict[str, Path]:
    """Every module of the package, and its file."""
    spec = importlib.util.find_spec(ROOT)
    assert spec is not None
    assert spec.origin is not None
    root = Path(spec.origin).parent
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join((ROOT, *(part for part in parts if part != "__init__")))] = path
    return found


def _imports() -> Iterable[tuple[str, str]]:
    graph = grimp.build_graph(ROOT, cache_dir=None)
    for module in sorted(graph.modules):
        for imported in sorted(graph.find_modules_directly_imported_by(module)):
            yield module, imported


def _place(module: str, paths: dict[str, Path]) -> tuple[str, str] | None:
    """The room and the family of a module; the root's own modules have none."""
    parts = module.split(".")[1:]
    if not parts or paths[f"{ROOT}.{parts[0]}"].name != "__init__.py":
        return None
    package = len(parts) > 1 and paths[".".join((ROOT, *parts[:2]))].name == "__init__.py"
    return parts[0], parts[1] if package else ""


def _ordered(families: dict[str, Family], imports: Counter[tuple[str, str]]) -> list[Family]:
    """An order with few imports that point up: none that moving one family would make fewer."""
    order = sorted(families)

    def upward(names: list[str]) -> int:
        at = {name: i for i, name in enumerate(names)}
        return sum(count for (one, other), count in imports.items() if at[one] > at[other])

    better = True
    while better:
        better = False
        for name in list(order):
            rest = [other for other in order if other != name]
            moved = min(([*rest[:i], name, *rest[i:]] for i in range(len(order))), key=upward)
            if upward(moved) < upward(order):
                order, better = moved, True
    return [families[name] for name in order]
