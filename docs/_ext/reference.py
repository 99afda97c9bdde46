"""The API reference: short names of array types, and links to the names people import."""

import importlib
import re
from typing import Any

import numpy as np
import numpy.typing as npt
from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

ROOMS = ("coaf", "coaf.worlds", "coaf.cryoem")  # that have public names


# What arrays are called in the reference, by what they hold; `Array` where that varies.
ARRAYS = {np.float64: "FloatArray", np.bool_: "BoolArray", np.int64: "IntArray"}


def _named(name: str) -> type:
    return type(name, (), {"__module__": "builtins"})


_NAMED = {kind: _named(name) for kind, name in ARRAYS.items()}
_ARRAY = _named("Array")


class _Arrays:
    def __class_getitem__(cls, kind: Any) -> type:
        return _NAMED.get(kind, _ARRAY)


def name_arrays() -> None:
    """Give array types short names, before anything that is documented is imported.

    NumPy's are long: `ndarray[tuple[Any, ...], dtype[float64]]`, and half a page for `ArrayLike`.
    Sphinx can keep the names of aliases only in modules that postpone their annotations.
    """
    vars(npt).update(NDArray=_Arrays, ArrayLike=_named("ArrayLike"))


def public_names() -> dict[str, Any]:
    """What the package and its rooms export, by the shortest name of each."""
    found: dict[int, tuple[str, Any]] = {}
    for room in ROOMS:
        module = importlib.import_module(room)
        for name in module.__all__:
            value = getattr(module, name)
            found.setdefault(id(value), (f"{room}.{name}", value))
    return dict(found.values())


def _homes() -> dict[str, str]:
    """Where a class or function is defined -> its public name."""
    return {
        f"{value.__module__}.{value.__qualname__}": name
        for name, value in public_names().items()
        if hasattr(value, "__qualname__")
    }


def _link(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> nodes.reference | None:
    """Signatures name a class by its module; the reference has it by its public name."""
    target = node.get("reftarget", "")
    known: dict[str, str] = app.coaf_homes  # type: ignore[attr-defined]
    name = known.get(target)
    if name is None and "." not in target:  # as a docstring has it, from another room
        names = [public for public in known.values() if public.endswith(f".{target}")]
        name = names[0] if len(names) == 1 else None
    if node.get("refdomain") != "py" or name is None:
        return None
    domain = env.domains["py"]
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", name, node, content)


def _skip(
    _app: Sphinx, _what: str, _name: str, value: Any, _skip: bool, _options: Any
) -> bool | None:
    """Fields of named tuples have a docstring that says nothing; the class describes them."""
    return True if type(value).__name__ == "_tuplegetter" else None


def _shown(
    _app: Sphinx,
    _what: str,
    _name: str,
    _value: Any,
    _options: Any,
    given: str | None,
    returned: str,
) -> tuple[str, str] | None:
    """A protocol is never called, and a default that is made anew each time is no Python."""
    if given == "(*args, **kwargs)":
        return "", returned
    if given is None or "<factory>" not in given:
        return None
    return given.replace("<factory>", "..."), returned


def _own_words(
    _app: Sphinx, what: str, _name: str, value: Any, _options: Any, lines: list[str]
) -> None:
    """Napoleon takes what a property's first line has before a colon for its type.

    And a constant has no docstring but that of its type, which says nothing of it.
    """
    if what == "data" and getattr(value, "__doc__", None) == type(value).__doc__:
        lines.clear()
    if what in ("attribute", "data", "property"):
        lines[:0] = ["..", ""]  # an empty comment


def _as_here(
    _app: Sphinx, _what: str, _name: str, _value: Any, _options: Any, lines: list[str]
) -> None:
    """Files that a docstring names are pages here, and a shape needs no second parentheses."""
    for i, line in enumerate(lines):
        linked = re.sub(r"`?\bdocs/([\w/]+)\.md\b`?", r":doc:`/\1`", line)
        lines[i] = re.sub(r"(?<=\*\* )\(\*(\(.*\))\*\)(?= --)", r"*\1*", linked)


def setup(app: Sphinx) -> dict[str, bool]:
    app.coaf_homes = _homes()  # type: ignore[attr-defined]
    app.connect("missing-reference", _link)
    app.connect("autodoc-process-signature", _shown)
    app.connect("autodoc-process-docstring", _own_words, priority=400)  # before Napoleon
    app.connect("autodoc-process-docstring", _as_here, priority=600)  # after it
    app.connect("autodoc-skip-member", _skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
