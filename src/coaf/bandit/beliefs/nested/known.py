"""What a nested belief knows: rows, their groups, and the variances they speak for."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.nested.gaussian import GaussianTable
from coaf.bandit.beliefs.nested.groups import GroupTree, Path
from coaf.bandit.beliefs.nested.laplace import LogisticTable
from coaf.bandit.beliefs.nested.placed import PlacedTable
from coaf.bandit.beliefs.nested.posterior import NestedPosterior
from coaf.bandit.beliefs.nested.variances import estimate
from coaf.bandit.state import entry, pack, unpack


@dataclass(frozen=True)
class Known:
    """Rows learned, the groups they lie in, the variances in use, and how many rows there were."""

    tree: GroupTree
    table: GaussianTable | PlacedTable | LogisticTable
    log_variances: FloatArray
    rows: int

    @property
    def variances(self) -> FloatArray:
        """τ² of the levels, outermost first; of what is near; and of Gaussian noise, σ²."""
        return np.exp(self.log_variances)

    def posterior(self) -> NestedPosterior:
        return self.table.posterior(self.variances, self.tree)

    def added(self, Z: FloatArray, y: FloatArray, paths: list[Path], spots: FloatArray) -> "Known":
        tree, nodes = self.tree.grown(paths)
        table = self.table.add(Z, y, nodes, tree, spots)
        return replace(self, tree=tree, table=table, rows=self.rows + len(y))

    def at_mode(self) -> "Known":
        return replace(self, table=self.table.at_mode(self.variances, self.tree))

    def estimated(self, guess: FloatArray, start: FloatArray) -> "Known":
        """With the variances that the rows speak for."""
        table = self.table.afresh()

        def evidence(u: FloatArray) -> float:
            nonlocal table  # from where the last mode was, the next is a step or two
            table, found = table.weighed(np.exp(u), self.tree)
            return found

        u = estimate(evidence, guess, start)
        return replace(self, table=table, log_variances=u)

    def discounted(self, prior: "Known", factor: float) -> "Known":
        """With rows since `prior` counting `factor` of what they did."""
        table: Any = self.table
        return replace(self, table=table.discounted(prior.table, factor))

    def settled(self) -> "Known":
        """As a prior for more rows."""
        return replace(self, table=self.table.settled(self.variances, self.tree))

    def left(self) -> "Known":
        """Where labels stand for other groups from now on."""
        return replace(self, tree=replace(self.tree, era=self.tree.era + 1))

    def state(self) -> dict[str, Any]:
        return {
            "groups": [[era, list(path)] for era, path in self.tree.paths],
            "era": self.tree.era,
            "log_variances": pack(self.log_variances),
            "rows": self.rows,
            **self.table.state(),
        }

    @classmethod
    def restore(cls, state: Mapping[str, Any], start: "Known") -> "Known":
        """What `state` was taken from, in a belief that starts from `start`."""
        tree = GroupTree.restored(
            start.tree.levels, entry(state, "groups"), int(entry(state, "era"))
        )
        log_variances = unpack(state, "log_variances")
        first: Any = start.table
        table = first.restore(first, state, tree, np.exp(log_variances))
        expected = (len(tree.paths), len(table.ridge))
        if table.columns.shape != expected:
            raise ValueError(
                f"state entry 'columns' has shape {table.columns.shape}, expected {expected}"
            )
        return cls(tree, table, log_variances, int(entry(state, "rows")))
