"""Rows with Gaussian noise, as sums: how many there were makes no difference to the cost."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coaf.bandit.arrays import FloatArray, IntArray
from coaf.bandit.beliefs.nested.groups import GroupSums, GroupTree, padded
from coaf.bandit.beliefs.nested.posterior import NestedPosterior, condition
from coaf.bandit.state import pack, unpack


@dataclass(frozen=True)
class GaussianTable:
    """Sums over rows z = (x, 1, y), enough for the exact posterior under any variances.

    Attributes
    ----------
    ridge : (dim + 2, dim + 2)
        The prior of θ, as if it were rows.
    gram, alone : (dim + 2, dim + 2)
        Σ z zᵀ over rows with groups, and over those without.
    columns : (groups, dim + 2)
        Σ z over the rows of each innermost group.

    Notes
    -----
    Variances are those of the levels, outermost first, and last that of the noise. A row without
    groups is in groups of its own, which only add to its noise.
    """

    ridge: FloatArray
    gram: FloatArray
    alone: FloatArray
    columns: FloatArray

    @classmethod
    def empty(cls, ridge: FloatArray, tree: GroupTree, *, places: int = 0) -> "GaussianTable":
        assert not places  # sums know no places
        none = np.zeros_like(ridge)
        return cls(ridge, none, none, np.empty((0, len(ridge))))

    def add(
        self, Z: FloatArray, y: FloatArray, nodes: IntArray, tree: GroupTree, spots: FloatArray
    ) -> "GaussianTable":
        """The table with rows (x, 1) and y that belong to innermost `nodes`, -1 for none."""
        Z = np.column_stack([Z, y])
        grouped, size = nodes >= 0, len(tree.paths)
        columns = padded(self.columns, size)
        here = np.unique(nodes[grouped])
        at = np.searchsorted(here, nodes[grouped])
        columns[here] += GroupSums(at, size=len(here), width=Z.shape[1]).of(Z[grouped])
        return GaussianTable(
            self.ridge,
            self.gram + Z[grouped].T @ Z[grouped],
            self.alone + Z[~grouped].T @ Z[~grouped],
            columns,
        )

    def discounted(self, prior: "GaussianTable", factor: float) -> "GaussianTable":
        """The prior's sums plus `factor` of what came since."""
        old = padded(prior.columns, len(self.columns))
        return GaussianTable(
            self.ridge,
            prior.gram + factor * (self.gram - prior.gram),
            prior.alone + factor * (self.alone - prior.alone),
            old + factor * (self.columns - old),
        )

    def at_mode(self, variances: FloatArray, tree: GroupTree) -> "GaussianTable":
        """The table itself: sums need no mode."""
        return self

    def posterior(self, variances: FloatArray, tree: GroupTree) -> NestedPosterior:
        """The posterior of θ and effects, exactly."""
        noise, total = float(variances[-1]), float(variances.sum())
        gram = self.ridge + self.gram / noise + self.alone / total
        return condition(gram, self.columns / noise, tree, variances[:-1].tolist())

    def afresh(self) -> "GaussianTable":
        """Sums know nothing of how rows came."""
        return self

    def weighed(self, variances: FloatArray, tree: GroupTree) -> "tuple[GaussianTable, float]":
        """The table, and the log marginal likelihood of the variances, exactly."""
        return self, self.evidence(variances, tree, self.posterior(variances, tree))

    def evidence(self, variances: FloatArray, tree: GroupTree, posterior: NestedPosterior) -> float:
        """The log marginal likelihood, given the posterior."""
        terms = (
            float(self.gram[-2, -2]) * math.log(2.0 * math.pi * variances[-1]),
            float(self.alone[-2, -2]) * math.log(2.0 * math.pi * variances.sum()),
            posterior.logdet - logdet_of(self.ridge),
            posterior.misfit,
        )
        return -0.5 * sum(terms)

    def settled(self, variances: FloatArray, tree: GroupTree) -> "GaussianTable":
        """The table as a prior for more rows: sums already are one."""
        return self

    def state(self) -> dict[str, Any]:
        return {name: pack(getattr(self, name)) for name in ("gram", "alone", "columns")}

    @classmethod
    def restore(
        cls,
        start: "GaussianTable",
        state: Mapping[str, Any],
        tree: GroupTree,
        variances: FloatArray,
    ) -> "GaussianTable":
        return cls(start.ridge, *(unpack(state, name) for name in ("gram", "alone", "columns")))


def logdet_of(ridge: FloatArray) -> float:
    """The log determinant of the prior's precision of θ."""
    return float(np.log(np.diag(ridge)[:-1]).sum())
