"""The special cases that the problem generalises come out as they were (`sec: MMB`)."""

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import coaf
from coaf.bandit.arrays import FloatArray
from coaf.bandit.policies.policy import Policy
from coaf.bandit.rates.rate import Rate
from coaf.worlds import ContextualBandit, Mortal, SemiBandit, optimum
from coaf.worlds.world import World

RATES: dict[str, Any] = {
    "renewal": coaf.Renewal,
    "robbins-monro": coaf.RobbinsMonro,
    "memory root": lambda: coaf.MemoryRoot(size=5),
    "worth nothing": lambda: coaf.Fixed(0.0),
    "worth much": lambda: coaf.Fixed(50.0),
    "worth less than nothing": lambda: coaf.Fixed(-50.0),
}


def decisions(policy: Policy, world: World, rounds: int) -> list[coaf.Decision]:
    found = []
    for scene in world.scenes(rounds, 0):
        decision = policy.decide(scene.round)
        arms = np.flatnonzero(decision.chosen)
        policy.commit(decision)
        policy.learn(decision, arms, scene.rewards[arms])
        found.append(decision)
    return found


# --- The stochastic contextual bandit ------------------------------------------------------------


def lin_ucb(world: ContextualBandit, rounds: int, *, noise: float, delta: float) -> list[int]:
    """LinUCB, written out: argmax θ̄·x + √β ‖x‖ in the norm of V⁻¹."""
    V, b, arms = np.eye(world.dim), np.zeros(world.dim), []
    for scene in world.scenes(rounds, 0):
        X, inverse = scene.round.features, np.linalg.inv(V)
        volume = math.log(np.linalg.det(V))
        radius = 1.0 + noise * math.sqrt(2.0 * math.log(1.0 / delta) + volume)
        widths = np.sqrt(np.einsum("ni,ij,nj->n", X, inverse, X))
        arm = int(np.argmax(X @ inverse @ b + radius * widths))
        V, b = V + np.outer(X[arm], X[arm]), b + X[arm] * scene.rewards[arm]
        arms.append(arm)
    return arms


@pytest.mark.parametrize("rate", RATES)
def test_in_a_contextual_bandit_coaf_is_lin_ucb(rate: str) -> None:
    world = ContextualBandit(4, arms=(1, 12))
    # Without the ball, and with a mean bound so large that it caps nothing.
    belief = coaf.Linear(4, noise=0.5, delta=0.05, within="ellipsoid", mean_bound=1e6)
    found = decisions(coaf.COAF(belief=belief, rate=RATES[rate]()), world, 300)
    taken = [int(np.flatnonzero(decision.chosen)[0]) for decision in found]
    assert taken == lin_ucb(world, 300, noise=0.5, delta=0.05)


@pytest.mark.parametrize("index", [coaf.Upper(), coaf.Mean(), coaf.Thompson()])
@pytest.mark.parametrize("rate", RATES)
def test_whatever_the_rate_the_largest_estimate_is_taken(rate: str, index: Any) -> None:
    world = ContextualBandit(3)
    policy = coaf.COAF(3, index=index, rate=RATES[rate](), draws=0)
    for decision in decisions(policy, world, 100):
        assert decision.chosen.sum() == 1
        assert decision.estimates[decision.chosen][0] == decision.estimates.max()
        assert decision.seconds == 1.0


def test_regret_is_that_of_a_contextual_bandit() -> None:
    world, rounds = ContextualBandit(3), 200
    scenes = list(world.scenes(rounds, 0))
    # Γ* is the mean of the best mean; over the same rounds, exactly so.
    largest = np.array([scene.means.max() for scene in scenes])
    rate = optimum(world, rounds=rounds, stream=0).rate
    assert rate == pytest.approx(largest.mean(), rel=1e-12)
    result = coaf.compare(
        {"linucb": coaf.COAF(3)}, world, rounds=rounds, replicates=1, gamma_star=rate
    ).isel(policy=0, replicate=0)
    found = decisions(coaf.COAF(3), world, rounds)
    taken = np.array([s.means[d.chosen][0] for s, d in zip(scenes, found, strict=True)])
    time = np.arange(1, rounds + 1)
    np.testing.assert_allclose(result.regret, time * rate - np.cumsum(taken), atol=1e-10)
    # The paired form is the pseudo-regret of the textbooks: the best arm of each round less ours.
    np.testing.assert_allclose(result.paired, np.cumsum(largest - taken), atol=1e-10)


