"""What pixels say of holes: numbers near 1, whatever the magnification."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import BoolArray, FloatArray, floats, number
from coaf.cryoem.images import Image, Pixels
from coaf.cryoem.vision.crops import INSIDE, Crops, crop, resample
from coaf.cryoem.vision.holes import FoundHoles, find_holes
from coaf.cryoem.vision.vacuum import vacuum_at, vacuum_of

HOLE_FEATURES = (
    "ice",  # -ln(mean in the hole / vacuum): thickness in mean free paths
    "spread",  # sd in the hole beyond shot noise and slope, relative to its mean
    "contrast",  # hole less the foil around it, relative to vacuum
    "gradient",  # change of brightness across the hole, relative to vacuum
    "edge",  # distance to the nearest bar, in half sides of the opening
    "dirt",  # exp(-distance to the nearest dirt / spacing)
    "neighbours",  # mean ice of the nearest six holes
    "radial",  # distance to the centre of the opening, in half its sides
)

_DARKEST = 0.01  # of vacuum: less is noise, and has no logarithm
_CELLS = 4  # a side, into which a hole is cut to tell structure from shot noise
_NEAREST = 6
_SIDE, _REACH = 64, 1.5  # of a crop for a network: pixels, and radii from its centre


def hole_features(
    image: Image,
    holes: npt.ArrayLike,
    radius: float,
    *,
    found: FoundHoles | None = None,
    vacuum: float | None = None,
) -> FloatArray:
    """Features (n, 8), see `HOLE_FEATURES`, of holes at stage positions (n, 2).

    Parameters
    ----------
    image, holes, radius
        The square image, and where its holes are, in µm.
    found
        What `find_holes` said of the image, for opening and dirt. Left out: it is asked again.
    vacuum
        The pixel value of an empty hole. Left out: that of the brightest of these holes, with the
        slope of the beam over the square where enough of them are empty.
    """
    holes = floats("holes", np.asarray(holes, dtype=np.float64).reshape(-1, 2), ndim=2)
    number("radius", radius, above=0.0)
    if not len(holes):
        return np.zeros((0, len(HOLE_FEATURES)))
    found = find_holes(image, radius=radius) if found is None else found
    crops = crop(image, holes, radius)
    inside = crops.disc
    mean = _mean(crops.values, inside)
    foil = _mean(crops.values, crops.ring)
    if vacuum is None:
        light = vacuum_at(holes, mean, foil)
    else:
        light = np.full(len(holes), number("vacuum", vacuum, above=0.0))
    ice = -np.log(np.maximum(mean / light, _DARKEST))
    slope, spread = _structure(crops, inside, mean, light)
    contrast = (mean - foil) / light
    half = found.opening.side / 2.0
    edge = np.minimum(found.opening.edge_distance(holes) / half, 1.0)
    radial = np.hypot(*(holes - found.opening.centre).T) / half
    dirt = _nearness(image, holes, found, radius)
    columns = (ice, spread, contrast, slope, edge, dirt, _neighbours(holes, ice), radial)
    return np.column_stack(columns)


def paper_features(
    image: Image,
    holes: npt.ArrayLike,
    radius: float,
    *,
    score: Callable[[Pixels], FloatArray],
    vacuum: float | None = None,
) -> FloatArray:
    """The paper's two features (n, 2): mean pixel value relative to vacuum, and a CNN's score.

    `score` takes crops (n, 64, 64), relative to vacuum, that reach 1.5 radii from the centres, and
    answers (n,); `cnn.load_scorer` makes one of weights on disk.
    """
    holes = floats("holes", np.asarray(holes, dtype=np.float64).reshape(-1, 2), ndim=2)
    number("radius", radius, above=0.0)
    if not len(holes):
        return np.zeros((0, 2))
    crops = crop(image, holes, radius)
    mean = _mean(crops.values, crops.disc)
    light = vacuum_of(mean) if vacuum is None else number("vacuum", vacuum, above=0.0)
    pictures = resample(image, holes, radius, side=_SIDE, reach=_REACH) / np.float32(light)
    scores = floats("scores of the network", score(pictures), ndim=1)
    if scores.shape != (len(holes),):
        raise ValueError(f"the network gave {scores.size} scores for {len(holes)} holes")
    return np.column_stack([mean / light, scores])


def _mean(values: FloatArray, where: BoolArray) -> FloatArray:
    """Means (n,) of the chosen pixels of each hole."""
    result: FloatArray = (values * where).sum(axis=1) / np.maximum(where.sum(axis=1), 1)
    return result


def _structure(
    crops: Crops, inside: BoolArray, mean: FloatArray, light: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Slope and spread (n,) of the brightness in each hole, less what the pixels' noise adds.

    The spread is that of the means of small cells, so that pixel size does not move it.
    """
    rest = (crops.values - mean[:, None]) * inside
    arms = [np.maximum((along**2 * inside).sum(axis=1), 1e-9) for along in (crops.x, crops.y)]
    slopes = [
        (rest * along).sum(axis=1) / arm
        for along, arm in zip((crops.x, crops.y), arms, strict=True)
    ]
    rest = (rest - slopes[0][:, None] * crops.x - slopes[1][:, None] * crops.y) * inside
    cell = [
        np.clip(((part / INSIDE + 1.0) / 2.0 * _CELLS).astype(int), 0, _CELLS - 1)
        for part in (crops.x, crops.y)
    ]
    n, cells = len(mean), _CELLS**2
    which = np.arange(n)[:, None] * cells + cell[1] * _CELLS + cell[0]
    flat, weight = which[inside], rest[inside]
    count = np.bincount(flat, minlength=n * cells).reshape(n, cells)
    total = np.bincount(flat, weights=weight, minlength=n * cells).reshape(n, cells)
    square = np.bincount(flat, weights=weight**2, minlength=n * cells).reshape(n, cells)
    between = (total**2 / np.maximum(count, 1)).sum(axis=1)
    within = square.sum(axis=1) - between
    pixels, used = count.sum(axis=1), (count > 0).sum(axis=1)
    noise = within / np.maximum(pixels - used, 1)
    # Analysis of variance: noise is in the sum of squares once for each cell, but for the three
    # numbers, mean and slopes, that were fitted.
    signal = np.maximum(between - np.maximum(used - 3, 0) * noise, 0.0) / np.maximum(pixels, 1)
    chance = noise / arms[0] + noise / arms[1]  # what noise alone adds to a squared slope
    steep = np.sqrt(np.maximum(slopes[0] ** 2 + slopes[1] ** 2 - chance, 0.0))
    return 2.0 * steep / light, np.sqrt(signal) / np.maximum(mean, _DARKEST * light)


def _nearness(image: Image, holes: FloatArray, found: FoundHoles, radius: float) -> FloatArray:
    """1 on dirt, falling to 0 within a few holes of it."""
    from scipy.spatial import cKDTree

    if not len(found.dirt):
        return np.zeros(len(holes))
    spacing = 4.0 * radius if found.lattice is None else found.lattice.spacing
    away = cKDTree(image.to_stage(found.dirt)).query(holes)[0]
    result: FloatArray = np.exp(-away / spacing)
    return result


def _neighbours(holes: FloatArray, ice: FloatArray) -> FloatArray:
    """Mean ice (n,) of the nearest holes; of the hole itself where it is alone."""
    from scipy.spatial import cKDTree

    k = min(_NEAREST, len(holes) - 1)
    if k == 0:
        return ice.copy()
    which = cKDTree(holes).query(holes, k=k + 1)[1][:, 1:]
    result: FloatArray = ice[which].mean(axis=1)
    return result
