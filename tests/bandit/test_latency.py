"""Each latency against its definition, written the naive way."""

import dataclasses
import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coaf.bandit.arrays import BoolArray, FloatArray
from coaf.bandit.compiled.paths import NEAR, improve, nearest
from coaf.bandit.latency import (
    Additive,
    ByCount,
    Latency,
    Setup,
    Table,
    Tour,
    Tree,
    arm_by_arm,
    is_arm_by_arm,
)
from coaf.bandit.selection.tour_paths import shortest_length

times = st.floats(0, 100) | st.integers(0, 5).map(float)
naive = settings(max_examples=200, deadline=None, derandomize=True)


def masks(n: int) -> st.SearchStrategy[BoolArray]:
    return st.lists(st.booleans(), min_size=n, max_size=n).map(lambda v: np.array(v, dtype=bool))


def many(n: int) -> st.SearchStrategy[list[float]]:
    return st.lists(times, min_size=n, max_size=n)


@naive
@given(st.data(), st.integers(0, 8), times, times, st.booleans())
def test_additive_and_setup_add_up(
    data: st.DataObject, n: int, base: float, setup: float, one: bool
) -> None:
    each = data.draw(times) if one else data.draw(many(n))
    chosen = data.draw(masks(n))
    total = sum((each if isinstance(each, float) else each[i]) for i in range(n) if chosen[i])
    assert Additive(base=base, each=each).seconds(chosen) == pytest.approx(base + total)
    move = setup if any(chosen) else 0.0
    latency = Setup(base=base, setup=setup, each=each)
    assert latency.seconds(chosen) == pytest.approx(base + move + total)


@naive
@given(st.data(), st.integers(0, 8), times)
def test_by_count_reads_the_count(data: st.DataObject, n: int, base: float) -> None:
    by_count, chosen = data.draw(many(n + 1)), data.draw(masks(n))
    count = sum(bool(taken) for taken in chosen)
    assert ByCount(base=base, by_count=by_count).seconds(chosen) == base + by_count[count]


@naive
@given(st.data(), st.integers(0, 6), st.integers(0, 6), times)
def test_tree_pays_for_every_ancestor_once(
    data: st.DataObject, n: int, m: int, base: float
) -> None:
    parents = [data.draw(st.integers(-1, v - 1)) for v in range(m)]
    leaf = [data.draw(st.integers(-1, m - 1)) for _ in range(n)]
    costs, each, chosen = data.draw(many(m)), data.draw(many(n)), data.draw(masks(n))
    opened = set()
    for arm in range(n):
        node = leaf[arm] if chosen[arm] else -1
        while node != -1:
            opened.add(node)
            node = parents[node]
    expected = base + sum(costs[v] for v in opened) + sum(each[i] for i in range(n) if chosen[i])
    tree = Tree(base=base, parents=parents, costs=costs, leaf=leaf, each=each)
    assert tree.seconds(chosen) == pytest.approx(expected)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.data(), st.integers(0, 6), st.integers(1, 3), st.floats(0.1, 10))
def test_tour_is_the_shortest_permutation(
    data: st.DataObject, n: int, k: int, speed: float
) -> None:
    place = st.tuples(*[st.integers(-9, 9).map(float) | st.floats(-9, 9)] * k)
    points, start = [data.draw(place) for _ in range(n)], data.draw(place)
    each, chosen = data.draw(many(n)), data.draw(masks(n))
    ways = itertools.permutations([points[i] for i in range(n) if chosen[i]])
    shortest = min(
        sum(float(np.hypot.reduce(np.subtract(a, b))) for a, b in itertools.pairwise([start, *way]))
        for way in ways
    )
    expected = 2.0 + shortest / speed + sum(each[i] for i in range(n) if chosen[i])
    table = np.array(points).reshape(n, k)
    tour = Tour(base=2.0, points=table, each=each, start=start, speed=speed)
    assert tour.seconds(chosen) == pytest.approx(expected)


