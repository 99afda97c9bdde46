"""Selection by looking at every allowed subset."""

from collections.abc import Iterable, Iterator

import numpy as np

from coaf.bandit.actions import Actions, Listed
from coaf.bandit.arrays import BoolArray, FloatArray, number
from coaf.bandit.groups import Groups
from coaf.bandit.latency import Latency, Table
from coaf.bandit.subsets import as_mask

# 2**15 subsets at a few microseconds each is what a live decision can wait for.
ENUMERABLE = 15


def candidates(
    latency: Latency, actions: Actions, n: int, groups: Groups | None
) -> Iterator[BoolArray]:
    """The subsets to look at: those the table or the actions list, or else all of them."""
    if type(latency) is Table:
        masks = (as_mask(subset, n) for subset in latency.subsets)
        return (chosen for chosen in masks if actions.allows(chosen, groups))
    if type(actions) is Listed:
        return (as_mask(subset, n) for subset in actions.subsets)
    if n > ENUMERABLE:
        raise ValueError(
            f"cannot search the subsets of {n} arms under {type(latency).__name__} latency and "
            f"{type(actions).__name__} actions. Supported: Additive, Setup, ByCount, Tree and Tour "
            "latency with the actions of coaf.bandit.actions; Table; any latency with Listed "
            f"actions; and any latency and actions for up to {ENUMERABLE} arms"
        )
    # In the order of the bit masks: a subset comes before what contains it.
    bits = np.arange(n)
    masks = ((number >> bits) & 1 == 1 for number in range(1 << n))
    return (chosen for chosen in masks if actions.allows(chosen, groups))


def best_of(
    rate: float, estimates: FloatArray, latency: Latency, subsets: Iterable[BoolArray], cap: float
) -> tuple[BoolArray | None, int]:
    """The first subset of smallest gap within the cap, and the most arms any subset has."""
    best: BoolArray | None = None
    least = np.inf
    largest = 0
    for chosen in subsets:
        seconds = number("latency.seconds(chosen)", latency.seconds(chosen), low=0.0)
        largest = max(largest, int(np.count_nonzero(chosen)))
        gap = rate * seconds - float(estimates[chosen].sum())
        if seconds <= cap and (best is None or gap < least):
            best, least = chosen, gap
    return best, largest
