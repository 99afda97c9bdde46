"""Growth, differences and shares, with intervals that hold what they should."""

from typing import Any

import numpy as np
import pytest
import xarray

from coaf.bandit.arrays import FloatArray
from coaf.worlds.statistics import Estimate, difference, growth, mean, share_of_optimum


def dataset(**curves: FloatArray) -> xarray.Dataset:
    """Paired regret of each policy, (replicates, rounds), one second a round, best rate 2."""
    names, paired = list(curves), np.stack(list(curves.values()))
    axes = ("policy", "replicate", "round")
    data: dict[str, Any] = {"paired": (axes, paired), "regret": (axes, paired - 1.0)}
    data["seconds"] = (axes, np.ones_like(paired))
    return xarray.Dataset(data, coords={"policy": names}, attrs={"gamma_star": 2.0})


TIME = np.arange(1.0, 401.0)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_the_power_of_a_power_law(power: float) -> None:
    found = growth(dataset(a=np.tile(3.0 * TIME**power, (5, 1))), "a")
    assert found.value == pytest.approx(power, abs=1e-9)
    assert (found.low, found.high) == pytest.approx((power, power), abs=1e-9)


@pytest.mark.parametrize("early", [0, 1])
def test_where_nothing_was_lost_early_there_is_nothing_to_grow_from(early: int) -> None:
    curves = np.where(TIME > 300.0, 1.0, 0.0) * np.ones((10, 1))
    curves[:early] = 1.0
    found = growth(dataset(a=curves), "a")
    assert not found.known
    assert found.plain() == {"value": None, "low": None, "high": None}


def test_growth_of_noisy_curves_has_an_interval() -> None:
    rng = np.random.default_rng(0)
    curves = np.cumsum(rng.exponential(size=(60, 400)), axis=1)
    found = growth(dataset(a=curves), "a")
    assert found.low < 1.0 < found.high
    assert found.high - found.low < 0.1


def test_differences_are_taken_over_the_same_replicates() -> None:
    luck = np.random.default_rng(1).normal(scale=100.0, size=(40, 1))
    result = dataset(a=luck + TIME, b=luck + 0.5 * TIME)
    found = difference(result, "paired", "a", "b")
    assert (found.value, found.low, found.high) == pytest.approx((200.0, 200.0, 200.0))


def test_the_share_is_what_regret_leaves() -> None:
    assert share_of_optimum(dataset(a=np.tile(TIME / 10.0, (2, 1))), "a") == pytest.approx(0.95)


@pytest.mark.parametrize("replicates", [4, 20, 100])
def test_intervals_hold_the_truth_as_often_as_they_say(replicates: int) -> None:
    rng = np.random.default_rng(2)
    found = [mean(rng.normal(1.0, 3.0, size=replicates)) for _ in range(2000)]
    inside = np.mean([e.low <= 1.0 <= e.high for e in found])
    assert inside == pytest.approx(0.95, abs=0.02)  # four standard errors of 2,000 trials


def test_one_replicate_says_nothing_of_others() -> None:
    assert mean(np.array([3.0])) == Estimate(3.0, -np.inf, np.inf)


def test_an_estimate_reads_well() -> None:
    assert str(Estimate(0.97654, 0.92, 1.04)) == "0.977 [0.92, 1.04]"
