"""Rows that are 0 or 1: the mode of the posterior, and the Gaussian that touches it there."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coaf.bandit.arrays import BoolArray, FloatArray, IntArray
from coaf.bandit.beliefs.nested.gaussian import logdet_of
from coaf.bandit.beliefs.nested.groups import GroupTree, padded
from coaf.bandit.beliefs.nested.nearby import Nearby, likeness, nesting
from coaf.bandit.beliefs.nested.posterior import NestedPosterior, condition
from coaf.bandit.beliefs.nested.squares import Squares, starts_of
from coaf.bandit.state import entry, pack, unpack

_STEPS = 100
_SAVED = ("gram", "columns", "Z", "y", "weights")
# How far η may move before rows near each other, whose squares are dear, are expanded again. What
# that costs the mode is about its square, and curvatures about itself; where there are many rows
# (`_MANY`), each of which moves all others a little, it is some times as much. Variances follow
# from second differences of the evidence, in which it would be lost: no such freedom there.
_FAR, _MANY, _FARTHEST = 1e-3, 2000, 5e-3
_NOT_AT_ALL = 1e-9


def sigmoid(eta: FloatArray) -> FloatArray:
    """1/(1 + e^−η)."""
    return 0.5 + 0.5 * np.tanh(0.5 * eta)


def flattened(eta: FloatArray, variance: FloatArray | float) -> FloatArray:
    """The η' whose sigmoid is about the average of sigmoid(η + e) over e ~ N(0, variance).

    MacKay's approximation, η/√(1 + π·variance/8) (Neural Computation 4, 1992).
    """
    return eta / np.sqrt(1.0 + np.pi / 8.0 * variance)


@dataclass(frozen=True)
class Point:
    """Coefficients, the effects of groups level by level, and what rows share with those near them.

    Attributes
    ----------
    theta, effects
        As many as there are features and an intercept, and as there are groups.
    pull, near : (rows,)
        What each row shares with those near it is near = variance·C·pull, C = e^−distance.
    """

    theta: FloatArray
    effects: tuple[FloatArray, ...]
    pull: FloatArray
    near: FloatArray

    def towards(self, other: "Point", step: float) -> "Point":
        """The point a part of the way to another."""
        if step == 1.0:
            return other

        def part(a: FloatArray, b: FloatArray) -> FloatArray:
            return a + step * (b - a)

        return Point(
            part(self.theta, other.theta),
            tuple(part(*pair) for pair in zip(self.effects, other.effects, strict=True)),
            part(self.pull, other.pull),
            part(self.near, other.near),
        )


@dataclass(frozen=True)
class LogisticTable:
    """Rows (x, 1) and y since the last `settled`, sums for those before, and the mode.

    Attributes
    ----------
    ridge : (dim + 2, dim + 2)
        The prior of θ, as if it were rows.
    gram, columns
        Σ w z zᵀ, over all rows and by innermost group, that stand in for rows before.
    Z, y, weights, nodes
        The rows by innermost group, what they count, and that group, -1 for none.
    spots : (rows, 2)
        Their places in the group; rows of no width where likeness knows no places.
    point
        Where the log posterior is expanded: its mode, once `fitted`.
    squares
        Those of the last expansion.

    Notes
    -----
    A row without groups is in groups of its own: their effects are averaged over, which flattens
    its η (`flattened`).

    Variances are those of the levels, outermost first, and where rows have places, last that of
    what those near each other share. What is settled keeps what it says of groups, not of places.
    """

    ridge: FloatArray
    gram: FloatArray
    columns: FloatArray
    Z: FloatArray
    y: FloatArray
    weights: FloatArray
    nodes: IntArray
    spots: FloatArray
    point: Point
    squares: Squares | None = None

    @classmethod
    def empty(cls, ridge: FloatArray, tree: GroupTree, *, places: int = 0) -> "LogisticTable":
        P, none = len(ridge), np.empty(0)
        point = Point(np.zeros(P - 1), (none,) * tree.levels, none, none)
        rows = (np.empty((0, P - 1)), none, none, none.astype(np.int64), np.empty((0, places)))
        return cls(ridge, np.zeros((P, P)), np.empty((0, P)), *rows, point)

    @property
    def placed(self) -> bool:
        """Whether rows have places."""
        return bool(self.spots.shape[1])

    def add(
        self, Z: FloatArray, y: FloatArray, nodes: IntArray, tree: GroupTree, spots: FloatArray
    ) -> "LogisticTable":
        """The table with more rows; the mode is left where it was."""
        pairs = zip(self.point.effects, tree.sizes, strict=True)
        effects = tuple(padded(effect, size) for effect, size in pairs)
        new = np.append(np.zeros(len(self.y), dtype=np.bool_), np.ones(len(y), dtype=np.bool_))
        everywhere = np.concatenate([self.nodes, nodes])
        order = np.argsort(everywhere, kind="stable")

        def sorted_in(old: FloatArray, more: FloatArray | float) -> FloatArray:
            more = np.broadcast_to(more, (len(y), *old.shape[1:]))
            joint: FloatArray = np.concatenate([old, more])[order]
            return joint

        # Where rows know no places all are expanded anew.
        squares = self.squares if self.placed else None
        if squares is not None:
            squares = squares.grown(everywhere, order, tree)
        pull, near = (sorted_in(old, 0.0) for old in (self.point.pull, self.point.near))
        table = LogisticTable(
            self.ridge,
            self.gram,
            padded(self.columns, len(tree.paths)),
            sorted_in(self.Z, Z),
            sorted_in(self.y, y),
            sorted_in(self.weights, 1.0),
            everywhere[order],
            sorted_in(self.spots, spots),
            Point(self.point.theta, effects, pull, near),
            squares,
        )
        return table._guessing(new[order]) if self.placed and squares is not None else table

    def _guessing(self, new: BoolArray) -> "LogisticTable":
        """With what new rows share with those near them that came before."""
        assert self.squares is not None
        near = self.point.near.copy()
        for node in np.unique(self.nodes[new]):
            here = np.flatnonzero(self.nodes == node) if node >= 0 else np.empty(0, dtype=np.int64)
            there = here[new[here]]
            alike = likeness(self.spots[there], self.spots[here])
            near[there] = self.squares.variance * (alike @ self.point.pull[here])
        return replace(self, point=replace(self.point, near=near))

    def discounted(self, prior: "LogisticTable", factor: float) -> "LogisticTable":
        """Rows since the prior count `factor` of what they did."""
        return replace(self, weights=factor * self.weights, squares=None)

    def _scaled(self, variances: FloatArray) -> FloatArray:
        """The rows (x, 1), flattened where they have no group."""
        if not (self.nodes < 0).any():
            return self.Z
        return np.where(self.nodes[:, None] < 0, flattened(self.Z, variances.sum()), self.Z)

    def _beside(self, Z: FloatArray, point: Point, tree: GroupTree) -> FloatArray:
        """η without what is shared with rows nearby."""
        eta: FloatArray = Z @ point.theta + tree.totals(point.effects)[self.nodes]
        return eta

    def _at(self, variances: FloatArray) -> Point:
        """The point, with what rows near each other share under these variances."""
        before = None if self.squares is None else self.squares.variance
        if not self.placed or before is None or before == variances[-1]:
            return self.point
        return replace(self.point, near=self.point.near * (float(variances[-1]) / before))

    def _height(
        self,
        beside: FloatArray,
        point: Point,
        variances: FloatArray,
        tree: GroupTree,
    ) -> float:
        """The log posterior at a point, up to what does not depend on it."""
        v, total = np.append(point.theta, -1.0), tree.totals(point.effects)[:-1]
        c = self.columns
        settled = v @ self.gram @ v + total @ (2.0 * c @ v + c[:, -2] * total)
        away = v @ self.ridge @ v + settled + point.pull @ point.near
        for effect, variance in zip(point.effects, variances[: tree.levels], strict=True):
            away += effect @ effect / variance
        eta = beside + point.near
        return float(nesting().log_likelihood(self.y, self.weights, eta) - 0.5 * away)

    def _expanded(
        self,
        Z: FloatArray,
        eta: FloatArray,
        variances: FloatArray,
        tree: GroupTree,
        far: float | None = None,
    ) -> Squares:
        """Squares that touch the log likelihood at η, or not far from it."""
        starts = starts_of(self.nodes, tree)
        variance = float(variances[-1]) if self.placed else 0.0
        squares = self.squares
        # Rows without groups count by all variances, so that they are expanded whenever asked.
        if squares is None or squares.variance != variance or (self.nodes[:1] < 0).any():
            squares = Squares.none(Z, starts, variance)
        if far is None:
            far = min(_FAR * max(1.0, len(Z) / _MANY), _FARTHEST)
        which = nesting().moved(starts, eta, squares.at, far if self.placed else -1.0)
        if not len(which):
            return squares
        new = squares.copy()
        nesting().expand(
            which,
            starts,
            Z,
            self.y,
            self.weights,
            self.spots,
            eta,
            variance,
            0.0,
            *new.arrays,
        )
        return new

    def _touching(
        self, Z: FloatArray, squares: Squares, tree: GroupTree
    ) -> tuple[FloatArray, FloatArray]:
        """Gram and columns of rows whose squares touch the log likelihood.

        As iterated reweighted least squares. The squares of the responses themselves are left out:
        they move neither the mode nor the variances.
        """
        gram, columns = self.gram.copy(), self.columns.copy()
        nesting().collect(starts_of(self.nodes, tree), Z, squares.MZ, gram, columns)
        return gram, columns

    def _goal(
        self, Z: FloatArray, squares: Squares, posterior: NestedPosterior, tree: GroupTree
    ) -> Point:
        """Where the squares have their least sum."""
        effects = posterior.effects(tree)
        total = tree.totals(effects)[self.nodes]
        pull = -(squares.MZ @ posterior.v) - squares.MZ[:, -2] * total
        if not self.placed:
            return Point(posterior.theta, effects, np.zeros(len(pull)), np.zeros(len(pull)))
        # M·(response − rest) = pull, so W⁻¹·pull + near = response − rest.
        p = sigmoid(squares.at)
        response = squares.at + self.weights * (self.y - p) / squares.w
        near = response - Z @ posterior.theta - total - pull / squares.w
        alone = self.nodes < 0
        pull[alone], near[alone] = 0.0, 0.0
        return Point(posterior.theta, effects, pull, near)

    def _climb(
        self, variances: FloatArray, tree: GroupTree, close: float, far: float | None = None
    ) -> "LogisticTable":
        """The table at its mode: Newton's method, halving steps that go down.

        It ends after a step in η of at most `close`; what is missing then is about its square, and
        that of how `far` from η rows may be expanded: the further the more of them there are,
        unless given.
        """
        table, Z, point = self, self._scaled(variances), self._at(variances)
        beside = self._beside(Z, point, tree)
        height = self._height(beside, point, variances, tree)
        levels = variances[: tree.levels].tolist()
        for _ in range(_STEPS):
            eta = beside + point.near
            squares = table._expanded(Z, eta, variances, tree, far)
            table = replace(table, squares=squares, point=point)
            gram, columns = self._touching(Z, squares, tree)
            posterior = condition(self.ridge + gram, columns, tree, levels)
            goal = self._goal(Z, squares, posterior, tree)
            step, slack = 1.0, 1e-9 * (1.0 + abs(height))
            while True:
                there = point.towards(goal, step)
                moved = self._beside(Z, there, tree)
                reached = self._height(moved, there, variances, tree)
                if reached >= height - slack or step < 1e-9:
                    break
                step *= 0.5
            gone = float(np.abs(moved + there.near - eta).max(initial=0.0))
            point, beside, height = there, moved, reached
            if gone <= close:
                return replace(table, point=point)
        raise ArithmeticError(f"no mode of the posterior after {_STEPS} steps of Newton's method")

    def at_mode(self, variances: FloatArray, tree: GroupTree) -> "LogisticTable":
        """The table, expanded at its mode."""
        return self._climb(variances, tree, 3e-5)

    def _touched(
        self, variances: FloatArray, tree: GroupTree, far: float | None = None
    ) -> tuple[FloatArray, Squares, FloatArray, FloatArray]:
        """Rows, squares, gram and columns where the table is expanded."""
        Z, point = self._scaled(variances), self._at(variances)
        eta = self._beside(Z, point, tree) + point.near
        squares = self._expanded(Z, eta, variances, tree, far)
        return Z, squares, *self._touching(Z, squares, tree)

    def laplace(self, variances: FloatArray, tree: GroupTree) -> NestedPosterior:
        """The Gaussian that touches the posterior where the table is expanded."""
        _, _, gram, columns = self._touched(variances, tree)
        return condition(self.ridge + gram, columns, tree, variances[: tree.levels].tolist())

    def afresh(self) -> "LogisticTable":
        """The table as it would be had all of its rows come at once: not expanded anywhere yet."""
        zeros = (np.zeros_like(self.point.theta), tuple(map(np.zeros_like, self.point.effects)))
        rows = (np.zeros_like(self.point.pull), np.zeros_like(self.point.near))
        return replace(self, point=Point(*zeros, *rows), squares=None)

    def weighed(self, variances: FloatArray, tree: GroupTree) -> "tuple[LogisticTable, float]":
        """The table at its mode, and the log marginal likelihood by Laplace's approximation.

        Up to a constant of what was settled.
        """
        table = self._climb(variances, tree, 1e-3, _NOT_AT_ALL)
        _, squares, gram, columns = table._touched(variances, tree, _NOT_AT_ALL)
        around = condition(self.ridge + gram, columns, tree, variances[: tree.levels].tolist())
        table = replace(table, squares=squares)
        return table, table.evidence(variances, tree, around)

    def evidence(self, variances: FloatArray, tree: GroupTree, around: NestedPosterior) -> float:
        """The log marginal likelihood, where the table is at its mode and `around` has its bend."""
        point = self._at(variances)
        height = self._height(
            self._beside(self._scaled(variances), point, tree), point, variances, tree
        )
        logdet = around.logdet - logdet_of(self.ridge)
        if self.placed and self.squares is not None:
            logdet += float(self.squares.logdets.sum())
        return height - 0.5 * logdet

    def _centred(
        self, variances: FloatArray, tree: GroupTree
    ) -> tuple[FloatArray, FloatArray, Squares, FloatArray]:
        """Gram and columns of the Gaussian at the mode, moved to the mean; by what, and squares.

        Where good is rare, the posterior leans towards less of it, and its mean lies below its
        mode. To first order (the cubic term of the log likelihood under the Gaussian), the pull of
        a row changes by −½ p(1 − p)(1 − 2p) var(η).
        """
        Z, squares, gram, columns = self._touched(variances, tree)
        around = condition(self.ridge + gram, columns, tree, variances[: tree.levels].tolist())
        F, a = around.forms(np.append(tree.lineage, np.full((1, tree.levels), -1), axis=0))
        F[-1], a[-1] = 0.0, 0.0  # rows without groups have no effects
        # η of a row near others is less of what it shares with all, and some of its own.
        part = squares.MZ[:, :-1] / squares.w[:, None] if self.placed else Z
        much = part[:, -1] if self.placed else 1.0
        half = (part + (much * F[self.nodes, :-1].T).T) @ around.root.T
        variance = np.einsum("ij,ij->i", half, half) + squares.own
        variance += much**2 * np.einsum("ij,ij->i", a, a)[self.nodes]
        p = sigmoid(squares.at)
        lean = -0.5 * self.weights * p * (1.0 - p) * (1.0 - 2.0 * p) * variance
        gram[:-1, -1] += part.T @ lean
        gram[-1, :-1] = gram[:-1, -1]
        pulls = np.bincount(self.nodes + 1, much * lean, minlength=len(columns) + 1)
        columns[:, -1] += pulls[1:]
        return gram, columns, squares, lean

    def posterior(self, variances: FloatArray, tree: GroupTree) -> NestedPosterior:
        """The Gaussian with the curvature of the mode, around the mean."""
        gram, columns, squares, lean = self._centred(variances, tree)
        found = condition(self.ridge + gram, columns, tree, variances[: tree.levels].tolist())
        if not self.placed:
            return found
        around = Nearby(
            starts_of(self.nodes, tree)[1:],
            self.spots,
            squares.w,
            squares.MZ,
            lean / squares.w,
            squares.roots,
            squares.variance,
        )
        return replace(found, nearby=around)

    def settled(self, variances: FloatArray, tree: GroupTree) -> "LogisticTable":
        """The table as a prior for more rows: squares that have the same posterior."""
        gram, columns, _, _ = self._centred(variances, tree)
        start = self.empty(self.ridge, tree, places=self.spots.shape[1])
        point = replace(start.point, theta=self.point.theta, effects=self.point.effects)
        return replace(start, gram=gram, columns=columns, point=point)

    def state(self) -> dict[str, Any]:
        placed: dict[str, Any] = {}
        if self.placed:
            at = np.full(len(self.y), np.nan) if self.squares is None else self.squares.at
            named = {"spots": self.spots, "pull": self.point.pull, "near": self.point.near}
            placed = {name: pack(array) for name, array in named.items()}
            placed["at"] = pack(np.nan_to_num(at))
        return {
            **{name: pack(getattr(self, name)) for name in _SAVED},
            "nodes": self.nodes.tolist(),
            "theta": pack(self.point.theta),
            **{f"effects {i}": pack(effect) for i, effect in enumerate(self.point.effects)},
            **placed,
        }

    @classmethod
    def restore(
        cls,
        start: "LogisticTable",
        state: Mapping[str, Any],
        tree: GroupTree,
        variances: FloatArray,
    ) -> "LogisticTable":
        gram, columns, Z, y, weights = (unpack(state, name) for name in _SAVED)
        nodes = np.array(entry(state, "nodes"), dtype=np.int64)
        effects = tuple(unpack(state, f"effects {i}") for i in range(tree.levels))
        zero = np.zeros(len(y))
        point = Point(unpack(state, "theta"), effects, zero, zero)
        table = cls(start.ridge, gram, columns, Z, y, weights, nodes, np.empty((len(y), 0)), point)
        if not start.placed:
            return table
        point = replace(point, pull=unpack(state, "pull"), near=unpack(state, "near"))
        table = replace(table, spots=unpack(state, "spots"), point=point)
        squares = table._expanded(table._scaled(variances), unpack(state, "at"), variances, tree)
        return replace(table, squares=squares)