# --- The combinatorial semi-bandit ---------------------------------------------------------------


def largest(values: FloatArray, count: int) -> list[int]:
    return sorted(np.argsort(-values, kind="stable")[:count].tolist())


@pytest.mark.parametrize("rate", RATES)
def test_exactly_k_takes_the_top_k(rate: str) -> None:
    world = SemiBandit(4, actions=coaf.Exactly(3), arms=(3, 12))
    for decision in decisions(coaf.COAF(4, rate=RATES[rate]()), world, 150):
        assert np.flatnonzero(decision.chosen).tolist() == largest(decision.estimates, 3)
        assert decision.seconds == 1.0


@pytest.mark.parametrize("rate", RATES)
def test_at_most_k_takes_the_top_k_that_are_worth_anything(rate: str) -> None:
    world = SemiBandit(4, actions=coaf.AtMost(3), arms=(0, 12))
    counts = set()
    for decision in decisions(coaf.COAF(4, rate=RATES[rate]()), world, 150):
        worth = int((decision.estimates > 0.0).sum())
        expected = largest(decision.estimates, min(3, worth))
        assert np.flatnonzero(decision.chosen).tolist() == expected
        counts.add(len(expected))
    assert len(counts) > 1


def test_listed_subsets_take_the_largest_sum() -> None:
    listed = [*combinations(range(5), 2), (0,), ()]
    world = SemiBandit(3, actions=coaf.Listed(listed), arms=(5, 5))
    for decision in decisions(coaf.COAF(3), world, 100):
        sums = [float(decision.estimates[list(subset)].sum()) for subset in listed]
        assert decision.estimates[decision.chosen].sum() == pytest.approx(max(sums), abs=1e-12)


def test_regret_is_that_of_a_semi_bandit() -> None:
    world, rounds = SemiBandit(3, actions=coaf.AtMost(2)), 150
    scenes = list(world.scenes(rounds, 0))
    ideal = np.array([np.sort(s.means.clip(0.0))[-2:].sum() for s in scenes])
    rate = optimum(world, rounds=rounds, stream=0).rate
    assert rate == pytest.approx(ideal.mean(), rel=1e-12)
    result = coaf.compare(
        {"coaf": coaf.COAF(3)}, world, rounds=rounds, replicates=1, gamma_star=rate
    ).isel(policy=0, replicate=0)
    taken = result["mean"].values
    time = np.arange(1, rounds + 1)
    np.testing.assert_allclose(result.regret, time * rate - np.cumsum(taken), atol=1e-10)
    np.testing.assert_allclose(result.paired, np.cumsum(ideal - taken), atol=1e-10)


# --- The mortal bandit ---------------------------------------------------------------------------


def two_point(low: float, high: float, q: float, *, world: Mortal) -> float:
    """Γ* when arms are worth `high` with probability q and else `low`.

    An arm that is looked at for `base` seconds and pulled to its end brings E[n]·μ in
    base + each·E[n] seconds, where E[n] = Σ_k P(n ≥ k) = Σ_{k=1}^{n_max} (1 − p)^(k−1). By renewal
    reward, staying with the good alone earns q E[n] high / (base + q E[n] each) a second, and
    staying with all earns E[n] (q high + (1 − q) low) / (base + E[n] each). A mixed rule lies
    between them, so the better of the two is Γ*; leaving every arm earns 0.
    """
    life = sum((1.0 - world.p) ** k for k in range(world.n_max))
    good = q * life * high / (world.base + q * life * world.each)
    every = life * (q * high + (1.0 - q) * low) / (world.base + life * world.each)
    return max(good, every, 0.0)


