"""What the paper proves, measured: round by round, along runs, and over replicates."""

import math
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coaf
from coaf.bandit.arrays import FloatArray
from coaf.bandit.select import best, gap
from coaf.bandit.theory.bounds import Scale, linear_bound, oracle_bound
from coaf.worlds import Synthetic, optimum
from coaf.worlds.optimum import Optimum, least_gaps

N_MAX, L_MIN, L_MAX = 20, 5.0, 30.0  # of the worlds below: up to 20 arms of 1 s, base 5 s to 10 s


@cache
def known(dim: int) -> tuple[Synthetic, Optimum]:
    world = Synthetic(dim, seed=1)
    return world, optimum(world)


# --- One round: the inequality that `lm: coaf_orc` and `lm: COAF` begin with ---------------------

means = st.floats(-1.0, 1.0)
rates = st.floats(-5.0, 5.0)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(data=st.data(), rate=rates, star=rates, exact=st.booleans())
def test_a_round_costs_the_error_of_the_rate_and_of_the_estimates(
    data: Any, rate: float, star: float, exact: bool
) -> None:
    n = data.draw(st.integers(1, 4))
    mu = np.array(data.draw(st.lists(means, min_size=n, max_size=n)))
    excess = st.floats(0.0, 0.0 if exact else 2.0)
    hat = mu + np.array(data.draw(st.lists(excess, min_size=n, max_size=n)))
    # Any latency, and any actions: some of the subsets, each with a time of its own.
    subsets = [tuple(i for i in range(n) if m[i]) for m in product([0, 1], repeat=n)]
    kept = data.draw(st.lists(st.sampled_from(subsets), min_size=1, unique=True))
    times = data.draw(st.lists(st.floats(0.1, 9.0), min_size=len(kept), max_size=len(kept)))
    latency, actions = coaf.Table(kept, times), coaf.Listed(kept)

    chosen = best(rate, hat, latency, actions).chosen
    masks = [np.isin(np.arange(n), subset) for subset in kept]
    ideal = min(masks, key=lambda m: gap(star, m, latency, mu))
    left = gap(star, chosen, latency, mu)
    optimism = float((hat - mu)[chosen].sum())
    assert left <= max(times) * abs(rate - star) + gap(star, ideal, latency, mu) + optimism + 1e-9
    # Sharper, and all that is used: the times of the two actions differ by less than l_max.
    apart = abs(latency.seconds(chosen) - latency.seconds(ideal))
    assert left <= apart * abs(rate - star) + gap(star, ideal, latency, mu) + optimism + 1e-9


@pytest.mark.parametrize("dim", [2, 5])
def test_the_same_along_a_run(dim: int) -> None:
    world, found = known(dim)
    policy, star = coaf.COAF.paper(dim, noise=0.5, delta=0.01), found.rate
    for scene in world.scenes(400, 0):
        decision = policy.decide(scene.round)
        arms, mu, latency = np.flatnonzero(decision.chosen), scene.means, scene.round.latency
        excess = decision.estimates - mu
        assert excess.min() >= -1e-9  # with probability 0.99 at all times
        ideal = best(star, mu, latency, coaf.AnySubset()).gap
        cost = gap(star, decision.chosen, latency, mu) - ideal
        assert cost <= L_MAX * abs(decision.rate - star) + excess[arms].sum() + 1e-9
        policy.commit(decision)
        policy.learn(decision, arms, scene.rewards[arms])


# --- The rate: Σ c_j (Γ_j − Γ*)² of `lm: coaf_orc`, steps 2 to 4 ---------------------------------


def oracle(world: Synthetic) -> coaf.COAF:
    rate = coaf.RobbinsMonro(xi=1.0, n_max=N_MAX, l_min=L_MIN)
    return coaf.COAF(index=coaf.Truth(world.means), rate=rate)


