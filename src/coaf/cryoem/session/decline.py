"""A slow decline: the best fits are no longer as good as they were.

Most fits of good ice pile up near the best that the instrument can do. Bad ice lowers the share of
those in a place and does not move them; charging, drift and a dying beam do. So a decline at some
rate since some time is compared with none: fits in the pile, moved or not, in a share of their own
in each patch, and the others as smooth as fits before and since. Shares of patches lie about that
of their square, so to go back to a square that was measured before tells much. Whoever takes the
best holes first sees fits become worse, but not a pile that moves.
"""

from dataclasses import dataclass

import numpy as np

from coaf.bandit.arrays import FloatArray, IntArray
from coaf.cryoem.session.yardstick import student
from coaf.cryoem.timing import HOUR

_RATES = (1.0, 1.5)  # Å an hour
_BACK = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0)  # hours ago
_SHARES = np.array([0.0, 0.05, 0.15, 0.3, 0.5, 0.7, 0.9])  # of fits in the pile
_ALIKE = 0.5  # how often a patch has the share of its square
_OF_PATCH = _ALIKE * np.eye(len(_SHARES)) + (1.0 - _ALIKE) / len(_SHARES)
_BIN, _SMOOTH, _TOP = 0.05, 0.25, 30.0  # Å: of the density of the others, which is that of before
_PILE, _FEW = (0.05, 0.1, 0.15, 0.25), 6  # share of fits that make the pile, and how many at least
_NARROW, _WIDE = 0.08, 0.2  # Å: a pile is not narrower than that, and one as wide is none
_SLACK = 0.08  # Å: when and how fast is not known better
_BETTER = 0.1  # how likely fits better than the pile are, for that of the others
_LOWEST = 0.3  # it is among this share of the best fits
_DENSE = 1.6  # and denser than what is around it, so many times
_SURE = 3.0  # by more standard deviations than that, or it is chance
_BEFORE, _SINCE = 25, 10  # scores needed before the decline and in it
_AGAIN, _OF = 4, 20  # so many of the last scores in the pile: it is over


@dataclass(frozen=True, slots=True)
class Pile:
    """Where the best fits lie: Å, and half the width."""

    place: float
    width: float


@dataclass(frozen=True, slots=True)
class Fall:
    """A decline: the first shot in it, when it began, Å an hour, how sure, and from what pile."""

    since: int
    time: float
    rate: float
    ratio: float
    pile: Pile

    def explains(self, time: float, fit: float) -> bool:
        """Whether a fit lies where the pile has moved by then."""
        moved = self.pile.place + self.rate * max(time - self.time, 0.0) / HOUR
        return abs(fit - moved) <= 2.0 * float(np.hypot(self.pile.width, _SLACK))


class Decline:
    """Remembers fits by shot, and says whether they decline."""

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._rows: list[tuple[float, float, int]] = []  # when exposed, Å, patch
        self._patches: dict[tuple[str, bool], int] = {}
        self._squares: dict[str, int] = {}
        self._square_of: list[int] = []  # by patch

    def tell(
        self, number: int, *, time: float, square: str, patch: str, fit: float, left: bool = False
    ) -> None:
        """A fit came of a shot exposed at this time.

        Holes that were `left` by someone who chose may be worse than those he took: they have a
        share of their own.
        """
        around = self._squares.setdefault(square, len(self._squares))
        here = self._patches.setdefault((patch, left), len(self._patches))
        if here == len(self._square_of):
            self._square_of.append(around)
        self._numbers.append(number)
        self._rows.append((time, fit, here))

    def drop(self, since: int, until: int) -> None:
        """Forget these shots: they say nothing of a decline."""
        keep = [i for i, number in enumerate(self._numbers) if not since <= number < until]
        self._numbers = [self._numbers[i] for i in keep]
        self._rows = [self._rows[i] for i in keep]

    def look(self, now: float) -> Fall | None:
        """The likeliest decline; None where too little is known."""
        if len(self._rows) < _BEFORE + _SINCE:
            return None
        rows, numbers = np.array(self._rows), np.array(self._numbers)
        times, fits, patches = rows[:, 0], rows[:, 1], rows[:, 2].astype(np.int64)
        squares = np.array(self._square_of)[patches]
        found: list[Fall] = []
        for back in _BACK:
            begun = now - back * HOUR
            late = times > begun
            if np.count_nonzero(~late) < _BEFORE or np.count_nonzero(late) < _SINCE:
                continue
            pile = _pile(fits[~late])
            if pile is None:
                continue
            # What was measured elsewhere says the same of both.
            there = np.flatnonzero(np.isin(squares, squares[late]))
            there = there[np.argsort(patches[there], kind="stable")]
            here, since = fits[there], np.maximum(times[there] - begun, 0.0) / HOUR
            places = _Places(patches[there], np.array(self._square_of))
            others = (_others(fits[~late], here) + _others(fits[late], here)) / 2.0
            ice = places.likelihood(pile, here, others)
            for rate in _RATES:
                ratio = places.likelihood(pile, here - rate * since, others) - ice
                found.append(Fall(int(numbers[late].min()), begun, rate, ratio, pile))
        return max(found, key=lambda fall: fall.ratio, default=None)

    def references(self, fall: Fall) -> tuple[str, ...]:
        """Patches measured before it, by their share in the pile: fits there would tell."""
        top = fall.pile.place + 2.0 * fall.pile.width
        counts = np.zeros((len(self._patches), 2))
        for time, fit, patch in self._rows:
            if time <= fall.time:
                counts[patch] += 1.0, fit <= top
        share = counts[:, 1] / (counts[:, 0] + 2.0)
        names = [patch for patch, _ in self._patches]
        best = np.argsort(-share, kind="stable").tolist()
        return tuple(dict.fromkeys(names[i] for i in best if counts[i, 1] >= 2.0))

    def over(self, fall: Fall) -> int | None:
        """The first shot that is as good as before, if several of the last are."""
        last = sorted(zip(self._numbers, self._rows, strict=True))[-_OF:]
        top = fall.pile.place + 2.0 * fall.pile.width
        good = [number for number, row in last if row[1] <= top and number > fall.since]
        return good[0] if len(good) >= _AGAIN else None


