"""Array types, and the checks that name the argument and the first bad index."""

import functools
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
A = TypeVar("A", bound=npt.NDArray[Any])

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
        array = np.array(value, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        _name_column(name, value)
        raise ValueError(f"{name} must be an array of numbers: {error}") from None
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension(s), got shape {array.shape}")
    finite = np.isfinite(array)
    if not finite.all():
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


def _name_column(name: str, frame: Any) -> None:
    """Say which column of a data frame holds no numbers."""
    for column in getattr(frame, "columns", ()):
        try:
            np.array(frame[column], dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{name} has a column {column!r} that is not numbers ({error}): leave it out, or "
                "make numbers of it, as pandas.get_dummies or sklearn's OneHotEncoder do"
            ) from None


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


def mask(name: str, value: Any, n: int) -> BoolArray:
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
    array = np.array(value)
    if array.ndim == 1 and (array.dtype.kind in "iu" or array.size == 0 < n):
        numbers = array.astype(np.int64)
        if len(np.unique(numbers)) < len(numbers):
            raise ValueError(f"{name} names an arm twice; if it is a mask, give booleans")
        bad = (numbers < 0) | (numbers >= n)
        if bad.any():
            at = int(bad.argmax())
            raise ValueError(f"{name}[{at}] is {numbers[at]}; the round has arms 0 to {n - 1}")
        array = np.zeros(n, dtype=np.bool_)
        array[numbers] = True
    if array.shape != (n,) or (array.dtype != np.bool_ and n > 0):
        raise ValueError(
            f"{name} must be a boolean mask over {n} arms or their numbers, got shape "
            f"{array.shape} of {array.dtype}"
        )
    array = array.astype(np.bool_)
    array.setflags(write=False)
    return array
