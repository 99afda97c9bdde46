"""What beliefs find out by themselves: where features lie, and how large rewards are."""

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.rows import check_factor
from coaf.bandit.beliefs.runs import Run, joined
from coaf.bandit.groups import Groups
from coaf.bandit.shown import Shown
from coaf.bandit.state import entry, pack, unpack
from coaf.bandit.threads import on_one_thread

FEW = 32  # rows, up to which each one may change the units much
ROWS = 4096  # from which units stay as they are
FURTHEST = 32.0  # half ranges from the middle beyond which a feature counts as no further

_NUMBERS = ("mean", "size", "largest", "long", "rows", "stays")

# Rows with what was forgotten after them, or the name of a method that made them a prior.
Logged = Run | str


def _next(count: int) -> int:
    """The next number of rows at which units are measured: 1, 2, ..., 32, 64, 128, ..."""
    return count + 1 if count < FEW else 1 << count.bit_length()


@dataclass(frozen=True)
class Units:
    """Ranges of features and size of rewards in the rows learned, and these rows while they count.

    They are measured with each of the first 32 rows, then whenever their number reaches a power of
    two, and when the first reward other than 0 comes; from 4,096 rows on they stay, and the rows
    are given up. So they depend on the rows and their order, not on the pieces in which these came.

    Attributes
    ----------
    low, high : (dim,)
        The least and the largest of each feature.
    mean, size
        The average reward, and how far rewards are from it: with the mean square ω² of n rewards,
        size² = (Σ (y − mean)² + ω²)/n, which is 0 only if all rewards are 0.
    largest
        The largest magnitude of a reward; always of all rows.
    long
        The mean square length of rows in these units.
    places
        How many columns of rows come before their features, and have no units.
    """

    low: FloatArray
    high: FloatArray
    mean: float = 0.0
    size: float = 0.0
    largest: float = 0.0
    long: float = 0.0
    rows: int = 0
    log: tuple[Logged, ...] = ()
    stays: bool = False  # from now on, and the log is no longer kept
    places: int = 0

    @classmethod
    def none(cls, dim: int, *, places: int = 0) -> Self:
        """Before any row, of `dim` columns, places included."""
        zeros = np.zeros(dim - places)
        return cls(zeros, zeros.copy(), places=places)

    def __deepcopy__(self, memo: Any) -> Self:
        return self  # nothing in here ever changes

    def centred(self, X: FloatArray) -> FloatArray:
        """Features from −1 to 1 over the rows learned, and 0 in the middle.

        Of a feature that was the same in all rows it is only known whether it is more, or less.
        Before any row all arms are alike.
        """
        return self._scaled(X, 0.5 * (self.low + self.high), 0.5 * (self.high - self.low))

    def scaled(self, X: FloatArray) -> FloatArray:
        """Features of at most ±1 over the rows learned: 0 stays 0."""
        return self._scaled(X, np.zeros_like(self.low), np.maximum(-self.low, self.high))

    def _scaled(self, X: FloatArray, middle: FloatArray, half: FloatArray) -> FloatArray:
        if self.rows == 0:
            return np.zeros_like(X)
        same = half == 0.0
        away = X - middle
        Z: FloatArray = away / np.where(same, 1.0, half)
        Z[:, same] = np.sign(away[:, same])
        return np.clip(Z, -FURTHEST, FURTHEST, out=Z)

    def after(self, rows: Run, *, sized: bool) -> "Units":
        """With these rows in the log, and measured if that became due."""
        log, at, total = (*self.log, rows), self.rows, self.rows + len(rows)
        rewarded = np.flatnonzero(rows.y) if sized and self.size == 0.0 else np.empty(0)
        first = self.rows + 1 + int(rewarded[0]) if rewarded.size else 0
        due, stays = 0, False
        while not stays:
            following = min(_next(at), first) if at < first else _next(at)
            if following > total:
                break
            at = due = following
            stays = at >= ROWS and (not sized or self.size > 0.0 or 0 < first <= at)
        found = self
        if due:
            # Parted where it is measured, so that it makes no difference in which pieces rows came.
            parts = rows.part(slice(due - self.rows)), rows.part(slice(due - self.rows, None))
            log = compact((*self.log, parts[0]))
            found = self._measured([e for e in log if isinstance(e, Run)])
            log = (*log, parts[1]) if len(parts[1]) else log
        return replace(found.met(rows), log=log, rows=total, stays=stays)

    def met(self, rows: Run) -> "Units":
        """With the largest reward so far."""
        largest = float(np.abs(rows.y).max(initial=0.0))
        return self if largest <= self.largest else replace(self, largest=largest)

    @property
    def prior(self) -> tuple[Logged, ...]:
        """What made the prior."""
        marks = [i + 1 for i, event in enumerate(self.log) if isinstance(event, str)]
        return self.log[: marks[-1]] if marks else ()

    def then(self, event: Logged, *, sized: bool) -> "Units":
        """After rows and what was forgotten of them, or after they became a prior."""
        if isinstance(event, str):
            return self if self.stays else replace(self, log=(*self.log, event))
        units = self if self.stays else self.after(replace(event, factor=1.0), sized=sized)
        return units if event.factor == 1.0 else units.faded(event.factor)

    def faded(self, factor: float) -> "Units":
        """With the rows since the prior counting for less."""
        if self.stays or not self.log or isinstance(last := self.log[-1], str):
            return self
        least = max(last.factor * factor, 1e-300)  # never 0, however often one forgets
        return replace(self, log=(*self.log[:-1], replace(last, factor=least)))

    def _measured(self, rows: list[Run]) -> "Units":
        """The units by these rows."""
        X, y = (np.concatenate([getattr(r, name) for r in rows]) for name in ("X", "y"))
        X = X[:, self.places :]
        mean, square = float(y.mean()), float(y @ y) / len(y)
        away = y - mean
        size = float(np.sqrt((away @ away + square) / len(y)))
        ranges = {"low": X.min(axis=0), "high": X.max(axis=0)}
        found = replace(self, **ranges, mean=mean, size=size, rows=len(y))
        Z = found.centred(X)
        return replace(found, long=float(np.vdot(Z, Z)) / len(y))

    def state(self) -> dict[str, Any]:
        log = [e.state() if isinstance(e, Run) else e for e in compact(self.log)]
        numbers = {name: getattr(self, name) for name in _NUMBERS}
        ranges = {"low": pack(self.low), "high": pack(self.high)}
        return {**ranges, **numbers, "places": self.places, "log": log}

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> Self:
        log = tuple(e if isinstance(e, str) else Run.restore(e) for e in entry(state, "log"))
        numbers = {name: entry(state, name) for name in _NUMBERS}
        numbers["places"] = state.get("places", 0)  # states of earlier releases know none
        return cls(unpack(state, "low"), unpack(state, "high"), **numbers, log=log)


