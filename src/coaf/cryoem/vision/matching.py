"""How much each place of a picture looks like a hole."""

import numpy as np

from coaf.bandit.arrays import BoolArray, FloatArray
from coaf.cryoem.images import Pixels

_CELL = 48  # bins a side of the average cell


def average_cell(flat: Pixels, mask: BoolArray, vectors: FloatArray) -> FloatArray:
    """The average (bins, bins) of all cells of the lattice, in its own coordinates."""
    from scipy.ndimage import gaussian_filter

    row, column = np.nonzero(mask)
    index = np.column_stack([column, row]) @ np.linalg.inv(vectors)
    i, j = ((index - np.floor(index)) * _CELL).astype(np.int64).clip(0, _CELL - 1).T
    which = j * _CELL + i
    count = np.bincount(which, minlength=_CELL**2)
    total = np.bincount(which, weights=flat[mask], minlength=_CELL**2)
    cell = np.where(count > 0, total / np.maximum(count, 1), 0.0).reshape(_CELL, _CELL)
    result: FloatArray = gaussian_filter(cell, 1.0, mode="wrap")
    return result


def hole_of_cell(cell: FloatArray, vectors: FloatArray) -> tuple[FloatArray, float, int]:
    """Where (2,) in the lattice's cell the hole is, its radius, both in pixels, and its sign.

    The sign is 1 where holes are brighter than foil. They are the lesser part of the cell.
    """
    middle = np.median(cell)
    sign = 1 if cell.max() - middle >= middle - cell.min() else -1
    high = sign * (cell - middle)
    inside = high > 0.5 * np.percentile(high, 98.0)
    weight = np.where(inside, high, 0.0)
    # Means on a circle: the hole may lie across the border of the cell.
    turn = np.exp(2j * np.pi * (np.arange(_CELL) + 0.5) / _CELL)
    place = np.array([np.angle((weight * turn).sum()), np.angle((weight * turn[:, None]).sum())])
    area = inside.mean() * abs(np.linalg.det(vectors))
    return (place / (2 * np.pi)) @ vectors, float(np.sqrt(area / np.pi)), sign


def disc_profile(radius: float, reach: float) -> FloatArray:
    """The profile of a plain hole: 1 inside, 0 outside, by distance in pixels."""
    distance = np.arange(int(np.ceil(reach)) + 2, dtype=np.float64)
    return np.clip(radius - distance + 0.5, 0.0, 1.0)


def learn_profile(flat: Pixels, mask: BoolArray, places: FloatArray, reach: float) -> FloatArray:
    """The mean of pixels by their distance from the nearest of the places (n, 2)."""
    size = int(np.ceil(reach)) + 1
    span = np.arange(-size, size + 1)
    x, y = (part.ravel() for part in np.meshgrid(span, span))
    total, count = np.zeros(size + 1), np.zeros(size + 1)
    rows, columns = mask.shape
    for at in places:
        column, row = np.rint(at).astype(int)
        c, r = column + x, row + y
        ok = (c >= 0) & (c < columns) & (r >= 0) & (r < rows)
        c, r = c[ok], r[ok]
        ok = mask[r, c]
        c, r = c[ok], r[ok]
        distance = np.hypot(c - at[0], r - at[1])
        low = np.minimum(distance.astype(int), size)
        share = np.minimum(distance - low, 1.0)
        keep = low < size
        for bin_, weight in ((low, 1.0 - share), (np.minimum(low + 1, size), share)):
            total += np.bincount(
                bin_[keep], weights=(weight * flat[r, c])[keep], minlength=size + 1
            )
            count += np.bincount(bin_[keep], weights=weight[keep], minlength=size + 1)
    return total / np.maximum(count, 1e-9)


