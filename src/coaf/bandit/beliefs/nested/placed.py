"""Rows with Gaussian noise that share something with those near them in their group."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coaf.bandit.arrays import FloatArray, IntArray
from coaf.bandit.beliefs.nested.gaussian import logdet_of
from coaf.bandit.beliefs.nested.groups import GroupTree, padded
from coaf.bandit.beliefs.nested.nearby import Nearby, nesting
from coaf.bandit.beliefs.nested.posterior import NestedPosterior, condition
from coaf.bandit.beliefs.nested.squares import Squares, starts_of
from coaf.bandit.state import pack, unpack

_ROWS = ("Z", "y", "weights", "spots")


@dataclass(frozen=True)
class PlacedTable:
    """Rows (x, 1) and y since the last `settled`, by innermost group, and sums for those before.

    Attributes
    ----------
    ridge : (dim + 2, dim + 2)
        The prior of θ, as if it were rows.
    gram, columns
        Σ z·M·zᵀ, z = (x, 1, y), over all rows and by innermost group, of rows before.
    Z, y, weights, nodes
        The rows, what they count, and their innermost group, -1 for none.
    spots : (rows, 2)
        Their places in the group.
    squares
        M·z of rows, under the variances they were last asked for.

    Notes
    -----
    Variances are those of the levels, outermost first, of what rows near each other share, and of
    the noise. M is the precision of the rows of a group once what they share with those near them
    is averaged over. What is settled keeps what it says of groups, not of places. A row without
    groups is in groups of its own, which only add to its noise.
    """

    ridge: FloatArray
    gram: FloatArray
    columns: FloatArray
    Z: FloatArray
    y: FloatArray
    weights: FloatArray
    nodes: IntArray
    spots: FloatArray
    squares: Squares | None = None

    @classmethod
    def empty(cls, ridge: FloatArray, tree: GroupTree, *, places: int = 0) -> "PlacedTable":
        P, none = len(ridge), np.empty(0)
        rows = (np.empty((0, P - 1)), none, none, none.astype(np.int64), np.empty((0, places)))
        return cls(ridge, np.zeros((P, P)), np.empty((0, P)), *rows)

    def add(
        self, Z: FloatArray, y: FloatArray, nodes: IntArray, tree: GroupTree, spots: FloatArray
    ) -> "PlacedTable":
        """The table with more rows."""
        everywhere = np.concatenate([self.nodes, nodes])
        order = np.argsort(everywhere, kind="stable")
        weights = np.append(self.weights, np.ones(len(y)))
        return PlacedTable(
            self.ridge,
            self.gram,
            padded(self.columns, len(tree.paths)),
            np.concatenate([self.Z, Z])[order],
            np.append(self.y, y)[order],
            weights[order],
            everywhere[order],
            np.concatenate([self.spots, spots])[order],
            None if self.squares is None else self.squares.grown(everywhere, order, tree),
        )

    def discounted(self, prior: "PlacedTable", factor: float) -> "PlacedTable":
        """Rows since the prior count `factor` of what they did."""
        return replace(self, weights=factor * self.weights, squares=None)

    def _expanded(self, variances: FloatArray, tree: GroupTree) -> Squares:
        """M·z of all rows."""
        *_, near, noise = variances.tolist()
        starts, weights, squares = starts_of(self.nodes, tree), self.weights, self.squares
        alone = self.nodes < 0
        if alone.any():
            weights = np.where(alone, weights * noise / variances.sum(), weights)
            squares = None
        if squares is None or (squares.variance, squares.noise) != (near, noise):
            squares = Squares.none(self.Z, starts, near, noise)
        zeros = np.zeros(len(self.y))
        which = nesting().moved(starts, zeros, squares.at, np.inf)  # those never expanded
        if not len(which):
            return squares
        new = squares.copy()
        nesting().expand(
            which,
            starts,
            self.Z,
            self.y,
            weights,
            self.spots,
            zeros,
            near,
            noise,
            *new.arrays,
        )
        return new

    def at_mode(self, variances: FloatArray, tree: GroupTree) -> "PlacedTable":
        """The table with its squares at hand."""
        return replace(self, squares=self._expanded(variances, tree))

    def _sums(
        self, variances: FloatArray, tree: GroupTree
    ) -> tuple[Squares, FloatArray, FloatArray]:
        """Squares, and the gram and columns of all rows."""
        squares = self._expanded(variances, tree)
        gram, columns = self.gram.copy(), self.columns.copy()
        nesting().collect(starts_of(self.nodes, tree), self.Z, squares.MZ, gram, columns)
        gram[-1, -1] += self.y @ squares.MZ[:, -1]
        return squares, gram, columns

    def posterior(self, variances: FloatArray, tree: GroupTree) -> NestedPosterior:
        """The posterior of θ and effects, exactly."""
        squares, gram, columns = self._sums(variances, tree)
        levels = variances[: tree.levels].tolist()
        around = Nearby(
            starts_of(self.nodes, tree)[1:],
            self.spots,
            squares.w,
            squares.MZ,
            np.zeros(len(self.y)),
            squares.roots,
            squares.variance,
        )
        return replace(condition(self.ridge + gram, columns, tree, levels), nearby=around)

    def afresh(self) -> "PlacedTable":
        """The table as it would be had all of its rows come at once."""
        return replace(self, squares=None)

    def weighed(self, variances: FloatArray, tree: GroupTree) -> "tuple[PlacedTable, float]":
        """The table, and the log marginal likelihood of the variances, exactly."""
        table = self.at_mode(variances, tree)
        return table, table.evidence(variances, tree, table.posterior(variances, tree))

    def evidence(self, variances: FloatArray, tree: GroupTree, posterior: NestedPosterior) -> float:
        """The log marginal likelihood, up to a constant of what was settled."""
        noise = np.where(self.nodes < 0, variances.sum(), variances[-1])
        terms = (
            float(self.weights @ np.log(2.0 * math.pi * noise)),
            float(self._expanded(variances, tree).logdets.sum()),
            posterior.logdet - logdet_of(self.ridge),
            posterior.misfit,
        )
        return -0.5 * sum(terms)

    def settled(self, variances: FloatArray, tree: GroupTree) -> "PlacedTable":
        """The table as a prior for more rows: sums that have the same posterior."""
        _, gram, columns = self._sums(variances, tree)
        start = self.empty(self.ridge, tree, places=self.spots.shape[1])
        return replace(start, gram=gram, columns=columns)

    def state(self) -> dict[str, Any]:
        arrays = {name: pack(getattr(self, name)) for name in ("gram", "columns", *_ROWS)}
        return {**arrays, "nodes": self.nodes.tolist()}

    @classmethod
    def restore(
        cls,
        start: "PlacedTable",
        state: Mapping[str, Any],
        tree: GroupTree,
        variances: FloatArray,
    ) -> "PlacedTable":
        gram, columns, *rows = (unpack(state, name) for name in ("gram", "columns", *_ROWS))
        Z, y, weights, spots = rows
        nodes = np.array(state["nodes"], dtype=np.int64)
        table = cls(start.ridge, gram, columns, Z, y, weights, nodes, spots)
        return table.at_mode(variances, tree)
