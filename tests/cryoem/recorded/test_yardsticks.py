"""What can be had from a recorded grid, against every plan there is on tiny ones."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from coaf.bandit.arrays import BoolArray, FloatArray, IntArray
from coaf.cryoem.recorded.recording import Times
from coaf.cryoem.recorded.yardsticks import best_fixed_cut, calibrated, clairvoyant

Tiny = tuple[FloatArray, FloatArray, IntArray, Times]


@st.composite
def tiny(draw: st.DrawFn) -> Tiny:
    """Predictions and outcomes of up to eight holes in up to three patches."""
    counts = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    n = sum(counts)
    predicted = draw(st.lists(st.integers(3, 6), min_size=n, max_size=n))
    good = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    seconds = (draw(st.integers(1, 20)), draw(st.integers(0, 60)), draw(st.integers(1, 20)))
    starts = np.concatenate([[0], np.cumsum(counts)])
    return np.array(predicted) * 1.0, np.array(good) * 1.0, starts, Times(*map(float, seconds))


def ratio(plan: BoolArray, good: FloatArray, starts: IntArray, times: Times) -> float:
    """Good per second, hole by hole: every patch is surveyed, one with a hole taken is entered."""
    won, spent = 0.0, 0.0
    for first, last in pairwise(starts):
        spent += times.survey
        if plan[first:last].any():
            spent += times.move
        for hole in range(first, last):
            if plan[hole]:
                spent += times.expose
                won += good[hole]
    return won / spent


@settings(max_examples=60, deadline=None)
@given(tiny())
def test_no_plan_beats_the_clairvoyant_and_one_is_as_good(grid: Tiny) -> None:
    _, good, starts, times = grid
    plans = [np.array(plan) for plan in product([False, True], repeat=len(good))]
    best = max(ratio(plan, good, starts, times) for plan in plans)
    assert clairvoyant(good, starts, times) == pytest.approx(best, rel=1e-9, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(tiny())
def test_the_best_cut_of_all(grid: Tiny) -> None:
    predicted, good, starts, times = grid
    best = max(ratio(predicted < cut, good, starts, times) for cut in np.arange(3.25, 7.0, 0.25))
    assert best_fixed_cut(predicted, good, starts, times) == pytest.approx(best)


def isotonic(predicted: FloatArray, good: FloatArray) -> FloatArray:
    """Pool adjacent violators, by the minimax formula: max over ends of min over beginnings."""
    values = np.unique(predicted)
    fitted = {}
    for k, value in enumerate(values):
        runs = [
            [good[(predicted >= low) & (predicted <= high)].mean() for low in values[: k + 1]]
            for high in values[k:]
        ]
        fitted[value] = max(min(run) for run in runs)
    return np.array([fitted[p] for p in predicted])


@settings(max_examples=60, deadline=None)
@given(tiny())
def test_the_calibrated_policy_by_every_plan(grid: Tiny) -> None:
    """The plan that is best by calibrated chances, scored by outcomes; ties may go either way."""
    predicted, good, starts, times = grid
    chance = isotonic(predicted, good)
    plans = [np.array(plan) for plan in product([False, True], repeat=len(good))]
    expected = np.array([ratio(plan, chance, starts, times) for plan in plans])
    assume(expected.max() > 0.0)
    near = [p for p, e in zip(plans, expected, strict=True) if e >= expected.max() - 1e-9]
    scores = [ratio(plan, good, starts, times) for plan in near]
    found = calibrated(predicted, good, starts, times)
    assert min(scores) - 1e-9 <= found <= max(scores) + 1e-9
    assert found <= clairvoyant(good, starts, times) + 1e-9


def test_a_grid_without_a_good_hole() -> None:
    predicted, good, starts = np.array([4.0, 5.0]), np.zeros(2), np.array([0, 2])
    assert clairvoyant(good, starts, Times()) == 0.0
    assert best_fixed_cut(predicted, good, starts, Times()) == 0.0
    assert calibrated(predicted, good, starts, Times()) == 0.0