# Two where only the good are worth it, three where all are, and one where none is.
MORTALS = [
    (0.1, 0.9, 0.5, {"p": 0.2, "base": 1.0}, 1),
    (0.3, 0.6, 0.2, {"p": 0.05, "base": 2.0, "n_max": 200}, 1),
    (0.4, 0.5, 0.3, {"p": 0.2, "base": 1.0}, 2),
    (0.1, 0.9, 0.1, {"p": 0.5, "base": 4.0, "each": 0.5, "n_max": 3}, 2),
    (0.2, 0.8, 0.5, {"p": 1.0, "base": 3.0}, 2),
    (-0.4, -0.1, 0.5, {"p": 0.2}, 0),
]


def mortal(low: float, high: float, q: float, more: dict[str, Any]) -> Mortal:
    return Mortal((low, high), weights=(1.0 - q, q), **more)


@pytest.mark.parametrize(("low", "high", "q", "more", "kinds"), MORTALS)
def test_the_mortal_optimum(
    low: float, high: float, q: float, more: dict[str, Any], kinds: int
) -> None:
    world = mortal(low, high, q, more)
    exact = two_point(low, high, q, world=world)
    assert world.optimal_rate == pytest.approx(exact, rel=1e-12)
    # The same from Bellman's equation: looking costs base·Γ*, and gains E[n] E[(μ − each·Γ*)⁺].
    gain = (1.0 - q) * max(low - world.each * exact, 0.0) + q * max(high - world.each * exact, 0.0)
    assert world.base * exact == pytest.approx(world.lifetime * gain, rel=1e-12)
    # And from a sample of 200,000 rounds, to 4 standard errors, each below 0.5 %.
    found = optimum(world)
    assert abs(found.rate - exact) <= 4.0 * found.standard_error
    assert found.standard_error <= 0.005 * exact
    assert sum(mean > world.each * exact and exact > 0.0 for mean in (low, high)) == kinds


@pytest.mark.parametrize(("low", "high", "q", "more", "kinds"), MORTALS)
def test_the_oracle_stays_exactly_with_what_exceeds_the_optimum(
    low: float, high: float, q: float, more: dict[str, Any], kinds: int
) -> None:
    world = mortal(low, high, q, more)
    truth, stays = coaf.Truth(world.means), set()
    # Knowing Γ*, from the first round on; learning it, from the 1,000th.
    for rate, first in ((coaf.Fixed(world.optimal_rate), 0), (coaf.Renewal(), 1000)):
        oracle: Rate = rate
        found = decisions(coaf.COAF(index=truth, rate=oracle), world, 1500)
        for decision in found[first:]:
            mean = float(decision.estimates[0])
            worth_it = mean > world.each * world.optimal_rate
            assert decision.chosen.tolist() == [worth_it] * decision.round.n
            if worth_it:
                stays.add(mean)
    assert len(stays) == kinds


def test_a_continuous_prior() -> None:
    # Means uniform in [0, 1] and each = 1: base·Γ = E[n] (1 − Γ)²/2, a quadratic.
    world = Mortal((np.arange(2000) + 0.5) / 2000, p=0.1, n_max=100, base=2.0)
    a = world.base / world.lifetime
    assert world.optimal_rate == pytest.approx(1.0 + a - math.sqrt(a * a + 2.0 * a), abs=1e-6)


def test_coaf_learns_the_mortal_optimum() -> None:
    """Neither the prior nor p is known to it, and the rewards are noisy."""
    world = Mortal((0.1, 0.4, 0.9), noise=0.3)
    policy = coaf.COAF(1)
    rows = list(coaf.play(policy, world, rounds=3000))
    late = rows[1000:]
    earned = sum(row["mean"] for row in late) / sum(row["seconds"] for row in late)
    # What 2,000 rounds happen to bring varies by 2 %.
    assert earned == pytest.approx(world.optimal_rate, rel=0.06)
    assert policy.rate == pytest.approx(world.optimal_rate, rel=0.06)
