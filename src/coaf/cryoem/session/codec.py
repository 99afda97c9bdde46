"""Frozen dataclasses to JSON and back, by their types; what does not fit is named."""

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from math import isfinite
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from coaf.bandit.arrays import number
from coaf.bandit.shown import with_article

_NUMBERS = {float: (int, float), int: (int,), str: (str,), bool: (bool,)}


def plain(value: Any) -> Any:
    """As JSON. Numbers that are none become None, as JSON has no NaN."""
    if is_dataclass(value):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    if isinstance(value, np.ndarray):
        return value.tolist() if np.isfinite(value).all() else plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not isfinite(value):
        return None
    return value


def read(kind: Any, given: Any, where: str) -> Any:
    """The value of this type that `plain` wrote as `given`.

    Raises
    ------
    ValueError
        If it is none; `where` says of what.
    """
    origin = get_origin(kind)
    if kind is Any:
        return given
    if origin in (Union, types.UnionType):
        if given is None and type(None) in get_args(kind):
            return None
        return read(next(k for k in get_args(kind) if k is not type(None)), given, where)
    if origin is Literal:
        if given not in get_args(kind):
            raise ValueError(f"{where} is {given!r}; it must be one of {get_args(kind)}")
        return given
    if kind in _NUMBERS:
        if not isinstance(given, _NUMBERS[kind]) or (isinstance(given, bool) and kind is not bool):
            raise ValueError(f"{where} is {given!r}; it must be {with_article(kind.__name__)}")
        return number(where, given) if kind is float else given
    if origin is tuple:
        return _tuple(get_args(kind), given, where)
    if origin is not None and issubclass(origin, Mapping):
        inner = get_args(kind)[1]
        return {str(k): read(inner, v, f"{where}[{k!r}]") for k, v in _object(given, where).items()}
    if origin is np.ndarray:
        return _array(given, where)
    return _dataclass(kind, _object(given, where), where)


def _object(given: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise ValueError(f"{where} is {given!r}; it must be an object")
    return given


def _tuple(inner: tuple[Any, ...], given: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(given, list | tuple):
        raise ValueError(f"{where} is {given!r}; it must be a list")
    kinds = [inner[0]] * len(given) if inner[-1] is Ellipsis else list(inner)
    if len(kinds) != len(given):
        raise ValueError(f"{where} has {len(given)} entries; it must have {len(kinds)}")
    return tuple(
        read(k, one, f"{where}[{i}]") for i, (k, one) in enumerate(zip(kinds, given, strict=True))
    )


def _array(given: Any, where: str) -> Any:
    try:
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{where} must be rows of numbers of one length") from None


def _dataclass(kind: Any, given: Mapping[str, Any], where: str) -> Any:
    names = {one.name for one in fields(kind)}
    if unknown := sorted(map(str, set(given) - names)):
        raise ValueError(f"{where} has no {unknown[0]!r}; it has {', '.join(sorted(names))}")
    hints = _hints(kind)
    found = {name: read(hints[name], one, f"{name} of {where}") for name, one in given.items()}
    try:
        return kind(**found)
    except TypeError as error:
        raise ValueError(f"{where} is not complete: {error}") from None


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)
