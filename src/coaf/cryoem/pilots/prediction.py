"""Features of a hole whose CTF a network has predicted, and what to expect of them."""

from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import FloatArray, floats, number
from coaf.bandit.beliefs.nested.nested import Nested
from coaf.bandit.latency import Latency
from coaf.bandit.problem import Round

PREDICTION_FEATURES = ("prediction beside its patch", "prediction of the patch")
# What half of the population of grids says of the log odds of a good hole, for cuts from 3.8 to
# 6 Å: coefficients of the two features and the intercept, their spread between grids, and the
# deviations of squares and patches (`python benchmarks/grid_priors.py` prints them).
CENTRE = (-2.7, -2.4, 0.0)
SPREAD = (2.2, 3.0, 1.5)
EFFECTS = (0.55, 0.75)
# Of ln(predicted): mean, spread of patches, spread within one.
TYPICAL = (1.77, 0.22, 0.15)
PATCHES = 5  # how many typical patches a session begins with


def prediction_features(predicted: npt.ArrayLike, cut: float) -> FloatArray:
    """Two features for each hole of a patch: ln(predicted/cut) beyond its patch's, and its patch's.

    Predictions are noisy, and holes of a patch are alike, so the average over the patch says more
    than what a hole differs by: as one feature the errors of a network would pass for differences
    between holes.

    Examples
    --------
    >>> prediction_features([3.8, 7.6], cut=3.8).round(2)
    array([[-0.35,  0.35],
           [ 0.35,  0.35]])
    """
    values = floats("predicted", predicted, ndim=1, low=1e-3)
    own = np.log(values / number("cut", cut, above=0.0))
    return np.column_stack([own - own.mean(), np.full(len(own), own.mean())])


def prediction_belief() -> Nested:
    """What is believed before any score: that the prediction means something, with doubt.

    The prior comes from a population of grids in which some predictions mean nothing, or the
    opposite: it is as wide as that, so that some dozens of scores overrule it.
    """
    return Nested(2, centre=CENTRE, scale=SPREAD, effects=EFFECTS)


def typical_patches(cut: float, latency: Latency, holes: int) -> list[Round]:
    """Patches as grids have them, for what a second is worth before many were seen.

    Examples
    --------
    >>> from coaf.bandit.latency import Setup
    >>> patches = typical_patches(3.8, Setup(12.0, 52.0, 6.7), 20)
    >>> [round(float(3.8 * np.exp(patch.features[0, 1])), 1) for patch in patches]
    [4.4, 5.2, 5.9, 6.6, 7.8]
    """
    mean, between, within = TYPICAL
    own = within * _quantiles(holes)
    return [
        Round(
            prediction_features(np.exp(mean + between * far + own), cut),
            latency,
            groups=np.array([["expected", f"{far:.2f}"]] * holes),
        )
        for far in _quantiles(PATCHES)
    ]


def _quantiles(count: int) -> FloatArray:
    normal = NormalDist()
    return np.array([normal.inv_cdf((i + 0.5) / count) for i in range(count)])
