"""What shots were taken under, as columns that a belief learns beside the ice."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.nested.variances import FIRST_VISIT, last_visit
from coaf.cryoem.circumstances import CIRCUMSTANCES, circumstances_of
from coaf.cryoem.pilot import Scored

SCALE = 1.5  # of the log odds that a circumstance may make, for a usual departure from the usual
_MOST = 25  # places that count by themselves
_ODD = 0.025  # share at either end that counts as no further: fits that failed say anything


@dataclass(frozen=True, slots=True)
class Curve:
    """A number that matters more, or less, the further it is from usual: x, and a bend of x.

    x is the number less its mean, in spreads. The bend is x² less what x and a constant explain of
    it, in spreads; of two values x says all, and there is none. So both are 0 on average.

    Attributes
    ----------
    low, high
        What is beyond counts as this.
    usual
        The median. A cycle may end in defoci that spoil every hole: on average over it no hole is
        as it is at any of them.
    mean, spread
        Of the numbers.
    lean, rest
        x² is lean·x + 1 on average, and the spread of what is beyond that.
    """

    low: float
    high: float
    usual: float
    mean: float
    spread: float
    lean: float
    rest: float

    @classmethod
    def of(cls, values: FloatArray) -> "Curve | None":
        """That of these numbers; None if they are all the same."""
        low, high = np.quantile(values, [_ODD, 1.0 - _ODD]).tolist()
        kept = np.clip(values, low, high)
        mean, spread = float(kept.mean()), float(kept.std())
        if spread <= 1e-9 * max(abs(low), abs(high)):
            return None
        x = (kept - mean) / spread
        lean = float((x**3).mean())
        rest = float((x * x - lean * x - 1.0).std())
        usual = float(np.median(values))
        return cls(low, high, usual, mean, spread, lean, rest if rest > 1e-6 else 0.0)

    def columns(self, values: FloatArray) -> FloatArray:
        """The columns of numbers, 0 for those that are not known (NaN)."""
        x = (np.clip(values, self.low, self.high) - self.mean) / self.spread
        bend = [(x * x - self.lean * x - 1.0) / self.rest] if self.rest else []
        return np.nan_to_num(np.column_stack([x, *bend]), nan=0.0)


@dataclass(frozen=True, slots=True)
class Places:
    """A number that is only a name: each has its own effect, and all on average are usual."""

    shares: tuple[tuple[float, float], ...]
    usual = float("nan")

    @classmethod
    def of(cls, values: FloatArray) -> "Places | None":
        """The places among these, the most usual ones; None if there is only one."""
        common = Counter(values.tolist()).most_common(_MOST)
        if len(common) == 1:
            return None
        return cls(tuple(sorted((place, count / len(values)) for place, count in common)))

    def columns(self, values: FloatArray) -> FloatArray:
        """The columns of places: 0 on average, and for those that are not known."""
        names, shares = np.array(self.shares).T
        here = (values[:, None] == names).astype(np.float64)
        return np.where(here.any(axis=1)[:, None], here - shares, 0.0)


class ShotEffects:
    """What the shots scored so far were taken under: columns for all of it that varies.

    Columns are 0 on average over the shots that say, and for those that do not. Holes are judged at
    what is usual: the median of a number, and all places on average (`Beside`). What no shot says,
    or all say alike, has no column. All this is found in the first ten scores, with each of them,
    and later whenever they have grown by a fifth, as variances are.
    """

    def __init__(self) -> None:
        self.scores: list[Scored] = []
        self.curves: dict[str, Curve | Places] = {}
        self.heard = True  # whether all that was ever scored is in `scores`

    def __deepcopy__(self, memo: Any) -> Self:
        other = type(self)()  # scores never change
        other.scores, other.curves, other.heard = [*self.scores], dict(self.curves), self.heard
        return other

    def tell(self, scores: Sequence[Scored]) -> bool:
        """More scores; whether columns are others now, so that all must be learned again."""
        if not self.heard:
            return False
        before = _measured(len(self.scores))
        self.scores += scores
        due = _measured(len(self.scores))
        return due > before and self._measure(self.scores[:due])

    def _measure(self, scores: Sequence[Scored]) -> bool:
        found: dict[str, Curve | Places] = {}
        for name in CIRCUMSTANCES:
            told = [s.circumstances[name] for s in scores if name in s.circumstances]
            kind = Places if name == "place" else Curve
            curve = kind.of(np.array(told)) if told else None
            if curve is not None:
                found[name] = curve
        changed, self.curves = found != self.curves, found
        return changed

    def columns(self, scores: Sequence[Scored]) -> FloatArray:
        """What is known of these shots (n, k)."""
        return self._columns([score.circumstances for score in scores])

    @property
    def usual(self) -> FloatArray:
        """What holes are judged at (k,)."""
        row: FloatArray = self._columns([{n: c.usual for n, c in self.curves.items()}])[0]
        return row

    def _columns(self, told: Sequence[Mapping[str, float]]) -> FloatArray:
        nan = float("nan")
        parts = [
            curve.columns(np.array([one.get(name, nan) for one in told]))
            for name, curve in self.curves.items()
        ]
        return np.hstack([np.zeros((len(told), 0)), *parts])

    @property
    def said(self) -> str:
        """At what holes are judged, for people; empty where shots do not differ."""
        if not self.curves:
            return ""
        return f" Holes are judged at usual {' and '.join(self.curves)}."

    def state(self) -> list[list[Any]]:
        """The scores, as JSON."""
        return [[s.hole, s.shot, s.reward, dict(s.circumstances)] for s in self.scores]

    @classmethod
    def restore(cls, state: Sequence[Sequence[Any]] | None) -> Self:
        """What `state` was taken from; None of an earlier release, which kept no scores.

        What was scored then cannot be learned again, so nothing is learned of circumstances.
        """
        effects = cls()
        effects.heard = state is not None
        for hole, shot, reward, circumstances in state or ():
            known: Mapping[str, float | None] = circumstances
            told = Scored(hole, shot, reward, circumstances=circumstances_of(known))
            effects.scores.append(told)
        effects._measure(effects.scores[: _measured(len(effects.scores))])
        return effects


def _measured(count: int) -> int:
    """The largest number of scores, up to `count`, at which columns are found."""
    return count if count < FIRST_VISIT else last_visit(count)
