"""What a careful person sets who knows what a move costs: a cut, and how many make a patch."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

import numpy as np

from coaf.bandit.arrays import FloatArray, number
from coaf.cryoem.microscope import Survey
from coaf.cryoem.pilot import Choice, Left, Open
from coaf.cryoem.pilots.baselines import ORDER, FixedCut
from coaf.cryoem.pilots.square_order import SquareOrder
from coaf.cryoem.timing import Timing

# Fixed on grids that nothing else is tried on: python benchmarks/rivals.py
_CUT = 5.0  # Å, of a network's prediction
COUNT = 11  # holes below it that a move is worth
_SHARE = 0.7  # of a usual patch: no more is asked for where patches are small


class CutAndCount(FixedCut):
    """Holes below a cut, and only of patches that have enough of them.

    Enough is `count`, or a `share` of a usual patch if this is less: where patches have four
    holes nobody waits for one with a dozen. The usual is the median of all patches seen. Patches
    with most holes below the cut come first, and in them the best holes. When nothing is left to
    open it returns for holes below the cut that were too few, and then for all others.

    Parameters
    ----------
    column
        Of the features: smaller is better, as of a prediction in Å.
    cut
        In the column's unit.
    count, share
        How many holes below the cut a patch needs.
    order
        Of squares.
    """

    def __init__(
        self,
        column: int,
        cut: float = _CUT,
        count: int = COUNT,
        share: float = _SHARE,
        *,
        order: SquareOrder = ORDER,
    ) -> None:
        super().__init__(column, cut, order=order)
        self.count = int(number("count", count, low=1))
        self.share = number("share", share, low=0.0)
        self.sizes: dict[str, int] = {}  # holes, by patch

    @property
    def enough(self) -> int:
        """So many holes below the cut make a patch worth a move."""
        if not self.sizes:
            return self.count
        usual = float(np.median(list(self.sizes.values())))
        return max(min(self.count, ceil(self.share * usual)), 1)

    def likes(self, features: FloatArray) -> FloatArray:
        better: FloatArray = -features[:, self.column]
        return better

    def opened(self, survey: Survey, timing: Timing) -> None:
        super().opened(survey, timing)
        self.sizes |= {patch.name: len(patch.holes) for patch in survey.patches}

    def patch(self, patches: Sequence[Open], left: Left) -> Choice:
        most = max(patches, key=self._below)
        return Choice(most.patch.name, f"{self._below(most)} of its holes are below the cut.")

    def hole(self, here: Open, left: Left, *, inside: bool) -> Choice:
        below = self._below(here)
        if not (left.returning or inside) and below < self.enough:
            few = f"{below} of {len(here.rest)} holes are below {self.cut:g}"
            return Choice(None, f"{few}, and a move is worth {self.enough}.")
        # What is above the cut is for when nothing below it is left anywhere.
        spent = below == 0 and not any(map(self._below, left.patches))
        return super().hole(here, replace(left, returning=left.returning and spent), inside=inside)

    def _below(self, one: Open) -> int:
        """How many of its holes in play are below the cut."""
        return int(self.wanted(self.features[one.patch.name])[list(one.rest)].sum())
