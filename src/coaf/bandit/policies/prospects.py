"""Rounds side by side, for questions that are asked of all of them at once."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from coaf.bandit.actions import AnySubset
from coaf.bandit.arrays import BoolArray, FloatArray, IntArray
from coaf.bandit.groups import Groups
from coaf.bandit.latency import Setup, arm_by_arm, is_arm_by_arm
from coaf.bandit.problem import Round, require_round


def checked(round: Round) -> Round:
    """Refuse a round whose arms cannot be taken one by one."""
    require_round(round)
    if type(round.actions) is not AnySubset or not is_arm_by_arm(round.latency):
        raise ValueError(
            f"arms are taken one by one with Additive or Setup latency and any subset allowed, "
            f"not with {round.latency!r} and {round.actions!r}"
        )
    return round


@dataclass(frozen=True)
class Prospects:
    """What could be entered: the arms of rounds, one round after another.

    Attributes
    ----------
    features, each, parts : (arms, d), (arms,), (arms,)
        Of arms: features, seconds, and how many rewards they bring.
    groups : (arms, levels) or None
        Labels, outermost first.
    counts, base, setup : (rounds,)
        Of rounds: how many arms, seconds whatever is taken, seconds if anything is.
    """

    features: FloatArray
    groups: Groups | None
    each: FloatArray
    parts: IntArray
    counts: IntArray
    base: FloatArray
    setup: FloatArray

    @classmethod
    def of(cls, rounds: Iterable[Round]) -> Self:
        """The rounds as they are; arms are without labels if those of any round are.

        Examples
        --------
        >>> latency = Setup(base=12.0, setup=52.0, each=6.7)
        >>> two = Prospects.of([Round([[0.1], [0.2]], latency), Round([[0.3]], latency)])
        >>> two.counts, two.each
        (array([2, 1]), array([6.7, 6.7, 6.7]))
        """
        held = [checked(one) for one in rounds]
        if not held:
            none, whole = np.zeros(0), np.zeros(0, dtype=np.int64)
            return cls(np.zeros((0, 0)), None, none, whole, whole, none, none)
        latencies = [arm_by_arm(one.latency) for one in held]
        counts = np.array([one.n for one in held])
        pairs = list(zip(latencies, held, strict=True))
        labels = [one.groups for one in held]
        known = [g if g.ndim == 2 else g[:, None] for g in labels if g is not None]
        return cls(
            np.concatenate([one.features for one in held]),
            np.concatenate(known) if len(known) == len(held) else None,
            np.concatenate([np.broadcast_to(time.each, one.n) for time, one in pairs]),
            np.concatenate([_ones(one.n) if one.parts is None else one.parts for one in held]),
            counts,
            np.array([one.floor for one in held]),
            np.array([time.setup for time in latencies]),
        )

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def owner(self) -> IntArray:
        """The round of each arm."""
        return np.repeat(np.arange(len(self)), self.counts)

    def rounds(self) -> list[Round]:
        """The rounds, one by one."""
        ends = np.cumsum(self.counts).tolist()
        arms = [slice(end - count, end) for end, count in zip(ends, self.counts, strict=True)]
        return [
            Round(
                self.features[of],
                Setup(float(base), float(setup), self.each[of]),
                groups=None if self.groups is None else self.groups[of],
                parts=self.parts[of],
            )
            for of, base, setup in zip(arms, self.base, self.setup, strict=True)
        ]

    def anew(self) -> Self:
        """As if the innermost groups had never been seen."""
        if self.groups is None or not self.groups.shape[1]:
            return self
        groups = self.groups.copy()
        groups[:, -1] = "\x01" if groups.dtype.kind == "U" else np.iinfo(groups.dtype).max
        return replace(self, groups=groups)

    def beside(self, others: Self) -> Self:
        """Both, these first."""
        if not len(self) or not len(others):
            return self if len(self) else others
        labels = [one for one in (self.groups, others.groups) if one is not None]
        names = ("features", "each", "parts", "counts", "base", "setup")
        joined = {
            name: np.concatenate([getattr(self, name), getattr(others, name)]) for name in names
        }
        return replace(self, groups=np.concatenate(labels) if len(labels) == 2 else None, **joined)

    def within(
        self, seconds: FloatArray | float, means: Callable[[Self], FloatArray]
    ) -> tuple[Self, BoolArray]:
        """What the set-up of each round leaves time for, the best arms first; and if that is any.

        A round of which nothing fits stays as it is. `means` tells which arms are the best, and is
        asked only if not all of them fit.

        Examples
        --------
        >>> rounds = [Round([[0.1], [0.2]], Setup(1.0, 5.0, each)) for each in (10.0, 20.0, 50.0)]
        >>> some, fits = Prospects.of(rounds).within(30.0, lambda these: these.features[:, 0])
        >>> some.features[:, 0], fits
        (array([0.1, 0.2, 0.2, 0.1, 0.2]), array([ True,  True, False]))
        """
        left = np.asarray(seconds) - self.setup
        owner = self.owner
        whole = np.bincount(owner, self.each, len(self)) <= left
        if whole.all():
            return self, whole
        by = np.lexsort((-means(self), owner))
        spent = np.cumsum(self.each[by])
        first = np.cumsum(self.counts) - self.counts
        spent -= np.repeat(np.append(0.0, spent)[first], self.counts)
        fits = np.zeros(len(owner), dtype=np.bool_)
        fits[by] = spent <= left[owner] + 1e-9  # sums over many rounds round off
        some = np.bincount(owner, fits, len(self)) > 0
        kept = fits | ~some[owner] | whole[owner]
        arms = {name: getattr(self, name)[kept] for name in ("features", "each", "parts")}
        counts = np.bincount(owner[kept], minlength=len(self))
        groups = None if self.groups is None else self.groups[kept]
        return replace(self, groups=groups, counts=counts, **arms), some | whole


def _ones(n: int) -> IntArray:
    return np.ones(n, dtype=np.int64)
