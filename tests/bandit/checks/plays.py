"""Rounds that any policy can play, and playing them."""

import numpy as np

from coaf.bandit.checks.contract import coins, some_features
from coaf.bandit.latency import Additive, Setup
from coaf.bandit.policies.policy import Policy
from coaf.bandit.problem import Round

ROUNDS = 6


def rounds_for(policy: Policy) -> list[Round]:
    """Rounds with groups and keys, of the dimension that the policy's belief has."""
    kinds = (Setup(2.0, 3.0, 1.0), Additive(2.0, 0.5))
    return [
        Round(
            some_features(policy.belief, 3 + i % 3, seed=i),
            kinds[i % 2],
            groups=[["square", f"patch {i}"]] * (3 + i % 3),
            key=f"#{i}",
        )
        for i in range(ROUNDS)
    ]


def teach(policy: Policy, rounds: list[Round]) -> None:
    """Commit and learn whole rounds; nothing is scored afterwards."""
    decisions = [policy.decide(one) for one in rounds]
    for decision in decisions:
        n = decision.round.n
        policy.commit(decision, np.ones(n, dtype=np.bool_))
        policy.learn(decision, range(n), coins(n))
