"""Features of a hole whose CTF a network has predicted, and what to expect of them."""

from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import FloatArray, floats, number
from coaf.bandit.beliefs.nested.nested import Nested
from coaf.bandit.latency import Latency
from coaf.bandit.problem import Round

PREDICTION_FEATURES = ("prediction", "prediction of the patch")
# What grids made by the simulator say of the log odds of a good hole, for cuts from 3.8 to 6 Å:
# coefficients of the two features and the intercept, their spread between grids, and the
# deviations of squares and patches (`python benchmarks/grid_priors.py` prints them).
CENTRE = (-4.5, -2.1, 0.1)
SPREAD = (0.4, 0.7, 0.5)
EFFECTS = (0.55, 1.05)
# Of ln(predicted): mean, spread of patches, spread within one; and how many holes these have.
TYPICAL = (1.92, 0.31, 0.19)
HOLES = 20
PATCHES = 5  # how many typical patches a session begins with
DOUBT = 3.0  # a real grid may differ from simulated ones by more than these do from each other


def prediction_features(predicted: npt.ArrayLike, cut: float) -> FloatArray:
    """Two features for each hole of a patch: ln(predicted/cut), and its average over the patch.

    Predictions are noisy, and holes of a patch are alike, so the average says more than a hole's
    own prediction does: without it the errors of a network pass for differences between holes.

    Examples
    --------
    >>> prediction_features([3.8, 7.6], cut=3.8).round(2)
    array([[0.  , 0.35],
           [0.69, 0.35]])
    """
    values = floats("predicted", predicted, ndim=1, low=1e-3)
    own = np.log(values / number("cut", cut, above=0.0))
    return np.column_stack([own, np.full(len(own), own.mean())])


def prediction_belief() -> Nested:
    """What is believed before any score: that the prediction means something, with doubt.

    The prior comes from simulated grids and its deviations are theirs three times over, so that
    some dozens of scores overrule it where a grid, or a network, is another.
    """
    scale = tuple(DOUBT * s for s in SPREAD)
    return Nested(2, centre=CENTRE, scale=scale, effects=EFFECTS)


def typical_patches(cut: float, latency: Latency) -> list[Round]:
    """Patches as simulated grids have them, for what a second is worth before any was seen.

    Examples
    --------
    >>> from coaf.bandit.latency import Setup
    >>> patches = typical_patches(3.8, Setup(12.0, 52.0, 6.7))
    >>> [round(float(3.8 * np.exp(patch.features[0, 1])), 1) for patch in patches]
    [4.6, 5.8, 6.8, 8.0, 10.1]
    """
    mean, between, within = TYPICAL
    own = within * _quantiles(HOLES)
    return [
        Round(
            prediction_features(np.exp(mean + between * far + own), cut),
            latency,
            groups=np.array([["expected", f"{far:.2f}"]] * HOLES),
        )
        for far in _quantiles(PATCHES)
    ]


def _quantiles(count: int) -> FloatArray:
    normal = NormalDist()
    return np.array([normal.inv_cdf((i + 0.5) / count) for i in range(count)])
