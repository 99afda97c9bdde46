"""The opening of a square: where the foil is, beyond the grid bars, and the dirt on it."""

from dataclasses import dataclass

import numpy as np

from coaf.bandit.arrays import BoolArray, FloatArray
from coaf.cryoem.images import Image, Pixels, binned

_DARK = 0.3  # of the way from the darkest to the usual brightness of what is open
_NO_BARS = 0.5  # where the darkest is brighter than this share of the usual, no bar is in sight


@dataclass(frozen=True, slots=True, eq=False)
class Opening:
    """Where a square is open.

    Attributes
    ----------
    mask : (rows, columns)
        On a coarse copy of the image: True where foil and holes are.
    distance : (rows, columns)
        µm to the nearest bar, on the same copy. The image's border is no bar.
    centre : (2,)
        Of the opening, on the stage.
    side
        Of a square with the opening's area, in µm.
    """

    mask: BoolArray
    distance: FloatArray
    centre: FloatArray
    side: float
    coarse: Image

    def edge_distance(self, points: FloatArray) -> FloatArray:
        """µm from stage positions (n, 2) to the nearest bar; 0 on a bar."""
        from scipy.ndimage import map_coordinates

        column, row = self.coarse.to_pixels(points).T
        result: FloatArray = map_coordinates(self.distance, [row, column], order=1, mode="nearest")
        return result


def find_opening(coarse: Image) -> Opening:
    """Bars are dark and reach the border of the image, or are large; what is left is open."""
    from scipy.ndimage import distance_transform_edt

    mask = _open(coarse.pixels)
    if mask.all():
        far = np.full(mask.shape, np.hypot(*mask.shape))
    else:
        far = np.maximum(distance_transform_edt(mask) - 0.5, 0.0)
    rows, columns = np.nonzero(mask)
    if rows.size:
        centre = coarse.to_stage([[columns.mean(), rows.mean()]])[0]
    else:
        centre = np.array([coarse.x, coarse.y])
    side = max(np.sqrt(rows.size), 1.0) * coarse.pixel_size
    return Opening(mask, far * coarse.pixel_size, centre, float(side), coarse)


def _open(pixels: Pixels) -> BoolArray:
    from scipy.ndimage import gaussian_filter, label

    smooth = gaussian_filter(pixels, max(1.0, max(pixels.shape) / 300.0))
    low, middle = np.percentile(smooth, [0.5, 50.0])
    bright = np.median(smooth[smooth >= middle])
    if low > _NO_BARS * bright:
        return np.ones(pixels.shape, dtype=np.bool_)
    # Over and over: what is usual is judged among what is open, however little of the image it is.
    for _ in range(3):
        dark = smooth < low + _DARK * (bright - low)
        if dark.all():
            break
        bright = np.median(smooth[~dark])
    pieces, count = label(dark)
    area = np.bincount(pieces.ravel(), minlength=count + 1)
    border = np.unique(np.concatenate([pieces[0], pieces[-1], pieces[:, 0], pieces[:, -1]]))
    large = area > 0.02 * pixels.size
    large[border[area[border] > 0.001 * pixels.size]] = True
    large[0] = False
    # Cracks between bars are lit too, but are no square.
    seen = ~large[pieces]
    pieces, count = label(seen)
    area = np.bincount(pieces.ravel(), minlength=count + 1)
    area[0] = 0
    result: BoolArray = (area > 0.2 * area.max())[pieces] & seen
    return result


def find_dirt(pixels: Pixels, mask: BoolArray) -> tuple[FloatArray, BoolArray]:
    """Centres (m, 2) as (column, row), and the pixels, of blobs much darker than the foil."""
    from scipy.ndimage import (
        binary_dilation,
        center_of_mass,
        gaussian_filter,
        label,
    )

    # At its edge an opening is dark by the bars' shadow.
    mask = inside(mask)
    if not mask.any():
        return np.zeros((0, 2)), np.zeros(mask.shape, dtype=np.bool_)
    ratio = gaussian_filter(pixels, 0.8) / background(pixels, mask, max(pixels.shape) / 24.0)
    foil = np.median(ratio[mask])  # holes are the lesser part of a square
    below = ratio[mask & (ratio < foil)]
    spread = 1.48 * np.median(foil - below) if below.size else 0.0
    dark = mask & (ratio < foil - max(0.35 * foil, 5.0 * spread))
    pieces, count = label(dark)
    area = np.bincount(pieces.ravel(), minlength=count + 1)[1:]
    # What touches the edge is the bars' shadow, or dirt on them.
    shadow = np.bincount(pieces[binary_dilation(~mask)], minlength=count + 1)[1:] > 0
    large = 1 + np.flatnonzero((area >= 3) & ~shadow)
    rows_columns = np.array(center_of_mass(dark, pieces, large)).reshape(-1, 2)
    return rows_columns[:, ::-1], binary_dilation(dark)


def inside(mask: BoolArray) -> BoolArray:
    """The mask without its edge, where bars cast a shadow; the image's border is no edge."""
    from scipy.ndimage import binary_erosion

    rounds = 1 + max(mask.shape) // 256
    result: BoolArray = binary_erosion(mask, iterations=rounds, border_value=1)
    return result


def background(pixels: Pixels, mask: BoolArray, width: float) -> Pixels:
    """Slow changes of brightness in the mask, over `width` pixels; the rest has no say."""
    from scipy.ndimage import gaussian_filter, zoom

    weight = mask.astype(np.float32)
    mean = np.float32(pixels[mask].mean()) if mask.any() else np.float32(1.0)
    # What changes slowly needs few pixels, and a wide filter on all of them takes long.
    step = max(1, int(width / 4.0))
    top, bottom = (
        gaussian_filter(binned(part, step), width / step, mode="constant", truncate=3.0)
        for part in ((pixels - mean) * weight, weight)
    )
    slow = mean + top / np.maximum(bottom, 1e-3)
    slow = np.maximum(slow, 0.1 * np.abs(mean) + np.finfo(np.float32).tiny)
    if step > 1:
        rows, columns = pixels.shape
        slow = zoom(slow, step, order=1, mode="nearest", grid_mode=True)[:rows, :columns]
    result: Pixels = slow.astype(np.float32)
    return result
