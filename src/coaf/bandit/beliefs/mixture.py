"""The mixture: beliefs that expect different things, each counting by how well it foretold."""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import FloatArray, number
from coaf.bandit.beliefs.factors import Factors
from coaf.bandit.beliefs.nested.nested import Nested
from coaf.bandit.beliefs.registry import register
from coaf.bandit.groups import Groups
from coaf.bandit.shown import Shown
from coaf.bandit.state import entry, seal, unseal

_LEAST = 1e-9  # of a weight


@register("mixture")
class Mixture(Shown):
    """Nested beliefs with different priors, averaged: what foretells badly soon counts little.

    A prior that is narrow learns quickly where it is right and never quite recovers where it is
    wrong; a wide one is never far off and always late. Of both together the rows choose: each
    belief counts its weight times the likelihood of the rows under it (Bayesian model averaging).
    So what an earlier grid taught can be taken along, beside what is expected of any grid.

    Parameters
    ----------
    beliefs
        Of one dimension and family, with stated scales (`Nested(..., scale=...)`): beliefs that
        measure their own units have no likelihoods to compare.
    weights
        What each counts before any row; all alike unless given.

    Examples
    --------
    One expects that x helps, the other that it harms; four rows tell.

    >>> helps = Nested(1, centre=(3.0, 0.0), scale=0.5, effects=())
    >>> harms = Nested(1, centre=(-3.0, 0.0), scale=0.5, effects=())
    >>> belief = Mixture([helps, harms])
    >>> belief.learn([[1.0], [-1.0], [1.0], [-1.0]], [1.0, 0.0, 1.0, 0.0])
    >>> belief.weights.round(3)
    array([1., 0.])
    """

    def __init__(
        self, beliefs: Sequence[Nested], *, weights: Sequence[float] | None = None
    ) -> None:
        if len({(one.dim, one.family) for one in beliefs}) != 1:
            raise ValueError("a mixture is of beliefs of one dimension and family, at least one")
        for i, one in enumerate(beliefs):
            if one.reward_size != np.inf or one.scale is None:
                raise ValueError(f"beliefs[{i}] measures its units in the rows; state its scale")
        given = [1.0] * len(beliefs) if weights is None else list(weights)
        if len(given) != len(beliefs):
            raise ValueError(f"{len(given)} weights for {len(beliefs)} beliefs")
        self.beliefs = list(beliefs)
        self._start = np.log([number(f"weights[{i}]", w, above=0.0) for i, w in enumerate(given)])
        self.dim, self.family = beliefs[0].dim, beliefs[0].family
        self._weigh()

    def widened(self, more: int, scale: float = 2.5) -> "Mixture":
        """A mixture that begins as this one did, of beliefs with `more` features (`Nested`)."""
        beliefs = [one.widened(more, scale) for one in self.beliefs]
        return Mixture(beliefs, weights=np.exp(self._start).tolist())

    def _weigh(self) -> None:
        logs = self._start + [one.evidence for one in self.beliefs]
        found = np.exp(logs - logs.max())
        self.weights: FloatArray = found / found.sum()

    @property
    def rows(self) -> int:
        """How many rows were learned, forgotten or not."""
        return self.beliefs[0].rows

    @property
    def trusted(self) -> FloatArray:
        """How far each was trusted before what it learned."""
        shares = np.exp(self._start - self._start.max())
        found: FloatArray = shares / shares.sum()
        return found

    @property
    def likeliest(self) -> Nested:
        """The belief that counts most."""
        return self.beliefs[int(self.weights.argmax())]

    @property
    def theta(self) -> FloatArray:
        """The posterior mean of the coefficients; last, the intercept."""
        return self._average([one.theta for one in self._counting])

    @property
    def spread(self) -> FloatArray:
        """The posterior standard deviations of the coefficients, between beliefs as well."""
        mean = self.theta
        squares = [one.spread**2 + (one.theta - mean) ** 2 for one in self._counting]
        return np.sqrt(self._average(squares))

    @property
    def deviations(self) -> FloatArray:
        """Those of the likeliest: of effects, outermost first, and of gaussian noise."""
        return self.likeliest.deviations

    @property
    def _counting(self) -> list[Nested]:
        """What counts at all; the rest would cost time and change no digit."""
        return [self.beliefs[i] for i in np.flatnonzero(self.weights > _LEAST)]

    def _average(self, told: Sequence[FloatArray]) -> FloatArray:
        """What those that count say, on average."""
        weights = self.weights[self.weights > _LEAST]
        average: FloatArray = np.tensordot(weights / weights.sum(), np.array(told), axes=1)
        return average

    def mean(self, features: npt.ArrayLike, groups: Groups | None = None) -> FloatArray:
        """The posterior mean reward of each arm."""
        return self._average([one.mean(features, groups) for one in self._counting])

    def upper(self, features: npt.ArrayLike, groups: Groups | None = None) -> FloatArray:
        """The average of the beliefs' upper ends."""
        return self._average([one.upper(features, groups) for one in self._counting])

    def sample(
        self, features: npt.ArrayLike, rng: np.random.Generator, groups: Groups | None = None
    ) -> FloatArray:
        """A joint draw of one of the beliefs, which is drawn first."""
        which = int(rng.choice(len(self.beliefs), p=self.weights))
        return self.beliefs[which].sample(features, rng, groups)

    def factors(self, features: npt.ArrayLike, groups: Groups | None = None) -> Factors:
        """What arms share, as `Nested.factors`: the normal with the mixture's moments.

        Its covariance is the mean covariance, plus that of the beliefs' means around theirs.
        """
        told = [one.factors(features, groups) for one in self._counting]
        if len(told) == 1:
            return told[0]
        m = self._average([one.mean for one in told])
        pairs = list(zip(np.sqrt(self.weights[self.weights > _LEAST]), told, strict=True))
        columns = [root * one.shared for root, one in pairs]
        columns += [root * (one.mean - m)[:, None] for root, one in pairs]
        return Factors(m, np.hstack(columns), self._average([one.own for one in told]))

    def learn(
        self, features: npt.ArrayLike, rewards: npt.ArrayLike, groups: Groups | None = None
    ) -> None:
        """Add rows."""
        self._all("learn", features, rewards, groups)

    def refit(
        self, features: npt.ArrayLike, rewards: npt.ArrayLike, groups: Groups | None = None
    ) -> None:
        """Start again from the priors with these rows."""
        self._all("refit", features, rewards, groups)

    def forget(self, factor: float) -> None:
        """Let what was learned count `factor` of what it did; how well it was foretold, too."""
        self._all("forget", factor)

    def settle(self) -> None:
        """Let what is known now be the prior, and the weights with it."""
        self._fix("settle")

    def leave(self) -> None:
        """Settle, and let labels stand for other groups from now on: a new grid."""
        self._fix("leave")

    def _fix(self, how: str) -> None:
        logs = np.log(np.maximum(self.weights, 1e-300))
        self._all(how)
        self._start = logs
        self._weigh()

    def _all(self, how: str, *given: Any) -> None:
        """Tell all of them, or none if one refuses."""
        told = [copy(one) for one in self.beliefs]
        for one in told:
            getattr(one, how)(*given)
        self.beliefs = told
        self._weigh()

    def state(self) -> dict[str, Any]:
        """Everything, as JSON."""
        beliefs = [one.state() for one in self.beliefs]
        return seal("mixture", {"beliefs": beliefs, "start": self._start.tolist()})

    @classmethod
    def restore(cls, state: Mapping[str, Any] | str) -> Self:
        """The mixture that `state` was taken from."""
        saved = unseal("mixture", state)
        mixture = cls([Nested.restore(one) for one in entry(saved, "beliefs")])
        mixture._start = np.array(entry(saved, "start"), dtype=np.float64)
        mixture._weigh()
        return mixture
