"""What can be had from a recorded grid: with hindsight, or knowing what is to come.

One pass over the patches: each is surveyed, and moved to if a hole of it is taken. Rewards are per
second. Holes that no pilot could be tried on are left out. `free_limit` is of who is free to
choose and knows all holes ahead.
"""

from functools import reduce
from typing import NamedTuple

import numpy as np

from coaf.bandit.arrays import BoolArray, FloatArray
from coaf.bandit.rates.price import Worth, bundled, price
from coaf.cryoem.pilots.switching import Switching
from coaf.cryoem.recorded.microscope import RecordedMicroscope
from coaf.cryoem.recorded.recording import Recording
from coaf.cryoem.recorded.seconds import Seconds
from coaf.cryoem.reward import Reward
from coaf.cryoem.timing import HOUR, hole_seconds


class _Held(NamedTuple):
    """What is worth how much, and what it takes."""

    held: Recording
    worth: FloatArray
    costs: FloatArray  # seconds of each hole
    seconds: Seconds

    @classmethod
    def of(cls, recording: Recording, reward: Reward, seconds: Seconds | None) -> "_Held":
        held, seconds = recording.playable(), (seconds or recording.seconds).checked()
        costs = hole_seconds(seconds.expose, seconds.shot, held.counts)
        return cls(held, held.worth(reward).rewards, costs, seconds)

    def summed(self, values: FloatArray) -> FloatArray:
        """By patch."""
        total: FloatArray = np.add.reduceat(values, self.held.starts[:-1])
        return total

    def ratio(self, chosen: BoolArray) -> float:
        """Reward per second of taking these holes."""
        entered = np.count_nonzero(self.summed(chosen.astype(np.float64)))
        seconds = self.seconds.survey * len(self.held.patches) + self.seconds.move * entered
        return float(self.worth[chosen].sum() / (seconds + self.costs[chosen].sum()))

    def root(self, estimates: FloatArray) -> float:
        """The rate of who takes the subset of each patch that these estimates make best."""
        from coaf.bandit.compiled.threshold import threshold_root  # loads numba

        patches = len(self.held.patches)
        base = np.full(patches, self.seconds.survey)
        setup = np.full(patches, self.seconds.move)
        sizes = np.diff(self.held.starts)
        return threshold_root(estimates, sizes, base, setup, self.costs[None], 0.0)


def clairvoyant_rate(recording: Recording, reward: Reward, seconds: Seconds | None = None) -> float:
    """Reward per second for who knows every outcome: the exact best subset of each patch."""
    grid = _Held.of(recording, reward, seconds)
    return grid.root(grid.worth)


def free_limit(recording: Recording, reward: Reward, seconds: Seconds, hours: float) -> float:
    """No plan collects more in so many hours, with all known ahead and any order allowed.

    At a price λ of a second each hole is worth what it gives beyond its time, a patch the sum of
    its holes that pay less the move, a square and a tile likewise less the switch to them; λ·T and
    the worth of all is a bound by duality, and this is the least of them.
    """
    grid = _Held.of(recording, reward, seconds)
    microscope = RecordedMicroscope(grid.held, seconds=seconds, ahead=True)
    atlas = {square.name: square for square in microscope.squares()}
    way = Switching([atlas[name] for name in grid.held.squares], None, microscope.timing)

    def patches(rate: float) -> tuple[FloatArray, FloatArray]:
        gain = grid.worth - rate * grid.costs
        pays = gain > 0.0
        worth = grid.summed(np.where(pays, gain, 0.0)) - rate * grid.seconds.move
        return worth, grid.summed(np.where(pays, grid.costs, 0.0)) + grid.seconds.move

    leaves: Worth = patches
    whole, time = reduce(bundled, way.setups, leaves), HOUR * hours
    rate = price(seconds=time, open=whole)
    return rate * time + float(np.maximum(whole(rate)[0], 0.0).sum())


def best_fixed_cut(
    recording: Recording, reward: Reward, column: str, seconds: Seconds | None = None
) -> float:
    """Reward per second with the best cut on a column, below it or above: every one is tried."""
    grid = _Held.of(recording, reward, seconds)
    values = grid.held.column(column)
    cuts = np.unique(values)
    return max(max(grid.ratio(values <= cut), grid.ratio(values >= cut)) for cut in cuts)


def calibrated(
    recording: Recording, reward: Reward, column: str, seconds: Seconds | None = None
) -> float:
    """Reward per second for the paper's policy with what a column means known from the start.

    What a shot brings, by its hole's column, is the isotonic regression, falling or rising, of the
    outcomes of this very recording; the rate is the root of its Bellman equation, and whole subsets
    are chosen by it.
    """
    grid = _Held.of(recording, reward, seconds)
    return max(_calibrated(grid, column, rising) for rising in (False, True))


def _calibrated(grid: _Held, column: str, rising: bool) -> float:
    from scipy.optimize import isotonic_regression

    # Equal values must mean the same, whatever the order they stand in.
    values, which = np.unique(grid.held.column(column), return_inverse=True)
    shots = grid.held.counts.astype(np.float64)
    weights = np.bincount(which, shots)
    per_shot = np.bincount(which, grid.worth) / weights
    fitted = isotonic_regression(per_shot, weights=weights, increasing=rising).x
    assert len(fitted) == len(values)
    chance = fitted[which] * shots
    rate = grid.root(chance)
    gain = chance - rate * grid.costs
    enter = grid.summed(np.maximum(gain, 0.0)) > rate * grid.seconds.move
    return grid.ratio(enter[grid.held.patch] & (gain > 0.0))
