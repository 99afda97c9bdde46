"""Subsets of arms written as tuples of arm indices, and as masks."""

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import BoolArray, IntArray, picked

Subset = tuple[int, ...]


def whole(name: str, value: Any, *, low: int = 0) -> int:
    """Return `value` as an int of at least `low`, or say what is wrong with it.

    Examples
    --------
    >>> whole("count", 2.5)
    Traceback (most recent call last):
    ...
    ValueError: count must be a whole number of at least 0, got 2.5
    """
    try:
        result = operator.index(value)
    except TypeError:
        result = low - 1
    if result < low:
        raise ValueError(f"{name} must be a whole number of at least {low}, got {value!r}")
    return result


def wholes(name: str, value: Any, *, low: int, below: int | None = None) -> IntArray:
    """Return `value` as a read-only vector of ints in [low, below), or name the first bad entry.

    Examples
    --------
    >>> wholes("leaf", [0, 3], low=-1, below=2)
    Traceback (most recent call last):
    ...
    ValueError: leaf[1] is 3; every entry must be a whole number from -1 to 1
    """
    given = np.asarray(value)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise ValueError(
            f"{name} must be a vector of whole numbers, got shape {given.shape} of {given.dtype}"
        )
    array = given.astype(np.int64)
    bad = array < low if below is None else (array < low) | (array >= below)
    if bad.any():
        at = int(np.argmax(bad))
        span = f"of at least {low}" if below is None else f"from {low} to {below - 1}"
        raise ValueError(f"{name}[{at}] is {array[at]}; every entry must be a whole number {span}")
    array.setflags(write=False)
    return array


def as_tuples(name: str, value: Iterable[Iterable[int]]) -> tuple[Subset, ...]:
    """Return the subsets as sorted tuples of distinct arm indices.

    Examples
    --------
    >>> as_tuples("subsets", [(2, 0), []])
    ((0, 2), ())
    >>> as_tuples("subsets", [(0,), (1, 1)])
    Traceback (most recent call last):
    ...
    ValueError: subsets[1] is (1, 1), which repeats an arm
    """
    result = []
    for at, subset in enumerate(value):
        arms = tuple(sorted(whole(f"every arm of {name}[{at}]", arm) for arm in subset))
        if len(set(arms)) < len(arms):
            raise ValueError(f"{name}[{at}] is {arms}, which repeats an arm")
        result.append(arms)
    return tuple(result)


def check_arms(name: str, subsets: tuple[Subset, ...], n: int) -> None:
    """Raise if a subset names an arm that a round of `n` arms does not have."""
    for at, subset in enumerate(subsets):
        if subset and subset[-1] >= n:
            raise ValueError(
                f"{name}[{at}] names arm {subset[-1]}, but the round has {n} arms (numbered from 0)"
            )


def as_mask(subset: Subset, n: int) -> BoolArray:
    chosen = np.zeros(n, dtype=np.bool_)
    chosen[list(subset)] = True
    return chosen


def as_tuple(chosen: npt.ArrayLike) -> Subset:
    return tuple(picked(chosen).tolist())
