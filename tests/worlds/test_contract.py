"""What every world promises, tested once for all of them."""

import pickle
from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np
import pytest

from coaf.bandit.actions import AtMost, Exactly, Listed, OneOf
from coaf.bandit.arrays import FloatArray
from coaf.worlds import (
    BulkWorld,
    ContextualBandit,
    Mortal,
    SemiBandit,
    Synthetic,
    Types,
    World,
)
from coaf.worlds.batch import Scene
from coaf.worlds.movielens.films import Films
from coaf.worlds.movielens.world import MovieLens
from coaf.worlds.surfaces import Bumps, Checkerboard, Growth, Sigmoid, Surface, Wave


def films() -> Films:
    """Made without preparing anything: forty films, thirty users."""
    rng = np.random.default_rng(0)
    return Films(
        source="made up",
        digest="made up",
        completed=rng.uniform(1.0, 5.0, size=(40, 30)).astype(np.float32),
        components=rng.normal(size=(40, 20)),
        explained=np.full(20, 0.05),
        facts={"scale": [1.0, 5.0], "noise": 1.5},
    )


# A new world supplies a line here, and inherits every promise.
WORLDS: dict[str, Callable[[int], World]] = {
    "films": lambda seed: MovieLens(films(), components=3, seed=seed),
    "surface": lambda seed: Surface(2, Bumps(), seed=seed),
    "surface, successes": lambda seed: Surface(3, Sigmoid(), rewards="bernoulli", seed=seed),
    "surface, counts": lambda seed: Surface(3, Growth(), rewards="poisson", setup=2.0, seed=seed),
    "surface, checkerboard": lambda seed: Surface(2, Checkerboard(), noise=0.0, seed=seed),
    "surface, wave": lambda seed: Surface(2, Wave(0.7, 1.0), seed=seed),
    "synthetic": lambda seed: Synthetic(dim=4, seed=seed),
    "synthetic, one feature": lambda seed: Synthetic(dim=1, arms=(1, 1), seed=seed),
    "synthetic, set-up and offset": lambda seed: Synthetic(
        dim=3, setup=4.0, each=0.5, offset=0.5, seed=seed
    ),
    "synthetic, empty rounds": lambda seed: Synthetic(dim=2, arms=(0, 3), items=50, seed=seed),
    "contextual bandit": lambda seed: ContextualBandit(dim=4, arms=(2, 9), seed=seed),
    "semi-bandit, at most": lambda seed: SemiBandit(dim=3, actions=AtMost(2), seed=seed),
    "semi-bandit, exactly": lambda seed: SemiBandit(dim=3, actions=Exactly(2), seed=seed),
    "semi-bandit, listed": lambda seed: SemiBandit(
        dim=3, actions=Listed([(0, 1), (2,), ()]), arms=(4, 4), norm=0.5, seed=seed
    ),
    "mortal": lambda seed: Mortal(seed=seed),
    "mortal, noisy": lambda seed: Mortal(
        (-0.5, 0.3, 1.0), weights=(1, 2, 1), p=0.5, n_max=3, noise=0.2, seed=seed
    ),
    "types": lambda seed: Types(dim=4, seed=seed),
    "types, noisy": lambda seed: Types(
        [-0.5, 0.2, 0.9], weights=[1, 2, 3], setup=2.0, noise=0.3, seed=seed
    ),
}

worlds = pytest.mark.parametrize("make", WORLDS.values(), ids=WORLDS)


def same(one: Scene, other: Scene) -> bool:
    a, b = one.round, other.round
    arrays = (
        (a.features, b.features),
        (one.means, other.means),
        (one.rewards, other.rewards),
    )
    settings = a.latency == b.latency and a.actions == b.actions
    return settings and all(np.array_equal(x, y) for x, y in arrays)


def rounds_of(world: World, rounds: int, replicate: int = 0) -> list[Scene]:
    return list(world.scenes(rounds, replicate))


