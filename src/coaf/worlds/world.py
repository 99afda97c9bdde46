"""The contract of a world: a problem that can be played."""

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from coaf.bandit.arrays import FloatArray
from coaf.worlds.batch import Batch, Scene


class World(Protocol):
    """Rounds drawn independently from one law, and the mean reward of an arm."""

    dim: int

    def means(self, features: FloatArray) -> FloatArray:
        """The true mean reward of each arm."""

    def scenes(self, rounds: int, replicate: int) -> Iterator[Scene]:
        """The first `rounds` rounds of a replicate: the same for every policy that plays it."""


@runtime_checkable
class BulkWorld(Protocol):
    """A world that can hand over its rounds as arrays, for compiled replicates."""

    dim: int

    def means(self, features: FloatArray) -> FloatArray: ...

    def scenes(self, rounds: int, replicate: int) -> Iterator[Scene]: ...

    def batch(self, rounds: int, replicate: int) -> Batch:
        """What `scenes` yields, as arrays."""
