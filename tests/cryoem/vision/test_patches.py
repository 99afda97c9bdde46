"""Grouping holes: limits kept, nothing lost, and holes that stay where they were."""

from dataclasses import replace
from math import ceil, hypot

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coaf.cryoem.grid import Hole, Patch
from coaf.cryoem.vision.circles import smallest_circle
from coaf.cryoem.vision.patches import Grouping, group_holes

RADIUS, MOST, BEAM = 6.0, 7, 0.6

# In 64ths of a µm, so that a shift by whole µm is exact.
_place = st.integers(-40 * 64, 40 * 64).map(lambda i: i / 64.0)
_hole = st.tuples(_place, _place, st.sampled_from([0.3, 0.6, 1.0]))


def named(places: list[tuple[float, float, float]]) -> list[Hole]:
    return [Hole(f"h{i}", x, y, radius=r) for i, (x, y, r) in enumerate(places)]


irregular = st.lists(_hole, max_size=40).map(named)


def group(holes: list[Hole], **more: object) -> Grouping:
    settings = {"square": "s", "radius": RADIUS, "most": MOST, "beam": BEAM} | more
    return group_holes(holes, **settings)  # type: ignore[arg-type]


def lattice(pitch: float, side: int, angle: float, share: float = 1.0) -> list[Hole]:
    rng = np.random.default_rng(5)
    steps = np.arange(side) * pitch
    grid = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
    turn = np.radians(angle)
    grid = grid @ np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    grid = grid[rng.random(len(grid)) < share]
    return [Hole(f"h{i}", x, y) for i, (x, y) in enumerate(grid.tolist())]


def members(found: Grouping) -> set[frozenset[str]]:
    return {frozenset(hole.name for hole in patch.holes) for patch in found.patches}


def homes(found: Grouping) -> dict[str, str]:
    return {hole.name: patch.name for patch in found.patches for hole in patch.holes}


def check(found: Grouping, holes: list[Hole]) -> None:
    grouped = [hole for patch in found.patches for hole in patch.holes]
    assert len(grouped) == len({hole.name for hole in grouped})
    assert len(grouped) + sum(found.excluded.values()) == len(holes)
    assert len({patch.name for patch in found.patches}) == len(found.patches)
    for patch in found.patches:
        assert len(patch.holes) <= MOST
        assert all(hypot(h.x - patch.x, h.y - patch.y) <= RADIUS + 1e-9 for h in patch.holes)
        if patch.focus is not None:
            x, y = patch.focus
            assert hypot(x - patch.x, y - patch.y) <= RADIUS / 2.0 + 1e-9
            assert all(hypot(x - h.x, y - h.y) >= h.radius + BEAM - 1e-9 for h in holes)


@settings(max_examples=50, deadline=None)
@given(irregular)
def test_every_hole_is_in_one_patch_within_reach_and_the_focus_misses_all(
    holes: list[Hole],
) -> None:
    found = group(holes)
    check(found, holes)
    assert set(homes(found)) == {hole.name for hole in holes}
    assert found.excluded == {}


@settings(max_examples=50, deadline=None)
@given(irregular, st.randoms(use_true_random=False))
def test_the_order_of_holes_does_not_matter(holes: list[Hole], random: object) -> None:
    mixed = list(holes)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert group(mixed) == group(holes)


@settings(max_examples=50, deadline=None)
@given(irregular, st.integers(-900, 900), st.integers(-900, 900))
def test_where_the_square_is_does_not_matter(holes: list[Hole], dx: int, dy: int) -> None:
    moved = [replace(hole, x=hole.x + dx, y=hole.y + dy) for hole in holes]
    assert members(group(moved)) == members(group(holes))


@settings(max_examples=50, deadline=None)
@given(irregular, st.data())
def test_grouped_again_the_rest_stays_where_it_was(holes: list[Hole], data: st.DataObject) -> None:
    found = group(holes)
    names = [hole.name for hole in holes]
    exposed = data.draw(st.sets(st.sampled_from(names)) if names else st.just(set()))
    again = group(holes, exposed=exposed, before=found.patches)
    check(again, holes)
    assert homes(again) == {h: p for h, p in homes(found).items() if h not in exposed}
    before = {patch.name: patch for patch in found.patches}
    for patch in again.patches:
        assert replace(patch, holes=before[patch.name].holes) == before[patch.name]
    assert again.excluded == ({"exposed": len(exposed)} if exposed else {})


@settings(max_examples=50, deadline=None)
@given(irregular, st.lists(_hole, min_size=1, max_size=10))
def test_holes_found_later_join_or_make_new_patches(
    holes: list[Hole], more: list[tuple[float, float, float]]
) -> None:
    found = group(holes)
    late = [replace(hole, name=f"late {hole.name}") for hole in named(more)]
    again = group(holes + late, before=found.patches)
    check(again, holes + late)
    assert homes(again).items() >= homes(found).items()


def test_a_hole_found_again_out_of_reach_leaves_its_patch() -> None:
    holes = [Hole("a", 0.0, 0.0), Hole("b", 4.0, 0.0)]
    found = group(holes)
    assert len(found.patches) == 1
    moved = [holes[0], Hole("b", 30.0, 0.0)]
    again = group(moved, before=found.patches)
    check(again, moved)
    assert homes(again)["a"] == found.patches[0].name != homes(again)["b"]


