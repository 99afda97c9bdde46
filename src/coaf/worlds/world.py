"""The contract of a world: a problem that can be played."""

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

from coaf.bandit.arrays import FloatArray
from coaf.bandit.shown import require_kind
from coaf.worlds.batch import Batch, Scene


class World(Protocol):
    """Rounds drawn independently from one law, and the mean reward of an arm."""

    dim: int

    def means(self, features: FloatArray) -> FloatArray:
        """The true mean reward of each arm; of an ordinary one where rounds have groups."""

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


def require_world(world: Any) -> None:
    """An error that says what a world is, unless this is one."""
    wanted = "a world, as coaf.worlds.Synthetic(dim=3); coaf.worlds.check_world checks your own"
    require_kind("world", world, ("dim", "means", "scenes"), wanted)
