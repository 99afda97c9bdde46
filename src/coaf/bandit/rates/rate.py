"""Rates: what a second is worth, learned from the rounds that were committed.

A rate moves once for each visit: an entry round and its follow-ups. `enter` begins a visit, which
makes the one before final; `update` says that a follow-up added to it, and takes the step again
from where the visit began.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol, Self

from coaf.bandit.arrays import BoolArray, FloatArray, number
from coaf.bandit.groups import Groups
from coaf.bandit.policies.faults import AssumptionWarning
from coaf.bandit.problem import Decision, Round
from coaf.bandit.shown import Shown
from coaf.bandit.state import entry

_FAR = 1e300  # longer than any round
MANY = 20  # visits executed otherwise, which an operator's corrections seldom are at first
SAID = -1  # in place of a count, once the user was told

# Features and groups -> the estimates that choose, as of today.
Scoring = Callable[[FloatArray, Groups | None], FloatArray]


def robbins_monro(rate: float, gap: float, floor: float, xi: float, bound: float) -> float:
    """Γ ← Π[Γ − g / (ξ γ)] (`alg: COAF`, line 3). The compiled replicates compile this too."""
    return min(max(rate - gap / (xi * floor), -bound), bound)


@dataclass(slots=True)
class Visit:
    """What one entry round and its follow-ups add up to so far.

    `planned_*` counts what was executed of all decisions but the last, and the last decision's own
    choice; `spent_*` counts what was executed, in measured seconds, and `overrun` by how much that
    was longer than modelled. Rewards are the estimates that were used when each arm was chosen.
    """

    id: int | str
    rate: float
    planned_seconds: float
    planned_reward: float
    spent_seconds: float
    spent_reward: float
    # What to add once the last decision turns out not to be the last: executed less chosen.
    late_seconds: float
    late_reward: float
    # Decided while nothing was known of the size of rewards: its estimates are none.
    blind: bool = False
    overrun: float = 0.0
    otherwise: bool = False  # something else was executed than chosen

    @classmethod
    def enter(cls, decision: Decision, executed: BoolArray, seconds: float | None) -> Self:
        """The visit that an entry decision begins."""
        modelled, taken = _executed(decision, executed, seconds)
        planned = decision.instead or decision  # chance is no sample of the Bellman equation
        return cls(
            decision.id,
            decision.rate,
            planned.seconds,
            planned.reward,
            modelled if seconds is None else seconds,
            taken,
            modelled - planned.seconds,
            taken - planned.reward,
            decision.blind,
            0.0 if seconds is None else seconds - modelled,
            executed is not decision.chosen,
        )

    def add(self, decision: Decision, executed: BoolArray, seconds: float | None) -> None:
        """Count a follow-up."""
        modelled, taken = _executed(decision, executed, seconds)
        planned = decision.instead or decision
        self.planned_seconds += self.late_seconds + planned.seconds
        self.planned_reward += self.late_reward + planned.reward
        self.spent_seconds += modelled if seconds is None else seconds
        self.spent_reward += taken
        self.otherwise |= executed is not decision.chosen
        self.overrun += 0.0 if seconds is None else seconds - modelled
        self.late_seconds, self.late_reward = modelled - planned.seconds, taken - planned.reward

    @property
    def gap(self) -> float:
        """g(Γ_j, A_j): the sample of the Bellman equation that this visit is."""
        return self.planned_seconds * self.rate - self.planned_reward

    @property
    def own_seconds(self) -> float:
        """What the policy's own choice would have taken, if as much longer than modelled."""
        return self.planned_seconds + self.overrun


def _executed(
    decision: Decision, executed: BoolArray, seconds: float | None
) -> tuple[float, float]:
    """The modelled seconds and the estimated reward of what was executed.

    A subset that the latency does not know (a table may list only some) takes as long as measured.
    """
    if executed is decision.chosen:
        return decision.seconds, decision.reward
    reward = float(decision.estimates[executed].sum())
    try:
        return float(decision.round.latency.seconds(executed)), reward
    except ValueError:
        if seconds is None:
            raise
        return seconds, reward


class Rate(Protocol):
    """What a second is worth, as learned from visits."""

    def value(self, score: Scoring) -> float:
        """The rate for the next entry round; `score` gives estimates as of today."""

    def enter(self, visit: Visit, round: Round) -> None:
        """A visit begins with this entry round; the one before is final.

        What a blind visit seemed to bring is no number, and must not count.
        """

    def update(self, visit: Visit) -> None:
        """A follow-up added to the visit that was entered last."""

    def state(self) -> dict[str, Any]:
        """Everything, as JSON."""


class Fixed(Shown):
    """A rate that is known.

    Parameters
    ----------
    rate
        What a second is worth.
    """

    def __init__(self, rate: float) -> None:
        self.rate = number("rate", rate)

    def value(self, score: Scoring) -> float:
        return self.rate

    def enter(self, visit: Visit, round: Round) -> None:
        pass

    def update(self, visit: Visit) -> None:
        pass

    def state(self) -> dict[str, Any]:
        return {"rate": "fixed", "value": self.rate}

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> "Fixed":
        return cls(entry(state, "value"))


