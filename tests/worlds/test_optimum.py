"""Γ*: `th: MBSP_ub` as tests, and whether the estimates of it are as good as they say."""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coaf
from coaf.bandit.actions import Actions
from coaf.bandit.arrays import FloatArray
from coaf.bandit.latency import Latency
from coaf.bandit.select import best
from coaf.worlds import (
    ContextualBandit,
    Mortal,
    SemiBandit,
    Synthetic,
    Types,
    World,
    optimum,
    optimum_by_approximation,
)
from coaf.worlds.batch import Scene
from coaf.worlds.optimum import least_gaps

Draw = Callable[[st.SearchStrategy[Any]], Any]


class Tiny:
    """A handful of rounds that come equally often: arms are told by their mean reward."""

    dim = 1

    def __init__(self, rounds: Sequence[tuple[FloatArray, Latency, Actions]]) -> None:
        self.rounds = rounds

    def means(self, features: FloatArray) -> FloatArray:
        return features[:, 0]

    def scenes(self, rounds: int, replicate: int) -> Iterator[Scene]:
        for means, latency, actions in islice(cycle(self.rounds), rounds):
            yield Scene(coaf.Round(means[:, None], latency, actions), means, means)

    def optimum(self) -> float:
        return optimum(self, rounds=len(self.rounds)).rate


def least(world: World, rate: float, rounds: int) -> float:
    """E[min_A g(Γ, A)] over the first rounds."""
    gaps = [
        best(rate, s.means, s.round.latency, s.round.actions).gap for s in world.scenes(rounds, 0)
    ]
    return math.fsum(gaps) / rounds


def by_hand(world: Tiny) -> float:
    """The best rate of all deterministic stationary policies, tried one by one."""
    options = []
    for means, latency, actions in world.rounds:
        masks = [np.array(m, dtype=np.bool_) for m in product([False, True], repeat=len(means))]
        allowed = [m for m in masks if actions.allows(m)]
        options.append([(float(means[m].sum()), latency.seconds(m)) for m in allowed])
    return max(sum(r for r, _ in c) / sum(t for _, t in c) for c in product(*options))


numbers = st.floats(-1.0, 1.0, allow_subnormal=False)
times = st.floats(0.1, 5.0)


@st.composite
def tiny_worlds(draw: Draw, actions: Actions | None = None) -> Tiny:
    rounds = []
    for _ in range(draw(st.integers(1, 3))):
        n = draw(st.integers(1, 3))
        means = np.array(draw(st.lists(numbers, min_size=n, max_size=n)))
        each = np.array(draw(st.lists(times, min_size=n, max_size=n)))
        latency = coaf.Setup(base=draw(times), setup=draw(st.floats(0.0, 3.0)), each=each)
        spaces = [coaf.AnySubset(), coaf.OneOf(), coaf.AtMost(2), coaf.Listed([(0,), ()])]
        rounds.append((means, latency, actions or draw(st.sampled_from(spaces))))
    return Tiny(rounds)


def slower(world: Tiny, factor: float, more: float) -> Tiny:
    """Every action takes `factor` times as long and `more` seconds on top."""
    rounds: list[tuple[FloatArray, Latency, Actions]] = []
    for means, latency, actions in world.rounds:
        assert isinstance(latency, coaf.Setup)
        base, setup = factor * latency.base + more, factor * latency.setup
        slow = coaf.Setup(base=base, setup=setup, each=factor * np.asarray(latency.each))
        rounds.append((means, slow, actions))
    return Tiny(rounds)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(world=tiny_worlds())
def test_the_best_of_all_stationary_policies(world: Tiny) -> None:
    assert world.optimum() == pytest.approx(by_hand(world), rel=1e-9, abs=1e-12)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(world=tiny_worlds(), low=st.floats(-3.0, 3.0), step=st.floats(1e-3, 3.0))
def test_the_expected_least_gap_strictly_increases(world: Tiny, low: float, step: float) -> None:
    rounds = len(world.rounds)
    floor = math.fsum(s.round.floor for s in world.scenes(rounds, 0)) / rounds
    rise = least(world, low + step, rounds) - least(world, low, rounds)
    assert rise >= floor * step - 1e-12  # at least as steep as the shortest round


@settings(max_examples=100, deadline=None, derandomize=True)
@given(world=tiny_worlds(), step=st.floats(1e-6, 2.0))
def test_there_is_exactly_one_root(world: Tiny, step: float) -> None:
    rate, rounds = world.optimum(), len(world.rounds)
    assert least(world, rate, rounds) == pytest.approx(0.0, abs=1e-11)
    assert least(world, rate - step, rounds) < 0.0 < least(world, rate + step, rounds)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    world=tiny_worlds(actions=coaf.AnySubset()),
    factor=st.floats(1.0, 3.0),
    more=st.floats(0.0, 3.0),
)
def test_the_optimum_falls_as_latency_grows(world: Tiny, factor: float, more: float) -> None:
    # With nothing forced Γ* ≥ 0, and then longer is never better.
    before, after = world.optimum(), slower(world, factor, more).optimum()
    assert 0.0 <= after <= before + 1e-12
    if before > 1e-6 and more > 1e-3:
        assert after < before


