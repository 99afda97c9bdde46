"""Scores come late: a processing server as a queue, with outages and losses."""

import heapq
from dataclasses import dataclass
from math import exp
from typing import Literal

import numpy as np

from coaf.bandit.arrays import number
from coaf.cryoem.grid import Shot
from coaf.cryoem.timing import HOUR

Delay = Literal["none", "measured"] | float

WORKERS = 12  # enough for 540 micrographs an hour, as facilities size theirs


@dataclass(frozen=True, slots=True)
class Queue:
    """The numbers of a measured queue.

    Attributes
    ----------
    median, spread
        Seconds to process a shot, and the standard deviation of the logarithm.
    stray
        Share of shots lost one by one.
    outage_every, outage_hours
        Mean hours from one outage to the next, and how long it is: nothing is processed until it
        ends.
    lapse_every, lapse_hours
        The same of lapses: what is exposed in one is never processed. On the recorded grid all 470
        lost scores were one run.
    """

    median: float = 45.0
    spread: float = 0.45
    stray: float = 0.02
    outage_every: float = 60.0
    outage_hours: float = 3.0
    lapse_every: float = 15.0
    lapse_hours: float = 2.0


@dataclass(frozen=True, slots=True, order=True)
class Done:
    """A shot whose score is there."""

    arrived_at: float
    order: int
    shot: Shot
    exposed_at: float


class Feedback:
    """When the scores of shots arrive, if they do.

    Parameters
    ----------
    delay
        "none": at once. A number: after so many seconds. "measured": as on a real microscope, a
        queue with a median of 45 s, 90 % within about 80 s, outages of hours, and about 12 %
        that never come, mostly in runs.
    seed
        Of the measured queue.
    queue
        Its numbers.

    Examples
    --------
    >>> queue = Feedback(45.0)
    >>> queue.submit(Shot("a"), 10.0)
    >>> queue.ready(50.0), [done.arrived_at for done in queue.ready(55.0)]
    ([], [55.0])
    """

    def __init__(self, delay: Delay = "none", *, seed: int = 0, queue: Queue | None = None) -> None:
        if isinstance(delay, str):
            if delay not in ("none", "measured"):
                raise ValueError(f"delay is {delay!r}; give 'none', 'measured' or seconds")
        else:
            delay = number("delay", delay, low=0.0)
        self.delay: Delay = delay
        self.seed = int(seed)
        self.queue = queue or Queue()
        self.lost = 0
        self._waiting: list[Done] = []
        self._count = 0
        self._last = 0.0
        self._rng = np.random.default_rng([self.seed, 7])
        self._free = [0.0] * WORKERS
        self._outages = _Episodes(
            np.random.default_rng([self.seed, 8]), self.queue.outage_every, self.queue.outage_hours
        )
        self._lapses = _Episodes(
            np.random.default_rng([self.seed, 9]), self.queue.lapse_every, self.queue.lapse_hours
        )

    def submit(self, shot: Shot, time: float) -> None:
        """A shot was taken at `time`. Shots are submitted in the order they were taken."""
        time = number("time", time, low=0.0)
        if time < self._last:
            raise ValueError(f"shot {shot} is of {time:g} s, but one of {self._last:g} s was first")
        self._last = time
        arrives = self._arrival(time)
        self._count += 1
        if arrives is None:
            self.lost += 1
        else:
            heapq.heappush(self._waiting, Done(arrives, self._count, shot, time))

    def ready(self, time: float) -> list[Done]:
        """What arrived by `time` and was not asked for before, oldest first."""
        done = []
        while self._waiting and self._waiting[0].arrived_at <= time:
            done.append(heapq.heappop(self._waiting))
        return done

    @property
    def submitted(self) -> int:
        """How many shots there were."""
        return self._count

    @property
    def waiting(self) -> int:
        """How many are still to come."""
        return len(self._waiting)

    def _arrival(self, time: float) -> float | None:
        if self.delay == "none":
            return time
        if self.delay != "measured":
            return time + float(self.delay)
        # Both are drawn for every shot, so that a lapse leaves the rest of the queue as it was.
        spread = self.queue.spread * float(self._rng.standard_normal())
        service = self.queue.median * exp(spread)
        stray = float(self._rng.random()) < self.queue.stray
        if stray or self._lapses.at(time) is not None:
            return None
        begins = max(time, heapq.heappop(self._free))
        ends = self._outages.at(begins)
        finished = (begins if ends is None else ends) + service
        heapq.heappush(self._free, finished)
        return finished


class _Episodes:
    """Stretches of time, drawn as far ahead as was asked."""

    def __init__(self, rng: np.random.Generator, between: float, long: float) -> None:
        self._rng, self._between, self._long = rng, between * HOUR, long * HOUR
        self._spans: list[tuple[float, float]] = []
        self._drawn = 0.0

    def at(self, time: float) -> float | None:
        """When the stretch around `time` ends; None if there is none."""
        while self._drawn <= time:
            begin = self._drawn + self._rng.exponential(self._between)
            end = begin + self._rng.exponential(self._long)
            self._spans.append((begin, end))
            self._drawn = end
        for begin, end in reversed(self._spans):
            if begin <= time < end:
                return end
            if end <= time:
                return None
        return None