def test_the_squared_error_of_the_rate_is_bounded_as_in_the_proof() -> None:
    world, found = known(5)
    rounds, replicates, star = 2000, 40, found.rate
    result = coaf.compare(
        {"oracle": oracle(world)}, world, rounds=rounds, replicates=replicates, gamma_star=star
    ).sel(policy="oracle")
    gap_bound = Scale(1.0, n_max=N_MAX, l_min=L_MIN, l_max=L_MAX).gap_bound
    squares, drifts = np.empty((2, replicates, rounds))
    for r in range(replicates):
        batch = world.batch(rounds, r)
        rate = result.rate.values[r]
        h = result.seconds.values[r] * rate - result["mean"].values[r]
        assert np.abs(h).max() <= gap_bound
        squares[r] = np.cumsum(batch.base * (rate - star) ** 2)
        drifts[r] = np.cumsum((star - rate) * least_gaps(batch, star)[0])
        # Line 3 of the algorithm, which the proof reads as online gradient descent ...
        gamma, most = np.cumsum(batch.base), N_MAX / L_MIN
        np.testing.assert_allclose(rate[1:], np.clip(rate - h / gamma, -most, most)[:-1], atol=1e-9)
        # ... whose regret is bounded on every path and at every round.
        steps = np.cumsum(h**2 / gamma)
        assert np.all(squares[r] <= steps + 2.0 * drifts[r] + 1e-9)
    # On average the drift, a martingale, vanishes (4 standard errors; what Γ* itself is known to
    # adds another) ...
    last = drifts[:, -1]
    known_to = found.standard_error * np.abs(result.rate.values - star).sum(axis=1).mean() * 13.0
    assert abs(last.mean()) <= 4.0 * math.hypot(last.std() / math.sqrt(replicates), known_to)
    # ... which leaves the proof's explicit bound, at every round.
    k = np.arange(1, rounds + 1)
    assert np.all(squares.mean(axis=0) <= gap_bound**2 / L_MIN * (1.0 + np.log(k)))


def test_the_rate_of_the_oracle_converges() -> None:
    world, found = known(5)
    result = coaf.compare(
        {"oracle": oracle(world)}, world, rounds=4000, replicates=40, gamma_star=found.rate
    )
    error = np.sqrt(((result.rate - found.rate) ** 2).mean("replicate")).values[0]
    at = error[[39, 399, 3999]]
    # Like 1/√j: each tenfold of rounds divides the error by 3.2. A root mean square of 40 is known
    # to 11 %; so between 2 and 5.
    assert np.all((at[:-1] / at[1:] > 2.0) & (at[:-1] / at[1:] < 5.0))
    assert at[-1] < 0.01 * found.rate


# --- The confidence set: `lm: lcb_cr` ------------------------------------------------------------


def covered(belief: coaf.Linear, world: Synthetic, *, rounds: int, replicate: int) -> bool:
    """Whether θ* stays within the ellipsoid all the time."""
    policy = coaf.COAF(belief=belief)
    for scene in world.scenes(rounds, replicate):
        decision = policy.decide(scene.round)
        arms = np.flatnonzero(decision.chosen)
        policy.commit(decision)
        policy.learn(decision, arms, scene.rewards[arms])
        error = belief.theta - world.theta
        if error @ belief.precision @ error > belief.radius**2:
            return False
    return True


def coverage(dim: int, *, replicates: int, rounds: int = 100, **settings: Any) -> float:
    world = Synthetic(dim, noise=0.5, seed=1)
    # A small ridge: else √λ ‖θ*‖ alone would do.
    common: dict[str, Any] = {"noise": 0.5, "regularization": 0.01, "delta": 0.1} | settings
    held = [
        covered(coaf.Linear(dim, **common), world, rounds=rounds, replicate=r)
        for r in range(replicates)
    ]
    return float(np.mean(held))


@pytest.mark.parametrize("radius", ["determinant", "printed"])
def test_the_ellipsoid_holds_the_truth_at_all_times(radius: str) -> None:
    # At least 1 − δ = 0.9 is promised; 60 replicates of 100 rounds show 1.00 for both.
    assert coverage(3, replicates=60, radius=radius) >= 0.9


