"""Local search for a prize-collecting path that is too long for the exact recursion.

A state is a path. Moves insert a point, drop a stretch of points or exchange one point for
another; after each the path itself is shortened (2-opt, Or-opt). The best move is taken until
none lowers the gap. It starts from a path through everything, and from paths grown from single
points, because a cluster may pay for the way to it when none of its points alone does.
"""

from dataclasses import dataclass

import numpy as np

from coaf.bandit.arrays import BoolArray, FloatArray
from coaf.bandit.latency import Tour
from coaf.bandit.selection.tour_paths import Path, cheapest_insertion, distances, improve, length

# A move must lower the gap by this part of its scale, or rounding could cycle for ever.
_PROGRESS = 1e-12

# How many single points to grow a path from: more is better and slower.
_SEEDS = 12


@dataclass(frozen=True, slots=True)
class _Problem:
    """The gap less its constant: price·length − Σ scores, under limits on count and seconds."""

    price: float
    scores: FloatArray
    each: FloatArray
    table: FloatArray
    speed: float
    high: int
    spare: float

    def loss(self, path: Path) -> float:
        return self.price * length(path, self.table) - float(self.scores[path[1:-1]].sum())

    def excess(self, path: Path) -> float:
        """Seconds over the cap."""
        travel = length(path, self.table) / self.speed
        return travel + float(self.each[path[1:-1]].sum()) - self.spare


def search(
    rate: float, estimates: FloatArray, tour: Tour, useful: Path, *, high: int, cap: float
) -> BoolArray:
    """A good subset of the `useful` arms; never worse than none, all, or the best single one."""
    n = len(estimates)
    each = np.broadcast_to(np.asarray(tour.each, dtype=np.float64), (n,))[useful]
    problem = _Problem(
        price=rate / tour.speed,
        scores=estimates[useful] - rate * each,
        each=each,
        table=distances(tour.points[useful], tour.start),
        speed=tour.speed,
        high=high,
        spare=cap - tour.base,
    )
    k = len(useful)
    nothing = np.array([k, k + 1], dtype=np.intp)
    everything = nothing
    for arm in range(k):
        _, at = cheapest_insertion(everything, np.array([arm]), problem.table)
        everything = np.insert(everything, at[0], arm)
    everything = improve(everything, problem.table)
    singles = [np.array([k, arm, k + 1], dtype=np.intp) for arm in range(k)]
    fitting = [path for path in singles if problem.excess(path) <= 0.0]
    seeds = sorted(fitting, key=problem.loss)[:_SEEDS]
    starts = [_shed(everything, problem), *(_grow(seed, problem) for seed in seeds)]
    climbed = [_climb(start, problem) for start in starts]
    paths = [nothing, everything, *seeds[:1], *climbed]

    best = np.zeros(n, dtype=np.bool_)
    best_gap = rate * tour.base
    # Starts often climb to the same subset, and its time is slow to find.
    subsets = dict.fromkeys(tuple(sorted(path[1:-1].tolist())) for path in paths)
    for subset in subsets:
        if len(subset) > high:
            continue
        chosen = np.zeros(n, dtype=np.bool_)
        chosen[useful[list(subset)]] = True
        # Judged by the latency itself, whose path may differ from ours beyond 15 points.
        seconds = tour.seconds(chosen)
        gap = rate * seconds - float(estimates[chosen].sum())
        if seconds <= cap and gap < best_gap:
            best, best_gap = chosen, gap
    return best


def _shed(path: Path, problem: _Problem) -> Path:
    """Drop the arm that gains most, for each second freed, until the limits hold."""
    while len(path) > 2 and (len(path) - 2 > problem.high or problem.excess(path) > 0.0):
        before, arms, after = path[:-2], path[1:-1], path[2:]
        table = problem.table
        saved = table[before, arms] + table[arms, after] - table[before, after]
        freed = np.maximum(saved / problem.speed + problem.each[arms], 1e-300)
        gain = problem.price * saved - problem.scores[arms]
        # A loss is spread over the seconds freed; a gain is taken as it is.
        worth = np.where(gain < 0, gain / freed, gain)
        path = np.delete(path, 1 + int(np.argmax(worth)))
        path = improve(path, table)
    return path


def _grow(path: Path, problem: _Problem) -> Path:
    """Insert points while that pays, and shorten the path only then, which is much quicker."""
    while True:
        gain, longer = _insert(path, problem)
        if gain <= 0.0:
            return improve(path, problem.table)
        path = longer


def _climb(path: Path, problem: _Problem) -> Path:
    loss = problem.loss(path)
    slack = _PROGRESS * (float(np.abs(problem.scores).sum()) + abs(loss))
    while True:
        moves = (move(path, problem) for move in (_insert, _drop, _exchange))
        gain, better = max(moves, key=lambda move: move[0])
        if gain <= slack:
            return path
        better = improve(better, problem.table)
        # With a negative rate the shorter path may have lost what the move gained.
        if problem.loss(better) >= loss - slack:
            return path
        path, loss = better, problem.loss(better)


def _outside(path: Path, problem: _Problem) -> Path:
    visited = np.zeros(len(problem.scores) + 2, dtype=np.bool_)
    visited[path] = True
    return np.flatnonzero(~visited)


def _insert(path: Path, problem: _Problem) -> tuple[float, Path]:
    arms = _outside(path, problem)
    if len(path) - 2 >= problem.high or len(arms) == 0:
        return 0.0, path
    detours, at = cheapest_insertion(path, arms, problem.table)
    gain = problem.scores[arms] - problem.price * detours
    added = detours / problem.speed + problem.each[arms]
    gain[problem.excess(path) + added > 0.0] = -np.inf
    pick = int(np.argmax(gain))
    return float(gain[pick]), np.insert(path, at[pick], arms[pick])


def _drop(path: Path, problem: _Problem) -> tuple[float, Path]:
    """Drop the stretch from position i to j; stretches, since a far cluster goes as one."""
    k = len(path) - 2
    if k == 0:
        return 0.0, path
    along = np.concatenate([[0.0], np.cumsum(problem.table[path[:-1], path[1:]])])
    taken = np.concatenate([[0.0], np.cumsum(problem.scores[path[1:-1]])])
    saved = along[None, 2:] - along[:k, None] - problem.table[path[:k, None], path[None, 2:]]
    gain = problem.price * saved - (taken[None, 1:] - taken[:k, None])
    gain[np.tril_indices(k, -1)] = -np.inf
    i, j = divmod(int(np.argmax(gain)), k)
    return float(gain[i, j]), np.delete(path, slice(i + 1, j + 2))


def _exchange(path: Path, problem: _Problem) -> tuple[float, Path]:
    arms = _outside(path, problem)
    k = len(path) - 2
    if k == 0 or len(arms) == 0:
        return 0.0, path
    table, before, old, after = problem.table, path[:-2], path[1:-1], path[2:]
    detour = table[before[:, None], arms] + table[arms, after[:, None]]
    detour -= (table[before, old] + table[old, after])[:, None]
    gain = problem.scores[arms] - problem.scores[old][:, None] - problem.price * detour
    added = detour / problem.speed + problem.each[arms] - problem.each[old][:, None]
    gain[problem.excess(path) + added > 0.0] = -np.inf
    i, pick = divmod(int(np.argmax(gain)), len(arms))
    better = path.copy()
    better[i + 1] = arms[pick]
    return float(gain[i, pick]), better
