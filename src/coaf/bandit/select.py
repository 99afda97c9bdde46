"""The subset of smallest gap: what to take when a second is worth `rate`.

Each pair of a latency and an action space has its own method:

- `Additive`, `Setup`, `ByCount`: `selection.sorting` (one sort);
- `Tree`: `selection.trees` (dynamic programmes);
- `Tour`: `selection.tours` (Held-Karp to 15 points, then local search and a bound);
- a cap on seconds or group limits on a tree: `selection.linear` (partial subsets with bounds);
- `Listed`, `Table`, and latencies or actions of your own: `selection.listed` (enumeration).

The first two are quick and exact whatever they are given; the others stop when their work is done.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from coaf.bandit.actions import Actions, AnySubset, AtMost, Grouped, OneOf, uncapped
from coaf.bandit.arrays import FLOAT64, BoolArray, FloatArray, number
from coaf.bandit.groups import Groups
from coaf.bandit.latency import Additive, ByCount, Latency, Setup, Tour, Tree, is_arm_by_arm
from coaf.bandit.selection import trees
from coaf.bandit.selection.found import WORK, Found
from coaf.bandit.selection.linear import as_tree, best_linear
from coaf.bandit.selection.listed import best_listed, remembered
from coaf.bandit.selection.sorting import Limits, best_prefix, limits_of
from coaf.bandit.selection.tours import best_tour
from coaf.bandit.subsets import whole

__all__ = ["WORK", "Selection", "best", "floor", "gap"]

_INF = float("inf")


class Selection(NamedTuple):
    """A subset, its time, its estimated reward, its gap, and whether none has a smaller one.

    `option` is what going on is worth beyond its time, where arms are taken one by one. No gap is
    smaller by more than `lost`, which is 0 where that is exact.
    """

    chosen: BoolArray
    seconds: float
    reward: float
    gap: float
    exact: bool
    option: float | None = None
    lost: float = 0.0


def gap(rate: float, chosen: BoolArray, latency: Latency, estimates: FloatArray) -> float:
    """g(Γ, A, l, μ) = l(A)·Γ − Σ μ_i (`eq: gap`).

    Examples
    --------
    >>> gap(0.1, np.array([True, False]), Additive(base=5.0, each=1.0), np.array([0.5, 0.2]))
    0.10000000000000009
    """
    return latency.seconds(chosen) * rate - float(np.asarray(estimates)[chosen].sum())


def best(
    rate: float,
    estimates: npt.ArrayLike,
    latency: Latency,
    actions: Actions,
    groups: npt.ArrayLike | None = None,
    *,
    work: int = WORK,
) -> Selection:
    """Return the allowed subset of smallest gap.

    An arm that only ties is not taken, and among equal arms the lower index is. Where the smallest
    gap cannot be found in reasonable time, the best subset found by then is returned, and what that
    may have lost at most. The answer depends on `work`, never on the clock.

    Parameters
    ----------
    rate
        What a second is worth; may be zero or negative.
    estimates : (n,)
        Finite estimates of the mean rewards.
    latency, actions
        The round's own.
    groups : (n,) or (n, levels)
        Group labels of the arms, which `Grouped` needs.
    work
        How many partial subsets to look at, or to do what takes about as long; as many as given
        take about a second.

    Returns
    -------
    Selection
        Exact except for `Tour` with more than 15 points worth visiting, and where the work did not
        suffice.

    Raises
    ------
    ValueError
        If latency or actions do not fit the round, no subset is allowed, or the combination is
        not supported.

    Examples
    --------
    >>> patch = Setup(base=12.0, setup=50.0, each=6.0)
    >>> found = best(0.01, [0.9, 0.4, 0.05], patch, AnySubset())
    >>> found.chosen, found.seconds, found.reward, found.gap, found.exact
    (array([ True,  True, False]), 74.0, 1.3, -0.56, True)
    """
    return best_known(rate, estimates, latency, actions, groups, work=work, again=True)


def best_known(
    rate: float,
    estimates: npt.ArrayLike,
    latency: Latency,
    actions: Actions,
    groups: npt.ArrayLike | None,
    *,
    work: int,
    again: bool = False,
) -> Selection:
    """As `best`, but a latency of one's own is not asked whether it has changed.

    A round asks that when it is made (`floor`), and may then be looked at thousands of times.
    """
    mu = np.asarray(estimates)
    if mu.dtype is not FLOAT64:
        mu = mu.astype(np.float64)
    if mu.ndim != 1:
        raise ValueError(f"estimates must have 1 dimension, got shape {mu.shape}")
    if not -_INF < rate < _INF:
        raise ValueError(f"rate is {rate}; it must be a finite number")
    # The live round of a microscope, so it comes first and is kept short.
    if type(actions) is AnySubset:
        if type(latency) is Setup:
            return _threshold(rate, mu, latency, latency.setup, latency.each)
        if type(latency) is Additive:
            return _threshold(rate, mu, latency, 0.0, latency.each)
    if type(actions) is OneOf and isinstance(latency, Additive | Setup) and len(mu):
        return _one(rate, mu, latency)
    labels = None if groups is None else np.asarray(groups)
    latency.check(len(mu))
    actions.check(len(mu), labels)
    cap, inner = uncapped(actions)
    work = whole("work", work)
    known = remembered(latency, inner, len(mu), labels, work=work, again=again)
    found = _solve(rate, mu, known, inner, groups=labels, cap=cap, work=work)
    if found is None:
        raise ValueError(_nothing_fits(latency, inner, labels, len(mu), cap))
    chosen = found.chosen
    seconds = _time(known, chosen)
    chosen.setflags(write=False)
    reward = float(mu[chosen].sum())
    gap = seconds * rate - reward
    return Selection(chosen, seconds, reward, gap, found.exact, lost=found.lost)


def floor(latency: Latency, actions: Actions, n: int, groups: npt.ArrayLike | None = None) -> float:
    """Return the least time that any allowed subset of `n` arms takes.

    Examples
    --------
    >>> floor(Setup(base=12.0, setup=50.0, each=6.0), AnySubset(), 13)
    12.0
    >>> from coaf.bandit.actions import Exactly
    >>> floor(Setup(base=12.0, setup=50.0, each=6.0), Exactly(2), 13)
    74.0
    """
    kind, space = type(latency), type(actions)
    if space is AnySubset and isinstance(latency, Additive | Setup):
        if type(latency.each) is not float:
            latency.check(n)
        return latency.base
    if space is OneOf and n and isinstance(latency, Additive | Setup):
        latency.check(n)
        return latency.base + latency.setup + float(np.min(latency.each))
    if (kind is Setup or kind is Additive or kind is Tree or kind is Tour) and (
        space is AnySubset or space is AtMost or space is Grouped
    ):
        latency.check(n)
        actions.check(n, None if groups is None else np.asarray(groups))
        return latency.seconds(np.zeros(n, dtype=np.bool_))
    # A cap does not change what is quickest, but without it that is easy to find.
    cap, inner = uncapped(actions)
    if cap < _INF:
        least = floor(latency, inner, n, groups)
        if least > cap:
            raise ValueError(_nothing_fits(latency, inner, groups, n, cap))
        return least
    return best(1.0, np.zeros(n), latency, actions, groups).seconds


@functools.cache
def _pick_arms() -> Callable[..., tuple[BoolArray, float, float]]:
    from coaf.bandit.compiled.threshold import pick_arms  # loads numba

    return pick_arms


def _threshold(
    rate: float, mu: FloatArray, latency: Additive | Setup, setup: float, each: float | FloatArray
) -> Selection:
    """Every arm with μ_i > Γ·c_i, if together they pay for the set-up."""
    if type(each) is not float:
        latency.check(len(mu))
        each = np.asarray(each)
    chosen, seconds, reward = _pick_arms()(mu, float(rate), latency.base, setup, each)
    chosen.setflags(write=False)
    return Selection(chosen, seconds, reward, seconds * rate - reward, True)


def _one(rate: float, mu: FloatArray, latency: Additive | Setup) -> Selection:
    """The arm of largest μ_i − Γ·c_i: the classic bandit's choice."""
    latency.check(len(mu))
    chosen = np.zeros(len(mu), dtype=np.bool_)
    arm = int(np.argmax(mu - rate * latency.each))
    chosen[arm] = True
    chosen.setflags(write=False)
    seconds, reward = latency.seconds(chosen), float(mu[arm])
    return Selection(chosen, seconds, reward, seconds * rate - reward, True)


