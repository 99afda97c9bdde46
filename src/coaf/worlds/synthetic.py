"""A synthetic world: a catalogue of random items, linear mean rewards, Gaussian noise."""

from collections.abc import Iterator

import numpy as np

from coaf.bandit.arrays import FloatArray, number
from coaf.bandit.shown import Shown
from coaf.worlds.batch import Batch, Scene
from coaf.worlds.catalogue import arm_range, batch_of, sphere, streams


class Synthetic(Shown):
    """Each round shows some items of a catalogue; an item's mean reward is θ*·x.

    Parameters
    ----------
    dim
        Number of features; the last is the same for all items if `offset` is given.
    arms
        A round shows between arms[0] and arms[1] items.
    base
        The time to see a round, uniform in this range (seconds).
    setup, each
        Time for taking anything at all, and for each arm taken.
    noise
        Standard deviation of a reward around its mean.
    norm
        ‖θ*‖.
    offset
        Share of the mean reward that is common to all items: 0 makes half of them worthless.
    items
        How many items the catalogue has; features are uniform on a sphere.
    seed
        The world's own: catalogue and θ*. Replicates have their own streams.

    Examples
    --------
    >>> world = Synthetic(dim=3, arms=(2, 4), seed=1)
    >>> scene = next(world.scenes(rounds=5, replicate=0))
    >>> scene.round.features.shape[1]
    3
    """

    def __init__(
        self,
        dim: int = 10,
        *,
        arms: tuple[int, int] = (6, 20),
        base: tuple[float, float] = (5.0, 10.0),
        setup: float = 0.0,
        each: float = 1.0,
        noise: float = 0.5,
        norm: float = 1.0,
        offset: float = 0.0,
        items: int = 2000,
        seed: int = 0,
    ) -> None:
        self.dim = int(number("dim", dim, low=1))
        self.arms = arm_range(arms)
        self.base = (number("base[0]", base[0], above=0.0), number("base[1]", base[1], above=0.0))
        self.setup, self.each = number("setup", setup, low=0.0), number("each", each, low=0.0)
        self.noise, self.norm = number("noise", noise, low=0.0), number("norm", norm, low=0.0)
        self.offset = number("offset", offset, low=0.0)
        if self.offset > 1.0:
            raise ValueError(f"offset is {self.offset}; it must be at most 1")
        self.seed = int(seed)
        rng = np.random.default_rng([self.seed, 0])
        own, common = np.sqrt([1.0 - self.offset, self.offset])
        free = self.dim - 1 if self.offset else self.dim
        self.theta = np.zeros(self.dim)
        self.theta[:free] = sphere(rng, 1, free)[0] * own
        self.items = np.zeros((int(items), self.dim))
        self.items[:, :free] = sphere(rng, int(items), free) * own
        if self.offset:
            self.theta[-1], self.items[:, -1] = common, common
        self.theta *= self.norm
        self._means = self.items @ self.theta

    def means(self, features: FloatArray) -> FloatArray:
        """θ*·x."""
        return features @ self.theta

    def batch(self, rounds: int, replicate: int) -> Batch:
        """Rounds of a replicate as arrays."""
        random, (low, high) = streams(self.seed, replicate), self.arms
        counts = random[0].integers(low, high, size=rounds, endpoint=True)
        base = random[1].uniform(*self.base, size=rounds)
        shown = random[2].integers(0, len(self.items), size=(rounds, high), dtype=np.int32)
        noise = random[3].standard_normal((rounds, high), dtype=np.float32)
        means = self._means[shown]
        times = (base, self.setup, self.each)
        rewards = means + self.noise * noise
        return batch_of(self.items, shown, counts, times=times, means=means, rewards=rewards)

    def scenes(self, rounds: int, replicate: int) -> Iterator[Scene]:
        """Rounds of a replicate one by one."""
        return self.batch(rounds, replicate).scenes()
