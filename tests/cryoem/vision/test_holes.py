"""Holes are found at any rotation, in every foil, and where there are none, none are."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter

from coaf.cryoem.images import Image, read_image
from coaf.cryoem.simulator.draw import Specimen, draw_square, lay_holes
from coaf.cryoem.simulator.grid import turn
from coaf.cryoem.vision.holes import find_holes
from coaf.cryoem.vision.lattice import Lattice, reduce
from coaf.cryoem.vision.opening import find_opening
from outside import SAMPLES
from specimens import add, mark, random_specimen


def plain(angle: float = 0.4, *, size: float = 40.0) -> Specimen:
    holes = lay_holes(size=size, spacing=3.0, radius=0.8, angle=angle)
    n = len(holes)
    thickness = np.random.default_rng(1).uniform(10.0, 70.0, n)
    return Specimen(
        holes=holes, radius=np.full(n, 0.8), thickness=thickness, size=size, angle=angle
    )


def test_recall_and_precision_over_many_specimens() -> None:
    marks = []
    for seed in range(6):
        specimen = random_specimen(seed)
        image = draw_square(specimen, pixels=512, dose=100.0, seed=seed)
        marks.append(mark(specimen, image, find_holes(image)))
        assert marks[-1].recall > 0.93
        assert marks[-1].precision > 0.93
    total = add(marks)
    assert total.recall > 0.97
    assert total.precision > 0.97
    assert total.error < 0.1  # µm


@pytest.mark.parametrize("angle", [0.0, np.pi / 4, -2.0])
def test_lattice_and_radius_are_measured(angle: float) -> None:
    specimen = plain(angle)
    found = find_holes(draw_square(specimen, pixels=512, seed=0))
    assert found.lattice is not None
    assert found.lattice.spacing == pytest.approx(3.0, rel=0.005)
    off = (found.lattice.rotation - angle + np.pi / 4) % (np.pi / 2) - np.pi / 4
    assert abs(off) < 0.01
    assert found.radius == pytest.approx(0.8, rel=0.07)
    # The lattice's own nodes are where the holes are.
    index = (specimen.holes - found.lattice.origin) @ np.linalg.inv(found.lattice.vectors)
    assert np.abs(index - np.rint(index)).max() < 0.1


def test_a_hexagonal_foil() -> None:
    i, j = (part.ravel() for part in np.meshgrid(np.arange(-20, 21), np.arange(-20, 21)))
    holes = np.column_stack([2.0 * i + j, np.sqrt(3.0) * j]) @ turn(0.7)
    holes = holes[np.abs(holes @ turn(-0.2)).max(axis=1) < 14.0]
    n = len(holes)
    specimen = Specimen(
        holes=holes, radius=np.full(n, 0.5), thickness=np.full(n, 30.0), size=30.0, angle=0.2
    )
    image = draw_square(replace(specimen, foil="gold"), pixels=512, seed=3)
    marks = mark(specimen, image, find_holes(image))
    assert marks.recall > 0.99
    assert marks.precision > 0.97


def test_bent_foil_is_followed() -> None:
    specimen = plain()
    x, y = specimen.holes.T
    bent = specimen.holes + 0.004 * np.column_stack([x * np.abs(y), y**2 - x**2])
    assert (
        np.abs(bent - specimen.holes).max() > 1.0
    )  # µm: a third of the spacing, more than a radius
    specimen = replace(specimen, holes=bent, size=44.0)
    image = draw_square(specimen, pixels=512, seed=3)
    marks = mark(specimen, image, find_holes(image))
    assert marks.recall > 0.97
    assert marks.precision > 0.97


def test_part_covered_square() -> None:
    specimen = replace(plain(), covered=np.array([[6.0, 4.0, 16.0]]))
    image = draw_square(specimen, pixels=512, seed=4)
    marks = mark(specimen, image, find_holes(image))
    assert marks.visible > 20
    assert marks.recall > 0.95
    assert marks.precision > 0.97


def test_what_is_open_does_not_depend_on_how_much_of_the_image_shows_bars() -> None:
    """Ice too thick to see through is no opening, also where bars are most of what is seen."""
    thick = replace(plain(0.2), covered=np.array([[-20.0, 0.0, 20.0]]))
    near, far = (draw_square(thick, pixels=512, field=field, seed=1) for field in (45.0, 75.0))
    sides = [find_opening(image).side for image in (near, far)]
    assert sides[0] == pytest.approx(31.5, abs=0.5)
    assert sides[1] == pytest.approx(sides[0], rel=0.015)


@pytest.mark.parametrize(
    ("angle", "spacing", "pixels"), [(0.1, 2.2, 400), (1.2, 3.3, 300), (0.77, 2.5, 512)]
)
def test_the_lattice_is_known_to_a_small_part_of_a_pixel(
    angle: float, spacing: float, pixels: int
) -> None:
    """Over a square it is off by less than a third of a hole."""
    holes = lay_holes(size=40.0, spacing=spacing, radius=spacing / 4.0, angle=angle)
    n = len(holes)
    thickness = np.random.default_rng(1).uniform(10.0, 70.0, n)
    radius = np.full(n, spacing / 4.0)
    drawn = Specimen(holes=holes, radius=radius, thickness=thickness, size=40.0, angle=angle)
    lattice = find_holes(draw_square(drawn, pixels=pixels, dose=40.0, seed=2)).lattice
    assert lattice is not None
    assert lattice.spacing == pytest.approx(spacing, rel=0.0015)
    assert lattice.rotation == pytest.approx(angle, abs=0.001)


def test_holes_too_small_for_a_coarse_copy_are_found_in_a_finer_one() -> None:
    """Of 520 pixels a copy of half as many is searched first, in which holes are 2.7 across."""
    pixel = 30.0 / 520.0
    holes = lay_holes(size=44.0, spacing=8.5 * pixel, radius=2.7 * pixel, angle=0.3)
    n = len(holes)
    radius, thickness = np.full(n, 2.7 * pixel), np.full(n, 40.0)
    drawn = Specimen(holes=holes, radius=radius, thickness=thickness, size=44.0, angle=0.3)
    image = draw_square(drawn, pixels=520, field=30.0, dose=400.0, seed=1)
    found = find_holes(image)
    assert found.radius == pytest.approx(2.7 * pixel, rel=0.1)
    assert len(found.holes) == pytest.approx((30.0 / (8.5 * pixel)) ** 2, rel=0.03)


def test_darker_holes_are_found_too() -> None:
    specimen = plain()
    image = draw_square(specimen, pixels=512, field=25.0, seed=4)
    negative = Image(150.0 - image.pixels, image.pixel_size)
    both = [
        mark(specimen, image, find_holes(image)),
        mark(specimen, negative, find_holes(negative)),
    ]
    assert both[0].seen == both[1].seen > 40


def test_what_is_known_may_be_said() -> None:
    specimen = plain()
    image = draw_square(specimen, pixels=512, dose=10.0, seed=4)
    found = find_holes(image, radius=0.85, spacing=2.9)
    assert found.lattice is not None
    assert found.lattice.spacing == pytest.approx(3.0, rel=0.01)
    assert mark(specimen, image, found).recall > 0.97
    with pytest.raises(ValueError, match="spacing is -1"):
        find_holes(image, spacing=-1.0)


def test_a_place_on_the_stage_moves_the_holes_with_it() -> None:
    image = draw_square(plain(), pixels=400, seed=0)
    away = Image(image.pixels, image.pixel_size, x=100.0, y=-50.0)
    here, there = find_holes(image), find_holes(away)
    np.testing.assert_allclose(here.holes, there.holes, atol=1e-6)
    assert here.lattice is not None
    assert there.lattice is not None
    np.testing.assert_allclose(there.lattice.origin - here.lattice.origin, [100, -50], atol=1e-6)
    np.testing.assert_allclose(there.opening.centre - here.opening.centre, [100, -50], atol=1e-6)


def test_opening_and_dirt() -> None:
    specimen = replace(plain(), dirt=np.array([[5.0, 5.0, 1.5], [-8.0, 2.0, 1.0]]))
    image = draw_square(specimen, pixels=1100, seed=0)  # binned, with columns left over
    found = find_holes(image)
    np.testing.assert_allclose(found.opening.centre, [0.0, 0.0], atol=0.2)
    assert found.opening.side == pytest.approx(40.0, rel=0.02)
    points = np.array([[0.0, 0.0], [15.0, 0.0], [0.0, -18.0]]) @ turn(0.4)
    np.testing.assert_allclose(found.opening.edge_distance(points), [20.0, 5.0, 2.0], atol=0.3)
    dirt = image.to_stage(found.dirt)
    assert np.hypot(*(dirt[:, None] - specimen.dirt[None, :, :2]).T).min(axis=1).max() < 0.3


def test_squares_without_holes_say_why() -> None:
    rng = np.random.default_rng(5)
    bare = Specimen(holes=np.zeros((0, 2)), radius=np.zeros(0), thickness=np.zeros(0), angle=0.5)
    specks = np.column_stack([rng.uniform(-25, 25, (20, 2)), rng.uniform(0.3, 2.0, 20)])
    pictures = [
        draw_square(bare, pixels=300, seed=1),
        draw_square(replace(bare, dirt=specks), pixels=300, seed=1),
    ]
    arrays = [
        rng.poisson(40.0, (300, 200)),
        gaussian_filter(rng.normal(100.0, 20.0, (300, 300)), 3.0),
        np.full((64, 64), 7.0),
        np.zeros((64, 64)),
        rng.normal(0.0, 1.0, (16, 16)),
    ]
    pictures += [Image(array.astype(np.float32), 0.1) for array in arrays]
    for picture in pictures:
        found = find_holes(picture)
        assert found.holes.shape == (0, 2)
        assert found.why
        assert found.lattice is None
        assert np.isfinite(found.opening.edge_distance(np.array([[0.0, 0.0]]))).all()


@given(st.floats(0.5, 2.0), st.floats(0.6, 2.5), st.integers(-4, 4), st.integers(-4, 4))
@settings(max_examples=100, deadline=None)
def test_reduced_vectors_are_the_shortest(a: float, turn: float, m: int, k: int) -> None:
    basis = np.array([[1.0, 0.0], [a * np.cos(turn), a * np.sin(turn)]])
    skew = np.array([[1, m], [k, 1 + k * m]])  # of determinant 1: the same lattice
    short = reduce(skew @ basis)
    grid = np.array([(i, j) for i in range(-6, 7) for j in range(-6, 7) if (i, j) != (0, 0)])
    lengths = np.sort(np.hypot(*(grid @ basis).T))
    assert np.hypot(*short[0]) == pytest.approx(lengths[0], rel=1e-6)
    assert abs(np.linalg.det(short)) == pytest.approx(abs(np.linalg.det(basis)), rel=1e-6)
    assert abs(short[0] @ short[1]) <= (0.5 + 1e-6) * (short[0] @ short[0])


def test_rotation_is_that_of_the_lattice_not_of_its_basis() -> None:
    for quarter in range(4):
        vectors = np.array([[2.0, 0.0], [0.0, 2.0]]) @ turn(0.3 + quarter * np.pi / 2)
        assert Lattice(vectors, np.zeros(2)).rotation == pytest.approx(0.3)


def test_a_real_square() -> None:
    path = SAMPLES / "epu" / "GridSquare_20250108_151151.jpg"
    if not path.exists():
        pytest.skip(f"no sample image at {path}")
    pytest.importorskip("PIL")
    image = read_image(path, pixel_size=1.0)
    found = find_holes(image)
    # By eye, on an enlarged overlay: 888 places, none of them wrong; about five whole holes are
    # missed beside specks of dirt, and some twenty in the shadow of the bars.
    assert 875 < len(found.holes) < 915
    assert found.lattice is not None
    assert found.lattice.spacing == pytest.approx(11.34, abs=0.05)  # pixels
    assert 1.5 < found.radius < 2.5
    # None in the large dirt, none on the bars.
    assert np.hypot(*(found.holes - [182.0, 218.0]).T).min() > 6.0
    assert found.opening.edge_distance(image.to_stage(found.holes)).min() > 1.0
