"""Features say the same of a specimen at every magnification and dose, and rank its ice."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from coaf.bandit.arrays import FloatArray
from coaf.cryoem.images import Image, Pixels
from coaf.cryoem.simulator.draw import MEAN_FREE_PATH, Specimen, draw_square, lay_holes, visible
from coaf.cryoem.simulator.tile import TileSquare, draw_tile
from coaf.cryoem.vision.features import (
    HOLE_FEATURES,
    hole_features,
    paper_features,
)
from coaf.cryoem.vision.holes import find_holes
from coaf.cryoem.vision.square_features import SQUARE_FEATURES, square_features
from specimens import random_specimen

ICE, SPREAD, CONTRAST, GRADIENT, EDGE, DIRT, NEIGHBOURS, RADIAL = range(8)
SIZE = 30.0


def specimen(seed: int = 1) -> Specimen:
    rng = np.random.default_rng(seed)
    holes = lay_holes(size=SIZE, spacing=3.0, radius=0.8, angle=0.3)
    n = len(holes)
    thickness = np.clip(40.0 + holes[:, 0] + rng.normal(0.0, 20.0, n), 5.0, None)
    thickness[rng.random(n) < 0.1] = 0.0
    return Specimen(
        holes=holes,
        radius=np.full(n, 0.8),
        thickness=thickness,
        tilt_of_ice=rng.normal(0.0, 20.0, (n, 2)),
        crystalline=np.arange(n) % 9 == 4,
        dirt=np.array([[4.5, 4.5, 1.0], [-7.0, 1.0, 1.2]]),
        size=SIZE,
        angle=0.3,
    )


def features_of(it: Specimen, *, pixels: int = 400, dose: float = 400.0) -> FloatArray:
    image = draw_square(it, pixels=pixels, dose=dose, seed=7)
    clear = visible(it)
    return hole_features(image, it.holes[clear], 0.8, found=find_holes(image))


@pytest.mark.parametrize(("pixels", "dose"), [(800, 400.0), (256, 1600.0)])
def test_neither_pixel_size_nor_dose_moves_them(pixels: int, dose: float) -> None:
    base, other = features_of(specimen()), features_of(specimen(), pixels=pixels, dose=dose)
    assert base.shape == (visible(specimen()).sum(), len(HOLE_FEATURES))
    # On a scale of 1, the typical hole moves by less than 5 %; so do the means of all holes.
    assert np.median(np.abs(other - base), axis=0).max() < 0.05
    assert np.abs(other.mean(axis=0) - base.mean(axis=0)).max() < 0.03
    # Against their own range, too, for what noise does not limit.
    steady = [ICE, CONTRAST, EDGE, DIRT, NEIGHBOURS, RADIAL]
    moved = np.median(np.abs(other - base), axis=0) / np.ptp(base, axis=0)
    assert moved[steady].max() < 0.05


def test_gain_does_not_move_them() -> None:
    it = specimen()
    image = draw_square(it, pixels=512, seed=0)
    bright = Image(image.pixels * 13.0, image.pixel_size)
    clear = it.holes[visible(it)]
    pair = [hole_features(i, clear, 0.8, found=find_holes(image)) for i in (image, bright)]
    np.testing.assert_allclose(pair[0], pair[1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_ice_ranks_holes_by_thickness(seed: int) -> None:
    it = random_specimen(seed, size=40.0, shade=0.02)
    clear = visible(it) & ~it.crystalline
    image = draw_square(it, pixels=768, dose=100.0, seed=seed)
    radius = float(it.radius[0])
    ice = hole_features(image, it.holes[clear], radius, found=find_holes(image))[:, ICE]
    assert spearmanr(ice, it.thickness[clear]).statistic > 0.9


def test_ice_is_thickness_in_mean_free_paths() -> None:
    it = replace(specimen(), crystalline=np.zeros(len(specimen().holes), dtype=np.bool_))
    ice = features_of(it, dose=2000.0)[:, ICE]
    np.testing.assert_allclose(ice, it.thickness[visible(it)] / MEAN_FREE_PATH, atol=0.02)


def test_empty_holes_tell_the_slope_of_the_beam() -> None:
    it = specimen()
    empty = np.arange(len(it.holes)) % 6 == 0
    it = replace(
        it,
        thickness=np.where(empty, 0.0, 40.0 + it.thickness),
        shade=np.array([0.1, -0.06]),
        crystalline=np.zeros(len(it.holes), dtype=np.bool_),
    )
    ice = features_of(it)[:, ICE]
    np.testing.assert_allclose(ice, it.thickness[visible(it)] / MEAN_FREE_PATH, atol=0.04)


def test_each_feature_says_what_it_is_for() -> None:
    it = specimen()
    clear = visible(it)
    f = features_of(it, dose=2000.0)
    crystalline = it.crystalline[clear]
    assert f[crystalline, SPREAD].min() > 3.0 * np.median(f[~crystalline, SPREAD])
    tilt = np.hypot(*it.tilt_of_ice[clear].T)
    assert spearmanr(f[~crystalline, GRADIENT], tilt[~crystalline]).statistic > 0.8
    from_centre = np.hypot(*it.holes[clear].T)
    np.testing.assert_allclose(f[:, RADIAL], from_centre / (SIZE / 2), atol=0.04)
    to_dirt = np.hypot(*(it.holes[clear][:, None] - it.dirt[None, :, :2]).T).min(axis=0)
    np.testing.assert_allclose(f[:, DIRT], np.exp(-to_dirt / 3.0), atol=0.05)
    assert 0.0 <= f[:, EDGE].min() < f[:, EDGE].max() <= 1.0
    assert np.abs(f).max() < 2.0
    k = int(np.argmin(from_centre))
    away = np.hypot(*(it.holes[clear] - it.holes[clear][k]).T)
    assert f[k, NEIGHBOURS] == pytest.approx(f[np.argsort(away)[1:5], ICE].mean(), abs=0.05)


def test_given_vacuum_is_used() -> None:
    it = specimen()
    image = draw_square(it, pixels=300, dose=100.0, seed=0)
    found = find_holes(image)
    clear = it.holes[visible(it)]
    usual = hole_features(image, clear, 0.8, found=found, vacuum=100.0)
    double = hole_features(image, clear, 0.8, found=found, vacuum=200.0)
    np.testing.assert_allclose(double[:, ICE] - usual[:, ICE], np.log(2.0), rtol=1e-9)


def test_bad_places_and_dark_images_are_named() -> None:
    image = draw_square(specimen(), pixels=128, seed=0)
    with pytest.raises(ValueError, match=r"holes\[1\] at \(500, 0\) µm is outside the image"):
        hole_features(image, [[0.0, 0.0], [500.0, 0.0]], 0.8)
    with pytest.raises(ValueError, match="give vacuum"):
        hole_features(Image(np.zeros((64, 64), dtype=np.float32), 1.0), [[0.0, 0.0]], 3.0)
    assert hole_features(image, np.zeros((0, 2)), 0.8).shape == (0, 8)


def test_even_one_hole_of_one_pixel_has_finite_features() -> None:
    image = draw_square(specimen(), pixels=64, seed=0)
    corner = image.to_stage([[0.0, 63.0]])
    for place in (corner, np.array([[0.0, 0.0]])):
        assert np.isfinite(hole_features(image, place, 0.2, vacuum=100.0)).all()


def test_the_papers_two_features() -> None:
    it = specimen()
    image = draw_square(it, pixels=512, seed=0)
    clear = visible(it)
    shapes = []

    def middle(crops: Pixels) -> FloatArray:
        shapes.append(crops.shape)
        scores: FloatArray = crops[:, 24:40, 24:40].mean(axis=(1, 2)).astype(np.float64)
        return scores

    f = paper_features(image, it.holes[clear], 0.8, score=middle, vacuum=100.0)
    assert shapes == [(clear.sum(), 64, 64)]
    whole = ~it.crystalline[clear]
    light = np.exp(-it.thickness[clear] / MEAN_FREE_PATH)
    np.testing.assert_allclose(f[whole, 0], light[whole], atol=0.03)
    np.testing.assert_allclose(f[whole, 1], f[whole, 0], atol=0.06)
    with pytest.raises(ValueError, match="2 scores for"):
        paper_features(image, it.holes[clear], 0.8, score=lambda crops: np.zeros(2))


def test_squares_of_a_tile() -> None:
    squares = [
        TileSquare(-90.0, -90.0, 60.0, angle=0.4, brightness=0.6),
        TileSquare(0.0, -90.0, 60.0, angle=0.4, brightness=0.4),
        TileSquare(90.0, -90.0, 60.0, angle=0.4, brightness=0.5, state="broken"),
        TileSquare(0.0, 40.0, 60.0, angle=0.4, brightness=0.6, state="thick"),
    ]
    where = np.array([[s.x, s.y, s.size] for s in squares])
    for pixels, dose in ((300, 100.0), (600, 60.0)):
        tile = draw_tile(squares, pixels=pixels, field=320.0, dose=dose, seed=0)
        f = square_features(tile, where, vacuum=dose)
        assert f.shape == (4, len(SQUARE_FEATURES))
        np.testing.assert_allclose(f[[0, 1, 3], 0], [0.6, 0.4, 0.12], rtol=0.05)
        np.testing.assert_allclose(f[[0, 1], 2], 1.0, atol=0.06)
        assert f[2, 1] > 3.0 * f[[0, 1], 1].max()
        assert (f[:, 3] < 0.6).all()
    with pytest.raises(ValueError, match="centre outside the tile"):
        square_features(tile, [[5000.0, 0.0, 60.0]])
    with pytest.raises(ValueError, match=r"squares\[0\] has side 0"):
        square_features(tile, [[0.0, 0.0, 0.0]])
