"""Selection by looking at every allowed subset."""

import functools
import weakref
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from coaf.bandit.actions import Actions, Listed
from coaf.bandit.arrays import BoolArray, FloatArray, number
from coaf.bandit.groups import Groups
from coaf.bandit.latency import Additive, ByCount, Latency, Setup, Table, Tour, Tree
from coaf.bandit.selection.found import Found
from coaf.bandit.selection.sorting import limits_of
from coaf.bandit.selection.tour_paths import EXACT_POINTS, length_bound
from coaf.bandit.subsets import as_mask

# 2**15 subsets at a few microseconds each is what a live decision can wait for.
ENUMERABLE = 15

# The work of looking at a subset in Python, and of each node of a tree.
_SUBSET, _NODE = 100, 4

# Gaps that differ by less than this, relative to the largest, are computed again one by one: a
# product of matrices adds up in an order of its own.
_TIE = 1e-9


@functools.cache
def every_subset(n: int) -> BoolArray:
    """All subsets of n arms in the order of the bit masks: each comes before what contains it."""
    rows: BoolArray = (np.arange(1 << n)[:, None] >> np.arange(n)) & 1 == 1
    return rows


@dataclass(frozen=True, slots=True, eq=False)
class Remembered:
    """A latency whose time is known for every allowed subset, in the order of the bit masks."""

    times: FloatArray
    allowed: BoolArray

    def seconds(self, chosen: BoolArray) -> float:
        return float(self.times[int(chosen @ (1 << np.arange(len(chosen))))])

    def check(self, n: int) -> None:
        if len(self.times) != 1 << n:
            raise ValueError(f"times of {len(self.times)} subsets were given for {n} arms")


# What latencies of the user's own said, by their ids and the number of arms; NaN was never asked.
# Their rounds come and go, and asking may be slow. What is no longer there is forgotten.
_SAID: dict[int, dict[int, FloatArray]] = {}


def _said(latency: Latency, n: int) -> FloatArray:
    """What it said of the subsets of `n` arms, to be added to."""
    if id(latency) not in _SAID:
        try:
            weakref.finalize(latency, _SAID.pop, id(latency), None).atexit = False
        except TypeError:  # slots without a weak reference: nobody tells when it is gone
            return np.full(1 << n, np.nan)
        _SAID[id(latency)] = {}
    return _SAID[id(latency)].setdefault(n, np.full(1 << n, np.nan))


def remembered(
    latency: Latency, actions: Actions, n: int, groups: Groups | None, *, work: int, again: bool
) -> Latency:
    """A latency of one's own as what it says of the allowed subsets, each asked once.

    Any other is returned as it is, and so is one that the work does not suffice to ask. `again`:
    the largest subset is asked again; if it takes something else by now, so may all.
    """
    if not _is_own(latency, actions, n) or _SUBSET << n > work:
        return latency
    allowed, said, rows = allowed_subsets(actions, n, groups), _said(latency, n), every_subset(n)

    def ask(i: int) -> float:
        return number("latency.seconds(chosen)", latency.seconds(rows[i]), low=0.0)

    asked = np.flatnonzero(allowed).tolist()
    last = asked[-1] if again and asked and not np.isnan(said[asked[-1]]) else None
    if last is not None and (now := ask(last)) != said[last]:
        said[:] = np.nan
        said[last] = now
    for i in asked:
        if np.isnan(said[i]):
            said[i] = ask(i)
    return Remembered(np.where(allowed, said, 0.0), allowed)


def _best_remembered(
    rate: float, estimates: FloatArray, latency: Remembered, cap: float
) -> Found | None:
    """As `best_listed`, of all subsets at once."""
    times, rows = latency.times, every_subset(len(estimates))
    fits = latency.allowed & (times <= cap)
    if not fits.any():
        return None
    gaps = np.where(fits, rate * times - rows @ estimates, np.inf)
    slack = _TIE * (abs(rate) * times.max() + float(np.abs(estimates).sum()))
    best, least = 0, np.inf
    for i in np.flatnonzero(gaps <= gaps.min() + slack).tolist():
        gap = rate * times[i] - float(estimates[rows[i]].sum())
        if gap < least:
            best, least = i, gap
    return Found(rows[best].copy())


