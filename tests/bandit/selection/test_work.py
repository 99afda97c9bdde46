"""Selection that stops when its work is done: allowed, honest about what it lost, repeatable."""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coaf.bandit.actions import Actions, AnySubset, AtMost, Capped, Exactly, Grouped, Listed
from coaf.bandit.arrays import BoolArray, FloatArray
from coaf.bandit.latency import Additive, Latency, Setup, Table, Tour, Tree
from coaf.bandit.select import WORK, Selection, best, gap
from coaf.bandit.selection.linear import ENUMERATED, as_tree, by_enumeration
from coaf.bandit.selection.sorting import limits_of

Linear = Additive | Setup | Tree
naive = settings(
    max_examples=100, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)

KINDS = ["Additive", "Setup", "Tree"]
SPACES = ["any", "at most", "exactly", "grouped"]


@dataclass(frozen=True)
class Case:
    rate: float
    estimates: FloatArray
    latency: Linear
    actions: Actions
    groups: Any
    cap: float

    def best(self, work: int) -> Selection:
        actions = Capped(self.cap, self.actions)
        return best(self.rate, self.estimates, self.latency, actions, self.groups, work=work)


@st.composite
def rounds(draw: st.DrawFn, kind: str, space: str, sizes: st.SearchStrategy[int]) -> Case:
    """Rounds beyond enumeration: estimates equal, nearly so, of few values, or any."""
    n = draw(sizes)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    u = rng.uniform(0, 1, n)
    likeness = draw(st.sampled_from(["equal", "near", "classes", "any"]))
    estimates = {
        "equal": np.full(n, 0.87),
        "near": 0.87 * (1 + 1e-3 * u),
        "classes": rng.choice([-0.25, 0.5, 1.0], n),
        "any": 3 * u - 1,
    }[likeness]
    each = rng.uniform(1, 2, n) if draw(st.booleans()) else rng.integers(0, 4, n).astype(float)
    latency: Linear = Additive(base=1.0, each=each)
    if kind == "Setup":
        latency = Setup(base=1.0, setup=2.5, each=each)
    elif kind == "Tree":
        m = draw(st.integers(1, 6))
        parents = np.array([rng.integers(-1, v) for v in range(m)])
        latency = Tree(1.0, parents, rng.uniform(0, 3, m), rng.integers(-1, m, n), each)
    count = draw(st.integers(1, n - 1))
    actions: dict[str, Actions] = {
        "any": AnySubset(),
        "at most": AtMost(count),
        "exactly": Exactly(count),
        "grouped": Grouped(draw(st.integers(1, 3))),
    }
    groups = rng.integers(0, draw(st.integers(2, 5)), n)
    everything = latency.seconds(np.ones(n, dtype=np.bool_))
    least = latency.seconds(np.argsort(np.argsort(each)) < count) if space == "exactly" else 1.0
    cap = least + draw(st.sampled_from([0.1, 0.3, 0.8])) * (everything - least)
    rate = draw(st.sampled_from([0.0, 0.05, 0.4, -0.05, -0.7]))
    return Case(rate, estimates, latency, actions[space], groups, cap)


def smallest(case: Case) -> float:
    """The smallest gap, by looking at all subsets."""
    n = len(case.estimates)
    limits = limits_of(case.actions, n, case.groups)
    assert limits is not None
    cap = Capped(case.cap).limit
    chosen = by_enumeration(case.rate, case.estimates, as_tree(case.latency, n), limits, cap)
    assert chosen is not None
    return gap(case.rate, chosen, case.latency, case.estimates)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("kind", KINDS)
@naive
@given(data=st.data(), work=st.sampled_from([0, 1, 50, 300, 2000, WORK]))
def test_whatever_the_work_nothing_better_is_beyond_what_was_lost(
    kind: str, space: str, data: st.DataObject, work: int
) -> None:
    case = data.draw(rounds(kind, space, st.integers(ENUMERATED + 1, ENUMERATED + 2)))
    found = case.best(work)
    assert case.actions.allows(found.chosen, case.groups)
    assert found.seconds == case.latency.seconds(found.chosen)
    assert Capped(case.cap).fits(found.seconds)
    assert found.gap == gap(case.rate, found.chosen, case.latency, case.estimates)
    least = smallest(case)
    # Exact is to 1e-10 of all that is at stake, here at most 14 arms worth 5.
    assert least - 1e-8 <= found.gap <= least + found.lost + 1e-8
    assert found.exact == (found.lost == 0.0)
    if work == WORK:
        assert found.exact
    again = case.best(work)
    assert np.array_equal(again.chosen, found.chosen)
    assert (again.gap, again.lost, again.exact) == (found.gap, found.lost, found.exact)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("kind", KINDS)
