"""The rows that a policy has learned, kept so that scores can be corrected."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any, Self

import numpy as np

from coaf.bandit.arrays import FloatArray, IntArray
from coaf.bandit.beliefs.belief import Belief
from coaf.bandit.beliefs.runs import Run, joined, taught
from coaf.bandit.state import entry


class History:
    """Rows in the order in which they were learned, and which arm of which decision each is of."""

    def __init__(self) -> None:
        self._runs: list[Run] = []
        self._where: dict[tuple[int | str, int], list[int]] = {}
        self._count = 0

    def add(
        self, rows: Run, decision: int | str | None = None, arms: IntArray | None = None
    ) -> None:
        self._runs.append(rows)
        for row, arm in enumerate([] if arms is None else arms.tolist(), start=self._count):
            assert decision is not None
            self._where.setdefault((decision, arm), []).append(row)
        self._count += len(rows)

    def corrected(
        self, decision: int | str, arms: IntArray, rewards: FloatArray, previous: FloatArray | None
    ) -> "tuple[History, float]":
        """A copy with other rewards for these arms, and by how much their sum has changed."""
        runs = joined(self._runs)
        y, used, change = np.concatenate([np.empty(0), *(r.y for r in runs)]), set[int](), 0.0
        for at, (arm, reward) in enumerate(zip(arms.tolist(), rewards.tolist(), strict=True)):
            rows = [row for row in self._where.get((decision, arm), []) if row not in used]
            if previous is not None:
                rows = [row for row in rows if y[row] == previous[at]]
            if not rows:
                what = "" if previous is None else f" of {previous[at]}"
                raise ValueError(f"arms[{at}] is {arm}, for which no reward{what} was learned")
            if previous is None and len(rows) > 1:
                raise ValueError(
                    f"arms[{at}] is {arm}, which has {len(rows)} rewards: say by `previous` which"
                )
            change += reward - float(y[rows[0]])
            y[rows[0]] = reward
            used.add(rows[0])
        result, first = History(), 0
        for run in runs:
            result.add(replace(run, y=y[first : first + len(run)]))
            first += len(run)
        result._where = self._where
        return result, change

    def taught(self, belief: Belief) -> Belief:
        """A copy of the belief that has learned these rows and no others."""
        return taught(deepcopy(belief), joined(self._runs))

    def state(self) -> dict[str, Any]:
        self._runs = joined(self._runs)
        where = [[name, arm, rows] for (name, arm), rows in self._where.items()]
        return {"runs": [run.state() for run in self._runs], "where": where}

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> Self:
        history = cls()
        for saved in entry(state, "runs"):
            history.add(Run.restore(saved))
        history._where = {(name, arm): list(at) for name, arm, at in entry(state, "where")}
        return history
