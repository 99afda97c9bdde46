"""Patches by how many holes below a cut they have a minute: what needs no learning."""

from collections.abc import Sequence

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.cryoem.grid import Square
from coaf.cryoem.pilot import Choice, Left, Open
from coaf.cryoem.pilots.baselines import CUT, FixedCut
from coaf.cryoem.pilots.square_order import SquareOrder


class PatchOrder(FixedCut):
    """Goes where the most holes below a cut are had per second, the way there included.

    The way is that from where the stage is, so it leaves a square only for a patch that is better
    by what switching takes. Of a patch it takes the holes below the cut, the best first.

    Parameters
    ----------
    column, cut, order
        As of `FixedCut`.
    """

    def __init__(self, column: int, cut: float = CUT, *, order: SquareOrder = "listed") -> None:
        super().__init__(column, cut, order=order)

    def likes(self, features: FloatArray) -> FloatArray:
        liked: FloatArray = -features[:, self.column]
        return liked

    def patch(self, patches: Sequence[Open], left: Left) -> Choice:
        rates = [self._rate(one, left) for one in patches]
        best = int(np.argmax(rates))
        if rates[best] <= 0.0:
            return Choice(None, "Nothing that is wanted can be reached in time.")
        return Choice(patches[best].patch.name, "The most wanted holes per second.")

    def _rate(self, one: Open, left: Left) -> float:
        """Holes per second: as many of those wanted as there is time for."""
        wanted = self.wanted(self.features[one.patch.name])
        there = [one.patch.holes[i] for i in one.rest if left.returning or wanted[i]]
        timing = left.timing
        name = one.patch.square
        square = self.atlas.get(name) or Square(name, 0.0, 0.0)
        way = timing.enter + timing.switch(left.at, square)
        each = np.cumsum([timing.hole(hole.shots) for hole in there])
        count = int(np.searchsorted(each, left.seconds - way, side="right"))
        return count / (way + float(each[count - 1])) if count else 0.0
