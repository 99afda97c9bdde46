"""Squares that are drawn: the finder's holes, mistakes and features are what decisions get."""

import numpy as np
import pytest

from coaf.cryoem.checks.microscope import scores_follow_exposures, surveys_fit_together
from coaf.cryoem.simulator.features import latent_features, seen_thickness
from coaf.cryoem.simulator.pixels import match_holes
from coaf.cryoem.simulator.simulator import Simulator
from coaf.cryoem.vision.features import HOLE_FEATURES


@pytest.fixture(scope="module")
def simulator() -> Simulator:
    return Simulator(6, squares=3, prediction=True, delay="none", faults=())


def test_a_drawn_grid_keeps_the_contract(simulator: Simulator) -> None:
    surveys_fit_together(lambda: simulator)
    scores_follow_exposures(lambda: simulator)


def test_most_holes_are_found_where_they_are(simulator: Simulator) -> None:
    open_ones = found = real = 0
    for square in simulator.squares():
        opened = simulator._open(square.name)
        open_ones += int((~opened.truth.hidden & ~opened.truth.broken).sum())
        found += len(opened.targets) + sum(opened.survey.excluded.values())
        real += sum(target.hole >= 0 for target in opened.targets.values())
        for patch in opened.survey.patches:
            for hole in patch.holes:
                target = opened.targets[hole.name]
                if target.hole >= 0:
                    at = opened.truth.place[target.hole] + simulator.grid.places[target.square]
                    assert np.hypot(hole.x - at[0], hole.y - at[1]) < 0.5
    # Holes near the bars are found and left out, so not all that are there are targets.
    assert found == pytest.approx(open_ones, rel=0.15)
    assert real > 0.75 * open_ones


def test_no_hole_is_two_targets(simulator: Simulator) -> None:
    for square in simulator.squares():
        targets = simulator._open(square.name).targets.values()
        true = [target.hole for target in targets if target.hole >= 0]
        assert len(set(true)) == len(true)


def test_a_find_that_is_no_hole_has_no_fit(simulator: Simulator) -> None:
    opened = simulator._open(simulator.squares()[0].name)
    truth = opened.truth
    a, b = np.flatnonzero(~truth.hidden)[:2].tolist()
    under = int(np.flatnonzero(truth.hidden)[0])
    place = truth.place
    finds = [place[a], place[b], place[a] + 0.1, place[a] + 1.25, place[under]]
    which, real = match_holes(np.array(finds), truth)
    assert which[[0, 1, 2, 4]].tolist() == [a, b, a, under]
    assert real.tolist() == [True, True, False, False, False]


def test_measured_features_speak_of_the_same_ice_as_those_without_pixels(
    simulator: Simulator,
) -> None:
    from scipy.stats import spearmanr

    measured, expected = [], []
    for index, square in enumerate(simulator.squares()):
        opened = simulator._open(square.name)
        rows = latent_features(
            simulator.grid, opened.truth, simulator.foil, np.random.default_rng(index)
        )
        for patch in opened.survey.patches:
            for hole, row in zip(patch.holes, opened.survey.features[patch.name], strict=True):
                target = opened.targets[hole.name]
                if target.hole >= 0:
                    measured.append(row[: len(HOLE_FEATURES)])
                    expected.append(rows[target.hole])
    ours, theirs = np.array(measured), np.array(expected)
    for name, least in {"ice": 0.85, "contrast": 0.85, "neighbours": 0.85}.items():
        column = HOLE_FEATURES.index(name)
        assert spearmanr(ours[:, column], theirs[:, column])[0] > least, name


def test_the_image_shows_the_ice_with_the_error_of_sight(simulator: Simulator) -> None:
    opened = simulator._open(simulator.squares()[1].name)
    image, truth = opened.survey.image, opened.truth
    assert image is not None
    sound = ~truth.hidden & ~truth.broken & ~truth.crystalline
    at = np.rint(image.to_pixels(truth.place[sound] + [image.x, image.y])).astype(int)
    level = [image.pixels[r - 2 : r + 3, c - 2 : c + 3].mean() for c, r in at]
    seen = seen_thickness(simulator.grid, truth)[sound]
    assert np.corrcoef(level, -seen)[0, 1] > 0.85


def test_the_atlas_shows_every_square_and_its_brightness() -> None:
    simulator = Simulator(1, pixels=False)
    tiles = simulator.atlas()
    levels, told = [], []
    for square in simulator.squares():
        shown = [
            (tile, tile.to_pixels([[square.x, square.y]])[0])
            for tile in tiles
            if max(abs(tile.x - square.x), abs(tile.y - square.y))
            < tile.pixel_size * len(tile.pixels) / 2 - 10.0
        ]
        for tile, (column, row) in shown:
            c, r = round(column), round(row)
            levels.append(float(tile.pixels[r - 8 : r + 8, c - 8 : c + 8].mean()))
            told.append(square.features[0] * square.features[2])
    assert len(levels) >= 0.8 * len(simulator.squares())
    assert np.corrcoef(levels, told)[0, 1] > 0.85