@settings(naive, max_examples=25)
@given(data=st.data())
def test_more_work_is_never_worse(kind: str, space: str, data: st.DataObject) -> None:
    case = data.draw(rounds(kind, space, st.integers(20, 60)))
    found = [case.best(work) for work in (0, 100, 3_000, 30_000, 300_000)]
    for less, more in itertools.pairwise(found):
        assert more.gap <= less.gap
        assert more.lost <= less.lost
        assert more.exact >= less.exact


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("kind", KINDS)
@settings(naive, max_examples=25)
@given(
    data=st.data(),
    worth=st.integers(-30, 30),
    time=st.integers(-30, 30),
    work=st.sampled_from([0, 500, 20_000]),
)
def test_units_do_not_matter_under_a_cap(
    kind: str, space: str, data: st.DataObject, worth: int, time: int, work: int
) -> None:
    case = data.draw(rounds(kind, space, st.integers(ENUMERATED + 1, 40)))
    w, t = 2.0**worth, 2.0**time
    latency: Linear
    if isinstance(case.latency, Tree):
        tree = case.latency
        latency = Tree(t * tree.base, tree.parents, t * tree.costs, tree.leaf, t * tree.each)
    elif isinstance(case.latency, Setup):
        setup = case.latency
        latency = Setup(t * setup.base, t * setup.setup, t * setup.each)
    else:
        latency = Additive(t * case.latency.base, t * case.latency.each)
    scaled = Case(
        case.rate * w / t, w * case.estimates, latency, case.actions, case.groups, t * case.cap
    )
    here, there = case.best(work), scaled.best(work)
    assert np.array_equal(here.chosen, there.chosen)
    assert (w * here.lost, here.exact) == (there.lost, there.exact)


def draw_tour(seed: int, n: int) -> tuple[Tour, FloatArray]:
    rng = np.random.default_rng(seed)
    points, start = rng.uniform(0, 10 * n**0.5, (n, 2)), np.zeros(2)
    return Tour(10.0, points, rng.uniform(1, 2, n), start, speed=10.0), rng.uniform(0, 2, n)


@settings(naive, max_examples=20)
@given(
    seed=st.integers(0, 1000),
    rate=st.sampled_from([0.0, 0.05, 0.4, -0.1]),
    actions=st.sampled_from([AnySubset(), AtMost(6), Capped(40.0), Capped(40.0, AtMost(9))]),
    worth=st.integers(-30, 30),
    time=st.integers(-30, 30),
    work=st.sampled_from([0, 1_000, 50_000]),
)
def test_units_do_not_matter_on_a_tour(
    seed: int, rate: float, actions: Actions, worth: int, time: int, work: int
) -> None:
    tour, estimates = draw_tour(seed, 24)
    w, t = 2.0**worth, 2.0**time
    scaled = Tour(t * tour.base, t * tour.points, t * tour.each, tour.start, tour.speed)
    other = Capped(t * actions.seconds, actions.actions) if isinstance(actions, Capped) else actions
    here = best(rate, estimates, tour, actions, work=work)
    there = best(rate * w / t, w * estimates, scaled, other, work=work)
    assert np.array_equal(here.chosen, there.chosen)
    assert (w * here.lost, t * here.seconds) == (there.lost, there.seconds)


def test_many_equal_arms_under_a_cap() -> None:
    # What a policy has that has learned nothing. The most arms that fit are the shortest.
    each = np.random.default_rng(0).uniform(1, 2, 500)
    cap = 10 + 0.3 * each.sum()
    found = best(0.05, np.full(500, 0.87), Additive(10.0, each), Capped(cap))
    assert found.exact
    fit = int(np.count_nonzero(10.0 + np.cumsum(np.sort(each)) <= cap))
    assert np.flatnonzero(found.chosen).tolist() == sorted(np.argsort(each)[:fit].tolist())


