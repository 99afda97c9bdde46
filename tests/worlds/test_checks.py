"""The checker of worlds: ours pass, and each mistake has its sentence."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import coaf
from coaf.bandit.checks.contract import ContractError
from coaf.worlds import ContextualBandit, Patches, Scene, SemiBandit, Synthetic, check_world
from coaf.worlds.batch import Batch

SPOILED = ("features", "base", "costs", "means", "rewards")


class Mine:
    """A world that is fine, but for what a test spoils."""

    dim = 2

    def __init__(self, **spoiled: Any) -> None:
        self.spoiled = spoiled

    def means(self, features: Any) -> Any:
        return features[:, 0]

    def scenes(self, rounds: int, replicate: int) -> Iterator[Scene]:
        rng = np.random.default_rng(self.spoiled.get("seed", lambda r: r)(replicate))
        for _ in range(rounds + self.spoiled.get("more", 0)):
            X = rng.normal(size=(3, self.spoiled.get("features", 2)))
            mu = self.spoiled.get("mu", self.means)(X)
            y = self.spoiled.get("rewards", lambda mu: mu + rng.normal(size=3))(mu)
            scene = Scene(coaf.Round(X, coaf.Additive(1.0, 1.0)), mu, y)
            yield self.spoiled.get("scene", lambda scene: scene)(scene)


class Bulk(Synthetic):
    """A batch is spoiled."""

    def __init__(self, **spoiled: Any) -> None:
        super().__init__(2)
        self.spoiled = spoiled

    def scenes(self, rounds: int, replicate: int) -> Iterator[Scene]:
        return super().batch(rounds, replicate).scenes()

    def batch(self, rounds: int, replicate: int) -> Batch:
        batch = super().batch(rounds - self.spoiled.get("fewer", 0), replicate)
        changed = {name: getattr(batch, name) + 1.0 for name in self.spoiled.get("more", ())}
        return replace(batch, **changed)


@pytest.mark.parametrize(
    "world",
    [
        Mine(),
        Bulk(),
        Synthetic(3),
        ContextualBandit(3),
        SemiBandit(3, actions=coaf.AtMost(2)),
        Patches(2),
    ],
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
        (Mine(mu=lambda X: X[:, 1]), r"has the means .* but means\(features\) says"),
        (Bulk(fewer=1), r"batch\(20, 0\) holds 19 rounds"),
        *((Bulk(more=[name]), "holds another round 0 than scenes yields") for name in SPOILED),
    ],
)
def test_mistakes_are_named(world: Any, mistake: str) -> None:
    with pytest.raises(ContractError, match=mistake):
        check_world(world)
