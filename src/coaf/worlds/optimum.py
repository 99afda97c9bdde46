"""Γ*, the best possible reward per second of a world."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.latency import Latency
from coaf.bandit.problem import Round
from coaf.bandit.rates.dinkelbach import dinkelbach
from coaf.bandit.select import best
from coaf.bandit.selection.listed import Remembered, allowed_subsets, is_own
from coaf.worlds.batch import Batch
from coaf.worlds.world import BulkWorld, World

# A stream that no replicate of an experiment uses.
STREAM = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Optimum:
    """An estimate of Γ*.

    Attributes
    ----------
    rate, standard_error
        Γ* and its sampling error (0 where the method gives none).
    rounds, steps
        How many rounds it rests on, and how many steps it took.
    """

    rate: float
    standard_error: float
    rounds: int
    steps: int


def least_gaps(batch: Batch, rate: float) -> tuple[FloatArray, FloatArray]:
    """min_A g(Γ, A) of every round under the true means, and the seconds of the best A."""
    from coaf.worlds.replicate import best_gaps  # loads numba

    return best_gaps(batch.means, batch.counts, batch.base, batch.setup, batch.costs, rate)


class AskedOnce:
    """Latencies of the user's own, asked once for every subset, for as long as this is kept."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, bytes], tuple[Latency, Remembered]] = {}

    def of(self, round: Round) -> Latency:
        """The latency of this round, or what it said."""
        latency = round.latency
        if not is_own(latency, round.actions, round.n):
            return latency
        allowed = allowed_subsets(round.actions, round.n, round.groups)
        key = (id(latency), allowed.tobytes())
        if key not in self._known:  # kept together, so that no other latency gets its id
            self._known[key] = (latency, Remembered.of(latency, allowed))
        return self._known[key][1]


def optimum(
    world: World,
    *,
    rounds: int | None = None,
    stream: int = STREAM,
    progress: Callable[[int], None] | None = None,
) -> Optimum:
    """Γ* by Dinkelbach's method on a sample of rounds (`th: MBSP_ub`).

    It converges in a handful of steps, and its error is that of the sample alone: by the delta
    method sd(min_A g) / (√N · mean seconds). A latency of your own is asked once for each
    subset.

    Parameters
    ----------
    world
        The world.
    rounds, stream
        How many rounds, and of which replicate. Unless given, 200,000 of a world that makes batches
        (`BulkWorld`), and 5,000 of another.
    progress
        Called with the number of steps done.

    Examples
    --------
    >>> from coaf.worlds.synthetic import Synthetic
    >>> found = optimum(Synthetic(dim=5, seed=2), rounds=2000)
    >>> found.steps < 10, found.standard_error < 0.01 * found.rate
    (True, True)
    """
    if isinstance(world, BulkWorld):
        count = 200_000 if rounds is None else rounds
        batch = world.batch(count, stream)

        def solve(rate: float) -> tuple[FloatArray, FloatArray]:
            return least_gaps(batch, rate)
    else:
        count = 5_000 if rounds is None else rounds
        scenes, memory = list(world.scenes(count, stream)), AskedOnce()

        def solve(rate: float) -> tuple[FloatArray, FloatArray]:
            found = [
                best(rate, s.means, memory.of(s.round), s.round.actions, s.round.groups)
                for s in scenes
            ]
            return np.array([f.gap for f in found]), np.array([f.seconds for f in found])

    if count < 1:
        raise ValueError(f"rounds is {count}; it must be at least 1")
    tried: list[float] = []
    gaps = seconds = np.zeros(0)

    def ratio(rate: float) -> float:
        nonlocal gaps, seconds
        gaps, seconds = solve(rate)
        tried.append(rate)
        if progress is not None:
            progress(len(tried))
        return rate - float(gaps.mean() / seconds.mean())

    dinkelbach(ratio, 0.0)
    error = float(gaps.std()) / (math.sqrt(count) * float(seconds.mean()))
    return Optimum(tried[-1], error, count, len(tried))  # the rate that these gaps are of


def optimum_by_approximation(
    world: World, *, rounds: int = 200_000, xi: float = 1.0, stream: int = STREAM - 1
) -> Optimum:
    """Γ* by a long run of stochastic approximation with the true means, as in the paper."""
    rate, floor = 0.0, 0.0
    for scene in islice(world.scenes(rounds, stream), rounds):
        r = scene.round
        floor += r.floor
        rate -= best(rate, scene.means, r.latency, r.actions, r.groups).gap / (xi * floor)
    return Optimum(rate, 0.0, rounds, rounds)
