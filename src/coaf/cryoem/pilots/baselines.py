"""What people and other programs do today: fixed rules. They learn nothing, so scores pass by."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coaf.bandit.arrays import BoolArray, FloatArray, number
from coaf.cryoem.grid import Patch, Square
from coaf.cryoem.microscope import Survey
from coaf.cryoem.pilot import Choice, Left, Open, Other, Scored
from coaf.cryoem.pilots.grid_order import next_grid
from coaf.cryoem.pilots.knowledge import Knowledge
from coaf.cryoem.pilots.square_order import SquareOrder, check_order, next_square
from coaf.cryoem.timing import Timing

# Fixed on grids that nothing else is tried on: python benchmarks/rivals.py
ORDER: SquareOrder = "brightest"  # of squares
WINDOW = (0.0, 0.5)  # quantiles of the first squares' ice: the brighter half of their holes
WINDOW_SQUARES = 3  # squares that a window is set on
CUT = 4.5  # Å, of a network's prediction
HALF = 1.0  # Å: a prediction so much worse is worth half
SWITCH = 10  # holes that a switch is worth, to SmartEM


class Rule:
    """Opens squares in order, goes through their patches in order, and takes the holes it wants.

    When nothing is left to open it returns and takes all it left: a microscope that stands idle
    collects nothing. A rule says what it wants of a square when that is opened.

    Parameters
    ----------
    order
        Of squares (`square_order`).
    """

    def __init__(self, *, order: SquareOrder = "listed") -> None:
        self.order = check_order(order)
        self.atlas: dict[str, Square] = {}
        self.features: dict[str, FloatArray] = {}

    def wanted(self, features: FloatArray) -> BoolArray:
        """Which holes to take, by their features."""
        return np.ones(len(features), dtype=np.bool_)

    def likes(self, features: FloatArray) -> FloatArray:
        """How much it likes holes: those it likes most are taken first. All alike unless said."""
        return np.zeros(len(features))

    def grid(self, others: Sequence[Other], left: Left) -> Choice:
        return next_grid(others, left)

    def square(self, squares: Sequence[Square], left: Left) -> Choice:
        return next_square(squares, self.order, list(self.atlas.values()))

    def patch(self, patches: Sequence[Open], left: Left) -> Choice:
        return Choice(patches[0].patch.name, "The next in order.")

    def hole(self, here: Open, left: Left, *, inside: bool) -> Choice:
        features = self.features[here.patch.name]
        wanted = self.wanted(features)
        there = [i for i in here.rest if left.returning or wanted[i]]
        if not there:
            return Choice(None, f"None of the {len(here.rest)} holes left is wanted.")
        best = there[int(np.argmax(self.likes(features)[there]))]
        why = "All that was left, as time remains." if left.returning else "It is wanted."
        return Choice(here.patch.holes[best].name, why)

    def estimates(self, patch: Patch) -> FloatArray:
        """Rules expect nothing."""
        return np.full(len(patch.holes), np.nan)

    def knowledge(self) -> Knowledge | None:
        """Rules know beforehand what they go by."""
        return None

    def loaded(self, grid: str) -> None:
        pass

    def saw(self, squares: Sequence[Square]) -> None:
        self.atlas |= {square.name: square for square in squares}

    def opened(self, survey: Survey, timing: Timing) -> None:
        self.features |= survey.features

    def moved(self, here: Open, left: Left, rate: float | None) -> None:
        pass

    def exposed(self, hole: str) -> None:
        pass

    def done(self, here: Open, left: Left) -> None:
        pass

    def scored(self, scores: Sequence[Scored]) -> None:
        pass

    def state(self) -> Mapping[str, Any] | None:
        return None

    def restore(self, state: Mapping[str, Any]) -> None:
        """Rules have no state: they are told everything again."""


class EveryHole(Rule):
    """Every hole of every patch."""


class IntensityWindow(Rule):
    """Holes whose grey level is in a window, which is set on the first squares and then kept.

    This is what EPU and SmartScope do. The window is set on the first square that has holes, and
    set again on all of the first few while they are opened.

    Parameters
    ----------
    column
        Of the features: the one that speaks of the grey level.
    window
        Quantiles of the first squares' holes.
    first
        How many squares these are.
    order
        Of squares.
    """

    def __init__(
        self,
        column: int = 0,
        window: tuple[float, float] = WINDOW,
        *,
        first: int = WINDOW_SQUARES,
        order: SquareOrder = ORDER,
    ) -> None:
        super().__init__(order=order)
        low, high = window
        if not 0.0 <= low < high <= 1.0:
            raise ValueError(f"window is {window}; give two quantiles from 0 to 1 in order")
        self.column, self.window = column, window
        self.first = int(number("first", first, low=1))
        self.levels: dict[str, FloatArray] = {}  # by square that the window is set on
        self.range: tuple[float, float] | None = None

    def opened(self, survey: Survey, timing: Timing) -> None:
        super().opened(survey, timing)
        new = survey.square not in self.levels
        if new and survey.features and len(self.levels) < self.first:
            rows = np.concatenate([X[:, self.column] for X in survey.features.values()])
            self.levels[survey.square] = rows
            seen = np.concatenate(list(self.levels.values()))
            low, high = np.quantile(seen, self.window).tolist()
            self.range = low, high

    def wanted(self, features: FloatArray) -> BoolArray:
        low, high = self.range or (-np.inf, np.inf)
        level = features[:, self.column]
        inside: BoolArray = (low <= level) & (level <= high)
        return inside


class FixedCut(Rule):
    """Holes whose value in one column is below a cut, for example a network's prediction in Å."""

    def __init__(self, column: int, cut: float = CUT, *, order: SquareOrder = ORDER) -> None:
        super().__init__(order=order)
        self.column, self.cut = column, number("cut", cut)

    def wanted(self, features: FloatArray) -> BoolArray:
        below: BoolArray = features[:, self.column] < self.cut
        return below


