"""Features of a hole whose CTF a network has predicted, and what to expect of them."""

from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import FloatArray, floats, number
from coaf.bandit.beliefs.mixture import Mixture
from coaf.bandit.beliefs.nested.nested import Nested
from coaf.bandit.latency import Latency
from coaf.bandit.problem import Round

PREDICTION_FEATURES = ("prediction beside its patch", "prediction of the patch")
# The log odds of a good hole, for cuts from 3.8 to 6 Å: coefficients of the two features and the
# intercept, and how far they may be off; deviations of squares and patches. First as on simulated
# grids that were made like a recorded one, with three times their spread; then as on those of a
# population where pixels say less, nothing or the opposite. `python benchmarks/grid_priors.py`
# prints what these were taken from.
USUAL = ((-4.5, -6.6, 0.1), (1.2, 2.4, 1.5), (0.55, 1.05))
OTHER = ((-1.1, -0.6, -0.2), (2.2, 2.8, 1.8), (0.55, 0.75))
SHARES = (0.6, 0.4)  # how far either is trusted before any score
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


def prediction_belief(near: float | None = None) -> Mixture:
    """What is believed before any score: that the prediction means something, with doubt.

    Grids may be like a recorded one, or of a population in which some predictions mean nothing, or
    the opposite: scores tell. With `near`, places come before the features (`Nested`).
    """
    dim, priors = 2 if near is None else 4, (USUAL, OTHER)
    beliefs = [Nested(dim, centre=c, scale=s, effects=e, near=near) for c, s, e in priors]
    return Mixture(beliefs, weights=SHARES)


def typical_patches(cut: float, latency: Latency, spots: FloatArray) -> list[Round]:
    """Patches as grids have them, for what a second is worth before many were seen.

    Parameters
    ----------
    cut, latency
        Of what is good, in Å; of a patch.
    spots : (holes, places)
        Where holes lie; of no width where that does not matter.

    Examples
    --------
    >>> from coaf.bandit.latency import Setup
    >>> patches = typical_patches(3.8, Setup(12.0, 52.0, 6.7), np.zeros((20, 0)))
    >>> [round(float(3.8 * np.exp(patch.features[0, 1])), 1) for patch in patches]
    [4.4, 5.2, 5.9, 6.6, 7.8]
    """
    mean, between, within = TYPICAL
    holes = len(spots)
    own = within * _quantiles(holes)
    return [
        Round(
            np.hstack([spots, prediction_features(np.exp(mean + between * far + own), cut)]),
            latency,
            groups=np.array([[-1, -k]] * holes),  # of no square that is there
        )
        for k, far in enumerate(_quantiles(PATCHES), start=1)
    ]


def _quantiles(count: int) -> FloatArray:
    normal = NormalDist()
    return np.array([normal.inv_cdf((i + 0.5) / count) for i in range(count)])
