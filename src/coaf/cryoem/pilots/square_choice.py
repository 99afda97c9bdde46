"""Which square to open next: a COAF round over squares, learned from those opened."""

from collections.abc import Sequence

import numpy as np

from coaf.bandit.actions import AtMost
from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.nested.nested import Nested
from coaf.bandit.index import Mean
from coaf.bandit.latency import Additive
from coaf.bandit.policies.coaf import COAF
from coaf.bandit.problem import Round
from coaf.bandit.rates.rate import Fixed
from coaf.cryoem.grid import Square
from coaf.cryoem.pilot import Choice
from coaf.cryoem.pilots import reasons
from coaf.cryoem.unit import MICROGRAPHS, Unit
from coaf.cryoem.vision.square_features import SQUARE_FEATURES

# What squares are worth, in units of what the time to open one is: by what a rate is, 1 on average.
# By how much a deviation of each of the atlas' features (`SQUARE_FEATURES`) changes that, and how
# far this may be off: bright and wide squares are the better ones, but not on every grid.
_EXPECTED = (0.6, 0.0, 0.6, 0.0)
_DOUBT, _LEVEL = 0.8, 2.0  # of each feature, and of the average
_SPREAD = 1.5  # of squares that look alike


class SquareChoice:
    """Squares are arms, and opening one takes its time.

    What a square is worth is what its patches were worth beyond their time when it was opened,
    under today's belief and today's rate; the atlas' features are learned against that anew for
    each choice, as both have moved since. Until then the brightest and widest come first, as a
    careful person would have it. Means decide, without optimism: one looks at what is opened
    anyway, and hope for squares that look unusual costs more than it finds. Reasons are given in
    `unit`.
    """

    def __init__(self, unit: Unit = MICROGRAPHS) -> None:
        self.unit = unit
        self._patches: list[int] = []
        self.ranking: list[tuple[str, float]] = []

    def opened(self, name: str, patches: int) -> None:
        """A square was opened, and has so many patches."""
        self._patches.append(patches)

    def patches(self, expected: float) -> float:
        """How many patches a square has, as far as is known; `expected` counts as one square."""
        return (expected + sum(self._patches)) / (1 + len(self._patches))

    def choose(
        self,
        squares: Sequence[Square],
        opened: Sequence[tuple[Square, float]],
        *,
        rate: float,
        seconds: float,
    ) -> Choice:
        """The square with the smallest gap, or none if none is worth its time.

        Parameters
        ----------
        squares
            Those not opened.
        opened
            Those opened, with what each was worth.
        rate, seconds
            What a second is worth, and how long opening takes.
        """
        looks = _looks([square for square, _ in opened], squares)
        before, ahead = looks[: len(opened)], looks[len(opened) :]
        belief = _belief(looks.shape[1], rate * seconds)
        policy = COAF(belief=belief, index=Mean(), rate=Fixed(rate))
        if opened:
            policy.refit(before, [worth for _, worth in opened])
        decision = policy.decide(Round(ahead, Additive(1e-6, seconds), AtMost(1), key="squares"))
        by = np.argsort(-decision.estimates, kind="stable")
        self.ranking = [(squares[i].name, float(decision.estimates[i])) for i in by]
        if not opened:
            return Choice(self.ranking[0][0], reasons.FIRST_SQUARE, rate=rate)
        if not decision.chosen.any():
            why = reasons.no_square(self.unit, self.ranking[0][1], rate, seconds)
            return Choice(None, why, rate=rate)
        best = int(decision.chosen.argmax())
        gain = float(decision.estimates[best])
        why = reasons.square(self.unit, len(squares), gain, rate, seconds)
        return Choice(squares[best].name, why, estimate=gain, rate=rate)


def _looks(opened: Sequence[Square], others: Sequence[Square]) -> FloatArray:
    """What the atlas shows of squares, in deviations from all of them; a row each.

    A square of which it does not show as much as of others looks like the average.
    """
    rows = [square.features for square in (*opened, *others)]
    width = max(map(len, rows))
    looks = np.zeros((len(rows), max(width, 1)))
    known = np.array([len(row) == width > 0 for row in rows])
    if known.any():
        X = np.array([row for row, whole in zip(rows, known, strict=True) if whole])
        looks[known] = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9)
    return looks


def _belief(columns: int, cost: float) -> Nested:
    """What is expected of squares before any was opened, where opening one costs so much."""
    unit = max(cost, 1e-9)
    known = _EXPECTED if columns == len(SQUARE_FEATURES) else (0.0,) * columns
    return Nested(
        columns,
        family="gaussian",
        effects=(),
        noise=unit * _SPREAD,
        centre=tuple(unit * each for each in (*known, 1.0)),
        scale=tuple(unit * each for each in (*[_DOUBT] * columns, _LEVEL)),
    )
