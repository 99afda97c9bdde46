"""How a policy is doing: what it earned, what it reckons with, and what is still to come."""

from collections import deque
from dataclasses import dataclass
from math import inf, nan, sqrt

import numpy as np

from coaf.bandit.arrays import FloatArray, IntArray
from coaf.bandit.problem import Decision

ROUNDS, REWARDS = 64, 512  # that are remembered
_AT = 1.0 - 1e-9


class Recent:
    """The last decisions committed, and the last rewards beside what was expected of them.

    For the report alone: it decides nothing, and is no part of a state.
    """

    def __init__(self) -> None:
        self.decisions: deque[Decision] = deque(maxlen=ROUNDS)
        self.rewards: deque[tuple[float, float]] = deque(maxlen=REWARDS)

    def learned(self, decision: Decision, arms: IntArray, rewards: FloatArray) -> None:
        if not decision.blind:  # its estimates have no unit
            expected, parts = decision.estimates[arms], decision.round.parts
            if parts is not None:
                expected = expected / parts[arms]
            self.rewards.extend(zip(expected.tolist(), rewards.tolist(), strict=True))

    def calibration(self) -> "tuple[Bin, ...]":
        """The rewards in thirds, by what was expected."""
        rows = np.array(sorted(self.rewards)).reshape(-1, 2)
        thirds = [part for part in np.array_split(rows, 3) if len(part)]
        return tuple(Bin.of(part[:, 0], part[:, 1]) for part in thirds)

    def at_bound(self, bound: float) -> tuple[int, int]:
        """How many estimates sit at a bound, and of how many."""
        known = [d.estimates for d in self.decisions if not d.blind and d.round.parts is None]
        estimates = np.concatenate([np.empty(0), *known])
        return int((np.abs(estimates) >= _AT * bound).sum()), len(estimates)


@dataclass(frozen=True, slots=True)
class Bin:
    """Rewards of which about as much was expected."""

    count: int
    expected: float
    came: float
    error: float

    @classmethod
    def of(cls, expected: FloatArray, came: FloatArray) -> "Bin":
        """Averages, and the standard error of what came."""
        n = len(came)
        error = float(np.std(came, ddof=1)) / sqrt(n) if n > 1 else nan
        return cls(n, float(expected.mean()), float(came.mean()), error)


@dataclass(frozen=True, slots=True)
class Report:
    """How a policy is doing. It prints as a few lines.

    Attributes
    ----------
    rounds, seconds
        How many decisions were committed, and the time they took.
    rewards, earned
        How many rewards came in, and their sum.
    realised
        What a second has brought: `earned` over `seconds`. What is still to come is missing in it.
    price
        What a second is worth by the estimates that choose, which is what decides. While these are
        optimistic it is too high. None for a policy that does not price time.
    price_by_means
        What a second would be worth in the last rounds by mean estimates; None where there are no
        rounds or no belief.
    index
        How estimates are made of the belief.
    pending, missing, given_up
        Decisions of which rewards are still to come, how many, and how many will never.
    calibration
        The last rewards in thirds, by what was expected of them; empty without a belief.
    at_bound, of
        How many of so many estimates in the last rounds sit at the belief's `mean_bound`; 0 of 0
        where it has none.
    """

    rounds: int
    seconds: float
    rewards: int
    earned: float
    realised: float
    price: float | None
    price_by_means: float | None
    index: str
    pending: int
    missing: int
    given_up: int
    calibration: tuple[Bin, ...]
    at_bound: int
    of: int

    def __str__(self) -> str:
        lines = [
            f"{_many(self.rounds, 'round')}, {self.seconds:,.4g} s; "
            f"{_many(self.rewards, 'reward')}, {self.earned:,.4g} in all",
            f"realised:        {self.realised:.4g} a second",
        ]
        if self.price is not None:
            lines.append(f"deciding price:  {self.price:.4g} a second ({self.index} estimates)")
        if self.price_by_means is not None:
            lines.append(f"price by means:  {self.price_by_means:.4g} a second (last rounds)")
        missing, pending = _many(self.missing, "reward"), _many(self.pending, "decision")
        lines.append(f"still to come:   {missing} of {pending}; {self.given_up:,} given up")
        for part in self.calibration:
            spread = f" ± {part.error:.2g}" if part.error < inf else ""
            lines.append(
                f"expected {part.expected:.4g}: came {part.came:.4g}{spread} "
                f"({_many(part.count, 'reward')})"
            )
        if self.of:
            lines.append(f"at the bound:    {self.at_bound:,} of {_many(self.of, 'estimate')}")
        return "\n".join(lines)


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")
