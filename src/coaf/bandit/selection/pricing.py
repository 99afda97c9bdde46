"""Limits turned into prices: a bound on what any allowed subset is worth, and a first subset.

A cap on seconds is a higher rate, a limit on arms a fee for each, a limit on a group a toll
(`compiled.relaxed`). The steps of the round are put into an order that suits these prices.
"""

from typing import NamedTuple

import numpy as np

from coaf.bandit.arrays import FloatArray, IntArray
from coaf.bandit.selection.steps import ARM, OPEN, LinearProblem, Steps, nested, nodes_first

# What is worth less than this part of all there is to win or lose is taken for rounding.
SLACK = 1e-10

# At which rates bounds are kept: around the best, and far from it.
_NEAR, _FAR = 2.0 ** -np.arange(11), 2.0 ** -np.arange(13)

# How many steps to make towards the tolls of groups that cross nodes.
_ROUNDS = 300


class Bounds(NamedTuple):
    """The limits of a round in numbers.

    `room` are the seconds allowed, `low` to `high` the arms. Some allowed subset is worth `worth`
    and leaves `spare` seconds. `insist` says that an arm must be taken in every node opened.
    """

    room: float
    spare: float
    worth: float
    low: int
    high: int
    insist: bool


class Priced(NamedTuple):
    """A round in steps with prices; `compiled.beam` explains what it needs.

    Attributes
    ----------
    upper
        What any allowed subset is worth at most.
    counted
        Whether arms must be counted for the limits to hold.
    worth, arms
        What the best subset met is worth, and its arms, if it is better than that given.
    """

    steps: Steps
    gain: FloatArray
    forgone: FloatArray
    tolls: FloatArray
    rates: FloatArray
    ahead: FloatArray
    fees: FloatArray
    start: float
    upper: float
    counted: bool
    worth: float
    arms: IntArray | None


class _Prices(NamedTuple):
    """By how much seconds and arms cost more, with what is paid back of the fee; group tolls.

    `plain` is the price of a second if arms cost nothing, and `top` the highest that makes sense.
    """

    rise: float
    fee: float
    back: float
    tolls: FloatArray
    plain: float
    top: float


def price(of: LinearProblem, limits: Bounds) -> Priced:
    """Find prices, put the steps in order and bound what each can lead to."""
    steps = nested(of)
    prices, upper, counted, worth, met = _find(of, steps, limits)
    urgency = _urgency(steps, prices, len(of.usable))
    # Where groups cross nodes, all their counts would have to be kept at once. But only inside its
    # node can an arm be insisted on.
    if of.crossing and not limits.insist:
        steps = nodes_first(of, urgency)
        gain, forgone, rates, ahead, fees, start = _flat(of, steps, prices)
    else:
        steps = nested(of, urgency)
        gain, rates, ahead, fees, start, first, arms = _tables(steps, prices, limits)
        forgone = np.zeros(len(gain))
        if first > worth:
            worth, met = first, arms
    best = met if worth > limits.worth else None
    return Priced(
        steps,
        gain,
        forgone,
        prices.tolls,
        rates,
        ahead,
        fees,
        start,
        upper,
        counted,
        worth,
        best,
    )


def _find(
    of: LinearProblem, steps: Steps, limits: Bounds
) -> tuple[_Prices, float, bool, float, IntArray]:
    """Prices that make the bound low, the bound, and what `Priced` says of counts and subsets."""
    # These load numba, which `import coaf` should not.
    from coaf.bandit.compiled.relaxed import cheapest_rate, relax
    from coaf.bandit.compiled.tolls import settle

    T = len(steps.kind)
    tolls, kept = np.zeros(len(of.limit)), np.zeros(T, dtype=np.bool_)
    memory = tolls, np.empty(T), np.empty((T + 1, 2)), np.empty((2, T + 1, 2))
    room, spare, worth, low = limits.room, limits.spare, limits.worth, float(limits.low)
    most = arms = float(np.count_nonzero(steps.kind == ARM))
    if spare > 0.0:
        # No more arms can be taken than fit. Where arms are nearly alike, only this lowers the
        # bound to where it should be.
        ones = steps._replace(score=np.where(steps.kind == ARM, 1.0, 0.0))
        _, _, fit, _ = cheapest_rate(ones, room, low, spare, 0.0, arms, *memory)
        most = float(int(fit * (1.0 + SLACK)))
    counted = limits.low > 0 or limits.high < most
    most = min(most, float(limits.high))
    plain, _, upper, top = cheapest_rate(steps, room, worth, spare, 0.0, arms, *memory)
    rise, fee, bound, above = cheapest_rate(steps, room, worth, spare, low, most, *memory)
    upper = min(upper, bound)
    relax(steps, rise, fee, *memory)
    if of.crossing:
        tolls[:] = 0.0
        bound, rise, fee, worth = settle(
            steps, _order(steps), room, most, rise, fee, worth, _ROUNDS, tolls, kept
        )
        upper = min(upper, bound)
    prices = _Prices(rise, fee, fee * (most if fee > 0.0 else low), tolls, plain, max(top, above))
    return prices, upper, counted, worth, steps.part[kept & (steps.kind == ARM)]


