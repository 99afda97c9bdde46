"""What an atlas tile says of its squares."""

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import FloatArray, floats, number
from coaf.cryoem.images import Image

SQUARE_FEATURES = (
    "brightness",  # relative to vacuum: thin ice is bright
    "spread",  # sd of its parts relative to its mean: torn and uneven squares have much
    "area",  # what is lit, as a share of the whole square
    "gradient",  # change of brightness across it, relative to vacuum
)

_PARTS = 6  # a side, into which a square is cut
_INNER = 0.4  # of the side: a disc that lies within the square at any rotation


def square_features(
    tile: Image, squares: npt.ArrayLike, *, vacuum: float | None = None
) -> FloatArray:
    """Features (n, 4), see `SQUARE_FEATURES`, of squares (n, 3): stage x, y and side in µm.

    `vacuum` is the pixel value of an empty place. Left out: that of the brightest in these squares,
    so give it where squares of several tiles are compared.
    """
    rows = floats("squares", np.asarray(squares, dtype=np.float64).reshape(-1, 3), ndim=2)
    if not len(rows):
        return np.zeros((0, len(SQUARE_FEATURES)))
    if rows[:, 2].min() <= 0.0:
        i = int(np.argmin(rows[:, 2]))
        raise ValueError(f"squares[{i}] has side {rows[i, 2]:g} µm; it must be greater than 0")
    if vacuum is None:
        bright = [np.percentile(_disc(tile, row)[0], 99.0) for row in rows]
        vacuum = max(float(np.max(bright)), 1e-30)
    light = number("vacuum", vacuum, above=0.0)
    return np.array([_one(tile, row, light) for row in rows])


def _disc(tile: Image, square: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Pixels of the square's inner disc, and their x and y in sides from its centre."""
    column, row = tile.to_pixels(square[:2])[0]
    rows, columns = tile.pixels.shape
    size = square[2] / tile.pixel_size
    if not (0 <= column <= columns - 1 and 0 <= row <= rows - 1):
        raise ValueError(
            f"the square at ({square[0]:g}, {square[1]:g}) µm has its centre outside the tile "
            f"around ({tile.x:g}, {tile.y:g}); give the squares of this tile"
        )
    y, x = np.mgrid[
        max(0, int(row - size)) : min(rows, int(row + size) + 2),
        max(0, int(column - size)) : min(columns, int(column + size) + 2),
    ]
    inside = np.hypot(x - column, y - row) <= max(_INNER * size, 0.75)
    x, y = x[inside], y[inside]
    return tile.pixels[y, x].astype(np.float64), (x - column) / size, (y - row) / size


def _one(tile: Image, square: FloatArray, light: float) -> FloatArray:
    values, x, y = _disc(tile, square)
    mean = max(float(values.mean()), 0.01 * light)
    rest = values - values.mean()
    slope = [(rest * a).sum() / max((a * a).sum(), 1e-9) for a in (x - x.mean(), y - y.mean())]
    # Of parts, not pixels: shot noise is not the square's.
    part = [((a / _INNER + 1.0) / 2.0 * _PARTS).astype(int).clip(0, _PARTS - 1) for a in (x, y)]
    which = part[1] * _PARTS + part[0]
    count = np.bincount(which, minlength=_PARTS**2)
    total = np.bincount(which, weights=rest, minlength=_PARTS**2)
    spread = np.sqrt((total**2 / np.maximum(count, 1)).sum() / values.size) / mean
    area = _lit(tile, square, float(np.median(values)))
    return np.array([mean / light, spread, area, np.hypot(*slope) / light])


def _lit(tile: Image, square: FloatArray, usual: float) -> float:
    """The area at least half as bright as the square's middle and joined to it, in sides²."""
    from scipy.ndimage import gaussian_filter, label

    column, row = tile.to_pixels(square[:2])[0]
    size = square[2] / tile.pixel_size
    reach = int(np.ceil(0.75 * size))
    rows, columns = tile.pixels.shape
    c, r = round(float(column)), round(float(row))
    top, left = max(0, r - reach), max(0, c - reach)
    part = tile.pixels[top : min(rows, r + reach + 1), left : min(columns, c + reach + 1)]
    lit = gaussian_filter(part, 1.0) > 0.5 * usual
    pieces, _ = label(lit)
    own = pieces[min(r - top, part.shape[0] - 1), min(c - left, part.shape[1] - 1)]
    return float((pieces == own).sum() / size**2) if own else 0.0