def test_smaller_limits_than_before_are_kept_to() -> None:
    holes = lattice(2.0, 5, 0.0)
    wide = group_holes(holes, square="s", radius=12.0, most=25)
    assert len(wide.patches) == 1
    narrow = group(holes, before=wide.patches)
    check(narrow, holes)
    assert narrow.patches[0].name == wide.patches[0].name


@pytest.mark.parametrize("angle", [0.0, 11.0, 33.0, 45.0, 70.0])
def test_where_holes_are_dense_patches_are_nearly_full_and_compact(angle: float) -> None:
    """At most one patch more than there must be; none wider than half again a full disc."""
    holes = lattice(2.5, 18, angle, share=0.9)
    found = group_holes(holes, square="s", most=25)
    assert len(found.patches) <= ceil(len(holes) / 25) + 1
    disc = 2.5 * np.sqrt(25 / 0.9 / np.pi)
    widths = [max(hypot(h.x - p.x, h.y - p.y) for h in p.holes) for p in found.patches]
    assert np.mean(widths) <= 1.5 * disc
    assert all(patch.focus is not None for patch in found.patches)


@pytest.mark.parametrize("angle", [0.0, 30.0])
def test_where_holes_are_sparse_reach_decides(angle: float) -> None:
    """Squares of side radius·√2 would need 9 for 50 x 50 µm; allow for the lattice not fitting."""
    found = group_holes(lattice(5.0, 11, angle), square="s", most=100)
    assert len(found.patches) <= 12


def test_a_square_with_far_too_many_targets() -> None:
    rng = np.random.default_rng(1)
    places = rng.uniform(0.0, 300.0, (10_000, 2)).tolist()
    holes = [Hole(f"h{i}", x, y) for i, (x, y) in enumerate(places)]
    found = group_holes(holes, square="s")
    assert len(homes(found)) == 10_000
    assert len(found.patches) <= 1.4 * 400


def test_holes_on_top_of_each_other_are_still_grouped() -> None:
    holes = [Hole(f"h{i:02}", 1.0, 1.0) for i in range(20)]
    found = group(holes)
    check(found, holes)
    assert sorted(len(patch.holes) for patch in found.patches) == [6, 7, 7]


def test_holes_near_bars_are_left_out_and_counted() -> None:
    holes = [Hole("a", 0.0, 0.0), Hole("b", 3.0, 0.0, radius=1.5), Hole("c", 6.0, 0.0)]
    found = group(holes, edges=[2.0, 2.0, 9.0], margin=1.0, exposed=["c", "another square's"])
    assert set(homes(found)) == {"a"}
    assert found.excluded == {"near a grid bar": 1, "exposed": 1}


def test_no_place_for_the_focus() -> None:
    holes = lattice(1.0, 20, 0.0)  # 0.7 µm from anything, at the most
    found = group_holes(holes, square="s", radius=6.0, most=25, beam=0.6)
    inner = [p for p in found.patches if min(p.x, p.y, 19.0 - p.x, 19.0 - p.y) >= 3.0]
    assert inner
    assert all(patch.focus is None for patch in inner)


def test_a_focus_that_a_new_hole_lies_on_moves() -> None:
    holes = lattice(2.5, 3, 0.0)
    found = group_holes(holes, square="s")
    focus = found.patches[0].focus
    assert focus is not None
    holes.append(Hole("new", *focus))
    again = group_holes(holes, square="s", before=found.patches).patches[0].focus
    assert again is not None
    assert all(hypot(again[0] - h.x, again[1] - h.y) >= h.radius + 0.6 - 1e-9 for h in holes)


def test_no_holes_no_patches() -> None:
    assert group([]) == Grouping(())


@given(st.lists(st.tuples(_place, _place), min_size=1, max_size=12))
@settings(max_examples=50, deadline=None)
def test_the_smallest_circle_against_a_search(places: list[tuple[float, float]]) -> None:
    """Around all points, and no centre nearby has a smaller one: the problem is convex."""
    points = np.array(places)
    (x, y), radius = smallest_circle(points)
    assert np.hypot(*(points - [x, y]).T).max() <= radius
    turn = np.linspace(0.0, 2.0 * np.pi, 60, endpoint=False)
    for step in (1e-4, 0.1, 3.0):
        for dx, dy in step * np.column_stack([np.cos(turn), np.sin(turn)]):
            assert np.hypot(*(points - [x + dx, y + dy]).T).max() >= radius - 1e-9


_HOLE = Hole("a", 0.0, 0.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"most": 0}, "most is 0; a patch has at least one hole"),
        ({"radius": -1.0}, "radius is -1.0; it must be greater than 0"),
        ({"edges": [1.0, 2.0]}, "edges has 2 distances for 1 holes"),
        ({"edges": [float("nan")]}, r"edges\[0\] is nan"),
        ({"holes": [_HOLE, _HOLE]}, "hole 'a' is there more than once"),
        ({"before": [Patch("p", "other", (_HOLE,), 0.0, 0.0)]}, "of square 'other', not 's'"),
        ({"before": [Patch("p", "s", (_HOLE,), 0.0, 0.0)] * 2}, "more than once"),
    ],
)
def test_wrong_input_is_named(change: dict[str, object], message: str) -> None:
    holes = change.pop("holes", [_HOLE])
    with pytest.raises(ValueError, match=message):
        group(holes, **change)  # type: ignore[arg-type]