def noise_of(scenes: list[Scene]) -> tuple[FloatArray, FloatArray]:
    """Reward less mean of every arm, and the features of every arm."""
    noise = np.concatenate([s.rewards - s.means for s in scenes])
    return noise, np.concatenate([s.round.features for s in scenes])


@worlds
def test_a_replicate_is_a_function_of_seed_and_number(make: Callable[[int], World]) -> None:
    first, again = rounds_of(make(3), 40, 2), rounds_of(make(3), 40, 2)
    assert all(map(same, first, again))


@worlds
def test_as_many_rounds_as_asked(make: Callable[[int], World]) -> None:
    assert [len(rounds_of(make(0), rounds)) for rounds in (0, 1, 7)] == [0, 1, 7]


@worlds
def test_a_longer_run_begins_with_the_same_rounds(make: Callable[[int], World]) -> None:
    short, long = rounds_of(make(0), 20), rounds_of(make(0), 60)
    assert all(map(same, short, long[:20]))


@worlds
def test_replicates_and_seeds_differ(make: Callable[[int], World]) -> None:
    first = rounds_of(make(0), 30)
    for other in (rounds_of(make(0), 30, 1), rounds_of(make(1), 30)):
        assert not all(map(same, first, other))


@worlds
def test_one_replicate_does_not_disturb_another(make: Callable[[int], World]) -> None:
    world = make(0)
    alone = rounds_of(world, 20, 1)
    half_way = world.scenes(20, 0)
    before = list(islice(half_way, 10))
    assert all(map(same, alone, rounds_of(world, 20, 1)))
    assert all(map(same, [*before, *half_way], rounds_of(world, 20, 0)))


@pytest.mark.parametrize("name", [name for name in WORLDS if not name.startswith(("semi", "con"))])
def test_a_batch_holds_the_scenes(name: str) -> None:
    world = WORLDS[name](0)
    assert isinstance(world, BulkWorld)
    batch, scenes = world.batch(50, 3), rounds_of(world, 50, 3)
    assert len(batch) == 50
    assert batch.dim == world.dim
    for j, scene in enumerate(scenes):
        n = scene.round.n
        lanes = batch.features[j * world.dim : (j + 1) * world.dim]
        assert n == batch.counts[j]
        np.testing.assert_array_equal(lanes[:, :n].T, scene.round.features)
        np.testing.assert_array_equal(batch.means[j, :n], scene.means)
        np.testing.assert_array_equal(batch.rewards[j, :n], scene.rewards)
        for count in (0, n):
            chosen = np.arange(n) < count
            seconds = batch.base[j] + batch.setup[j] * (count > 0) + batch.costs[j, :count].sum()
            assert scene.round.latency.seconds(chosen) == pytest.approx(seconds, rel=1e-14)
    assert all(map(same, batch.scenes(), scenes))


@worlds
def test_means_are_those_of_the_scenes(make: Callable[[int], World]) -> None:
    world = make(0)
    for scene in rounds_of(world, 50):
        # Sums of products may be added in another order.
        np.testing.assert_allclose(world.means(scene.round.features), scene.means, atol=1e-14)


@worlds
def test_rewards_average_to_means(make: Callable[[int], World]) -> None:
    # 4 standard errors, for the noise itself and for its product with each feature.
    noise, features = noise_of(rounds_of(make(0), 3000))
    if not noise.any():
        return
    for x in (np.ones(len(noise)), *features.T):
        products = x * noise
        assert abs(products.sum()) <= 4.0 * np.sqrt((products**2).sum())


@worlds
def test_features_and_means_are_bounded(make: Callable[[int], World]) -> None:
    world = make(0)
    for scene in rounds_of(world, 200):
        norms = np.linalg.norm(scene.round.features, axis=1)
        assert scene.round.features.shape[1] == world.dim
        assert np.all(norms <= 1.0 + 1e-12)
        assert np.all(np.abs(scene.means) <= getattr(world, "mean_bound", 1.0) + 1e-12)
        assert scene.round.floor > 0.0


