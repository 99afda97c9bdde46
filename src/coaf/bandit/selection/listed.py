"""Selection by looking at every allowed subset."""

from collections.abc import Iterator

import numpy as np

from coaf.bandit.actions import Actions, Listed
from coaf.bandit.arrays import BoolArray, FloatArray, number
from coaf.bandit.groups import Groups
from coaf.bandit.latency import Latency, Table, Tour, Tree
from coaf.bandit.selection.found import Found
from coaf.bandit.selection.tour_paths import EXACT_POINTS, length_bound
from coaf.bandit.subsets import as_mask

# 2**15 subsets at a few microseconds each is what a live decision can wait for.
ENUMERABLE = 15

# The work of looking at a subset in Python, and of each node of a tree.
_SUBSET, _NODE = 100, 4


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
        # In the order of the bit masks: a subset comes before what contains it.
        bits = np.arange(n)
        for mask in range(1 << n):
            chosen = (mask >> bits) & 1 == 1
            if actions.allows(chosen, groups):
                yield chosen, None
    else:
        raise ValueError(
            f"cannot search the subsets of {n} arms under {type(latency).__name__} latency and "
            f"{type(actions).__name__} actions. Supported: Additive, Setup, ByCount, Tree and Tour "
            "latency with the actions of coaf.bandit.actions; Table; any latency with Listed "
            f"actions; and any latency and actions for up to {ENUMERABLE} arms"
        )
