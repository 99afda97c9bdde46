"""The simulated grid beside a real one: writes docs/simulator_results.md.

    python benchmarks/simulator.py [--grids 40] [--drawn 2]

The real numbers are of a grid of aldolase, collected exhaustively (IBM/CryoRL-pytorch): of the
whole, as measured before on all its patches, and of the part that lies in ../shared/data, if there.
"""

import argparse
import csv
import os
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.cryoem.microscope import upkeep_of
from coaf.cryoem.simulator.simulator import Simulator
from coaf.cryoem.vision.features import HOLE_FEATURES
from grid_statistics import Holes, describe, ranking, tabulate

PAGE = Path(__file__).parents[1] / "docs" / "simulator_results.md"
DATA = Path(os.environ.get("COAF_DATA", Path(__file__).parents[2] / "shared" / "data"))
# Of all 173 patches of the grid; the calibration aims at these.
WHOLE = {
    "holes in a patch": 20.5,
    "… standard deviation": 3.3,
    "patches in a square": 173 / 25,
    "good, below 3.8 Å": 0.143,
    "good, below 4 Å": 0.165,
    "good, below 6 Å": 0.377,
    "patches without a hole below 3.8 Å": 0.46,
    "intraclass correlation in patches, 3.8 Å": 0.30,
    "intraclass correlation in patches, 6 Å": 0.39,
    "sum of squares, 6 Å: square": 0.25,
    "… patch in square": 0.17,
    "… hole in patch": 0.58,
    "prediction: Spearman": 0.73,
    "prediction: r within patches": 0.54,
    "prediction: r of patch means": 0.87,
    "prediction: AUC, 3.8 Å": 0.88,
    "share of good with a prediction below 3.8 Å": 0.13,
    "good, difference between areas": 0.19 - 0.12,
    "particles of a good micrograph": 94.0,
}
TIMES = {"hole to hole, s": (91.0, np.nan, 92.0), "patch to patch, s": (185.0, 250.0, 654.0)}


def real_part() -> dict[str, float]:
    """The part of the real grid that is here; empty where it is not."""
    folder = DATA / "cryorl-aldolase"
    told, true = (
        folder / "Y1_2_regress_8bit_res50_train_by_hl.txt",
        folder / "target_CTF_Y1_train.csv",
    )
    if not told.exists():
        return {}
    guess = dict(line.split() for line in told.read_text().splitlines())
    with true.open() as file:
        fits = {row[0]: float(row[3]) for row in csv.reader(file) if row}
    names = list(guess)
    parts = [re.findall(r"\d+(?=gr|sq|hl)", name) for name in names]
    square, patch = (
        np.unique(["_".join(p[:k]) for p in parts], return_inverse=True)[1] for k in (2, 3)
    )
    ctf = np.array([fits[name] for name in names])
    ctf[ctf >= 1e5] = np.inf
    area = np.zeros(len(ctf), dtype=np.int64)
    told_ = np.array([float(guess[name]) for name in names])
    found = describe(Holes(square, patch, area, ctf, told_, np.zeros(len(ctf))))
    for name in ("good, difference between areas", "particles of a good micrograph"):
        del found[name]
    return found


def day(simulator: Simulator, hours: float = 24.0) -> tuple[list[float], list[float], list[float]]:
    """Take all for a day: seconds from hole to hole and patch to patch, and delays of scores."""
    inner: list[float] = []
    outer: list[float] = []
    delays: list[float] = []
    for square in simulator.squares():
        for patch in simulator.survey(square.name).patches:
            if simulator.clock > hours * 3600.0:
                return inner, outer, delays
            kept = upkeep_of(simulator)
            moved = simulator.move(patch) - (upkeep_of(simulator) - kept)
            for k, hole in enumerate(patch.holes):
                took = simulator.expose(hole)
                (inner if k else outer).append(took if k else took + moved)
                delays += [s.arrived_at - s.exposed_at for s in simulator.collect()]
    return inner, outer, delays


def line(cells: Iterable[object]) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def show(value: float | None) -> str:
    return "" if value is None or not np.isfinite(value) else f"{value:.3g}"


