"""A bound on prize-collecting paths: trees that span all points, priced until they look like one.

A path and the points that it leaves out make a tree: the path's own steps, and from the start a
mock step to each point left out that costs what the point would have earned. So the cheapest
spanning tree of all points, where each may be reached by a mock step, costs no more than the best
path. In a path every point has two neighbours; a price on each point, raised where a tree has more
and lowered where it has fewer, brings the bound close (Held and Karp; Beasley for points left out).
A cap on seconds and a limit on points are prices too.
"""

import math

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.compiled.prizes import Prizes
from coaf.bandit.compiled.simd import compiled

# Steps are halved when this many have not brought the bound closer.
PATIENCE = 8

# A step goes this much along the one before, which smooths the way.
_MEMORY = 0.4


@compiled
def tree(
    table: FloatArray,
    price: float,
    scores: FloatArray,
    prices: FloatArray,
    degree: FloatArray,
    mock: FloatArray,
) -> tuple[float, float]:
    """The cost of the cheapest spanning tree (Prim), and the length of its steps.

    Writes how many steps meet each point, a mock step counting twice; `mock` is 1 where there is
    one.
    """
    n = scores.shape[0]
    cost, over, left = np.empty(n), np.full(n, n), np.arange(n)
    at = 0
    for i in range(n):
        real, out = price * table[n, i] + prices[i], scores[i] + 2.0 * prices[i]
        cost[i] = min(real, out)
        degree[i], mock[i] = 0.0, 1.0 if out <= real else 0.0
        at = i if cost[i] < cost[at] else at
    total, length = 0.0, 0.0
    for size in range(n - 1, -1, -1):
        v = left[at]
        left[at] = left[size]
        total += cost[v]
        degree[v] += 1.0 + mock[v]
        if mock[v] == 0.0:
            length += table[over[v], v]
            if over[v] < n:
                degree[over[v]] += 1.0
        at, least = 0, math.inf
        for k in range(size):
            i = left[k]
            x = price * table[v, i] + prices[v] + prices[i]
            if x < cost[i]:
                cost[i], over[i], mock[i] = x, v, 0.0
            if cost[i] < least:
                at, least = k, cost[i]
    return total, length


@compiled
def bound(prizes: Prizes, loss: float, rounds: int) -> float:
    """No path within the limits has a smaller loss than this; `loss` is the best one known.

    The price of a length must not be negative, unless there is a cap that can make up for it.
    """
    n = prizes.scores.shape[0]
    prices, degree, mock = np.zeros(n), np.empty(n), np.empty(n)
    scores, slope, way = np.empty(n), np.empty(n + 2), np.zeros(n + 2)
    capped, limited = prizes.spare < math.inf, prizes.high < n
    lowest = max(0.0, -prizes.price * prizes.speed)  # what a second must cost more at least
    rate, fee = lowest, 0.0
    unit = prizes.spare / min(prizes.high, n) if capped else 0.0
    best, pace, stale = -math.inf, 1.0, 0
    for _ in range(rounds):
        constant, end, least = 0.0, -1, 0.0
        for i in range(n):
            scores[i] = prizes.scores[i] - rate * prizes.each[i] - fee
            constant -= scores[i] + 2.0 * prices[i]
            if prices[i] < least:
                end, least = i, prices[i]
        if capped:
            constant -= rate * prizes.spare
        if limited:
            constant -= fee * prizes.high
        price = prizes.price + rate / prizes.speed
        total, length = tree(prizes.table, price, scores, prices, degree, mock)
        value = constant + total + least
        stale += 1
        if value > best:
            stale = 0 if value > best + 1e-6 * (loss - best) else stale
            best = value
        if stale == PATIENCE:
            pace, stale = 0.5 * pace, 0
        if best >= loss:
            break

        seconds, count, norm = length / prizes.speed, 0.0, 0.0
        for i in range(n):
            slope[i] = degree[i] - 2.0 + (1.0 if i == end else 0.0)
            seconds += (1.0 - mock[i]) * prizes.each[i]
            count += 1.0 - mock[i]
        slope[n], slope[n + 1] = 0.0, 0.0
        if capped and unit > 0.0 and (rate > lowest or seconds > prizes.spare):
            slope[n] = (seconds - prizes.spare) / unit
        if limited and (fee > 0.0 or count > prizes.high):
            slope[n + 1] = count - prizes.high
        for i in range(n + 2):
            norm += slope[i] * slope[i]
        if norm == 0.0:
            break
        stride = pace * (loss - value) / norm
        for i in range(n + 2):
            way[i] = slope[i] + _MEMORY * way[i]
        for i in range(n):
            prices[i] += stride * way[i]
        if capped and unit > 0.0:
            rate = max(lowest, rate + float(stride * way[n]) / unit)
        if limited:
            fee = max(0.0, fee + float(stride * way[n + 1]))
    return best
