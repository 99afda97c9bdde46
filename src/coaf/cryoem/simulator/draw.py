"""Drawing squares: what a microscope would show of a specimen, as pixels."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from coaf.bandit.arrays import BoolArray, FloatArray, floats, mask, number
from coaf.cryoem.images import Image, Pixels
from coaf.cryoem.simulator.canvas import Canvas, expose, wander
from coaf.cryoem.simulator.grid import turn

Foil = Literal["carbon", "gold"]

MEAN_FREE_PATH = 300.0  # nm of ice that leave 1/e of the electrons inside the aperture
FOIL = {"carbon": 0.75, "gold": 0.25}  # the share of electrons that bare foil lets through
BARS = 0.02  # and that find their way round a bar
HIDING = 600.0  # nm of ice that hide what is below
_GRAINS = 12  # in a crystalline hole
_VISIBLE = 0.03  # contrast to the foil, as a share of vacuum, that a person sees


def _empty(*shape: int) -> FloatArray:
    return np.zeros(shape)


def _nowhere() -> BoolArray:
    return np.zeros(0, dtype=np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class Specimen:
    """What a square holds. Lengths in µm, positions relative to the square's centre.

    Holes are where they are seen: the lattice is rotated already (`lay_holes` does it).

    Parameters
    ----------
    holes : (n, 2)
        Centres.
    radius : (n,)
        Of each hole.
    thickness : (n,)
        Of the ice in each hole, in nm; 0 is an empty hole: vacuum.
    tilt_of_ice : (n, 2)
        How the thickness grows along x and y across a hole, in nm/µm. Left out, or where
        there is no ice: it does not.
    crystalline : (n,)
        Speckled by ice crystals. Left out: none.
    broken : (n,)
        The foil is torn around the hole. Left out: none.
    dirt : (m, 3)
        x, y and radius of opaque blobs.
    size
        Side of the square opening; beyond it are grid bars.
    angle
        Rotation of the opening, in radians.
    foil
        "carbon" lets most electrons through, "gold" few.
    covered : (k, 3)
        x, y and radius of discs of ice so thick that it hides the holes below.
    shade : (2,)
        Relative change of brightness along x and y, from the centre to half the side.

    Examples
    --------
    >>> Specimen(holes=[[0, 0], [3, 0]], radius=[0.6, 0.6], thickness=[30.0])
    Traceback (most recent call last):
    ...
    ValueError: thickness has shape (1,); with 2 holes it must have (2,)
    """

    holes: FloatArray
    radius: FloatArray
    thickness: FloatArray
    tilt_of_ice: FloatArray = field(default_factory=lambda: _empty(0, 2))
    crystalline: BoolArray = field(default_factory=_nowhere)
    broken: BoolArray = field(default_factory=_nowhere)
    dirt: FloatArray = field(default_factory=lambda: _empty(0, 3))
    size: float = 60.0
    angle: float = 0.0
    foil: Foil = "carbon"
    covered: FloatArray = field(default_factory=lambda: _empty(0, 3))
    shade: FloatArray = field(default_factory=lambda: _empty(2))

    def __post_init__(self) -> None:
        n = len(np.asarray(self.holes).reshape(-1, 2))
        for name, shape, low in (
            ("holes", (n, 2), None),
            ("radius", (n,), 0.0),
            ("thickness", (n,), 0.0),
            ("tilt_of_ice", (n, 2), None),
            ("dirt", (-1, 3), None),
            ("covered", (-1, 3), None),
            ("shade", (2,), None),
        ):
            value = np.asarray(getattr(self, name), dtype=np.float64)
            if value.size == 0 and (n == 0 or name in ("tilt_of_ice", "dirt", "covered")):
                value = np.zeros([max(k, 0) for k in shape])
            if value.ndim != len(shape) or any(
                k not in (-1, m) for k, m in zip(shape, value.shape, strict=True)
            ):
                want = str(shape).replace("-1", "any")
                raise ValueError(
                    f"{name} has shape {value.shape}; with {n} holes it must have {want}"
                )
            object.__setattr__(self, name, floats(name, value, ndim=len(shape), low=low))
        for name in ("crystalline", "broken"):
            value = np.asarray(getattr(self, name))
            flags = np.zeros(n, dtype=np.bool_) if value.size == 0 else value
            object.__setattr__(self, name, mask(name, flags, n))
        number("size", self.size, above=0.0)
        number("angle", self.angle)
        if self.foil not in FOIL:
            raise ValueError(f"foil is {self.foil!r}; it must be one of {', '.join(FOIL)}")


def lay_holes(*, size: float, spacing: float, radius: float, angle: float = 0.0) -> FloatArray:
    """Centres (n, 2) of a square lattice of holes that fit the opening, rotated with it.

    Examples
    --------
    >>> lay_holes(size=7.0, spacing=2.5, radius=0.6).shape
    (9, 2)
    """
    reach = int(max(0.0, size / 2.0 - radius) // spacing)
    line = np.arange(-reach, reach + 1) * spacing
    x, y = np.meshgrid(line, line)
    places: FloatArray = np.column_stack([x.ravel(), y.ravel()]) @ turn(angle)
    return places


def visible(specimen: Specimen) -> BoolArray:
    """Which holes (n,) a person would see: in the open, whole, not hidden, brighter than foil."""
    holes, radius = specimen.holes, specimen.radius
    turned = np.abs(holes @ turn(-specimen.angle)).max(axis=1, initial=0.0)
    inside = turned + radius < specimen.size / 2
    free = inside & ~specimen.broken
    for x, y, r in specimen.covered:
        free &= np.hypot(holes[:, 0] - x, holes[:, 1] - y) > r + radius
    for x, y, r in specimen.dirt:
        free &= np.hypot(holes[:, 0] - x, holes[:, 1] - y) > r + radius / 4
    rim = [1.4 * radius[:, None] * [np.cos(a), np.sin(a)] for a in np.arange(6) * np.pi / 3]
    around = np.mean([ice_around(specimen, holes + step) for step in rim], axis=0)
    foil = FOIL[specimen.foil] * np.exp(-around / MEAN_FREE_PATH)
    result: BoolArray = free & (np.exp(-specimen.thickness / MEAN_FREE_PATH) - foil > _VISIBLE)
    return result


def ice_around(specimen: Specimen, points: FloatArray) -> FloatArray:
    """Thickness (n,) in nm of the ice on the foil at points (n, 2): that of the holes near by."""
    if not len(specimen.holes):
        return np.zeros(len(points))
    from scipy.spatial import cKDTree

    k = min(8, len(specimen.holes))
    away, which = cKDTree(specimen.holes).query(points, k=k)
    away, which = away.reshape(len(points), k), which.reshape(len(points), k)
    weight = 1.0 / (away + np.median(specimen.radius)) ** 2
    result: FloatArray = (weight * specimen.thickness[which]).sum(axis=1) / weight.sum(axis=1)
    return result


def draw_square(
    specimen: Specimen,
    *,
    pixels: int = 1024,
    field: float | None = None,
    dose: float = 100.0,
    seed: int,
) -> Image:
    """Draw the image (pixels, pixels) of a square. Its centre is the stage's (0, 0).

    Parameters
    ----------
    pixels
        Rows, and columns.
    field
        Side of the image in µm. Left out: the opening and some of the bars.
    dose
        Electrons per pixel in vacuum: the fewer, the noisier.
    seed
        The same specimen and seed give the same pixels.

    Examples
    --------
    >>> specimen = Specimen(holes=[[0.0, 0.0]], radius=[2.0], thickness=[0.0], size=10.0)
    >>> image = draw_square(specimen, pixels=64, seed=0)
    >>> bool(image.pixels[32, 32] > image.pixels[32, 10] > image.pixels[0, 0])
    True
    """
    turned = abs(np.cos(specimen.angle)) + abs(np.sin(specimen.angle))
    field = 1.08 * specimen.size * turned if field is None else number("field", field, above=0.0)
    canvas = Canvas(pixels, field / pixels)
    # What is there and what the camera counts are drawn apart, so that another dose or
    # magnification shows the same specimen.
    shapes, noise = (np.random.default_rng([seed, k]) for k in range(2))
    picture = _foil(specimen, canvas)
    _holes(specimen, canvas, picture, shapes)
    for x, y, r in specimen.covered:
        hidden = np.exp(-HIDING / MEAN_FREE_PATH)
        canvas.blob(picture, (x, y), r, hidden, wander(shapes, 0.1))
    for x, y, r in specimen.dirt:
        canvas.blob(picture, (x, y), r, BARS, wander(shapes, 0.2))
    _bars(specimen, canvas, picture)
    return Image(expose(picture, dose=dose, rng=noise), canvas.pixel_size)


def _foil(specimen: Specimen, canvas: Canvas) -> Pixels:
    """Foil, and the ice on it, everywhere."""
    coarse = canvas.coarse()
    ice = ice_around(specimen, coarse.points())
    through = FOIL[specimen.foil] * np.exp(-ice / MEAN_FREE_PATH)
    return canvas.enlarge(through.reshape(coarse.pixels, coarse.pixels))


def _holes(specimen: Specimen, canvas: Canvas, picture: Pixels, rng: np.random.Generator) -> None:
    """Vacuum and ice in the holes, crystals in some, and tears around some."""
    places = list(zip(specimen.holes, specimen.radius, strict=True))
    for (x0, y0), radius in (places[i] for i in np.flatnonzero(specimen.broken)):
        canvas.blob(picture, (x0, y0), 1.6 * radius, 1.0, wander(rng, 0.5))
    for i, ((x0, y0), radius) in enumerate(places):
        grains = rng.random((_GRAINS, 3)) if specimen.crystalline[i] else None
        where, x, y = canvas.window((x0, y0), radius)
        if specimen.broken[i] or not x.size or not y.size:
            continue
        tilt_x, tilt_y = (specimen.tilt_of_ice[i] * (specimen.thickness[i] > 0)).astype(np.float32)
        ice = np.maximum(np.float32(specimen.thickness[i]) + tilt_x * x + tilt_y * y, 0.0)
        inside = np.exp(-ice / np.float32(MEAN_FREE_PATH))
        if grains is not None:
            inside = inside * _crystals(x, y, radius, grains)
        share = canvas.cover(x, y, radius)
        picture[where] += share * (inside - picture[where])


def _crystals(x: Pixels, y: Pixels, radius: float, grains: FloatArray) -> Pixels:
    """Grains that scatter out of the aperture, or less than the ice around them."""
    distance = radius * np.sqrt(grains[:, 0])
    angle = 2 * np.pi * grains[:, 1]
    depth = np.where(grains[:, 2] < 0.7, -0.45, 0.15)
    factor = np.ones((y.shape[0], x.shape[1]), dtype=np.float32)
    for d, a, e in zip(distance, angle, depth, strict=True):
        away = (x - d * np.cos(a)) ** 2 + (y - d * np.sin(a)) ** 2
        factor += np.float32(e) * np.exp(-away / np.float32(2 * (0.12 * radius) ** 2))
    return np.maximum(factor, np.float32(0.05))


def _bars(specimen: Specimen, canvas: Canvas, picture: Pixels) -> None:
    """Grid bars beyond the opening, whose corners are round, and the slope of the beam."""
    line = canvas.line().astype(np.float32)
    c, s = np.float32(np.cos(specimen.angle)), np.float32(np.sin(specimen.angle))
    across = np.abs(c * line[None, :] + s * line[:, None])
    along = np.abs(c * line[:, None] - s * line[None, :])
    corner = 0.08 * specimen.size
    straight = np.float32(specimen.size / 2 - corner)
    outside = np.hypot(np.maximum(across - straight, 0), np.maximum(along - straight, 0))
    outside += np.minimum(np.maximum(across, along) - straight, 0)
    share = np.clip((outside - corner) / canvas.pixel_size + 0.5, 0.0, 1.0)
    picture += share * (np.float32(BARS) - picture)
    slope = specimen.shade / (specimen.size / 2)
    picture *= np.maximum(1 + slope[0] * line[None, :] + slope[1] * line[:, None], 0).astype(
        np.float32
    )
