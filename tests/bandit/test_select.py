"""Every pair of latency and actions against brute force over all subsets."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coaf.bandit.actions import Actions, AnySubset, AtMost, Capped, Exactly, Grouped, Listed, OneOf
from coaf.bandit.arrays import BoolArray, FloatArray
from coaf.bandit.latency import Additive, ByCount, Latency, Setup, Table, Tour, Tree
from coaf.bandit.select import best, floor, gap

Draw = Callable[[st.SearchStrategy[Any]], Any]

times = st.integers(0, 3).map(float) | st.floats(0, 5)
HEALTH = [HealthCheck.too_slow, HealthCheck.data_too_large]
rates = st.sampled_from([0.0, 1.0, -1.0, 0.5]) | st.floats(-2, 2)


@dataclass(frozen=True)
class Awkward:
    """A latency of a user's own, with nothing to hold on to."""

    weights: FloatArray

    def seconds(self, chosen: BoolArray) -> float:
        return float(1.0 + abs(self.weights[chosen].sum()))

    def check(self, n: int) -> None:
        assert len(self.weights) == n


def vector(draw: Draw, n: int, low: int, high: int) -> FloatArray:
    """Small integers, which make ties, or floats, which make none."""
    entries = st.integers(low, high) if draw(st.booleans()) else st.floats(low, high)
    return np.array(draw(st.lists(entries, min_size=n, max_size=n)), dtype=float)


def each_of(draw: Draw, n: int) -> float | FloatArray:
    return draw(times) if draw(st.booleans()) else vector(draw, n, 0, 4)


def tree_of(draw: Draw, n: int) -> Tree:
    m = draw(st.integers(0, 4))
    return Tree(
        base=draw(times),
        parents=[draw(st.integers(-1, v - 1)) for v in range(m)],
        costs=vector(draw, m, 0, 4),
        leaf=[draw(st.integers(-1, m - 1)) for _ in range(n)],
        each=each_of(draw, n),
    )


def tour_of(draw: Draw, n: int) -> Tour:
    return Tour(
        base=draw(times),
        points=vector(draw, 2 * n, -3, 3).reshape(n, 2),
        each=each_of(draw, n),
        start=vector(draw, 2, -3, 3),
        speed=draw(st.sampled_from([0.5, 1.0, 3.0])),
    )


def table_of(draw: Draw, n: int) -> Table:
    # Half of all subsets, and one of each size, so that every action space finds one.
    kept = [s for s in subsets_of(n) if draw(st.booleans()) or s == tuple(range(len(s)))]
    return Table(subsets=kept, times=vector(draw, len(kept), 0, 4))


LATENCIES: dict[str, Callable[[Draw, int], Latency]] = {
    "Additive": lambda draw, n: Additive(base=draw(times), each=each_of(draw, n)),
    "Setup": lambda draw, n: Setup(base=draw(times), setup=draw(times), each=each_of(draw, n)),
    "ByCount": lambda draw, n: ByCount(base=draw(times), by_count=vector(draw, n + 1, 0, 4)),
    "Tree": tree_of,
    "Tour": tour_of,
    "Table": table_of,
    "Awkward": lambda draw, n: Awkward(vector(draw, n, -3, 3)),
}

ACTIONS: dict[str, Callable[[Draw, int], Actions]] = {
    "AnySubset": lambda draw, n: AnySubset(),
    "AtMost": lambda draw, n: AtMost(draw(st.integers(0, n + 1))),
    "Exactly": lambda draw, n: Exactly(draw(st.integers(0, n))),
    "OneOf": lambda draw, n: OneOf(),
    "Grouped": lambda draw, n: Grouped(draw(st.integers(0, 2))),
    "Grouped by label": lambda draw, n: Grouped({"a": draw(st.integers(0, 2)), "b": 1}),
    "Listed": lambda draw, n: Listed(
        draw(st.lists(st.sampled_from(subsets_of(n)), min_size=1, max_size=6))
    ),
}

CELLS = [
    (latency, actions)
    for latency, actions in itertools.product(LATENCIES, ACTIONS)
    if latency != "Tour" or actions in ("AnySubset", "AtMost", "Listed")
]


def subsets_of(n: int) -> list[tuple[int, ...]]:
    return [s for k in range(n + 1) for s in itertools.combinations(range(n), k)]


@cache
def masks_of(n: int) -> list[tuple[tuple[int, ...], BoolArray]]:
    return [(subset, np.isin(np.arange(n), subset)) for subset in subsets_of(n)]


def allowed(
    latency: Latency, actions: Actions, n: int, groups: Any
) -> list[tuple[BoolArray, float]]:
    """The subsets allowed, with the time of each."""
    masks = [
        mask
        for subset, mask in masks_of(n)
        if not isinstance(latency, Table) or subset in latency.subsets
    ]
    return [(mask, latency.seconds(mask)) for mask in masks if actions.allows(mask, groups)]


@dataclass(frozen=True)
class Case:
    rate: float
    estimates: FloatArray
    latency: Latency
    actions: Actions
    groups: Any
    # None for no cap; a whole number for the cap that one subset meets exactly; else a share.
    cap: int | float | None


@st.composite
def cases(draw: st.DrawFn, latency_kind: str, action_kind: str) -> Case:
    n = draw(st.integers(1 if action_kind == "OneOf" else 0, 7 if latency_kind != "Table" else 4))
    grouped = "Grouped" in action_kind
    return Case(
        rate=draw(rates),
        estimates=vector(draw, n, -4, 4),
        latency=LATENCIES[latency_kind](draw, n),
        actions=ACTIONS[action_kind](draw, n),
        groups=np.array([draw(st.sampled_from("abc")) for _ in range(n)], str) if grouped else None,
        cap=draw(st.none() | st.integers(0, 200) | st.floats(0, 1.2)),
    )


@pytest.mark.parametrize(("latency_kind", "action_kind"), CELLS)
@settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=HEALTH)
@given(data=st.data())
def test_best_is_best(latency_kind: str, action_kind: str, data: st.DataObject) -> None:
    case = data.draw(cases(latency_kind, action_kind))
    rate, estimates, latency, groups = case.rate, case.estimates, case.latency, case.groups
    actions = case.actions
    subsets = allowed(latency, actions, len(estimates), groups)
    if case.cap is not None and subsets:
        taken = sorted({seconds for _, seconds in subsets})
        exactly = isinstance(case.cap, int)
        cap = taken[int(case.cap) % len(taken)] if exactly else case.cap * taken[-1]
        subsets = [(mask, seconds) for mask, seconds in subsets if seconds <= cap * (1 + 1e-9)]
        actions = Capped(cap, actions)
    if not subsets:
        with pytest.raises(ValueError, match="no subset"):
            best(rate, estimates, latency, actions, groups)
        return

    found = best(rate, estimates, latency, actions, groups)

    assert any(np.array_equal(found.chosen, mask) for mask, _ in subsets)
    assert found.chosen.dtype == np.bool_
    assert not found.chosen.flags.writeable
    assert found.exact
    assert found.lost == 0.0
    # Sums of at most 7 terms of size 5, compared to 1e-10 of them all: 1e-8 is ample.
    assert abs(found.seconds - latency.seconds(found.chosen)) <= 1e-8
    assert abs(found.gap - gap(rate, found.chosen, latency, estimates)) <= 1e-8
    least = min(rate * seconds - float(estimates[mask].sum()) for mask, seconds in subsets)
    assert abs(found.gap - least) <= 1e-8
    quickest = min(seconds for _, seconds in subsets)
    assert abs(floor(latency, actions, len(estimates), groups) - quickest) <= 1e-8
