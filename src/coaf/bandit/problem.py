"""A round, and the decision about it."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, isinf
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from coaf.bandit.actions import Actions, AnySubset, Capped
from coaf.bandit.arrays import BoolArray, FloatArray, IntArray, floats
from coaf.bandit.groups import Groups, check_groups
from coaf.bandit.latency import Latency
from coaf.bandit.select import WORK, Selection, best_known, floor
from coaf.bandit.shown import require_kind, shown

_ANY = AnySubset()
_SHOWN = 10  # arms, in the repr of a decision
_LATENCY = (
    "a latency, as Additive(base=5.0, each=1.0); coaf.bandit.checks.check_latency checks your own"
)
_ACTIONS = "an action space, as OneOf(); coaf.bandit.checks.check_actions checks your own"
_set = object.__setattr__


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Round:
    """A decision set: the holes of one patch, the films on one screen.

    Parameters
    ----------
    features : (n, d)
        One row per arm.
    latency
        What each subset costs in time.
    actions
        Which subsets are allowed; any, by default.
    groups : (n,) or (n, levels)
        A label per arm, or a row of nested ones, outermost first (square, patch): for per-group
        limits and for beliefs that share within groups.
    follows
        For a follow-up (the rest of a patch, decided again as scores arrive): the entry decision,
        or its id. A follow-up may take no time at all; an entry round may not.
    key
        A name for the round, unique in the session. Without one the policy counts, which needs
        each decision to be committed before the next round is decided.
    parts
        How many rewards an arm brings, each learned as it arrives: the shots of a hole. One number,
        or one for each arm; 1 unless given. An arm's estimate is the sum of its parts'.
    names
        A name for each arm, all different: `commit` and `learn` then take names, too, and
        `decision.names` are those chosen.

    Examples
    --------
    >>> from coaf.bandit.latency import Setup
    >>> microscope = Setup(base=12.0, setup=52.0, each=6.7)
    >>> patch = Round(features=[[0.1, 0.2], [0.3, 0.1]], latency=microscope)
    >>> patch.n, patch.floor
    (2, 12.0)
    """

    features: FloatArray
    latency: Latency
    actions: Actions
    groups: Groups | None
    follows: int | str | None
    key: str | None
    parts: IntArray | None
    names: tuple[str, ...] | None
    n: int
    floor: float
    mark: tuple[float, ...]

    def __init__(
        self,
        features: npt.ArrayLike,
        latency: Latency,
        actions: Actions = _ANY,
        *,
        groups: npt.ArrayLike | None = None,
        follows: "int | str | Decision | None" = None,
        key: str | None = None,
        parts: npt.ArrayLike | None = None,
        names: Iterable[str] | None = None,
    ) -> None:
        X = floats("features", features, ndim=2)
        n = len(X)
        labels = None if groups is None else check_groups(groups, n)
        if key is not None and not isinstance(key, str):
            raise ValueError(f"key must be a string, got {key!r}")
        if follows is not None and isinstance(follows, Decision):
            follows = follows.id
        try:
            least = floor(latency, actions, n, labels)
        except (AttributeError, TypeError):
            require_kind("latency", latency, ("seconds", "check"), _LATENCY)
            require_kind("actions", actions, ("allows", "check"), _ACTIONS)
            raise
        if least <= 0.0 and follows is None:
            raise ValueError(
                f"latency may be {least:g} s, but an entry round must take some time whatever is "
                "chosen: give it a positive base (only a follow-up may be free)"
            )
        _set(self, "features", X)
        _set(self, "latency", latency)
        _set(self, "actions", actions)
        _set(self, "groups", labels)
        _set(self, "follows", follows)
        _set(self, "key", key)
        _set(self, "parts", None if parts is None else _check_parts(parts, n))
        _set(self, "names", None if names is None else _check_names(names, n))
        _set(self, "n", n)
        _set(self, "floor", least)
        _set(self, "mark", (X.item(0), X.item(X.size // 2), X.item(-1)) if X.size else ())

    def best(
        self,
        rate: float,
        estimates: npt.ArrayLike,
        *,
        seconds: float = inf,
        work: int = WORK,
    ) -> Selection:
        """The allowed subset of smallest gap that takes at most so many seconds.

        As `coaf.best`, but a latency of one's own is what it was when the round was made.
        """
        actions = self.actions if isinf(seconds) else Capped(seconds, self.actions)
        return best_known(rate, estimates, self.latency, actions, self.groups, work=work)

    def numbered(self, what: str, arms: Any) -> Any:
        """`arms` by their numbers, where they are given by name."""
        if self.names is None:
            return arms
        given = np.asarray(arms)
        if given.ndim != 1 or given.dtype.kind not in "UO" or not given.size:
            return arms
        at = {name: number for number, name in enumerate(self.names)}
        for k, name in enumerate(given.tolist()):
            if name not in at:
                raise ValueError(f"{what}[{k}] is {name!r}, which names no arm of this round")
        return [at[name] for name in given.tolist()]

    def __repr__(self) -> str:
        """What is decided about, in a line."""
        key = "" if self.key is None else f" {self.key!r}"
        follows = "" if self.follows is None else f", follows {self.follows!r}"
        return (
            f"<Round{key}: features {self.features.shape}, {type(self.latency).__name__} latency, "
            f"{type(self.actions).__name__} actions, at least {self.floor:.4g} s{follows}>"
        )

    def called(self, arm: int) -> int | str:
        """An arm as people call it: by its name, where it has one."""
        return arm if self.names is None else self.names[arm]


def require_round(round: Any) -> None:
    """An error that says what a round is, unless this is one."""
    if not isinstance(round, Round):
        raise TypeError(
            f"round is {shown(round)}; decide takes a Round, as "
            "Round(features, latency=Additive(base=5.0, each=1.0))"
        )


def _check_names(names: Iterable[str], n: int) -> tuple[str, ...]:
    if isinstance(names, str):
        raise ValueError(f"names is the string {names!r}; give one for each arm, in a list")
    given = tuple(names)
    for i, name in enumerate(given):
        if not isinstance(name, str):
            raise ValueError(
                f"names[{i}] is {name!r}; names are strings, as numbers are taken for the arms' "
                "own: give names=map(str, names)"
            )
    if len(given) != n or len(set(given)) != n:
        raise ValueError(f"names are {len(set(given))} different ones for {n} arms: one for each")
    return given


def _check_parts(parts: npt.ArrayLike, n: int) -> IntArray | None:
    given = np.asarray(parts)
    if given.dtype.kind not in "iu" or given.shape not in ((), (n,)) or (given < 1).any():
        raise ValueError(f"parts is {parts!r}; it must be whole numbers above 0, one or {n}")
    counts = np.broadcast_to(given, (n,)).astype(np.int64)
    return counts if (counts != 1).any() else None


class Decision(NamedTuple):
    """What a policy would do in a round, and why. Nothing in it is ever recomputed.

    Attributes
    ----------
    round, id
        The round, and the name under which `commit` and `learn` know this decision.
    chosen : (n,)
        The arms to take.
    seconds, reward, gap
        The time that takes, the sum of their estimates, and seconds·rate − reward, the smallest
        possible.
    estimates : (n,)
        The estimates that chose: optimistic, sampled, mean or true.
    rate
        What a second was worth when it was decided.
    exact
        Whether `chosen` provably has the smallest gap.
    propensities : (n,) or None
        Each arm's probability of being chosen, where the index is random and draws were asked for,
        or the policy explores.
    fault
        What went wrong with the belief, and what stood in for it; empty if nothing did.
    option
        Where arms are taken one by one, free to stop: what that should bring beyond what its time
        is worth, with all that may follow. None where a subset is chosen at once.
    lost
        By how much `gap` may exceed the smallest possible, where that is not proven.
    blind
        Whether nothing is known yet of how large rewards are. Then all that is allowed is taken,
        estimates only say of which arm least is known, and the rate does not move.
    propensity
        The probability of this very subset, given all before; None where it is not known exactly.
    instead
        What the policy itself had decided, where a round is decided by chance to find out.
    rule
        The reason of a policy that does not price time, as a sentence; empty for others.
    """

    round: Round
    id: int | str
    chosen: BoolArray
    seconds: float
    reward: float
    gap: float
    estimates: FloatArray
    rate: float
    exact: bool = True
    propensities: FloatArray | None = None
    fault: str = ""
    option: float | None = None
    lost: float = 0.0
    blind: bool = False
    propensity: float | None = None
    instead: "Decision | None" = None
    rule: str = ""

    @property
    def arms(self) -> IntArray:
        """The numbers of the arms to take, rising."""
        return np.flatnonzero(self.chosen)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arms to take; none where the round has no names."""
        names = self.round.names
        return () if names is None else tuple(names[arm] for arm in self.arms.tolist())

    def __eq__(self, other: object) -> bool:
        """A decision is one event: it equals itself alone."""
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        """What is taken, and why."""
        arms: list[Any] = list(self.names) or self.arms.tolist()
        shown = ", ".join(map(repr, arms[:_SHOWN])) + (", ..." if len(arms) > _SHOWN else "")
        return f"<Decision {self.id!r}: arms [{shown}], {self.seconds:.4g} s. {self.why}>"

    @property
    def why(self) -> str:
        """A sentence a person can disagree with."""
        count, n = int(self.chosen.sum()), self.round.n
        left = self.estimates[~self.chosen]
        rest = f"; the best arm left is estimated at {left.max():.3g}" if left.size else ""
        price = f"a second is worth {self.rate:.3g}"
        fault = f" {self.fault}" if self.fault else ""
        if self.instead is not None:
            return f"Take {count} of {n}, by chance, to find out; else: {self.instead.why}"
        if self.rule and not self.blind:
            return f"Take {count} of {n}: {self.rule}{rest}.{fault}"
        if count == 0:
            return f"Take none of {n}: nothing here pays for its time, as {price}{rest}.{fault}"
        if self.blind:
            return (
                f"Take {count} of {n}, all that is allowed: nothing is known yet of how large "
                f"rewards are.{fault}"
            )
        gain, extra = self.reward, self.seconds - self.round.floor
        if self.option is not None:
            return (
                f"Take the best of {n} and look again: it should bring {gain:.3g} for {extra:.3g} "
                f"s, and with what may follow {self.option:.3g} more than its time is worth, as "
                f"{price}{rest}.{fault}"
            )
        return (
            f"Take {count} of {n}: they should bring {gain:.3g} for {extra:.3g} s more than the "
            f"quickest choice, which is worth {extra * self.rate:.3g}, as {price}{rest}.{fault}"
        )


def require_decision(decision: Any) -> None:
    """An error that says where a decision comes from, unless this is one."""
    if not isinstance(decision, Decision):
        raise TypeError(
            f"decision is {shown(decision)}; give what decide returned: "
            "decision = policy.decide(round)"
        )
