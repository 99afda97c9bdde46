"""Selection under set-up costs on a tree, by dynamic programming from the leaves up.

A node is open if any arm below it is chosen. With a negative rate an open node may be worth
something by itself, so the value of a node that must be open is kept even where it is won by a
single arm of negative score.

Both functions take the score μ_i − Γ·each_i of each arm and the price Γ·costs_v of each node, and
add a node above all roots: free, and allowed to stay closed.
"""

import numpy as np

from coaf.bandit.arrays import BoolArray, FloatArray
from coaf.bandit.latency import Tree

_NEVER = -np.inf


def any_subset(scores: FloatArray, prices: FloatArray, tree: Tree) -> BoolArray:
    """The subset of largest value among all subsets; linear in arms and nodes."""
    m = len(tree.parents)
    parents = [m if above < 0 else above for above in tree.parents.tolist()]
    leaf = [m if node < 0 else node for node in tree.leaf.tolist()]
    score: list[float] = scores.tolist()
    price: list[float] = prices.tolist()

    # Per node: the sum of what pays for itself below it, whether there is any, and, where there
    # is none, the least bad way to open it (an arm, written as ~arm, or a child).
    gains = [0.0] * (m + 1)
    pays = [False] * (m + 1)
    least = [_NEVER] * (m + 1)
    way = [m] * (m + 1)
    for arm, node in enumerate(leaf):
        if score[arm] > 0:
            gains[node] += score[arm]
            pays[node] = True
        elif score[arm] > least[node]:
            least[node], way[node] = score[arm], ~arm
    value = [0.0] * m
    for node in range(m - 1, -1, -1):
        value[node] = (gains[node] if pays[node] else least[node]) - price[node]
        above = parents[node]
        if value[node] > 0:
            gains[above] += value[node]
            pays[above] = True
        elif value[node] > least[above]:
            least[above], way[above] = value[node], node

    opened = [False] * m + [pays[m]]
    for node, above in enumerate(parents):
        taken = value[node] > 0 if pays[above] else way[above] == node
        opened[node] = opened[above] and taken
    return np.array(
        [
            opened[node] and (score[arm] > 0 if pays[node] else way[node] == ~arm)
            for arm, node in enumerate(leaf)
        ],
        dtype=np.bool_,
    )


def by_count(
    scores: FloatArray, prices: FloatArray, tree: Tree, *, low: int, high: int
) -> BoolArray:
    """The subset of largest value among those of `low` to `high` arms; a tree knapsack, O(n²)."""
    m, n = len(tree.parents), len(scores)
    children: list[list[int]] = [[] for _ in range(m + 1)]
    for node, above in enumerate(tree.parents.tolist()):
        children[above if above >= 0 else m].append(node)
    arms: list[list[int]] = [[] for _ in range(m + 1)]
    # By falling score, so that the best k arms of a node itself are its first k.
    for arm in np.argsort(-scores, kind="stable").tolist():
        arms[int(tree.leaf[arm]) if tree.leaf[arm] >= 0 else m].append(arm)

    # values[v][k]: the best value of exactly k arms below v, v's own price included.
    values: list[FloatArray] = [np.zeros(1)] * (m + 1)
    splits: list[list[np.typing.NDArray[np.int64]]] = [[] for _ in range(m + 1)]
    for node in [*range(m - 1, -1, -1), m]:
        value = np.concatenate([[0.0], np.cumsum(scores[arms[node][:high]])])
        for child in children[node]:
            value, split = _merge(value, values[child], high)
            splits[node].append(split)
        if node < m:
            value[1:] -= prices[node]
        values[node] = value

    counts = [0] * m + [low + int(np.argmax(values[m][low:]))]
    chosen = np.zeros(n, dtype=np.bool_)
    for node in [m, *range(m)]:
        left = counts[node]
        for child, split in zip(reversed(children[node]), reversed(splits[node]), strict=True):
            counts[child] = int(split[left])
            left -= counts[child]
        chosen[arms[node][:left]] = True
    return chosen


def _merge(
    own: FloatArray, child: FloatArray, high: int
) -> tuple[FloatArray, np.typing.NDArray[np.int64]]:
    """Max-plus convolution, and for each total how many arms go to the child."""
    size = min(len(own) + len(child) - 2, high) + 1
    best = np.full(size, _NEVER)
    split = np.zeros(size, dtype=np.int64)
    # One count at a time of whichever has fewer. For each total the child's share rises, so that
    # it is the smallest where several would do.
    if len(child) <= len(own):
        for k in range(min(len(child), size)):
            _raise(best[k:], split[k:], own[: size - k] + child[k], k)
    else:
        for kept in range(min(len(own), size) - 1, -1, -1):
            share = np.arange(min(len(child), size - kept))
            _raise(best[kept:], split[kept:], own[kept] + child[: len(share)], share)
    return best, split


def _raise(
    best: FloatArray,
    split: np.typing.NDArray[np.int64],
    values: FloatArray,
    share: int | np.typing.NDArray[np.int64],
) -> None:
    """Write larger values over smaller ones, and the child's share of them."""
    better = np.flatnonzero(values > best[: len(values)])
    best[better] = values[better]
    split[better] = share if isinstance(share, int) else share[better]
