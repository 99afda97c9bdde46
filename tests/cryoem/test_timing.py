"""Times on three levels: their sums, robust to what logs hold, and learned without maintenance."""

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coaf.cryoem.timing import (
    FAST,
    LEVELS,
    MAINTENANCE,
    SLOW,
    LearnedTiming,
    Timing,
    steady,
)


def test_presets_are_the_papers_and_the_recorded_grids() -> None:
    for timing, (survey, enter, expose) in ((FAST, (12.09, 51.99, 6.66)), (SLOW, (10, 95, 91))):
        assert (timing.survey, timing.enter, timing.expose) == (survey, enter, expose)


def test_a_square_is_paid_by_one_round_or_shared_by_all() -> None:
    nobody = np.zeros(3, dtype=np.bool_)
    opening, later, share = (FAST.latency(opens=opens) for opens in (True, False, None))
    assert opening.seconds(nobody) == pytest.approx(15.0 + 30.0 + 39.63)
    assert later.seconds(nobody) == FAST.overhead > 0.0
    assert share.seconds(nobody) * FAST.patches == pytest.approx(opening.seconds(nobody))


def test_shots_of_a_hole_cost_less_than_holes() -> None:
    latency = FAST.latency(shots=[1, 3])
    both = latency.seconds(np.array([True, True]))
    one = latency.seconds(np.array([True, False]))
    assert both - one == pytest.approx(6.66 + 2 * 4.0)
    assert one == pytest.approx(12.09 + 51.99 + 6.66)


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf"), "soon"])
def test_times_that_are_none_are_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="move"):
        Timing(1.0, 1.0, 1.0, wrong, 1.0, 1.0)
    with pytest.raises(ValueError, match="row 1"):
        Timing.from_log([("move", 1.0), ("move", wrong)], prior=FAST)
    with pytest.raises(ValueError, match="seconds of focus"):
        LearnedTiming(FAST).learn("focus", wrong)


def test_unknown_levels_are_refused_and_the_known_listed() -> None:
    with pytest.raises(ValueError, match=r"row 0: 'warp' is no level; there are stage, height"):
        Timing.from_log([("warp", 1.0)], prior=FAST)
    with pytest.raises(ValueError, match="'warp' is no level"):
        LearnedTiming(FAST).learn("warp", 1.0)


def test_a_log_with_a_heavy_tail_gives_the_usual_times_and_says_what_it_left_out() -> None:
    rng = np.random.default_rng(0)
    true = {level: float(getattr(SLOW, level)) for level in LEVELS}
    rows = [
        (k, t * float(np.exp(0.05 * rng.standard_normal())))
        for k, t in true.items()
        for _ in range(300)
    ]
    odd = [("move", 9000.0)] * 20 + [("expose", 35745.0)]
    upkeep = [(kind, 1000.0) for kind in MAINTENANCE] * 5
    found = Timing.from_log([*odd, *rows, *upkeep])
    assert found.left_out == {"move": 20, "expose": 1}
    assert found.maintenance == 20
    assert found.counts["move"] == 320
    for level, seconds in true.items():
        assert getattr(found.timing, level) == pytest.approx(seconds, rel=0.02)


def test_a_second_mode_is_no_outlier() -> None:
    seconds = np.array([91.0] * 75 + [74.0] * 25)
    mean, left_out = steady(seconds)
    assert mean == pytest.approx(86.75)
    assert left_out == 0


def test_levels_that_a_log_lacks_come_from_the_prior_or_are_named() -> None:
    rows = [("expose", 10.0)] * 3
    assert Timing.from_log(rows, prior=FAST).timing.move == FAST.move
    with pytest.raises(ValueError, match="no stage, height, image, move, focus, shot"):
        Timing.from_log(rows)


def test_learned_times_follow_a_slower_microscope_and_not_its_tail() -> None:
    rng = np.random.default_rng(1)
    learned = LearnedTiming(FAST)
    for _ in range(300):
        tail = 2000.0 if rng.random() < 0.02 else 0.0
        learned.learn("move", 60.0 * float(np.exp(0.1 * rng.standard_normal())) + tail)
    plain_mean = 60.0 + 0.02 * 2000.0
    assert 58.0 < learned.timing.move < 66.0 < plain_mean
    assert learned.clipped["move"] >= 2
    assert learned.timing.expose == FAST.expose


@given(st.lists(st.tuples(st.sampled_from(MAINTENANCE), st.floats(0.0, 1e5)), max_size=30))
def test_maintenance_never_trains(events: list[tuple[str, float]]) -> None:
    learned = LearnedTiming(FAST)
    for kind, seconds in events:
        learned.learn(kind, seconds)
    assert learned.timing == FAST
    found = Timing.from_log([*events, ("move", 50.0)], prior=FAST)
    assert (found.timing.move, found.maintenance) == (50.0, len(events))


@given(st.lists(st.tuples(st.sampled_from(LEVELS), st.floats(0.0, 1e4)), max_size=40))
def test_a_restored_timing_goes_on_as_if_nothing_had_happened(
    rows: list[tuple[str, float]],
) -> None:
    learned = LearnedTiming(SLOW)
    half = len(rows) // 2
    for level, seconds in rows[:half]:
        learned.learn(level, seconds)
    again = LearnedTiming.restore(json.dumps(learned.state()))
    for level, seconds in rows[half:]:
        learned.learn(level, seconds)
        again.learn(level, seconds)
    assert again.state() == learned.state()


together = st.lists(st.sampled_from(LEVELS), min_size=1, max_size=4, unique=True)


usual_seconds = st.just(0.0) | st.floats(1e-3, 500.0)


@given(together, st.lists(usual_seconds, min_size=7, max_size=7), st.floats(0.0, 2000.0))
def test_what_took_together_is_shared_as_expected(
    levels: list[str], usual: list[float], seconds: float
) -> None:
    """The shares add up to the whole, and stand to each other as what was expected."""

    class Told(LearnedTiming):
        def learn(self, level: str, seconds: float) -> None:
            shares[level] = seconds
            super().learn(level, seconds)

    shares: dict[str, float] = {}
    prior = dict(zip(LEVELS, usual, strict=True))
    learned = Told(Timing(**prior))
    learned.learn_together(levels, seconds)
    assert list(shares) == levels
    assert sum(shares.values()) == pytest.approx(seconds, rel=1e-9, abs=1e-9)
    whole = sum(Fraction(prior[level]) for level in levels)
    for level in levels:
        if whole > 0.0:
            due = prior[level] * (seconds / whole)
            assert shares[level] == pytest.approx(due, rel=1e-9, abs=1e-9)
        else:
            assert shares[level] == pytest.approx(seconds / len(levels))


def test_what_took_together_must_be_seconds_of_levels() -> None:
    learned = LearnedTiming(FAST)
    with pytest.raises(ValueError, match="learn_together: 'walk' is no level; there are stage"):
        learned.learn_together(("move", "walk"), 10.0)
    with pytest.raises(ValueError, match="seconds of move and focus is -1"):
        learned.learn_together(("move", "focus"), -1.0)
    assert learned.counts == LearnedTiming(FAST).counts, "what is refused changes nothing"


@given(st.lists(st.floats(1.0, 100.0), min_size=1, max_size=60))
def test_a_learned_time_stays_within_what_was_measured_and_expected(seconds: list[float]) -> None:
    learned = LearnedTiming(FAST)
    for one in seconds:
        learned.learn("focus", one)
    low, high = min([*seconds, FAST.focus]), max([*seconds, FAST.focus])
    assert low - 1e-9 <= learned.timing.focus <= high + 1e-9
