"""Pixels around holes, by their distance in radii: the same numbers at every magnification."""

from dataclasses import dataclass

import numpy as np

from coaf.bandit.arrays import BoolArray, FloatArray
from coaf.cryoem.images import Image, Pixels, shrink

_ACROSS = 10.0  # pixels of radius that are enough: finer images are binned
INSIDE = 0.8  # radii: the hole without its rim
_RING = (1.3, 1.7)  # radii: foil around it, before the next hole begins


@dataclass(frozen=True, slots=True, eq=False)
class Crops:
    """Pixels (n, p) around n holes, with their place (n, p) in radii from the hole's centre.

    `seen` is False for pixels outside the image.
    """

    values: FloatArray
    x: FloatArray
    y: FloatArray
    seen: BoolArray

    @property
    def disc(self) -> BoolArray:
        """Which pixels are in the hole."""
        return self._within(0.0, INSIDE)

    @property
    def ring(self) -> BoolArray:
        """Which pixels are foil around it."""
        return self._within(*_RING)

    def _within(self, low: float, high: float) -> BoolArray:
        distance = np.hypot(self.x, self.y)
        result: BoolArray = self.seen & (distance >= low) & (distance <= high)
        return result


def crop(image: Image, holes: FloatArray, radius: float) -> Crops:
    """Cut out holes at stage positions (n, 2) whose radius is given in µm."""
    copy = smaller(image, radius)
    places = copy.to_pixels(holes)
    rows, columns = copy.pixels.shape
    away = (places < -0.5) | (places > np.array([columns, rows]) - 0.5)
    if away.any():
        i = int(np.argmax(away.any(axis=1)))
        x, y = holes[i]
        raise ValueError(
            f"holes[{i}] at ({x:g}, {y:g}) µm is outside the image, which is "
            f"{columns * copy.pixel_size:g} by {rows * copy.pixel_size:g} µm around "
            f"({copy.x:g}, {copy.y:g}); give stage positions inside it"
        )
    r = radius / copy.pixel_size
    size = int(np.ceil(_RING[1] * r)) + 1
    span = np.arange(-size, size + 1)
    dx, dy = (part.ravel() for part in np.meshgrid(span, span))
    column, row = np.rint(places).astype(int).T
    c, w = column[:, None] + dx, row[:, None] + dy
    seen = (c >= 0) & (c < columns) & (w >= 0) & (w < rows)
    values = copy.pixels[w.clip(0, rows - 1), c.clip(0, columns - 1)].astype(np.float64)
    # Below two pixels of radius a disc may miss every centre; its own pixel is in it then.
    scale = max(r, 1.5)
    return Crops(values, (c - places[:, :1]) / scale, (w - places[:, 1:]) / scale, seen)


def resample(image: Image, holes: FloatArray, radius: float, *, side: int, reach: float) -> Pixels:
    """Square crops (n, side, side) that reach as many radii from the centres of the holes."""
    from scipy.ndimage import map_coordinates

    copy = smaller(image, radius)
    line = (np.arange(side) + 0.5) / side * 2.0 - 1.0
    x, y = (part.ravel() * reach * radius / copy.pixel_size for part in np.meshgrid(line, line))
    places = copy.to_pixels(holes)
    where = [places[:, 1:] + y, places[:, :1] + x]
    result: Pixels = map_coordinates(copy.pixels, where, order=1, mode="nearest")
    return result.reshape(len(places), side, side)


def smaller(image: Image, radius: float) -> Image:
    """The image, binned where holes are larger than they need be."""
    step = max(1, int(radius / image.pixel_size / _ACROSS))
    return shrink(image, step)
