"""Group labels as a tree: which patch, of which square, a row belongs to."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from coaf.bandit.arrays import FloatArray, IntArray
from coaf.bandit.groups import Groups, check_groups

Path = tuple[int | str, ...]  # labels, outermost first
Key = tuple[int | str, ...]


def paths_of(groups: Groups | None, n: int) -> list[Path]:
    """The labels of each of `n` rows, outermost first; () where they have none."""
    if groups is None:
        return [()] * n
    labels = check_groups(groups, n)
    rows = labels if labels.ndim == 2 else labels[:, None]
    return [tuple(row) for row in rows.tolist()]


def _runs(groups: Groups | None, n: int) -> tuple[Groups | None, IntArray]:
    """The first labels of each run of equal ones, and which run each of `n` rows is in.

    Arms come patch by patch, so that few labels need to be looked at one by one.
    """
    if groups is None or n == 0:
        return None, np.zeros(n, dtype=np.int64)
    labels = check_groups(groups, n).reshape(n, -1)
    starts = np.append(True, (labels[1:] != labels[:-1]).any(axis=1))
    return labels[starts], np.cumsum(starts) - 1


@lru_cache(maxsize=1 << 14)  # the same patches are asked for at every decision
def _keys(path: Path, era: int, levels: int) -> tuple[Key, ...]:
    extra, head = len(path) - levels, (era, len(path))
    return tuple((*head, *path[: max(1, extra + level + 1)]) for level in range(levels))


@dataclass(frozen=True)
class Seats:
    """Where arms sit in the tree.

    Attributes
    ----------
    nodes : (m, levels)
        The nodes of each distinct row of labels, -1 where one was never seen.
    which : (n,)
        The distinct row of labels of each arm.
    keys
        What names these nodes, seen or not.
    """

    nodes: IntArray
    which: IntArray
    keys: list[tuple[Key, ...]]

    @property
    def shared(self) -> IntArray:
        """(m, levels): numbers that are equal where nodes are, in order of first appearance."""
        order: dict[tuple[int, Key], int] = {}
        rows = [
            [order.setdefault((level, key), len(order)) for level, key in enumerate(row)]
            for row in self.keys
        ]
        return np.array(rows, dtype=np.int64).reshape(self.nodes.shape)


@dataclass(frozen=True)
class GroupTree:
    """The groups seen so far, level by level, outermost first.

    It is never changed: `grown` gives a larger one.

    Attributes
    ----------
    paths
        The innermost groups in order of appearance: the era and the labels of each.
    parents
        For each level, the node above each node; zeros for the outermost.
    era
        Labels mean something within an era only.

    Notes
    -----
    Where rows have more labels than the tree has levels, the outer ones only tell groups apart:
    (grid, square, patch) has effects of squares and patches. Where they have fewer, the groups
    above are unknown, and taken to be different ones.

    Examples
    --------
    >>> tree, nodes = GroupTree.empty(2).grown([(1, 1), (1, 2), (7, 1), (1, 1)])
    >>> nodes
    array([0, 1, 2, 0])
    >>> tree.parents[1]
    array([0, 0, 1])
    """

    paths: tuple[tuple[int, Path], ...]
    parents: tuple[IntArray, ...]
    index: tuple[dict[Key, int], ...]
    era: int = 0

    @classmethod
    def empty(cls, levels: int) -> "GroupTree":
        """A tree without nodes."""
        none = np.empty(0, dtype=np.int64)
        return cls((), (none,) * levels, tuple({} for _ in range(levels)))

    @classmethod
    def restored(cls, levels: int, paths: Iterable[Sequence[Any]], era: int) -> "GroupTree":
        """The tree whose `paths` these are."""
        tree = cls.empty(levels)
        return replace(tree._with([(int(age), tuple(labels)) for age, labels in paths]), era=era)

    @property
    def levels(self) -> int:
        return len(self.parents)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many nodes there are at each level."""
        return tuple(map(len, self.index))

    @property
    def lineage(self) -> IntArray:
        """The nodes above each innermost group, and itself: (groups, levels)."""
        nodes = np.empty((len(self.paths), self.levels), dtype=np.int64)
        at = np.arange(len(self.paths))
        for level in reversed(range(self.levels)):
            nodes[:, level] = at
            at = self.parents[level][at]
        return nodes

    def keys(self, path: Path, era: int | None = None) -> tuple[Key, ...]:
        """What names the nodes above a row with these labels, outermost first."""
        return _keys(path, self.era if era is None else era, self.levels)

    def _with(self, new: list[tuple[int, Path]]) -> "GroupTree":
        index = tuple(map(dict, self.index))
        parents = [parent.tolist() for parent in self.parents]
        for era, path in new:
            above = 0
            for level, key in enumerate(self.keys(path, era)):
                if key not in index[level]:
                    index[level][key] = len(index[level])
                    parents[level].append(above)
                above = index[level][key]
        arrays = tuple(np.array(parent, dtype=np.int64) for parent in parents)
        return GroupTree((*self.paths, *new), arrays, index, self.era)

    def grown(self, paths: list[Path]) -> "tuple[GroupTree, IntArray]":
        """The tree with these paths in it, and the innermost node of each; -1 for ()."""
        if not self.levels:
            return self, np.full(len(paths), -1)
        distinct = {path: self.keys(path)[-1] for path in dict.fromkeys(paths) if path}
        new = [(self.era, path) for path, key in distinct.items() if key not in self.index[-1]]
        tree = self._with(new) if new else self
        nodes = {path: tree.index[-1][key] for path, key in distinct.items()}
        return tree, np.array([nodes.get(path, -1) for path in paths], dtype=np.int64)

    def seats(self, groups: Groups | None, n: int) -> Seats:
        """Where `n` arms sit; those without labels share a group that was never seen."""
        heads, run = _runs(groups, n)
        paths = paths_of(heads, int(run[-1]) + 1 if n else 0)
        distinct = {path: i for i, path in enumerate(dict.fromkeys(paths))}
        keys = [_keys(path, self.era, self.levels) for path in distinct]
        nodes = np.full((len(keys), self.levels), -1)
        if self.levels:
            innermost = self.index[-1]
            found = np.array([innermost.get(row[-1], -1) for row in keys], dtype=np.int64)
            seen = found >= 0
            nodes[seen] = self.lineage[found[seen]]
            for i in np.flatnonzero(~seen):  # those above may have been seen all the same
                above = zip(self.index, keys[i], strict=True)
                nodes[i] = [index.get(key, -1) for index, key in above]
        return Seats(nodes, np.array([distinct[path] for path in paths], dtype=np.int64)[run], keys)

    def totals(self, effects: Sequence[FloatArray]) -> FloatArray:
        """The sum of effects above the rows of each innermost node; 0 at the end, for none."""
        found = np.zeros(len(self.paths) + 1)
        if effects:
            total = effects[0]
            for effect, above in zip(effects[1:], self.parents[1:], strict=True):
                total = effect + total[above]
            found[:-1] = total
        return found


class GroupSums:
    """Sums over rows by group, for arrays of rows with the same groups.

    Examples
    --------
    >>> sums = GroupSums(np.array([1, 0, 1, -1]), size=2, width=1)
    >>> sums.of(np.array([[1.0], [2.0], [3.0], [4.0]]))
    array([[2.],
           [4.]])
    """

    def __init__(self, index: IntArray, *, size: int, width: int) -> None:
        self.shape = (size + 1, width)  # the first is for rows of no group, whose index is -1
        self.flat = np.add.outer((index + 1) * width, np.arange(width)).ravel()

    def of(self, values: FloatArray) -> FloatArray:
        """The sum of the rows (n, width) of each group."""
        size, width = self.shape
        total = np.bincount(self.flat, values.ravel(), minlength=size * width)
        return total.astype(np.float64, copy=False).reshape(self.shape)[1:]


def padded(values: FloatArray, size: int) -> FloatArray:
    """`values` with zeros appended to length `size`: groups that are new."""
    return np.concatenate([values, np.zeros((size - len(values), *values.shape[1:]))])
