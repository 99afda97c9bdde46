"""In which order rules open squares: as they are listed, or by what the atlas shows of them."""

from collections.abc import Callable, Sequence
from typing import Literal, get_args

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.cryoem.grid import Square
from coaf.cryoem.pilot import Choice
from coaf.cryoem.vision.square_features import SQUARE_FEATURES

SquareOrder = Literal["listed", "brightest", "widest", "usual"]

_BRIGHT, _AREA = SQUARE_FEATURES.index("brightness"), SQUARE_FEATURES.index("area")
_WHY = {
    "listed": "The next in order.",
    "brightest": "The brightest left.",
    "widest": "The one with most open area left.",
    "usual": "The one left whose brightness is nearest to the usual.",
}


def check_order(order: SquareOrder) -> SquareOrder:
    """Refuse what is no order."""
    if order not in get_args(SquareOrder):
        raise ValueError(f"order is {order!r}; there are {', '.join(get_args(SquareOrder))}")
    return order


def next_square(squares: Sequence[Square], order: SquareOrder, atlas: Sequence[Square]) -> Choice:
    """The first of `squares` in this order; none if there are none.

    "brightest" goes by the light that comes through the whole square, which is brightness times
    open area, "widest" by the area alone, and "usual" by how near its brightness is to the median
    of the atlas. Squares of which the atlas tells nothing are opened as they are listed.

    Examples
    --------
    >>> seen = [Square(f"s{b}", 0.0, 0.0, features=(0.1 * b, 0.1, 0.9)) for b in (2, 8, 5)]
    >>> [next_square(seen, order, seen).name for order in ("listed", "brightest", "usual")]
    ['s2', 's8', 's5']
    """
    if not squares:
        return Choice(None, "No square is left to open.")
    if order == "listed" or any(len(square.features) <= _AREA for square in (*squares, *atlas)):
        return Choice(squares[0].name, _WHY["listed"])
    rows = _looks(squares)
    score: dict[str, Callable[[], FloatArray]] = {
        "brightest": lambda: rows[:, _BRIGHT] * rows[:, _AREA],
        "widest": lambda: rows[:, _AREA],
        "usual": lambda: (
            -np.abs(rows[:, _BRIGHT] - np.median(_looks(atlas or squares)[:, _BRIGHT]))
        ),
    }
    return Choice(squares[int(np.argmax(score[order]()))].name, _WHY[order])


def _looks(squares: Sequence[Square]) -> FloatArray:
    return np.array([square.features for square in squares], dtype=np.float64)