def compact(log: tuple[Logged, ...]) -> tuple[Logged, ...]:
    """The same events, with rows that came one after another in one run."""
    result: list[Logged] = []
    runs: list[Run] = []
    for event in log:
        if isinstance(event, Run):
            runs.append(event)
        else:
            result += [*joined(runs), event]
            runs = []
    return (*result, *joined(runs))


@on_one_thread()
class Unitless(Shown):
    """A belief whose prior is in units that it finds in its rows, unless they are stated.

    A class that builds on this says how to start, to add rows, to let them fade and to make them
    the prior, all in the units at hand; whenever the units change, all that happened is done over
    in the new ones.
    """

    dim: int
    _units: Units | None  # None where all is stated
    _sized = True  # whether it matters how large rewards are
    _beyond: tuple[float, float] = (0.0, 0.0)  # how much, and how often, rewards exceeded a bound

    @property
    def reward_size(self) -> float:
        """How large rewards are: 0 while nothing is known of it, infinite where it is stated."""
        return np.inf if self._units is None or not self._sized else self._units.size

    def _start(self) -> None:
        """Know what is known before any row."""
        raise NotImplementedError

    def _add(self, rows: Run) -> None:
        """Learn rows that were checked."""
        raise NotImplementedError

    def _fade(self, factor: float) -> None:
        """Let rows count for less."""
        raise NotImplementedError

    def _settle(self) -> None:
        """Let what is known be the prior."""
        raise NotImplementedError

    def _rewind(self) -> None:
        """Know the prior alone."""
        raise NotImplementedError

    @property
    def _settled(self) -> bool:
        """Whether the prior has rows."""
        raise NotImplementedError

    def _fit(self, rows: Run) -> None:
        """Learn rows after the prior, all at once; in pieces does as well unless said."""
        self._rewind()
        self._add(rows)

    def _compare(self, rows: Run) -> None:
        """Rows were learned: do they keep to what was stated?"""

    def _checked(
        self, features: npt.ArrayLike, rewards: npt.ArrayLike, groups: Groups | None
    ) -> Run:
        """Rows that can be learned."""
        raise NotImplementedError

    def _become(self, other: Self) -> None:
        vars(self).update(vars(other))

    def learn(
        self, features: npt.ArrayLike, rewards: npt.ArrayLike, groups: Groups | None = None
    ) -> None:
        """Add any number of rows."""
        rows, new = self._checked(features, rewards, groups), copy(self)
        new._take(rows)
        self._become(new)
        self._compare(rows)  # last, as a warning may be raised

    def refit(
        self, features: npt.ArrayLike, rewards: npt.ArrayLike, groups: Groups | None = None
    ) -> None:
        """Start again from the prior with these rows."""
        rows, new = self._checked(features, rewards, groups), copy(self)
        units = self._units
        if units is not None and not (units.stays and self._settled):
            new._units = Units.none(self.dim, places=units.places)
            for event in (*units.prior, rows):
                new._units = new._units.then(event, sized=self._sized)
            new._start()
            for event in new._units.prior:
                new._redo(event)
        new._fit(rows)
        new._drop()
        new._beyond = (0.0, 0.0)
        self._become(new)
        self._compare(rows)

    def forget(self, factor: float) -> None:
        """Let the rows learned count `factor` of what they did; units stay."""
        if check_factor(factor) == 1.0:
            return
        new = copy(self)
        new._fade(float(factor))
        if new._units is not None:
            new._units = new._units.faded(float(factor))
        self._become(new)

    def settle(self) -> None:
        """Let what is known now be the prior."""
        self._mark("_settle")

    def _mark(self, name: str) -> None:
        """Do, and remember, what makes rows a prior."""
        new = copy(self)
        getattr(new, name)()
        if new._units is not None:
            new._units = new._units.then(name, sized=self._sized)
        self._become(new)

    def _take(self, rows: Run) -> None:
        """Add rows; where units change, do all over in the new ones."""
        before = self._units
        if before is None or before.stays:
            self._units = before if before is None else before.met(rows)
            self._add(rows)
            return
        self._units = before.after(rows, sized=self._sized)
        if self._units.low is before.low:
            self._add(rows)
            return
        self._start()
        for event in self._units.log:
            self._redo(event)
        self._drop()

    def _redo(self, event: Logged) -> None:
        if isinstance(event, str):
            getattr(self, event)()
            return
        self._add(event)
        if event.factor < 1.0:
            self._fade(event.factor)

    def _drop(self) -> None:
        if self._units is not None and self._units.stays:
            self._units = replace(self._units, log=())
