"""A simulated microscopist: tries a few holes in each square, and stays or leaves by thumb."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.cryoem.grid import Patch, Square
from coaf.cryoem.microscope import Survey
from coaf.cryoem.pilot import Choice, Left, Open, Scored
from coaf.cryoem.pilots.baselines import IntensityWindow
from coaf.cryoem.pilots.square_order import SquareOrder
from coaf.cryoem.timing import Timing


@dataclass(frozen=True, slots=True)
class Thumb:
    """Rules of thumb, fixed on other grids (`python benchmarks/rivals.py`).

    Attributes
    ----------
    area
        Squares with less of their area free of thick ice are opened last.
    tries
        Scores to see of a square before judging it.
    keep
        Share of them that must be good to stay.
    run
        So many bad scores of a patch, and none good: leave the patch.
    enough
        Good micrographs to see before trusting their grey levels more than the first window.
    margin
        How much wider than the grey levels of the good ones the window then is, as a share.
    window
        Of grey levels until then: quantiles of the first squares.
    order
        Of squares with area enough, and of those without.
    """

    area: float = 0.7
    tries: int = 12
    keep: float = 0.3
    run: int = 8
    enough: int = 10
    margin: float = 0.5
    window: tuple[float, float] = (0.0, 0.5)
    order: SquareOrder = "brightest"


THUMB = Thumb()


class Microscopist(IntensityWindow):
    """What an experienced person does who watches the scores come in.

    Opens squares with much open area first, the brightest of them. Takes holes whose grey level
    looks right, the most usual level first. Once a few of a square are scored, leaves it if too
    few are good; leaves a patch after a run of bad ones. When there were enough good ones, looks
    for grey levels like theirs. When nothing is left to open, returns to the patches that were
    left, those of the best squares first. A micrograph is good to him if it is better than the
    mean of those so far.

    Parameters
    ----------
    column
        Of the features: the grey level, or what else says how a hole looks, as a prediction does.
    thumb
        The rules.
    """

    def __init__(self, column: int = 0, thumb: Thumb = THUMB) -> None:
        super().__init__(column, thumb.window, order=thumb.order)
        self.thumb = thumb
        self.where: dict[str, tuple[Patch, float]] = {}  # by hole: patch, grey level
        self.marks: dict[str, list[bool]] = {}  # by square and by patch
        self.good: list[float] = []  # grey levels
        self.sum, self.count = 0.0, 0

    def square(self, squares: Sequence[Square], left: Left) -> Choice:
        wide = [s for s in squares if len(s.features) < 3 or s.features[2] >= self.thumb.area]
        return super().square(wide or squares, left)

    def patch(self, patches: Sequence[Open], left: Left) -> Choice:
        square = patches[0].patch.square
        if left.returning:
            back = max(patches, key=lambda one: self._share(one.patch.square))
            return Choice(back.patch.name, "Back to the best of the squares that were left.")
        if self._judged(square, self.thumb.tries) and self._share(square) < self.thumb.keep:
            return Choice(None, f"Only {self._share(square):.0%} of this square were good.")
        many = [int(self.wanted(self.features[one.patch.name]).sum()) for one in patches]
        best = patches[int(np.argmax(many))]
        return Choice(best.patch.name, f"{max(many)} of its holes look right.")

    def hole(self, here: Open, left: Left, *, inside: bool) -> Choice:
        name, square = here.patch.name, here.patch.square
        if not left.returning:
            if self._judged(name, self.thumb.run) and self._share(name) == 0.0:
                return Choice(None, f"{self.thumb.run} in this patch, and none good.")
            tried = self._judged(square, self.thumb.tries)
            if tried and self._share(square) < self.thumb.keep:
                return Choice(None, f"Only {self._share(square):.0%} of the square is good.")
        return super().hole(here, left, inside=inside)

    def opened(self, survey: Survey, timing: Timing) -> None:
        super().opened(survey, timing)
        for patch in survey.patches:
            levels = survey.features[patch.name][:, self.column].tolist()
            for hole, level in zip(patch.holes, levels, strict=True):
                self.where[hole.name] = (patch, level)

    def likes(self, features: FloatArray) -> FloatArray:
        low, high = self.range or (0.0, 0.0)
        trusted = len(self.good) >= self.thumb.enough
        usual = float(np.median(self.good)) if trusted else 0.5 * (low + high)
        away: FloatArray = -np.abs(features[:, self.column] - usual)
        return away

    def scored(self, scores: Sequence[Scored]) -> None:
        for score in scores:
            patch, level = self.where[score.hole]
            good = score.reward > (self.sum / self.count if self.count else 0.0)
            self.sum, self.count = self.sum + score.reward, self.count + 1
            for name in (patch.square, patch.name):
                self.marks.setdefault(name, []).append(good)
            if good:
                self.good.append(level)
            if good and len(self.good) >= self.thumb.enough:
                low, high = np.quantile(self.good, [0.05, 0.95]).tolist()
                wide = self.thumb.margin * (high - low)
                self.range = low - wide, high + wide

    def _judged(self, name: str, least: int) -> bool:
        return len(self.marks.get(name, ())) >= least

    def _share(self, name: str) -> float:
        marks = self.marks.get(name, ())
        return sum(marks) / len(marks) if marks else 0.0
