"""Selection as a linear programme in whole numbers.

For what no dynamic programme solves: a cap on seconds, and limits per group on a tree. Every
latency that is linear in arms and open nodes is a `Tree`. A few arms are enumerated, which is exact
and quicker; more go to HiGHS through SciPy, which works to 1e-6: times that differ by less than a
millionth of the cap may be taken for equal there.
"""

from typing import Any

import numpy as np

from coaf.bandit.arrays import BoolArray, FloatArray
from coaf.bandit.latency import Additive, Setup, Tree
from coaf.bandit.selection.sorting import Limits

# HiGHS stops within 1e-6 of the best objective and of a constraint, in absolute terms that SciPy
# does not let us change. Scaling makes that 1e-10 of the largest term.
_SCALE = 1e4

# Below this, dividing the scale by the largest term would overflow.
_TINY = 1e-250

# 2**12 subsets at once take a tenth of a millisecond, and HiGHS takes several.
ENUMERATED = 12


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
    rate: float, estimates: FloatArray, tree: Tree, limits: Limits, cap: float
) -> BoolArray | None:
    """The subset of smallest gap within the limits and the cap (may be inf), or None."""
    if tree.base > cap:
        return None
    if len(estimates) <= ENUMERATED:
        return by_enumeration(rate, estimates, tree, limits, cap)
    return by_solver(rate, estimates, tree, limits, cap)


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
    chosen = np.asarray(masks[np.argmin(gaps)] == 1)
    return _settle_ties(chosen, rate * each - estimates, each, tree, limits)


def _ancestors(tree: Tree, n: int) -> FloatArray:
    """Which nodes each arm needs open, (n, nodes)."""
    needed = np.zeros((n, len(tree.parents)))
    for arm, leaf in enumerate(tree.leaf.tolist()):
        node = leaf
        while node >= 0:
            needed[arm, node] = 1.0
            node = int(tree.parents[node])
    return needed


def by_solver(
    rate: float, estimates: FloatArray, tree: Tree, limits: Limits, cap: float
) -> BoolArray | None:
    """HiGHS's answer, checked against the cap."""
    n, m = len(estimates), len(tree.parents)
    each = np.broadcast_to(np.asarray(tree.each, dtype=np.float64), (n,))
    seconds = np.concatenate([each, tree.costs])
    objective = rate * seconds
    objective[:n] -= estimates
    rows = _structure(tree, n)
    rows.append((np.arange(n), np.ones(n), limits.low, limits.high))
    rows.extend((arms, np.ones(len(arms)), 0, limit) for arms, limit in limits.groups)
    # What alone is over the cap is left out, so that it does not set the scale.
    usable = seconds <= cap - tree.base
    if cap < np.inf:
        # Terms far below the slack of a cap only upset the solver; the check below counts them.
        timed = np.where(usable & (seconds > 1e-11 * cap), seconds, 0.0)
        scale = _SCALE / max(timed.max(), _TINY)
        rows.append((np.arange(n + m), timed * scale, -np.inf, (cap - tree.base) * scale))
    while True:
        chosen = _solve(objective * usable, rows, usable, n)
        if chosen is None:
            return None
        if tree.seconds(chosen) <= cap:
            return _settle_ties(chosen, objective[:n], each, tree, limits)
        # Over the cap within the solver's tolerance. Forbidding this subset keeps the problem
        # exact; a tighter cap could forbid one that fits.
        rows.append(
            (np.arange(n), np.where(chosen, -1.0, 1.0), 1 - int(chosen.sum()), np.inf),
        )


Row = tuple[Any, Any, float, float]


def _structure(tree: Tree, n: int) -> list[Row]:
    """Rows that make a node open exactly when an arm below it is chosen."""
    m = len(tree.parents)
    below: list[list[int]] = [[] for _ in range(m)]
    over = [*tree.leaf.tolist(), *tree.parents.tolist()]
    rows: list[Row] = []
    for part, node in enumerate(over):
        if node >= 0:
            below[node].append(part)
            rows.append(([part, n + node], [1.0, -1.0], -np.inf, 0.0))
    # Without this a negative rate would open nodes that nothing hangs from.
    for node, parts in enumerate(below):
        rows.append(([n + node, *parts], [1.0] + [-1.0] * len(parts), -np.inf, 0.0))
    return rows


def _solve(objective: FloatArray, rows: list[Row], usable: BoolArray, n: int) -> BoolArray | None:
    # Slow to import, and most users never need it.
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    lengths = [len(columns) for columns, *_ in rows]
    matrix = csr_array(
        (
            np.concatenate([values for _, values, *_ in rows]).astype(np.float64),
            np.concatenate([columns for columns, *_ in rows]).astype(np.int32),
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32),
        ),
        shape=(len(rows), len(objective)),
    )
    result = milp(
        objective * (_SCALE / max(np.abs(objective).max(), _TINY)),
        integrality=np.ones(len(objective)),
        bounds=Bounds(0, usable.astype(np.float64)),
        constraints=LinearConstraint(matrix, [row[2] for row in rows], [row[3] for row in rows]),
        options={"mip_rel_gap": 0.0},
    )
    if result.status == 2:
        return None
    if result.status != 0:
        raise RuntimeError(f"HiGHS could not solve the selection: {result.message}")
    return np.asarray(result.x[:n] > 0.5)


def _settle_ties(
    chosen: BoolArray, losses: FloatArray, each: FloatArray, tree: Tree, limits: Limits
) -> BoolArray:
    """Of equal arms take the lower index, and leave arms of score 0 where that changes nothing."""
    chosen = chosen.copy()
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
