"""Evidence of a fault: scores that are alike and bad wherever they are taken.

A fault is a level of its own, far above what is usual, that does not care for places; or fits
just fail. The test is a sum of likelihood ratios over when it may have begun (Shiryaev and
Roberts), in the order of exposure. What it is compared with is what the ice can explain
(`Yardstick`), so bad places cost it little; but that several places should turn bad at once, or
one that was good, costs it much.
"""

from dataclasses import dataclass
from math import log

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.cryoem.session.yardstick import FLAT, HIGH, LOW, STRAY, Yardstick, student

_ABOVE = 0.6  # a fault is at least so far above what is usual, in logarithms
_LEVELS = 8
_SPREADS = np.repeat([0.15, 0.35], _LEVELS)
_KINDS = len(_SPREADS) + 1  # the last: fits just fail
_FAILS, _FAILS_ALL = (
    0.05,
    0.9,
)  # share of fits that fail with a fault, and with one of the last kind
_WINDOW = 120  # shots
_HISTORY = 20  # scores before a fault that can be seen
_CALM = 5.0  # with more evidence nothing is learned


@dataclass(frozen=True, slots=True)
class FaultKind:
    """A fault as it showed itself: levels that it may have, and the logarithm of their shares."""

    levels: FloatArray
    shares: FloatArray


class Evidence:
    """Of one measure: how much speaks for a fault, and since when.

    Attributes
    ----------
    ratio
        The logarithm of the sum of likelihood ratios.
    since
        The first shot of the likeliest fault.
    """

    def __init__(self) -> None:
        self.yardstick = Yardstick()
        self.ratio, self.since = -np.inf, 0
        self._rows = np.zeros((256, _KINDS))
        self._known: list[int] = []  # shots with a score, in order of exposure
        self._first = 0  # nothing before this shot counts
        self._best = np.zeros(
            _KINDS
        )  # of the fault that lasts: by kind, the logarithm of its share
        self._raise()

    def _raise(self) -> None:
        """A fault lies above what is usual now."""
        lowest = min(self.yardstick.usual + _ABOVE, HIGH - 0.5)
        self._levels = np.tile(np.linspace(lowest, HIGH - 0.1, _LEVELS), 2)

    def tell(self, number: int, square: str, patch: str, value: float | None) -> None:
        """The value of a shot, None if its fit failed."""
        value = None if value is None else min(max(value, LOW), HIGH)
        while number >= len(self._rows):
            self._rows = np.vstack([self._rows, np.zeros_like(self._rows)])
        self._rows[number] = _of_fault(value, self._levels) - self._of_ice(square, patch, value)
        at = len(self._known)
        while at and self._known[at - 1] > number:
            at -= 1
        self._known.insert(at, number)
        self._weigh()
        self.yardstick.tell(square, patch, value, learn=self.ratio < _CALM)
        if self.ratio < _CALM:
            self._raise()

    def _of_ice(self, square: str, patch: str, value: float | None) -> float:
        fails = self.yardstick.failure(square, patch)
        if value is None:
            return log(fails)
        return log(1.0 - fails) + self.yardstick.likelihood(square, patch, value)

    def _weigh(self) -> None:
        known = self._known[max(_HISTORY, len(self._known) - _WINDOW) :]
        known = [number for number in known if number >= self._first]
        if not known:
            self.ratio = -np.inf
            return
        sums = np.add.accumulate(self._rows[known[::-1]], axis=0)
        most = float(sums.max())
        ratios = np.exp(sums - most).sum(axis=1)
        self.ratio = most + log(float(ratios.sum()) / _KINDS)
        at = len(known) - 1 - int(np.argmax(ratios))
        # What was exposed before and has no score yet is in doubt as well.
        before = self._known[: self._known.index(known[at])]
        self.since = before[-1] + 1 if before else 0
        self._best = sums[len(known) - 1 - at]

    def kind(self) -> FaultKind:
        """What is known of the fault that there is."""
        logs = self._best - self._best.max()
        return FaultKind(self._levels, logs - log(float(np.exp(logs).sum())))

    def good(self, square: str, patch: str, value: float | None, kind: FaultKind) -> float:
        """How much a score speaks for the ice again, rather than for a fault of this kind."""
        value = None if value is None else min(max(value, LOW), HIGH)
        fault = log(float(np.exp(_of_fault(value, kind.levels) + kind.shares).sum()))
        return self._of_ice(square, patch, value) - fault

    def calm(self, number: int) -> None:
        """Begin anew: what was taken before this shot does not count for another fault."""
        self._first, self.ratio = number, -np.inf


def _of_fault(value: float | None, levels: FloatArray) -> FloatArray:
    """By kind: the logarithm of the density of a value."""
    logs = np.empty(_KINDS)
    if value is None:
        logs[:-1], logs[-1] = log(_FAILS), log(_FAILS_ALL)
    else:
        near = student((value - levels) / _SPREADS, 4.0) / _SPREADS
        logs[:-1] = np.log((1.0 - _FAILS) * ((1.0 - STRAY) * near + STRAY * FLAT))
        logs[-1] = log((1.0 - _FAILS_ALL) * FLAT)
    return logs
