"""Selection step by step, with ever more partial subsets side by side.

Limits are turned into prices, which gives a bound and a first subset (`pricing`). Then partial
subsets are built (`compiled.beam`): 32 at a time, then more and more, until nothing was dropped
that could be better, or the work is done. Less work makes fewer passes and changes nothing else, so
more work never finds a worse subset.
"""

import numpy as np

from coaf.bandit.arrays import FloatArray, IntArray
from coaf.bandit.latency import Tree
from coaf.bandit.selection import trees
from coaf.bandit.selection.found import Found
from coaf.bandit.selection.pricing import SLACK, Bounds, price
from coaf.bandit.selection.sorting import Limits
from coaf.bandit.selection.steps import ARM, CLEAR, Steps, linear

# How many partial subsets the first pass keeps, and how many times more each further pass.
_WIDTH, _GROWTH = 32, 2

# Bits of a key's word; the first bit of the first word is taken.
_BITS = 62


def best_by_steps(
    rate: float,
    estimates: FloatArray,
    tree: Tree,
    limits: Limits,
    cap: float,
    work: int,
    *,
    margin: float = 0.0,
) -> Found | None:
    """The best subset found within the limits and the cap (may be inf), or None.

    `margin` is the part of the cap that is not used.
    """
    from coaf.bandit.compiled.beam import beam  # loads numba, which `import coaf` should not

    n, m = len(estimates), len(tree.parents)
    each = np.array(np.broadcast_to(tree.each, (n,)), dtype=np.float64)
    best = np.zeros(n, dtype=np.bool_)
    if limits.low > 0:
        best = trees.by_count(-each, tree.costs, tree, low=limits.low, high=limits.high)
    least = tree.seconds(best)
    if least > cap:
        return None
    if limits.high == 0:
        return Found(best)
    seconds, room, spare = np.zeros(n + m), 0.0, 0.0
    if cap < np.inf:
        seconds = np.concatenate([each, tree.costs])
        room = max(cap - tree.base - margin * cap, least - tree.base)
        spare = max(room - (least - tree.base), 2.0**-40 * room)
    # Below a rate of 0 opening a node may pay by itself, but an arm must be taken in it.
    insist = rate < 0.0 and m > 0
    of = linear(
        estimates - rate * each,
        rate * tree.costs,
        seconds,
        room,
        tree,
        limits,
        worthless=insist or limits.low > 0,
    )
    worth = float(estimates[best].sum()) - rate * (least - tree.base)
    slack = SLACK * float(np.abs(of.scores).sum() + np.abs(of.prices).sum())
    priced = price(of, Bounds(room, spare, worth, limits.low, limits.high, insist))
    fields = _fields(priced.steps, limits.high if priced.counted else 0)
    upper, worth = priced.upper, priced.worth
    if priced.arms is not None:
        best = np.isin(np.arange(n), priced.arms)
    width, spent = _WIDTH, 0
    while upper > worth + slack:
        bar = worth + slack
        found, arms, dropped, done = beam(
            priced.steps,
            priced.gain,
            priced.forgone,
            priced.tolls,
            priced.rates,
            priced.ahead,
            priced.fees,
            fields,
            priced.start,
            room,
            limits.low,
            limits.high,
            int(insist),
            bar,
            width,
            work - spent,
        )
        upper = min(upper, max(bar, found, dropped))
        if found > worth:
            best, worth = np.isin(np.arange(n), arms), found
        width *= _GROWTH
        spent += done
        if spent + _GROWTH * done > work:
            break
    if tree.seconds(best) > cap:
        # The same sum in another order, rounded. This far from the cap, any order will do.
        margin = (n + m + 4) * 2.0**-52
        return best_by_steps(rate, estimates, tree, limits, cap, work, margin=margin)
    exact = upper <= worth + slack
    return Found(best, 0.0 if exact else upper - worth, exact)


def _fields(steps: Steps, most: int) -> IntArray:
    """Where the key of a partial subset counts what: word, shift and mask.

    First of each group, then of all arms if `most` is given, then of each gate. Groups share bits
    unless both are begun and not complete.
    """
    groups, gates = len(steps.limit), int(steps.gate.max(initial=-1)) + 1
    fields = np.zeros((groups + 1 + gates, 3), dtype=np.int64)
    fields[:, 0] = 1
    word, end = 1, 1
    free: dict[int, list[tuple[int, int]]] = {}  # places by how many bits they have

    def place(field: int, bits: int) -> None:
        nonlocal word, end
        if free.get(bits):
            at = free[bits].pop()
        else:
            if end + bits > _BITS:
                word, end = word + 1, 0
            at = word, end
            end += bits
        fields[field] = *at, (1 << bits) - 1

    for gate in range(gates):
        place(groups + 1 + gate, 1)
    if most > 0:
        place(groups, most.bit_length())
    begun: set[int] = set()
    for kind, group in zip(steps.kind.tolist(), steps.group.tolist(), strict=True):
        if kind == ARM and group >= 0 and group not in begun:
            begun.add(group)
            place(group, int(steps.limit[group]).bit_length())
        elif kind == CLEAR:
            at = int(fields[group, 0]), int(fields[group, 1])
            free.setdefault(int(fields[group, 2]).bit_length(), []).append(at)
    return fields