def test_long_tours_are_close_to_the_shortest() -> None:
    # On a line through the start the shortest way is known: the near end first.
    line = np.random.default_rng(0).permutation(np.arange(-5.0, 20.0))
    points = np.stack([line, np.zeros_like(line)], axis=1)
    tour = Tour(base=0.0, points=points, each=0.0, start=[0.0, 0.0])
    assert tour.seconds(np.ones(25, dtype=bool)) == pytest.approx(5.0 + 24.0)
    # On a lattice, starting at a corner, every step can be of length 1.
    lattice = np.array(list(itertools.product(range(6), range(6))), dtype=float)
    length = shortest_length(lattice, np.zeros(2))
    assert 35.0 <= length <= 1.1 * 35.0


def test_improve_leaves_no_better_reversal_or_shift() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        table = np.zeros((11, 11))
        places = rng.uniform(size=(10, 2))
        table[:10, :10] = np.linalg.norm(places[:, None] - places[None], axis=2)
        path = np.array([9, *rng.permutation(9), 10])
        improve(path, table, nearest(table, NEAR))
        assert sorted(path[1:-1].tolist()) == list(range(9))
        assert (path[0], path[-1]) == (9, 10)

        def length(order: list[int], table: FloatArray = table) -> float:
            return float(sum(table[a, b] for a, b in itertools.pairwise(order)))

        now, inner = length(path.tolist()), path[1:-1].tolist()
        for i, j in itertools.combinations(range(10), 2):
            rest, part = inner[:i] + inner[j:], inner[i:j]
            turned = inner[:i] + part[::-1] + inner[j:]
            others = [turned]
            if len(part) <= 3:
                others += [
                    rest[:at] + piece + rest[at:]
                    for at in range(len(rest) + 1)
                    for piece in (part, part[::-1])
                ]
            assert all(length([9, *other, 10]) >= now - 1e-9 for other in others)


def test_table_reads_its_entries_and_names_what_is_missing() -> None:
    table = Table(subsets=[(), (1, 0), (2,)], times=[0.5, 3.0, 4.0])
    assert table.seconds(np.array([True, True, False])) == 3.0
    assert table.seconds(np.zeros(3, dtype=bool)) == 0.5
    with pytest.raises(ValueError, match=r"no time for the subset \(0, 2\)"):
        table.seconds(np.array([True, False, True]))


EXAMPLES: list[Latency] = [
    Additive(base=5.0, each=[1.0, 2.0]),
    Setup(base=12.1, setup=52.0, each=6.7),
    ByCount(base=1.0, by_count=[0.0, 2.0, 3.0]),
    Tree(base=1.0, parents=[-1, 0], costs=[1.0, 2.0], leaf=[0, 1], each=1.0),
    Tour(base=1.0, points=[[0.0], [1.0]], each=1.0, start=[0.5], speed=2.0),
    Table(subsets=[(), (0,), (0, 1)], times=[0.0, 1.0, 2.0]),
]


