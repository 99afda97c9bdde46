"""Tours too long for the exact recursion."""

import numpy as np
import pytest

from coaf.bandit.actions import Actions, AnySubset, AtMost, Capped, Listed
from coaf.bandit.arrays import FloatArray
from coaf.bandit.latency import Tour
from coaf.bandit.select import best, gap
from coaf.bandit.selection.tour_paths import length_bound, shortest_length
from coaf.bandit.selection.tour_search import search


def draw(seed: int, n: int, clustered: bool = False) -> tuple[Tour, FloatArray]:
    rng = np.random.default_rng(seed)
    points = rng.uniform(0, 100, (n, 2))
    if clustered:
        points = rng.uniform(0, 100, (3, 2))[rng.integers(0, 3, n)] + rng.normal(0, 4, (n, 2))
    tour = Tour(base=1.0, points=points, each=1.0, start=rng.uniform(0, 100, 2), speed=10.0)
    return tour, rng.uniform(0.5, 3, n)


@pytest.mark.parametrize("actions", [AnySubset(), AtMost(6), Capped(30.0), Capped(30.0, AtMost(6))])
@pytest.mark.parametrize("rate", [-0.3, 0.0, 0.05, 0.3])
def test_a_long_tour_is_allowed_and_beats_the_simple_answers(rate: float, actions: Actions) -> None:
    tour, estimates = draw(seed=3, n=20)
    found = best(rate, estimates, tour, actions)
    assert not found.exact
    assert actions.allows(found.chosen)
    assert found.gap == pytest.approx(gap(rate, found.chosen, tour, estimates))
    masks = [np.zeros(20, dtype=bool), np.ones(20, dtype=bool), *np.eye(20, dtype=bool)]
    simple = [mask for mask in masks if actions.allows(mask)]
    if isinstance(actions, Capped):
        assert found.seconds <= actions.seconds * (1 + 1e-9)
        simple = [mask for mask in simple if tour.seconds(mask) <= actions.seconds]
    assert len(simple) >= 2
    assert found.gap <= min(gap(rate, mask, tour, estimates) for mask in simple) + 1e-9
    again = best(rate, estimates, tour, actions)
    assert np.array_equal(again.chosen, found.chosen)


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize(("high", "cap"), [(12, np.inf), (5, np.inf), (12, 25.0)])
@pytest.mark.parametrize("rate", [-0.1, 0.05, 0.2])
def test_the_search_is_close_to_exact(rate: float, high: int, cap: float, clustered: bool) -> None:
    shares = []
    for seed in range(10):
        tour, estimates = draw(seed, n=12, clustered=clustered)
        actions = AtMost(high) if cap == np.inf else Capped(cap, AtMost(high))
        exact = best(rate, estimates, tour, actions)
        found = search(rate, estimates, tour, np.arange(12), high=high, cap=cap, work=100_000)
        chosen = found.chosen
        assert exact.exact
        assert not found.exact
        assert gap(rate, chosen, tour, estimates) <= exact.gap + found.lost + 1e-9
        assert chosen.sum() <= high
        assert tour.seconds(chosen) <= cap
        won, most = (
            gap(rate, np.zeros(12, dtype=bool), tour, estimates) - g
            for g in (gap(rate, chosen, tour, estimates), exact.gap)
        )
        assert won <= most + 1e-9
        shares.append(won / most if most > 1e-9 else 1.0)
    # Seeds are fixed: what the search wins over taking nothing, as a share of what there is to win.
    assert np.mean(shares) >= 0.97
    assert min(shares) >= 0.85


def test_points_not_worth_their_own_time_do_not_count() -> None:
    tour, estimates = draw(seed=5, n=30)
    estimates[12:] = 0.01
    found = best(0.05, estimates, tour, AnySubset())
    near = Tour(1.0, tour.points[:12], each=1.0, start=tour.start, speed=10.0)
    assert found.exact
    assert found.gap == pytest.approx(best(0.05, estimates[:12], near, AnySubset()).gap)
    assert not best(-0.05, estimates, tour, AnySubset()).exact


def test_listed_tours_say_when_a_time_is_not_exact() -> None:
    tour, estimates = draw(seed=6, n=18)
    short = Listed([(0, 1), tuple(range(15))])
    assert best(0.1, estimates, tour, short).exact
    long = best(0.1, estimates, tour, Listed([(0, 1), tuple(range(16))]))
    assert not long.exact
    # Taking 16 points is clearly better, and the bound of their way is close.
    assert long.chosen.sum() == 16
    assert 0.0 <= long.lost <= 0.02 * 0.1 * long.seconds
    assert best(0.1, estimates, tour, Listed([(0, 1), tuple(range(16))]), work=0).lost > 1.0


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_the_length_of_a_path_is_bounded_from_below(dim: int) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        points, start = rng.normal(size=(10, dim)), rng.normal(size=dim)
        exact = shortest_length(points, start)
        assert 0.8 * exact <= length_bound(points, start) <= exact * (1 + 1e-12)
    many = rng.normal(size=(200, dim))
    assert length_bound(many, start) <= shortest_length(many, start)
    assert length_bound(np.zeros((20, dim)), np.zeros(dim)) == 0.0
