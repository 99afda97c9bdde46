"""The lattice of a square image: spacing and rotation from its autocorrelation."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.cryoem.images import Pixels

_WEAK = 0.1  # below this the best lattice explains no more than texture and noise do
_ALMOST = 0.7  # of the best: what may be the same lattice seen less well
_NEAREST = 10  # autocorrelation peaks, by height, that are tried as lattice vectors


@dataclass(frozen=True, slots=True, eq=False)
class Lattice:
    """A lattice of holes, in µm on the stage.

    Attributes
    ----------
    vectors : (2, 2)
        From a hole to its nearest neighbours, one a row.
    origin : (2,)
        Where one hole is.

    Examples
    --------
    >>> lattice = Lattice(np.array([[0.0, 2.5], [-2.5, 0.0]]), np.zeros(2))
    >>> lattice.spacing, round(lattice.rotation, 3)
    (2.5, 0.0)
    """

    vectors: FloatArray
    origin: FloatArray

    @property
    def spacing(self) -> float:
        """From hole to hole: the mean length of the vectors."""
        return float(np.linalg.norm(self.vectors, axis=1).mean())

    @property
    def rotation(self) -> float:
        """Of the first vector from the x axis, in radians, in [0, π/2)."""
        x, y = self.vectors[0]
        angle = float(np.arctan2(y, x)) % (np.pi / 2)
        return 0.0 if np.isclose(angle, np.pi / 2) else angle


def find_vectors(
    flat: Pixels, *, spacing: float | None = None, radius: float | None = None
) -> tuple[FloatArray, float]:
    """Lattice vectors (2, 2) in pixels, and how well they explain the picture, from 0 to 1.

    `flat` has mean 0 where it is open and is 0 elsewhere. Blobs of several sizes are tried, and for
    each the pairs of autocorrelation peaks; the pair wins that has much at its nodes and little
    half-way between them, so neither a part nor a multiple of the lattice does.
    """
    from scipy.fft import irfft2, next_fast_len, rfft2, rfftfreq

    rows, columns = (next_fast_len(int(1.25 * n), real=True) for n in flat.shape)
    power = np.abs(rfft2(flat, (rows, columns), workers=1)) ** 2
    frequency = np.square(np.fft.fftfreq(rows).astype(np.float32))[:, None]
    frequency = frequency + np.square(rfftfreq(columns).astype(np.float32))[None, :]
    reach = int(0.45 * min(flat.shape))
    near = np.arange(-reach, reach + 1)
    tried: list[tuple[float, float, FloatArray, Pixels]] = []
    for width in _widths(min(flat.shape), radius):
        band = _band(frequency, width) ** 2
        lags = irfft2(power * band, (rows, columns), workers=1)[near][:, near]
        if lags[reach, reach] <= 0.0:
            continue
        lags = lags / lags[reach, reach]
        for pair in _pairs(lags, width, spacing):
            tried.append((_explains(lags, pair), abs(float(np.linalg.det(pair))), pair, lags))
    score = max((one[0] for one in tried), default=0.0)
    if score < _WEAK:
        return np.zeros((2, 2)), max(score, 0.0)
    # A lattice of every third or fifth node explains its nodes as well as the whole one does.
    enough = [one for one in tried if one[0] > _ALMOST * score]
    smallest = min(one[1] for one in enough)
    _, _, pair, lags = max(
        (one for one in enough if one[1] < 1.3 * smallest), key=lambda one: one[0]
    )
    return reduce(_refine(lags, pair)), score


def _widths(side: int, radius: float | None) -> FloatArray:
    """Blob sizes to try: from the smallest that pixels can show."""
    if radius is not None:
        return np.array([0.5, 0.7, 1.0]) * radius
    return np.geomspace(0.8, side / 20.0, 10)


def _band(frequency: Pixels, width: float) -> Pixels:
    """What a difference of two Gaussians lets through."""
    a = -2.0 * np.pi**2 * width**2
    result: Pixels = np.exp(a * frequency) - np.exp(2.56 * a * frequency)
    return result


def _pairs(lags: Pixels, width: float, spacing: float | None) -> list[FloatArray]:
    """Pairs of peaks that may span the lattice."""
    from scipy.ndimage import maximum_filter

    reach = lags.shape[0] // 2
    size = 2 * int(np.ceil(1.5 * width)) + 1
    peak = (lags == maximum_filter(lags, size)) & (lags > 0.02)
    row, column = np.nonzero(peak)
    v = np.column_stack([column - reach, row - reach]).astype(np.float64)
    length = np.hypot(*v.T)
    low, high = (
        (max(3.0 * width, 4.0), reach) if spacing is None else (0.8 * spacing, 1.5 * spacing)
    )
    # One of each pair of opposite lags is enough.
    half = (v[:, 1] > 0) | ((v[:, 1] == 0) & (v[:, 0] > 0))
    ok = half & (length > low) & (length < high)
    v, height, length = v[ok], lags[peak][ok], length[ok]
    tall = height > 0.5 * height.max(initial=0.0)
    v = v[tall][np.argsort(length[tall])[:_NEAREST]]
    result = []
    for a, b in combinations(v, 2):
        sine = abs(a[0] * b[1] - a[1] * b[0]) / (np.hypot(*a) * np.hypot(*b))
        if sine > 0.4:
            result.append(np.array([a, b]))
    return result


def _explains(lags: Pixels, pair: FloatArray) -> float:
    """Height at the nodes less the height half-way between, within a few cells."""
    k = np.array([(i, j) for i in range(-2, 3) for j in range(3) if (j, i) > (0, 0)], dtype=float)
    halves = np.array([[0.5, 0.0], [0.0, 0.5], [0.5, 0.5]])
    nodes = _sample(lags, k @ pair).mean()
    # The largest of the three: a lattice with a node half-way is half a lattice.
    between = max(_sample(lags, (k - h) @ pair).mean() for h in halves)
    return float(nodes - max(between, 0.0))


def _sample(lags: Pixels, where: FloatArray) -> FloatArray:
    from scipy.ndimage import map_coordinates

    reach = lags.shape[0] // 2
    result: FloatArray = map_coordinates(
        lags, [where[:, 1] + reach, where[:, 0] + reach], order=1, mode="constant"
    )
    return result


def _refine(lags: Pixels, pair: FloatArray) -> FloatArray:
    """The same vectors to a small part of a pixel, from peaks ever further out."""
    reach = lags.shape[0] // 2
    for cells in (1, 2, 4, 6, 8):
        grid = np.array(
            [(i, j) for i in range(-cells, cells + 1) for j in range(cells + 1) if (j, i) > (0, 0)]
        )
        near = max(1, int(0.2 * np.linalg.norm(reduce(pair), axis=1).min()))
        index, place, weight = [], [], []
        for k in grid:
            x, y = np.rint(k @ pair).astype(int) + reach
            if not (near < x < lags.shape[1] - near - 1 and near < y < lags.shape[0] - near - 1):
                continue
            part = lags[y - near : y + near + 1, x - near : x + near + 1]
            row, column = np.unravel_index(int(part.argmax()), part.shape)
            if part[row, column] <= 0.0:
                continue
            place.append(subpixel(lags, x - near + int(column), y - near + int(row)) - reach)
            index.append(k)
            weight.append(part[row, column])
        if len(index) < 2 or np.linalg.matrix_rank(np.array(index)) < 2:
            break
        w = np.sqrt(np.array(weight))[:, None]
        pair = np.linalg.lstsq(w * np.array(index), w * np.array(place), rcond=None)[0]
    return pair


def subpixel(values: Pixels, column: int, row: int) -> FloatArray:
    """(column, row) of the top of the parabola through a local maximum and its neighbours."""
    shift = []
    for low, mid, high in (
        (values[row, column - 1], values[row, column], values[row, column + 1]),
        (values[row - 1, column], values[row, column], values[row + 1, column]),
    ):
        curve = 2.0 * mid - low - high
        shift.append(float(np.clip((high - low) / (2.0 * curve), -0.5, 0.5)) if curve > 0 else 0.0)
    return np.array([column + shift[0], row + shift[1]])


def reduce(pair: FloatArray) -> FloatArray:
    """The shortest two vectors (2, 2) of the same lattice: Gauss's reduction.

    Examples
    --------
    >>> reduce(np.array([[1.0, 0.0], [5.0, 1.0]]))
    array([[1., 0.],
           [0., 1.]])
    """
    a, b = sorted(pair.astype(np.float64), key=lambda v: float(v @ v))
    while True:
        b = b - np.rint((a @ b) / (a @ a)) * a
        if b @ b >= a @ a * (1 - 1e-9):
            return np.array([a, b])
        a, b = b, a