def _pile(fits: FloatArray) -> Pile | None:
    """The shortest stretch, low among the fits, that holds more of them than chance would have."""
    ordered, found, surest = np.sort(fits), None, _SURE
    lowest = ordered[: int(_LOWEST * len(fits)) + 1]
    for share in _PILE:
        count = max(int(share * len(fits)), _FEW)
        middles = (ordered[count:] + ordered[:-count]) / 2.0
        widths = (ordered[count:] - ordered[:-count])[middles <= lowest[-1]]
        if not len(widths):
            continue
        at = int(np.argmin(widths))
        pile = Pile(float(middles[at]), max(float(widths[at]) / 2.0, _NARROW))
        there = float(np.count_nonzero(np.abs(fits - pile.place) <= pile.width))
        expected = 2.0 * pile.width * float(_others(fits, middles[at : at + 1])[0]) * len(fits)
        sure = (there - expected) / expected**0.5
        if pile.width <= _WIDE and there >= _DENSE * expected and sure > surest:
            found, surest = pile, sure
    return found


def _others(before: FloatArray, fits: FloatArray) -> FloatArray:
    """The density, per Å, of fits that are in no pile: of those before, smoothed."""
    edges = np.arange(0.0, _TOP + _BIN, _BIN)
    counts = np.histogram(np.minimum(before, _TOP - _BIN), edges)[0]
    reach = np.arange(-3.0 * _SMOOTH, 3.0 * _SMOOTH + _BIN / 2.0, _BIN)
    kernel = np.exp(-0.5 * (reach / _SMOOTH) ** 2)
    density = np.convolve(counts, kernel / kernel.sum(), mode="same") / (len(before) * _BIN)
    at = np.minimum(fits / _BIN, len(density) - 1).astype(np.int64)
    smooth: FloatArray = density[at] + 0.1 / _TOP
    return smooth


class _Places:
    """Which patch each fit is of, in order of patches, and which square each patch."""

    def __init__(self, patches: IntArray, square_of: IntArray) -> None:
        self._first = np.flatnonzero(np.diff(patches, prepend=-1))
        self._squares = square_of[patches[self._first]]
        self._count = len(square_of)

    def likelihood(self, pile: Pile, fits: FloatArray, others: FloatArray) -> float:
        """The logarithm of how likely fits are, over all shares that squares and patches may have.

        `others` is the density of each if it is not in the pile.
        """
        width = float(np.hypot(pile.width, _SLACK))
        near = student((fits - pile.place) / width, 3.0) / width
        # The pile is at the best there is: a single good fit speaks against a pile that moved.
        others = np.where(fits < pile.place - 2.5 * width, _BETTER * others, others)
        each = np.log((1.0 - _SHARES) * others[:, None] + _SHARES * near[:, None])
        patches = np.add.reduceat(each, self._first, axis=0)
        most = patches.max(axis=1, keepdims=True)
        squares = np.zeros((self._count, len(_SHARES)))
        np.add.at(squares, self._squares, np.log(np.exp(patches - most) @ _OF_PATCH) + most)
        top = squares.max(axis=1)
        return float((np.log(np.exp(squares - top[:, None]).mean(axis=1)) + top).sum())