def test_a_part_of_the_radius_does_not() -> None:
    # So the test above could fail: half the radius holds the truth in about half the replicates,
    # and the tuned default, a tenth of it, in none.
    assert coverage(3, replicates=60, scale=0.5) < 0.9
    assert coverage(3, replicates=20, scale=0.1, regularization=0.1, noise=1.0, delta=0.05) == 0.0


@pytest.mark.soak
@pytest.mark.parametrize("radius", ["determinant", "printed"])
@pytest.mark.parametrize("delta", [0.5, 0.1])
@pytest.mark.parametrize("dim", [1, 2, 5, 10])
def test_coverage_over_many_replicates(dim: int, delta: float, radius: str) -> None:
    found = coverage(dim, replicates=300, rounds=300, radius=radius, delta=delta)
    print(f"dim={dim} delta={delta} {radius}: coverage {found:.3f}")
    assert found >= 1.0 - delta


# --- Regret grows slower than time ---------------------------------------------------------------


def slopes(dim: int, *, rounds: int, replicates: int) -> dict[str, float]:
    """Slope of log mean paired regret on log time, over the last tenfold of rounds."""
    world, found = known(dim)
    truth = coaf.Truth(world.means)
    result = coaf.compare(
        {
            "coaf": coaf.COAF(dim),
            "paper": coaf.COAF.paper(dim),
            "thompson": coaf.COAF.paper(dim, noise=0.5, index="thompson"),
            "oracle": oracle(world),
            "wrong cut": coaf.Threshold(2.0 * found.rate, index=truth),
            "wrong rate": coaf.COAF(index=truth, rate=coaf.Fixed(0.5 * found.rate)),
        },
        world,
        rounds=rounds,
        replicates=replicates,
        gamma_star=found.rate,
    )
    at = np.unique(np.geomspace(rounds // 10, rounds - 1, 30).astype(int))
    regret = result.paired.mean("replicate").values[:, at]
    clock = result.seconds.cumsum("round").mean("replicate").values[:, at]
    names = [str(name) for name in result.policy.values]
    return {name: _slope(t, r) for name, t, r in zip(names, clock, regret, strict=True)}


def _slope(clock: FloatArray, regret: FloatArray) -> float:
    return float(np.polyfit(np.log(clock), np.log(regret), 1)[0])


def check(found: dict[str, float]) -> None:
    for name in ("coaf", "paper", "thompson", "oracle"):
        assert found[name] < 0.7, name
    for name in ("wrong cut", "wrong rate"):
        assert 0.9 < found[name] < 1.1, name


@pytest.mark.parametrize("dim", [3, 5])
def test_regret_grows_slower_than_time(dim: int) -> None:
    """3,000 rounds, 8 replicates: √T is 0.5; a wrong cut loses the same every round, so 1."""
    check(slopes(dim, rounds=3000, replicates=8))


@pytest.mark.soak
@pytest.mark.parametrize("dim", [3, 10])
def test_regret_grows_slower_than_time_for_long(dim: int) -> None:
    """30,000 rounds, 20 replicates."""
    found = slopes(dim, rounds=30_000, replicates=20)
    print(f"dim={dim}", {name: round(slope, 3) for name, slope in found.items()})
    check(found)


@pytest.mark.soak
def test_how_loose_the_bounds_are() -> None:
    """Printed, not asserted: a bound that is thousands of times too large cannot fail."""
    world, found = known(5)
    policies = {"oracle": oracle(world), "paper": coaf.COAF.paper(5, n_max=N_MAX, l_min=L_MIN)}
    for rounds in (300, 3000, 30_000):
        result = coaf.compare(policies, world, rounds=rounds, replicates=8, gamma_star=found.rate)
        clock = float(result.seconds.sum("round").mean())
        scale = Scale(clock, n_max=N_MAX, l_min=L_MIN, l_max=L_MAX)
        bounds = {
            "oracle": oracle_bound(scale),
            "paper": linear_bound(scale, xi=0.5, delta=0.001, dim=5),
        }
        for name, bound in bounds.items():
            measured = float(result.paired.sel(policy=name).isel(round=-1).mean())
            print(f"{rounds} rounds, {name}: bound / measured = {bound / measured:.3g}")
