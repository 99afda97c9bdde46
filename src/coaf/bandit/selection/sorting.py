"""Selection by sorting: where only how many arms are taken changes the price of the rest.

Under limits on the count and on each group the best k arms are, for every k, the first k of one
list: arms by falling score, passing over those whose group is full (the greedy rule of a
partition matroid). What is left is to choose k.
"""

from dataclasses import dataclass

import numpy as np

from coaf.bandit.actions import Actions, AnySubset, AtMost, Exactly, Grouped, OneOf
from coaf.bandit.arrays import BoolArray, FloatArray, IntArray
from coaf.bandit.groups import Groups, Label, innermost
from coaf.bandit.selection.found import Found


@dataclass(frozen=True, slots=True)
class Limits:
    """An action space in numbers: from `low` to `high` arms, and so many of each group."""

    low: int
    high: int
    groups: tuple[tuple[IntArray, int], ...] = ()


def limits_of(actions: Actions, n: int, groups: Groups | None) -> Limits | None:
    """The limits of these actions, or None where they are not of this kind."""
    if type(actions) is AnySubset:
        return Limits(0, n)
    if type(actions) is AtMost:
        return Limits(0, min(actions.count, n))
    if type(actions) is Exactly:
        return Limits(actions.count, actions.count)
    if type(actions) is OneOf:
        return Limits(1, 1)
    if type(actions) is Grouped:
        assert groups is not None  # `Grouped.check` has seen to it
        return Limits(0, n, _members(actions, groups))
    return None


def _members(actions: Grouped, groups: Groups) -> tuple[tuple[IntArray, int], ...]:
    members: dict[Label, list[int]] = {}
    for arm, label in enumerate(innermost(groups)):
        members.setdefault(label, []).append(arm)
    limited = ((arms, actions.limit_of(label)) for label, arms in members.items())
    return tuple(
        (np.array(arms, dtype=np.int64), limit)
        for arms, limit in limited
        if limit is not None and limit < len(arms)
    )


def best_prefix(
    scores: FloatArray, prices: FloatArray, limits: Limits, fits: BoolArray | None = None
) -> Found | None:
    """The subset A of largest Σ scores_i − prices[|A|], or None if no count is allowed.

    Parameters
    ----------
    scores : (n,)
        What each arm adds.
    prices : (n + 1,)
        What a number of arms costs together.
    limits
        The counts and groups allowed.
    fits : (n + 1,)
        The counts that meet a cap on seconds; all of them by default.
    """
    n = len(scores)
    # Stable: among equal arms the lower index comes first.
    order = np.argsort(-scores, kind="stable")
    for arms, limit in limits.groups:
        inside = np.zeros(n, dtype=np.bool_)
        inside[arms] = True
        members = inside[order]
        order = order[~members | (np.cumsum(members) <= limit)]
    order = order[: limits.high]
    losses = prices[: len(order) + 1].copy()
    losses[1:] -= np.cumsum(scores[order])
    losses[: limits.low] = np.inf
    if fits is not None:
        losses[~fits[: len(order) + 1]] = np.inf
    # The first minimum: fewer arms where more would only tie.
    count = int(np.argmin(losses))
    if losses[count] == np.inf:
        return None
    chosen = np.zeros(n, dtype=np.bool_)
    chosen[order[:count]] = True
    return Found(chosen)
