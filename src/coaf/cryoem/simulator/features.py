"""What can be seen of simulated holes without drawing them: features, and a CNN's prediction."""

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.cryoem.simulator.conditions import Conditions, expected_resolution, thickness_loss
from coaf.cryoem.simulator.draw import FOIL, MEAN_FREE_PATH, Foil
from coaf.cryoem.simulator.grid import SIDE, SPACING, GridTruth, SquareTruth, turn

# What counting electrons and the size of a pixel leave of each column's truth: standard
# deviations that match those of features measured in drawn images.
NOISE = {"ice": 0.025, "spread": 0.012, "contrast": 0.015, "gradient": 0.025}


def seen_thickness(grid: GridTruth, truth: SquareTruth) -> FloatArray:
    """The thickness (n,) in nm that brightness speaks of: the true one, with the error of sight.

    Drawn images show this one, so that pixels tell of quality no better than on a real grid.
    """
    seen: FloatArray = grid.gain * truth.thickness * np.exp(truth.sight)
    return seen


def latent_features(
    grid: GridTruth, truth: SquareTruth, foil: Foil, rng: np.random.Generator
) -> FloatArray:
    """The columns (n, 8) of `features.HOLE_FEATURES`, from the truth and noise.

    Examples
    --------
    >>> from coaf.cryoem.simulator.grid import make_grid, make_square
    >>> grid = make_grid(Conditions(), seed=0, squares=4)
    >>> square = make_square(Conditions(), grid, seed=0, index=0, shots=1)
    >>> X = latent_features(grid, square, "carbon", np.random.default_rng(0))
    >>> X.shape == (len(square.place), 8)
    True
    """
    from scipy.spatial import cKDTree

    n = len(truth.place)
    seen = seen_thickness(grid, truth)
    tree = cKDTree(truth.place)
    k = min(7, n)
    _, near = tree.query(truth.place, k=k)
    around = seen[near.reshape(n, k)].mean(axis=1)
    level = np.exp(-seen / MEAN_FREE_PATH)
    slope = np.hypot(*truth.tilt.T) / MEAN_FREE_PATH * level
    rough = 0.08 * truth.crystalline + 0.3 * slope
    ice = seen / MEAN_FREE_PATH + rng.normal(0.0, NOISE["ice"], n)
    edge = (SIDE / 2 - np.abs(truth.place @ turn(-grid.angle)).max(axis=1)) / (SIDE / 2)
    dirt = np.zeros(n)
    if len(truth.dirt):
        away, _ = cKDTree(truth.dirt[:, :2]).query(truth.place)
        dirt = np.exp(-away / SPACING)
    beside = ice[near.reshape(n, k)[:, 1:]].mean(axis=1) if k > 1 else ice
    columns = (
        ice,
        np.abs(rough + rng.normal(0.0, NOISE["spread"], n)),
        level - FOIL[foil] * np.exp(-around / MEAN_FREE_PATH) + _noise(rng, "contrast", n),
        np.abs(slope + _noise(rng, "gradient", n)),
        edge,
        dirt,
        beside,
        np.hypot(*truth.place.T) / (SIDE / 2),
    )
    return np.column_stack(columns)


def _noise(rng: np.random.Generator, column: str, n: int) -> FloatArray:
    return rng.normal(0.0, NOISE[column], n)


def predictions(conditions: Conditions, truth: SquareTruth) -> FloatArray:
    """CTFMaxRes in Å (n,) that a trained network would predict: the mean, given what is seen.

    It sees the ice with the error of sight, and neither focus nor luck, so its best are worse than
    the best, and its worst better than the worst.
    """
    seen = np.maximum(truth.thickness * np.exp(truth.sight), conditions.thin / 2.0)
    told: FloatArray = expected_resolution(conditions, thickness_loss(conditions, seen)) * np.exp(
        truth.whim
    )
    return told
