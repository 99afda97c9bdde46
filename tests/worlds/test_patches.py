"""Patches in squares: hidden effects, visible labels."""

import numpy as np
import pytest

from coaf.worlds import optimum
from coaf.worlds.patches import Patches


def test_effects_are_shared_within_a_patch_and_within_a_square() -> None:
    world = Patches(2, squares=1.0, patches=1.0, norm=0.0, visits=3, per_square=4, seed=1)
    scenes = list(world.scenes(24, replicate=0))
    levels = np.array([np.log(s.means / (1.0 - s.means)) for s in scenes]) - world.intercept
    assert np.ptp(levels.reshape(8, -1), axis=1).max() < 1e-9
    patches = levels[::3, 0]
    assert len(np.unique(patches.round(9))) == 8
    groups = [s.round.groups for s in scenes]
    assert [g[0].tolist() for g in groups if g is not None][::12] == [[0, 0], [1, 4]]


def test_the_spread_of_effects_is_what_was_asked_for() -> None:
    world = Patches(2, squares=0.5, patches=1.5, norm=0.0, visits=1, per_square=5, seed=2)
    means = np.array([s.means[0] for s in world.scenes(5000, replicate=0)])
    levels = (np.log(means / (1.0 - means)) - world.intercept).reshape(-1, 5)
    within = float(levels.var(axis=1, ddof=1).mean())
    between = float(levels.mean(axis=1).var(ddof=1)) - within / 5.0
    assert within == pytest.approx(1.5**2, rel=0.06)  # four standard errors
    assert between == pytest.approx(0.5**2, rel=0.5)


def test_replicates_repeat_and_differ() -> None:
    world = Patches(3, seed=3)
    first, again, other = (
        np.array([s.rewards for s in world.scenes(30, replicate=r)]) for r in (0, 0, 1)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    longer = np.array([s.rewards for s in world.scenes(60, replicate=0)])
    assert np.array_equal(longer[:30], first)
    assert set(np.unique(first)) <= {0.0, 1.0}


def test_it_has_a_best_rate() -> None:
    assert optimum(Patches(3), rounds=500).rate > 0.0


def test_without_effects_the_mean_is_that_of_the_features() -> None:
    world = Patches(3, squares=0.0, patches=0.0)
    scene = next(world.scenes(1, replicate=0))
    assert np.allclose(scene.means, world.means(scene.round.features))
