"""What is drawn is what the specimen says, at every magnification."""

from dataclasses import replace

import numpy as np
import pytest

from coaf.cryoem.simulator.draw import (
    BARS,
    FOIL,
    MEAN_FREE_PATH,
    Specimen,
    draw_square,
    lay_holes,
    visible,
)
from coaf.cryoem.simulator.grid import turn
from coaf.cryoem.simulator.tile import TileSquare, draw_tile

DOSE = 1000.0


def small(**change: object) -> Specimen:
    holes = lay_holes(size=20.0, spacing=5.0, radius=1.0, angle=0.3)
    specimen = Specimen(
        holes=holes,
        radius=np.ones(len(holes)),
        thickness=np.full(len(holes), 60.0),
        size=20.0,
        angle=0.3,
    )
    return replace(specimen, **change)  # type: ignore[arg-type]


def mean_at(specimen: Specimen, where: tuple[float, float], *, pixels: int = 400) -> float:
    """Brightness, relative to vacuum, within 0.5 µm of a place."""
    image = draw_square(specimen, pixels=pixels, dose=DOSE, seed=1)
    rows, columns = np.indices(image.pixels.shape)
    x, y = image.to_stage(np.column_stack([columns.ravel(), rows.ravel()])).T
    near = np.hypot(x - where[0], y - where[1]) < 0.5
    return float(image.pixels.ravel()[near].mean()) / DOSE


@pytest.mark.parametrize("thickness", [0.0, 40.0, 200.0])
def test_ice_absorbs_by_its_thickness(thickness: float) -> None:
    specimen = small()
    ice = specimen.thickness.copy()
    ice[0] = thickness
    seen = mean_at(replace(specimen, thickness=ice), tuple(specimen.holes[0]))
    assert seen == pytest.approx(np.exp(-thickness / MEAN_FREE_PATH), rel=0.01)


def test_foil_bars_dirt_cover_and_tears_have_their_own_brightness() -> None:
    specimen = small()
    between = tuple(np.array([2.5, 2.5]) @ turn(0.3))
    through = np.exp(-60.0 / MEAN_FREE_PATH)
    assert mean_at(specimen, between) == pytest.approx(FOIL["carbon"] * through, rel=0.02)
    gold = replace(specimen, foil="gold")
    assert mean_at(gold, between) == pytest.approx(FOIL["gold"] * through, rel=0.02)
    assert mean_at(specimen, (10.5, -10.0)) == pytest.approx(BARS, abs=0.01)
    blob = np.array([[*between, 1.2]])
    assert mean_at(replace(specimen, dirt=blob), between) == pytest.approx(BARS, abs=0.01)
    assert mean_at(replace(specimen, covered=blob), between) < 0.3
    broken = np.zeros(len(specimen.holes), dtype=np.bool_)
    broken[3] = True
    assert mean_at(replace(specimen, broken=broken), tuple(specimen.holes[3])) > 0.97


def test_ice_that_tilts_and_a_beam_that_slopes() -> None:
    specimen = small(tilt_of_ice=np.tile([30.0, 0.0], (9, 1)))
    x, y = specimen.holes[4]
    thin, thick = mean_at(specimen, (x - 0.5, y)), mean_at(specimen, (x + 0.5, y))
    assert np.log(thin / thick) == pytest.approx(30.0 / MEAN_FREE_PATH, rel=0.15)
    sloped = replace(small(), shade=np.array([0.2, 0.0]))
    right = mean_at(sloped, tuple(specimen.holes[5])) / mean_at(small(), tuple(specimen.holes[5]))
    assert right == pytest.approx(1.0 + 0.2 * specimen.holes[5, 0] / 10.0, rel=0.02)


def test_crystals_speckle_a_hole() -> None:
    crystalline = np.zeros(9, dtype=np.bool_)
    crystalline[4] = True
    spread = []
    for specimen in (small(), small(crystalline=crystalline)):
        image = draw_square(specimen, pixels=512, dose=DOSE, seed=2)
        spread.append(float(image.pixels[246:266, 246:266].std()))
    assert spread[1] > 3.0 * spread[0]


def test_the_seed_is_the_picture() -> None:
    specimen = small(broken=np.arange(9) == 2)
    one, same, other = (draw_square(specimen, pixels=64, seed=s).pixels for s in (5, 5, 6))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


def test_shot_noise_grows_as_the_root_of_the_dose() -> None:
    specimen = Specimen(holes=np.zeros((0, 2)), radius=np.zeros(0), thickness=np.zeros(0))
    for dose in (50.0, 800.0):
        middle = draw_square(specimen, pixels=256, dose=dose, seed=0).pixels[100:156, 100:156]
        mean = dose * FOIL["carbon"]
        assert middle.mean() == pytest.approx(mean, rel=0.02)
        assert middle.std() == pytest.approx(np.sqrt(mean + 4.0), rel=0.06)


def test_hidden_broken_and_dark_holes_are_not_visible() -> None:
    specimen = small()
    assert visible(specimen).all()
    thickness = specimen.thickness.copy()
    thickness[0] = 400.0
    hidden = replace(
        specimen,
        thickness=thickness,
        broken=np.arange(9) == 1,
        covered=np.array([[*specimen.holes[2], 2.0]]),
        dirt=np.array([[*specimen.holes[3], 0.5]]),
        size=11.5,
    )
    # Holes at the corners of the lattice lie beyond the smaller opening's reach, or its bars.
    assert not visible(hidden)[:4].any()
    assert visible(hidden)[4]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"thickness": np.full(9, -1.0)}, r"thickness\[0\] is -1.0"),
        ({"radius": np.ones(3)}, "with 9 holes it must have"),
        ({"radius": []}, "with 9 holes it must have"),
        ({"foil": "paper"}, "carbon, gold"),
        ({"broken": np.zeros(2, dtype=np.bool_)}, "broken"),
        ({"size": 0.0}, "size is 0.0"),
    ],
)
def test_scenes_that_cannot_be_are_refused(change: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        small(**change)


def test_a_tile_shows_its_squares() -> None:
    squares = [
        TileSquare(-90.0, 0.0, 60.0, angle=0.2, brightness=0.6),
        TileSquare(0.0, 0.0, 60.0, angle=0.2, brightness=0.3),
        TileSquare(90.0, 0.0, 60.0, angle=0.2, brightness=0.3, state="broken"),
        TileSquare(0.0, 90.0, 60.0, angle=0.2, brightness=0.6, state="thick"),
    ]
    tile = draw_tile(squares, pixels=300, field=300.0, dose=100.0, seed=3)
    level = [float(np.median(tile.pixels[149 + r - 9 : 149 + r + 9, 149 + c - 9 : 149 + c + 9]))
             for c, r in ((-90, 0), (0, 0), (90, 0), (0, 90), (45, 45))]  # fmt: skip
    assert level[0] == pytest.approx(60.0, rel=0.1)
    assert level[1] == pytest.approx(30.0, rel=0.1)
    assert level[2] > 80.0
    assert 5.0 < level[3] < 20.0
    assert level[4] < 6.0
