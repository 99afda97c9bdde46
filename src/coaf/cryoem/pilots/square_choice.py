"""Which square to open next: a COAF round over squares, learned from those opened."""

from collections.abc import Sequence

import numpy as np

from coaf.bandit.actions import AtMost
from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.nested.nested import Nested
from coaf.bandit.index import Upper
from coaf.bandit.latency import Additive
from coaf.bandit.policies.coaf import COAF
from coaf.bandit.problem import Round
from coaf.bandit.rates.rate import Fixed
from coaf.cryoem.grid import Square
from coaf.cryoem.pilot import Choice
from coaf.cryoem.pilots import reasons

# How far the worth of squares, in good micrographs, may differ from what the atlas makes expected.
_SPREAD = 3.0
_WIDTH = 1.0  # deviations of optimism: there are few squares, and each tells much


class SquareChoice:
    """Squares are arms, and opening one takes its time.

    What a square is worth is what its patches were worth beyond their time when it was opened,
    under today's belief and today's rate; the atlas' features are learned against that anew for
    each choice, as both have moved since. Reasons are given in `unit`.
    """

    def __init__(self, unit: reasons.Unit = reasons.MICROGRAPHS) -> None:
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
        if not opened:
            # Nothing is known of what squares hold: the middle one is the least unusual.
            bright = np.array([sum(s.features) for s in squares])
            middle = int(np.argsort(bright, kind="stable")[len(squares) // 2])
            return Choice(squares[middle].name, reasons.FIRST_SQUARE)
        policy = self._policy(squares, opened, rate)
        X = np.array([s.features for s in squares], dtype=np.float64).reshape(len(squares), -1)
        arms = X if X.shape[1] else np.zeros((len(squares), 1))
        decision = policy.decide(
            Round(self._scaled(arms), Additive(1e-6, seconds), AtMost(1), key="squares")
        )
        by = np.argsort(-decision.estimates, kind="stable")
        self.ranking = [(squares[i].name, float(decision.estimates[i])) for i in by]
        if not decision.chosen.any():
            why = reasons.no_square(self.unit, self.ranking[0][1], rate, seconds)
            return Choice(None, why, rate=rate)
        best = int(decision.chosen.argmax())
        gain = float(decision.estimates[best])
        why = reasons.square(self.unit, len(squares), gain, rate, seconds)
        return Choice(squares[best].name, why, estimate=gain, rate=rate)

    def _policy(
        self, squares: Sequence[Square], opened: Sequence[tuple[Square, float]], rate: float
    ) -> COAF:
        X = np.array([s.features for s, _ in opened], dtype=np.float64).reshape(len(opened), -1)
        every = np.array([s.features for s in squares], dtype=np.float64).reshape(len(squares), -1)
        if X.shape[1] == 0:
            X, every = np.zeros((len(opened), 1)), np.zeros((len(squares), 1))
        both = np.vstack([X, every])
        self._middle, self._spread = both.mean(axis=0), both.std(axis=0) + 1e-9
        belief = Nested(
            X.shape[1],
            family="gaussian",
            effects=(),
            noise=_SPREAD,
            scale=(*[_SPREAD / 2.0] * X.shape[1], 3.0 * _SPREAD),
            width=_WIDTH,
        )
        policy = COAF(belief=belief, index=Upper(), rate=Fixed(rate))
        policy.refit(self._scaled(X), [worth for _, worth in opened])
        return policy

    def _scaled(self, X: FloatArray) -> FloatArray:
        scaled: FloatArray = (X - self._middle) / self._spread
        return scaled
