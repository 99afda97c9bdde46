"""The checker of worlds: ours pass, and each mistake has its sentence."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import coaf
from coaf.bandit.checks.contract import ContractError
from coaf.worlds import ContextualBandit, Patches, Scene, SemiBandit, Synthetic, check_world


class Mine:
    """A world that is fine, but for what a test spoils."""

    dim = 2

    def __init__(self, **spoiled: Any) -> None:
        self.spoiled = spoiled

    def means(self, features: Any) -> Any:
        return features @ np.array([0.5, 0.2])

    def scenes(self, rounds: int, replicate: int) -> Iterator[Scene]:
        rng = np.random.default_rng(self.spoiled.get("seed", lambda r: r)(replicate))
        for _ in range(rounds + self.spoiled.get("more", 0)):
            X = rng.normal(size=(3, self.spoiled.get("features", 2)))
            mu = X[:, 0]
            y = self.spoiled.get("rewards", lambda mu: mu + rng.normal(size=3))(mu)
            scene = Scene(coaf.Round(X, coaf.Additive(1.0, 1.0)), mu, y)
            yield self.spoiled.get("scene", lambda scene: scene)(scene)


@pytest.mark.parametrize(
    "world",
    [Mine(), Synthetic(3), ContextualBandit(3), SemiBandit(3, actions=coaf.AtMost(2)), Patches(2)],
    ids=lambda world: type(world).__name__,
)
def test_worlds_pass(world: Any) -> None:
    check_world(world)


@pytest.mark.parametrize(
    ("world", "mistake"),
    [
        (Mine, "Mine is a class, not a world"),
        (object(), "object: lacks dim, means, scenes"),
        (Mine(seed=lambda r: None), "other rounds when asked again"),
        (Mine(seed=lambda r: 7), "the same rounds and rewards for all replicates"),
        (Mine(more=-1), "yields 19 rounds"),
        (Mine(features=4), "has 4 features, but dim is 2"),
        (Mine(rewards=lambda mu: mu[:2]), "rewards must be 3 finite numbers"),
        (Mine(rewards=lambda mu: mu * np.nan), "rewards must be 3 finite numbers"),
        (Mine(scene=lambda scene: scene.round), "it must be a Scene of a Round"),
    ],
)
def test_mistakes_are_named(world: Any, mistake: str) -> None:
    with pytest.raises(ContractError, match=mistake):
        check_world(world)
