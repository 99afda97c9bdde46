"""Features of predicted holes, and what is expected before any score."""

import numpy as np
import pytest

from coaf.bandit.latency import Setup
from coaf.cryoem.grid import Hole, Patch
from coaf.cryoem.pilots.designs import REACH, block_of, design_for, ice_features, spots_of
from coaf.cryoem.pilots.prediction import (
    PREDICTION_FEATURES,
    prediction_belief,
    prediction_features,
    typical_patches,
)
from coaf.cryoem.reward import GoodBelow, Particles, Reward
from coaf.cryoem.vision.features import HOLE_FEATURES


def patch_of(holes: int, spacing: float = 2.5) -> Patch:
    """Holes in a row."""
    row = tuple(Hole(f"h{i}", 40.0 + spacing * i, 7.0) for i in range(holes))
    return Patch("p", "s", row, 40.0, 7.0)


@pytest.mark.parametrize("spacing", [0.02, 2.5])
def test_places_count_in_spacings(spacing: float) -> None:
    """Positions may be in pixels that nobody knows the size of."""
    spots = spots_of(patch_of(4, spacing))
    assert np.diff(spots[:, 0]) == pytest.approx(np.full(3, 1.0 / REACH))
    assert spots.mean(axis=0) == pytest.approx([0.0, 0.0], abs=1e-12)


@pytest.mark.parametrize("holes", [1, 2, 7, 20])
def test_a_block_has_its_holes_one_spacing_apart(holes: int) -> None:
    spots = block_of(holes)
    apart = np.hypot(*(spots[:, None] - spots).transpose(2, 0, 1)) + 9.0 * np.eye(holes)
    assert spots.shape == (holes, 2)
    assert apart.min(axis=1) == pytest.approx(np.full(holes, 1.0 / REACH if holes > 1 else 9.0))


def test_holes_in_one_place_are_told_apart_by_nothing() -> None:
    assert spots_of(patch_of(3, spacing=0.0)) == pytest.approx(np.zeros((3, 2)))


def test_features_go_by_the_ratio_to_the_cut() -> None:
    predicted = np.array([3.0, 6.0, 12.0])
    X = prediction_features(predicted, 6.0)
    assert X.shape == (3, len(PREDICTION_FEATURES))
    assert X[:, 0] == pytest.approx(np.log([0.5, 1.0, 2.0]))
    assert X[:, 1] == pytest.approx(np.zeros(3), abs=1e-12)
    moved = prediction_features(2.0 * predicted, 6.0)
    assert moved[:, 0] == pytest.approx(X[:, 0]), "a hole is told from its patch"
    assert moved[:, 1] == pytest.approx(np.full(3, np.log(2.0)))
    assert prediction_features(predicted / 2.0, 3.0) == pytest.approx(X), "in Å or in nm"


@pytest.mark.parametrize(("predicted", "cut"), [([-1.0], 3.8), ([np.nan], 3.8), ([4.0], 0.0)])
def test_what_cannot_be_a_prediction(predicted: list[float], cut: float) -> None:
    with pytest.raises(ValueError, match=r"predicted|cut"):
        prediction_features(predicted, cut)


def test_before_any_score_a_better_prediction_is_better() -> None:
    belief = prediction_belief()
    own = prediction_features([3.0, 5.0, 8.0, 15.0], 3.8)
    assert (np.diff(belief.mean(own)) < 0.0).all()
    patch = np.column_stack([np.full(3, 0.1), [0.2, 0.5, 1.0]])
    assert (np.diff(belief.mean(patch)) < 0.0).all()


def test_some_dozens_of_scores_overrule_it() -> None:
    """A network whose predictions are upside down."""
    rng = np.random.default_rng(0)
    belief = prediction_belief()
    for k in range(12):
        X = prediction_features(rng.uniform(3.0, 12.0, 10), 3.8)
        groups = np.array([["s", f"{k}"]] * 10)
        belief.learn(X, (X.sum(axis=1) > 0.7).astype(np.float64), groups)
    low, high = prediction_features([3.5, 11.0], 3.8)
    assert belief.mean([high])[0] > belief.mean([low])[0] + 0.3


