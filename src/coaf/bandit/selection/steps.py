"""A round whose latency is linear in arms and open nodes, as a sequence of steps.

A walk from the root of the tree through all that is below it: `OPEN` a node (or jump to its
`CLOSE`), take an `ARM` (or not), `CLEAR` a group once nothing of it can follow. A subset is a way
through the steps, so subsets can be built and bounded one step after another.
"""

from typing import NamedTuple

import numpy as np

from coaf.bandit.arrays import BoolArray, FloatArray, IntArray
from coaf.bandit.latency import Tree
from coaf.bandit.selection.sorting import Limits

ARM, OPEN, CLOSE, CLEAR = 0, 1, 2, 3


class Steps(NamedTuple):
    """What happens step by step, and which steps share a limit.

    Attributes
    ----------
    kind, score, time : (T,)
        `ARM`, `OPEN`, `CLOSE` or `CLEAR`; what the step adds to value and seconds.
    jump : (T,)
        For `OPEN` the step of its `CLOSE`, else -1.
    part : (T,)
        For `ARM` the arm, for `OPEN` n + the node, else -1.
    group : (T,)
        For `ARM` and `CLEAR` the number of the limited group, or -1.
    inside : (T,)
        The `OPEN` of the node that the step lies in, or -1.
    gate : (T,)
        Where nodes come first: the number of the node that `OPEN` opens or `ARM` needs, or -1.
    limit, scope : (groups,)
        How many arms of each group are allowed; the `OPEN` of the node that holds it, or -1.
    first, members : (groups + 1,), (arms in groups,)
        The steps of group g are members[first[g] : first[g + 1]].
    """

    kind: IntArray
    score: FloatArray
    time: FloatArray
    jump: IntArray
    part: IntArray
    group: IntArray
    inside: IntArray
    gate: IntArray
    limit: IntArray
    scope: IntArray
    first: IntArray
    members: IntArray


class LinearProblem(NamedTuple):
    """What a sequence of steps is made of.

    Attributes
    ----------
    scores, prices : (n,), (m,)
        What each arm is worth, and what opening each node costs.
    seconds : (n + m,)
        The time of each arm, then of each node.
    leaf, parents : (n,), (m,)
        Where arms and nodes hang, or -1.
    group, limit : (n,), (groups,)
        The limited group of each arm, or -1, and how many of each group are allowed.
    usable : (n + m,)
        The arms and nodes that an allowed subset may need.
    """

    scores: FloatArray
    prices: FloatArray
    seconds: FloatArray
    leaf: IntArray
    parents: IntArray
    group: IntArray
    limit: IntArray
    usable: BoolArray

    @property
    def crossing(self) -> bool:
        """Whether a limited group has arms at more than one node."""
        limited = self.usable[: len(self.group)] & (self.group >= 0)
        pairs = np.unique(np.stack([self.group[limited], self.leaf[limited]]), axis=1)
        return bool((np.bincount(pairs[0]) > 1).any())


def linear(
    scores: FloatArray,
    prices: FloatArray,
    seconds: FloatArray,
    room: float,
    tree: Tree,
    limits: Limits,
    *,
    worthless: bool,
) -> LinearProblem:
    """Leave out what cannot be reached in `room` seconds, may not be taken or limits nothing.

    `worthless` says that arms of no worth may be needed: to have enough arms, or to open a node
    that pays by itself.
    """
    n, m = len(scores), len(prices)
    reach = np.zeros(m + 1)  # seconds to open each node and all above it; last for no node
    for node, parent in enumerate(tree.parents.tolist()):
        reach[node] = reach[parent] + seconds[n + node]
    usable = (reach[tree.leaf] + seconds[:n] <= room) & ((scores > 0.0) | worthless)
    group = np.full(n, -1, dtype=np.int64)
    limit: list[int] = []
    for arms, most in limits.groups:
        if most == 0:
            usable[arms] = False
        elif most < np.count_nonzero(usable[arms]):
            group[arms] = len(limit)
            limit.append(most)
    needed = np.zeros(m + 1, dtype=np.bool_)
    needed[tree.leaf[usable]] = True
    for node in range(m - 1, -1, -1):
        needed[tree.parents[node]] |= needed[node]
    return LinearProblem(
        scores,
        prices,
        seconds,
        tree.leaf,
        tree.parents,
        group,
        np.array(limit, dtype=np.int64),
        np.concatenate([usable, needed[:m]]),
    )


