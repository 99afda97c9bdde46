"""The nodes of a lattice in a picture: where they are, bent as foil is, and which hold a hole."""

import numpy as np

from coaf.bandit.arrays import BoolArray, FloatArray
from coaf.cryoem.images import Pixels
from coaf.cryoem.vision.matching import peaks_near

_FAR = 3.0  # spreads from the fit at which a place has no more say


def nodes_in(
    vectors: FloatArray, origin: FloatArray, mask: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Indices (n, 2) and places (n, 2) as (column, row) of the nodes inside a mask."""
    rows, columns = mask.shape
    corners = np.array([[0, 0], [columns, 0], [0, rows], [columns, rows]]) - origin
    index = corners @ np.linalg.inv(vectors)
    low, high = np.floor(index.min(axis=0)), np.ceil(index.max(axis=0))
    i, j = np.meshgrid(*(np.arange(a, b + 1) for a, b in zip(low, high, strict=True)))
    k = np.column_stack([i.ravel(), j.ravel()])
    place = k @ vectors + origin
    column, row = np.rint(place).astype(int).T
    inside = (column >= 0) & (column < columns) & (row >= 0) & (row < rows)
    inside[inside] = mask[row[inside], column[inside]]
    return k[inside], place[inside]


def bend(
    index: FloatArray, places: FloatArray, weight: FloatArray, *, degree: int
) -> tuple[FloatArray, BoolArray]:
    """Places (n, 2) of all nodes by a smooth map from their indices, and which nodes agree with it.

    Foil sags and lenses distort, so a polynomial of degree 2 or 3 follows better than two vectors.
    Nodes of weight 0, and those far from the rest, have no say.
    """
    middle = index.mean(axis=0)
    u, v = ((index - middle) / (np.abs(index - middle).max() + 1e-9)).T
    powers = [(i, j) for i in range(degree + 1) for j in range(degree + 1 - i)]
    A = np.column_stack([u**i * v**j for i, j in powers])
    agree = weight > 0.0
    fit = places
    for _ in range(5):
        w = (weight * agree)[:, None]
        fit = A @ np.linalg.lstsq(w * A, w * places, rcond=None)[0]
        away = np.hypot(*(places - fit).T)
        spread = 1.48 * np.median(away[agree]) + 0.1
        agree = (weight > 0.0) & (away < _FAR * spread)
    return fit, agree


def follow(
    like: Pixels, index: FloatArray, places: FloatArray, spacing: float
) -> tuple[FloatArray, BoolArray]:
    """Places of the nodes after following the peaks of the likeness, and which nodes have one."""
    agree = np.zeros(len(index), dtype=np.bool_)
    for degree, reach, enough in ((1, 0.3, 4), (2, 0.25, 25), (3, 0.2, 60)):
        found, height = peaks_near(like, places, reach * spacing)
        good = height > max(0.5 * np.median(height), 0.2)
        if good.sum() < enough:
            break
        places, agree = bend(index, found, np.where(good, height, 0.0), degree=degree)
    return places, agree


def holes_at(
    like: Pixels, places: FloatArray, vectors: FloatArray, agree: BoolArray, *, reach: float
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """The peak at each node, its height, and whether it is a hole; none is if all may be chance.

    What is seen half-way between nodes is foil, so its peaks say what noise and texture can do.
    """
    found, height = peaks_near(like, places, reach)
    halves = np.array([[0.5, 0.5], [0.5, 0.0], [0.0, 0.5]])
    foil = np.concatenate([peaks_near(like, places + h @ vectors, reach)[1] for h in halves])
    middle, most = np.percentile(foil, [50.0, 90.0])
    spread = max((most - middle) / 1.28, 1e-3)
    clear = middle + 3.0 * spread
    surplus = (height > clear).mean() - (foil > clear).mean()
    if surplus < max(0.05, 4.0 / len(height)):
        return found, height, np.zeros(len(height), dtype=np.bool_)
    usual = float(np.median(height[agree]))
    enough = min(middle + 4.0 * spread, 0.5 * (max(middle, 0.0) + usual))
    return found, height, height > enough
