"""A policy that is saved and restored anywhere goes on as if nothing had happened."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import coaf
from coaf.bandit.policies.policy import Policy
from coaf.worlds import Mortal, SemiBandit, Synthetic, Types, World, play

POLICIES: dict[str, Callable[[int], Policy]] = {
    "default": coaf.COAF,
    "paper, ball": coaf.COAF.paper,
    "paper, ellipsoid": lambda d: coaf.COAF.paper(d, within="ellipsoid", n_max=20, l_min=0.5),
    "paper, thompson": lambda d: coaf.COAF.paper(d, index="thompson", seed=3),
    "thompson": lambda d: coaf.COAF(d, index=coaf.Thompson(), draws=5),
    "mean": lambda d: coaf.COAF(d, index=coaf.Mean(), rate=coaf.Renewal(initial=-1.0)),
    "memory root": lambda d: coaf.COAF(d, rate=coaf.MemoryRoot(size=6)),
    "fixed": lambda d: coaf.COAF(d, rate=coaf.Fixed(0.1)),
    "threshold": lambda d: coaf.Threshold(0.2, dim=d),
    "take all": lambda _: coaf.TakeAll(),
}

WORLDS: dict[str, World] = {
    "synthetic": Synthetic(3, setup=2.0, arms=(0, 12), seed=1),
    "many features": Synthetic(20, seed=1),  # rows wait to be absorbed
    "semi-bandit": SemiBandit(3, actions=coaf.Listed([(0, 1), (2, 3), (1,), ()]), arms=(4, 4)),
    "mortal": Mortal((0.1, 0.5, 0.9), noise=0.2),
    "types": Types(dim=4),
}

ROUNDS = 40
WHEN = ("before deciding", "before committing", "before learning", "half learned")

Row = tuple[Any, ...]


def again(policy: Policy) -> Policy:
    """Through JSON text and back."""
    return type(policy).restore(json.loads(json.dumps(policy.state(), allow_nan=False)))


def row(policy: Policy, decision: coaf.Decision) -> Row:
    """Everything a decision says, to the bit, and the rate after it."""
    numbers = (decision.rate, decision.seconds, decision.gap, policy.rate)
    draws = decision.propensities
    return (
        decision.id,
        decision.chosen.tolist(),
        decision.estimates.tobytes(),
        None if draws is None else draws.tobytes(),
        *(float(x).hex() for x in numbers),
    )


def trajectory(policy: Policy, world: World, interrupt: Callable[[int, str], bool]) -> list[Row]:
    """Play, and save and restore the policy wherever `interrupt(round, when)` says so."""
    rows = []
    for j, scene in enumerate(world.scenes(ROUNDS, 0)):
        if interrupt(j, WHEN[0]):
            policy = again(policy)
        decision = policy.decide(scene.round)
        if interrupt(j, WHEN[1]):
            policy = again(policy)
            assert row(policy, policy.decide(scene.round)) == row(policy, decision)
        policy.commit(decision)
        if interrupt(j, WHEN[2]):
            policy = again(policy)
        arms = np.flatnonzero(decision.chosen)
        half = len(arms) // 2
        policy.learn(decision, arms[:half], scene.rewards[arms[:half]])
        if interrupt(j, WHEN[3]):
            policy = again(policy)
        policy.learn(decision, arms[half:], scene.rewards[arms[half:]])
        rows.append(row(policy, decision))
    rows.append((json.dumps(policy.state()),))
    return rows


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
@pytest.mark.parametrize("name", POLICIES)
def test_saved_and_restored_everywhere(name: str, world: World) -> None:
    expected = trajectory(POLICIES[name](world.dim), world, lambda *_: False)
    assert trajectory(POLICIES[name](world.dim), world, lambda *_: True) == expected


@pytest.mark.parametrize("when", WHEN)
@pytest.mark.parametrize("name", POLICIES)
def test_saved_and_restored_once(name: str, when: str) -> None:
    world = WORLDS["synthetic"]
    expected = trajectory(POLICIES[name](3), world, lambda *_: False)
    for at in (0, 1, 7, ROUNDS - 1):

        def here(j: int, moment: str, at: int = at) -> bool:
            return j == at and moment == when

        assert trajectory(POLICIES[name](3), world, here) == expected


@pytest.mark.parametrize("name", POLICIES)
def test_a_played_trajectory_goes_on_where_it_stopped(name: str) -> None:
    world = WORLDS["types"]
    expected = list(play(POLICIES[name](4), world, rounds=ROUNDS))
    first = POLICIES[name](4)
    rows = list(play(first, world, rounds=15))
    restored = again(first)
    for scene in list(world.scenes(ROUNDS, 0))[15:]:
        decision = restored.decide(scene.round)
        restored.commit(decision)
        arms = np.flatnonzero(decision.chosen)
        restored.learn(decision, arms, scene.rewards[arms])
        rows.append({"rate": decision.rate, "seconds": decision.seconds, "taken": len(arms)})
    for ours, theirs in zip(rows, expected, strict=True):
        assert (ours["rate"], ours["seconds"], ours["taken"]) == (
            theirs["rate"],
            theirs["seconds"],
            theirs["taken"],
        )


def test_the_one_restored_and_the_original_do_not_share_anything() -> None:
    world, policy = WORLDS["synthetic"], coaf.COAF.paper(3)
    list(play(policy, world, rounds=10))
    saved = json.dumps(policy.state())
    copy = again(policy)
    list(play(copy, world, rounds=10, replicate=1))
    assert json.dumps(policy.state()) == saved


def test_an_oracle_says_that_it_cannot_be_saved() -> None:
    policy = coaf.COAF(index=coaf.Truth(WORLDS["synthetic"].means))
    with pytest.raises(ValueError, match="Truth cannot be saved"):
        policy.state()