def _time(latency: Latency, chosen: BoolArray) -> float:
    """The latency's answer as a plain number, or an error that says what is wrong with it."""
    return number(f"{type(latency).__name__}.seconds(chosen)", latency.seconds(chosen), low=0.0)


def _solve(
    rate: float,
    mu: FloatArray,
    latency: Latency,
    actions: Actions,
    *,
    groups: Groups | None,
    cap: float,
    work: int,
) -> Found | None:
    """The best subset found, or None if there is none."""
    limits = limits_of(actions, len(mu), groups)
    if limits is not None:
        if is_arm_by_arm(latency):
            return _setup(rate, mu, latency, limits, cap, work)
        if type(latency) is ByCount:
            prices = rate * latency.by_count
            return best_prefix(mu, prices, limits, latency.base + latency.by_count <= cap)
        if type(latency) is Tree:
            return _tree(rate, mu, latency, limits, cap, work)
        if type(latency) is Tour:
            if type(actions) not in (AnySubset, AtMost):
                raise ValueError(
                    f"Tour latency does not support {type(actions).__name__} actions; it supports "
                    "AnySubset, AtMost, Listed, and Capped of these"
                )
            return best_tour(rate, mu, latency, high=limits.high, cap=cap, work=work)
    return best_listed(rate, mu, latency, actions, groups, cap=cap, work=work)


