"""What it is worth to take arms one by one, free to stop as rewards come in.

The arms of a patch share what is not known of it, so the first rewards speak of the rest. Who may
stop is better off than who must choose beforehand: that is an option, and it has a value.
"""

from collections.abc import Sequence
from copy import copy
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from numpy.polynomial.hermite_e import hermegauss

from coaf.bandit.arrays import BoolArray, FloatArray, IntArray
from coaf.bandit.beliefs.factors import Factors
from coaf.bandit.groups import Groups


def _normal_nodes(count: int) -> tuple[FloatArray, FloatArray]:
    nodes, weights = hermegauss(count)
    return nodes, weights / weights.sum()


def _even_nodes(count: int) -> tuple[FloatArray, FloatArray]:
    nodes = np.linspace(-4.0, 4.0, count)
    weights = np.exp(-0.5 * nodes * nodes)
    return nodes, weights / weights.sum()


_COIN = _normal_nodes(15)
# The value of stopping has a kink, of which few nodes of Gauss miss up to a tenth.
_WALK = _even_nodes(25)


@runtime_checkable
class Shared(Protocol):
    """A belief that knows what arms of one group share: `Nested`."""

    @property
    def family(self) -> str:
        """Which rewards it learns: "logistic" for 0 and 1, "gaussian" for others."""

    def factors(self, features: npt.ArrayLike, groups: Groups | None = None) -> Factors:
        """What arms share, and what is their own."""

    @property
    def deviations(self) -> FloatArray:
        """Standard deviations; with a gaussian family, last that of the noise."""


