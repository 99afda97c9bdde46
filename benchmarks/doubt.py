"""What it costs on a recorded grid to expect other kinds of grid as well.

    python benchmarks/doubt.py [--data DIR] [--orders 100]

Writes docs/doubt_results.md. DIR is a recorded grid, `../shared/data/cryorl-aldolase` unless given.
COAF begins with a mixture of two priors; beside it flies the same with the first of them alone,
which was made for grids like this one. All play the same orders.
"""

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

from coaf.cryoem.pilots.prediction import USUAL
from coaf.cryoem.recorded.reading import read_recording
from coaf.worlds.statistics import mean
from replay import DATA, ROWS, one_prior, rates

RESULTS = Path(__file__).parents[1] / "docs" / "doubt_results.md"
PILOTS = ("coaf", partial(one_prior, prior=USUAL))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--orders", type=int, default=100)
    given = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    recording = read_recording(given.data)
    lines = [
        f"Good micrographs an hour in {given.orders} orders, scores at once, with 95 % intervals; "
        "the difference is paired:",
        "",
        "| | as it is | the usual prior alone | as it is − alone, in percent |",
        "|---|---|---|---|",
    ]
    with ProcessPoolExecutor() as pool:
        tasks = [
            pool.submit(rates, recording, pilot, row, "none", range(k, k + 1))
            for row in ROWS
            for pilot in PILOTS
            for k in range(given.orders)
        ]
        found = np.array([task.result()[0] for task in tasks])
    for row, (ours, alone) in zip(ROWS, found.reshape(len(ROWS), 2, -1), strict=True):
        less = mean(100.0 * (ours - alone) / alone.mean())
        cells = [
            f"{one.value:.4g} ± {one.high - one.value:.2g}" for one in (mean(ours), mean(alone))
        ]
        cells.append(f"{less.value:+.2f} [{less.low:+.2f}, {less.high:+.2f}]")
        lines.append(f"| {row[0]} | {' | '.join(cells)} |")
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(RESULTS.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
