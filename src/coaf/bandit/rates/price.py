"""What a second is worth if time is short: the multiplier of "time used ≤ time left"."""

from collections.abc import Callable
from math import inf, isinf
from typing import NamedTuple

import numpy as np

from coaf.bandit.actions import AnySubset, uncapped
from coaf.bandit.arrays import FloatArray, IntArray
from coaf.bandit.latency import arm_by_arm, is_arm_by_arm
from coaf.bandit.problem import Round
from coaf.bandit.rates.dinkelbach import TOLERANCE, dinkelbach
from coaf.bandit.select import WORK

# What prospects are worth at a price of a second: for each of them max_A (Σμ − price·l(A)), and
# the seconds l(A) of the A that is best. The first falls with the price, with slope −seconds.
Worth = Callable[[float], tuple[FloatArray, FloatArray]]

_STEPS = 200
_FALLS = (0.3, 0.03, 0.0)  # of the most that is wanted: what is tried before it is searched


def price(
    *,
    seconds: float,
    open: Worth | None = None,
    typical: Worth | None = None,
    rounds: float = inf,
    most: float = inf,
) -> float:
    """The price λ ≥ 0 of a second at which what is worth its time fits in the time left.

    It minimises the dual of "time used ≤ seconds",

        D(λ) = λ·seconds + Σ_open max(0, v_i(λ)) + rounds·max(0, mean_typical v_i(λ)),

    where v(λ) = max_A (Σμ − λ·l(A)). Open prospects are known, and each may be left; those not yet
    opened are like the typical ones, and all that is known of them before opening is their mean.
    With no end of rounds λ is at least the root of that mean: the infinite-horizon rate.

    D is convex, and is minimised by cutting planes: where the tangents at both ends of an interval
    meet is the next end. For piecewise linear v that is exact after finitely many steps.

    Parameters
    ----------
    seconds
        The time left.
    open, typical
        What each prospect is worth at a price, and how long the best choice takes. The values may
        come from anywhere: a subset of smallest gap, or a dynamic programme whose seconds are
        expected ones.
    rounds
        How many are not yet opened.
    most
        No price above it is wanted. The search then comes from there, as what is open may be much,
        and pay little.

    Examples
    --------
    One prospect brings 2 in 10 s, another 1 in 10 s, and there are 15 s:

    >>> reward, time = np.array([2.0, 1.0]), np.array([10.0, 10.0])
    >>> def worth(rate):
    ...     taken = reward > rate * time
    ...     return np.where(taken, reward - rate * time, 0.0), np.where(taken, time, 0.0)
    >>> price(seconds=15.0, open=worth), price(seconds=25.0, open=worth)
    (0.1, 0.0)
    """
    low = 0.0
    if typical is not None and isinf(rounds):
        low = break_even(typical)
        typical = None
    count = 0.0 if typical is None else rounds

    def dual(rate: float) -> tuple[float, float]:
        value, slope = rate * seconds, seconds
        if open is not None:
            values, times = open(rate)
            good = values > 0.0
            value, slope = value + float(values[good].sum()), slope - float(times[good].sum())
        if typical is not None:
            values, times = typical(rate)
            mean = float(values.mean())
            if mean > 0.0:
                value, slope = value + count * mean, slope - count * float(times.mean())
        return value, slope

    if open is None and typical is None:
        return min(low, most)
    if isinf(most):
        at_low, slope_low = dual(low)
        if slope_low >= 0.0:
            return low
        high = max(2.0 * low, at_low / seconds if seconds > 0.0 else 1.0)  # D(λ) ≥ λ·seconds
        at_high, slope_high = dual(high)
        while slope_high < 0.0:
            low, at_low, slope_low, high = high, at_high, slope_high, 2.0 * high
            at_high, slope_high = dual(high)
            if isinf(high):
                break
    else:
        high, (at_high, slope_high) = most, dual(most)
        if slope_high <= 0.0 or low >= most:
            return most
        for fall in _FALLS:
            lower = max(low, fall * most)
            at_low, slope_low = dual(lower)
            if slope_low < 0.0 or lower == low:
                break
            high, at_high, slope_high = lower, at_low, slope_low
        low = lower
        if slope_low >= 0.0:
            return low
    for _ in range(_STEPS):
        meet = (at_low - slope_low * low) - (at_high - slope_high * high)
        middle = min(max(meet / (slope_high - slope_low), low), high)
        if high - low <= TOLERANCE * high or not low < middle < high:
            return middle
        bound = at_low + slope_low * (middle - low)
        value, slope = dual(middle)
        if value <= bound + TOLERANCE * abs(bound):
            return middle
        if slope < 0.0:
            low, at_low, slope_low = middle, value, slope
        else:
            high, at_high, slope_high = middle, value, slope
    return high


