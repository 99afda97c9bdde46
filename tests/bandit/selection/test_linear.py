"""Capped and grouped rounds: partial subsets lead to what enumeration finds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coaf.bandit.actions import AtMost, Capped, Grouped
from coaf.bandit.latency import Additive, Tree
from coaf.bandit.select import best
from coaf.bandit.selection.found import WORK
from coaf.bandit.selection.linear import ENUMERATED, by_enumeration
from coaf.bandit.selection.sorting import Limits
from coaf.bandit.selection.widening import best_by_steps


# Quarters make ties.
def quarters(low: int, high: int) -> st.SearchStrategy[float]:
    return st.integers(4 * low, 4 * high).map(lambda q: q / 4)


@st.composite
def problems(draw: st.DrawFn) -> tuple[float, np.ndarray, Tree, Limits, float]:
    n = draw(st.integers(1, 8))
    parents = [draw(st.integers(-1, v - 1)) for v in range(draw(st.integers(0, 3)))]
    tree = Tree(
        draw(quarters(0, 3)),
        parents=parents,
        costs=[draw(quarters(0, 5)) for _ in parents],
        leaf=[draw(st.integers(-1, len(parents) - 1)) for _ in range(n)],
        each=[draw(quarters(0, 5)) for _ in range(n)],
    )
    low = draw(st.integers(0, min(2, n)))
    groups = []
    if low == 0 and draw(st.booleans()):
        halves = np.array([draw(st.booleans()) for _ in range(n)])
        parts = [np.flatnonzero(halves), np.flatnonzero(~halves)]
        groups = [(arms, draw(st.integers(0, 3))) for arms in parts if len(arms)]
    limits = Limits(low, draw(st.integers(max(low, 1), n)), tuple(groups))
    estimates = np.array([draw(quarters(-2, 5)) for _ in range(n)])
    cap = draw(st.one_of(st.just(np.inf), quarters(0, 20)))
    return draw(quarters(-2, 2)), estimates, tree, limits, cap


@settings(max_examples=300, deadline=None, derandomize=True)
@given(problem=problems())
def test_steps_and_enumeration_find_the_same_gap(
    problem: tuple[float, np.ndarray, Tree, Limits, float],
) -> None:
    rate, estimates, tree, limits, cap = problem
    if tree.base > cap:
        return
    found = best_by_steps(rate, estimates, tree, limits, cap, WORK)
    truth = by_enumeration(rate, estimates, tree, limits, cap)
    if truth is None:
        assert found is None
        return
    assert found is not None
    assert found.exact
    assert tree.seconds(found.chosen) <= cap

    def gap(chosen: np.ndarray) -> float:
        return float(rate * tree.seconds(chosen) - estimates[chosen].sum())

    assert gap(found.chosen) == pytest.approx(gap(truth), abs=1e-9)


def test_more_arms_than_are_enumerated() -> None:
    n = ENUMERATED + 3
    rng = np.random.default_rng(3)
    each, estimates = rng.integers(1, 20, n) / 4, rng.integers(0, 20, n) / 4
    latency, groups = Additive(base=1.0, each=each), np.arange(n) % 3
    for inner in (AtMost(6), Grouped(2)):
        found = best(0.25, estimates, latency, Capped(12.0, inner), groups)
        assert found.exact
        assert found.seconds <= 12.0
        # Brute force over all 2**15 subsets, in the same units.
        masks = (np.arange(1 << n)[:, None] >> np.arange(n)) & 1 == 1
        allowed = 1.0 + masks @ each <= 12.0
        if isinstance(inner, AtMost):
            allowed &= masks.sum(axis=1) <= 6
        else:
            for label in range(3):
                allowed &= masks[:, groups == label].sum(axis=1) <= 2
        gaps = 0.25 * (1.0 + masks @ each) - masks @ estimates
        assert found.gap == pytest.approx(gaps[allowed].min(), abs=1e-9)


def test_times_far_below_the_cap_still_count_for_few_arms() -> None:
    # Together the first and the fifth are a hundred-millionth of a second too long.
    each = [1e-8, 0.0, 0.5, 0.25, 1.0, 1e-11, 0.0]
    estimates = [2.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    found = best(0.0, estimates, Additive(base=0.0, each=each), Capped(1.0))
    assert np.flatnonzero(found.chosen).tolist() == [0]
