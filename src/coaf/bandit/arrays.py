"""Array types, and the checks that name the argument and the first bad index."""

import functools
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
A = TypeVar("A", bound=npt.NDArray[Any])

_NO_NUMBERS = {"M": "dates", "m": "times that went by", "c": "complex numbers"}  # by kind of dtype

LARGEST = 1e150  # a larger number is none: its square overflows, and what is summed up of it

# The one object of each native dtype: `is` with it is the quickest test, and hot paths test often.
FLOAT64, INT64 = np.dtype(np.float64), np.dtype(np.int64)


@functools.cache
def guards() -> Any:
    """The compiled checks, which load numba, on first use."""
    from coaf.bandit.compiled import guards

    return guards


def locked(array: A) -> A:
    """The array, seen so that it cannot be written to; numba compiles anew for one that can."""
    if array.flags.writeable:
        array = array.view()
        array.setflags(write=False)
    return array


def _position(bad: npt.NDArray[np.bool_]) -> str:
    index = np.unravel_index(int(np.argmax(bad)), bad.shape)
    return ", ".join(str(int(i)) for i in index)


def floats(name: str, value: Any, *, ndim: int, low: float | None = None) -> FloatArray:
    """Return `value` as a read-only float array, or say which entry is wrong.

    Examples
    --------
    >>> floats("rewards", [1.0, float("nan")], ndim=1)
    Traceback (most recent call last):
    ...
    ValueError: rewards[1] is nan; every entry must be a finite number
    """
    if hasattr(value, "toarray"):
        raise ValueError(
            f"{name} is a sparse matrix, which this library does not take: give {name}.toarray(), "
            "or fewer columns, as sklearn's TruncatedSVD makes them"
        )
    try:
        array = _as_floats(value)
    except (TypeError, ValueError) as error:
        _name_column(name, value)
        raise ValueError(f"{name} must be an array of numbers: {error}") from None
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension(s), got shape {array.shape}")
    finite = np.isfinite(array)
    if not finite.all():
        _name_column(name, value)
        where = _position(~finite)
        raise ValueError(
            f"{name}[{where}] is {array[~finite][0]}; every entry must be a finite number"
        )
    if low is not None and array.size and array.min() < low:
        bad = array < low
        raise ValueError(
            f"{name}[{_position(bad)}] is {array[bad][0]}; every entry must be at least {low:g}"
        )
    array.setflags(write=False)
    return array


def _as_floats(value: Any) -> FloatArray:
    """A copy as floats, or an error; NumPy would make numbers of dates, which depend on a unit."""
    given = np.asarray(value)
    if given.dtype.kind in _NO_NUMBERS:
        raise TypeError(f"got {_NO_NUMBERS[given.dtype.kind]}")
    return np.array(given, dtype=np.float64, order="C")


def _name_column(name: str, frame: Any) -> None:
    """Say which column of a data frame holds no numbers, or in which row it has none."""
    for column in getattr(frame, "columns", ()):
        held = frame[column]
        gone = np.asarray(held.isna() if hasattr(held, "isna") else np.zeros(0), dtype=np.bool_)
        try:
            _as_floats(held[~gone] if gone.any() else held)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{name} has a column {column!r} that is not numbers ({error}): leave it out, or "
                "make numbers of it, as pandas.get_dummies or sklearn's OneHotEncoder do"
            ) from None
        if gone.any():
            raise ValueError(
                f"{name} has nothing in column {column!r}, row {int(gone.argmax())} (from 0): fill "
                "it, or leave the row out"
            )


def number(name: str, value: Any, *, low: float | None = None, above: float | None = None) -> float:
    """Return `value` as a finite float, or say what is wrong with it.

    Examples
    --------
    >>> number("base", -1.0, low=0.0)
    Traceback (most recent call last):
    ...
    ValueError: base is -1.0; it must be at least 0
    """
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be a number, got {value!r}") from None
    if not -np.inf < result < np.inf:
        raise ValueError(f"{name} is {result}; it must be a finite number")
    if low is not None and result < low:
        raise ValueError(f"{name} is {result}; it must be at least {low:g}")
    if above is not None and result <= above:
        raise ValueError(f"{name} is {result}; it must be greater than {above:g}")
    return result


def picked(chosen: npt.ArrayLike, n: int | None = None, name: str = "chosen") -> IntArray:
    """The numbers of the arms chosen, rising, given as a mask or as numbers.

    `n` is how many arms there are, where that is known.

    Examples
    --------
    >>> picked([True, False, True]), picked([2, 0])
    (array([0, 2]), array([0, 2]))
    """
    given = np.asarray(chosen)
    if given.dtype == np.bool_ and given.ndim == 1 and (n is None or len(given) == n):
        return given.nonzero()[0]
    if given.ndim != 1 or (given.dtype.kind not in "iu" and given.size > 0):
        over = "arms" if n is None else f"{n} arms"
        raise ValueError(
            f"{name} must be a boolean mask over {over} or their numbers, got shape "
            f"{given.shape} of {given.dtype}"
        )
    numbers = np.unique(given.astype(np.int64))
    if len(numbers) < len(given):
        raise ValueError(f"{name} names an arm twice; if it is a mask, give booleans")
    if len(numbers) and (numbers[0] < 0 or (n is not None and numbers[-1] >= n)):
        bad = (given < 0) | (given > (numbers[-1] if n is None else n - 1))
        at, there = int(bad.argmax()), "0 or above" if n is None else f"0 to {n - 1}"
        raise ValueError(f"{name}[{at}] is {given[at]}; the round has arms {there}")
    return numbers


def mask(name: str, value: npt.ArrayLike, n: int) -> BoolArray:
    """Return `value`, a mask or the numbers of arms, as a read-only boolean mask over `n` arms.

    Examples
    --------
    >>> mask("chosen", [True, False], 3)
    Traceback (most recent call last):
    ...
    ValueError: chosen must be a boolean mask over 3 arms or their numbers, got shape (2,) of bool
    >>> mask("chosen", [2, 0], 3)
    array([ True, False,  True])
    """
    array = np.zeros(n, dtype=np.bool_)
    array[picked(value, n, name)] = True
    array.setflags(write=False)
    return array