def _setup(
    rate: float, mu: FloatArray, latency: Additive | Setup, limits: Limits, cap: float, work: int
) -> Found | None:
    """A set-up is a price of the count being above 0; so is a cap if all arms take as long."""
    each, setup = latency.each, latency.setup
    prices = np.full(len(mu) + 1, rate * setup)
    prices[0] = 0.0
    fits = None
    if cap < _INF and type(each) is float:
        seconds = latency.base + setup + each * np.arange(len(mu) + 1)
        seconds[0] = latency.base
        fits = seconds <= cap
    found = best_prefix(mu - rate * each, prices, limits, fits)
    if type(each) is float or (found is not None and latency.seconds(found.chosen) <= cap):
        return found
    return best_linear(rate, mu, as_tree(latency, len(mu)), limits, cap, work)


def _tree(
    rate: float, mu: FloatArray, latency: Tree, limits: Limits, cap: float, work: int
) -> Found | None:
    """Without cap and groups first: if the answer meets them anyway, it is the answer."""
    scores, prices = mu - rate * latency.each, rate * latency.costs
    if limits.low == 0 and limits.high == len(mu):
        chosen = trees.any_subset(scores, prices, latency)
    else:
        chosen = trees.by_count(scores, prices, latency, low=limits.low, high=limits.high)
    if latency.seconds(chosen) <= cap and all(
        chosen[arms].sum() <= limit for arms, limit in limits.groups
    ):
        return Found(chosen)
    return best_linear(rate, mu, latency, limits, cap, work)


def _nothing_fits(latency: Latency, actions: Actions, groups: Any, n: int, cap: float) -> str:
    name = type(actions).__name__
    if cap == _INF:
        return f"{type(latency).__name__} latency lists no subset that {name} actions allow"
    least = floor(latency, actions, n, groups)
    return (
        f"no subset that {name} actions allow fits in {cap:g} seconds; the quickest takes {least:g}"
    )
