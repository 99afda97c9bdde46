"""The world of the paper's film experiment: films to show, users to rate them, time to pay."""

import math
from collections.abc import Iterator

import numpy as np

from coaf.bandit.arrays import FloatArray, number
from coaf.bandit.shown import Shown
from coaf.worlds.batch import Batch, Scene
from coaf.worlds.catalogue import arm_range, batch_of, streams
from coaf.worlds.movielens.films import COMPONENTS, Films


class MovieLens(Shown):
    """A round shows some films; taking one costs a second, and brings a random user's rating.

    A film's features are its first principal components and a constant, scaled so that ‖x‖ ≤ 1.
    Its mean reward is ψ*(x) = θ*·x, fitted by least squares to the films' mean ratings. A reward is
    the completed rating of one user, drawn independently for each film shown; films, too, are drawn
    independently, so a round may show one twice.

    Parameters
    ----------
    films
        Prepared by `prepare`.
    components
        How many principal components a film shows; there is one feature more, the constant.
    arms, base, each
        How many films a round shows, the time that takes (uniform in the range), and the time for
        each film taken. The paper's are the defaults.
    spread
        A factor on how far ratings lie from their film's mean rating.
    seed
        Of the replicates.

    Attributes
    ----------
    theta : (dim,)
        θ*.
    means_of_ratings, misfit : (films,)
        Each film's mean completed rating, and how far ψ* is from it.
    noise
        The smallest σ for which the ratings of every film are σ-sub-Gaussian about their mean.
    norm_bound, mean_bound
        ‖θ*‖, and the highest rating there is.
    """

    def __init__(
        self,
        films: Films,
        *,
        components: int = 10,
        arms: tuple[int, int] = (6, 20),
        base: tuple[float, float] = (5.0, 10.0),
        each: float = 1.0,
        spread: float = 1.0,
        seed: int = 0,
    ) -> None:
        if not 1 <= components <= COMPONENTS:
            raise ValueError(f"components is {components}; films are prepared with {COMPONENTS}")
        self.films = films
        self.dim = components + 1
        self.arms = arm_range(arms)
        self.base = (number("base[0]", base[0], above=0.0), number("base[1]", base[1], above=0.0))
        self.each = number("each", each, above=0.0)
        self.spread = number("spread", spread, low=0.0)
        self.seed = int(seed)
        shown = films.components[:, :components]
        shown = shown / np.linalg.norm(shown, axis=1).max()
        self.items = np.hstack([shown, np.ones((len(shown), 1))]) / math.sqrt(2.0)
        self.means_of_ratings = films.completed.mean(axis=1, dtype=np.float64)
        self.theta: FloatArray = np.linalg.lstsq(self.items, self.means_of_ratings)[0]
        self._means: FloatArray = self.items @ self.theta
        self.misfit = self._means - self.means_of_ratings
        self.norm_bound = float(np.linalg.norm(self.theta))
        self.mean_bound = films.scale[1]
        self.noise = self.spread * float(films.facts["noise"])

    @property
    def item_means(self) -> FloatArray:
        """ψ* of every film."""
        return self._means.copy()

    def means(self, features: FloatArray) -> FloatArray:
        """ψ*(x) = θ*·x."""
        result: FloatArray = features @ self.theta
        return result

    def batch(self, rounds: int, replicate: int) -> Batch:
        """Rounds of a replicate as arrays."""
        random, (low, high) = streams(self.seed, replicate), self.arms
        counts = random[0].integers(low, high, size=rounds, endpoint=True)
        base = random[1].uniform(*self.base, size=rounds)
        count, users = self.films.completed.shape
        shown = random[2].integers(0, count, size=(rounds, high), dtype=np.int32)
        raters = random[3].integers(0, users, size=(rounds, high), dtype=np.int32)
        rewards = self.films.completed[shown, raters].astype(np.float64)
        if self.spread != 1.0:
            centre = self.means_of_ratings[shown]
            rewards = centre + self.spread * (rewards - centre)
        means, times = self._means[shown], (base, 0.0, self.each)
        return batch_of(self.items, shown, counts, times=times, means=means, rewards=rewards)

    def scenes(self, rounds: int, replicate: int) -> Iterator[Scene]:
        """Rounds of a replicate one by one."""
        return self.batch(rounds, replicate).scenes()
