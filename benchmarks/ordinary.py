"""Worlds that are ordinary somewhere: stars, raw features, counts, late arms, times that change."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from coaf.bandit.actions import Actions, AnySubset
from coaf.bandit.arrays import FloatArray
from coaf.bandit.latency import Additive, Setup
from coaf.bandit.problem import Round
from coaf.worlds.batch import Scene
from coaf.worlds.catalogue import streams

Features = Callable[[np.random.Generator, int, int], FloatArray]  # round, arms -> (arms, dim)
Means = Callable[[FloatArray], FloatArray]
Rewards = Callable[[np.random.Generator, FloatArray], FloatArray]  # means -> rewards


@dataclass
class Ordinary:
    """A world put together from what its arms look like, bring and take.

    Attributes
    ----------
    dim
        Number of features.
    features, mean, rewards
        What arms look like, their mean reward as a function of that, and what is seen of it.
    arms
        A round shows between arms[0] and arms[1] arms.
    base, setup, each
        Time to see a round (uniform between two ends), to take anything, and for each arm.
    pace
        What all times of a round are multiplied by, from its number.
    actions
        Which subsets are allowed.
    alike, shift
        So many rounds in a row resemble each other: all their arms have the same normal shift, with
        these standard deviations of each feature.
    unit
        What all rewards are multiplied by.
    spoiled
        A round in which the best arm's reward is 100,000: a marker for no score.

    Examples
    --------
    >>> world = raw_features()
    >>> scene = next(world.scenes(1, 0))
    >>> np.abs(scene.round.features).max() > 1000.0
    np.True_
    """

    dim: int
    features: Features
    mean: Means
    rewards: Rewards
    arms: tuple[int, int] = (6, 20)
    base: tuple[float, float] = (5.0, 10.0)
    setup: float = 0.0
    each: float = 1.0
    pace: Callable[[int], float] = lambda number: 1.0
    actions: Actions = AnySubset()  # noqa: RUF009 (it has no state)
    alike: int = 1
    shift: tuple[float, ...] = ()
    unit: float = 1.0
    spoiled: int | None = None

    def means(self, features: FloatArray) -> FloatArray:
        """The true mean reward of each arm."""
        return self.unit * self.mean(features)

    def scenes(self, rounds: int, replicate: int) -> Iterator[Scene]:
        """Rounds of a replicate one by one."""
        looks, luck, times, _ = streams(11, replicate)
        for j in range(rounds):
            n = int(times.integers(self.arms[0], self.arms[1], endpoint=True))
            base, pace = float(times.uniform(*self.base)), self.pace(j)
            X = self.features(looks, j, n)
            if self.shift:
                if j % self.alike == 0:
                    shift = np.array(self.shift) * looks.normal(size=self.dim)
                X = X + shift
            mu = self.mean(X)
            y = self.rewards(luck, mu)
            if j == self.spoiled:
                y[int(mu.argmax())] = 1e5
            latency: Additive | Setup = Additive(pace * base, pace * self.each)
            if self.setup > 0.0:
                latency = Setup(pace * base, pace * self.setup, pace * self.each)
            yield Scene(Round(X, latency, self.actions), self.unit * mu, self.unit * y)

    def scaled(self, rewards: float, seconds: float, feature: float) -> "Ordinary":
        """The same world in other units: of rewards, of times, and of the first feature."""
        by = np.where(np.arange(self.dim) == 0, feature, 1.0)
        looks, mean, pace = self.features, self.mean, self.pace
        return replace(
            self,
            features=lambda rng, j, n: looks(rng, j, n) * by,
            mean=lambda X: mean(X / by),
            shift=tuple((by[: len(self.shift)] * self.shift).tolist()),
            pace=lambda j: seconds * pace(j),
            unit=rewards * self.unit,
        )


def linear(theta: tuple[float, ...], constant: float) -> Means:
    """θ·x and a constant."""
    return lambda X: constant + X @ np.array(theta)


def normal_features(dim: int) -> Features:
    return lambda rng, _, n: rng.normal(size=(n, dim))


def normal_noise(sd: float) -> Rewards:
    return lambda rng, mu: mu + sd * rng.normal(size=len(mu))


def coins(rng: np.random.Generator, mu: FloatArray) -> FloatArray:
    """0 or 1."""
    return (rng.random(len(mu)) < mu).astype(np.float64)


def types(means: tuple[float, ...], late: int | None = None) -> Features:
    """One-hot kinds of arms; the last of them appears in round `late`."""

    def features(rng: np.random.Generator, number: int, n: int) -> FloatArray:
        known = len(means) - (late is not None and number < late)
        return np.asarray(np.eye(len(means))[rng.integers(0, known, n)])

    return features


def of_type(means: tuple[float, ...]) -> Means:
    return lambda X: X @ np.array(means)


def stars(low: float, high: float, *, base: float, each: float, seed: int) -> Ordinary:
    """Ratings from 1 to 5: forty films with six features, whose means lie between two ends."""
    rng = np.random.default_rng(seed)
    films, taste = rng.random((40, 6)), rng.normal(size=6)
    scores = films @ taste
    slope = (high - low) / np.ptp(scores)
    return Ordinary(
        6,
        lambda rng, _, n: films[rng.integers(0, 40, n)],
        lambda X: low + slope * (X @ taste - scores.min()),
        lambda rng, mu: 1.0 + rng.binomial(4, np.clip((mu - 1.0) / 4.0, 0.0, 1.0)).astype(float),
        arms=(8, 8),
        base=(base, base),
        each=each,
    )


def raw_features(
    middle: tuple[float, ...] = (5000.0, 0.01, 40.0),
    spread: tuple[float, ...] = (800.0, 0.004, 15.0),
) -> Ordinary:
    """Features as they are measured: large, tiny, and far from 0."""
    at, by = np.array(middle), np.array(spread)
    return Ordinary(
        3,
        lambda rng, _, n: at + by * rng.normal(size=(n, 3)),
        lambda X: 0.3 + ((X - at) / by) @ np.array([0.3, -0.2, 0.25]),
        normal_noise(0.5),
    )


def pareto(shape: float) -> Rewards:
    """Multiplicative noise of mean 1 with a heavy tail."""
    return lambda rng, mu: mu * (shape - 1.0) / shape * rng.random(len(mu)) ** (-1.0 / shape)


def lognormal(sd: float) -> Rewards:
    """Multiplicative noise of mean 1."""
    return lambda rng, mu: mu * np.exp(sd * rng.normal(size=len(mu)) - 0.5 * sd * sd)


def student(freedom: float, scale: float) -> Rewards:
    """Noise with the tails of Student's law."""
    return lambda rng, mu: mu + scale * rng.standard_t(freedom, size=len(mu))


def counts(dispersion: float) -> Rewards:
    """Whole numbers with variance μ + dispersion·μ²."""

    def draw(rng: np.random.Generator, mu: FloatArray) -> FloatArray:
        rate = mu if dispersion == 0.0 else mu * rng.gamma(1.0 / dispersion, dispersion, len(mu))
        return rng.poisson(rate).astype(np.float64)

    return draw


def exponential(mean: Means) -> Means:
    """The exponential of a linear mean: for rewards that multiply."""
    return lambda X: np.asarray(np.exp(mean(X)))


def times_change(at: int, factor: float) -> Callable[[int], float]:
    """All times are multiplied by `factor` from round `at` on."""
    return lambda number: factor if number >= at else 1.0


def times_drift(size: float, period: float) -> Callable[[int], float]:
    """Times go up and down by e^±size."""
    return lambda number: float(np.exp(size * np.sin(2.0 * np.pi * number / period)))
