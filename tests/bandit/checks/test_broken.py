"""Each check can fail: a toy with one mistake is caught, and the message names the mistake."""

import itertools
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pytest

from bandit.checks.subjects import Greedy, Square
from coaf.bandit.actions import Exactly
from coaf.bandit.arrays import BoolArray
from coaf.bandit.beliefs.linear import Linear
from coaf.bandit.checks import check_belief, check_latency, check_policy
from coaf.bandit.checks.contract import ContractError
from coaf.bandit.latency import Additive, Latency
from coaf.bandit.problem import Decision, Round


class Negative(Square):
    def seconds(self, chosen: BoolArray) -> float:
        return 2.0 - float(chosen.sum())


class Endless(Square):
    def seconds(self, chosen: BoolArray) -> float:
        return float("inf") if chosen.all() else 1.0


class Moody(Square):
    def __init__(self) -> None:
        self.asked = itertools.count()

    def seconds(self, chosen: BoolArray) -> float:
        return 1.0 + next(self.asked)


class InArrays(Square):
    def seconds(self, chosen: BoolArray) -> float:
        return np.array([2.0])  # type: ignore[return-value]


class Free(Square):
    def seconds(self, chosen: BoolArray) -> float:
        return float(chosen.sum())


@pytest.mark.parametrize(
    ("latency", "mistake"),
    [
        (Negative(), r"Negative: seconds of arms \[.*\] is -1.0, which is negative"),
        (Endless(), "is inf, which is not finite"),
        (Moody(), "not deterministic: asked again"),
        (InArrays(), "which is not a number"),
        (Free(), "floor of an entry round must be positive, is 0 s"),
        (Additive(base=0.0, each=1.0), "Additive: the floor of an entry round must be positive"),
    ],
)
def test_latencies(latency: Latency, mistake: str) -> None:
    with pytest.raises(ContractError, match=mistake):
        check_latency(latency, 3)


def test_a_latency_that_does_not_fit_says_so_itself() -> None:
    with pytest.raises(ValueError, match="each has 2 entries for a round of 3 arms"):
        check_latency(Additive(base=1.0, each=[1.0, 2.0]), 3)


class Impure(Greedy):
    def decide(self, round: Round) -> Decision:
        self.total += 0.1
        return super().decide(round)


class Quiet(Greedy):
    """Decides the same, and changes nevertheless."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def decide(self, round: Round) -> Decision:
        self.asked += 1
        return super().decide(round)


class Altered(Greedy):
    """Changes one entry of each decision."""

    def __init__(self, **changes: Any) -> None:
        super().__init__()
        self.changes = changes

    def decide(self, round: Round) -> Decision:
        found = super().decide(round)
        return found._replace(**self.changes)


class Rash(Greedy):
    """Learns on commit what it hopes for."""

    def commit(
        self,
        decision: Decision,
        executed: npt.ArrayLike | None = None,
        seconds: float | None = None,
    ) -> None:
        super().commit(decision, executed, seconds)
        self.total, self.count = self.total + 1.0, self.count + 1


class PerCall(Greedy):
    def learn(self, decision: Decision, arms: npt.ArrayLike, rewards: npt.ArrayLike) -> None:
        super().learn(decision, arms, rewards)
        self.count += 1


class Recommits(Greedy):
    def commit(
        self,
        decision: Decision,
        executed: npt.ArrayLike | None = None,
        seconds: float | None = None,
    ) -> None:
        self.commits.pop(str(decision.id), None)
        super().commit(decision, executed, seconds)


class Relearns(Greedy):
    def learn(self, decision: Decision, arms: npt.ArrayLike, rewards: npt.ArrayLike) -> None:
        super().learn(decision, arms, rewards)
        self.learned.clear()


class Loses(Greedy):
    def state(self) -> dict[str, Any]:
        return super().state() | {"count": 1}


class Drops(Greedy):
    """Restores what was learned, and forgets which decisions are open."""

    @classmethod
    def restore(cls, state: Mapping[str, Any] | str) -> Self:
        policy = super().restore(state)
        policy.total = 0.0
        return policy


@pytest.mark.parametrize(
    ("policy", "mistake"),
    [
        (Impure(), "decide answers otherwise when asked again: not pure"),
        (Quiet(), "Quiet: decide changed the policy: not pure"),
        (Altered(chosen=np.array([True])), "chosen is not a subset"),
        (Altered(estimates=np.array([np.nan] * 3)), "estimates must be one finite number per arm"),
        (Altered(seconds=1e9), "seconds is not the latency of chosen"),
        (Altered(reward=-1e9), "reward is not the sum of the chosen estimates"),
        (Altered(gap=-1e9), "gap is not seconds"),
        (Altered(propensities=np.full(3, 1.5)), "propensities are not probabilities"),
        (Rash(), "commit changed the estimates: only learn may"),
        (PerCall(), "learn in pieces, in another order, differs from learn at once"),
        (Recommits(), "a second commit must raise ValueError, raised nothing"),
        (Relearns(), "a second reward for one arm must raise ValueError"),
        (Loses(), "restored policy decides differently: state.. misses something"),
        (Drops(), "restored policy decides differently: state.. misses something"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_policies(policy: Greedy, mistake: str) -> None:
    with pytest.raises(ContractError, match=mistake):
        check_policy(policy)


def test_a_policy_that_never_acts_is_not_passed() -> None:
    idle = [Round(np.zeros((2, 1)), Additive(base=1.0, each=1.0), Exactly(0)) for _ in range(4)]
    with pytest.raises(ContractError, match="Greedy: takes no arm in any of these rounds"):
        check_policy(Greedy(), idle)


def test_what_a_belief_lacks_is_listed() -> None:
    class Half:
        dim = 2

        def mean(self, features: Any, groups: Any = None) -> Any:
            return np.zeros(len(features))

    with pytest.raises(ContractError, match="Half: lacks upper, sample, learn, refit, forget"):
        check_belief(Half())  # type: ignore[arg-type]
    with pytest.raises(ContractError, match="Linear is a class, not a belief"):
        check_belief(Linear)  # type: ignore[arg-type]
