"""The subsets of a round's arms that may be taken.

The group labels of the arms (`Round.groups`) are passed separately, because the same rule serves
every round. Only `Grouped` reads them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import BoolArray, number, picked
from coaf.bandit.groups import Groups, Label, innermost
from coaf.bandit.subsets import Subset, as_tuple, as_tuples, check_arms, whole

# A cap is met to one part in 10^9: 3 x 0.1 s must fit in 0.3 s although the floats say otherwise.
_CAP_SLACK = 1e-9


@runtime_checkable
class Actions(Protocol):
    """What an action space offers."""

    def allows(self, chosen: BoolArray, groups: Groups | None = None) -> bool:
        """Whether this subset, a mask, may be taken. Those of `coaf` take numbers of arms, too."""
        ...

    def check(self, n: int, groups: Groups | None = None) -> None:
        """Raise ValueError if no subset of `n` arms is allowed or the settings do not fit."""
        ...


@dataclass(frozen=True, slots=True)
class AnySubset:
    """Every subset, the empty one included."""

    def allows(self, chosen: npt.ArrayLike, groups: Groups | None = None) -> bool:
        return True

    def check(self, n: int, groups: Groups | None = None) -> None:
        return None


@dataclass(frozen=True, slots=True)
class AtMost:
    """At most `count` arms.

    Examples
    --------
    >>> AtMost(1).allows(np.array([True, True])), AtMost(1).allows([2])
    (False, True)
    """

    count: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", whole("count", self.count))

    def allows(self, chosen: npt.ArrayLike, groups: Groups | None = None) -> bool:
        return len(picked(chosen)) <= self.count

    def check(self, n: int, groups: Groups | None = None) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Exactly:
    """Exactly `count` arms.

    Examples
    --------
    >>> Exactly(3).check(2)
    Traceback (most recent call last):
    ...
    ValueError: Exactly(3) needs a round of at least 3 arms, got 2
    """

    count: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", whole("count", self.count))

    def allows(self, chosen: npt.ArrayLike, groups: Groups | None = None) -> bool:
        return len(picked(chosen)) == self.count

    def check(self, n: int, groups: Groups | None = None) -> None:
        if n < self.count:
            raise ValueError(
                f"Exactly({self.count}) needs a round of at least {self.count} arms, got {n}"
            )


@dataclass(frozen=True, slots=True)
class OneOf:
    """Exactly one arm: the ordinary multi-armed bandit.

    Examples
    --------
    >>> OneOf().allows(np.array([False, True]))
    True
    """

    def allows(self, chosen: npt.ArrayLike, groups: Groups | None = None) -> bool:
        return len(picked(chosen)) == 1

    def check(self, n: int, groups: Groups | None = None) -> None:
        if n < 1:
            raise ValueError("OneOf() needs a round of at least 1 arm, got 0")


@dataclass(frozen=True, slots=True)
class Grouped:
    """At most so many arms of each group.

    Parameters
    ----------
    limit
        One number for every group, or a mapping from group label to number. A group that the
        mapping does not name has no limit. Where labels are nested, the innermost groups count,
        and a mapping names each by its whole row of labels, as ("square 1", "patch 2").

    Examples
    --------
    >>> per_film = Grouped({"screen 1": 1})
    >>> per_film.allows(np.array([True, True]), groups=np.array(["screen 1", "screen 2"]))
    True
    >>> per_film.allows(np.array([True, True]), groups=np.array(["screen 1", "screen 1"]))
    False
    """

    limit: int | Mapping[Label, int]

    def __post_init__(self) -> None:
        if isinstance(self.limit, Mapping):
            # NumPy scalars would be other keys than the labels `tolist` gives.
            limit: int | dict[Label, int] = {
                _plain(key): whole(f"limit[{key!r}]", value) for key, value in self.limit.items()
            }
        else:
            limit = whole("limit", self.limit)
        object.__setattr__(self, "limit", limit)

    def limit_of(self, label: Label) -> int | None:
        """The most arms of this group, or None where there is no limit."""
        return self.limit if isinstance(self.limit, int) else self.limit.get(label)

    def allows(self, chosen: npt.ArrayLike, groups: Groups | None = None) -> bool:
        n = 0 if groups is None else len(groups)
        self.check(n, groups)
        taken: dict[Label, int] = {}
        for label in innermost(np.asarray(groups)[picked(chosen, n)]):
            taken[label] = taken.get(label, 0) + 1
        limits = {label: self.limit_of(label) for label in taken}
        return all(limit is None or taken[label] <= limit for label, limit in limits.items())

    def check(self, n: int, groups: Groups | None = None) -> None:
        if groups is None:
            raise ValueError("Grouped needs groups: one label (int or string) for each arm")
        shape = np.shape(groups)
        if len(shape) not in (1, 2) or shape[0] != n:
            raise ValueError(
                f"groups must hold one label, or a row of labels, for each of {n} arms, "
                f"got shape {shape}"
            )


def _plain(label: Any) -> Label:
    """The label as `innermost` gives it."""
    if isinstance(label, tuple):
        return tuple(part.item() if isinstance(part, np.generic) else part for part in label)
    plain: Label = label.item() if isinstance(label, np.generic) else label
    return plain


@dataclass(frozen=True, slots=True, init=False)
class Listed:
    """The subsets listed, as tuples of arm indices. `()` is the empty subset.

    Examples
    --------
    >>> Listed([(0, 1), ()]).allows(np.array([True, False]))
    False
    """

    subsets: tuple[Subset, ...]

    def __init__(self, subsets: Iterable[Iterable[int]]) -> None:
        object.__setattr__(self, "subsets", as_tuples("subsets", subsets))
        if not self.subsets:
            raise ValueError("subsets is empty; list at least one subset, perhaps ()")

    def allows(self, chosen: npt.ArrayLike, groups: Groups | None = None) -> bool:
        return as_tuple(chosen) in self.subsets

    def check(self, n: int, groups: Groups | None = None) -> None:
        check_arms("subsets", self.subsets, n)


@dataclass(frozen=True, slots=True)
class Capped:
    """The subsets of `actions` that take at most `seconds` (to one part in 10^9).

    Which subsets those are depends on the round's latency, which actions do not see: `allows`
    and `check` speak for the inner actions only, and `best` enforces the cap.

    Examples
    --------
    >>> hour = Capped(3600.0, AtMost(30))
    >>> hour.fits(3600.0), hour.fits(3601.0)
    (True, False)
    """

    seconds: float
    actions: Actions = field(default_factory=AnySubset)

    def __post_init__(self) -> None:
        object.__setattr__(self, "seconds", number("seconds", self.seconds, low=0.0))

    @property
    def limit(self) -> float:
        """The cap with its slack for rounding."""
        return self.seconds * (1.0 + _CAP_SLACK)

    def fits(self, seconds: float) -> bool:
        """Whether a subset that takes this long meets the cap."""
        return seconds <= self.limit

    def allows(self, chosen: npt.ArrayLike, groups: Groups | None = None) -> bool:
        return self.actions.allows(np.asarray(chosen), groups)

    def check(self, n: int, groups: Groups | None = None) -> None:
        self.actions.check(n, groups)


def uncapped(actions: Actions) -> tuple[float, Actions]:
    """The most seconds that caps around `actions` allow, with slack, and what they are around.

    Examples
    --------
    >>> uncapped(Capped(60.0, Capped(0.0, AtMost(2))))
    (0.0, AtMost(count=2))
    >>> uncapped(OneOf())
    (inf, OneOf())
    """
    cap = inf
    while isinstance(actions, Capped):
        cap, actions = min(cap, actions.limit), actions.actions
    return cap, actions
