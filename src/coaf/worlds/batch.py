"""Rounds handed over in bulk, as arrays that compiled code can play."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import FloatArray, IntArray, locked
from coaf.bandit.latency import Additive, Setup
from coaf.bandit.problem import Round


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """A round, the true mean rewards of its arms, and the rewards that would be seen."""

    round: Round
    means: FloatArray
    rewards: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Rounds with any subset allowed and latency base + setup·1{A≠∅} + Σ c_i.

    Attributes
    ----------
    dim
        Number of features d.
    features : (rounds·d, lanes)
        Arms in lanes: row j·d + i holds feature i of the arms of round j.
    counts, base, setup : (rounds,)
        How many arms each round has, and its times.
    costs, means, rewards : (rounds, lanes)
        Per arm: its time, its true mean reward, and the reward that would be seen.
    """

    dim: int
    features: FloatArray
    counts: IntArray
    base: FloatArray
    setup: FloatArray
    costs: FloatArray
    means: FloatArray
    rewards: FloatArray

    def __len__(self) -> int:
        return len(self.counts)

    def scenes(self) -> Iterator[Scene]:
        """The same rounds one by one, for policies that are not compiled."""
        for j, n in enumerate(self.counts.tolist()):
            features = self.features[j * self.dim : (j + 1) * self.dim, :n].T
            base, setup, costs = float(self.base[j]), float(self.setup[j]), self.costs[j, :n]
            latency: Additive | Setup = Additive(base=base, each=costs)
            if setup > 0.0:
                latency = Setup(base=base, setup=setup, each=costs)
            yield Scene(Round(features, latency), self.means[j, :n], self.rewards[j, :n])


def gather(items: FloatArray, shown: npt.NDArray[np.integer], counts: IntArray) -> FloatArray:
    """The features of `items` in lanes: arm a of round j is item `shown[j, a]`."""
    from coaf.bandit.compiled.simd import whole_lanes  # loads numba
    from coaf.bandit.compiled.workspace import unset
    from coaf.worlds.replicate import fill

    d = items.shape[1]
    result = unset(len(shown) * d, whole_lanes(shown.shape[1]))
    fill(locked(np.ascontiguousarray(items)), locked(shown), counts, result)
    return result
