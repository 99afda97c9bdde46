"""The contract of a belief: what is known of the mean reward."""

from collections.abc import Mapping
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import FloatArray


class Belief(Protocol):
    """A function of a table of rows (features, reward, group): `learn` adds rows to it.

    Features of another dimension, or that it cannot score, are a ValueError that names them.

    `check_belief` tests an implementation against this contract.
    """

    dim: int

    def mean(self, features: FloatArray) -> FloatArray:
        """The estimated mean reward of each arm."""

    def upper(self, features: FloatArray) -> FloatArray:
        """The largest mean reward that the confidence set allows each arm.

        It may lie below `mean`, where the estimate itself is outside the set.
        """

    def sample(self, features: FloatArray, rng: np.random.Generator) -> FloatArray:
        """One joint draw of the mean rewards."""

    def learn(
        self, features: FloatArray, rewards: FloatArray, groups: npt.NDArray[Any] | None = None
    ) -> None:
        """Add rows."""

    def refit(
        self, features: FloatArray, rewards: FloatArray, groups: npt.NDArray[Any] | None = None
    ) -> None:
        """Start again from the prior with these rows: equals a fresh belief that learned them."""

    def state(self) -> dict[str, Any]:
        """Everything, as JSON."""

    @classmethod
    def restore(cls, state: Mapping[str, Any] | str) -> Self:
        """The belief that `state` was taken from."""
