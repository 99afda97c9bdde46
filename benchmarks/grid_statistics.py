"""Statistics by which a simulated grid is held against a real one."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import BoolArray, FloatArray, IntArray
from coaf.bandit.rates.dinkelbach import dinkelbach
from coaf.cryoem.simulator.simulator import Simulator
from coaf.cryoem.timing import FAST, SLOW, Timing


@dataclass(frozen=True, slots=True)
class Holes:
    """Every hole of a grid, one entry each.

    Attributes
    ----------
    square, patch, area
        Labels.
    ctf
        Å; infinite where there was no fit.
    prediction
        Å.
    particles
        Counts; nan where unknown.
    """

    square: IntArray
    patch: IntArray
    area: IntArray
    ctf: FloatArray
    prediction: FloatArray
    particles: FloatArray


def tabulate(simulator: Simulator) -> Holes:
    """What all holes of a simulated grid would give; it must have `prediction=True`."""
    column = simulator.feature_names.index("prediction")
    rows: list[tuple[float, ...]] = []
    patches = 0
    for k, square in enumerate(simulator.squares()):
        survey = simulator.peek(square.name)
        for patch in survey.patches:
            guesses = survey.features[patch.name][:, column]
            for hole, guess in zip(patch.holes, guesses.tolist(), strict=True):
                ctf, count = simulator.truth(hole.name), simulator.particles(hole.name)
                area = int(simulator.grid.tile[k])
                rows.append((k, patches, area, _or(ctf, np.inf), guess, _or(count, np.nan)))
            patches += 1
    square_, patch_, area_, ctf_, guess_, count_ = np.array(rows).reshape(-1, 6).T
    labels = [x.astype(np.int64) for x in (square_, patch_, area_)]
    return Holes(labels[0], labels[1], labels[2], ctf_, guess_, count_)


def _or(value: float | None, other: float) -> float:
    return other if value is None else value


def between(y: FloatArray, labels: npt.NDArray[np.int64]) -> float:
    """The share of the sum of squares of `y` that lies between groups."""
    _, where, counts = np.unique(labels, return_inverse=True, return_counts=True)
    means = np.bincount(where, y) / counts
    total = float(((y - y.mean()) ** 2).sum())
    return float((counts * (means - y.mean()) ** 2).sum()) / total if total else 0.0


def intraclass(y: FloatArray, labels: IntArray) -> float:
    """The intraclass correlation of `y` in groups, by one-way analysis of variance.

    Examples
    --------
    >>> intraclass(np.array([0.0, 0.0, 1.0, 1.0]), np.array([0, 0, 1, 1]))
    1.0
    """
    counts = np.unique(labels, return_counts=True)[1]
    n, groups = len(y), len(counts)
    share = between(y, labels)
    outer, inner = share / (groups - 1), (1.0 - share) / (n - groups)
    size = (n - (counts**2).sum() / n) / (groups - 1)
    return float((outer - inner) / (outer + (size - 1.0) * inner))


def ranking(good: BoolArray, score: FloatArray) -> float:
    """Area under the ROC curve: how often a good one has the higher score than a bad one."""
    from scipy.stats import rankdata

    ranks = rankdata(score)
    n = int(good.sum())
    return float((ranks[good].sum() - n * (n + 1) / 2) / (n * (len(good) - n)))


def good_per_hour(table: Holes, timing: Timing, cut: float = 3.8) -> dict[str, float]:
    """Good micrographs per hour of three ways to take a recorded grid, one pass over its patches.

    "take all"; "fixed cut": all below the best cut of the prediction, known in hindsight; and
    "clairvoyant": the best there is, knowing every score.
    """
    where = np.unique(table.patch, return_inverse=True)[1]
    good = (table.ctf < cut).astype(np.float64)
    patches = int(where.max()) + 1

    def rate(taken: BoolArray) -> float:
        ways = len(np.unique(where[taken]))
        seconds = patches * timing.survey + ways * timing.enter + taken.sum() * timing.expose
        return 3600.0 * float(good[taken].sum()) / float(seconds)

    per_patch = np.bincount(where, good)

    def of_those_that_pay(price: float) -> float:
        enter = per_patch * (1.0 - price * timing.expose) > price * timing.enter
        return rate((good > 0) & enter[where]) / 3600.0

    cuts = np.quantile(table.prediction, np.linspace(0.01, 1.0, 200))
    return {
        "take all": rate(np.ones(len(good), dtype=np.bool_)),
        "fixed cut": max(rate(table.prediction <= c) for c in cuts),
        "clairvoyant": 3600.0 * dinkelbach(of_those_that_pay, 0.0),
    }


def describe(table: Holes) -> dict[str, float]:
    """The statistics of a grid, by name."""
    from scipy.stats import spearmanr

    good = {cut: table.ctf < cut for cut in (3.8, 4.0, 6.0)}
    y = {cut: one.astype(np.float64) for cut, one in good.items()}
    sizes = np.unique(table.patch, return_counts=True)[1]
    hits = np.bincount(np.unique(table.patch, return_inverse=True)[1], y[3.8])
    per_square = [len(np.unique(table.patch[table.square == s])) for s in np.unique(table.square)]
    square, patch = (between(y[6.0], labels) for labels in (table.square, table.patch))
    fit = np.isfinite(table.ctf)
    ctf, told, of = table.ctf[fit], table.prediction[fit], table.patch[fit]
    where = np.unique(of, return_inverse=True)[1]
    mean_ctf, mean_told = (np.bincount(where, v) / np.bincount(where) for v in (ctf, told))
    inner = np.corrcoef(ctf - mean_ctf[where], told - mean_told[where])[0, 1]
    early = table.area <= np.median(table.area)
    halves = [float(y[3.8][part].mean()) for part in (early, ~early) if part.any()]
    counts = table.particles[good[3.8]]
    worth = {}
    for name, timing in (("fast", FAST), ("slow", SLOW)):
        each = good_per_hour(table, timing)
        for way in ("fixed cut", "clairvoyant"):
            worth[f"{name}: {way} / take all"] = each[way] / each["take all"]
    return {
        "holes in a patch": float(sizes.mean()),
        "… standard deviation": float(sizes.std()),
        "patches in a square": float(np.mean(per_square)),
        "good, below 3.8 Å": float(y[3.8].mean()),
        "good, below 4 Å": float(y[4.0].mean()),
        "good, below 6 Å": float(y[6.0].mean()),
        "no fit": float(1.0 - fit.mean()),
        "median Å of fits": float(np.median(ctf)),
        "90 % quantile of fits, Å": float(np.quantile(ctf, 0.9)),
        "patches without a hole below 3.8 Å": float((hits == 0).mean()),
        "intraclass correlation in patches, 3.8 Å": intraclass(y[3.8], table.patch),
        "intraclass correlation in patches, 6 Å": intraclass(y[6.0], table.patch),
        "sum of squares, 6 Å: square": square,
        "… patch in square": patch - square,
        "… hole in patch": 1.0 - patch,
        "prediction: Spearman": float(spearmanr(table.prediction, table.ctf)[0]),
        "prediction: r within patches": float(inner),
        "prediction: r of patch means": float(np.corrcoef(mean_ctf, mean_told)[0, 1]),
        "prediction: AUC, 3.8 Å": ranking(good[3.8], -table.prediction),
        "share of good with a prediction below 3.8 Å": float(
            (table.prediction[good[3.8]] < 3.8).mean()
        ),
        "good, difference between areas": max(halves) - min(halves),
        "particles of a good micrograph": float(np.nanmean(counts)) if len(counts) else np.nan,
        **worth,
    }