@pytest.mark.parametrize("n", [50, 200, 1000])
def test_ordinary_caps_are_proven(n: int) -> None:
    rng = np.random.default_rng(n)
    each, estimates = rng.uniform(1, 5, n), rng.uniform(0, 2, n)
    leaf, costs = rng.integers(0, 8, n), rng.uniform(2, 8, 8)
    for latency in (
        Additive(10.0, each),
        Setup(10.0, 30.0, each),
        Tree(10.0, [-1, -1, 0, 0, 0, 1, 1, 1], costs, leaf, each),
    ):
        for share in (0.1, 0.5):
            found = best(0.1, estimates, latency, Capped(10.0 + share * each.sum()))
            assert found.exact
            assert found.lost == 0.0


@pytest.mark.parametrize("actions", [AnySubset(), AtMost(40), Capped(200.0)], ids=str)
def test_a_tour_of_three_hundred_points_returns(actions: Actions) -> None:
    tour, estimates = draw_tour(seed=1, n=300)
    found = best(0.05, estimates, tour, actions, work=WORK // 10)
    assert not found.exact
    assert actions.allows(found.chosen)
    assert found.gap == pytest.approx(gap(0.05, found.chosen, tour, estimates))
    if isinstance(actions, Capped):
        assert actions.fits(found.seconds)
    # Little is lost where the way is cheap: the bound is close, and so is the answer.
    assert found.lost <= 0.35 * -found.gap


class Counting:
    """A latency of a user's own that counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def seconds(self, chosen: BoolArray) -> float:
        self.asked += 1
        return 1.0 + float(np.sqrt(chosen.sum()))

    def check(self, n: int) -> None:
        return None


@pytest.mark.parametrize(
    "actions", [AnySubset(), Listed([(i, j) for i in range(12) for j in range(i)])], ids=["all", ""]
)
def test_subsets_are_looked_at_as_long_as_work_lasts(actions: Actions) -> None:
    latency, estimates = Counting(), np.linspace(0.5, 1.0, 12)
    everything = best(0.2, estimates, latency, actions)
    assert everything.exact
    assert everything.lost == 0.0
    latency.asked = 0
    some = best(0.2, estimates, latency, actions, work=1000)
    assert latency.asked <= 11  # ten subsets, and the time of the answer
    assert not some.exact
    assert everything.gap <= some.gap <= everything.gap + some.lost
    # Time that is worth less than nothing has no bound: a subset not looked at may take any.
    assert best(-0.2, estimates, latency, actions, work=1000).lost == np.inf


def test_the_first_subset_that_fits_is_looked_for_whatever_the_work() -> None:
    listed = Listed([(0, 1, 2), (0, 1), (2,), (1,)])
    latency = Additive(base=0.0, each=[4.0, 1.0, 2.0])
    found = best(0.1, [1.0, 1.0, 0.5], latency, Capped(2.0, listed), work=0)
    assert np.flatnonzero(found.chosen).tolist() == [2]
    assert not found.exact
    assert best(0.1, [1.0, 1.0, 0.5], latency, Capped(2.0, listed)).exact


def test_a_long_table_is_read_once() -> None:
    subsets = [tuple(i for i in range(13) if (mask >> i) & 1) for mask in range(1 << 13)]
    times = np.random.default_rng(5).uniform(1, 9, len(subsets))
    table, estimates = Table(subsets, times), np.linspace(0.1, 1.0, 13)
    gaps = 0.3 * times - np.array([estimates[list(subset)].sum() for subset in subsets])
    found = best(0.3, estimates, table, AnySubset())
    assert found.gap == pytest.approx(gaps.min())
    short = Listed(subsets[:100:3])
    assert best(0.3, estimates, table, short).gap == pytest.approx(gaps[:100:3].min())


@pytest.mark.parametrize("work", [-1, 2.5, None])
def test_work_is_a_whole_number(work: Any) -> None:
    latency: Latency = Additive(base=0.0, each=[1.0, 2.0])
    with pytest.raises(ValueError, match="work must be a whole number of at least 0"):
        best(0.1, [1.0, 1.0], latency, Capped(2.0), work=work)
