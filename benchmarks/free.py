"""Free to choose, with all known ahead: COAF in CryoRL's environment beside rules and the limit.

    python benchmarks/free.py [--data DIR] [--halves 8] [--grids 6] [--out FILE]

Writes docs/free_results.md, or what `--out` names. DIR is a recorded grid,
`../shared/data/cryorl-aldolase` unless given. The cut of the rule is picked on the other half of
the squares, or on grids to develop on; grids are simulated ones made like the recorded one, and
those of a population.
"""

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.rates.price import Setups
from coaf.cryoem.grid import Square
from coaf.cryoem.pilot import Left, Open
from coaf.cryoem.pilots.coaf import CoafPilot
from coaf.cryoem.pilots.patch_order import PatchOrder
from coaf.cryoem.pilots.switching import Switching
from coaf.cryoem.recorded.environment import CRYORL
from coaf.cryoem.recorded.reading import read_recording
from coaf.cryoem.recorded.recording import Recording
from coaf.cryoem.recorded.replay import play
from coaf.cryoem.recorded.seconds import Seconds
from coaf.cryoem.recorded.yardsticks import free_limit
from coaf.cryoem.reward import GoodBelow, parse_reward
from coaf.cryoem.session.events import Settings
from coaf.cryoem.session.situation import Make
from coaf.cryoem.simulator.population import Half, member
from coaf.cryoem.simulator.record import record
from coaf.cryoem.simulator.simulator import Simulator
from coaf.cryoem.timing import Timing

RESULTS = Path(__file__).parents[1] / "docs" / "free_results.md"
DATA = Path(__file__).parents[2] / "shared" / "data" / "cryorl-aldolase"
SECONDS = Seconds()._replace(**CRYORL.seconds)
GOOD = GoodBelow(CRYORL.good_below)
CUTS = np.arange(4.0, 9.01, 0.25)  # Å
HALF_HOURS = 3.0  # for half of the recorded grid
SQUARES = 16  # of a simulated grid: about as many patches as the larger part of the recorded one
LEAST = 6  # holes of a patch: switching hardly matters where each hole is a patch
HEADS = ["ours", "ours, nothing shared", "patch order", "take all", "limit"]


class Unshared(Switching):
    """Each patch pays the whole way by itself."""

    def __init__(self, squares: Sequence[Square], here: Square | None, timing: Timing) -> None:
        super().__init__(squares, here, timing)
        self.setups = [Setups(np.arange(len(squares)), self.seconds)]


class UnsharedPilot(CoafPilot):
    """COAF that shares no switch."""

    def _way(self, patches: Sequence[Open], left: Left, here: Square | None) -> Switching:
        return Unshared([self._square(one.patch.name) for one in patches], here, left.timing)


def unshared(settings: Settings) -> CoafPilot:
    reward = parse_reward(settings.reward)
    return UnsharedPilot(settings.timing, reward=reward, columns=settings.columns)


def by_patch(settings: Settings, cut: float) -> PatchOrder:
    return PatchOrder(settings.columns.index("prediction"), cut)


def good(recording: Recording, pilot: str | Make, hours: float) -> float:
    return play(recording, pilot, None, reward=GOOD, seconds=SECONDS, hours=hours, ahead=True).good


def by_cut(recording: Recording, hours: float) -> FloatArray:
    """What the rule collects with each cut."""
    return np.array([good(recording, partial(by_patch, cut=cut), hours) for cut in CUTS])


def row(recording: Recording, hours: float, cut: float) -> list[float]:
    pilots: list[str | Make] = ["coaf", unshared, partial(by_patch, cut=cut), "take-all"]
    limit = free_limit(recording, GOOD, SECONDS, hours)
    return [*(good(recording, pilot, hours) for pilot in pilots), limit]


def halves(recording: Recording, seed: int) -> tuple[Recording, Recording]:
    squares = sorted(set(recording.squares))
    some = set(np.random.default_rng(seed).permutation(squares)[: (len(squares) + seed % 2) // 2])
    sides = [
        [p for p, s in enumerate(recording.squares) if (s in some) == a] for a in (True, False)
    ]
    return recording.part(sides[0]), recording.part(sides[1])


def simulated(kind: str, half: Half, count: int) -> list[Recording]:
    """Grids made like the recorded one (of seeds of their own), or of the population."""
    made: list[Recording] = []
    shown: dict[str, Any] = {
        "squares": SQUARES,
        "pixels": False,
        "prediction": True,
        "delay": "none",
    }
    k = 0 if half == "develop" else 5000
    while len(made) < count:
        if kind == "population":
            one = member(k % 5000, half)
            fits, simulator = (
                one.holes >= LEAST,
                partial(Simulator, one.seed, conditions=one.conditions, **shown),
            )
        else:
            fits, simulator = True, partial(Simulator, k, **shown)
        if fits:
            made.append(record(simulator()).seen_by(["prediction"]).playable())
        k += 1
    return made


def told(name: str, rows: list[list[float]]) -> list[str]:
    """Means, and the paired difference of the others from ours with its standard error."""
    found = np.array(rows)
    cells = [f"{found[:, 0].mean():.1f}"]
    for column in found.T[1:]:
        less = column - found[:, 0]
        error = less.std(ddof=1) / len(less) ** 0.5 if len(less) > 1 else None
        bracket = f" ({less.mean():+.1f} ± {error:.1f})" if error is not None else ""
        cells.append(f"{column.mean():.1f}{bracket}")
    return [name, *cells]


def table(heads: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in [heads, ["---"] * len(heads), *rows]]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--halves", type=int, default=8, help="Times that squares are halved.")
    parser.add_argument("--grids", type=int, default=6, help="Simulated grids of each kind.")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    rows = []
    if given.data.is_dir():
        whole = replace(read_recording(given.data), seconds=SECONDS).playable()
        best = by_cut(whole, CRYORL.hours)
        name = f"recorded grid, {CRYORL.hours:g} h; the cut in hindsight"
        rows.append(told(name, [row(whole, CRYORL.hours, CUTS[best.argmax()])]))
        print(rows[-1], flush=True)
        found = []
        for seed in range(given.halves):
            for one, other in (sides := halves(whole, seed), sides[::-1]):
                cut = CUTS[by_cut(other, HALF_HOURS).argmax()]
                found.append(row(one, HALF_HOURS, cut))
        name = f"halves of its squares, {HALF_HOURS:g} h; the cut of the other half"
        rows.append(told(name, found))
        print(rows[-1], flush=True)
    for kind in ("like it", "population"):
        learnt = [by_cut(grid, CRYORL.hours) for grid in simulated(kind, "develop", given.grids)]
        cut = CUTS[np.mean(learnt, axis=0).argmax()]
        grids = simulated(kind, "judge", given.grids)
        name = f"{len(grids)} simulated grids, {kind}, {CRYORL.hours:g} h; the cut of others"
        rows.append(told(name, [row(grid, CRYORL.hours, cut) for grid in grids]))
        print(rows[-1], flush=True)
    given.out.write_text(
        "Good micrographs; in brackets, the paired difference from ours and its standard error:\n\n"
        + table(["", *HEADS], rows)
        + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
