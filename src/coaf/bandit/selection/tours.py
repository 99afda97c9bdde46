"""Selection when the stage must travel: a prize-collecting path.

Up to 15 points the shortest path of every subset is known (Held-Karp) and the answer is exact,
for negative rates too. Beyond, a deterministic local search.
"""

import numpy as np

from coaf.bandit.arrays import BoolArray, FloatArray
from coaf.bandit.latency import Tour
from coaf.bandit.selection.tour_paths import EXACT_POINTS, distances, subset_lengths
from coaf.bandit.selection.tour_search import search


def best_tour(
    rate: float, estimates: FloatArray, tour: Tour, *, high: int, cap: float
) -> tuple[BoolArray | None, bool]:
    """The subset of smallest gap with at most `high` arms in `cap` seconds, and if it is exact."""
    n = len(estimates)
    if tour.base > cap:
        return None, True
    each = np.broadcast_to(np.asarray(tour.each, dtype=np.float64), (n,))
    scores = estimates - rate * each
    # Leaving a point out never lengthens the way, so an arm that does not pay for its own time is
    # never taken; unless time has a negative price.
    useful = np.flatnonzero(scores > 0) if rate >= 0 else np.arange(n)
    chosen = np.zeros(n, dtype=np.bool_)
    if len(useful) == 0 or high == 0:
        return chosen, True
    if len(useful) > EXACT_POINTS:
        return search(rate, estimates, tour, useful, high=high, cap=cap), False
    lengths = subset_lengths(distances(tour.points[useful], tour.start))
    losses = rate * (lengths / tour.speed) - _subset_sums(scores[useful])
    losses[_subset_sums(np.ones(len(useful))) > high] = np.inf
    seconds = tour.base + lengths / tour.speed + _subset_sums(each[useful])
    losses[seconds > cap] = np.inf
    best = int(np.argmin(losses))
    chosen[useful] = (best >> np.arange(len(useful))) & 1 == 1
    return chosen, True


def _subset_sums(values: FloatArray) -> FloatArray:
    """Sums over all subsets; entry s reads s as a bit mask."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums, sums + value])
    return sums