def break_even(typical: Worth) -> float:
    """The price ≥ 0 at which the mean worth of typical prospects is 0, by Dinkelbach's method."""

    def ratio(rate: float) -> float:
        values, times = typical(rate)
        gain, time = float(values.mean()), float(times.mean())
        return rate + gain / time if gain > 0.0 and time > 0.0 else rate

    return dinkelbach(ratio, 0.0)


class Setups(NamedTuple):
    """Set-ups that prospects share: they are paid once for all that is taken of theirs.

    Attributes
    ----------
    of : (prospects,)
        The index of the set-up that each prospect needs.
    seconds : (set-ups,)
        What each takes.
    """

    of: IntArray
    seconds: FloatArray


def bundled(worth: Worth, shared: Setups) -> Worth:
    """What prospects are worth together: the sum of those that pay, less the set-up they share.

    Set-ups on a tree are bundles of bundles, from the inside out.

    Examples
    --------
    Two patches of one square are worth 2 and 1 at no price, and the square takes 10 s:

    >>> def worth(rate):
    ...     return np.array([2.0, 1.0]) - 5.0 * rate, np.array([5.0, 5.0])
    >>> square = bundled(worth, Setups(np.array([0, 0]), np.array([10.0])))
    >>> square(0.1), square(0.3)
    ((array([1.]), array([20.])), (array([-2.5]), array([15.])))
    """
    of, seconds = shared
    count = len(seconds)

    def together(rate: float) -> tuple[FloatArray, FloatArray]:
        values, times = worth(rate)
        pays = values > 0.0
        gain = np.bincount(of, np.where(pays, values, 0.0), count) - rate * seconds
        return gain, np.bincount(of, np.where(pays, times, 0.0), count) + seconds

    return together


def worth_of(
    rounds: list[Round], estimates: FloatArray, cap: float, *, opened: Round | None = None
) -> Worth:
    """What rounds are worth at a price if nothing may take longer than `cap` seconds.

    The base of the round `opened` is paid whatever is taken there, so that it does not count.
    """
    counts = np.array([r.n for r in rounds])
    parts = np.split(estimates, np.cumsum(counts)[:-1])
    base = np.array([0.0 if r is opened else r.floor for r in rounds])
    simple = np.array([_simple(r, cap) for r in rounds], dtype=np.bool_)
    quick = np.flatnonzero(simple)
    owner = np.repeat(np.arange(len(quick)), counts[quick])
    timing = [arm_by_arm(rounds[j].latency) for j in quick]
    setup = np.array([one.setup for one in timing])
    mu, each = np.zeros(0), np.zeros(0)
    if len(quick):
        mu = np.concatenate([parts[j] for j in quick])
        each = np.concatenate(
            [np.broadcast_to(t.each, k) for t, k in zip(timing, counts[quick], strict=True)]
        )
    slow = [(j, rounds[j]) for j in np.flatnonzero(~simple).tolist()]
    # A decision asks this of every round some ten times over, and should take no longer for that.
    work = WORK // max(10 * len(slow), 1)

    def worth(rate: float) -> tuple[FloatArray, FloatArray]:
        values, times = -rate * base, base.copy()
        pays = mu > rate * each
        time = setup + np.bincount(owner, np.where(pays, each, 0.0), len(quick))
        gain = np.bincount(owner, np.where(pays, mu - rate * each, 0.0), len(quick)) - rate * setup
        values[quick] += np.maximum(gain, 0.0)
        times[quick] += np.where(gain > 0.0, time, 0.0)
        for j, r in slow:
            found = r.best(rate, parts[j], seconds=cap, work=work)
            values[j] -= found.gap - rate * r.floor
            times[j] += found.seconds - r.floor
        return values, times

    return worth


def _simple(round: Round, cap: float) -> bool:
    """Whether arms can be chosen one by one: no limits, and all of them together fit."""
    own, actions = uncapped(round.actions)
    if type(actions) is not AnySubset or not is_arm_by_arm(round.latency):
        return False
    return round.latency.seconds(np.ones(round.n, dtype=np.bool_)) <= min(cap, own)
