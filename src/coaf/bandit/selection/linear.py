"""Selection where limits must be met together: a cap on seconds, or groups on a tree.

For what neither a sort nor a dynamic programme of counts solves. Every latency that is linear in
arms and open nodes is a `Tree`. A few arms are enumerated; more are added step by step.
"""

import numpy as np

from coaf.bandit.arrays import BoolArray, FloatArray
from coaf.bandit.latency import Additive, Setup, Tree
from coaf.bandit.selection.found import Found
from coaf.bandit.selection.sorting import Limits
from coaf.bandit.selection.widening import best_by_steps

# 2**12 subsets at once take a tenth of a millisecond, unless they have many nodes.
ENUMERATED = 12
_NODES = 64


def as_tree(latency: Additive | Setup | Tree, n: int) -> Tree:
    """The same latency with its set-up cost as a tree of one node."""
    if type(latency) is Setup:
        return Tree(
            latency.base, parents=[-1], costs=[latency.setup], leaf=[0] * n, each=latency.each
        )
    if type(latency) is Additive:
        return Tree(latency.base, parents=[], costs=[], leaf=[-1] * n, each=latency.each)
    assert isinstance(latency, Tree)
    return latency


def best_linear(
    rate: float, estimates: FloatArray, tree: Tree, limits: Limits, cap: float, work: int
) -> Found | None:
    """The best subset found within the limits and the cap (may be inf), or None if there is none.

    `work` limits how many partial subsets are looked at.
    """
    if tree.base > cap:
        return None
    if len(estimates) <= ENUMERATED and len(tree.parents) <= _NODES:
        chosen = by_enumeration(rate, estimates, tree, limits, cap)
        found = None if chosen is None else Found(chosen)
    else:
        found = best_by_steps(rate, estimates, tree, limits, cap, work)
    if found is None:
        return None
    settled = _settle_ties(found.chosen, rate, estimates, tree, limits)
    # Equal times add up to the same but for rounding.
    return found._replace(chosen=settled) if tree.seconds(settled) <= cap else found


def by_enumeration(
    rate: float, estimates: FloatArray, tree: Tree, limits: Limits, cap: float
) -> BoolArray | None:
    """All subsets at once, in the order of their bits: a subset comes before what contains it."""
    n = len(estimates)
    masks = (np.arange(1 << n)[:, None] >> np.arange(n)) & 1
    counts = masks.sum(axis=1)
    allowed = (limits.low <= counts) & (counts <= limits.high)
    for arms, limit in limits.groups:
        allowed &= masks[:, arms].sum(axis=1) <= limit
    each = np.broadcast_to(np.asarray(tree.each, dtype=np.float64), (n,))
    opened = masks @ _ancestors(tree, n) > 0
    seconds = tree.base + masks @ each + opened @ tree.costs
    gaps = np.where(allowed & (seconds <= cap), rate * seconds - masks @ estimates, np.inf)
    if gaps.min() == np.inf:
        return None
    return np.asarray(masks[np.argmin(gaps)] == 1)


def _ancestors(tree: Tree, n: int) -> FloatArray:
    """Which nodes each arm needs open, (n, nodes)."""
    needed = np.zeros((n, len(tree.parents)))
    for arm, leaf in enumerate(tree.leaf.tolist()):
        node = leaf
        while node >= 0:
            needed[arm, node] = 1.0
            node = int(tree.parents[node])
    return needed


def _settle_ties(
    chosen: BoolArray, rate: float, estimates: FloatArray, tree: Tree, limits: Limits
) -> BoolArray:
    """Of equal arms take the lower index, and leave arms of score 0 where that changes nothing."""
    chosen = chosen.copy()
    each = np.broadcast_to(np.asarray(tree.each, dtype=np.float64), (len(chosen),))
    losses = rate * each - estimates
    group = np.full(len(chosen), -1)
    for number, (arms, _) in enumerate(limits.groups):
        group[arms] = number
    alike: dict[tuple[float, ...], list[int]] = {}
    keys = zip(losses.tolist(), each.tolist(), tree.leaf.tolist(), group.tolist(), strict=True)
    for arm, key in enumerate(keys):
        alike.setdefault(key, []).append(arm)
    for equal in alike.values():
        chosen[equal] = np.arange(len(equal)) < chosen[equal].sum()
    for arm in np.flatnonzero(chosen & (losses == 0.0))[::-1]:
        siblings = chosen & (tree.leaf == tree.leaf[arm])
        # The last arm of a node also closes the node.
        if chosen.sum() > limits.low and (tree.leaf[arm] < 0 or siblings.sum() > 1):
            chosen[arm] = False
    return chosen