@worlds
def test_a_world_can_be_sent_to_another_process(make: Callable[[int], World]) -> None:
    world = make(0)
    sent = pickle.loads(pickle.dumps(world))
    assert all(map(same, rounds_of(world, 10), rounds_of(sent, 10)))


def test_gaussian_noise_has_the_size_asked_for() -> None:
    noise, _ = noise_of(rounds_of(ContextualBandit(noise=0.3), 2000))  # 20,000 rewards
    # The standard error of a standard deviation is σ/√(2N): 0.0015 here; four of them.
    assert noise.std() == pytest.approx(0.3, abs=0.006)


def test_a_mortal_round_is_one_arm_that_lives_a_geometric_time() -> None:
    world = Mortal((0.2, 0.8), weights=(1, 3), p=0.25, n_max=6)
    scenes = rounds_of(world, 20_000)
    assert all(np.ptp(s.means) == 0.0 and np.ptp(s.rewards) == 0.0 for s in scenes)
    lives = np.bincount([s.round.n for s in scenes], minlength=7) / len(scenes)
    law = [0.0, *(0.25 * 0.75**k for k in range(5)), 0.75**5]
    np.testing.assert_allclose(lives, law, atol=0.014)  # 4 standard errors at the most
    assert np.mean([s.means[0] == 0.8 for s in scenes]) == pytest.approx(0.75, abs=0.0125)
    assert world.lifetime == pytest.approx(np.dot(range(7), law), rel=1e-12)


def test_types_come_as_often_as_asked_and_pay_0_or_1() -> None:
    world = Types([0.1, 0.5, 0.9], weights=[1, 1, 2], arms=(10, 10))
    scenes = rounds_of(world, 2000)
    features = np.concatenate([s.round.features for s in scenes])
    assert set(np.unique(np.concatenate([s.rewards for s in scenes]))) == {0.0, 1.0}
    assert set(np.unique(features)) == {0.0, 1.0}
    np.testing.assert_array_equal(features.sum(axis=1), 1.0)
    # 20,000 arms: 4 standard errors at the most.
    np.testing.assert_allclose(features.mean(axis=0), [0.25, 0.25, 0.5], atol=0.0142)


WRONG: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
    (Synthetic, {"arms": (3, 2)}, "arms"),
    (Synthetic, {"offset": 1.5}, "offset"),
    (Synthetic, {"base": (0.0, 1.0)}, "base"),
    (ContextualBandit, {"arms": (0, 2)}, "OneOf"),
    (ContextualBandit, {"noise": -1.0}, "noise"),
    (SemiBandit, {"actions": Exactly(5), "arms": (4, 6)}, "Exactly"),
    (SemiBandit, {"actions": Listed([(7,)]), "arms": (4, 6)}, "subsets"),
    (SemiBandit, {"actions": OneOf(), "dim": 0}, "dim"),
    (Mortal, {"prior": (0.5, 1.5)}, "prior"),
    (Mortal, {"prior": ()}, "prior"),
    (Mortal, {"weights": (1.0,)}, "weights"),
    (Mortal, {"weights": (0.0, 0.0)}, "weights"),
    (Mortal, {"p": 0.0}, "p is"),
    (Mortal, {"p": 1.1}, "p is"),
    (Mortal, {"n_max": 0}, "n_max"),
    (Types, {"means": [-0.1]}, "means"),
    (Types, {"means": [1.1], "noise": 0.1}, "means"),
    (Types, {"arms": (-1, 2)}, "arms"),
    (Types, {"base": 0.0}, "base"),
]


@pytest.mark.parametrize(("kind", "settings", "named"), WRONG)
def test_wrong_settings_are_named(
    kind: Callable[..., Any], settings: dict[str, Any], named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        kind(**settings)