def likeness(
    flat: Pixels, mask: BoolArray, profile: FloatArray, reach: float, *, faint: float = 0.0
) -> Pixels:
    """Correlation (rows, columns), from -1 to 1, of each place's surroundings with a profile.

    Pixels outside the mask have no say; where they are the greater part, the answer is 0. What has
    less than the share `faint` of the profile's contrast counts for little, however alike.
    """
    from scipy.fft import irfft2, next_fast_len, rfft2

    size = int(np.ceil(reach))
    span = np.arange(-size, size + 1)
    distance = np.hypot(span[None, :], span[:, None])
    window = np.clip(reach - distance + 0.5, 0.0, 1.0)
    template = np.interp(distance, np.arange(profile.size), profile) * (window > 0)
    template -= (template * window).sum() / window.sum()
    shape = tuple(next_fast_len(n + 2 * size, real=True) for n in flat.shape)

    def spectrum(
        picture: Pixels | FloatArray,
    ) -> "np.ndarray[tuple[int, ...], np.dtype[np.complex64]]":
        return rfft2(picture.astype(np.float32), shape, workers=1)  # type: ignore[no-any-return]

    def around(a: "np.ndarray[tuple[int, ...], np.dtype[np.complex64]]", b: FloatArray) -> Pixels:
        # Templates are round, so that convolving is correlating.
        whole = irfft2(a * spectrum(b), shape, workers=1)
        result: Pixels = whole[size : size + flat.shape[0], size : size + flat.shape[1]]
        return result

    seen = mask.astype(np.float32)
    value = flat * seen
    fm, f1, f2 = spectrum(seen), spectrum(value), spectrum(value * flat)
    n = np.maximum(around(fm, window), 1e-3)
    mean = around(f1, window) / n
    spread = around(f2, window) / n - mean**2
    t1, t2 = around(fm, window * template) / n, around(fm, window * template**2) / n
    t_spread = t2 - t1**2
    both = around(f1, window * template) / n - mean * t1
    full = (window * template**2).sum() / window.sum()
    spread = np.maximum(spread, 1e-12) + faint**2 * full
    bottom = np.sqrt(spread * np.maximum(t_spread, 1e-12 + 0.3 * full))
    ok = (n > 0.5 * window.sum()) & (t_spread > 0.3 * full)
    result: Pixels = np.where(ok, np.clip(both / bottom, -1.0, 1.0), 0.0).astype(np.float32)
    return result


def peaks_near(values: Pixels, places: FloatArray, reach: float) -> tuple[FloatArray, FloatArray]:
    """The highest value within reach of each place (n, 2): where (n, 2), and how high (n,)."""
    size = max(1, round(reach))
    span = np.arange(-size, size + 1)
    x, y = (part.ravel() for part in np.meshgrid(span, span))
    near = np.hypot(x, y) <= size + 0.5
    x, y = x[near], y[near]
    padded = np.pad(values, size + 2, constant_values=-1.0)
    last = np.array(values.shape[::-1]) - 1
    column, row = np.clip(np.rint(places).astype(int), 0, last).T + size + 2
    window = padded[row[:, None] + y, column[:, None] + x]
    best = window.argmax(axis=1)
    c, r = column + x[best], row + y[best]
    mid = padded[r, c]
    where = np.column_stack([c, r]).astype(np.float64) - (size + 2)
    for axis, (low, high) in enumerate(
        ((padded[r, c - 1], padded[r, c + 1]), (padded[r - 1, c], padded[r + 1, c]))
    ):
        curve = 2.0 * mid - low - high
        top = (curve > 1e-9) & (mid >= low) & (mid >= high)
        shift = np.where(top, (high - low) / (2.0 * np.where(top, curve, 1.0)), 0.0)
        where[:, axis] += np.clip(shift, -0.5, 0.5)
    return where, mid.astype(np.float64)


def least_contrast(
    flat: Pixels, mask: BoolArray, places: FloatArray, radius: float, reach: float
) -> FloatArray:
    """How much brighter (n,) the disc at each place is than the brightest half of its ring.

    At the edge of an opening bare foil looks like half a hole: brighter than the shadow outside,
    but not than the foil inside.
    """
    size = int(np.ceil(reach)) + 1
    span = np.arange(-size, size + 1)
    x, y = (part.ravel() for part in np.meshgrid(span, span))
    distance = np.hypot(x, y)
    disc = distance <= 0.8 * radius
    ring = (distance >= 1.2 * radius) & (distance <= max(reach, 1.2 * radius + 1.0))
    around = np.arange(8) * np.pi / 4
    halves = [ring & (x * np.cos(a) + y * np.sin(a) >= 0.0) for a in around]
    values = np.pad(np.where(mask, flat, np.nan), size, constant_values=np.nan)
    column, row = np.rint(places).astype(int).T + size
    patches = values[row[:, None] + y, column[:, None] + x].astype(np.float64)
    seen = np.isfinite(patches)
    patches = np.where(seen, patches, 0.0)

    def mean(part: BoolArray) -> FloatArray:
        count = seen[:, part].sum(axis=1)
        enough = count >= 0.3 * part.sum()
        return np.where(enough, patches[:, part].sum(axis=1) / np.maximum(count, 1), -np.inf)

    brightest = np.max([mean(half) for half in halves], axis=0)
    inside = mean(disc)
    ok = np.isfinite(brightest) & np.isfinite(inside)
    return np.where(ok, np.where(ok, inside, 0.0) - np.where(ok, brightest, 0.0), 0.0)
