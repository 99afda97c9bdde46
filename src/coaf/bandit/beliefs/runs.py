"""Rows that were learned, kept in runs that one call can teach."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.belief import Belief
from coaf.bandit.beliefs.rows import check_factor
from coaf.bandit.groups import Groups, check_groups
from coaf.bandit.state import entry, pack, unpack


@dataclass(frozen=True)
class Run:
    """Rows in order of arrival, and what was forgotten after the last of them."""

    X: FloatArray
    y: FloatArray
    groups: Groups | None
    factor: float = 1.0

    def __len__(self) -> int:
        return len(self.y)

    def part(self, rows: slice) -> "Run":
        groups = None if self.groups is None else self.groups[rows]
        return replace(self, X=self.X[rows], y=self.y[rows], groups=groups)

    def continues(self, before: "Run") -> bool:
        """Whether one call can teach both: nothing forgotten between, and groups of one kind."""
        a, b = before.groups, self.groups
        if a is None or b is None:
            alike = a is b
        else:
            alike = a.shape[1:] == b.shape[1:] and a.dtype.kind == b.dtype.kind
        return alike and before.factor == 1.0

    def after(self, before: "Run") -> "Run":
        groups = None
        if before.groups is not None and self.groups is not None:
            groups = np.concatenate([before.groups, self.groups])
        X, y = np.concatenate([before.X, self.X]), np.concatenate([before.y, self.y])
        return Run(X, y, groups, self.factor)

    def state(self) -> dict[str, Any]:
        labels = self.groups
        saved = None if labels is None else {"dtype": labels.dtype.str, "labels": labels.tolist()}
        return {"X": pack(self.X), "y": pack(self.y), "groups": saved, "factor": self.factor}

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> "Run":
        saved, y = entry(state, "groups"), unpack(state, "y")
        groups = None
        if saved is not None:
            labels = np.array(entry(saved, "labels"), dtype=entry(saved, "dtype"))
            groups = check_groups(labels, len(y))
        return cls(unpack(state, "X"), y, groups, check_factor(entry(state, "factor")))


def joined(runs: Iterable[Run]) -> list[Run]:
    """The same rows in as few runs as can be taught by one call each."""
    result: list[Run] = []
    for rows in runs:
        if result and rows.continues(result[-1]):
            result[-1] = rows.after(result[-1])
        else:
            result.append(rows)
    return result


def last_of(runs: list[Run], count: int) -> list[Run]:
    """The last `count` rows."""
    result: list[Run] = []
    for rows in reversed(runs):
        if count > 0 and len(rows):
            result.insert(0, rows.part(slice(max(len(rows) - count, 0), None)))
        count -= len(rows)
    return result


def taught(belief: Belief, runs: list[Run]) -> Belief:
    """The belief, started again with these rows and what was forgotten between them."""
    for i, rows in enumerate(runs):
        teach = belief.learn if i else belief.refit
        teach(rows.X, rows.y, rows.groups)
        if rows.factor < 1.0:
            belief.forget(rows.factor)
    return belief
