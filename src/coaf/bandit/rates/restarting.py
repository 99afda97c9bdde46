"""The running ratio that begins anew when times or rewards have changed."""

from collections.abc import Mapping
from math import sqrt
from typing import Any, NamedTuple

from coaf.bandit.arrays import number
from coaf.bandit.problem import Round
from coaf.bandit.rates.rate import Scoring, Visit
from coaf.bandit.shown import Shown
from coaf.bandit.state import entry

SLACK = 0.5  # standard deviations by which gaps may be off at no charge
CHANGE = 12.0  # standard deviations, summed up beyond the slack, that are no chance
WARY = 2.0  # what the alarm is raised by when it has rung
CALM = 0.999  # what is left of that a visit later
CLIP = 3.0  # standard deviations that a single visit counts for at most


class Sums(NamedTuple):
    """What visits add up to since the last restart, and in the two tests for the next."""

    reward: float = 0.0
    seconds: float = 0.0
    high: float = 0.0  # how far gaps have been above 0: the rate is too high
    high_reward: float = 0.0
    high_seconds: float = 0.0
    low: float = 0.0
    low_reward: float = 0.0
    low_seconds: float = 0.0
    squares: float = 0.0  # of gaps
    gaps: float = 0.0
    alarm: float = CHANGE  # what a sum must exceed for the next restart


Eleven = tuple[float, float, float, float, float, float, float, float, float, float, float]


def one_visit_later(sums: Eleven, reward: float, seconds: float) -> Eleven:
    """The sums with a visit more. The compiled replicates compile this too."""
    R, T, high, high_R, high_T, low, low_R, low_T, squares, gaps, alarm = sums
    alarm = CHANGE + CALM * (alarm - CHANGE)
    if T > 0.0:
        gap = seconds * (R / T) - reward
        if squares > 0.0:
            z = min(max(gap / sqrt(squares / gaps), -CLIP), CLIP)
            high, high_R, high_T = high + (z - SLACK), high_R + reward, high_T + seconds
            low, low_R, low_T = low - (z + SLACK), low_R + reward, low_T + seconds
            if high <= 0.0:
                high, high_R, high_T = 0.0, 0.0, 0.0
            if low <= 0.0:
                low, low_R, low_T = 0.0, 0.0, 0.0
            if high > alarm:
                return high_R, high_T, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, WARY * alarm
            if low > alarm:
                return low_R, low_T, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, WARY * alarm
        squares, gaps = squares + gap * gap, gaps + 1.0
    return R + reward, T + seconds, high, high_R, high_T, low, low_R, low_T, squares, gaps, alarm


class Restarting(Shown):
    """The running ratio of estimated reward to time, since conditions last changed.

    At the right rate the gaps of visits are 0 on average. Page's test adds up by how much they are
    above 0, less half a standard deviation each, and likewise below; when a sum has grown beyond
    12, which chance hardly ever does, all before it began to grow is forgotten. Gaps rest on
    estimates and on latencies, and these are known beforehand: a change of times shows within a
    few rounds, however late rewards come. Blind visits do not count.

    Where something else was executed than chosen, it is still the choice that counts, in seconds as
    much longer as things took longer than modelled: a second is worth what the policy can make of
    it, not what an operator, or the writer of a log, made of it.

    Where rounds that follow each other are alike, good ones come in runs and so do poor ones, which
    looks like a change though it is none. So each restart doubles what the next one takes, and that
    fades over a thousand visits: a change in a while is seen at once, runs soon ring no more.

    Parameters
    ----------
    initial
        The rate before any time was spent; 0 unless given.
    """

    def __init__(self, *, initial: float = 0.0) -> None:
        self.initial = number("initial", initial)
        self._before = self._sums = Sums()

    @property
    def reward(self) -> float:
        """The estimated reward since the last restart."""
        return self._sums.reward

    @property
    def seconds(self) -> float:
        """The time spent since the last restart."""
        return self._sums.seconds

    def value(self, score: Scoring) -> float:
        return self.reward / self.seconds if self.seconds > 0.0 else self.initial

    def enter(self, visit: Visit, round: Round) -> None:
        self._before = self._sums
        self.update(visit)

    def update(self, visit: Visit) -> None:
        if not visit.blind:
            later = one_visit_later(self._before, visit.planned_reward, visit.own_seconds)
            self._sums = Sums(*later)

    def state(self) -> dict[str, Any]:
        return {
            "rate": "restarting",
            "initial": self.initial,
            "sums": list(self._sums),
            "before": list(self._before),
        }

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> "Restarting":
        rate = cls(initial=entry(state, "initial"))
        rate._sums, rate._before = Sums(*entry(state, "sums")), Sums(*entry(state, "before"))
        return rate