class RobbinsMonro(Shown):
    """The paper's stochastic approximation (`alg: COAF`, line 3).

    γ_j = γ_{j−1} + min_A l_j(A), then Γ ← Π[Γ − g(Γ, A_j) / (ξ γ_j)], where Π projects on
    ±n_max·mean_bound/l_min, if there is a `mean_bound`. Blind visits take no step.

    Parameters
    ----------
    xi
        ξ in (0, 1]; the theory wants 1 for the oracle and less than 1 when rewards are learned.
    initial
        Γ₁; 0 unless given.
    n_max, l_min
        The most arms a round has, and the least time it takes. Where not given, the most and the
        least seen so far in entry rounds, the current one included.
    mean_bound
        The largest mean reward there is; without it nothing is projected.
    """

    def __init__(
        self,
        *,
        xi: float = 0.5,
        initial: float = 0.0,
        n_max: int | None = None,
        l_min: float | None = None,
        mean_bound: float | None = None,
    ) -> None:
        self.xi = number("xi", xi, above=0.0)
        if self.xi > 1.0:
            raise ValueError(f"xi is {self.xi}; it must be at most 1")
        self.n_max = None if n_max is None else number("n_max", n_max, low=1)
        self.l_min = None if l_min is None else number("l_min", l_min, above=0.0)
        self.mean_bound = (
            None if mean_bound is None else number("mean_bound", mean_bound, above=0.0)
        )
        self.rate = self._entered_at = number("initial", initial)
        self.elapsed_floor = 0.0
        self.most, self.least = self.n_max or 1.0, self.l_min or _FAR

    def value(self, score: Scoring) -> float:
        return self.rate

    def enter(self, visit: Visit, round: Round) -> None:
        if visit.blind:
            return
        least, n = round.floor, round.n
        self.elapsed_floor += least
        if self.n_max is None and n > self.most:
            self.most = float(n)
        if self.l_min is None and least < self.least:
            self.least = least
        self._entered_at = self.rate
        self.update(visit)

    def update(self, visit: Visit) -> None:
        if visit.blind:
            return
        bound = inf if self.mean_bound is None else self.most * self.mean_bound / self.least
        self.rate = robbins_monro(self._entered_at, visit.gap, self.elapsed_floor, self.xi, bound)

    def state(self) -> dict[str, Any]:
        return {
            "rate": "robbins-monro",
            "xi": self.xi,
            "n_max": self.n_max,
            "l_min": self.l_min,
            "mean_bound": self.mean_bound,
            "value": self.rate,
            "entered_at": self._entered_at,
            "elapsed_floor": self.elapsed_floor,
            "most": self.most,
            "least": self.least,
        }

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> "RobbinsMonro":
        rate = cls(
            xi=entry(state, "xi"),
            n_max=entry(state, "n_max"),
            l_min=entry(state, "l_min"),
            mean_bound=entry(state, "mean_bound"),
            initial=entry(state, "value"),
        )
        rate._entered_at = entry(state, "entered_at")
        rate.elapsed_floor = entry(state, "elapsed_floor")
        rate.most, rate.least = entry(state, "most"), entry(state, "least")
        return rate


class Renewal(Shown):
    """The running ratio of estimated reward to time spent.

    It is stochastic approximation with gain 1/Σ l_j(A_j): no step size to choose and no projection.
    Blind visits do not count. Where something else is executed than chosen, that counts; if it is
    so in most visits, as in a log of somebody else's choices, the ratio is what a second brings
    them, and an `AssumptionWarning` says so once. `Restarting` counts its own choices.

    Parameters
    ----------
    initial
        The rate before any time was spent; 0 unless given.
    """

    def __init__(self, *, initial: float = 0.0) -> None:
        self.initial = number("initial", initial)
        self.reward = self._reward_before = 0.0
        self.seconds = self._seconds_before = 0.0
        self._visits = self._otherwise = 0

    def value(self, score: Scoring) -> float:
        return self.reward / self.seconds if self.seconds > 0.0 else self.initial

    def enter(self, visit: Visit, round: Round) -> None:
        self._reward_before, self._seconds_before = self.reward, self.seconds
        self.update(visit)
        if self._otherwise != SAID:
            self._visits += 1
            self._otherwise += visit.otherwise

    def update(self, visit: Visit) -> None:
        if visit.blind:
            return
        self.reward = self._reward_before + visit.spent_reward
        self.seconds = self._seconds_before + visit.spent_seconds

    def warn_of_logs(self) -> None:
        """Say once that this is somebody else's price."""
        if self._otherwise >= MANY and 2 * self._otherwise > self._visits:
            found = f"{self._otherwise} of {self._visits}"
            self._otherwise = SAID
            warnings.warn(
                f"in {found} visits something else was executed than chosen, and Renewal learns "
                "what a second brings to whoever chose that; for logs use Restarting or MemoryRoot",
                AssumptionWarning,
                stacklevel=3,
            )

    def state(self) -> dict[str, Any]:
        return {
            "rate": "renewal",
            "initial": self.initial,
            "reward": self.reward,
            "seconds": self.seconds,
            "reward_before": self._reward_before,
            "seconds_before": self._seconds_before,
            "visits": [self._visits, self._otherwise],
        }

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> "Renewal":
        rate = cls(initial=entry(state, "initial"))
        rate.reward, rate.seconds = entry(state, "reward"), entry(state, "seconds")
        rate._reward_before = entry(state, "reward_before")
        rate._seconds_before = entry(state, "seconds_before")
        rate._visits, rate._otherwise = entry(state, "visits")
        return rate
