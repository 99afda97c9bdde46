"""The compiled loop and the live policy make the same decisions."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import coaf
from coaf.bandit.arrays import FloatArray
from coaf.bandit.policies.policy import Policy
from coaf.bandit.select import best
from coaf.worlds import ContextualBandit, Mortal, Synthetic, Types, compare, play
from coaf.worlds.batch import Batch, Scene
from coaf.worlds.compiled import coded, play_compiled
from coaf.worlds.optimum import least_gaps
from coaf.worlds.world import BulkWorld

# Rewards beyond what was stated are meant.
pytestmark = pytest.mark.filterwarnings("ignore::coaf.AssumptionWarning")


class Uneven:
    """Arms that differ in time, and rounds with and without a set-up."""

    def __init__(self, dim: int) -> None:
        self.dim, self._even = dim, Synthetic(dim, base=(0.5, 9.0), arms=(0, 20), seed=4)

    def means(self, features: FloatArray) -> FloatArray:
        return self._even.means(features)

    def batch(self, rounds: int, replicate: int) -> Batch:
        even, rng = self._even.batch(rounds, replicate), np.random.default_rng(replicate)
        costs = rng.integers(0, 24, even.costs.shape) / 8.0  # sums are exact in any order
        setup = 1.5 * rng.integers(0, 3, rounds).astype(np.float64)
        return replace(even, costs=costs, setup=setup)

    def scenes(self, rounds: int, replicate: int) -> Iterator[Scene]:
        return self.batch(rounds, replicate).scenes()


WORLDS: dict[str, Callable[[int], BulkWorld]] = {
    "additive": lambda d: Synthetic(d, seed=1),
    "setup": lambda d: Synthetic(d, setup=3.0, seed=2),
    "uneven": Uneven,
}


def warm(dim: int) -> coaf.Linear:
    """A belief that has seen something already."""
    belief, rng = coaf.Linear.tuned(dim), np.random.default_rng(0)
    belief.learn(rng.uniform(-1.0, 1.0, (30, dim)) / dim, rng.uniform(size=30))
    return belief


def warm_free(dim: int) -> coaf.ScaleFree:
    """The same without units, with a reward that counts for less than it is."""
    belief, rng = coaf.ScaleFree(dim), np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", coaf.AssumptionWarning)
        belief.learn(rng.uniform(-1.0, 1.0, (30, dim)) / dim, [*rng.uniform(size=29), 1e3])
    return belief


POLICIES: dict[str, Callable[[BulkWorld], Policy]] = {
    "default": lambda w: coaf.COAF(w.dim),
    "paper, ball": lambda w: coaf.COAF.paper(w.dim),
    "paper, ellipsoid": lambda w: coaf.COAF.paper(w.dim, within="ellipsoid"),
    "paper, bounds given": lambda w: coaf.COAF.paper(
        w.dim, within="ellipsoid", n_max=20, l_min=0.5, xi=1.0
    ),
    "tuned": lambda w: coaf.COAF(belief=coaf.Linear.tuned(w.dim)),
    "thompson": lambda w: coaf.COAF(belief=coaf.Linear.tuned(w.dim), index=coaf.Thompson(), seed=5),
    # Greed would begin by taking nothing and learn nothing, were time not cheap at first.
    "mean": lambda w: coaf.COAF(
        belief=coaf.Linear.tuned(w.dim), index=coaf.Mean(), rate=coaf.Renewal(initial=-1.0)
    ),
    "renewal": lambda w: coaf.COAF(w.dim, rate=coaf.Renewal()),
    "robbins-monro": lambda w: coaf.COAF(w.dim, rate=coaf.RobbinsMonro()),
    "capped": lambda w: coaf.COAF(belief=coaf.ScaleFree(w.dim, mean_bound=0.5)),
    "warm, without units": lambda w: coaf.COAF(belief=warm_free(w.dim)),
    "warm": lambda w: coaf.COAF(belief=warm(w.dim)),
    "memory root": lambda w: coaf.COAF(w.dim, rate=coaf.MemoryRoot(size=20)),
    "memory root, thompson": lambda w: coaf.COAF(
        belief=coaf.Linear.tuned(w.dim), index=coaf.Thompson(), rate=coaf.MemoryRoot(size=10)
    ),
    "fixed": lambda w: coaf.COAF(w.dim, rate=coaf.Fixed(0.1)),
    "fixed, negative": lambda w: coaf.COAF(w.dim, rate=coaf.Fixed(-0.05)),
    "threshold": lambda w: coaf.Threshold(0.2, dim=w.dim),
    "threshold, no dim": lambda _: coaf.Threshold(0.1),
    "threshold, true means": lambda w: coaf.Threshold(0.2, index=coaf.Truth(w.means)),
    "take all": lambda _: coaf.TakeAll(),
    "oracle": lambda w: coaf.COAF(index=coaf.Truth(w.means), rate=coaf.RobbinsMonro(xi=1.0)),
    "oracle, renewal": lambda w: coaf.COAF(index=coaf.Truth(w.means)),
}


def rounds_for(name: str, dim: int) -> int:
    """2,000 but for the slow ones: re-scoring a memory each round, and a ball in 70 dimensions."""
    if name.startswith("memory"):
        return 150
    return 100 if name == "paper, ball" and dim == 70 else 2000


def live(policy: Policy, world: Any, rounds: int, replicate: int) -> FloatArray:
    rows = play(policy, world, rounds=rounds, replicate=replicate)
    return np.array([(x["rate"], x["seconds"], x["mean"]) for x in rows])


def compiled(policy: Policy, world: BulkWorld, rounds: int, replicate: int) -> FloatArray:
    how = coded(policy, world)
    assert how is not None
    return play_compiled(policy, how, world.batch(rounds, replicate))


@pytest.mark.parametrize("dim", [1, 10, 70])
@pytest.mark.parametrize("world_name", WORLDS)
@pytest.mark.parametrize("name", POLICIES)
def test_same_decisions(name: str, world_name: str, dim: int) -> None:
    world, rounds = WORLDS[world_name](dim), rounds_for(name, dim)
    ours = live(POLICIES[name](world), world, rounds, 1)
    theirs = compiled(POLICIES[name](world), world, rounds, 1)
    # Seconds are sums that are exact in any order, so they tell each round's choice to the bit.
    np.testing.assert_array_equal(theirs[:, 1], ours[:, 1])
    # Rewards may be added up in another order: 1e-12 where one sum differs by some 1e-16.
    np.testing.assert_allclose(theirs, ours, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("name", POLICIES)
def test_the_comparison_is_not_empty(name: str) -> None:
    """Each policy takes something in some rounds, so that there was something to agree on."""
    world = Synthetic(10, seed=1)
    seconds = compiled(POLICIES[name](world), world, 150, 1)[:, 1]
    taken = seconds - world.batch(150, 1).base
    assert np.count_nonzero(taken > 0.5) > 100


@pytest.mark.parametrize(
    "world", [Mortal(noise=0.1), Types(dim=4, setup=2.0)], ids=["mortal", "types"]
)
@pytest.mark.parametrize("name", ["default", "paper, ball", "thompson", "threshold", "oracle"])
def test_same_decisions_in_classic_worlds(name: str, world: BulkWorld) -> None:
    ours = live(POLICIES[name](world), world, 500, 2)
    theirs = compiled(POLICIES[name](world), world, 500, 2)
    np.testing.assert_array_equal(theirs[:, 1], ours[:, 1])
    np.testing.assert_allclose(theirs, ours, rtol=0.0, atol=1e-12)


def test_playing_compiled_leaves_the_policy_as_it_was() -> None:
    world, policy = Synthetic(3, seed=1), coaf.COAF(3)
    before = policy.state()
    first = compiled(policy, world, 100, 0)
    assert policy.state() == before
    np.testing.assert_array_equal(compiled(policy, world, 100, 0), first)


class Mine(coaf.COAF):
    """A user's own policy, which compiled code knows nothing of."""


