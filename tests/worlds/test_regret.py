"""The two forms of regret: T·Γ* − Σμ, and Σ g(Γ*, A_j) − min_A g(Γ*, A)."""

import math
from functools import cache
from typing import Any

import numpy as np
import pytest

import coaf
from coaf.bandit.arrays import FloatArray
from coaf.worlds import ContextualBandit, Mortal, SemiBandit, Synthetic, Types, World, optimum
from coaf.worlds.optimum import STREAM

WORLDS: dict[str, World] = {
    "synthetic": Synthetic(5, seed=1),
    "setup": Synthetic(3, setup=5.0, seed=1),
    "contextual": ContextualBandit(3),
    "semi": SemiBandit(3, actions=coaf.AtMost(2)),
    "mortal": Mortal((0.1, 0.4, 0.9), noise=0.2),
    "types": Types(dim=4),
}


def policies(world: World) -> dict[str, Any]:
    return {
        "coaf": coaf.COAF(world.dim),
        "paper": coaf.COAF.paper(world.dim, within="ellipsoid", norm_bound=2.0),
        "threshold": coaf.Threshold(0.3, dim=world.dim),
        "take all": coaf.TakeAll(),
        "oracle": coaf.COAF(index=coaf.Truth(world.means), rate=coaf.RobbinsMonro(xi=1.0)),
    }


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_each_paired_term_is_a_loss(world: World) -> None:
    played = policies(world)
    rate = optimum(world, rounds=2000).rate
    for gamma_star in (rate, 0.5 * rate, 2.0 * rate, -rate):  # at any rate, true or not
        result = coaf.compare(played, world, rounds=100, replicates=2, gamma_star=gamma_star)
        terms = np.diff(result.paired.values, axis=-1, prepend=0.0)
        assert terms.min() >= -1e-11  # cumulative sums of some hundreds, rounded


@cache
def study() -> tuple[Any, float, float]:
    """200 replicates of 400 rounds, with Γ* to 0.1 % from rounds of their own."""
    world = WORLDS["synthetic"]
    exact = optimum(world, stream=STREAM)
    result = coaf.compare(policies(world), world, rounds=400, replicates=200, gamma_star=exact.rate)
    return result, exact.rate, exact.standard_error


POLICIES = pytest.mark.parametrize("name", ["coaf", "paper", "threshold", "take all", "oracle"])


def z_score(differences: FloatArray, shift: float = 0.0) -> float:
    """Mean over its standard error; `shift` is a further error of the mean."""
    error = math.hypot(differences.std(ddof=1) / math.sqrt(len(differences)), shift)
    return float(differences.mean()) / error


@POLICIES
def test_equal_in_expectation_at_a_fixed_number_of_rounds(name: str) -> None:
    result, _, error = study()
    found = result.sel(policy=name).isel(round=-1)
    seconds = float(result.seconds.sel(policy=name).sum("round").mean())
    # An error in Γ* moves their difference by Σ l(A*), which is no more than twice the time here.
    z = z_score((found.regret - found.paired).values, shift=2.0 * seconds * error)
    assert abs(z) < 4.0


@POLICIES
def test_close_at_a_fixed_time(name: str) -> None:
    result, rate, error = study()
    clock = result.seconds.sel(policy=name).cumsum("round").values
    mean = result["mean"].sel(policy=name).cumsum("round").values
    paired = result.paired.sel(policy=name).values
    horizon = 0.9 * clock[:, -1].min()
    done = (clock <= horizon).sum(axis=1) - 1  # the last completed round
    every = np.arange(len(clock))
    differences = horizon * rate - mean[every, done] - paired[every, done]
    # The unfinished round costs at most l_max·Γ*; and stopping at k(T) rather than at k(T) + 1,
    # which is a stopping time, one smallest gap: from −n_max·mean_bound to l_max·|Γ*|.
    longest, most = 10.0 + 20.0, 20.0
    slack = 4.0 * math.hypot(differences.std(ddof=1) / math.sqrt(len(every)), horizon * error)
    assert -longest * rate - slack <= differences.mean() <= longest * rate + most + slack


@pytest.mark.parametrize(("name", "times"), [("coaf", 10.0), ("oracle", 100.0)])
def test_the_paired_form_has_far_less_variance(name: str, times: float) -> None:
    found = study()[0].sel(policy=name).isel(round=-1)
    assert found.regret.values.var() > times * found.paired.values.var()


# So many items that those near the cut are dense.
DENSE = Synthetic(5, items=50_000, seed=1)


def played_at(gamma_star: float, rate: float) -> Any:
    """The optimal policy for `rate` with true means, judged at `gamma_star`."""
    world = DENSE
    policy = coaf.COAF(index=coaf.Truth(world.means), rate=coaf.Fixed(rate))
    result = coaf.compare(
        {"fixed": policy}, world, rounds=2000, replicates=8, gamma_star=gamma_star
    )
    return result.isel(policy=0, round=-1)


def test_an_error_in_the_optimum_counts_twice_not_once() -> None:
    """Near the optimum the paired form errs by ε², the other by T·ε."""
    rate = optimum(DENSE).rate
    exact = played_at(rate, rate)
    assert float(exact.paired.mean()) == pytest.approx(0.0, abs=1e-9)
    clock = 2000 * 12.0
    for sign in (-1.0, 1.0):
        near, far = (played_at(rate + sign * e * rate, rate) for e in (0.05, 0.1))
        # Four times the error for twice the distance, to a third.
        assert 3.0 < float(far.paired.mean() / near.paired.mean()) < 5.0
        shift = sign * float((near.regret - exact.regret).mean())
        assert shift == pytest.approx(0.05 * rate * clock, rel=0.1)
        assert float(near.paired.mean()) < 0.05 * shift


def test_what_an_error_in_the_optimum_does_to_a_learner() -> None:
    """Far from the optimum the paired form moves by Σ l(A_j) − l(A*_j), the other by Σ l(A_j)."""
    world, rate = WORLDS["synthetic"], study()[1]
    error = 0.01 * rate
    low, high = (
        coaf.compare(
            {"coaf": coaf.COAF(5)}, world, rounds=2000, replicates=8, gamma_star=rate + e
        ).isel(policy=0, round=-1)
        for e in (-error, error)
    )
    seconds = (high.regret - low.regret).mean() / (2.0 * error)
    moved = (high.paired - low.paired).mean() / (2.0 * error)
    assert float(seconds) == pytest.approx(2000 * 12.2, rel=0.05)
    assert abs(float(moved)) < 0.03 * float(seconds)
