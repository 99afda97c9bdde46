"""What happened in a session: flat rows of events, and the tallies made of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict, cast

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.cryoem.microscope import Survey
from coaf.cryoem.pilots.knowledge import Knowledge
from coaf.cryoem.session.engine import Engine
from coaf.cryoem.session.guard import Alarm
from coaf.cryoem.timing import HOUR


class Row(TypedDict):
    """One event. What does not apply is None.

    Events are "open" (a square), "pass" (the rest of a square), "skip" (a patch, not entered),
    "expose" (a hole), "leave" (a patch, with holes left behind), "failed" (something that did not
    work), "score", "refused" (a score that cannot be one), "held back" (a score taken during a
    fault, not learned), "suspicion", "alarm", "all clear", "call" (of a person, as nothing works),
    "upkeep" and "end". `clock` is when it was over; `seconds` is how long it took.
    """

    clock: float
    event: str
    square: str | None
    patch: str | None
    hole: str | None
    estimate: float | None
    rate: float | None
    why: str
    propensity: float | None
    reward: float | None
    seconds: float | None


@dataclass(eq=False)
class Session:
    """A session, from the first square to the end of its time.

    Attributes
    ----------
    policy, reward
        What decided, and what it was after.
    hours
        The time it had.
    rows
        All that happened, in order.
    surveys
        What each opened square showed, by its name.
    estimates
        By hole: what was expected of it when its patch was last decided about.
    shots
        By hole that was exposed: how many micrographs.
    truth
        By hole that was exposed: what it was worth, scored or not. Only a simulator knows.
    alarms
        What the guard raised.
    engine
        What it was told, and would do next; None where it was not kept.
    others
        Plays the other pilots on the same grid; None where there is no grid to play again.
    """

    policy: str
    reward: str
    hours: float
    rows: list[Row] = field(default_factory=list)
    surveys: dict[str, Survey] = field(default_factory=dict)
    estimates: dict[str, float] = field(default_factory=dict)
    shots: dict[str, int] = field(default_factory=dict)
    truth: dict[str, float] | None = None
    alarms: list[Alarm] = field(default_factory=list)
    engine: Engine | None = field(default=None, repr=False)
    others: "Callable[[], Sequence[Session]] | None" = None

    @property
    def ended(self) -> float:
        """Seconds that were used, at most those there were."""
        last = max((row["clock"] for row in self.rows if row["event"] in _WORK), default=0.0)
        return min(last, self.hours * HOUR)

    def exposures(self) -> list[Row]:
        """The exposures that were over in time."""
        return [r for r in self._events("expose") if r["clock"] <= self.hours * HOUR]

    def scores(self) -> dict[str, float]:
        """By hole: the sum of the rewards that arrived of its shots."""
        got: dict[str, float] = {}
        for row in self._events("score"):
            if row["reward"] is not None and row["hole"] is not None:
                got[row["hole"]] = got.get(row["hole"], 0.0) + row["reward"]
        return got

    def worth(self) -> dict[str, float]:
        """By hole: the truth where it is known, else what arrived."""
        return self.scores() if self.truth is None else self.truth

    def summary(self) -> dict[str, Any]:
        """The tally, as JSON.

        `good` is the sum of the rewards that arrived, `unscored` the micrographs of which nothing
        did, `true_good` what all of them were worth where that is known. `good_per_hour` is of the
        truth where it is known.
        """
        taken = self.exposures()
        names = [str(row["hole"]) for row in taken]
        scores, worth = self.scores(), self.worth()
        counts = set(names)
        scored = sum(row["hole"] in counts for row in self._events("score"))
        hours = self.ended / HOUR
        counted = sum(worth.get(name, 0.0) for name in names)
        patches = {row["patch"] for row in taken}
        return {
            "policy": self.policy,
            "reward": self.reward,
            "good": sum(scores.get(name, 0.0) for name in names),
            "true_good": None if self.truth is None else counted,
            "exposed": len(taken),
            "micrographs": sum(self.shots[name] for name in names),
            "unscored": sum(self.shots[name] for name in names) - scored,
            "hours": hours,
            "good_per_hour": counted / hours if hours else 0.0,
            "squares": len(self.surveys),
            "patches_entered": len(patches),
            "patches_skipped": len({r["patch"] for r in self._events("skip")} - patches),
            "explored": sum((row["propensity"] or 1.0) < 1.0 for row in taken),
            "held_back": len(self._events("held back")),
            "refused": len(self._events("refused")),
            "failed": len(self._events("failed")),
            "alarms": len(self.alarms) + len(self._events("call")),
        }

    @property
    def knowledge(self) -> Knowledge | None:
        """What it taught that may hold on another grid; None if nothing."""
        return None if self.engine is None else self.engine.pilot.knowledge()

    def table(self) -> list[dict[str, Any]]:
        """Beside the other pilots on the same grid, counted by the truth.

        Raises
        ------
        ValueError
            If there is no grid to play again: a real microscope collects once.
        """
        if self.others is None:
            raise ValueError("only a session on a simulator can be played again by other pilots")
        return [session.line() for session in (self, *self.others())]

    def line(self) -> dict[str, Any]:
        """Its row in a table of pilots."""
        row = self.summary()
        good = row["good"] if row["true_good"] is None else row["true_good"]
        return {
            "policy": self.policy,
            "good": good,
            "good_per_hour": row["good_per_hour"],
            "exposed": row["exposed"],
            "good_share": good / row["micrographs"] if row["micrographs"] else 0.0,
            "hours": row["hours"],
            "squares": row["squares"],
            "patches_entered": row["patches_entered"],
            "patches_skipped": row["patches_skipped"],
            "unscored": row["unscored"],
        }

    def curve(self) -> tuple[FloatArray, FloatArray]:
        """Hours, and what had been collected by then: one point per exposure, and the ends."""
        worth, taken = self.worth(), self.exposures()
        gained = np.cumsum([worth.get(str(row["hole"]), 0.0) for row in taken])
        times = np.array([row["clock"] for row in taken]) / HOUR
        last = gained[-1:] if len(gained) else np.zeros(1)
        hours = np.concatenate([[0.0], times, [self.ended / HOUR]])
        return hours, np.concatenate([[0.0], gained, last])

    def plain(self) -> dict[str, Any]:
        """Everything but images, as JSON."""
        return {
            "summary": self.summary(),
            "rows": [dict(row) for row in self.rows],
            "alarms": [alarm.message for alarm in self.alarms],
        }

    def _events(self, event: str) -> list[Row]:
        return [row for row in self.rows if row["event"] == event]


_WORK = frozenset({"open", "expose", "skip", "leave", "pass"})


def row_of(clock: float, event: str, more: Mapping[str, Any]) -> Row:
    """A row with what is known; numbers that are none become None, as JSON has no nan."""
    held: dict[str, Any] = dict.fromkeys(Row.__annotations__)
    held |= {"clock": clock, "event": event, "why": ""} | dict(more)
    for name, value in held.items():
        if isinstance(value, float) and not np.isfinite(value):
            held[name] = None
    return cast(Row, held)
