"""Which grid of a cassette to load: what a look at each would teach, and then be worth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import exp, isfinite, log, sqrt
from statistics import NormalDist

from coaf.cryoem.pilot import Choice, Left, Other
from coaf.cryoem.pilots.grid_order import Standing, next_grid
from coaf.cryoem.timing import HOUR

# Of the logarithm of what a second is worth: how far grids of a cassette differ, and for how many
# of them that guess counts; how far a patch misses its grid. (`python benchmarks/cassettes.py`)
BETWEEN, GUESS, PATCH = 1.0, 2.0, 1.2
LOOK = 6  # patches
_DRAWS = 9  # of what a look may tell


@dataclass(frozen=True, slots=True)
class _Grid:
    """A grid as plans see it: the log rate and its variance, patches looked at, and its supply."""

    mean: float
    variance: float
    looked: int
    seconds: float  # of work that is left on it
    look: float  # seconds of a look
    way: float  # seconds to load it

    @property
    def rate(self) -> float:
        return exp(self.mean + 0.5 * self.variance)


class GridChoice:
    """Load the grid of which a look promises most, what can be done afterwards included.

    What a second is worth on a grid is known the better the more of its patches were looked at; of
    one that was never loaded only by the others, and by how far these differ. A look at a grid, a
    few patches of it, brings what these hold and tells more of the grid; what follows is the best
    plan without further looks: the best grids first, each for as long as it has patches, with the
    seconds that loading takes. The grid that is loaded is one of those to look at, without a way to
    it: who stays looks there.
    """

    def choose(
        self, here: str, known: Mapping[str, Standing], others: Sequence[Other], left: Left
    ) -> Choice:
        if left.idle:
            return self._idle(known, others, left)
        now = known.get(here)
        if now is None or (now.looked < LOOK and now.left > 0.0):
            return Choice(None, "Its first patches tell what it is worth.")
        if not any(one.rate > 0.0 for one in known.values()):
            return Choice(None, "No score tells yet what a grid is worth.")
        grids = _grids(here, known, others, left)
        if not grids:
            return Choice(None, "No grid has patches left to look at.")
        seconds = _time(grids, left)
        values = {name: _look(name, grids, here, seconds) for name in grids}
        best = max(values, key=lambda name: (values[name], name == here))
        if best == here or values[best] <= 0.0:
            return Choice(None, "No other grid promises more.", values.get(here, 0.0))
        hour = HOUR * grids[best].rate
        seen = "seen before" if grids[best].looked else "new"
        why = f"This {seen} grid promises {hour:.3g} an hour, loading it aside."
        return Choice(best, why, values[best] - values.get(here, 0.0), grids[best].rate)

    def elsewhere(self, here: Standing, known: Mapping[str, Standing], left: Left) -> float:
        """What the last second is worth if the others fill the time that this grid leaves."""
        seen = {name: one for name, one in known.items() if one.rate > 0.0 and one.left}
        # A first look is there to learn from, and not held against what is known to be good.
        if here.looked < LOOK or not seen or not isfinite(left.seconds):
            return 0.0
        grids = _grids("", seen, [Other(name, seen=True) for name in seen], left)
        return _planned(grids, left.seconds - here.each * here.left)[1]

    def _idle(self, known: Mapping[str, Standing], others: Sequence[Other], left: Left) -> Choice:
        held = [other for other in others if other.squares and other.name in known]
        best = max(held, key=lambda other: known[other.name].rate, default=None)
        if best is not None and all(other.seen for other in others):
            return Choice(best.name, "The best of the grids that have patches left.")
        return next_grid(others, left)


def _grids(
    here: str, known: Mapping[str, Standing], others: Sequence[Other], left: Left
) -> dict[str, _Grid]:
    """The grids that can be worked on: what is known of their rates, and how much they hold."""
    told = {name: one for name, one in known.items() if one.rate > 0.0 and one.looked}
    logs = {name: log(one.rate) for name, one in told.items()}
    middle = sum(logs.values()) / len(logs)
    far = sum((each - middle) ** 2 for each in logs.values())
    between = (GUESS * BETWEEN**2 + far) / (GUESS + len(logs) - 1)
    wide = between * (1.0 + 1.0 / len(logs))
    # A new grid is expected to be as good as those seen are on average: no better for being new.
    usual = log(sum(one.rate for one in told.values()) / len(told)) - 0.5 * wide
    held = sum(one.looked + one.left for one in known.values()) / len(known)
    each = sum(one.each for one in told.values()) / len(told)
    timing, found = left.timing, {}
    for other in others:
        if not other.seen:
            way = timing.load + timing.atlas
            found[other.name] = _Grid(usual, wide, 0, held * each, LOOK * each, way)
    ways = {other.name: timing.load for other in others} | {here: 0.0}
    for name, one in known.items():
        if name not in ways or one.left <= 0.0:
            continue
        if name in told:
            trust = one.looked / PATCH**2
            variance = 1.0 / (trust + 1.0 / wide)
            mean = variance * (trust * logs[name] + usual / wide)
        else:  # it gave nothing to go by
            mean, variance = usual, wide
        seconds = one.each if one.worked else each
        found[name] = _Grid(
            mean, variance, one.looked, one.left * seconds, LOOK * seconds, ways[name]
        )
    return found


def _time(grids: Mapping[str, _Grid], left: Left) -> float:
    """The time left; if it has no end, what there is to do."""
    if isfinite(left.seconds):
        return left.seconds
    return sum(one.seconds + one.way for one in grids.values())


def _look(name: str, grids: dict[str, _Grid], here: str, seconds: float) -> float:
    """What is to be had if a look at this grid comes next, and then what is best."""
    one = grids[name]
    spent = min(one.look, one.seconds)
    rest = seconds - one.way - spent
    if rest < 0.0:
        return one.rate * max(seconds - one.way, 0.0)
    after = 1.0 / (1.0 / one.variance + LOOK / PATCH**2)
    far = sqrt(max(one.variance - after, 0.0))
    draws = [exp(far * z) for z in _quantiles()]
    fair = sum(draws) / len(draws)  # to look makes nothing better on average
    expected, total = log(one.rate) - 0.5 * after, 0.0
    for draw in draws:
        seen = replace(
            one,
            mean=expected + log(draw / fair),
            variance=after,
            seconds=one.seconds - spent,
            way=0.0,
        )
        # Whoever goes elsewhere must load the grid that is there now anew.
        back = {
            key: replace(other, way=max(other.way, _least(grids))) if key == here else other
            for key, other in grids.items()
        }
        total += seen.rate * spent + _planned({**back, name: seen}, rest)[0]
    return total / _DRAWS


def _least(grids: Mapping[str, _Grid]) -> float:
    """What loading takes."""
    return min((one.way for one in grids.values() if one.way > 0.0), default=0.0)


def _planned(grids: Mapping[str, _Grid], seconds: float) -> tuple[float, float]:
    """What the best grids give one after another, and what the last second of the time is worth."""
    value, last = 0.0, 0.0
    for one in sorted(grids.values(), key=lambda grid: -grid.rate):
        rest = seconds - one.way
        if rest <= 0.0 or one.seconds <= 0.0:
            continue
        used = min(rest, one.seconds)
        value += one.rate * used
        seconds = rest - used
        if seconds <= 0.0:
            last = one.rate
            break
    return value, last


@cache
def _quantiles() -> tuple[float, ...]:
    normal = NormalDist()
    return tuple(normal.inv_cdf((i + 0.5) / _DRAWS) for i in range(_DRAWS))
