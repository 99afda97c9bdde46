"""Which decisions are open: what was executed of them, and which rewards are in."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coaf.bandit.arrays import INT64, BoolArray, FloatArray, IntArray, guards, mask
from coaf.bandit.problem import Decision
from coaf.bandit.state import entry

_HINT = " (rounds that are decided before the last one is committed need a key)"


def _arrays(rewards: Any, arms: Any) -> tuple[FloatArray, IntArray]:
    try:
        values = np.asarray(rewards, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"rewards must be an array of numbers: {error}") from None
    numbers = np.asarray(arms)
    if numbers.dtype is not INT64:
        if numbers.size and numbers.dtype.kind not in "iu":
            raise ValueError(f"arms must be a list of arm numbers, got {arms!r}")
        numbers = numbers.astype(np.int64)
    if numbers.ndim != 1:
        raise ValueError(f"arms must be a list of arm numbers, got {arms!r}")
    if values.shape != numbers.shape:
        raise ValueError(f"rewards has shape {values.shape} for {len(numbers)} arms")
    return values, numbers


def _check_parts(due: list[int], arms: IntArray) -> None:
    for at, arm in enumerate(arms.tolist()):
        if 0 <= arm < len(due) and (arms[: at + 1] == arm).sum() > due[arm]:
            raise ValueError(f"arms[{at}] is {arm}, whose rewards are all in already")


@dataclass(slots=True)
class _Open:
    """What is known of an open decision. Until it is committed, `done` is what was chosen."""

    mark: tuple[float, ...]  # of the round, to tell it from another that got the same number
    committed: bool
    done: BoolArray
    missing: int  # how many of `done` have no reward yet
    learned: BoolArray | None = None  # which have; None while none has
    parts: list[int] | None = None  # of arms that bring several rewards: how many are still due

    def touched(self, decision: Decision) -> BoolArray:
        """Arms of which a reward is in, if only a part of it."""
        if self.parts is not None:
            return np.array(self.parts) < decision.round.parts
        if self.learned is not None:
            return self.learned
        return np.zeros(len(self.done), dtype=np.bool_)


class Ledger:
    """Refuses a second commit, a reward for an arm not executed, and a second reward for one arm.

    A decision is closed when it is committed and every executed arm has its reward; it then costs
    no memory if the policy numbered it, and its key if the user named it.
    """

    def __init__(self) -> None:
        self.commits = 0
        self._open: dict[int | str, _Open] = {}
        self._closed: set[str] = set()

    def new_id(self, key: str | None) -> int | str:
        return self.commits if key is None else key

    def _find(self, decision: Decision) -> _Open | None:
        name = decision.id
        found = self._open.get(name)
        if found is None:
            if name < self.commits if isinstance(name, int) else name in self._closed:
                if isinstance(name, str):
                    raise ValueError(f"key {name!r} was used before, and its decision is closed")
                raise ValueError(
                    f"decision {name!r} is closed: all its rewards are in, or another was "
                    f"committed in its place{_HINT}"
                )
        elif found.mark != decision.round.mark or len(found.done) != decision.round.n:
            raise ValueError(f"decision {name!r} is open for another round{_HINT}")
        return found

    def _new(self, decision: Decision) -> _Open:
        missing = int(np.count_nonzero(decision.chosen))
        parts = decision.round.parts
        due = None if parts is None else parts.tolist()
        return _Open(decision.round.mark, False, decision.chosen, missing, parts=due)

    def check_commit(self, decision: Decision, executed: Any) -> BoolArray:
        """The mask of executed arms, or an error before anything has changed."""
        found = self._find(decision)
        done = decision.chosen
        if executed is not None:
            done = mask("executed", executed, decision.round.n)
            if np.array_equal(done, decision.chosen):
                done = decision.chosen
        if found is not None:
            if found.committed:
                raise ValueError(f"decision {decision.id!r} was committed already{_HINT}")
            wrong = found.touched(decision) & ~done
            if wrong.any():
                arm = int(wrong.argmax())
                raise ValueError(f"executed[{arm}] is False, but the reward of arm {arm} is in")
        return done

    def commit(self, decision: Decision, done: BoolArray) -> None:
        found = self._open.get(decision.id) or self._new(decision)
        if done is not decision.chosen:
            found.done = done
            found.missing = int(np.count_nonzero(done))
            if found.learned is not None:
                found.missing -= int(np.count_nonzero(found.learned))
        found.committed = True
        self.commits += 1
        self._settle(decision.id, found)

    def check_learn(
        self, decision: Decision, arms: Any, rewards: Any
    ) -> tuple[IntArray, FloatArray]:
        """Arms and rewards as arrays, or an error before anything has changed."""
        values, indices = _arrays(rewards, arms)
        if len(values) == 0:  # nothing to say of a decision to take nothing, which closed at once
            return indices, values
        found = self._find(decision) or self._new(decision)
        if found.parts is not None:
            _check_parts(found.parts, indices)
        checks, learned = guards(), found.learned
        if learned is None:
            learned = np.zeros(decision.round.n, dtype=np.bool_)
        if found.parts is None:
            at, reason = checks.first_wrong(indices, values, found.done, learned)
        else:  # one by one, as parts of an arm may come together
            every = [
                checks.first_wrong(indices[k : k + 1], values[k : k + 1], found.done, learned)
                for k in range(len(indices))
            ]
            wrong = [k for k, (at, _) in enumerate(every) if at >= 0]
            at, reason = (wrong[0], every[wrong[0]][1]) if wrong else (-1, checks.FINE)
        if at >= 0:
            arm, n = int(indices[at]), decision.round.n
            done = "executed" if found.committed else "chosen, and nothing is committed yet"
            raise ValueError(
                {
                    checks.NO_SUCH_ARM: f"arms[{at}] is {arm}; the round has arms 0 to {n - 1}",
                    checks.NOT_EXECUTED: f"arms[{at}] is {arm}, which was not {done}",
                    checks.TWICE: f"arms[{at}] is {arm}, whose reward is in already",
                    checks.NOT_FINITE: f"rewards[{at}] is {values[at]}; it must be a finite number",
                }[reason]
            )
        return indices, values

    def learn(self, decision: Decision, arms: IntArray) -> None:
        found = self._open.get(decision.id) or self._new(decision)
        if found.parts is not None:
            for arm in arms.tolist():
                found.parts[arm] -= 1
            arms = np.unique(arms[[found.parts[arm] == 0 for arm in arms.tolist()]])
        found.missing -= len(arms)
        if found.missing or not found.committed:
            if found.learned is None:
                found.learned = np.zeros(decision.round.n, dtype=np.bool_)
            found.learned[arms] = True
        self._settle(decision.id, found)

    def _settle(self, name: int | str, found: _Open) -> None:
        if found.missing or not found.committed:
            self._open[name] = found
        else:
            self._open.pop(name, None)
            if isinstance(name, str):
                self._closed.add(name)

    def state(self) -> dict[str, Any]:
        waiting = [
            [
                name,
                list(found.mark),
                found.committed,
                found.done.tolist(),
                None if found.learned is None else found.learned.tolist(),
                None if found.parts is None else list(found.parts),
            ]
            for name, found in self._open.items()
        ]
        return {"commits": self.commits, "open": waiting, "closed": sorted(self._closed)}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.commits = int(entry(state, "commits"))
        self._closed = set(entry(state, "closed"))
        for name, mark, committed, done, learned, *more in entry(state, "open"):
            missing = sum(done) - sum(learned or ())
            found = _Open(tuple(mark), committed, np.array(done, dtype=np.bool_), missing)
            if more and more[0] is not None:  # states from before arms could have parts lack it
                found.parts = list(more[0])
            if learned is not None:
                found.learned = np.array(learned, dtype=np.bool_)
            self._open[name] = found