def test_a_forced_loss_hurts_less_the_longer_it_takes() -> None:
    # The other side: with Γ* < 0 larger delays make the root larger, that is nearer to zero.
    world = Tiny([(np.array([-0.5, -0.8]), coaf.Setup(1.0, 0.0, 1.0), coaf.OneOf())])
    assert world.optimum() == pytest.approx(-0.25, rel=1e-12)
    assert slower(world, 2.0, 0.0).optimum() == pytest.approx(-0.125, rel=1e-12)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(world=tiny_worlds(), gain=st.floats(0.0, 1.0), which=st.integers(0, 2))
def test_the_optimum_rises_with_the_means(world: Tiny, gain: float, which: int) -> None:
    better = [
        (means + gain * (np.arange(len(means)) == which), latency, actions)
        for means, latency, actions in world.rounds
    ]
    everywhere = [(means + gain, latency, actions) for means, latency, actions in world.rounds]
    before = world.optimum()
    assert before - 1e-12 <= Tiny(better).optimum() <= Tiny(everywhere).optimum() + 1e-12


def test_both_in_a_large_world() -> None:
    def rate(norm: float = 0.5, **times: Any) -> float:
        return optimum(Synthetic(5, norm=norm, seed=2, **times), rounds=5000).rate

    usual = rate()
    assert rate(norm=1.0) > 1.5 * usual
    for longer in ({"base": (8.0, 16.0)}, {"each": 2.0}, {"setup": 4.0}):
        assert 0.0 < rate(**longer) < 0.95 * usual


WORLDS: dict[str, World] = {
    "synthetic": Synthetic(10, seed=1),
    "setup": Synthetic(3, setup=5.0, seed=1),
    "offset": Synthetic(3, offset=0.5, seed=1),
    "one feature": Synthetic(1, seed=1),
    "contextual": ContextualBandit(5),
    "semi": SemiBandit(5, actions=coaf.AtMost(3)),
    "mortal": Mortal(np.linspace(0.0, 1.0, 21)),
    "types": Types(dim=6),
}


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_a_handful_of_steps(world: World) -> None:
    assert optimum(world, rounds=1000).steps <= 8


def test_nothing_worth_taking() -> None:
    found = optimum(Types([-0.5, -0.2], noise=0.1), rounds=500)
    assert found.rate == 0.0
    assert found.steps == 1


class OneByOne:
    """A world without its batches."""

    def __init__(self, world: World) -> None:
        self.dim, self.means, self.scenes = world.dim, world.means, world.scenes


@pytest.mark.parametrize("world", [WORLDS["synthetic"], WORLDS["setup"], WORLDS["mortal"]])
def test_rounds_in_bulk_or_one_by_one(world: World) -> None:
    bulk, single = optimum(world, rounds=500), optimum(OneByOne(world), rounds=500)
    assert bulk.rate == pytest.approx(single.rate, rel=1e-12)
    assert bulk.standard_error == pytest.approx(single.standard_error, rel=1e-9)


@pytest.mark.parametrize("name", ["synthetic", "setup", "mortal", "types"])
def test_the_standard_error_is_honest(name: str) -> None:
    world = WORLDS[name]
    exact = optimum(world, rounds=200_000)
    # 100 estimates from 500 rounds; their z-scores should have mean 0 and deviation 1.
    found = [optimum(world, rounds=500, stream=stream) for stream in range(100)]
    z = np.array([(f.rate - exact.rate) / f.standard_error for f in found])
    # Mean of 100: standard error 0.1, and Γ* itself is known to 0.05 of one error; a deviation
    # from 100 is known to 7 %. Four of each, rounded up.
    assert abs(z.mean()) < 0.5
    assert 0.7 < z.std() < 1.3
    assert np.abs(z).max() < 5.0


def test_the_mortal_optimum_is_known_exactly() -> None:
    world = Mortal(np.linspace(0.0, 1.0, 21))
    found = optimum(world, rounds=200_000)
    assert abs(found.rate - world.optimal_rate) < 4.0 * found.standard_error
    assert found.standard_error < 0.005 * found.rate


@pytest.mark.parametrize("name", ["synthetic", "setup", "types"])
def test_long_stochastic_approximation_agrees(name: str) -> None:
    world, rounds = WORLDS[name], 20_000
    exact, long = optimum(world), optimum_by_approximation(world, rounds=rounds)
    assert isinstance(world, Synthetic | Types)
    batch = world.batch(rounds, 0)
    gaps, seconds = least_gaps(batch, exact.rate)
    # With gain a/j, a = 1/E[floor], and slope b = E[l(A*)] at the root, the last iterate has
    # variance a² Var(min g) / ((2ab − 1) rounds).
    a, b = 1.0 / batch.base.mean(), seconds.mean()
    error = a * gaps.std() / math.sqrt((2.0 * a * b - 1.0) * rounds)
    assert abs(long.rate - exact.rate) < 4.0 * math.hypot(error, exact.standard_error)
    assert error < 0.02 * exact.rate
