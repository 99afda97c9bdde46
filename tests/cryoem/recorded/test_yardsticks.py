"""What can be had from a recorded grid, against every plan there is on tiny ones."""

from collections.abc import Callable
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from coaf.bandit.arrays import BoolArray, FloatArray
from coaf.cryoem.recorded.build import HoleRow, ShotRow, from_rows
from coaf.cryoem.recorded.columns import MEASURED, Column, RecordingError
from coaf.cryoem.recorded.recording import Recording
from coaf.cryoem.recorded.seconds import Seconds
from coaf.cryoem.recorded.yardsticks import best_fixed_cut, calibrated, clairvoyant_rate
from coaf.cryoem.reward import Particles
from cryoem.recorded.recordings import small

COUNT = Particles(scale=1.0, failed="bad")


def grid_of(
    sizes: list[int], ice: list[float], particles: list[list[int]], seconds: Seconds
) -> Recording:
    """Patches of so many holes, with what each shot of a hole gives."""
    patches = np.repeat(np.arange(len(sizes)), sizes).tolist()
    holes = [
        HoleRow(f"h{i}", f"p{p}", "s", "g", known=[value])
        for i, (p, value) in enumerate(zip(patches, ice, strict=True))
    ]
    shots = [
        ShotRow(f"h{i}", k, values={"particles": count})
        for i, counts in enumerate(particles)
        for k, count in enumerate(counts)
    ]
    described = {"ice": Column("before"), "particles": MEASURED["particles"]}
    return from_rows("tiny", holes, shots, described, seconds)


@st.composite
def tiny(draw: st.DrawFn) -> Recording:
    """Up to nine holes of one to three shots in up to three patches."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    n = sum(sizes)
    ice = draw(st.lists(st.integers(3, 6), min_size=n, max_size=n))
    shots = st.lists(st.integers(0, 2), min_size=1, max_size=3)
    particles = draw(st.lists(shots, min_size=n, max_size=n))
    whole = st.integers(1, 20)
    seconds = Seconds(draw(whole), draw(st.integers(0, 60)), draw(whole), draw(whole))
    return grid_of(sizes, [float(value) for value in ice], particles, seconds)


def ratio(plan: BoolArray, worth: FloatArray, held: Recording) -> float:
    """Reward per second, hole by hole: each patch is surveyed, one with a hole taken entered."""
    times = held.seconds
    won, spent = 0.0, 0.0
    for first, last in pairwise(held.starts):
        spent += times.survey
        if plan[first:last].any():
            spent += times.move
        for hole in range(first, last):
            if plan[hole]:
                spent += times.expose + times.shot * (held.counts[hole] - 1)
                won += worth[hole]
    return won / spent


def plans(held: Recording) -> list[BoolArray]:
    return [np.array(plan) for plan in product([False, True], repeat=len(held.holes))]


@settings(max_examples=60, deadline=None)
@given(tiny())
def test_no_plan_beats_the_clairvoyant_and_one_is_as_good(held: Recording) -> None:
    worth = held.worth(COUNT).rewards
    best = max(ratio(plan, worth, held) for plan in plans(held))
    assert clairvoyant_rate(held, COUNT) == pytest.approx(best, rel=1e-9, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(tiny())
def test_the_best_cut_of_all(held: Recording) -> None:
    ice, worth = held.column("ice"), held.worth(COUNT).rewards
    cuts = np.arange(2.75, 7.0, 0.25)
    best = max(ratio(side, worth, held) for cut in cuts for side in (ice < cut, ice > cut))
    assert best_fixed_cut(held, COUNT, "ice") == pytest.approx(best)


def isotonic(held: Recording, sign: float) -> FloatArray:
    """What a shot brings, by the minimax formula: max over ends of min over beginnings."""
    ice, worth = sign * held.column("ice"), held.worth(COUNT).rewards
    values = np.unique(ice)

    def mean(low: float, high: float) -> float:
        inside = (ice >= low) & (ice <= high)
        return float(worth[inside].sum() / held.counts[inside].sum())

    fitted = {
        value: max(min(mean(low, high) for low in values[: k + 1]) for high in values[k:])
        for k, value in enumerate(values)
    }
    return np.array([fitted[value] for value in ice])


@settings(max_examples=60, deadline=None)
@given(tiny())
def test_the_calibrated_policy_by_every_plan(held: Recording) -> None:
    """The better of the plans that are best by what a falling and a rising column mean.

    Ties between plans may go either way.
    """
    worth = held.worth(COUNT).rewards
    assume(worth.any())
    least, most = 0.0, 0.0
    for sign in (1.0, -1.0):
        chance = isotonic(held, sign) * held.counts
        expected = np.array([ratio(plan, chance, held) for plan in plans(held)])
        near = expected >= expected.max() - 1e-9
        scores = [
            ratio(p, worth, held) for p, is_near in zip(plans(held), near, strict=True) if is_near
        ]
        least, most = max(least, min(scores)), max(most, *scores, 0.0)
    found = calibrated(held, COUNT, "ice")
    assert least - 1e-9 <= found <= most + 1e-9
    assert found <= clairvoyant_rate(held, COUNT) + 1e-9


def test_seconds_may_be_others() -> None:
    held = grid_of([2], [1.0, 2.0], [[1], [0]], Seconds(1.0, 1.0, 1.0))
    assert clairvoyant_rate(held, COUNT) == pytest.approx(1 / 3)
    assert clairvoyant_rate(held, COUNT, Seconds(2.0, 3.0, 5.0)) == pytest.approx(1 / 10)
    assert best_fixed_cut(held, COUNT, "ice", Seconds(2.0, 3.0, 5.0)) == pytest.approx(1 / 10)
    assert calibrated(held, COUNT, "ice", Seconds(2.0, 3.0, 5.0)) == pytest.approx(1 / 10)


def test_a_grid_that_gives_nothing() -> None:
    held = grid_of([2], [4.0, 5.0], [[0], [0]], Seconds())
    for yardstick in (clairvoyant_rate(held, COUNT), best_fixed_cut(held, COUNT, "ice")):
        assert yardstick == 0.0
    assert calibrated(held, COUNT, "ice") == 0.0


def test_holes_that_no_policy_could_be_tried_on_are_left_out() -> None:
    held = small()
    assert clairvoyant_rate(held, COUNT) == clairvoyant_rate(held.playable(), COUNT)
    assert best_fixed_cut(held, COUNT, "ice") == best_fixed_cut(held.playable(), COUNT, "ice")


@pytest.mark.parametrize("yardstick", [best_fixed_cut, calibrated])
def test_a_cut_needs_a_column(yardstick: Callable[..., float]) -> None:
    with pytest.raises(RecordingError, match="has no column 'fog' known before exposure"):
        yardstick(small(), COUNT, "fog")
