"""Γ*, the best possible reward per second of a world."""

import math
from dataclasses import dataclass
from itertools import islice

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.rates.dinkelbach import dinkelbach
from coaf.worlds.batch import Batch
from coaf.worlds.progress import Tell
from coaf.worlds.world import BulkWorld, World, require_world

# A stream that no replicate of an experiment uses.
STREAM = 2**31 - 1
_TELL = 50  # rounds, after which those who wait are told again


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


def optimum(
    world: World,
    *,
    rounds: int | None = None,
    stream: int = STREAM,
    progress: Tell | None = None,
) -> Optimum:
    """Γ* by Dinkelbach's method on a sample of rounds (`th: MBSP_ub`).

    It converges in a handful of steps, and its error is that of the sample alone: by the delta
    method sd(min_A g) / (√N · mean seconds).

    Parameters
    ----------
    world
        The world.
    rounds, stream
        How many rounds, and of which replicate. Unless given, 200,000 of a world that makes batches
        (`BulkWorld`), and 5,000 of another.
    progress
        Called with the step, and how many of its rounds are done, and of how many.

    Examples
    --------
    >>> from coaf.worlds.synthetic import Synthetic
    >>> found = optimum(Synthetic(dim=5, seed=2), rounds=2000)
    >>> found.steps < 10, found.standard_error < 0.01 * found.rate
    (True, True)
    """
    require_world(world)
    tried: list[float] = []

    def tell(done: int) -> None:
        if progress is not None:
            progress(f"step {len(tried) + 1}", done, count)

    if isinstance(world, BulkWorld):
        count = 200_000 if rounds is None else rounds
        batch = world.batch(count, stream)

        def solve(rate: float) -> tuple[FloatArray, FloatArray]:
            return least_gaps(batch, rate)
    else:
        count = 5_000 if rounds is None else rounds
        scenes = list(world.scenes(count, stream))

        def solve(rate: float) -> tuple[FloatArray, FloatArray]:
            gaps, seconds = np.empty(count), np.empty(count)
            for j, s in enumerate(scenes):
                if j % _TELL == 0:
                    tell(j)
                found = s.round.best(rate, s.means)
                gaps[j], seconds[j] = found.gap, found.seconds
            return gaps, seconds

    if count < 1:
        raise ValueError(f"rounds is {count}; it must be at least 1")
    gaps = seconds = np.zeros(0)

    def ratio(rate: float) -> float:
        nonlocal gaps, seconds
        gaps, seconds = solve(rate)
        tell(count)
        tried.append(rate)
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
        floor += scene.round.floor
        rate -= scene.round.best(rate, scene.means).gap / (xi * floor)
    return Optimum(rate, 0.0, rounds, rounds)
