"""What can be had from a recorded grid: with hindsight, or knowing what is to come."""

import numpy as np

from coaf.bandit.arrays import BoolArray, FloatArray, IntArray
from coaf.cryoem.recorded.recording import Times


def clairvoyant(good: FloatArray, starts: IntArray, times: Times) -> float:
    """Good per second for who knows every outcome: the exact best subset of each patch."""
    return _root(good, starts, times)


def calibrated(predicted: FloatArray, good: FloatArray, starts: IntArray, times: Times) -> float:
    """Good per second for the paper's policy with what predictions mean known from the start.

    The chance of a good hole is the isotonic regression of the outcomes on the predictions of this
    very recording, and the rate its Bellman equation's root; whole subsets are chosen by it.
    """
    from scipy.optimize import isotonic_regression

    # Equal predictions must have equal chances, whatever the order they stand in.
    values, which, counts = np.unique(predicted, return_inverse=True, return_counts=True)
    shares = np.bincount(which, good) / counts
    fitted = isotonic_regression(shares, weights=counts.astype(np.float64), increasing=False).x
    assert len(fitted) == len(values)
    chance = fitted[which]
    rate = _root(chance, starts, times)
    worth = np.add.reduceat(np.maximum(chance - rate * times.expose, 0.0), starts[:-1])
    enter = np.repeat(worth > rate * times.move, np.diff(starts))
    return _ratio(enter & (chance > rate * times.expose), good, starts, times)


def best_fixed_cut(
    predicted: FloatArray, good: FloatArray, starts: IntArray, times: Times
) -> float:
    """Good per second with the best cut on the prediction: every one observed is tried."""
    return max(_ratio(predicted <= cut, good, starts, times) for cut in np.unique(predicted))


def _root(estimates: FloatArray, starts: IntArray, times: Times) -> float:
    from coaf.bandit.compiled.threshold import threshold_root  # loads numba

    patches = len(starts) - 1
    base, setup = np.full(patches, times.survey), np.full(patches, times.move)
    costs = np.full((1, len(estimates)), times.expose)
    return threshold_root(estimates, np.diff(starts), base, setup, costs, 0.0)


def _ratio(chosen: BoolArray, good: FloatArray, starts: IntArray, times: Times) -> float:
    entered = int(np.count_nonzero(np.add.reduceat(chosen.astype(np.int64), starts[:-1])))
    seconds = times.survey * (len(starts) - 1) + times.move * entered
    return float(good[chosen].sum() / (seconds + times.expose * np.count_nonzero(chosen)))
