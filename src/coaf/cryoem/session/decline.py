"""A slow decline: the best fits are no longer as good as they were.

Most fits of good ice pile up near the best that the instrument can do. Bad ice lowers the share of
those in a square and does not move them; charging, drift and a dying beam do. So a decline at some
rate since some time is compared with none: fits in the pile, moved or not, in a share of their own
in each square, and the others as smooth as fits before and since. Whoever takes the best holes
first sees fits become worse, but not a pile that moves.
"""

from dataclasses import dataclass
from math import log

import numpy as np

from coaf.bandit.arrays import FloatArray, IntArray
from coaf.cryoem.session.yardstick import student
from coaf.cryoem.timing import HOUR

_RATES = (1.0, 1.5)  # Å an hour
_BACK = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0)  # hours ago
_SHARES = np.array([0.0, 0.05, 0.15, 0.3, 0.6])[:, None]  # of fits in the pile
_BIN, _SMOOTH, _TOP = 0.1, 0.5, 30.0  # Å: of the density of the others, which is that of before
_PILE = 0.15  # share of fits that make the pile
_NARROW, _WIDE = 0.08, 0.2  # Å: a pile is not narrower than that, and one as wide is none
_LOWEST = 0.3  # it is among this share of the best fits
_DENSE = 1.6  # and denser than what is around it, so many times; or it is chance
_BEFORE, _SINCE = 30, 20  # scores needed before the decline and in it
_EVERY = 8  # scores from one look to the next
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


class Decline:
    """Remembers fits by shot, and says whether they decline."""

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._rows: list[tuple[float, float, int]] = []  # when exposed, Å, square
        self._squares: dict[str, int] = {}
        self._told = 0

    def tell(self, number: int, time: float, square: str, fit: float) -> bool:
        """A fit came of a shot exposed at this time; whether it is time to look."""
        self._numbers.append(number)
        self._rows.append((time, fit, self._squares.setdefault(square, len(self._squares))))
        self._told += 1
        return self._told % _EVERY == 0

    def drop(self, since: int, until: int) -> None:
        """Forget these shots: they say nothing of a decline."""
        keep = [i for i, number in enumerate(self._numbers) if not since <= number < until]
        self._numbers = [self._numbers[i] for i in keep]
        self._rows = [self._rows[i] for i in keep]

    def look(self, now: float) -> Fall | None:
        """The likeliest decline; None where too little is known."""
        if len(self._rows) < _BEFORE + _SINCE:
            return None
        rows = np.array(self._rows)
        times, fits, squares = rows[:, 0], rows[:, 1], rows[:, 2].astype(np.int64)
        found: list[Fall] = []
        for back in _BACK:
            begun = now - back * HOUR
            late = times > begun
            if np.count_nonzero(~late) < _BEFORE or np.count_nonzero(late) < _SINCE:
                continue
            pile = _pile(fits[~late])
            if not _stands_out(pile, fits[~late]):
                continue
            since = min(
                n for n, is_late in zip(self._numbers, late.tolist(), strict=True) if is_late
            )
            others = (_others(fits[~late], fits[late]) + _others(fits[late], fits[late])) / 2.0
            ice = _likelihood(pile, fits[late], others, squares[late])
            for rate in _RATES:
                moved = fits[late] - rate * (times[late] - begun) / HOUR
                ratio = _likelihood(pile, moved, others, squares[late]) - ice
                found.append(Fall(since, begun, rate, ratio, pile))
        return max(found, key=lambda fall: fall.ratio, default=None)

    def over(self, fall: Fall) -> int | None:
        """The first shot that is as good as before, if several of the last are."""
        last = sorted(zip(self._numbers, self._rows, strict=True))[-_OF:]
        top = fall.pile.place + 2.0 * fall.pile.width
        good = [number for number, row in last if row[1] <= top and number > fall.since]
        return good[0] if len(good) >= _AGAIN else None


def _pile(fits: FloatArray) -> Pile:
    """The shortest stretch that holds its share of the fits."""
    ordered = np.sort(fits)
    count = max(int(_PILE * len(ordered)), 6)
    widths = ordered[count:] - ordered[:-count]
    at = int(np.argmin(widths))
    width = max(float(widths[at]) / 2.0, _NARROW)
    return Pile(float(ordered[at] + ordered[at + count]) / 2.0, width)


def _stands_out(pile: Pile, fits: FloatArray) -> bool:
    if pile.width > _WIDE or pile.place > np.quantile(fits, _LOWEST):
        return False
    around = _others(fits, np.array([pile.place]))[0]
    share = np.mean(np.abs(fits - pile.place) <= pile.width)
    return bool(share / (2.0 * pile.width) >= _DENSE * around)


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


def _likelihood(pile: Pile, fits: FloatArray, others: FloatArray, squares: IntArray) -> float:
    near = student((fits - pile.place) / pile.width, 3.0) / pile.width
    each = np.log((1.0 - _SHARES) * others + _SHARES * near[None, :])
    total = 0.0
    for square in np.unique(squares):
        sums = each[:, squares == square].sum(axis=1)
        total += float(sums.max()) + log(float(np.exp(sums - sums.max()).mean()))
    return total
