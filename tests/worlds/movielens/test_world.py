"""The film world: what it shows, what it pays, and the best rate of the real one."""

import numpy as np
import pytest

from coaf.worlds import optimum
from coaf.worlds.movielens.films import Films
from coaf.worlds.movielens.world import MovieLens


@pytest.mark.parametrize("components", [1, 10, 20])
def test_features_lie_in_the_unit_ball_and_the_mean_is_the_best_linear_one(
    films: Films, components: int
) -> None:
    world = MovieLens(films, components=components)
    assert world.dim == components + 1
    norms = np.linalg.norm(world.items, axis=1)
    assert norms.max() == pytest.approx(1.0)
    assert np.allclose(world.items[:, -1], np.sqrt(0.5))
    assert np.abs(world.items.T @ world.misfit).max() < 1e-9  # of least squares
    assert np.allclose(world.means(world.items), world.item_means)
    assert world.norm_bound == pytest.approx(float(np.linalg.norm(world.theta)))


def test_rewards_are_ratings_of_users_drawn_one_by_one(films: Films) -> None:
    world = MovieLens(films)
    batch = world.batch(4000, replicate=0)
    shown = np.arange(batch.rewards.shape[1]) < batch.counts[:, None]
    values = np.unique(films.completed.astype(np.float64))
    assert np.isin(batch.rewards[shown], values).all()
    error = batch.rewards[shown] - batch.means[shown]
    assert abs(error.mean()) < 5.0 * error.std() / np.sqrt(len(error))
    first, second = error[:-1], error[1:]  # of two films on one screen
    assert abs(np.corrcoef(first, second)[0, 1]) < 5.0 / np.sqrt(len(first))
    assert batch.counts.min() == 6
    assert batch.counts.max() == 20
    assert batch.base.min() >= 5.0
    assert batch.base.max() <= 10.0


def test_the_spread_scales_noise_alone(films: Films) -> None:
    plain, double, none = (MovieLens(films, spread=s) for s in (1.0, 2.0, 0.0))
    one, two, zero = (w.batch(50, 3).rewards for w in (plain, double, none))
    assert np.allclose(two - zero, 2.0 * (one - zero))
    assert double.noise == 2.0 * plain.noise
    assert none.noise == 0.0


def test_more_components_than_there_are(films: Films) -> None:
    with pytest.raises(ValueError, match="prepared with 20"):
        MovieLens(films, components=21)


def test_the_best_rate_of_the_real_films(real_films: Films) -> None:
    best = optimum(MovieLens(real_films), rounds=50_000)
    assert 2.0 < best.rate < 2.15
