"""The experiment: thresholds, claims that hold and claims that do not, and its speed lines."""

from itertools import pairwise

import numpy as np
import pytest
import xarray

import coaf
from coaf.worlds import compare, optimum
from coaf.worlds.compiled import coded
from coaf.worlds.movielens import experiment
from coaf.worlds.movielens.experiment import DEFAULT, PAPER, UCB, Cuts
from coaf.worlds.movielens.films import Films
from coaf.worlds.movielens.sensitivity import SWEEPS, TITLES, sensitivity
from coaf.worlds.movielens.world import MovieLens


def test_every_policy_is_played_in_compiled_code(films: Films) -> None:
    world = MovieLens(films)
    policies = experiment.policies(world, rounds=100)
    assert tuple(policies) == (*PAPER, DEFAULT)
    assert all(coded(policy, world) is not None for policy in policies.values())


@pytest.mark.parametrize("cut", [1.75, 3.0, 4.2])
def test_what_a_threshold_reaches_is_what_it_gets_when_played(films: Films, cut: float) -> None:
    world = MovieLens(films)
    best = optimum(world)
    cuts = experiment.fixed_cuts(world, best)
    policy = coaf.Threshold(cut, index=coaf.Truth(world.means))
    played = compare({"cut": policy}, world, rounds=2000, replicates=20, gamma_star=best.rate)
    lost = float(played.paired.isel(round=-1).mean()) / (
        best.rate * float(played.seconds.sum("round").mean())
    )
    assert 1.0 - cuts.share(cut) == pytest.approx(lost, abs=0.006)


def test_the_best_threshold_is_the_best_rate(films: Films) -> None:
    world = MovieLens(films)
    best = optimum(world)
    cuts = experiment.fixed_cuts(world, best)
    assert cuts.share(best.rate) > 0.9999
    assert cuts.shares.max() == 1.0


def test_which_thresholds_matter() -> None:
    grid = np.linspace(1.0, 5.0, 401)
    cuts = Cuts(grid, 1.0 - 0.1 * np.abs(grid - 3.0), between=0.1)
    assert cuts.first_below(0.95) == pytest.approx(3.5, abs=0.02)
    assert cuts.last_below(0.95) == pytest.approx(2.5, abs=0.02)
    assert "below 2.49 or above 3.51 to lose 5%" in experiment.matters(cuts)
    flat = Cuts(grid, np.ones(401), between=0.0)
    assert experiment.matters(flat) == "No threshold loses 1 %."


def curves(powers: dict[str, float], heights: dict[str, float]) -> xarray.Dataset:
    """Regret that grows as stated, with a little luck in each replicate."""
    rng, time = np.random.default_rng(0), np.arange(1.0, 401.0)
    paired = np.stack(
        [
            heights[name] * rng.uniform(0.9, 1.1, size=(30, 1)) * (time / 400.0) ** powers[name]
            for name in PAPER
        ]
    )
    axes = ("policy", "replicate", "round")
    return xarray.Dataset(
        {
            "paired": (axes, paired),
            "regret": (axes, paired),
            "seconds": (axes, np.ones_like(paired)),
        },
        coords={"policy": list(PAPER)},
        attrs={"gamma_star": 2.0},
    )


CUTS = Cuts(np.linspace(1.0, 5.0, 5), np.array([0.9, 1.0, 0.8, 0.5, 0.1]), between=0.2)


def test_claims_that_hold() -> None:
    powers = dict(zip(PAPER, (1.0, 0.1, 0.5, 0.4), strict=True))
    heights = dict(zip(PAPER, (50.0, 5.0, 40.0, 20.0), strict=True))
    found = experiment.claims(curves(powers, heights), CUTS)
    assert [c.held for c in found] == [True] * 5
    assert "more than COAF's" in found[-1].evidence


def test_claims_that_do_not_hold() -> None:
    powers = dict(zip(PAPER, (0.2, 1.0, 1.0, 1.05), strict=True))
    heights = dict(zip(PAPER, (50.0, 30.0, 10.0, 20.0), strict=True))
    found = experiment.claims(curves(powers, heights), CUTS)
    assert [c.held for c in found] == [False] * 5
    assert "less than COAF's" in found[-1].evidence


def test_nearly_linear_is_not_both() -> None:
    powers = dict.fromkeys(PAPER, 0.95)
    found = experiment.claims(curves(powers, dict.fromkeys(PAPER, 10.0)), CUTS)
    assert [c.held for c in found[:3]] == [False, True, True]


def test_without_regret_the_question_stays_open() -> None:
    result = curves(dict.fromkeys(PAPER, 0.5), dict.fromkeys(PAPER, 10.0)) * 0.0
    result.attrs["gamma_star"] = 2.0
    result["seconds"] = result.seconds + 1.0
    found = experiment.claims(result, CUTS)
    assert not any(c.held for c in found)
    assert all(c.evidence.startswith("Open") for c in found[:3])


def test_a_tie_is_said_to_be_one() -> None:
    powers = dict.fromkeys(PAPER, 0.5)
    found = experiment.claims(curves(powers, dict.fromkeys(PAPER, 10.0)), CUTS)
    assert not found[-1].held
    assert "not clearly more or less" in found[-1].evidence


def test_sensitivity_changes_one_thing_at_a_time(films: Films) -> None:
    told: list[tuple[int, int]] = []
    rows = sensitivity(
        films, rounds=30, replicates=2, progress=lambda done, total: told.append((done, total))
    )
    cases = {(row["parameter"], row["value"]) for row in rows}
    assert cases == {(name, float(value)) for name, values in SWEEPS.items() for value in values}
    assert set(TITLES) == set(SWEEPS)
    shown = {name: {row["policy"] for row in rows if row["parameter"] == name} for name in SWEEPS}
    nothing_to_choose = ("xi", "regularization", "delta")
    assert shown == {n: {UCB} if n in nothing_to_choose else {UCB, DEFAULT} for n in SWEEPS}
    assert all(row["low"] <= row["regret"] <= row["high"] for row in rows)
    assert told[-1][0] == told[-1][1]
    assert all(a <= b for (a, _), (b, _) in pairwise(told))
    rates = {row["value"]: row["gamma_star"] for row in rows if row["parameter"] == "survey"}
    assert sorted(rates.values(), reverse=True) == [rates[v] for v in sorted(rates)]
