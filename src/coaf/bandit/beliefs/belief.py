"""The contract of a belief: what is known of the mean reward."""

from collections.abc import Mapping
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.groups import Groups
from coaf.bandit.shown import require_kind


class Belief(Protocol):
    """A function of a prior and a table of rows (features, reward, groups): `learn` adds rows.

    Groups are labels (n,), or (n, levels) with the outermost first, or None where arms have none.
    Any of these must do, seen before or not, and may be ignored.

    What it cannot score or learn (features of another dimension, a reward that is not finite) is a
    ValueError that names it. Any error leaves the belief as it was.

    `check_belief` tests an implementation against this contract.
    """

    dim: int

    def mean(self, features: FloatArray, groups: Groups | None = None) -> FloatArray:
        """The estimated mean reward of each arm."""

    def upper(self, features: FloatArray, groups: Groups | None = None) -> FloatArray:
        """The largest mean reward that the confidence set allows each arm.

        It may lie below `mean`, where the estimate itself is outside the set.
        """

    def sample(
        self, features: FloatArray, rng: np.random.Generator, groups: Groups | None = None
    ) -> FloatArray:
        """One joint draw of the mean rewards."""

    def learn(
        self, features: FloatArray, rewards: FloatArray, groups: Groups | None = None
    ) -> None:
        """Add rows."""

    def refit(
        self, features: FloatArray, rewards: FloatArray, groups: Groups | None = None
    ) -> None:
        """Start again from the prior with these rows: equals a fresh belief that learned them."""

    def forget(self, factor: float) -> None:
        """Let what was learned count `factor` of what it did, in (0, 1]; the prior stays."""

    def settle(self) -> None:
        """Let what is known now be the prior that `refit` starts from, and `forget` leaves."""

    def state(self) -> dict[str, Any]:
        """Everything, as JSON."""

    @classmethod
    def restore(cls, state: Mapping[str, Any] | str) -> Self:
        """The belief that `state` was taken from."""


def require_belief(belief: Any) -> None:
    """An error that says what a belief is, unless this is one, or None."""
    if belief is not None:
        require_kind("belief", belief, ("dim", "mean", "learn"), "a belief, as Linear(dim=3)")


@runtime_checkable
class Bounded(Protocol):
    """A belief that may know the largest mean reward there is."""

    @property
    def mean_bound(self) -> float | None:
        """No mean reward is larger in magnitude; None where that is not known."""


@runtime_checkable
class FeaturesBounded(Protocol):
    """A belief that knows how long features may be."""

    @property
    def feature_bound(self) -> float | None:
        """No features are longer; None where that is not known."""


@runtime_checkable
class LearnsSize(Protocol):
    """A belief that has to see rewards before it knows how large they are."""

    @property
    def reward_size(self) -> float:
        """How large rewards are, in their unit: 0 while nothing is known of it.

        Until then `upper` has no unit; it is positive, and the larger the less is known of an arm.
        Infinite where it was stated rather than learned.
        """


@runtime_checkable
class Corrects(Protocol):
    """A belief that can take back what it was told of some rows."""

    def correct(
        self,
        features: FloatArray,
        previous: FloatArray,
        rewards: FloatArray,
        groups: Groups | None = None,
    ) -> None:
        """These rows, learned with rewards `previous`, have `rewards` in truth."""
