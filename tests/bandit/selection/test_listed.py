"""Latencies of one's own are asked once for each subset, for as long as they are there."""

import gc
from collections import Counter
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest

from coaf.bandit.actions import Actions, AnySubset, AtMost, Capped, Exactly, Grouped
from coaf.bandit.arrays import BoolArray
from coaf.bandit.policies.coaf import COAF
from coaf.bandit.problem import Round
from coaf.bandit.rates.memory_root import MemoryRoot
from coaf.bandit.select import best
from coaf.bandit.selection import listed

N = 4
asked: list[tuple[bool, ...]] = []


class Root:
    """2 s, and the root of how many are taken, in tens of seconds."""

    def seconds(self, chosen: BoolArray) -> float:
        asked.append(tuple(chosen.tolist()))
        return 2.0 + 10.0 * float(np.sqrt(np.count_nonzero(chosen)))

    def check(self, n: int) -> None:
        pass


@dataclass
class Unhashable(Root):
    """As a dataclass is that may be compared."""

    name: str = "any"


class Slotted:
    """Nobody can tell when it is gone."""

    __slots__ = ()

    seconds = Root.seconds
    check = Root.check


@pytest.fixture(autouse=True)
def _nothing_asked_yet() -> None:
    asked.clear()


def round_of(latency: Any, actions: Actions | None = None, n: int = N) -> Round:
    return Round(np.zeros((n, 1)), latency, AnySubset() if actions is None else actions)


@pytest.mark.parametrize("kind", [Root, Unhashable])
def test_each_subset_is_asked_once(kind: type[Root]) -> None:
    latency = kind()
    some: list[Actions] = [Exactly(2), AtMost(1), Capped(15.0), AnySubset(), AtMost(3)]
    for actions in some:
        for rate in (0.0, 0.1, 2.0):
            r = round_of(latency, actions)
            best(rate, [0.9, 0.1, 0.5, 0.4], r.latency, r.actions)
    told = Counter(asked)
    assert set(told) == set(product([False, True], repeat=N))
    assert {k for chosen, k in told.items() if not chosen[-1]} == {1}, "the largest tells of change"
    before = len(asked)
    round_of(latency, n=2)
    assert len(asked) == before + 2**2


def test_a_round_that_is_made_is_looked_at_without_asking() -> None:
    """However often: by decisions, by what is remembered of rounds, or directly."""
    latency = Root()
    rounds = [round_of(latency) for _ in range(5)]
    told = len(asked)
    assert told == 2**N + 4, "each subset once, and whether it has changed by the other four rounds"
    policy = COAF(1, rate=MemoryRoot())
    for one in rounds:
        decision = policy.decide(one)
        policy.commit(decision)
        policy.learn(decision, decision.arms, np.arange(len(decision.arms)) - 0.5)
    found = rounds[0].best(0.1, [0.9, 0.1, 0.5, 0.4], seconds=15.0)
    assert len(asked) == told
    chosen, *rest = best(0.1, [0.9, 0.1, 0.5, 0.4], latency, Capped(15.0))
    assert found.chosen.tolist() == chosen.tolist()
    assert list(found[1:]) == rest


def test_only_what_is_allowed_is_asked() -> None:
    latency = Root()
    groups = np.array(["a", "a", "b", "b"])
    for _ in range(2):
        best(0.1, np.ones(N), latency, Grouped(1), groups)
    assert len(asked) - 1 == len(set(asked)) == 9
    assert not any((a and b) or (c and d) for a, b, c, d in asked)


@pytest.mark.parametrize("actions", [AnySubset(), AtMost(2), Exactly(3), Capped(15.0)])
@pytest.mark.parametrize("rate", [-0.2, 0.0, 0.03, 0.1])
def test_what_is_remembered_decides_as_what_is_asked(actions: Actions, rate: float) -> None:
    latency, slotted = Root(), Slotted()
    for seed in range(5):
        mu = np.random.default_rng(seed).normal(size=N)
        first, second = best(rate, mu, latency, actions), best(rate, mu, latency, actions)
        anew = best(rate, mu, slotted, actions)
        for found in (second, anew):
            assert found.chosen.tolist() == first.chosen.tolist()
            assert found[1:] == first[1:]


def test_one_that_changed_is_asked_anew() -> None:
    latency = Unhashable()
    assert round_of(latency, Exactly(2)).floor == pytest.approx(2.0 + 10.0 * 2.0**0.5)
    latency.seconds = lambda chosen: 7.0  # type: ignore[method-assign]
    assert round_of(latency, Exactly(2)).floor == 7.0
    assert best(0.1, np.ones(N), latency, AnySubset()).seconds == 7.0


def test_one_is_not_taken_for_another() -> None:
    for each in (1.0, 3.0, 2.0):  # the memory of the one before may be given to the next

        class Flat(Root):
            def seconds(self, chosen: BoolArray, each: float = each) -> float:
                return each

        assert round_of(Flat()).floor == each
        gc.collect()


def test_what_is_gone_is_forgotten() -> None:
    gc.collect()
    before = len(listed._SAID)
    rounds = [round_of(Root()) for _ in range(3)]
    assert len(listed._SAID) == before + 3
    del rounds
    gc.collect()
    assert len(listed._SAID) == before


def test_without_weak_references_it_is_asked_anew() -> None:
    latency = Slotted()
    assert round_of(latency).floor == round_of(latency).floor == 2.0
    assert len(asked) == 2 * 2**N


def test_a_mistake_is_told_each_time() -> None:
    class Wrong(Root):
        def seconds(self, chosen: BoolArray) -> float:
            return -1.0 if chosen.all() else 1.0

    latency = Wrong()
    for _ in range(2):
        with pytest.raises(ValueError, match=r"latency\.seconds\(chosen\) is -1\.0"):
            round_of(latency)
