"""Selection when the stage must travel: a prize-collecting path.

Up to 15 points the shortest path of every subset is known (Held-Karp) and the answer is exact,
for negative rates too. Beyond, a search of limited work, and a bound.
"""

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.latency import Tour
from coaf.bandit.selection.found import Found
from coaf.bandit.selection.tour_paths import EXACT_POINTS, distances, subset_lengths
from coaf.bandit.selection.tour_search import search


def best_tour(
    rate: float, estimates: FloatArray, tour: Tour, *, high: int, cap: float, work: int
) -> Found | None:
    """The best subset found of at most `high` arms in `cap` seconds, or None if there is none."""
    n = len(estimates)
    if tour.base > cap:
        return None
    each = np.broadcast_to(np.asarray(tour.each, dtype=np.float64), (n,))
    scores = estimates - rate * each
    # Leaving a point out never lengthens the way, so an arm that does not pay for its own time is
    # never taken, unless time has a negative price; nor is one that alone is over the cap.
    away = np.sqrt(((tour.points - tour.start) ** 2).sum(axis=1))
    within = tour.base + away / tour.speed + each <= cap
    useful = np.flatnonzero(within & ((scores > 0) | (rate < 0)))
    chosen = np.zeros(n, dtype=np.bool_)
    if len(useful) == 0 or high == 0:
        return Found(chosen)
    if len(useful) > EXACT_POINTS:
        return search(rate, estimates, tour, useful, high=high, cap=cap, work=work)
    lengths = subset_lengths(distances(tour.points[useful], tour.start))
    losses = rate * (lengths / tour.speed) - _subset_sums(scores[useful])
    losses[_subset_sums(np.ones(len(useful))) > high] = np.inf
    seconds = tour.base + lengths / tour.speed + _subset_sums(each[useful])
    losses[seconds > cap] = np.inf
    best = int(np.argmin(losses))
    chosen[useful] = (best >> np.arange(len(useful))) & 1 == 1
    return Found(chosen)


def _subset_sums(values: FloatArray) -> FloatArray:
    """Sums over all subsets; entry s reads s as a bit mask."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums, sums + value])
    return sums