def allowed_subsets(actions: Actions, n: int, groups: Groups | None) -> BoolArray:
    """Which of all subsets are allowed."""
    rows, limits = every_subset(n), limits_of(actions, n, groups)
    if limits is None:
        return np.array([bool(actions.allows(row, groups)) for row in rows])
    counts = rows.sum(axis=1)
    allowed: BoolArray = (counts >= limits.low) & (counts <= limits.high)
    for arms, limit in limits.groups:
        allowed &= rows[:, arms].sum(axis=1) <= limit
    return allowed


def best_listed(
    rate: float,
    estimates: FloatArray,
    latency: Latency,
    actions: Actions,
    groups: Groups | None,
    *,
    cap: float,
    work: int,
) -> Found | None:
    """The first subset of smallest gap within the cap, or None if none is.

    When the work is done and one is found, the rest are not looked at: of them it is only known
    that no time is below 0. Of a tour through many points only bounds of its time are known.
    """
    if isinstance(latency, Remembered):
        return _best_remembered(rate, estimates, latency, cap)
    best: BoolArray | None = None
    least = lower = np.inf
    exact = True
    for chosen, known in _candidates(latency, actions, len(estimates), groups):
        if work <= 0 and best is not None:
            rest = -float(estimates[estimates > 0.0].sum()) if rate >= 0.0 else -np.inf
            lower, exact = min(lower, rest), False
            break
        work -= _effort(latency, chosen)
        time = latency.seconds(chosen) if known is None else known
        seconds = number("latency.seconds(chosen)", time, low=0.0)
        reward = float(estimates[chosen].sum())
        if type(latency) is Tour and np.count_nonzero(chosen) > EXACT_POINTS:
            exact = False
            travel = length_bound(latency.points[chosen], latency.start) / latency.speed
            shortest = latency.base + travel + float(np.sum(latency.each * chosen))
            if shortest <= cap:
                lower = min(lower, rate * (shortest if rate >= 0.0 else seconds) - reward)
        if seconds <= cap and (best is None or rate * seconds - reward < least):
            best, least = chosen, rate * seconds - reward
    return None if best is None else Found(best, max(0.0, least - lower), exact)


def _is_own(latency: Latency, actions: Actions, n: int) -> bool:
    """Whether all subsets have to be looked at, and can be."""
    return (
        not isinstance(latency, Additive | Setup | ByCount | Tree | Tour | Table | Remembered)
        and type(actions) is not Listed
        and n <= ENUMERABLE
    )


def _effort(latency: Latency, chosen: BoolArray) -> int:
    """The work of finding out how long a subset takes."""
    if type(latency) is Tree:
        return _SUBSET + _NODE * len(latency.parents)
    if type(latency) is Tour:
        k = int(np.count_nonzero(chosen))
        return _SUBSET + (6 << k if k <= EXACT_POINTS else 40_000 + 300 * k + k * k)
    return _SUBSET


def _candidates(
    latency: Latency, actions: Actions, n: int, groups: Groups | None
) -> Iterator[tuple[BoolArray, float | None]]:
    """The subsets that the table or the actions list, or else all; with their time if known."""
    if type(latency) is Table:
        listed = set(actions.subsets) if type(actions) is Listed else None
        for subset, time in zip(latency.subsets, latency.times.tolist(), strict=True):
            chosen = as_mask(subset, n)
            if actions.allows(chosen, groups) if listed is None else subset in listed:
                yield chosen, time
    elif type(actions) is Listed:
        for subset in actions.subsets:
            yield as_mask(subset, n), None
    elif n <= ENUMERABLE:
        for chosen in every_subset(n):
            if actions.allows(chosen, groups):
                yield chosen.copy(), None
    else:
        raise ValueError(
            f"cannot search the subsets of {n} arms under {type(latency).__name__} latency and "
            f"{type(actions).__name__} actions. Supported: Additive, Setup, ByCount, Tree and Tour "
            "latency with the actions of coaf.bandit.actions; Table; any latency with Listed "
            f"actions; and any latency and actions for up to {ENUMERABLE} arms"
        )
