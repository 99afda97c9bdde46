"""Rows that are 0 or 1: the mode of the posterior, and the Gaussian that touches it there."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coaf.bandit.arrays import FloatArray, IntArray
from coaf.bandit.beliefs.nested.gaussian import logdet_of
from coaf.bandit.beliefs.nested.groups import GroupTree, padded
from coaf.bandit.beliefs.nested.posterior import NestedPosterior, condition, nesting
from coaf.bandit.state import entry, pack, unpack

_STEPS = 100
_SAVED = ("gram", "columns", "Z", "y", "weights")


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
    """Coefficients and the effects of groups, level by level."""

    theta: FloatArray
    effects: tuple[FloatArray, ...]

    def towards(self, other: "Point", step: float) -> "Point":
        """The point a part of the way to another."""
        pairs = zip(self.effects, other.effects, strict=True)
        return Point(
            self.theta + step * (other.theta - self.theta),
            tuple(a + step * (b - a) for a, b in pairs),
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
    point
        Where the log posterior is expanded: its mode, once `fitted`.

    Notes
    -----
    A row without groups is in groups of its own: their effects are averaged over, which flattens
    its η (`flattened`).
    """

    ridge: FloatArray
    gram: FloatArray
    columns: FloatArray
    Z: FloatArray
    y: FloatArray
    weights: FloatArray
    nodes: IntArray
    point: Point

    @classmethod
    def empty(cls, ridge: FloatArray, tree: GroupTree) -> "LogisticTable":
        P, none = len(ridge), np.empty(0)
        point = Point(np.zeros(P - 1), (none,) * tree.levels)
        rows = (np.empty((0, P - 1)), none, none, none.astype(np.int64))
        return cls(ridge, np.zeros((P, P)), np.empty((0, P)), *rows, point)

    def add(
        self, Z: FloatArray, y: FloatArray, nodes: IntArray, tree: GroupTree
    ) -> "LogisticTable":
        """The table with more rows; the mode is left where it was."""
        pairs = zip(self.point.effects, tree.sizes, strict=True)
        effects = tuple(padded(effect, size) for effect, size in pairs)
        both = (
            np.concatenate([self.Z, Z]),
            np.concatenate([self.y, y]),
            np.concatenate([self.weights, np.ones(len(y))]),
            np.concatenate([self.nodes, nodes]),
        )
        if (np.diff(both[-1]) < 0).any():
            order = np.argsort(both[-1], kind="stable")
            both = tuple(column[order] for column in both)  # type: ignore[assignment]
        point = Point(self.point.theta, effects)
        columns = padded(self.columns, len(tree.paths))
        return LogisticTable(self.ridge, self.gram, columns, *both, point)

    def discounted(self, prior: "LogisticTable", factor: float) -> "LogisticTable":
        """Rows since the prior count `factor` of what they did."""
        return replace(self, weights=factor * self.weights)

    def _scaled(self, variances: FloatArray) -> FloatArray:
        """The rows (x, 1), flattened where they have no group."""
        if not (self.nodes < 0).any():
            return self.Z
        return np.where(self.nodes[:, None] < 0, flattened(self.Z, variances.sum()), self.Z)

    def _eta(self, Z: FloatArray, point: Point, tree: GroupTree) -> FloatArray:
        eta: FloatArray = Z @ point.theta + tree.totals(point.effects)[self.nodes]
        return eta

    def _height(
        self, eta: FloatArray, point: Point, variances: FloatArray, tree: GroupTree
    ) -> float:
        """The log posterior at a point, up to what does not depend on it."""
        v, total = np.append(point.theta, -1.0), tree.totals(point.effects)[:-1]
        c = self.columns
        settled = v @ self.gram @ v + total @ (2.0 * c @ v + c[:, -2] * total)
        away = v @ self.ridge @ v + settled
        for effect, variance in zip(point.effects, variances, strict=True):
            away += effect @ effect / variance
        return float(nesting().log_likelihood(self.y, self.weights, eta) - 0.5 * away)

    def _touching(self, Z: FloatArray, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gram and columns of rows whose squares touch the log likelihood at η.

        As iterated reweighted least squares: weights w = p(1 − p), responses η + (y − p)/w. Their
        own squares are left out: they move neither the mode nor the variances.
        """
        gram, columns = self.gram.copy(), self.columns.copy()
        nesting().touch(Z, self.y, self.weights, self.nodes, eta, gram, columns)
        return gram, columns

    def _climb(
        self, variances: FloatArray, tree: GroupTree, close: float
    ) -> tuple["LogisticTable", float]:
        """The table at its mode, and its height: Newton's method, halving steps that go down.

        It ends after a step in η of at most `close`; what is missing then is about its square.
        """
        Z, point = self._scaled(variances), self.point
        eta = self._eta(Z, point, tree)
        height = self._height(eta, point, variances, tree)
        for _ in range(_STEPS):
            gram, columns = self._touching(Z, eta)
            posterior = condition(self.ridge + gram, columns, tree, variances.tolist())
            goal = Point(posterior.theta, posterior.effects(tree))
            step, slack = 1.0, 1e-9 * (1.0 + abs(height))
            while True:
                there = point.towards(goal, step)
                moved = self._eta(Z, there, tree)
                reached = self._height(moved, there, variances, tree)
                if reached >= height - slack or step < 1e-9:
                    break
                step *= 0.5
            far = float(np.abs(moved - eta).max(initial=0.0))
            point, eta, height = there, moved, reached
            if far <= close:
                return replace(self, point=point), height
        raise ArithmeticError(f"no mode of the posterior after {_STEPS} steps of Newton's method")

    def at_mode(self, variances: FloatArray, tree: GroupTree) -> "LogisticTable":
        """The table, expanded at its mode."""
        return self._climb(variances, tree, 3e-5)[0]

    def laplace(self, variances: FloatArray, tree: GroupTree) -> NestedPosterior:
        """The Gaussian that touches the posterior where the table is expanded."""
        Z = self._scaled(variances)
        gram, columns = self._touching(Z, self._eta(Z, self.point, tree))
        return condition(self.ridge + gram, columns, tree, variances.tolist())

    def weighed(self, variances: FloatArray, tree: GroupTree) -> "tuple[LogisticTable, float]":
        """The table at its mode, and the log marginal likelihood by Laplace's approximation.

        Up to a constant of what was settled.
        """
        table, height = self._climb(variances, tree, 1e-3)
        logdet = table.laplace(variances, tree).logdet
        return table, height - 0.5 * (logdet - logdet_of(self.ridge))

    def _centred(self, variances: FloatArray, tree: GroupTree) -> tuple[FloatArray, FloatArray]:
        """Gram and columns of the Gaussian at the mode, moved to the mean.

        Where good is rare, the posterior leans towards less of it, and its mean lies below its
        mode. To first order (the cubic term of the log likelihood under the Gaussian), the pull of
        a row changes by −½ p(1 − p)(1 − 2p) var(η).
        """
        Z = self._scaled(variances)
        eta = self._eta(Z, self.point, tree)
        gram, columns = self._touching(Z, eta)
        around = condition(self.ridge + gram, columns, tree, variances.tolist())
        F, a = around.forms(np.append(tree.lineage, np.full((1, tree.levels), -1), axis=0))
        F[-1], a[-1] = 0.0, 0.0  # rows without groups have no effects
        half = (Z + F[self.nodes, :-1]) @ around.root.T
        variance = np.einsum("ij,ij->i", half, half) + np.einsum("ij,ij->i", a, a)[self.nodes]
        p = sigmoid(eta)
        pull = -0.5 * self.weights * p * (1.0 - p) * (1.0 - 2.0 * p) * variance
        gram[:-1, -1] += Z.T @ pull
        gram[-1, :-1] = gram[:-1, -1]
        columns[:, -1] += np.bincount(self.nodes + 1, pull, minlength=len(columns) + 1)[1:]
        return gram, columns

    def posterior(self, variances: FloatArray, tree: GroupTree) -> NestedPosterior:
        """The Gaussian with the curvature of the mode, around the mean."""
        gram, columns = self._centred(variances, tree)
        return condition(self.ridge + gram, columns, tree, variances.tolist())

    def settled(self, variances: FloatArray, tree: GroupTree) -> "LogisticTable":
        """The table as a prior for more rows: squares that have the same posterior."""
        gram, columns = self._centred(variances, tree)
        start = self.empty(self.ridge, tree)
        return replace(start, gram=gram, columns=columns, point=self.point)

    def state(self) -> dict[str, Any]:
        return {
            **{name: pack(getattr(self, name)) for name in _SAVED},
            "nodes": self.nodes.tolist(),
            "theta": pack(self.point.theta),
            **{f"effects {i}": pack(effect) for i, effect in enumerate(self.point.effects)},
        }

    @classmethod
    def restore(
        cls, ridge: FloatArray, state: Mapping[str, Any], tree: GroupTree
    ) -> "LogisticTable":
        gram, columns, Z, y, weights = (unpack(state, name) for name in _SAVED)
        nodes = np.array(entry(state, "nodes"), dtype=np.int64)
        effects = tuple(unpack(state, f"effects {i}") for i in range(tree.levels))
        point = Point(unpack(state, "theta"), effects)
        return cls(ridge, gram, columns, Z, y, weights, nodes, point)
