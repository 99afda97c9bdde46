"""Ties, negative prices, small rounds, and what selection refuses."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coaf.bandit.actions import Actions, AnySubset, AtMost, Capped, Exactly, Grouped, Listed, OneOf
from coaf.bandit.arrays import BoolArray
from coaf.bandit.latency import Additive, ByCount, Latency, Setup, Table, Tour, Tree
from coaf.bandit.select import Selection, best, floor, gap
from coaf.bandit.selection.found import WORK
from coaf.bandit.selection.linear import as_tree, best_linear
from coaf.bandit.selection.sorting import Limits


def arms(found: Selection) -> list[int]:
    return [int(arm) for arm in np.flatnonzero(found.chosen)]


FLAT: list[Latency] = [
    Additive(base=1.0, each=2.0),
    Additive(base=1.0, each=[2.0] * 4),
    Setup(base=1.0, setup=0.0, each=2.0),
    ByCount(base=1.0, by_count=[0.0, 2.0, 4.0, 6.0, 8.0]),
    Tree(base=1.0, parents=[-1], costs=[0.0], leaf=[0, 0, 0, 0], each=2.0),
    Tour(base=1.0, points=[[0.0]] * 4, each=2.0, start=[0.0]),
]


@pytest.mark.parametrize("latency", FLAT, ids=lambda latency: type(latency).__name__)
def test_an_arm_that_only_ties_is_not_taken(latency: Latency) -> None:
    assert arms(best(0.5, [1.0, 1.5, 1.0, 0.5], latency, AnySubset())) == [1]
    assert arms(best(0.5, [1.0, 1.5, 1.0, 0.5], latency, AtMost(3))) == [1]
    assert arms(best(0.5, [1.0, 1.0, 1.0, 1.0], latency, AnySubset())) == []


@pytest.mark.parametrize("latency", FLAT, ids=lambda latency: type(latency).__name__)
def test_among_equal_arms_the_lower_index_wins(latency: Latency) -> None:
    equal = [2.0, 3.0, 2.0, 2.0]
    assert arms(best(0.5, equal, latency, AtMost(2))) == [0, 1]
    if not isinstance(latency, Tour):
        assert arms(best(0.5, equal, latency, Exactly(3))) == [0, 1, 2]
        assert arms(best(0.5, [2.0, 2.0, 2.0, 2.0], latency, OneOf())) == [0]
        groups = np.array([5, 9, 5, 5])
        assert arms(best(0.5, [2.0, 2.0, 2.0, 1.0], latency, Grouped(1), groups)) == [0, 1]
    # Room for two arms: 1 + 2 * 2 seconds.
    assert arms(best(0.5, equal, latency, Capped(5.0))) == [0, 1]


def test_many_equal_arms_are_taken_from_the_front() -> None:
    for latency in (Additive(base=1.0, each=1.0), ByCount(base=1.0, by_count=np.zeros(101))):
        found = best(0.0, np.tile([1.0, 2.0], 50), latency, AtMost(70))
        assert arms(found) == sorted([*range(1, 100, 2), *range(0, 40, 2)])


def test_a_set_up_that_only_pays_for_itself_is_not_made() -> None:
    assert arms(best(1.0, [3.0, 3.0], Setup(base=1.0, setup=4.0, each=1.0), AnySubset())) == []
    assert arms(best(1.0, [3.0, 3.5], Setup(base=1.0, setup=4.0, each=1.0), AnySubset())) == [0, 1]
    one = Tree(base=1.0, parents=[-1], costs=[4.0], leaf=[0, 0], each=1.0)
    assert arms(best(1.0, [3.0, 3.0], one, AnySubset())) == []
    assert arms(best(1.0, [3.0, 3.5], one, AnySubset())) == [0, 1]


def test_with_a_negative_rate_time_itself_is_bought() -> None:
    setup = Setup(base=1.0, setup=10.0, each=0.0)
    found = best(-1.0, [-3.0, -2.0, -4.0], setup, AnySubset())
    assert arms(found) == [1]
    assert found.gap == -(1.0 + 10.0) + 2.0
    assert arms(best(-0.1, [-3.0, -2.0, -4.0], setup, AnySubset())) == []
    assert arms(best(-0.2, [-3.0, -2.0, -4.0], setup, AnySubset())) == []
    # Two branches, each worth opening with its least bad arm; the third is not.
    branches = Tree(
        base=0.0, parents=[-1, -1, -1], costs=[5.0, 5.0, 1.0], leaf=[0, 0, 1, 2], each=0.0
    )
    assert arms(best(-1.0, [-2.0, -1.0, -4.0, -3.0], branches, AnySubset())) == [1, 2]
    # The one arm is bad and so is its node, but the node above is worth more.
    chain = Tree(base=0.0, parents=[-1, 0], costs=[10.0, 1.0], leaf=[1], each=0.0)
    assert arms(best(-1.0, [-4.0], chain, AnySubset())) == [0]
    assert arms(best(-1.0, [-11.0], chain, AnySubset())) == []
    # A far point is worth the trip there.
    tour = Tour(base=0.0, points=[[1.0], [9.0]], each=0.0, start=[0.0])
    assert arms(best(-1.0, [-2.0, -2.0], tour, AnySubset())) == [1]


@pytest.mark.parametrize("rate", [-1.0, 0.0, 2.0])
def test_a_round_without_arms(rate: float) -> None:
    none: list[Latency] = [
        Additive(base=3.0, each=1.0),
        Setup(base=3.0, setup=1.0, each=[]),
        ByCount(base=1.0, by_count=[2.0]),
        Tree(base=3.0, parents=[-1], costs=[1.0], leaf=[]),
        Tour(base=3.0, points=np.zeros((0, 2)), each=0.0, start=[0.0, 0.0]),
        Table(subsets=[()], times=[3.0]),
    ]
    for latency in none:
        for actions in (AnySubset(), AtMost(2), Listed([()]), Capped(3.0)):
            found = best(rate, [], latency, actions)
            assert (len(found.chosen), found.seconds, found.gap) == (0, 3.0, 3.0 * rate)


LINEAR: list[tuple[Setup | Additive | Tree, int]] = [
    (Additive(base=1.0, each=[1.0, 2.0, 3.0, 1.0]), 4),
    (Setup(base=1.0, setup=3.0, each=[1.0, 2.0, 3.0, 1.0]), 4),
    (Tree(1.0, parents=[-1, 0, 0], costs=[2.0, 1.0, 3.0], leaf=[1, 1, 2, 2], each=1.0), 4),
]


@pytest.mark.parametrize("linear", LINEAR, ids=lambda pair: type(pair[0]).__name__)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    estimates=st.lists(st.integers(-3, 3).map(float) | st.floats(-3, 3), min_size=4, max_size=4),
    rate=st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.7]),
    low=st.integers(0, 2),
)
def test_linear_selection_alone_is_right_without_a_cap(
    linear: tuple[Setup | Additive | Tree, int], estimates: list[float], rate: float, low: int
) -> None:
    latency, n = linear
    mu = np.array(estimates)
    found = best_linear(rate, mu, as_tree(latency, n), Limits(low, 3), np.inf, WORK)
    assert found is not None
    chosen = found.chosen
    masks = [np.array(bits) for bits in itertools.product([False, True], repeat=n)]
    least = min(gap(rate, m, latency, mu) for m in masks if low <= m.sum() <= 3)
    assert low <= chosen.sum() <= 3
    assert gap(rate, chosen, latency, mu) == pytest.approx(least, abs=1e-8)


def test_a_cap_forbids_what_is_hardly_over_it() -> None:
    # Together the arms are over the cap and its slack by a part in 10^10.
    latency = Additive(base=0.0, each=[1.0, 1.0 + 2.05e-9])
    assert arms(best(0.0, [1.0, 2.0], latency, Capped(2.0))) == [1]
    assert arms(best(0.0, [1.0, 2.0], latency, Capped(2.0 + 1e-10))) == [0, 1]


def test_an_arm_far_over_the_cap_does_not_blur_the_others() -> None:
    each = [1e9, 1.0, 1.0, 1.0, 1.01]
    found = best(0.0, [9e9, 1.0, 1.0, 1.0, 1.5], Additive(base=0.0, each=each), Capped(3.0))
    assert arms(found) == [1, 2, 3]
    tight = best(0.0, [9e9, 1.0, 1.0, 1.0, 1.5], Additive(base=0.0, each=each), Capped(3.01))
    assert arms(tight) == [1, 2, 4]


def test_sums_that_round_above_the_cap_still_meet_it() -> None:
    for each in (0.1, [0.1, 0.1, 0.1]):
        found = best(0.0, [1.0, 1.0, 1.0], Additive(base=0.0, each=each), Capped(0.3))
        assert arms(found) == [0, 1, 2]


def test_nested_caps_take_the_smaller() -> None:
    for cap in (Capped(9.0, Capped(2.0)), Capped(2.0, Capped(9.0))):
        assert arms(best(0.0, [1.0, 2.0, 3.0], Additive(base=0.0, each=1.0), cap)) == [1, 2]


def test_the_linear_cells_scale_beyond_enumeration() -> None:
    rng = np.random.default_rng(4)
    mu, each = rng.uniform(0, 2, 60), rng.uniform(1, 3, 60)
    latency = Setup(base=1.0, setup=5.0, each=each)
    found = best(0.3, mu, latency, Capped(40.0))
    assert found.seconds <= 40.0
    assert found.exact
    # Taking arms by score per second until one no longer fits is feasible, so never better.
    greedy = np.zeros(60, dtype=bool)
    for arm in np.argsort(-(mu - 0.3 * each) / each):
        greedy[arm] = True
        if latency.seconds(greedy) > 40.0:
            greedy[arm] = False
            break
    assert found.gap <= gap(0.3, greedy, latency, mu)
    # The continuous relaxation takes a part of the next arm too, and is never worse.
    room = 40.0 - latency.seconds(greedy)
    assert found.gap >= gap(0.3, greedy, latency, mu) - max((mu - 0.3 * each) / each) * room


class Square:
    """A latency that selection knows nothing about."""

    def seconds(self, chosen: BoolArray) -> float:
        return float(chosen.sum()) ** 2

    def check(self, n: int) -> None:
        return None


class EvenOnly:
    """Actions that selection knows nothing about."""

    def allows(self, chosen: BoolArray, groups: object = None) -> bool:
        return int(chosen.sum()) % 2 == 0

    def check(self, n: int, groups: object = None) -> None:
        return None


class Doubled(Setup):
    """A subclass that changes the time must not be solved as its parent."""

    def seconds(self, chosen: Any) -> float:
        return 2.0 * float(chosen.sum())


def test_what_a_user_brings_is_enumerated() -> None:
    assert arms(best(0.5, [4.0, 3.0, 1.0], Square(), AnySubset())) == [0, 1]
    assert arms(best(0.5, [4.0, 1.0, 3.0], Additive(base=0.0, each=1.0), EvenOnly())) == [0, 2]
    assert arms(best(1.0, [1.5, 2.5], Doubled(base=0.0, setup=0.0, each=1.0), AnySubset())) == [1]
    many = Listed([(0, 15), (3,), tuple(range(20))])
    assert arms(best(0.1, np.ones(20), Square(), many)) == [0, 15]


@pytest.mark.parametrize("actions", [AnySubset(), AtMost(2), Capped(3.0)], ids=str)
def test_too_many_arms_to_enumerate_is_an_error_that_says_what_works(actions: Actions) -> None:
    with pytest.raises(ValueError, match=r"16 arms under Square.*Additive.*Listed.*15 arms"):
        best(0.5, np.ones(16), Square(), actions)


@pytest.mark.parametrize(
    "actions", [Exactly(1), OneOf(), Grouped(1), Capped(9.0, OneOf())], ids=str
)
def test_tours_refuse_what_they_cannot_solve(actions: Actions) -> None:
    tour = Tour(base=0.0, points=[[0.0], [1.0]], each=0.0, start=[0.0])
    with pytest.raises(ValueError, match=r"does not support .* AnySubset, AtMost, Listed"):
        best(0.5, [1.0, 1.0], tour, actions, groups=["a", "b"])


def test_wrong_rounds_are_named() -> None:
    setup = Setup(base=1.0, setup=1.0, each=[1.0, 2.0])
    with pytest.raises(ValueError, match="each has 2 entries for a round of 3 arms"):
        best(1.0, [1.0, 1.0, 1.0], setup, AnySubset())
    with pytest.raises(ValueError, match="needs a round of at least 3 arms, got 2"):
        best(1.0, [1.0, 1.0], setup, Exactly(3))
    with pytest.raises(ValueError, match="Grouped needs groups"):
        best(1.0, [1.0, 1.0], setup, Grouped(1))
    with pytest.raises(ValueError, match="Grouped needs groups"):
        floor(setup, Grouped(1), 2)
    with pytest.raises(ValueError, match="rate is nan"):
        best(float("nan"), [1.0, 1.0], setup, AnySubset())
    with pytest.raises(ValueError, match="estimates must have 1 dimension"):
        best(1.0, [[1.0, 1.0]], setup, AnySubset())
    with pytest.raises(ValueError, match=r"fits in 1\.5 seconds; the quickest takes 3"):
        best(1.0, [1.0, 1.0], setup, Capped(1.5, OneOf()))
    table = Table(subsets=[(), (0,)], times=[1.0, 2.0])
    with pytest.raises(ValueError, match="Table latency lists no subset that Exactly"):
        best(1.0, [1.0, 1.0], table, Exactly(2))
    with pytest.raises(ValueError, match=r"no subset .* Exactly"):
        best(1.0, [1.0, 1.0], table, Capped(5.0, Exactly(2)))
