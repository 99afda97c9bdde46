"""Which grid of a cassette next: COAF beside how people go through one.

    python benchmarks/cassettes.py [--cassettes 30] [--half judge] [--regime slow] [--workers 2]

Writes docs/cassettes_results.md. A cassette is four grids of the population, 12 hours, no pixels.
COAF collects on each grid, and knowledge is carried from one to the next; what differs is which
grid is loaded: by COAF, by screening all and then collecting the best by its first square, or one
after another with equal shares of the time. Constants were chosen on the half "develop".
"""

import argparse
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from coaf.cryoem.reports.cassette import cassette_of, visits
from coaf.cryoem.session.collect import collect
from coaf.cryoem.simulator.population import Half
from coaf.worlds.statistics import mean

RESULTS = Path(__file__).parents[1] / "docs" / "cassettes_results.md"
HOURS, GRIDS = 12.0, 4
WAYS = {
    "coaf": "`coaf`",
    "screen-all": "screen all, then the best by its first square",
    "equal-time": "one after another, equal time",
}
Regime = Literal["fast", "slow"]


def play(task: tuple[int, Half, Regime, str]) -> tuple[float, int]:
    """Good micrographs by truth, and how often a grid was loaded."""
    index, half, regime, way = task
    session = collect(
        cassette_of(index, half, grids=GRIDS, regime=regime), way, hours=HOURS, explore=0.0
    )
    return float(session.line()["good"]), len(visits(session))


def lines(found: list[tuple[float, int]], half: Half, regime: Regime) -> Iterator[str]:
    whole = len(found) // len(WAYS)
    table = np.array(found[: whole * len(WAYS)]).reshape(whole, len(WAYS), 2)
    good, loads = table[:, :, 0], table[:, :, 1].mean(axis=0)
    yield (
        f'{whole} cassettes of {GRIDS} grids of the half "{half}", {HOURS:g} h, {regime} stage, 32 '
        "squares a grid: good micrographs a session, means; by how much `coaf` leads, paired by "
        "cassette, in micrographs and in percent of the rival's mean, with 95 % intervals; and on "
        "how many cassettes it has more."
    )
    yield ""
    yield "| which grid next | good | grids loaded | lead of `coaf` | in percent | has more |"
    yield "|---|---|---|---|---|---|"
    for k, way in enumerate(WAYS.values()):
        row = f"| {way} | {good[:, k].mean():.0f} | {loads[k]:.1f} |"
        if k == 0:
            yield f"{row} | | |"
            continue
        lead = good[:, 0] - good[:, k]
        told, share = mean(lead), mean(100.0 * lead / good[:, k].mean())
        yield (
            f"{row} {told.value:+.0f} [{told.low:+.0f}, {told.high:+.0f}] | "
            f"{share.value:+.0f} [{share.low:+.0f}, {share.high:+.0f}] | {(lead > 0).mean():.0%} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cassettes", type=int, default=30)
    parser.add_argument("--half", choices=get_args(Half), default="judge")
    parser.add_argument("--regime", choices=get_args(Regime), default="slow")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    tasks = list(product(range(given.cassettes), [given.half], [given.regime], WAYS))
    found: list[tuple[float, int]] = []
    with ProcessPoolExecutor(given.workers) as pool:
        for one in pool.map(play, tasks):
            found.append(one)
            if len(found) >= 2 * len(WAYS) and len(found) % len(WAYS) == 0:  # what there is so far
                text = "\n".join(lines(found, given.half, given.regime)) + "\n"
                given.out.write_text(text, "utf-8")
    print(given.out.read_text("utf-8"))


if __name__ == "__main__":
    main()
