"""The special cases that the paper grew from, as worlds (`sec: MMB`)."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from coaf.bandit.actions import Actions, OneOf
from coaf.bandit.arrays import FloatArray, floats, number
from coaf.bandit.latency import Additive
from coaf.bandit.problem import Round
from coaf.bandit.shown import Shown
from coaf.worlds.batch import Batch, Scene
from coaf.worlds.catalogue import arm_range, batch_of, shares, sphere, streams


class SemiBandit(Shown):
    """The contextual combinatorial semi-bandit: some subsets are allowed, and all take time 1.

    Each round shows fresh arms, their features uniform on the unit sphere; the mean reward is θ*·x
    with ‖θ*‖ = norm. Time makes no difference, so Γ* is what the best subset brings a round.

    Parameters
    ----------
    dim
        Number of features.
    actions
        Which subsets are allowed: `AtMost(3)`, `Exactly(3)`, `Listed([(0, 1), (2,)])`, ...
    arms
        A round shows between arms[0] and arms[1] arms.
    noise
        Standard deviation of a reward around its mean.
    norm
        ‖θ*‖.
    seed
        The world's own: θ*. Replicates have their own streams.

    Examples
    --------
    >>> from coaf.bandit.actions import AtMost
    >>> world = SemiBandit(dim=3, actions=AtMost(2), arms=(5, 5))
    >>> scene = next(world.scenes(rounds=1, replicate=0))
    >>> scene.round.n, scene.round.latency.seconds(np.ones(5, dtype=np.bool_))
    (5, 1.0)
    """

    def __init__(
        self,
        dim: int = 5,
        *,
        actions: Actions,
        arms: tuple[int, int] = (10, 10),
        noise: float = 0.5,
        norm: float = 1.0,
        seed: int = 0,
    ) -> None:
        self.dim = int(number("dim", dim, low=1))
        self.arms = arm_range(arms)
        self.actions = actions
        for n in set(self.arms):
            actions.check(n)
        self.noise, self.norm = number("noise", noise, low=0.0), number("norm", norm, low=0.0)
        self.seed = int(seed)
        self.theta = sphere(np.random.default_rng([self.seed, 0]), 1, self.dim)[0] * self.norm

    def means(self, features: FloatArray) -> FloatArray:
        """θ*·x."""
        result: FloatArray = features @ self.theta
        return result

    def scenes(self, rounds: int, replicate: int) -> Iterator[Scene]:
        """Rounds of a replicate one by one."""
        rng, latency = streams(self.seed, replicate)[0], Additive(base=1.0, each=0.0)
        for _ in range(rounds):
            n = int(rng.integers(*self.arms, endpoint=True))
            features = sphere(rng, n, self.dim)
            means = self.means(features)
            rewards = means + self.noise * rng.standard_normal(n)
            yield Scene(Round(features, latency, self.actions), means, rewards)


class ContextualBandit(SemiBandit):
    """The classic stochastic contextual bandit: exactly one arm a round, and all take time 1.

    Whatever a second is worth, COAF takes the arm of the largest estimate: with `Upper` it is
    LinUCB, and with `Thompson` linear Thompson sampling.

    Parameters
    ----------
    dim, arms, noise, norm, seed
        As for `SemiBandit`.

    Examples
    --------
    >>> world = ContextualBandit(dim=3, arms=(4, 4))
    >>> next(world.scenes(rounds=1, replicate=0)).round.actions
    OneOf()
    """

    def __init__(
        self,
        dim: int = 5,
        *,
        arms: tuple[int, int] = (10, 10),
        noise: float = 0.5,
        norm: float = 1.0,
        seed: int = 0,
    ) -> None:
        super().__init__(dim, actions=OneOf(), arms=arms, noise=noise, norm=norm, seed=seed)


class Mortal(Shown):
    """The mortal bandit: all arms of a round are alike, and how many there are is its lifetime.

    A round is one bandit arm that lives for a geometric number of pulls. Looking at it costs `base`
    and tells its mean reward, which is the one feature; each pull costs `each`.

    Parameters
    ----------
    prior
        The mean rewards that there are, within ±1.
    weights
        How often each comes, in any unit; equally often unless given.
    p
        The lifetime is geometric: k pulls with probability p (1 − p)^(k−1), so 1/p on average.
    n_max
        Lifetimes beyond this are cut to it.
    base, each
        Time to look at a new arm, and for each pull.
    noise
        Standard deviation of a reward around its mean; the mortal bandit of old has none.
    seed
        The world's own; replicates have their own streams.

    Examples
    --------
    >>> world = Mortal(prior=(0.2, 1.0), p=0.25, base=2.0)
    >>> next(world.scenes(rounds=1, replicate=3)).means  # it will live for two pulls
    array([1., 1.])
    >>> round(world.optimal_rate, 3)  # staying with the better kind alone
    0.5
    """

    dim = 1

    def __init__(
        self,
        prior: npt.ArrayLike = (0.1, 0.9),
        *,
        weights: npt.ArrayLike | None = None,
        p: float = 0.2,
        n_max: int = 40,
        base: float = 1.0,
        each: float = 1.0,
        noise: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.prior = floats("prior", prior, ndim=1)
        if len(self.prior) == 0 or np.abs(self.prior).max() > 1.0:
            raise ValueError(f"prior is {prior!r}; it must hold mean rewards within ±1")
        self.weights = shares(weights, len(self.prior))
        self.p = number("p", p, above=0.0)
        if self.p > 1.0:
            raise ValueError(f"p is {self.p}; it must be at most 1")
        self.n_max = int(number("n_max", n_max, low=1))
        self.base, self.each = number("base", base, above=0.0), number("each", each, low=0.0)
        self.noise = number("noise", noise, low=0.0)
        self.seed = int(seed)

    @property
    def lifetime(self) -> float:
        """E[n] = Σ_{k ≤ n_max} P(n ≥ k) = (1 − (1 − p)^n_max) / p."""
        return float((1.0 - (1.0 - self.p) ** self.n_max) / self.p)

    @property
    def optimal_rate(self) -> float:
        """Γ*, exactly: the root of base·Γ = E[n]·E[(μ − each·Γ)⁺], which is `th: MBSP_ub` here.

        A round is pulled to its end or not at all, so Γ* is the best rate of staying with the m
        best kinds: E[n] Σ w μ / (base + E[n] each Σ w) over those.
        """
        order = np.argsort(-self.prior)
        weights, means = self.weights[order], self.prior[order]
        reward = self.lifetime * np.cumsum(weights * means)
        seconds = self.base + self.lifetime * self.each * np.cumsum(weights)
        return max(0.0, float((reward / seconds).max()))

    def means(self, features: FloatArray) -> FloatArray:
        """The one feature."""
        return features[:, 0]

    def batch(self, rounds: int, replicate: int) -> Batch:
        """Rounds of a replicate as arrays."""
        random = streams(self.seed, replicate)
        kinds = random[0].choice(len(self.prior), size=rounds, p=self.weights)
        counts = np.minimum(random[1].geometric(self.p, size=rounds), self.n_max)
        shown = np.repeat(kinds[:, None], self.n_max, axis=1)
        noise = self.noise * random[2].standard_normal(shown.shape)
        means = self.prior[shown]
        times = (self.base, 0.0, self.each)
        items = self.prior[:, None]
        return batch_of(items, shown, counts, times=times, means=means, rewards=means + noise)

    def scenes(self, rounds: int, replicate: int) -> Iterator[Scene]:
        """Rounds of a replicate one by one."""
        return self.batch(rounds, replicate).scenes()


class Types(Shown):
    """Each arm is of one of `dim` types, told by a one-hot feature; types have means of their own.

    Parameters
    ----------
    means
        The mean reward of each type, within ±1; `dim` numbers uniform in [0, 1] unless given.
    dim
        How many types, where `means` does not say.
    weights
        How often each type comes, in any unit; equally often unless given.
    arms
        A round shows between arms[0] and arms[1] arms.
    base, setup, each
        Time to see a round, for taking anything at all, and for each arm taken.
    noise
        Standard deviation of a reward around its mean, or None for rewards 0 and 1.
    seed
        The world's own: the means. Replicates have their own streams.

    Examples
    --------
    >>> world = Types([0.1, 0.9], arms=(3, 3))
    >>> scene = next(world.scenes(rounds=1, replicate=0))
    >>> scene.round.features.sum(axis=1), sorted(set(scene.rewards.tolist())) <= [0.0, 1.0]
    (array([1., 1., 1.]), True)
    """

    def __init__(
        self,
        means: npt.ArrayLike | None = None,
        *,
        dim: int = 5,
        weights: npt.ArrayLike | None = None,
        arms: tuple[int, int] = (6, 20),
        base: float = 5.0,
        setup: float = 0.0,
        each: float = 1.0,
        noise: float | None = None,
        seed: int = 0,
    ) -> None:
        self.seed = int(seed)
        if means is None:
            count = int(number("dim", dim, low=1))
            means = np.random.default_rng([self.seed, 0]).uniform(size=count)
        self.theta = floats("means", means, ndim=1)
        self.dim = len(self.theta)
        low = 0.0 if noise is None else -1.0
        if self.dim == 0 or self.theta.min() < low or self.theta.max() > 1.0:
            raise ValueError(f"means is {means!r}; it must hold numbers from {low:g} to 1")
        self.weights = shares(weights, self.dim)
        self.arms = arm_range(arms)
        self.base, self.each = number("base", base, above=0.0), number("each", each, low=0.0)
        self.setup = number("setup", setup, low=0.0)
        self.noise = None if noise is None else number("noise", noise, low=0.0)

    def means(self, features: FloatArray) -> FloatArray:
        """The mean of each arm's type."""
        result: FloatArray = features @ self.theta
        return result

    def batch(self, rounds: int, replicate: int) -> Batch:
        """Rounds of a replicate as arrays."""
        random, (low, high) = streams(self.seed, replicate), self.arms
        counts = random[0].integers(low, high, size=rounds, endpoint=True)
        shown = random[1].choice(self.dim, size=(rounds, high), p=self.weights)
        means = self.theta[shown]
        if self.noise is None:
            rewards = (random[2].uniform(size=shown.shape) < means).astype(np.float64)
        else:
            rewards = means + self.noise * random[2].standard_normal(shown.shape)
        times = (self.base, self.setup, self.each)
        items = np.eye(self.dim)
        return batch_of(items, shown, counts, times=times, means=means, rewards=rewards)

    def scenes(self, rounds: int, replicate: int) -> Iterator[Scene]:
        """Rounds of a replicate one by one."""
        return self.batch(rounds, replicate).scenes()
