"""A world of patches in squares: what the first arms of a patch say about the rest."""

from collections.abc import Iterator

import numpy as np

from coaf.bandit.arrays import FloatArray, number
from coaf.bandit.latency import Setup
from coaf.bandit.problem import Round
from coaf.bandit.shown import Shown
from coaf.worlds.batch import Scene
from coaf.worlds.catalogue import sphere


class Patches(Shown):
    """Arms succeed with probability sigmoid(c + θ*·x + effect of the square + of the patch).

    A patch is visited several rounds in a row, with new arms each time. Its label and its square's
    are the groups of a round, [square, patch]; the effects themselves are hidden.

    Parameters
    ----------
    dim
        Number of features, uniform on a sphere.
    squares, patches
        Standard deviations of the two effects, on the scale of the sigmoid.
    intercept
        c; at -2 about one arm in seven succeeds where all effects are 0.
    norm
        ‖θ*‖.
    visits, arms
        Rounds spent at a patch, and the arms of each.
    per_square
        Patches in a square.
    base, setup, each
        Times, as in `Setup`.
    seed
        The world's own: θ*.

    Examples
    --------
    >>> world = Patches(dim=2, visits=3, seed=0)
    >>> [s.round.groups[0].tolist() for s in world.scenes(rounds=4, replicate=0)]
    [[0, 0], [0, 0], [0, 0], [0, 1]]
    """

    def __init__(
        self,
        dim: int = 3,
        *,
        squares: float = 1.0,
        patches: float = 1.5,
        intercept: float = -2.0,
        norm: float = 1.5,
        visits: int = 3,
        arms: int = 6,
        per_square: int = 8,
        base: float = 4.0,
        setup: float = 10.0,
        each: float = 6.7,
        seed: int = 0,
    ) -> None:
        self.dim = int(number("dim", dim, low=1))
        self.effects = (number("squares", squares, low=0.0), number("patches", patches, low=0.0))
        self.intercept = number("intercept", intercept)
        self.visits, self.arms = int(number("visits", visits, low=1)), int(number("arms", arms))
        self.per_square = int(number("per_square", per_square, low=1))
        self.latency = Setup(base=base, setup=setup, each=each)
        self.seed = int(seed)
        direction = sphere(np.random.default_rng([self.seed, 0]), 1, self.dim)[0]
        self.theta: FloatArray = number("norm", norm, low=0.0) * direction

    def means(self, features: FloatArray) -> FloatArray:
        """The chance of success where all effects are 0."""
        return _sigmoid(self.intercept + features @ self.theta)

    def scenes(self, rounds: int, replicate: int) -> Iterator[Scene]:
        """Rounds of a replicate, patch after patch."""
        children = np.random.SeedSequence([self.seed, 1, replicate]).spawn(3)
        arms, effects, luck = (np.random.default_rng(child) for child in children)
        square = patch = 0.0
        for j in range(rounds):
            number_of_patch, visit = divmod(j, self.visits)
            number_of_square = number_of_patch // self.per_square
            if visit == 0:
                if number_of_patch % self.per_square == 0:
                    square = self.effects[0] * effects.standard_normal()
                patch = self.effects[1] * effects.standard_normal()
            X = sphere(arms, self.arms, self.dim)
            means = _sigmoid(self.intercept + X @ self.theta + square + patch)
            labels = np.tile([number_of_square, number_of_patch], (self.arms, 1))
            rewards = (luck.random(self.arms) < means).astype(np.float64)
            yield Scene(Round(X, self.latency, groups=labels), means, rewards)


def _sigmoid(eta: FloatArray) -> FloatArray:
    result: FloatArray = 1.0 / (1.0 + np.exp(-eta))
    return result
