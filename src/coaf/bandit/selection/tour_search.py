"""Search for a prize-collecting path that is too long for the exact recursion.

It begins with a path through everything, cut down to what is allowed and pays, and then ruins and
rebuilds parts of it (`compiled.rebuilding`); spanning trees tell how much better a path could be
(`compiled.spanning`). The same work gives the same answer on every machine.
"""

import numpy as np

from coaf.bandit.arrays import BoolArray, FloatArray, IntArray
from coaf.bandit.latency import Tour
from coaf.bandit.selection.found import Found
from coaf.bandit.selection.tour_paths import distances

# What can be done in one unit of work: places on a path weighed, and edges of a tree compared.
_PLACES, _EDGES = 8, 20

# The share of the work that is spent on the bound, and after how many trees it hardly rises.
_BOUND, _TREES = 0.3, 200


def search(
    rate: float,
    estimates: FloatArray,
    tour: Tour,
    useful: IntArray,
    *,
    high: int,
    cap: float,
    work: int,
) -> Found:
    """A good subset of the `useful` arms; never worse than none, all, or the best single one."""
    # These load numba, which `import coaf` should not.
    from coaf.bandit.compiled.paths import NEAR, nearest, short_path
    from coaf.bandit.compiled.prizes import SECONDS, Prizes, shed, sums
    from coaf.bandit.compiled.rebuilding import climb, rebuild
    from coaf.bandit.compiled.spanning import bound

    n, k = len(estimates), len(useful)
    each = np.broadcast_to(np.asarray(tour.each, dtype=np.float64), (n,))[useful]
    table = distances(tour.points[useful], tour.start)
    near = nearest(table, NEAR)
    prizes = Prizes(
        price=rate / tour.speed,
        scores=estimates[useful] - rate * each,
        each=each,
        table=table,
        near=near,
        speed=tour.speed,
        high=min(high, k),
        spare=float(cap - tour.base),
    )
    everything = short_path(table, near)
    path, size = np.append(everything, 0), k + 2  # room for one more, put in before another goes
    at = np.empty(k + 2, dtype=np.int64)
    at[everything] = np.arange(k + 2)
    total = np.empty(2)
    sums(prizes, path, size, total)
    size, _ = shed(prizes, path, at, size, -1, total)
    places = int(_PLACES * (1.0 - _BOUND) * work)
    size, weighed = climb(prizes, path, at, size, places)
    size = rebuild(prizes, path, at, size, places - weighed)

    # The latency's own path is what counts. Where it is longer than ours and over the cap, points
    # are left out, ever more, until it fits.
    sums(prizes, path, size, total)
    more = 1.0
    while (late := tour.seconds(_mask(n, useful[path[1 : size - 1]])) - cap) > 0.0:
        tighter = prizes._replace(spare=float(total[SECONDS] - more * late))
        size, _ = shed(tighter, path, at, size, -1, total)
        more *= 2.0
    best, least = np.zeros(n, dtype=np.bool_), rate * tour.base
    alone = int(np.argmin(prizes.price * table[k, :k] - prizes.scores))
    for arms in (path[1 : size - 1], np.array([alone]), np.arange(k)):
        chosen = _mask(n, useful[arms])
        if len(arms) <= high:
            seconds = tour.seconds(chosen)
            gap = rate * seconds - float(estimates[chosen].sum())
            if seconds <= cap and gap < least:
                best, least = chosen, gap

    # No path is longer than going back to the start after each point, which below a rate of 0 is
    # what counts.
    lower = float(np.minimum(2.0 * min(prizes.price, 0.0) * table[k, :k] - prizes.scores, 0).sum())
    if rate >= 0.0 or cap < np.inf:
        trees = min(_TREES, 1 + int(_EDGES * _BOUND * work / k**2))
        lower = max(lower, bound(prizes, least - rate * tour.base, trees))
    return Found(best, max(0.0, least - rate * tour.base - lower), exact=False)


def _mask(n: int, arms: IntArray) -> BoolArray:
    chosen = np.zeros(n, dtype=np.bool_)
    chosen[arms] = True
    return chosen