def _tables(
    steps: Steps, prices: _Prices, limits: Bounds
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, float, float, IntArray]:
    """For arms inside nodes: gain, rates, ahead, fees, start; and a subset's worth and arms."""
    from coaf.bandit.compiled.filling import bounds  # these load numba
    from coaf.bandit.compiled.relaxed import charge

    gain, order = np.empty(len(steps.kind)), _order(steps)
    # Once few arms are left the fee is too high, so bounds without one are kept as well.
    fees = np.array([[0.0, 0.0], [prices.fee, prices.back]][: 1 if prices.fee == 0.0 else 2])
    near = np.concatenate([[0.0, 1.0], 1.0 - _NEAR, 1.0 + _NEAR])
    rates = np.unique(np.concatenate([prices.rise * near, prices.plain * near, prices.top * _FAR]))
    ahead = np.empty((len(fees), len(gain) + 1, 2, len(rates)))
    worth, arms, start = -np.inf, np.zeros(0, dtype=np.int64), 0.0
    for f in range(len(fees) - 1, -1, -1):  # without a fee last, as `gain` and `start` are to be
        start = charge(steps, fees[f, 0], prices.tolls, gain)
        low, high = float(limits.low), float(limits.high)
        first, taken = bounds(steps, gain, rates, order, limits.room, low, high, ahead[f])
        if first > worth:
            worth, arms = first, steps.part[taken & (steps.kind == ARM)]
    return gain, rates, ahead, fees, start, worth, arms


def _flat(
    of: LinearProblem, steps: Steps, prices: _Prices
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, float]:
    """For nodes first: gain, forgone, rates, ahead, fees, start.

    What arms can gain is lent where their node is opened, or at the start if they have none, and
    taken back step by step: `forgone` from those who do not take an arm.
    """
    from coaf.bandit.compiled.relaxed import charge, walk  # these load numba

    T, rate = len(steps.kind), prices.rise
    gain = np.empty(T)
    start = charge(steps, prices.fee, prices.tolls, gain) + prices.back
    is_arm, opens = steps.kind == ARM, steps.kind == OPEN
    lent = np.where(is_arm, np.maximum(gain - rate * steps.time, 0.0), 0.0)
    gain -= lent
    by_node = np.bincount(of.leaf[steps.part[is_arm]] + 1, lent[is_arm], len(of.parents) + 1)
    gain[opens] += by_node[steps.part[opens] - len(of.scores) + 1]
    value, used = np.empty((T + 1, 2)), np.empty((2, T + 1, 2))
    walk(steps, gain, rate, 0, value, used)
    ahead = value.reshape(1, T + 1, 2, 1)
    return gain, lent, np.array([rate]), ahead, np.zeros((1, 2)), start + float(by_node[0])


def _order(steps: Steps) -> IntArray:
    """The steps of arms, those worth most per second first."""
    arms = np.flatnonzero(steps.kind == ARM)
    score, time = steps.score[arms], steps.time[arms]
    # Per second, what takes no time is worth infinitely much, or infinitely little.
    ratio = np.divide(score, time, out=np.copysign(np.inf, score), where=time > 0.0)
    return arms[np.lexsort((-score, -ratio))].astype(np.int64)


def _urgency(steps: Steps, prices: _Prices, parts: int) -> FloatArray:
    """What it would cost at these prices to take what is not taken, or the other way round."""
    from coaf.bandit.compiled.relaxed import charge, walk  # these load numba

    T = len(steps.kind)
    gain, value, used = np.empty(T), np.empty((T + 1, 2)), np.empty((2, T + 1, 2))
    charge(steps, prices.fee, prices.tolls, gain)
    walk(steps, gain, prices.rise, 1, value, used)
    worth = gain - prices.rise * steps.time
    opens = np.flatnonzero(steps.kind == OPEN)
    worth[opens] += value[opens + 1, 1] - value[steps.jump[opens] + 1, 0]
    urgency = np.zeros(parts)
    urgency[steps.part[steps.part >= 0]] = np.abs(worth[steps.part >= 0])
    return urgency
