"""How bright vacuum is in a square image, from its holes."""

import numpy as np

from coaf.bandit.arrays import FloatArray

_FEW = 5  # empty holes that say how the beam's brightness changes over the square
_LEVEL = 0.025  # how well, in ln brightness, they agree if they are empty
_STEEP = 0.25  # in ln brightness from the middle to the rim: no beam is that uneven
_WIDE = 0.15  # of the square that three holes must span to tell a slope
_MOST = 0.3  # of the holes that stand out must be on it
_TRIES = 300


def vacuum_of(means: FloatArray) -> float:
    """The brightness of vacuum, from the means (n,) of holes: that of the brightest.

    Examples
    --------
    >>> vacuum_of(np.array([60.0, 70.0, 100.0, 100.0]))
    100.0
    """
    bright = float(np.percentile(means, 98.0))
    if bright <= 0.0:
        raise ValueError(
            "the holes have no brightness above 0: give vacuum, the pixel value of an empty hole, "
            "or an image whose pixels count electrons"
        )
    return bright


def vacuum_at(holes: FloatArray, means: FloatArray, foil: FloatArray) -> FloatArray:
    """The brightness of vacuum (n,) at each hole, from the means (n,) in and around holes.

    Empty holes stand out from the foil around them, and all have the same brightness but for the
    beam's own slope, which is taken from them. Where few are empty, vacuum is taken as constant:
    a slope of the beam and one of the ice cannot be told apart.
    """
    level = vacuum_of(means)
    constant = np.full(len(means), level)
    lit = (means > 0.05 * level) & (foil > 0.0)
    if lit.sum() < 4 * _FEW:
        return constant
    where = (holes - holes.mean(axis=0)) / max(float(np.ptp(holes, axis=0).max()) / 2.0, 1e-9)
    A = np.column_stack([np.ones(len(holes)), where])
    ratio = np.log(means[lit] / foil[lit])
    middle = np.median(ratio)
    out = ratio > middle + 2.5 * 1.48 * np.median(np.abs(ratio - middle))
    bright = np.log(means[lit])
    plane, agree = _envelope(A[lit][out], bright[out], A[lit], bright)
    flat = _supports(np.array([np.log(level), 0.0, 0.0]), A[lit][out], bright[out], A[lit], bright)
    if plane is None or agree < max(_FEW, _MOST * out.sum(), flat + _FEW / 2.0):
        return constant
    result: FloatArray = np.exp(A @ plane)
    return result


def _envelope(
    a: FloatArray, b: FloatArray, every: FloatArray, bright: FloatArray
) -> tuple[FloatArray | None, float]:
    """The plane through most of the holes that stand out (a, b), with almost none above it."""
    best: FloatArray | None = None
    most = -np.inf
    if len(a) < _FEW:
        return best, most
    # Planes through three of them, the same three for the same holes.
    rng = np.random.default_rng(0)
    for _ in range(_TRIES):
        three = rng.choice(len(a), 3, replace=False)
        if abs(np.linalg.det(a[three])) < _WIDE:
            continue
        plane: FloatArray = np.linalg.solve(a[three], b[three]).astype(np.float64)
        for _ in range(2):
            near = np.abs(b - a @ plane) < _LEVEL
            if near.sum() < _FEW:
                break
            plane = np.linalg.lstsq(a[near], b[near], rcond=None)[0].astype(np.float64)
        if np.hypot(*plane[1:]) > _STEEP:
            continue
        agree = _supports(plane, a, b, every, bright)
        if agree > most:
            best, most = plane, agree
    return best, most


def _supports(
    plane: FloatArray, a: FloatArray, b: FloatArray, every: FloatArray, bright: FloatArray
) -> float:
    """How many empty holes a plane explains, less what is brighter: nothing is but noise."""
    near = np.abs(b - a @ plane) < _LEVEL
    above = bright - every @ plane > 2.0 * _LEVEL
    return float(near.sum() - 3.0 * above.sum())
