"""Indices: from a belief and features to the estimates that choose."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from coaf.bandit.arrays import FloatArray, floats
from coaf.bandit.beliefs.belief import Belief
from coaf.bandit.groups import Groups
from coaf.bandit.shown import Shown
from coaf.bandit.state import entry

Noise = Callable[[], np.random.Generator]


def _key(seed: int, name: int | str, stream: str) -> bytes:
    text = f"{seed}/{type(name).__name__}/{name}/{stream}"
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def generator(seed: int, name: int | str, stream: str = "") -> np.random.Generator:
    """Random numbers that depend on (seed, round id) alone, so a restart draws the same."""
    return np.random.Generator(np.random.Philox(key=int.from_bytes(_key(seed, name, stream))))


def normals(seed: int, rounds: int, count: int) -> FloatArray:
    """What `generator(seed, j)` draws first in each of many rounds: (rounds, count) normals.

    One generator is set to each round's key in turn, which is much quicker than making them.
    """
    keys = np.frombuffer(b"".join(_key(seed, j, "") for j in range(rounds)), dtype=">u8")
    bits, result = np.random.Philox(key=0), np.empty((rounds, count))
    rng, fresh = np.random.Generator(bits), bits.state
    for row, (high, low) in zip(result, keys.reshape(-1, 2).tolist(), strict=True):
        fresh["state"]["key"][:] = low, high
        bits.state = fresh
        rng.standard_normal(out=row)
    return result


class Index(Protocol):
    """How a belief is turned into estimates."""

    random: bool
    needs_belief: bool

    def estimates(
        self,
        belief: Belief | None,
        features: FloatArray,
        rng: Noise,
        groups: Groups | None = None,
    ) -> FloatArray:
        """The estimate of each arm; `rng()` gives the round's own random numbers."""


class Upper(Shown):
    """The largest mean reward that the confidence set allows: optimism."""

    random = False
    needs_belief = True

    def estimates(
        self,
        belief: Belief | None,
        features: FloatArray,
        rng: Noise,
        groups: Groups | None = None,
    ) -> FloatArray:
        assert belief is not None
        return belief.upper(features, groups)


class Mean(Shown):
    """The estimated mean reward: greed."""

    random = False
    needs_belief = True

    def estimates(
        self,
        belief: Belief | None,
        features: FloatArray,
        rng: Noise,
        groups: Groups | None = None,
    ) -> FloatArray:
        assert belief is not None
        return belief.mean(features, groups)


class Thompson(Shown):
    """One joint draw of the mean rewards."""

    random = True
    needs_belief = True

    def estimates(
        self,
        belief: Belief | None,
        features: FloatArray,
        rng: Noise,
        groups: Groups | None = None,
    ) -> FloatArray:
        assert belief is not None
        return belief.sample(features, rng(), groups)


class Truth(Shown):
    """The true mean rewards: the oracle.

    Parameters
    ----------
    means
        From features (n, d) to mean rewards (n,).
    """

    random = False
    needs_belief = False

    def __init__(self, means: Callable[[FloatArray], FloatArray]) -> None:
        self.means = means

    def estimates(
        self,
        belief: Belief | None,
        features: FloatArray,
        rng: Noise,
        groups: Groups | None = None,
    ) -> FloatArray:
        estimates = floats("means(features)", self.means(features), ndim=1)
        if len(estimates) != len(features):
            raise ValueError(f"means(features) gave {len(estimates)} for {len(features)} arms")
        return estimates


class Ones(Shown):
    """One for every arm: for policies that look at nothing."""

    random = False
    needs_belief = False

    def estimates(
        self,
        belief: Belief | None,
        features: FloatArray,
        rng: Noise,
        groups: Groups | None = None,
    ) -> FloatArray:
        return np.ones(len(features))


_SAVED: dict[str, type[Upper] | type[Mean] | type[Thompson] | type[Ones]] = {
    "upper": Upper,
    "mean": Mean,
    "thompson": Thompson,
    "ones": Ones,
}


def save(index: Index) -> dict[str, Any]:
    """An index as JSON; the oracle is a function, and cannot be saved."""
    for name, kind in _SAVED.items():
        if type(index) is kind:
            return {"index": name}
    raise ValueError(f"a policy with index {type(index).__name__} cannot be saved")


def load(state: Mapping[str, Any]) -> Index:
    name = entry(state, "index")
    if name not in _SAVED:
        raise ValueError(f"state names an unknown index {name!r}")
    return _SAVED[name]()