def test_typical_patches_are_rounds_of_their_own() -> None:
    patches = typical_patches(3.8, Setup(12.0, 52.0, 6.7), np.zeros((7, 0)))
    assert all(patch.n == 7 for patch in patches)
    labels = {tuple(patch.groups[0]) for patch in patches if patch.groups is not None}
    assert len(labels) == len(patches)
    means = [prediction_belief().mean(patch.features).mean() for patch in patches]
    assert means == sorted(means, reverse=True)
    assert 0.02 < np.mean(means) < 0.5


def test_the_design_suits_what_there_is() -> None:
    columns = (*HOLE_FEATURES, "prediction")
    rows = np.random.default_rng(1).uniform(0.1, 0.4, (5, len(columns)))
    rows[:, -1] = 6.0
    by_prediction = design_for(columns, GoodBelow(3.8))
    assert by_prediction.features(rows) == pytest.approx(prediction_features([6.0] * 5, 3.8))
    for names, reward in ((HOLE_FEATURES, GoodBelow(3.8)), (columns, Particles())):
        design = design_for(names, reward)
        X = design.rows(patch_of(5), rows[:, : len(names)])
        belief = design.belief()
        assert (X.shape[1], belief.family) == (belief.dim, design.family)
        assert np.isfinite(belief.mean(X)).all()
    assert by_prediction.target(1.7) == 1.0
    assert by_prediction.target(-0.2) == 0.0
    assert design_for(columns, Particles()).target(1.7) == 1.7


@pytest.mark.parametrize("units", [1.0, 1e4])
def test_columns_of_any_name_are_learned_in_any_units(units: float) -> None:
    """The first of two columns decides; 120 scores tell, by 0.4 between a low and a high value."""
    rng = np.random.default_rng(2)
    for reward in (GoodBelow(3.8), Particles()):
        design = design_for(("glow", "luck"), reward)
        belief = design.belief()
        for k in range(12):
            rows = rng.normal(size=(10, 2))
            good = (rows[:, 0] > 0.0).astype(np.float64)
            X = design.rows(patch_of(10), units * rows)
            belief.learn(X, good, np.array([["s", f"{k}"]] * 10))
        two = units * np.array([[-1.0, 0.0], [1.0, 0.0]])
        low, high = belief.mean(design.rows(patch_of(2), two), np.array([["s", "new"]] * 2))
        assert high > low + 0.4


def test_without_columns_the_patch_is_all_that_is_known() -> None:
    for reward in (GoodBelow(3.8), Particles()):
        design = design_for((), reward)
        belief = design.belief()
        X = design.rows(patch_of(6), np.zeros((6, 0)))
        patch, other = (np.array([["s", name]] * 6) for name in ("good", "bad"))
        before = belief.mean(X, patch).round(12)
        belief.learn(X, np.ones(6), patch)
        belief.learn(X, np.zeros(6), other)
        good, bad = (belief.mean(X, of)[0] for of in (patch, other))
        assert len(set(before.tolist())) == 1
        assert good > bad + 0.2


@pytest.mark.parametrize("reward", [GoodBelow(3.8), Particles()])
def test_a_hole_of_which_nobody_knows_where_it_is_is_near_itself_alone(reward: Reward) -> None:
    design = design_for((), reward)
    patch = np.array([["s", "p"]] * 6)
    for placed, alike in ((True, True), (False, False)):
        belief = design.belief()
        X = design.rows(patch_of(6), np.zeros((6, 0)), placed=placed)
        for name in ("a", "b", "c"):
            belief.learn(X, np.arange(6) % 2.0, np.array([["s", name]] * 6))
        belief.learn(X[[0, 0]], np.zeros(2), patch[:2])
        same, *others = belief.mean(X, patch).tolist()
        assert same < min(others) - 0.01
        assert (max(others) - min(others) > 1e-6) == alike


def test_ice_that_is_far_off_stays_finite() -> None:
    X = ice_features(np.array([0.2, 1e6, -1e6]), np.array([0.2, 1e6, -1e6]))
    assert X[0] == pytest.approx([0.0, 0.0, 0.0])
    assert np.abs(X).max() <= 25.0