def statistics(grids: int) -> list[str]:
    every = [describe(tabulate(Simulator(s, pixels=False, prediction=True))) for s in range(grids)]
    part = real_part()
    lines = [
        f"Mean over {grids} simulated grids of 25 squares, and how much grids differ.\n",
        line(["", "simulated", "spread of grids", "real, whole grid", "real, part at hand"]),
        line(["---", "---:", "---:", "---:", "---:"]),
    ]
    for name in every[0]:
        values = np.array([one[name] for one in every])
        mean, spread = float(np.nanmean(values)), float(np.nanstd(values))
        cells = [show(mean), show(spread), show(WHOLE.get(name)), show(part.get(name))]
        lines.append(line([name, *cells]))
    return lines


def times(grids: int) -> list[str]:
    lines = [
        "\nTimes, without maintenance, and delays of scores (take all, a day, "
        f"{grids} grids each).\n",
        line(["", "median", "mean", "90 % quantile", "real: median, mean, 90 %"]),
        line(["---", "---:", "---:", "---:", "---:"]),
    ]
    for regime in ("slow", "fast"):
        inner: list[float] = []
        outer: list[float] = []
        delays: list[float] = []
        lost = shots = 0
        for seed in range(grids):
            simulator = Simulator(seed, regime=regime, pixels=False)
            holes, patches, late = day(simulator)
            inner += holes
            outer += patches
            delays += late
            lost += simulator.feedback.lost
            shots += simulator.feedback.submitted
        both = {"hole to hole, s": inner, "patch to patch, s": outer, "delay of a score, s": delays}
        for name, seconds in both.items():
            known = (
                {**TIMES, "delay of a score, s": (45.0, np.nan, 80.0)} if regime == "slow" else {}
            )
            told = ", ".join(show(v) or "?" for v in known[name]) if name in known else ""
            s = np.array(seconds)
            cells = [show(float(v)) for v in (np.median(s), s.mean(), np.quantile(s, 0.9))]
            lines.append(line([f"{regime}: {name}", *cells, told]))
        share = f"{100 * lost / shots:.0f} %"
        lines.append(line([f"{regime}: never scored", share, "", "", "12 %" if known else ""]))
    return lines


def rows_of(simulator: Simulator, squares: int) -> tuple[FloatArray, FloatArray]:
    features, ctf = [], []
    for square in simulator.squares()[:squares]:
        survey = simulator.peek(square.name)
        for patch in survey.patches:
            features.append(survey.features[patch.name])
            true = [simulator.truth(hole.name) for hole in patch.holes]
            ctf += [np.inf if t is None else t for t in true]
    return np.concatenate(features), np.array(ctf)


def features(grids: int, squares: int = 10) -> list[str]:
    """Each column as measured in drawn images and as drawn from the truth."""
    columns = {}
    for pixels in (True, False):
        pairs = [rows_of(Simulator(s, pixels=pixels), squares) for s in range(grids)]
        X, ctf = np.concatenate([p[0] for p in pairs]), np.concatenate([p[1] for p in pairs])
        columns[pixels] = [(float(c.mean()), float(c.std()), ranking(ctf < 6.0, -c)) for c in X.T]
    lines = [
        f"\nFeatures of holes: measured in drawn images, and without drawing ({grids} grids, "
        f"{squares} squares of each). AUC: how well less of it ranks holes below 6 Å first.\n",
        line(["", "drawn: mean", "sd", "AUC", "not drawn: mean", "sd", "AUC"]),
        line(["---", *["---:"] * 6]),
    ]
    for name, drawn, other in zip(HOLE_FEATURES, columns[True], columns[False], strict=True):
        lines.append(line([name, *(show(v) for v in (*drawn, *other))]))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--grids", type=int, default=40)
    parser.add_argument("--drawn", type=int, default=3)
    args = parser.parse_args()
    lines = [*statistics(args.grids), *times(max(args.grids // 4, 1))]
    if args.drawn:
        lines += features(args.drawn)
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