class _Sequence:
    """Steps in the making."""

    def __init__(self, of: LinearProblem) -> None:
        self.of = of
        self.rows: list[tuple[int, int, int, int]] = []  # kind, part, group, gate
        self.jump: list[int] = []
        self.inside: list[int] = []
        self.stack = [-1]  # the `OPEN` of nodes not yet closed
        self.opened: dict[int, int] = {}
        self.sizes = np.bincount(of.group[of.usable[: len(of.group)]] + 1).tolist()

    def emit(self, kind: int, part: int = -1, group: int = -1, gate: int = -1) -> None:
        if kind == CLOSE:
            self.jump[self.stack.pop()] = len(self.rows)
        self.inside.append(self.stack[-1])
        if kind == OPEN:
            self.stack.append(len(self.rows))
        self.rows.append((kind, part, group, gate))
        self.jump.append(-1)

    def arms(self, arms: list[int], gates: dict[int, int]) -> None:
        """Emit arms, of which those of a group stand together; clear groups that are complete."""
        run = 0
        for at, arm in enumerate(arms):
            g = int(self.of.group[arm])
            self.emit(ARM, arm, g, gates.get(int(self.of.leaf[arm]), -1))
            run = run + 1 if at and self.of.group[arms[at - 1]] == g else 1
            if g >= 0 and run == self.sizes[g + 1]:
                self.emit(CLEAR, group=g)

    def walk(self, urgency: FloatArray, *, nodes_only: bool) -> dict[int, int]:
        """Emit all nodes, with or without their arms; the gate of each node."""
        n, m = len(self.of.scores), len(self.of.prices)
        below: list[list[int]] = [[] for _ in range(m + 1)]  # last: below no node
        above = [*self.of.leaf.tolist(), *self.of.parents.tolist()]
        for part in np.flatnonzero(self.of.usable).tolist():
            below[above[part]].append(part)
        gates: dict[int, int] = {}
        stack = [(-1, iter([-1]))]
        while stack:
            inside, nodes = stack[-1]
            node = next(nodes, None)
            if node is None:
                stack.pop()
                if inside >= 0:
                    self.emit(CLOSE)
                continue
            if node >= 0:
                self.opened[node] = len(self.rows)
                gates[node] = len(gates)
                self.emit(OPEN, n + node, gate=gates[node] if nodes_only else -1)
            if not nodes_only:
                self.arms(in_order(self.of, [p for p in below[node] if p < n], urgency), {})
            under = sorted((p for p in below[node] if p >= n), key=lambda p: urgency[p])
            stack.append((node, iter([p - n for p in under])))
        return gates

    def steps(self, *, scoped: bool) -> Steps:
        of = self.of
        rows = np.array(self.rows, dtype=np.int64).reshape(-1, 4)
        kind, part, group, gate = (np.ascontiguousarray(column) for column in rows.T)
        members = np.flatnonzero((kind == ARM) & (group >= 0))
        members = members[np.argsort(group[members], kind="stable")]
        sizes = np.bincount(group[members], minlength=len(of.limit))
        first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        scope = np.full(len(of.limit), -1, dtype=np.int64)
        if scoped:
            leaves = of.leaf[part[members[first[:-1]]]].tolist()
            scope[:] = [self.opened.get(leaf, -1) for leaf in leaves]
        return Steps(
            kind,
            np.concatenate([of.scores, -of.prices, [0.0]])[part],
            np.concatenate([of.seconds, [0.0]])[part],
            np.array(self.jump, dtype=np.int64),
            part,
            group,
            np.array(self.inside, dtype=np.int64),
            gate,
            of.limit,
            scope,
            first,
            members.astype(np.int64),
        )


def in_order(of: LinearProblem, arms: list[int], urgency: FloatArray) -> list[int]:
    """Clear arms first and doubtful ones last, a group where its most doubtful arm belongs."""
    doubt: dict[int, float] = {}
    for arm in arms:
        g = int(of.group[arm])
        doubt[g] = min(doubt.get(g, np.inf), urgency[arm])

    def place(arm: int) -> tuple[float, int, float]:
        g = int(of.group[arm])
        return -(doubt[g] if g >= 0 else urgency[arm]), g, -urgency[arm]

    return sorted(arms, key=place)


def nested(of: LinearProblem, urgency: FloatArray | None = None) -> Steps:
    """Arms inside their nodes.

    Parameters
    ----------
    of
        The round.
    urgency : (n + m,)
        By how much each arm or node should be taken or not. Below a node clear arms come first and
        doubtful ones last, then nodes, the doubtful first: so lists of partial subsets stay short.
    """
    sequence = _Sequence(of)
    urgent = np.zeros(len(of.usable)) if urgency is None else urgency
    sequence.walk(urgent, nodes_only=False)
    return sequence.steps(scoped=not of.crossing)


def nodes_first(of: LinearProblem, urgency: FloatArray) -> Steps:
    """All nodes, then all arms, group by group: for groups that have arms at several nodes.

    Inside their nodes, the counts of all such groups would have to be kept at once.
    """
    sequence = _Sequence(of)
    gates = sequence.walk(urgency, nodes_only=True)
    arms = np.flatnonzero(of.usable[: len(of.scores)]).tolist()
    sequence.arms(in_order(of, arms, urgency), gates)
    return sequence.steps(scoped=False)