def test_what_cannot_be_compiled_is_left_to_python() -> None:
    world, other = Synthetic(3, seed=1), Synthetic(3, seed=2)
    started = coaf.COAF(3)
    list(play(started, world, rounds=1))
    python_only: list[Policy] = [
        Mine(3),
        started,
        coaf.COAF(index=coaf.Truth(other.means)),
        coaf.COAF(3, rate=_Own()),
    ]
    assert [coded(policy, world) for policy in python_only] == [None] * 4
    assert coded(coaf.COAF(5), ContextualBandit(5)) is None


class _Own(coaf.Fixed):
    """A rate of the user's own."""

    def __init__(self) -> None:
        super().__init__(0.1)


@pytest.mark.parametrize("high", [8, 20])
def test_least_gaps_are_right_whatever_the_number_of_rounds(high: int) -> None:
    # Counts around twice the lanes are where scratch memory, once freed, is handed out again.
    world = Synthetic(dim=3, arms=(2, high), seed=1)
    scenes = list(world.scenes(150, 0))
    truth = [best(0.2, s.means, s.round.latency, s.round.actions).gap for s in scenes]
    for rounds in range(1, 151):
        gaps, _ = least_gaps(world.batch(rounds, 0), 0.2)
        np.testing.assert_allclose(gaps, truth[:rounds], atol=1e-12)


def test_tens_of_thousands_of_arms_are_decided() -> None:
    X = np.random.default_rng(0).normal(size=(50_000, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    policy = coaf.COAF(3)
    for _ in range(4):
        decision = policy.decide(coaf.Round(X, coaf.Setup(base=5.0, setup=10.0, each=0.01)))
        worth = decision.estimates > 0.01 * decision.rate
        assert np.array_equal(decision.chosen, worth)
        policy.commit(decision)


def test_features_beyond_the_bound_are_refused_as_they_are_live() -> None:
    world = Synthetic(dim=4, seed=1)
    policy = coaf.COAF(belief=coaf.Linear(4, feature_bound=0.5))
    with pytest.raises(ValueError, match=r"beyond feature_bound=0\.5"):
        compare({"a": policy}, world, rounds=5, replicates=1, gamma_star=0.1)


def test_a_policy_of_another_dimension_is_refused() -> None:
    with pytest.raises(ValueError, match="policy 'a' has dim=3, but the world has dim=64"):
        compare({"a": coaf.COAF(3)}, Synthetic(dim=64), rounds=5, replicates=1, gamma_star=0.1)