@pytest.mark.parametrize("latency", EXAMPLES, ids=lambda latency: type(latency).__name__)
def test_a_latency_is_its_fields(latency: Latency) -> None:
    assert isinstance(latency, Latency)
    latency.check(2)
    values = {f.name: getattr(latency, f.name) for f in dataclasses.fields(latency)}  # type: ignore[arg-type]
    again = type(latency)(**values)
    assert again == latency
    assert pickle.loads(pickle.dumps(latency)) == latency
    arrays = [value for value in values.values() if isinstance(value, np.ndarray)]
    assert not any(array.flags.writeable for array in arrays)
    for name in values.keys() - {"subsets", "parents", "leaf"}:
        assert type(latency)(**{**values, name: values[name] + 1}) != latency
    with pytest.raises(TypeError, match="unhashable"):
        hash(latency)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(latency, next(iter(values)), 3.0)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Additive(base=-1.0, each=1.0), r"base is -1.0; it must be at least 0"),
        (lambda: Additive(base=1.0, each=[0.0, -2.0]), r"each\[1\] is -2.0"),
        (lambda: Additive(base=1.0, each=float("nan")), r"each is nan"),
        (lambda: Setup(base=1.0, setup=float("inf"), each=1.0), r"setup is inf"),
        (lambda: Setup(base=1.0, setup="x", each=1.0), r"setup must be a number, got 'x'"),  # type: ignore[arg-type]
        (lambda: ByCount(base=0.0, by_count=[0.0, -1.0]), r"by_count\[1\] is -1.0"),
        (lambda: Tree(0.0, parents=[-1, 1], costs=[1, 1], leaf=[0]), r"parents\[1\] is 1; a par"),
        (lambda: Tree(0.0, parents=[-2], costs=[1], leaf=[0]), r"parents\[0\] is -2"),
        (lambda: Tree(0.0, parents=[-1], costs=[1, 1], leaf=[0]), r"costs has 2 entries, but p"),
        (lambda: Tree(0.0, parents=[-1], costs=[1], leaf=[0, 1]), r"leaf\[1\] is 1;.* -1 to 0"),
        (lambda: Tree(0.0, parents=[-1.0], costs=[1], leaf=[0]), r"parents .* whole numbers"),
        (lambda: Tour(0.0, points=[[0.0, 0.0]], each=0.0, start=[0.0]), r"start has 1 coord"),
        (lambda: Tour(0.0, points=[[0.0]], each=0.0, start=[0.0], speed=0.0), r"speed is 0.0"),
        (lambda: Table(subsets=[(0, 0)], times=[1.0]), r"subsets\[0\] .* repeats an arm"),
        (lambda: Table(subsets=[(0, 1), (1, 0)], times=[1.0, 2.0]), r"subsets\[1\] .* second"),
        (lambda: Table(subsets=[(0,)], times=[1.0, 2.0]), r"times has 2 entries"),
        (lambda: Table(subsets=[(-1,)], times=[1.0]), r"subsets\[0\] .* got -1"),
    ],
)
def test_wrong_settings_are_named(build: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("latency", "message"),
    [
        (Additive(base=0.0, each=[1.0, 2.0]), "each has 2 entries for a round of 3 arms"),
        (Setup(base=0.0, setup=1.0, each=[1.0]), "each has 1 entries"),
        (ByCount(base=0.0, by_count=[0.0, 1.0, 2.0]), "by_count has 3 entries.* needs 4"),
        (Tree(0.0, parents=[-1], costs=[1], leaf=[0, 0]), "leaf has 2 entries"),
        (Tree(0.0, parents=[], costs=[], leaf=[-1] * 3, each=[1.0]), "each has 1 entries"),
        (Tour(0.0, points=[[0.0]], each=0.0, start=[0.0]), "points has 1 entries"),
        (Tour(0.0, points=[[0.0]] * 3, each=[1.0], start=[0.0]), "each has 1 entries"),
        (Table(subsets=[(), (3,)], times=[0.0, 1.0]), r"subsets\[1\] names arm 3.* 3 arms"),
    ],
)
def test_another_number_of_arms_is_refused(latency: Latency, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        latency.check(3)


def test_arms_are_judged_one_by_one_where_each_has_its_own_time() -> None:
    class Mine(Additive):
        def seconds(self, chosen: Any) -> float:
            return 1.0 + float(chosen.sum()) ** 2

    additive, setup = Additive(5.0, 1.0), Setup(5.0, 3.0, 1.0)
    assert is_arm_by_arm(additive)
    assert is_arm_by_arm(setup)
    assert not is_arm_by_arm(ByCount(1.0, [0.0, 1.0]))
    assert not is_arm_by_arm(Mine(5.0, 1.0))  # whose time may be anything
    assert (arm_by_arm(additive).setup, arm_by_arm(setup).setup) == (0.0, 3.0)
    assert additive == Additive(5.0, 1.0) != setup