class ScoreOrder(Rule):
    """Best scores first; leaves when elsewhere is better by more than a switch is worth.

    This is what Diamond's SmartEM does: a switch costs a constant 10 holes, whatever it takes. A
    patch is left when the best `switch` holes of another, less those that are left here, exceed
    `switch` typical holes in sum; a square when its best patch falls short, by as much, of the
    best that squares had when they were opened, on average.

    Parameters
    ----------
    column
        Of the features: the score; smaller is better, as of a prediction in Å.
    scale
        What a hole is worth halves when the score grows by so much.
    switch
        In holes.
    order
        Of squares.
    """

    def __init__(
        self,
        column: int,
        scale: float = HALF,
        switch: int = SWITCH,
        *,
        order: SquareOrder = ORDER,
    ) -> None:
        super().__init__(order=order)
        self.column, self.scale = column, number("scale", scale, above=0.0)
        self.switch = int(number("switch", switch, low=1))
        self.best: list[float] = []  # of each square, when it was opened
        self.here = ""  # the square that was opened last
        self.penalty = 0.0

    def likes(self, features: FloatArray) -> FloatArray:
        liked: FloatArray = np.exp2(-features[:, self.column] / self.scale)
        return liked

    def opened(self, survey: Survey, timing: Timing) -> None:
        super().opened(survey, timing)
        self.here = survey.square
        if survey.patches:
            whole = [Open(patch, tuple(range(len(patch.holes)))) for patch in survey.patches]
            self.best.append(max(map(self._top, whole)))
            typical = np.mean([self.likes(X).mean() for X in self.features.values()])
            self.penalty = self.switch * float(typical)

    def patch(self, patches: Sequence[Open], left: Left) -> Choice:
        tops = [self._top(one) for one in patches]
        best = int(np.argmax(tops))
        short = float(np.mean(self.best)) - tops[best]
        if not left.returning and left.squares and short > self.penalty:
            return Choice(None, "Other squares are expected to be better by more than a switch.")
        return Choice(patches[best].patch.name, "The best scores left.", tops[best])

    def hole(self, here: Open, left: Left, *, inside: bool) -> Choice:
        name = here.patch.name
        liked = self.likes(self.features[name])
        others = [
            self._top(one)
            for one in left.patches
            if one.patch.name != name and one.patch.square == self.here
        ]
        gain = max(others, default=0.0) - self._top(here)
        if inside and not left.returning and gain > self.penalty:
            return Choice(None, "Another patch is better by more than a switch.")
        best = here.rest[int(np.argmax(liked[list(here.rest)]))]
        return Choice(here.patch.holes[best].name, "The best score left here.", float(liked[best]))

    def estimates(self, patch: Patch) -> FloatArray:
        """Its score: what it goes by, not a chance."""
        return self.likes(self.features[patch.name])

    def _top(self, one: Open) -> float:
        """The sum of the best scores left in a patch, as many as a switch is worth."""
        liked = self.likes(self.features[one.patch.name])[list(one.rest)]
        return float(np.sort(liked)[-self.switch :].sum())
