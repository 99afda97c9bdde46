"""What the atlas shows of a simulated grid: features of squares, and its tiles."""

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.cryoem.images import Image
from coaf.cryoem.simulator.conditions import Conditions
from coaf.cryoem.simulator.draw import MEAN_FREE_PATH
from coaf.cryoem.simulator.grid import PITCH, SIDE, GridTruth, make_square
from coaf.cryoem.simulator.tile import TileSquare, draw_tile

THICK = 0.12  # a square that lets fewer electrons through looks thick
FIELD = 3.0 * PITCH  # µm along a tile


def _looks(conditions: Conditions, grid: GridTruth, seed: int, squares: int) -> FloatArray:
    """Brightness, spread, area and gradient (squares, 4) as the atlas would show them.

    Brightness speaks of the ice, and area of how much of the square thick ice leaves free; both
    with an error, so that what a square holds is only partly known before it is opened.
    """
    looks = np.empty((squares, 4))
    for k in range(squares):
        truth = make_square(conditions, grid, seed, k, 1)
        rng = np.random.default_rng([seed, 10, k])
        free = ~truth.hidden
        ice = np.exp(np.log(np.maximum(truth.thickness, 1.0))[free].mean()) if free.any() else 300.0
        error = grid.sight[k] + rng.normal(0.0, conditions.atlas_noise)
        error += (conditions.sight_slope - 1.0) * (np.log(ice) - grid.middle)
        seen = grid.gain * ice * np.exp(error)
        bright = np.exp(-seen / MEAN_FREE_PATH)
        level = (
            np.exp(-truth.thickness[free] / MEAN_FREE_PATH) if free.any() else np.array([bright])
        )
        area = np.clip(free.mean() + rng.normal(0.0, 0.05), 0.0, 1.0)
        spread = float(level.std()) * np.exp(rng.normal(0.0, 0.2))
        looks[k] = bright, spread, area, np.hypot(*truth.shade) + 0.2 * (1.0 - area)
    return looks


def atlas_features(conditions: Conditions, grid: GridTruth, seed: int, squares: int) -> FloatArray:
    """Per square (squares, 4): the columns of `vision.square_features`."""
    return _looks(conditions, grid, seed, squares)


def draw_atlas(conditions: Conditions, grid: GridTruth, seed: int, squares: int) -> list[Image]:
    """The tiles that show all squares."""
    looks = _looks(conditions, grid, seed, squares)
    cell = np.floor(grid.places / FIELD + 0.5).astype(np.int64)
    tiles = []
    for number, where in enumerate(sorted(set(map(tuple, cell.tolist())))):
        x, y = FIELD * np.array(where)
        shown = [
            TileSquare(
                x=float(grid.places[k, 0] - x),
                y=float(grid.places[k, 1] - y),
                size=SIDE,
                angle=grid.angle,
                brightness=float(looks[k, 0] * looks[k, 2]),
                state="thick" if looks[k, 0] * looks[k, 2] < THICK else "ok",
            )
            for k in np.flatnonzero(np.abs(grid.places - (x, y)).max(axis=1) < 0.75 * FIELD)
        ]
        tile = draw_tile(shown, pixels=512, field=FIELD, seed=seed * 1000 + number)
        tiles.append(Image(tile.pixels, tile.pixel_size, float(x), float(y)))
    return tiles
