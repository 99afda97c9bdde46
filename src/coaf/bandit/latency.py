"""How long it takes to take a subset of a round's arms. All times are in seconds."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol, TypeGuard, runtime_checkable

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import BoolArray, FloatArray, IntArray, floats, number, picked
from coaf.bandit.selection.tour_paths import shortest_length
from coaf.bandit.subsets import Subset, as_tuple, as_tuples, check_arms, wholes

_set = object.__setattr__
_INF = float("inf")


@runtime_checkable
class Latency(Protocol):
    """What a latency offers. Your own class with these two methods will do."""

    def seconds(self, chosen: BoolArray) -> float:
        """The time it takes to take this subset, a mask. Those of `coaf` take numbers, too."""
        ...

    def check(self, n: int) -> None:
        """Raise ValueError if this latency cannot serve a round of `n` arms."""
        ...


def _time(name: str, value: Any) -> float:
    # A latency is built every round, and a plain float needs no more than this.
    if type(value) is float and 0.0 <= value < _INF:
        return value
    return number(name, value, low=0.0)


def _each(value: Any) -> float | FloatArray:
    if type(value) is float and 0.0 <= value < _INF:
        return value
    return floats("each", value, ndim=1, low=0.0) if np.ndim(value) else _time("each", value)


def _total(each: float | FloatArray, arms: IntArray) -> float:
    if type(each) is float:
        return each * len(arms)
    return float(np.add.reduce(np.asarray(each)[arms]))


def _length(value: float | npt.NDArray[Any]) -> int | None:
    """For how many arms this has entries; None if one number is for all."""
    return None if type(value) is float else len(np.asarray(value))


def _same_length(name: str, value: float | npt.NDArray[Any], n: int) -> None:
    if _length(value) not in (None, n):
        raise ValueError(f"{name} has {_length(value)} entries for a round of {n} arms")


class _ByFields:
    """Equal when all fields are; the equality that a dataclass writes itself fails on arrays."""

    __slots__ = ()

    # Arrays cannot be hashed, so neither can what holds them.
    __hash__: ClassVar[None]  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        pairs = (
            (getattr(self, entry.name), getattr(other, entry.name))
            for entry in fields(self)  # type: ignore[arg-type]
        )
        return all(
            np.array_equal(a, b) if isinstance(a, np.ndarray) else type(a) is type(b) and a == b
            for a, b in pairs
        )


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Additive(_ByFields):
    """base + Σ each_i: every arm costs its own time, whatever else is taken.

    Examples
    --------
    >>> screen = Additive(base=5.0, each=1.0)
    >>> screen.seconds(np.array([True, False, True])), screen.seconds([0, 2])
    (7.0, 7.0)
    """

    base: float
    each: float | FloatArray

    def __init__(self, base: float, each: npt.ArrayLike) -> None:
        _set(self, "base", _time("base", base))
        _set(self, "each", _each(each))

    @property
    def setup(self) -> float:
        """Nothing: arms share no set-up, as they do in `Setup`."""
        return 0.0

    def seconds(self, chosen: npt.ArrayLike) -> float:
        return self.base + _total(self.each, picked(chosen, _length(self.each)))

    def check(self, n: int) -> None:
        _same_length("each", self.each, n)


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Setup(_ByFields):
    """base + setup·1{A≠∅} + Σ each_i: going there costs once, if anything is taken.

    `eq: microscope` of the paper: survey a patch, move the stage to it, expose its holes.

    Examples
    --------
    >>> patch = Setup(base=12.0, setup=52.0, each=6.0)
    >>> patch.seconds(np.array([False, False])), patch.seconds(np.array([True, True]))
    (12.0, 76.0)
    """

    base: float
    setup: float
    each: float | FloatArray

    def __init__(self, base: float, setup: float, each: npt.ArrayLike) -> None:
        _set(self, "base", _time("base", base))
        _set(self, "setup", _time("setup", setup))
        _set(self, "each", _each(each))

    def seconds(self, chosen: npt.ArrayLike) -> float:
        arms = picked(chosen, _length(self.each))
        if not len(arms):
            return self.base
        return self.base + self.setup + _total(self.each, arms)

    def check(self, n: int) -> None:
        _same_length("each", self.each, n)


def arm_by_arm(latency: Latency) -> Additive | Setup:
    """The latency, of which it is known already that it is one in which arms are judged so."""
    assert is_arm_by_arm(latency)
    return latency


def is_arm_by_arm(latency: Latency) -> TypeGuard[Additive | Setup]:
    """Whether arms can be judged one by one: each takes its own time, after a set-up they share."""
    return type(latency) is Additive or type(latency) is Setup


@dataclass(frozen=True, slots=True, init=False, eq=False)
class ByCount(_ByFields):
    """base + by_count[k] for k arms: only the number of arms matters, in any way.

    Examples
    --------
    >>> pairs = ByCount(base=1.0, by_count=[0.0, 4.0, 4.0, 8.0, 8.0])  # two arms at a time
    >>> pairs.seconds(np.array([True, True, False, False]))
    5.0
    """

    base: float
    by_count: FloatArray

    def __init__(self, base: float, by_count: npt.ArrayLike) -> None:
        _set(self, "base", _time("base", base))
        _set(self, "by_count", floats("by_count", by_count, ndim=1, low=0.0))

    def seconds(self, chosen: npt.ArrayLike) -> float:
        return self.base + float(self.by_count[len(picked(chosen))])

    def check(self, n: int) -> None:
        if len(self.by_count) < n + 1:
            raise ValueError(
                f"by_count has {len(self.by_count)} entries; a round of {n} arms needs {n + 1} "
                f"(for 0 to {n} arms)"
            )


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Tree(_ByFields):
    """base + the set-up costs on the way to the chosen arms + Σ each_i (square, patch, hole).

    Parameters
    ----------
    base
        Time that is always spent.
    parents
        For each node the node above it, which must be numbered lower, or -1 at the top.
    costs
        For each node the time to open it, paid once if any arm below it is chosen.
    leaf
        For each arm the node it hangs from, or -1 for none.
    each
        Time of each arm itself.

    Examples
    --------
    >>> square = Tree(base=0.0, parents=[-1, 0, 0], costs=[30.0, 5.0, 5.0], leaf=[1, 1, 2], each=1)
    >>> square.seconds(np.array([True, True, False]))  # opens nodes 0 and 1
    37.0
    """

    base: float
    parents: IntArray
    costs: FloatArray
    leaf: IntArray
    each: float | FloatArray

    def __init__(
        self,
        base: float,
        parents: npt.ArrayLike,
        costs: npt.ArrayLike,
        leaf: npt.ArrayLike,
        each: npt.ArrayLike = 0.0,
    ) -> None:
        above = wholes("parents", parents, low=-1)
        later = above >= np.arange(len(above))
        if later.any():
            at = int(np.argmax(later))
            raise ValueError(f"parents[{at}] is {above[at]}; a parent is numbered below its child")
        opening = floats("costs", costs, ndim=1, low=0.0)
        if len(opening) != len(above):
            raise ValueError(f"costs has {len(opening)} entries, but parents has {len(above)}")
        _set(self, "base", _time("base", base))
        _set(self, "parents", above)
        _set(self, "costs", opening)
        _set(self, "leaf", wholes("leaf", leaf, low=-1, below=len(above)))
        _set(self, "each", _each(each))

    def seconds(self, chosen: npt.ArrayLike) -> float:
        arms, above = picked(chosen, len(self.leaf)), self.parents.tolist()
        opened = {node for node in self.leaf[arms].tolist() if node >= 0}
        for node in range(len(above) - 1, -1, -1):
            if node in opened and above[node] >= 0:
                opened.add(above[node])
        opening = float(self.costs[sorted(opened)].sum()) if opened else 0.0
        return self.base + opening + _total(self.each, arms)

    def check(self, n: int) -> None:
        _same_length("leaf", self.leaf, n)
        _same_length("each", self.each, n)


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Tour(_ByFields):
    """base + the shortest way from `start` through the chosen points / speed + Σ each_i.

    The way need not return. It is exact for up to 15 chosen points; beyond, a local search of fixed
    effort gives a good way and so an upper bound on the time.

    Examples
    --------
    >>> stage = Tour(base=1.0, points=[[3.0, 4.0], [0.0, 1.0]], each=0.5, start=[0, 0], speed=2.0)
    >>> stage.seconds(np.array([True, False]))
    4.0
    """

    base: float
    points: FloatArray
    each: float | FloatArray
    start: FloatArray
    speed: float

    def __init__(
        self,
        base: float,
        points: npt.ArrayLike,
        each: npt.ArrayLike,
        start: npt.ArrayLike,
        speed: float = 1.0,
    ) -> None:
        places = floats("points", points, ndim=2)
        origin = floats("start", start, ndim=1)
        if len(origin) != places.shape[1]:
            raise ValueError(
                f"start has {len(origin)} coordinate(s), but points has {places.shape[1]}"
            )
        _set(self, "base", _time("base", base))
        _set(self, "points", places)
        _set(self, "each", _each(each))
        _set(self, "start", origin)
        _set(self, "speed", number("speed", speed, above=0.0))

    def seconds(self, chosen: npt.ArrayLike) -> float:
        arms = picked(chosen, len(self.points))
        travel = shortest_length(self.points[arms], self.start) / self.speed
        return self.base + travel + _total(self.each, arms)

    def check(self, n: int) -> None:
        _same_length("points", self.points, n)
        _same_length("each", self.each, n)


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Table(_ByFields):
    """The time of every subset that can be taken, written out.

    `subsets` are tuples of arm indices; `times[i]` is how long `subsets[i]` takes.

    Examples
    --------
    >>> Table(subsets=[(), (0,), (0, 1)], times=[1.0, 3.0, 3.5]).seconds(np.array([True, True]))
    3.5
    """

    subsets: tuple[Subset, ...]
    times: FloatArray

    def __init__(self, subsets: Iterable[Iterable[int]], times: npt.ArrayLike) -> None:
        listed = as_tuples("subsets", subsets)
        known: set[Subset] = set()
        for at, subset in enumerate(listed):
            if subset in known:
                raise ValueError(f"subsets[{at}] lists {subset} for the second time")
            known.add(subset)
        measured = floats("times", times, ndim=1, low=0.0)
        if len(measured) != len(listed):
            raise ValueError(f"times has {len(measured)} entries, but subsets has {len(listed)}")
        _set(self, "subsets", listed)
        _set(self, "times", measured)

    def seconds(self, chosen: npt.ArrayLike) -> float:
        subset = as_tuple(chosen)
        if subset not in self.subsets:
            raise ValueError(f"the table lists no time for the subset {subset}")
        return float(self.times[self.subsets.index(subset)])

    def check(self, n: int) -> None:
        check_arms("subsets", self.subsets, n)
