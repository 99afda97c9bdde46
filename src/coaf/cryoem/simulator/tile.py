"""Drawing atlas tiles: many squares, each a few dozen pixels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from coaf.bandit.arrays import number
from coaf.cryoem.images import Image, Pixels
from coaf.cryoem.simulator.canvas import Canvas, expose, wander
from coaf.cryoem.simulator.draw import BARS
from coaf.cryoem.simulator.grid import turn

_THROUGH_THICK = 0.12  # the share of electrons that a square of thick ice lets through


@dataclass(frozen=True, slots=True)
class TileSquare:
    """A square of a tile.

    Parameters
    ----------
    x, y
        Its centre, in µm from the tile's.
    size, angle
        Its side in µm, and its rotation in radians.
    brightness
        The share of electrons that its foil and ice let through.
    state
        "broken": the foil is torn, and vacuum shows; "thick": ice lets almost nothing through.
    """

    x: float
    y: float
    size: float
    angle: float = 0.0
    brightness: float = 0.6
    state: Literal["ok", "broken", "thick"] = "ok"

    def __post_init__(self) -> None:
        number("size", self.size, above=0.0)
        number("brightness", self.brightness, low=0.0)
        if self.state not in ("ok", "broken", "thick"):
            raise ValueError(f"state is {self.state!r}; it must be ok, broken or thick")


def draw_tile(
    squares: Sequence[TileSquare],
    *,
    pixels: int = 1024,
    field: float,
    dose: float = 50.0,
    seed: int,
) -> Image:
    """Draw the image (pixels, pixels) of a part of the atlas, `field` µm wide.

    Its centre is the stage's (0, 0). The same squares and seed give the same pixels.

    Examples
    --------
    >>> tile = draw_tile([TileSquare(0.0, 0.0, 60.0)], pixels=64, field=120.0, seed=0)
    >>> bool(tile.pixels[32, 32] > tile.pixels[2, 2])
    True
    """
    canvas = Canvas(pixels, number("field", field, above=0.0) / pixels)
    shapes, noise = (np.random.default_rng([seed, k]) for k in range(2))
    picture = np.full((pixels, pixels), BARS, dtype=np.float32)
    for square in squares:
        _square(square, canvas, picture, shapes)
    return Image(expose(picture, dose=dose, rng=noise), canvas.pixel_size)


def _square(square: TileSquare, canvas: Canvas, picture: Pixels, rng: np.random.Generator) -> None:
    slope, tear = rng.normal(0.0, 0.08, 2), wander(rng, 0.3)
    torn_at = (rng.uniform(-0.2, 0.2, (1, 2)) * square.size @ turn(square.angle))[0]
    where, x, y = canvas.window((square.x, square.y), 0.75 * square.size)
    if not x.size or not y.size:
        return
    c, s = np.float32(np.cos(square.angle)), np.float32(np.sin(square.angle))
    away = np.maximum(np.abs(c * x + s * y), np.abs(c * y - s * x))
    share = np.clip((np.float32(square.size / 2) - away) / canvas.pixel_size + 0.5, 0.0, 1.0)
    through = _THROUGH_THICK if square.state == "thick" else square.brightness
    inside = np.float32(through) * (1 + (slope[0] * x + slope[1] * y) / np.float32(square.size / 2))
    inside = np.broadcast_to(inside, share.shape).astype(np.float32)
    if square.state == "broken":
        part = Canvas(canvas.pixels, canvas.pixel_size)
        whole = np.zeros_like(picture)
        whole[where] = inside
        part.blob(
            whole, (square.x + torn_at[0], square.y + torn_at[1]), 0.3 * square.size, 1.0, tear
        )
        inside = whole[where]
    picture[where] += share * (inside - picture[where])
