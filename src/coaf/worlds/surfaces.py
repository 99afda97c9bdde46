"""Worlds whose mean reward is any function of the features, with the rewards that go with it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from coaf.bandit.arrays import FloatArray, number
from coaf.bandit.shown import Shown
from coaf.worlds.batch import Batch, Scene
from coaf.worlds.catalogue import arm_range, batch_of, sphere, streams

Law = Literal["gaussian", "bernoulli", "poisson"]


class Surface(Shown):
    """Each round shows items of a catalogue, uniform in the unit ball; their mean is `surface(x)`.

    Parameters
    ----------
    dim
        Number of features.
    surface
        From features (n, dim) to mean rewards (n,).
    rewards
        What is seen: the mean plus normal noise, 0 or 1, or a count.
    noise
        Standard deviation of normal noise; the others have their own.
    arms, base, setup, each
        As for `Synthetic`.
    items
        How many the catalogue has.
    seed
        The world's own: the catalogue.

    Attributes
    ----------
    mean_bound
        The largest mean reward in the catalogue, up or down.

    Examples
    --------
    >>> from coaf.worlds.surfaces import Bumps
    >>> world = Surface(2, Bumps(), seed=1)
    >>> scene = next(world.scenes(rounds=1, replicate=0))
    >>> bool((abs(scene.means - Bumps()(scene.round.features)) < 1e-12).all())
    True
    """

    def __init__(
        self,
        dim: int,
        surface: Callable[[FloatArray], FloatArray],
        *,
        rewards: Law = "gaussian",
        noise: float = 0.2,
        arms: tuple[int, int] = (6, 20),
        base: tuple[float, float] = (5.0, 10.0),
        setup: float = 0.0,
        each: float = 1.0,
        items: int = 2000,
        seed: int = 0,
    ) -> None:
        self.dim = int(number("dim", dim, low=1))
        self.surface = surface
        if rewards not in ("gaussian", "bernoulli", "poisson"):
            raise ValueError(
                f'rewards is {rewards!r}; it must be "gaussian", "bernoulli" or "poisson"'
            )
        self.rewards = rewards
        self.noise = number("noise", noise, low=0.0)
        self.arms = arm_range(arms)
        self.base = (number("base[0]", base[0], above=0.0), number("base[1]", base[1], above=0.0))
        self.setup, self.each = number("setup", setup, low=0.0), number("each", each, low=0.0)
        self.seed = int(seed)
        rng = np.random.default_rng([self.seed, 0])
        radii = rng.random((int(items), 1)) ** (1.0 / self.dim)
        self.items: FloatArray = sphere(rng, int(items), self.dim) * radii
        self._means = self.means(self.items)
        self.mean_bound = float(np.abs(self._means).max())
        if rewards != "gaussian" and self._means.min() < 0.0:
            raise ValueError(f"surface goes down to {self._means.min():g}; {rewards} means cannot")
        if rewards == "bernoulli" and self._means.max() > 1.0:
            raise ValueError(f"surface goes up to {self._means.max():g}; chances are at most 1")

    def means(self, features: FloatArray) -> FloatArray:
        """The surface at each arm."""
        return np.asarray(self.surface(features), dtype=np.float64)

    def batch(self, rounds: int, replicate: int) -> Batch:
        """Rounds of a replicate as arrays."""
        random, (low, high) = streams(self.seed, replicate), self.arms
        counts = random[0].integers(low, high, size=rounds, endpoint=True)
        base = random[1].uniform(*self.base, size=rounds)
        shown = random[2].integers(0, len(self.items), size=(rounds, high), dtype=np.int32)
        means = self._means[shown]
        if self.rewards == "bernoulli":
            rewards = (random[3].random((rounds, high)) < means).astype(np.float64)
        elif self.rewards == "poisson":
            rewards = random[3].poisson(means).astype(np.float64)
        else:
            rewards = means + self.noise * random[3].standard_normal((rounds, high))
        times = (base, self.setup, self.each)
        return batch_of(self.items, shown, counts, times=times, means=means, rewards=rewards)

    def scenes(self, rounds: int, replicate: int) -> Iterator[Scene]:
        """Rounds of a replicate one by one."""
        return self.batch(rounds, replicate).scenes()


def _at_least(features: FloatArray, columns: int) -> None:
    if features.shape[1] < columns:
        raise ValueError(f"this surface needs {columns} features, got {features.shape[1]}")


@dataclass(frozen=True)
class Sigmoid:
    """Rare successes: a steep sigmoid of the first feature, from nearly never to `top`."""

    steep: float = 8.0
    middle: float = 0.45
    top: float = 0.9

    def __call__(self, features: FloatArray) -> FloatArray:
        result: FloatArray = self.top / (1.0 + np.exp(-self.steep * (features[:, 0] - self.middle)))
        return result


@dataclass(frozen=True)
class Growth:
    """Counts that grow exponentially along the first feature."""

    low: float = 0.05
    slope: float = 4.0

    def __call__(self, features: FloatArray) -> FloatArray:
        result: FloatArray = self.low * np.exp(
            self.slope * (features[:, 0] + 0.2 * features[:, -1])
        )
        return result


@dataclass(frozen=True)
class Bumps:
    """Two smooth hills on a plain, which no plane can follow."""

    height: float = 1.0
    radius: float = 0.3

    def __call__(self, features: FloatArray) -> FloatArray:
        _at_least(features, 2)
        hills = np.array([[0.5, 0.4], [-0.5, -0.4]])
        far = ((features[:, None, :2] - hills) ** 2).sum(axis=-1)
        result: FloatArray = self.height * np.exp(-far / (2.0 * self.radius**2)).sum(axis=1)
        return result


@dataclass(frozen=True)
class Checkerboard:
    """Good and bad in turns: what trees are made for."""

    good: float = 0.9
    bad: float = 0.05

    def __call__(self, features: FloatArray) -> FloatArray:
        _at_least(features, 2)
        agree = (features[:, 0] > 0.0) == (features[:, 1] > 0.0)
        return np.where(agree, self.good, self.bad)


@dataclass(frozen=True)
class Wave:
    """A wave along one direction: one of a family that differ in direction and phase."""

    angle: float
    phase: float = 0.0
    frequency: float = 6.0

    def __call__(self, features: FloatArray) -> FloatArray:
        _at_least(features, 2)
        along = np.cos(self.angle) * features[:, 0] + np.sin(self.angle) * features[:, 1]
        result: FloatArray = 0.5 + 0.45 * np.sin(self.frequency * along + self.phase)
        return result
