"""The smallest circle around points: what beam shift must reach, and from where."""

from itertools import combinations
from math import hypot, inf

import numpy as np

from coaf.bandit.arrays import FloatArray

Point = tuple[float, float]


def smallest_circle(points: FloatArray) -> tuple[Point, float]:
    """Centre and radius of the smallest circle around points (n, 2).

    The circle around a few of them takes in the farthest point until none is outside; it grows
    with every step, so that it ends.

    Examples
    --------
    >>> smallest_circle(np.array([[0.0, 0.0], [4.0, 0.0], [2.0, 1.0]]))
    ((2.0, 0.0), 2.0)
    """
    x, y = points[:, 0], points[:, 1]
    support: tuple[Point, ...] = ((float(x[0]), float(y[0])),)
    (cx, cy), radius = support[0], 0.0
    while True:
        apart = np.hypot(x - cx, y - cy)
        far = int(apart.argmax())
        wider = float(apart[far])
        # Rounding may leave a point just outside of the circle that it holds itself.
        new = (float(x[far]), float(y[far]))
        if wider <= radius * (1.0 + 1e-12) + 1e-12 or new in support:
            return (cx, cy), wider
        (cx, cy), grown, support = _around((*support, new))
        if grown <= radius:
            apart = np.hypot(x - cx, y - cy)
            return (cx, cy), float(apart.max())
        radius = grown


def _around(points: tuple[Point, ...]) -> tuple[Point, float, tuple[Point, ...]]:
    """The smallest circle around at most four points, and those that hold it."""
    best: tuple[Point, float, tuple[Point, ...]] = (points[0], inf, points)
    for count in (2, 3):
        for held in combinations(points, count):
            centre = _through(held)
            if centre is None:
                continue
            radius = max(hypot(x - centre[0], y - centre[1]) for x, y in held)
            reach = max(hypot(x - centre[0], y - centre[1]) for x, y in points)
            if reach <= radius * (1.0 + 1e-10) + 1e-12 and radius < best[1]:
                best = (centre, radius, held)
    return best


def _through(points: tuple[Point, ...]) -> Point | None:
    """The centre of the smallest circle through two or three points; None if on a line."""
    (ax, ay), (bx, by) = points[:2]
    if len(points) == 2:
        return (ax + bx) / 2.0, (ay + by) / 2.0
    bx, by, cx, cy = bx - ax, by - ay, points[2][0] - ax, points[2][1] - ay
    double = 2.0 * (bx * cy - by * cx)
    if abs(double) < 1e-12 * (hypot(bx, by) * hypot(cx, cy) + 1e-300):
        return None
    b, c = bx * bx + by * by, cx * cx + cy * cy
    return ax + (cy * b - by * c) / double, ay + (bx * c - cx * b) / double
