"""Every policy keeps the contract that `check_policy` ships to users."""

import json
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from bandit.checks.subjects import (
    LATENCIES,
    ORACLES,
    ORDERED,
    POLICIES,
    Average,
    Greedy,
    PerGroup,
    Square,
)
from coaf.bandit.actions import Actions, AnySubset, AtMost, Capped, Exactly, Grouped, Listed
from coaf.bandit.checks.policies import check_policy
from coaf.bandit.index import Mean, Thompson, Upper
from coaf.bandit.latency import Additive, ByCount, Setup, Table, Tree
from coaf.bandit.policies.coaf import COAF
from coaf.bandit.problem import Round
from coaf.bandit.rates.memory_root import MemoryRoot
from coaf.bandit.rates.rate import Fixed, Rate, Renewal


@pytest.mark.parametrize("name", POLICIES)
def test_ours(name: str) -> None:
    check_policy(POLICIES[name](), any_order=name not in ORDERED)


@pytest.mark.parametrize("name", ORACLES)
def test_oracles_except_for_state(name: str) -> None:
    check_policy(ORACLES[name](), saved=False)


@pytest.mark.parametrize("name", ["coaf", "paper", "memory root", "threshold", "take all"])
def test_with_other_latencies_and_actions(name: str) -> None:
    rng = np.random.default_rng(5)
    groups = np.array(["a", "b", "a", "b"])
    actions: list[Actions] = [
        AtMost(2),
        Exactly(2),
        Listed([(0,), (1, 2)]),
        Capped(40.0, AtMost(3)),
        Grouped({"a": 1}),
    ]
    latency = Setup(base=12.0, setup=5.0, each=6.7)
    rounds = [
        Round(rng.normal(size=(4, 3)) / 5.0, latency, actions=kind, groups=groups)
        for kind in actions
    ]
    table = Table(subsets=[(), (0,), (0, 1), (0, 1, 2, 3)], times=[1.0, 3.0, 3.5, 4.0])
    others = [kind for kind in LATENCIES.values() if isinstance(kind, ByCount | Tree)]
    rounds += [
        Round(rng.normal(size=(4, 3)) / 5.0, kind, actions=AnySubset()) for kind in (*others, table)
    ]
    check_policy(POLICIES[name](), rounds)
    check_policy(POLICIES[name](), rounds[::-1])


def test_a_users() -> None:
    check_policy(Greedy())


def test_what_is_checked_is_not_changed() -> None:
    policy = POLICIES["coaf"]()
    before = json.dumps(policy.state())
    check_policy(policy)
    assert json.dumps(policy.state()) == before


def test_ours_with_a_users_belief_and_latency() -> None:
    """Which decide and learn like our own; saving is for the library's own parts."""
    features = np.random.default_rng(0).normal(size=(6, 3, 2)) / 4.0
    rounds = [Round(X, Square()) for X in features]
    check_policy(COAF(belief=Average()), rounds, saved=False)
    check_policy(COAF(belief=Average(), index=Thompson(), draws=5), rounds, saved=False)
    check_policy(COAF(belief=Average(), rate=MemoryRoot(size=3)), rounds, saved=False)


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("rate", [Renewal, partial(MemoryRoot, size=3)])
def test_ours_with_a_belief_that_reads_groups(nested: bool, rate: Callable[[], Rate]) -> None:
    features = np.random.default_rng(0).normal(size=(6, 3, 2)) / 4.0
    groups = [[1, 2], [1, 3], [4, 2]] if nested else ["a", "b", "a"]
    rounds = [Round(X, Setup(2.0, 1.0, 0.5), groups=groups) for X in features]
    for index in (Upper(), Thompson()):
        check_policy(COAF(belief=PerGroup(), rate=rate(), index=index, draws=5), rounds)


def test_estimates_are_those_of_the_arms_groups() -> None:
    """What one group has shown says nothing of the other."""
    policy = COAF(belief=PerGroup(), index=Mean(), rate=Fixed(0.1))
    patch = Round(np.zeros((4, 2)), Additive(1.0, 1.0), groups=[[1, 1], [1, 2], [2, 1], [1, 1]])
    decision = policy.decide(patch)
    policy.commit(decision, executed=np.ones(4, dtype=bool))
    policy.learn(decision, [0], [1.0])
    np.testing.assert_array_equal(policy.decide(patch).estimates, [0.5, 0.0, 0.0, 0.5])
