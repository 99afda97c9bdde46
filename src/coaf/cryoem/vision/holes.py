"""Finding the holes of a square image: its lattice first, then which nodes hold a hole."""

from dataclasses import dataclass

import numpy as np

from coaf.bandit.arrays import BoolArray, FloatArray, number
from coaf.cryoem.images import Image, Pixels, shrink
from coaf.cryoem.vision.lattice import Lattice, find_vectors
from coaf.cryoem.vision.matching import (
    average_cell,
    disc_profile,
    hole_of_cell,
    learn_profile,
    least_contrast,
    likeness,
)
from coaf.cryoem.vision.nodes import follow, holes_at, nodes_in
from coaf.cryoem.vision.opening import Opening, background, find_dirt, find_opening, inside

_SIDES = (512, 1024, 2048)  # pixels of the copies that are searched, until one is fine enough
_ACROSS = 3.0  # pixels a hole's radius must have in a copy that is
_LITTLE = 0.02  # of the image: an opening smaller than this is none
_FAINT = 0.1  # of the average hole's contrast: texture of the foil, not ice in a hole
_BARE = 0.15  # of it: less, against the foil on one side, is no hole either
_FEW = 4  # holes; fewer are no lattice


@dataclass(frozen=True, slots=True, eq=False)
class FoundHoles:
    """What a square image shows.

    Attributes
    ----------
    holes : (n, 2)
        Centres as (column, row) in pixels; `image.to_stage(found.holes)` gives µm.
    radius
        Of the holes, in µm; 0 where there are none.
    confidence : (n,)
        Likeness to the average hole, from 0 to 1.
    lattice
        None where there is none.
    opening
        The square's opening, for distances to its edge.
    dirt : (m, 2)
        Centres of dark blobs, as (column, row) in pixels.
    why
        Why there are no holes; empty where there are.
    """

    holes: FloatArray
    radius: float
    confidence: FloatArray
    lattice: Lattice | None
    opening: Opening
    dirt: FloatArray
    why: str = ""


def find_holes(
    image: Image, *, radius: float | None = None, spacing: float | None = None
) -> FoundHoles:
    """Find the holes of a square image, at any rotation.

    Parameters
    ----------
    image
        Of one square: pixels in which holes are at least 3 across.
    radius, spacing
        Of the holes, in µm, where known; they make a hard image easier, and need not be exact.

    Returns
    -------
    FoundHoles
        A square without holes is no error: `why` says what was seen instead.
    """
    if radius is not None:
        number("radius", radius, above=0.0)
    if spacing is not None:
        number("spacing", spacing, above=0.0)
    best: FoundHoles | None = None
    for side in _SIDES:
        step = max(1, -(-max(image.pixels.shape) // side))
        copy = shrink(image, step)
        best = _search(image, copy, radius, spacing)
        # The coarsest copy that shows holes well is the quickest, and the least noisy.
        if step == 1 or best.radius >= _ACROSS * copy.pixel_size:
            break
    assert best is not None
    return best


def _search(image: Image, copy: Image, radius: float | None, spacing: float | None) -> FoundHoles:
    """Search one copy of an image."""
    from scipy.spatial import cKDTree

    scale = copy.pixel_size
    opening = find_opening(copy)
    blobs, dark = find_dirt(copy.pixels, opening.mask)
    dirt = image.to_pixels(copy.to_stage(blobs))
    mask = opening.mask & ~dark
    inner = inside(mask)
    if inner.mean() < _LITTLE:
        return _nothing(opening, dirt, "the image shows no opening of a square")
    flat = _flat(copy.pixels, inner, max(mask.shape) / 24.0)
    vectors, _ = find_vectors(
        flat,
        spacing=None if spacing is None else spacing / scale,
        radius=None if radius is None else radius / scale,
    )
    if not vectors.any():
        return _nothing(opening, dirt, "nothing in the opening repeats as a lattice of holes would")
    holes, size, height, vectors, origin = _match(copy.pixels, mask, inner, vectors)
    if len(holes) < _FEW:
        return _nothing(opening, dirt, f"only {len(holes)} places look like a hole")
    lattice = Lattice(vectors * scale, copy.to_stage(origin)[0])
    # Dark spots in a hole are crystals of ice: its own trouble, not its neighbours'.
    apart = cKDTree(holes).query(blobs)[0] > size if len(blobs) else np.zeros(0, dtype=np.bool_)
    holes = image.to_pixels(copy.to_stage(holes))
    return FoundHoles(holes, size * scale, height, lattice, opening, dirt[apart])


def _match(
    pixels: Pixels, mask: BoolArray, inner: BoolArray, vectors: FloatArray
) -> tuple[FloatArray, float, FloatArray, FloatArray, FloatArray]:
    """Holes (n, 2), their radius and likeness (n,), the lattice's vectors and origin; in pixels."""
    between = float(np.linalg.norm(vectors, axis=1).min())
    flat = _flat(pixels, mask, 0.8 * between)
    origin, radius, sign = hole_of_cell(average_cell(flat, inner, vectors), vectors)
    flat = sign * flat
    reach = max(radius + 1.5, min(1.7 * radius + 1.0, 0.5 * between))
    index, places = nodes_in(vectors, origin, mask)
    if len(index) < _FEW:
        return np.zeros((0, 2)), radius, np.zeros(0), vectors, origin
    like = likeness(flat, mask, disc_profile(radius, reach), reach)
    places, agree = follow(like, index, places, between)
    if agree.sum() < _FEW:
        return np.zeros((0, 2)), radius, np.zeros(0), vectors, origin
    # The average hole of this image, fringes and all, is a better template than a plain disc.
    profile = learn_profile(flat, mask, places[agree], reach)
    like = likeness(flat, mask, profile, reach, faint=_FAINT)
    near = max(1.0, 0.12 * between)
    found, height, chosen = holes_at(like, places, vectors, agree, reach=near)
    chosen[chosen] = ~_shadows(flat, mask, profile, found[chosen], radius, reach)
    origin = places[agree][np.argmin(np.abs(index[agree]).sum(axis=1))]
    return found[chosen], radius, height[chosen], vectors, origin


def _shadows(
    flat: Pixels,
    mask: BoolArray,
    profile: FloatArray,
    places: FloatArray,
    radius: float,
    reach: float,
) -> BoolArray:
    """Which places (n,) are bare foil at the edge of the opening."""
    from scipy.ndimage import distance_transform_edt

    column, row = np.rint(places).astype(int).T.clip(0, np.array(mask.shape[::-1])[:, None] - 1)
    edge = np.zeros(len(places), dtype=np.bool_)
    if not mask.all():
        edge = distance_transform_edt(mask)[row, column] < reach + 3.0
    usual = profile[: int(0.8 * radius) + 1].mean() - profile[int(np.ceil(1.2 * radius)) :].mean()
    result = edge.copy()
    result[edge] = least_contrast(flat, mask, places[edge], radius, reach) < _BARE * usual
    return result


def _flat(pixels: Pixels, mask: BoolArray, width: float) -> Pixels:
    """Brightness relative to its surroundings, 0 outside the mask, without extremes."""
    ratio = pixels / background(pixels, mask, width) - 1.0
    low, high = np.percentile(ratio[mask], [0.5, 99.5])
    result: Pixels = np.where(mask, np.clip(ratio, low, high), 0.0).astype(np.float32)
    return result


def _nothing(opening: Opening, dirt: FloatArray, why: str) -> FoundHoles:
    return FoundHoles(np.zeros((0, 2)), 0.0, np.zeros(0), None, opening, dirt, why)
