"""Rounds side by side: what is asked of all at once is what is asked of each."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coaf.bandit.actions import AtMost
from coaf.bandit.arrays import FloatArray
from coaf.bandit.latency import Additive, Setup
from coaf.bandit.policies.prospects import Prospects
from coaf.bandit.problem import Round


def rewards(held: Prospects) -> FloatArray:
    return held.features[:, 0]


def made(count: int, seed: int) -> list[Round]:
    rng = np.random.default_rng(seed)
    return [
        Round(
            rng.uniform(0.0, 1.0, (n, 2)),
            Setup(rng.uniform(1.0, 9.0), rng.uniform(0.0, 9.0), rng.uniform(0.1, 5.0, n)),
            groups=[["s", f"p{k}"]] * n,
            parts=rng.integers(1, 4, n),
        )
        for k, n in enumerate(rng.integers(1, 6, count).tolist())
    ]


def test_rounds_come_back_as_they_were() -> None:
    for before, after in zip(made(7, 0), Prospects.of(made(7, 0)).rounds(), strict=True):
        np.testing.assert_array_equal(before.features, after.features)
        assert (before.latency, before.groups is None) == (after.latency, after.groups is None)
        np.testing.assert_array_equal(before.groups, after.groups)
        np.testing.assert_array_equal(before.parts, after.parts)


def test_beside_each_other_they_are_one_table() -> None:
    every, first, rest = made(7, 0), made(7, 0)[:3], made(7, 0)[3:]
    joined, whole = Prospects.of(first).beside(Prospects.of(rest)), Prospects.of(every)
    for name in ("features", "groups", "each", "parts", "counts", "base", "setup"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(whole, name))
    assert Prospects.of([]).beside(whole) is whole
    assert whole.beside(Prospects.of([])) is whole


def test_as_new_ones_only_the_innermost_group_is_unknown() -> None:
    held = Prospects.of(made(3, 0)).anew()
    assert held.groups is not None
    assert set(held.groups[:, 0]) == {"s"}
    assert not set(held.groups[:, 1]) & {"p0", "p1", "p2"}


def test_one_round_without_labels_leaves_all_without() -> None:
    bare = Round([[0.1, 0.2]], Additive(1.0, 1.0))
    assert Prospects.of([*made(2, 0), bare]).groups is None


def test_what_cannot_be_taken_one_by_one_is_refused() -> None:
    with pytest.raises(ValueError, match="arms are taken one by one"):
        Prospects.of([Round([[0.1]], Additive(1.0, 1.0), AtMost(1))])


_means = st.lists(st.floats(0.0, 1.0, allow_subnormal=False), min_size=1, max_size=7)


@settings(max_examples=60, deadline=None)
@given(_means, st.integers(0, 30), st.integers(1, 9), st.integers(0, 60))
def test_what_fits_of_a_round_is_the_best_that_does(
    means: list[float], setup: int, each: int, seconds: int
) -> None:
    """Against every subset, with arms that take equally long, among other rounds."""
    whole = Round(np.array(means)[:, None], Setup(1.0, setup, each))
    others = [Round([[0.5], [0.7]], Setup(2.0, 1.0, 4.0))] * 2
    held, fits = Prospects.of([others[0], whole, others[1]]).within(float(seconds), rewards)
    part = held.rounds()[1]
    masks = [np.array(m, dtype=np.bool_) for m in product([False, True], repeat=len(means))]
    fit = [m for m in masks if m.any() and setup + each * m.sum() <= seconds]
    assert fits[1] == bool(fit)
    assert part.n == max((m.sum() for m in fit), default=len(means))
    most = max((whole.features[m, 0].sum() for m in fit), default=sum(means))
    assert part.features[:, 0].sum() == pytest.approx(most)
    assert part.floor == whole.floor


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 99), st.floats(0.0, 40.0))
def test_rounds_do_not_disturb_each_other(seed: int, seconds: float) -> None:
    """What fits of each is what fits of it alone, whatever time each arm takes."""
    held, fits = Prospects.of(made(6, seed)).within(seconds, rewards)
    for k, (one, part) in enumerate(zip(made(6, seed), held.rounds(), strict=True)):
        alone, fit = Prospects.of([one]).within(seconds, rewards)
        assert fits[k] == fit[0]
        np.testing.assert_array_equal(part.features, alone.features)
