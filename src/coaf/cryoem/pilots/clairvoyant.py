"""The clairvoyant limit: what could be collected by someone who knows what each hole will give."""

from collections.abc import Mapping, Sequence

import numpy as np

from coaf.bandit.arrays import FloatArray, number
from coaf.bandit.rates.dinkelbach import TOLERANCE
from coaf.bandit.rates.price import price as price_of
from coaf.cryoem.grid import Patch, Square
from coaf.cryoem.microscope import Survey
from coaf.cryoem.pilot import Choice, Left, Open
from coaf.cryoem.pilots.baselines import Rule
from coaf.cryoem.timing import Timing


class Clairvoyant(Rule):
    """Follows the best plan for the time there is, with what each hole gives known beforehand.

    A square is opened for its seconds, a patch entered for its own, a hole taken for its own. At a
    price λ of a second each hole is worth y − λ·seconds if that is positive, a patch the sum of
    its holes less its entry, a square the sum of its patches less its opening. The price is the
    one at which what is worth its time fills the time (Dinkelbach's, with a budget): no other plan
    collects more in as many seconds. `limit` is λ·T plus the worth of all squares, which by
    duality no plan exceeds as long as times are as expected and patches are visited once: another
    visit has another focus, so where time is left after all that is good the rest is tried again.

    Parameters
    ----------
    worth
        By hole: what it gives.
    surveys
        Of every square of the grid.
    timing
        What things take.
    seconds
        The time there is.
    """

    def __init__(
        self,
        worth: Mapping[str, float],
        surveys: Sequence[Survey],
        timing: Timing,
        seconds: float,
    ) -> None:
        super().__init__()
        self.timing, self.seconds = timing, number("seconds", seconds, above=0.0)
        self.surveys = {survey.square: survey for survey in surveys}
        self.worth = worth
        self._patches = {
            patch.name: _Holes(patch, worth, timing)
            for survey in surveys
            for patch in survey.patches
        }
        self.price = self._price()
        opened = (self._square(survey, self.price)[0] for survey in surveys)
        self.limit = self.price * self.seconds + sum(opened)

    def _square(self, survey: Survey, price: float) -> tuple[float, float]:
        """What opening a square is worth at a price, 0 if not worth it, and the seconds."""
        each = [self._patches[patch.name].value(price) for patch in survey.patches]
        value = sum(v for v, _ in each) - price * self.timing.square
        seconds = self.timing.square + sum(s for _, s in each)
        return (value, seconds) if value > 0.0 else (0.0, 0.0)

    def _price(self) -> float:
        """The lowest price at which the plan fits the time: 0 if all that is good fits."""

        def squares(rate: float) -> tuple[FloatArray, FloatArray]:
            each = [self._square(survey, rate) for survey in self.surveys.values()]
            worth, seconds = np.array(each, dtype=np.float64).reshape(len(each), 2).T
            return worth, seconds

        # Just above it, what breaks even there is left.
        return price_of(seconds=self.seconds, open=squares) * (1.0 + TOLERANCE)

    def square(self, squares: Sequence[Square], left: Left) -> Choice:
        ratios = [self._ratio(self.surveys[square.name]) for square in squares]
        if not ratios or max(ratios) <= 0.0:
            return Choice(None, "Nothing good is left to open.", rate=self.price)
        best = int(np.argmax(ratios))
        return Choice(squares[best].name, "The best rate.", rate=self.price)

    def _ratio(self, survey: Survey) -> float:
        """The reward per second of opening a square for what it is worth at the price."""
        value, seconds = self._square(survey, self.price)
        if seconds:
            return self.price + value / seconds
        holes = [self._patches[patch.name] for patch in survey.patches]
        gain, seconds = sum(h.gains.sum() for h in holes), sum(h.all_seconds for h in holes)
        # Below the price, so after all that is in the plan.
        return float(min(gain / (seconds + self.timing.square), self.price * (1 - 1e-9)))

    def patch(self, patches: Sequence[Open], left: Left) -> Choice:
        price = 0.0 if left.returning else self.price
        gains = [self._gain(one, price) for one in patches]
        best = int(np.argmax(gains))
        name = patches[best].patch.name
        if gains[best] <= 0.0 and left.returning:
            return Choice(name, "Nothing known to be good is left, and time is.")
        if gains[best] <= 0.0:
            return Choice(None, "Nothing here is worth its time.", rate=self.price)
        return Choice(name, "Worth its time.", gains[best], self.price)

    def _gain(self, one: Open, price: float) -> float:
        holes = [one.patch.holes[i] for i in one.rest]
        each = [(self.worth[hole.name], self.timing.hole(hole.shots)) for hole in holes]
        taken = [(y, s) for y, s in each if y - price * s > 0.0]
        gain = sum(y for y, _ in taken)
        return gain - price * (self.timing.enter + sum(s for _, s in taken)) if taken else 0.0

    def hole(self, here: Open, left: Left, *, inside: bool) -> Choice:
        best = max(here.rest, key=lambda i: self.worth[here.patch.holes[i].name])
        hole = here.patch.holes[best]
        price = -1.0 if left.returning else self.price
        if self.worth[hole.name] <= price * self.timing.hole(hole.shots):
            return Choice(None, "All that is worth its time was taken.", rate=self.price)
        return Choice(hole.name, "Worth its time.", self.worth[hole.name], self.price)

    def estimates(self, patch: Patch) -> FloatArray:
        return np.array([self.worth[hole.name] for hole in patch.holes])


class _Holes:
    """The holes of a patch by what they give per second, best first."""

    def __init__(self, patch: Patch, worth: Mapping[str, float], timing: Timing) -> None:
        gains = np.array([worth[hole.name] for hole in patch.holes])
        each = np.array([timing.hole(hole.shots) for hole in patch.holes])
        order = np.argsort(-gains / each, kind="stable")
        self.gains: FloatArray = gains[order]
        self.each: FloatArray = each[order]
        self.enter = timing.enter

    @property
    def all_seconds(self) -> float:
        """To take all that give anything."""
        return float(self.enter + self.each[self.gains > 0.0].sum())

    def value(self, price: float) -> tuple[float, float]:
        """What the patch is worth at a price, 0 if not worth entering, and the seconds."""
        net = self.gains - price * self.each
        taken = net > 0.0
        value = float(net[taken].sum()) - price * self.enter
        if value <= 0.0:
            return 0.0, 0.0
        return value, float(self.enter + self.each[taken].sum())