class Stopping:
    """Arms of some rounds in the order of taking them, and what taking them in turn is worth.

    An order is fixed: the largest mean reward per second first. What the arms of a round share is
    taken to be one normal number b, added to η of each, with the average of their covariances as
    its variance; what is an arm's own is averaged over. For that the Bellman equation is solved
    exactly: of rewards that are 0 or 1, their number says all there is to know of b (Rasch's
    model); of normal ones, their average. An arm with several parts is taken to tell as much as
    one with a single part, which undervalues the option a little.

    Parameters
    ----------
    belief
        What is known.
    features, groups, each
        Of all arms, round after round: each arm's own seconds.
    counts
        How many arms each round has.
    lag
        How many arms are taken before the reward of an arm is in, beyond itself.
    parts
        How many rewards an arm brings.

    Attributes
    ----------
    order : (arms,)
        Positions in the round, best first, round after round.
    means : (arms,)
        Mean rewards, in the order given.
    """

    def __init__(
        self,
        belief: Shared,
        features: FloatArray,
        groups: Groups | None,
        each: FloatArray,
        counts: IntArray,
        *,
        lag: int = 0,
        parts: FloatArray | float = 1.0,
    ) -> None:
        m, H, alone = belief.factors(features, groups)
        own = np.einsum("ij,ij->i", H, H)
        starts = np.cumsum(counts) - counts
        some = counts > 0  # sums over no arms would be those of the next round's first
        at, n = starts[some], counts[some]
        shared = np.zeros(len(counts))
        if len(at):
            total = np.add.reduceat(H, at)
            pairs = np.einsum("ij,ij->i", total, total) - np.add.reduceat(own, at)
            usual = np.maximum(pairs / np.maximum(n * (n - 1), 1), 0.0)
            shared[some] = np.minimum(usual, np.minimum.reduceat(own, at))
        own += alone
        owner = np.repeat(np.arange(len(counts)), counts)
        self._rest = own - shared[owner]
        self._shared, self.counts, self._lag = shared, counts, lag
        self._coins = belief.family == "logistic"
        self.means = parts * (_chance(m, own) if self._coins else m)
        by = self.means / each if (each > 0.0).all() else self.means
        order = np.lexsort((-by, owner))
        self.order, self._each = order - starts[owner], each[order]
        self._m, self._rest = m[order], self._rest[order]
        self._parts = np.broadcast_to(parts, len(m))[order]
        # The sum of an arm's rewards; per part its noise is the average's.
        self._misses = 0.0 if self._coins else float(belief.deviations[-1]) ** 2
        self._counted: tuple[FloatArray, FloatArray] | None = None

    def of(self, rounds: BoolArray) -> "Stopping":
        """The same of some rounds."""
        some, arms = copy(self), np.repeat(rounds, self.counts)
        some.counts, some._shared = self.counts[rounds], self._shared[rounds]
        for name in ("order", "_each", "_m", "_rest", "_parts"):
            setattr(some, name, getattr(self, name)[arms])
        if self._counted is not None:
            gain, seen = self._counted
            some._counted = (gain[arms], seen[arms])
        return some

    def hopeful(self, rate: float, setup: FloatArray) -> BoolArray:
        """Which rounds might be worth these seconds beside those of their arms, were b known.

        Knowing b is worth more than learning it, and takes no equation to reckon: of many rounds
        that were left for good reasons, few are hopeful.
        """
        from coaf.bandit.compiled import stopping  # loads numba

        found = np.empty(len(self.counts), dtype=np.bool_)
        arms = (self._m, self._rest, self._parts, self._each)
        of = (self.counts, self._shared, setup)
        stopping.hopes(rate, self._coins, *arms, *of, *_COIN, found)
        return found

    def worth(self, rate: float) -> tuple[FloatArray, FloatArray]:
        """For each round, the value at this rate, and the seconds expected to be spent on it.

        Both are of the arms alone: neither what the round takes by itself nor a set-up counts.
        """
        from coaf.bandit.compiled import stopping  # loads numba

        values, seconds = np.empty((2, len(self.counts)))
        if self._coins:
            if self._counted is None:
                self._counted = self._count_coins()
            stopping.coin_worth(
                rate, *self._counted, self.counts, self._each, self._lag, values, seconds
            )
        else:
            stopping.normal_worth(
                rate,
                self._m,
                self._rest + self._misses / self._parts,
                self._parts,
                self._shared,
                self.counts,
                self._each,
                self._lag,
                *_WALK,
                values,
                seconds,
            )
        return values, seconds

    def _count_coins(self) -> tuple[FloatArray, FloatArray]:
        """What counting successes tells, by arm and number: `compiled.stopping.coin_chances`."""
        from coaf.bandit.compiled.stopping import coin_rounds  # loads numba

        nodes, weights = _COIN
        deviations = np.repeat(np.sqrt(self._shared), self.counts)
        eta = self._m[:, None] + deviations[:, None] * nodes
        gain, seen = np.zeros((2, len(eta), int(self.counts.max(initial=0)) + 1))
        chances = _chance(eta, self._rest[:, None])
        coin_rounds(chances, weights, self.counts, self._lag, gain, seen)
        return self._parts[:, None] * gain, seen


def _chance(eta: FloatArray, variance: FloatArray) -> FloatArray:
    """The average of sigmoid(η + e) over e ~ N(0, variance), by MacKay's approximation."""
    return 0.5 + 0.5 * np.tanh(0.5 * eta / np.sqrt(1.0 + np.pi / 8.0 * variance))


def stop_value(
    belief: Shared,
    features: npt.ArrayLike,
    each: float | Sequence[float],
    rate: float,
    *,
    groups: Groups | None = None,
    lag: int = 0,
) -> float:
    """The value, at a rate, of the option to take these arms one by one.

    Examples
    --------
    Ten holes of a new patch, none of which is worth its 10 s, as far as one can tell. Yet it pays
    to look: if the patch is good after all, the rest is taken, and if not, it is left.

    >>> from coaf.bandit.beliefs.nested.nested import Nested
    >>> belief = Nested(1, variances="fixed", effects=(0.5, 2.0), centre=(0.0, -1.0), scale=0.1)
    >>> holes = [[0.0]] * 10
    >>> belief.mean(holes[:1]).round(2)
    array([0.35])
    >>> round(stop_value(belief, holes, each=10.0, rate=0.04), 2)
    0.68
    """
    X = np.asarray(features, dtype=np.float64)
    costs = np.broadcast_to(np.asarray(each, dtype=np.float64), len(X)).copy()
    table = Stopping(belief, X, groups, costs, np.array([len(X)]), lag=lag)
    return float(table.worth(rate)[0][0])
