"""Which decisions are open: what was executed of them, and which rewards are still to come."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from coaf.bandit.arrays import INT64, BoolArray, FloatArray, IntArray, guards, locked, mask
from coaf.bandit.policies.faults import RepeatedError
from coaf.bandit.problem import Decision, Round
from coaf.bandit.state import entry

_HINT = " (rounds that are decided before the last one is committed need a key)"


def arm_numbers(round: Round, arms: Any) -> IntArray:
    """`arms` of a round, by number, by name or as a mask, as a vector of numbers, or an error."""
    numbers = np.asarray(round.numbered("arms", arms))
    if numbers.dtype is not INT64:
        if numbers.dtype == np.bool_ and numbers.shape == (round.n,):
            numbers = numbers.nonzero()[0]
        elif numbers.size and numbers.dtype.kind not in "iu":
            raise ValueError(f"arms must be a list of arm numbers, got {arms!r}")
        numbers = numbers.astype(np.int64)
    if numbers.ndim != 1:
        raise ValueError(f"arms must be a list of arm numbers, got {arms!r}")
    return locked(numbers)


def reward_values(rewards: Any, arms: IntArray, name: str = "rewards") -> FloatArray:
    """`rewards` as numbers, one for each arm, or an error."""
    try:
        values = np.asarray(rewards, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of numbers: {error}") from None
    if values.shape != arms.shape:
        raise ValueError(f"{name} has shape {values.shape} for {len(arms)} arms")
    return locked(values)


def _mask(arms: IntArray, n: int) -> BoolArray:
    result = np.zeros(n, dtype=np.bool_)
    result[arms] = True
    return result


@dataclass(slots=True)
class _Open:
    """What is known of an open decision, in numbers of arms: masks of many arms would add up."""

    mark: tuple[float, ...]  # of the round, to tell it from another that got the same number
    n: int
    count: int  # how many arms have rewards to come
    executed: IntArray | None = None  # where other arms than those chosen
    missing: IntArray | None = None  # which arms have rewards to come; None for all executed
    due: dict[int, int] | None = None  # of arms that bring several rewards: how many are to come
    at: tuple[int, float] | None = None  # commits and seconds when it was committed; None before
    names: tuple[str, ...] | None = None  # of the arms, where the round has them

    def done(self, decision: Decision) -> BoolArray:
        """The arms executed; until the decision is committed, those chosen.

        After a restart a round may be decided again under its key, and then otherwise: what is
        still to come was executed, whatever is chosen now.
        """
        if self.executed is not None:
            return _mask(self.executed, self.n)
        if self.missing is None:
            return decision.chosen
        return decision.chosen | _mask(self.missing, self.n)

    def waiting(self, decision: Decision) -> BoolArray:
        """The arms with rewards to come."""
        return self.done(decision) if self.missing is None else _mask(self.missing, self.n)

    def touched(self, decision: Decision) -> BoolArray:
        """Arms of which a reward is in, if only a part of it."""
        result = self.done(decision) & ~self.waiting(decision)
        for arm, due in (self.due or {}).items():
            assert decision.round.parts is not None
            result[arm] |= due < decision.round.parts[arm]
        return result


class Ledger:
    """Refuses a second commit, a reward for an arm not executed, and a second reward for one arm.

    A decision is closed when it is committed and every executed arm has its reward, or what is
    missing was given up; it then costs no memory if the policy numbered it, and its key if the user
    named it.

    Parameters
    ----------
    expire_commits, expire_seconds
        After how many further commits, or committed seconds, what is missing is given up.
    """

    def __init__(self, expire_commits: float = inf, expire_seconds: float = inf) -> None:
        self.expire_commits, self.expire_seconds = expire_commits, expire_seconds
        self.commits, self.seconds = 0, 0.0
        self.given_up = 0  # rewards that will never come
        self._open: dict[int | str, _Open] = {}  # committed ones in the order of their commits
        self._closed: set[str] = set()

    def new_id(self, key: str | None) -> int | str:
        return self.commits if key is None else key

    def _find(self, decision: Decision) -> _Open | None:
        name = decision.id
        found = self._open.get(name)
        if found is None:
            if name < self.commits if isinstance(name, int) else name in self._closed:
                if isinstance(name, str):
                    raise RepeatedError(
                        f"key {name!r} was used before, and its decision is closed: all its "
                        "rewards are in or given up"
                    )
                raise RepeatedError(
                    f"decision {name!r} is closed: all its rewards are in or given up, or another "
                    f"was committed in its place{_HINT}"
                )
        elif found.mark != decision.round.mark or found.n != decision.round.n:
            raise ValueError(f"decision {name!r} is open for another round{_HINT}")
        return found

    def _new(self, decision: Decision) -> _Open:
        count, parts = int(np.count_nonzero(decision.chosen)), decision.round.parts
        due = None
        if parts is not None:
            due = {arm: int(parts[arm]) for arm in np.flatnonzero(parts > 1).tolist()}
        of = decision.round
        return _Open(of.mark, of.n, count, due=due, names=of.names)

    def check_commit(self, decision: Decision, executed: Any) -> BoolArray:
        """The mask of executed arms, or an error before anything has changed."""
        found = self._find(decision)
        done = decision.chosen
        if executed is not None:
            executed = decision.round.numbered("executed", executed)
            done = mask("executed", executed, decision.round.n)
            if np.array_equal(done, decision.chosen):
                done = decision.chosen
        if found is not None:
            if found.at is not None:
                hint = "" if isinstance(decision.id, str) else _HINT
                raise RepeatedError(f"decision {decision.id!r} was committed already{hint}")
            wrong = found.touched(decision) & ~done
            if wrong.any():
                arm = decision.round.called(int(wrong.argmax()))
                raise ValueError(f"executed lacks arm {arm!r}, whose reward is in")
        return done

    def commit(self, decision: Decision, done: BoolArray, seconds: float) -> None:
        found = self._open.pop(decision.id, None) or self._new(decision)
        if done is not decision.chosen:
            learned = found.touched(decision) & ~found.waiting(decision)
            found.executed, found.missing = np.flatnonzero(done), np.flatnonzero(done & ~learned)
            found.count = len(found.missing)
        elif found.missing is None and (isinstance(decision.id, str) or found.names is not None):
            # Decided again under its key, it may be decided otherwise.
            found.missing = np.flatnonzero(done)
        self.commits += 1
        self.seconds += seconds
        found.at = (self.commits, self.seconds)
        self._settle(decision.id, found)
        self._expire()

    def _expire(self) -> None:
        if self.expire_commits == inf and self.expire_seconds == inf:
            return
        for name, found in list(self._open.items()):
            if found.at is None:
                continue
            if (
                self.commits - found.at[0] < self.expire_commits
                and self.seconds - found.at[1] < self.expire_seconds
            ):
                break  # those that follow were committed later
            self.given_up += found.count
            self._close(name)

    def check_learn(
        self, decision: Decision, arms: Any, rewards: Any
    ) -> tuple[IntArray, FloatArray]:
        """Arms and rewards as arrays, or an error before anything has changed."""
        numbers = arm_numbers(decision.round, arms)
        values = reward_values(rewards, numbers)
        if len(values) == 0:  # nothing to say of a decision to take nothing, which closed at once
            return numbers, values
        found = self._find(decision) or self._new(decision)
        checks, done = guards(), locked(found.done(decision))
        learned = done & ~found.waiting(decision) if found.missing is not None else ~done & done
        if found.due is None:
            at, reason = checks.first_wrong(numbers, values, done, learned)
        else:  # one by one, as parts of an arm may come together
            at, reason = self._wrong_part(found.due, numbers, values, done, learned)
        if at >= 0:
            arm, n = int(numbers[at]), decision.round.n
            who = repr(decision.round.called(arm)) if 0 <= arm < n else str(arm)
            what = "executed" if found.at else "chosen, and nothing is committed yet"
            kind = RepeatedError if reason == checks.TWICE else ValueError
            raise kind(
                {
                    checks.NO_SUCH_ARM: f"arms[{at}] is {arm}; the round has arms 0 to {n - 1}",
                    checks.NOT_EXECUTED: f"arms[{at}] is {who}, which was not {what}",
                    checks.TWICE: f"arms[{at}] is {who}, whose reward is in already, or given up",
                    checks.NOT_FINITE: f"rewards[{at}] is {values[at]}; it must be a finite number",
                }[reason]
            )
        return numbers, values

    @staticmethod
    def _wrong_part(
        due: dict[int, int], arms: IntArray, values: FloatArray, done: BoolArray, learned: BoolArray
    ) -> tuple[int, int]:
        checks, left = guards(), dict(due)
        for k, arm in enumerate(arms.tolist()):
            one = slice(k, k + 1)
            at, reason = checks.first_wrong(arms[one], values[one], done, learned)
            left[arm] = left.get(arm, 1) - 1
            if at < 0 and left[arm] < 0:
                reason = checks.TWICE
            if reason != checks.FINE:
                return k, reason
        return -1, int(checks.FINE)

    def learn(self, decision: Decision, arms: IntArray) -> None:
        """Rewards of these arms came in, once for each time that an arm is named."""
        found = self._open.get(decision.id) or self._new(decision)
        if found.due is not None:
            complete = []
            for arm in arms.tolist():
                found.due[arm] = found.due.get(arm, 1) - 1
                complete += [arm] * (found.due[arm] == 0)
            arms = np.array(complete, dtype=np.int64)
        self._strike(decision, found, arms)

    def _strike(self, decision: Decision, found: _Open, arms: IntArray) -> None:
        """No more is to come for these arms."""
        found.count -= len(arms)
        if found.count or found.at is None:
            waiting = found.waiting(decision).copy()
            waiting[arms] = False
            found.missing = np.flatnonzero(waiting)
            for arm in arms.tolist():
                (found.due or {}).pop(arm, None)
        self._settle(decision.id, found)

    def check_abandon(self, decision: Decision, arms: Any) -> IntArray:
        """The arms whose rewards are given up, or an error before anything has changed."""
        found = self._find(decision) or self._new(decision)
        waiting = found.waiting(decision)
        if arms is None:
            return np.flatnonzero(waiting)
        numbers = arm_numbers(decision.round, arms)
        for at, arm in enumerate(numbers.tolist()):
            if not 0 <= arm < found.n:
                raise ValueError(f"arms[{at}] is {arm}; the round has arms 0 to {found.n - 1}")
            if not waiting[arm]:
                who = decision.round.called(arm)
                raise ValueError(f"arms[{at}] is {who!r}, of which no reward is to come")
        return np.unique(numbers)

    def abandon(self, decision: Decision, arms: IntArray) -> None:
        found = self._open.get(decision.id) or self._new(decision)
        self.given_up += len(arms)
        self._strike(decision, found, arms)

    def check_correct(
        self, decision: Decision, arms: IntArray, rewards: FloatArray, previous: FloatArray | None
    ) -> None:
        """An error if one of these arms cannot have a reward, or one of these is no number."""
        found = self._open.get(decision.id)
        if found is not None:
            found = self._find(decision)
        for at, arm in enumerate(arms.tolist()):
            if not 0 <= arm < decision.round.n:
                raise ValueError(
                    f"arms[{at}] is {arm}; the round has arms 0 to {decision.round.n - 1}"
                )
            if found is not None and not found.touched(decision)[arm]:
                who = decision.round.called(arm)
                raise ValueError(f"arms[{at}] is {who!r}, whose reward is not in yet")
            for name, values in (("rewards", rewards), ("previous", previous)):
                if values is not None and not np.isfinite(values[at]):
                    raise ValueError(f"{name}[{at}] is {values[at]}; it must be a finite number")

    def pending(self) -> Iterator[dict[str, Any]]:
        """A flat row for each decision of which something is missing, the oldest commit first."""
        for name, found in self._open.items():
            committed = found.at is not None
            since = (self.commits, self.seconds) if found.at is None else found.at
            arms: list[Any] | None = None if found.missing is None else found.missing.tolist()
            if arms is not None and found.names is not None:
                arms = [found.names[arm] for arm in arms]
            yield {
                "decision": name,
                "committed": committed,
                "commits_ago": self.commits - since[0],
                "seconds_ago": self.seconds - since[1],
                "missing": found.count,
                "arms": arms,
            }

    def _settle(self, name: int | str, found: _Open) -> None:
        if found.count or found.at is None:
            self._open[name] = found
        else:
            self._close(name)

    def _close(self, name: int | str) -> None:
        self._open.pop(name, None)
        if isinstance(name, str):
            self._closed.add(name)

    def state(self) -> dict[str, Any]:
        waiting = [
            {
                "id": name,
                "mark": list(found.mark),
                "n": found.n,
                "count": found.count,
                "executed": None if found.executed is None else found.executed.tolist(),
                "missing": None if found.missing is None else found.missing.tolist(),
                "due": None if found.due is None else list(found.due.items()),
                "at": None if found.at is None else list(found.at),
                **({} if found.names is None else {"names": list(found.names)}),
            }
            for name, found in self._open.items()
        ]
        limits = (self.expire_commits, self.expire_seconds)
        return {
            "commits": self.commits,
            "seconds": self.seconds,
            "expiry": [None if limit == inf else limit for limit in limits],
            "given_up": self.given_up,
            "open": waiting,
            "closed": sorted(self._closed),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.commits = int(entry(state, "commits"))
        self.seconds, self.given_up = entry(state, "seconds"), entry(state, "given_up")
        expiry = [inf if x is None else x for x in entry(state, "expiry")]
        self.expire_commits, self.expire_seconds = expiry
        self._closed = set(entry(state, "closed"))
        for saved in entry(state, "open"):
            row = saved if isinstance(saved, Mapping) else self._from_masks(saved)
            executed, missing = (
                None if entry(row, name) is None else np.array(row[name], dtype=np.int64)
                for name in ("executed", "missing")
            )
            due, at = entry(row, "due"), entry(row, "at")
            self._open[entry(row, "id")] = _Open(
                tuple(entry(row, "mark")),
                entry(row, "n"),
                entry(row, "count"),
                executed,
                missing,
                None if due is None else {int(arm): int(k) for arm, k in due},
                None if at is None else (int(at[0]), float(at[1])),
                tuple(row["names"]) if "names" in row else None,
            )

    def _from_masks(self, saved: list[Any]) -> dict[str, Any]:
        """An open decision as states of 0.1.0 have it."""
        name, mark, committed, done, learned, *more = saved
        parts = more[0] if more else None
        waiting = np.array(done, dtype=np.bool_)
        if learned is not None:
            waiting &= ~np.array(learned, dtype=np.bool_)
        missing = np.flatnonzero(waiting).tolist()
        return {
            "id": name,
            "mark": mark,
            "n": len(done),
            "count": len(missing),
            "executed": np.flatnonzero(done).tolist(),
            "missing": missing,
            "due": None if parts is None else [(arm, k) for arm, k in enumerate(parts) if k > 0],
            "at": (self.commits, self.seconds) if committed else None,
        }
