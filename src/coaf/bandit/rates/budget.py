"""The rate when time or rounds run out: the price at which the time left is just used up."""

from collections import deque
from collections.abc import Iterable, Mapping
from math import inf, isinf
from typing import Any

from coaf.bandit.arrays import number
from coaf.bandit.problem import Round
from coaf.bandit.rates.memory_root import load_round, save_round, score_all
from coaf.bandit.rates.price import price, worth_of
from coaf.bandit.rates.rate import Scoring, Visit
from coaf.bandit.shown import Shown
from coaf.bandit.state import entry


class Budget(Shown):
    """What a second is worth when time, or what there is to do, runs out.

    Rounds not yet opened are taken to be like the remembered ones, scored as of today, and need
    not be opened. Nothing counts that cannot finish in the time left. While rounds abound this is
    `MemoryRoot`; when they run out the price falls, to 0 when all that is left can be done.

    It keeps count by itself: a committed visit spends its seconds, and a new round is one less.
    `remain` corrects that by the clock, and tells it which rounds are open.

    Parameters
    ----------
    seconds
        The time there is.
    rounds
        How many rounds there are to open; without end if not given.
    size
        How many entry rounds are remembered.

    Examples
    --------
    >>> from coaf.bandit.latency import Setup
    >>> patch = Round([[0.2], [0.1]], Setup(base=12.0, setup=52.0, each=6.0))
    >>> rate = Budget(600.0, rounds=3)
    >>> rate.remain(seconds=100.0, rounds=0, here=patch)
    >>> rate.value(lambda features, groups: features[:, 0])
    0.0
    """

    def __init__(self, seconds: float, rounds: float | None = None, *, size: int = 100) -> None:
        self._before, self._spent = number("seconds", seconds, low=0.0), 0.0
        self.rounds = inf if rounds is None else number("rounds", rounds, low=0.0)
        self.size = int(number("size", size, low=1))
        self.remembered: deque[Round] = deque(maxlen=self.size)
        self.again: list[Round] = []
        self.here: Round | None = None

    @property
    def seconds(self) -> float:
        """The time left."""
        return max(self._before - self._spent, 0.0)

    def remain(
        self,
        *,
        seconds: float | None = None,
        rounds: float | None = None,
        again: Iterable[Round] = (),
        here: Round | None = None,
    ) -> None:
        """Say how things stand before a decision.

        Parameters
        ----------
        seconds
            The time left by the clock; if not given, what was committed is subtracted.
        rounds
            How many rounds are not opened yet, not counting `here`; if not given, counted.
        again
            Rounds that were left, in whole or in part, and can be returned to, with the latency
            of returning. Committing one of them opens nothing new.
        here
            The round that is decided next, if it is new: its own arms count, not a typical one's.
        """
        if seconds is not None:
            self._before = number("seconds", seconds, low=0.0) + self._spent
        if rounds is not None:
            self.rounds = inf if rounds == inf else number("rounds", rounds, low=0.0)
        self.again, self.here = list(again), here

    def value(self, score: Scoring) -> float:
        left = self.seconds
        known = [r for r in (*self.again, self.here) if r is not None and r.floor <= left]
        # The round here was drawn like any other: it is one more example of a typical one.
        seen = [*self.remembered] if self.here is None else [*self.remembered, self.here]
        typical = [r for r in seen if r.floor <= left]
        if not known and not typical:
            # Nothing can finish any more. Who goes on all the same is best held to the usual price.
            typical, left = list(self.remembered), inf
        if not known and not typical:
            return 0.0
        estimates = score_all([*known, *typical], score)
        cut = sum(r.n for r in known)
        sunk = 0.0 if self.here is None or self.here.floor > left else self.here.floor
        found = price(
            seconds=left - sunk if left < inf else 0.0,
            open=worth_of(known, estimates[:cut], left, opened=self.here) if known else None,
            typical=worth_of(typical, estimates[cut:], left) if typical else None,
            rounds=self.rounds if left < inf else inf,
        )
        # What only just pays is taken: the time has no better use.
        return found * (1.0 - 1e-9)

    def enter(self, visit: Visit, round: Round) -> None:
        self._before, self._spent = self.seconds, visit.spent_seconds
        if any(_same(round, r) for r in self.again):
            self.again = [r for r in self.again if not _same(round, r)]
            return
        if self.here is not None and _same(round, self.here):
            self.here = None
        else:
            self.rounds = max(self.rounds - 1.0, 0.0)
        self.remembered.append(round)

    def update(self, visit: Visit) -> None:
        self._spent = visit.spent_seconds

    def state(self) -> dict[str, Any]:
        return {
            "rate": "budget",
            "before": self._before,
            "spent": self._spent,
            "rounds": None if isinf(self.rounds) else self.rounds,
            "size": self.size,
            "remembered": [save_round(r) for r in self.remembered],
            "again": [save_round(r) for r in self.again],
            "here": None if self.here is None else save_round(self.here),
        }

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> "Budget":
        rate = cls(entry(state, "before"), entry(state, "rounds"), size=entry(state, "size"))
        rate._spent = entry(state, "spent")
        rate.remembered.extend(load_round(r) for r in entry(state, "remembered"))
        rate.again = [load_round(r) for r in entry(state, "again")]
        here = entry(state, "here")
        rate.here = None if here is None else load_round(here)
        return rate


def _same(one: Round, other: Round) -> bool:
    """After a restart a round is another object, so a key says more."""
    return one is other or (one.key is not None and one.key == other.key)
