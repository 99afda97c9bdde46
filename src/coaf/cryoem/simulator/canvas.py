"""A canvas in µm with soft-edged shapes, and the camera that exposes it."""

from dataclasses import dataclass

import numpy as np

from coaf.bandit.arrays import FloatArray, number
from coaf.cryoem.images import Pixels

_BLUR = 0.6  # px, the camera's point spread
_READOUT = 2.0  # electrons, the camera's own noise
_COARSE = 96  # points a side at which slow changes are computed


@dataclass(frozen=True, slots=True)
class Canvas:
    """A square of `pixels` by `pixels`, centred on (0, 0), `pixel_size` µm from one to the next.

    Shapes know nothing of pixels, so that one specimen looks the same at every magnification.
    """

    pixels: int
    pixel_size: float

    def __post_init__(self) -> None:
        if int(self.pixels) != self.pixels or self.pixels < 16:
            raise ValueError(f"pixels is {self.pixels}; an image has at least 16 a side")

    def line(self) -> FloatArray:
        """The µm of the columns; the rows have the same."""
        place = np.arange(self.pixels, dtype=np.float64) - (self.pixels - 1) / 2.0
        result: FloatArray = place * np.float64(self.pixel_size)
        return result

    def coarse(self) -> "Canvas":
        """The same field with few pixels, for what changes slowly."""
        few = min(_COARSE, self.pixels)
        return Canvas(few, self.pixel_size * self.pixels / few)

    def points(self) -> FloatArray:
        """µm (pixels², 2) of every pixel, row by row."""
        x, y = np.meshgrid(self.line(), self.line())
        return np.column_stack([x.ravel(), y.ravel()])

    def enlarge(self, values: FloatArray) -> Pixels:
        """Values of the coarse canvas, linear in between."""
        coarse = self.coarse()
        place = np.clip(self.line() / coarse.pixel_size + (coarse.pixels - 1) / 2, 0, None)
        low = np.minimum(place.astype(int), coarse.pixels - 2)
        share = np.minimum(place - low, 1.0)
        weights = np.zeros((self.pixels, coarse.pixels), dtype=np.float32)
        every = np.arange(self.pixels)
        weights[every, low] = 1.0 - share
        weights[every, low + 1] = share
        result: Pixels = weights @ values.astype(np.float32) @ weights.T
        return result

    def window(
        self, centre: tuple[float, float], reach: float
    ) -> tuple[tuple[slice, slice], Pixels, Pixels]:
        """The pixels within reach of a place: their slices, and their x and y from it in µm."""
        line = self.line()
        cut = [
            slice(
                *np.searchsorted(line, (at - reach - self.pixel_size, at + reach + self.pixel_size))
            )
            for at in centre
        ]
        x = (line[cut[0]] - centre[0])[None, :].astype(np.float32)
        y = (line[cut[1]] - centre[1])[:, None].astype(np.float32)
        return (cut[1], cut[0]), x, y

    def cover(self, x: Pixels, y: Pixels, outline: "float | Pixels") -> Pixels:
        """How much of each pixel lies within the outline: 1 inside, 0 outside, soft between."""
        result: Pixels = np.clip((outline - np.hypot(x, y)) / self.pixel_size + 0.5, 0.0, 1.0)
        return result

    def blob(
        self,
        picture: Pixels,
        centre: tuple[float, float],
        radius: float,
        value: float,
        shape: FloatArray,
    ) -> None:
        """Paint a blob whose outline wanders: `shape` (waves, 2) is how much, and where."""
        if radius <= 0.0:
            return
        where, x, y = self.window(centre, radius * (1.0 + np.abs(shape[:, 0]).sum()))
        if not x.size or not y.size:
            return
        angle = np.arctan2(y, x)
        outline = np.ones_like(angle)
        for k, (size, phase) in enumerate(shape, start=2):
            outline += np.float32(size) * np.cos(k * angle + np.float32(phase))
        share = self.cover(x, y, np.float32(radius) * outline)
        picture[where] += share * (np.float32(value) - picture[where])


def wander(rng: np.random.Generator, rough: float) -> FloatArray:
    """A random outline for `Canvas.blob`: four waves of about `rough` times the radius."""
    sizes = rough * rng.standard_normal(4) / np.arange(2, 6)
    return np.column_stack([sizes, rng.uniform(0.0, 2 * np.pi, 4)])


def expose(picture: Pixels, *, dose: float, rng: np.random.Generator) -> Pixels:
    """What the camera counts of a picture (1 is vacuum): blurred, with shot and readout noise."""
    from scipy.ndimage import gaussian_filter

    number("dose", dose, above=0.0)
    sharp = np.maximum(picture, 0.0)
    blurred = gaussian_filter(sharp, _BLUR, mode="nearest", truncate=3.0)
    counts = rng.poisson(dose * blurred).astype(np.float32)
    counts += np.float32(_READOUT) * rng.standard_normal(counts.shape, dtype=np.float32)
    result: Pixels = counts
    return result
