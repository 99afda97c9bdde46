"""Functions that a belief is given: as a list, and saved by the names they are imported by."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy.typing as npt

from coaf.bandit.arrays import FloatArray, floats
from coaf.bandit.beliefs.estimators import found_at
from coaf.bandit.state import entry

Function = Callable[[FloatArray], npt.ArrayLike]


def class_of(functions: Any, dim: int) -> tuple[list[Function], FloatArray | None]:
    """The functions, or the parameters of linear ones."""
    given = list(functions) if isinstance(functions, Iterable) else []
    if not given:
        raise ValueError(f"functions is {functions!r}; it must be a list of at least one")
    if any(map(callable, given)):
        odd = [i for i, function in enumerate(given) if not callable(function)]
        if odd:
            raise ValueError(f"functions[{odd[0]}] is {given[odd[0]]!r}, which cannot be called")
        return given, None
    parameters = floats("functions", given, ndim=2)
    if parameters.shape[1] != dim:
        raise ValueError(f"functions has {parameters.shape[1]} columns for dim={dim}")
    return [], parameters


def save_function(i: int, function: Any) -> Any:
    kind = type(function)
    object_ = hasattr(function, "state") and hasattr(kind, "restore")
    thing = kind if object_ else function
    name = f"{thing.__module__}:{getattr(thing, '__qualname__', kind.__qualname__)}"
    if found_at(name) is not thing:
        raise ValueError(
            f"functions[{i}] cannot be saved: it is not found as {name}. Define it at the top "
            "level of a module (not as a lambda, nor inside a function), or give an object whose "
            "class has state() and restore(state)"
        )
    return {"class": name, "state": function.state()} if object_ else name


def load_function(saved: Any) -> Any:
    if isinstance(saved, Mapping):
        return _imported(entry(saved, "class")).restore(entry(saved, "state"))
    return _imported(saved)


def _imported(name: str) -> Any:
    found = found_at(name)
    if found is None:
        raise ValueError(f"state names {name!r}, which cannot be imported")
    return found
