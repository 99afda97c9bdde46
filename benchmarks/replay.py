"""What each part of the policy for recorded grids brings, on a recorded grid and on simulated ones.

    python benchmarks/replay.py [--data DIR] [--orders 100] [--ablations 40] [--grids 12]

Writes docs/replay_results.md. DIR is a recorded grid, `../shared/data/cryorl-aldolase` unless
given; without one, the simulated grids are all there is.
"""

import argparse
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.nested.nested import Nested
from coaf.bandit.index import Mean
from coaf.bandit.latency import Setup
from coaf.bandit.policies.coaf import COAF
from coaf.bandit.policies.stepwise import Stepwise
from coaf.bandit.rates.memory_root import MemoryRoot
from coaf.cryoem.pilots.prediction import (
    CENTRE,
    DOUBT,
    EFFECTS,
    SPREAD,
    prediction_belief,
    prediction_features,
    typical_patches,
)
from coaf.cryoem.recorded.recording import Recording, Times, read_recording
from coaf.cryoem.recorded.replay import PLAYERS, Player, play_orders
from coaf.cryoem.recorded.yardsticks import best_fixed_cut, calibrated, clairvoyant
from coaf.cryoem.simulator.record import record
from coaf.cryoem.simulator.simulator import Simulator
from coaf.cryoem.timing import HOUR

RESULTS = Path(__file__).parents[1] / "docs" / "replay_results.md"
DATA = Path(__file__).parents[2] / "shared" / "data" / "cryorl-aldolase"
ROWS = [
    ("paper's times, 3.8 Å", 3.8, Times()),
    ("paper's times, 6 Å", 6.0, Times()),
    ("slow stage, 3.8 Å", 3.8, Times(10.0, 95.0, 91.0)),
    ("slow stage, 6 Å", 6.0, Times(10.0, 95.0, 91.0)),
]
DELAYS: tuple[Any, ...] = ("none", 45.0, "measured")
FIRST = 700  # seed of the simulated grids, which nothing was fitted to


class Blind(Stepwise):
    """Decides again after every score, but does not count on it beforehand."""

    @property
    def lag(self) -> int:
        return 10**6

    @lag.setter
    def lag(self, value: int) -> None:
        pass


def own_only(predicted: FloatArray, cut: float) -> FloatArray:
    return prediction_features(predicted, cut)[:, :1]


def _typical(cut: float, times: Times) -> Any:
    return typical_patches(cut, Setup(*times))


def _own(cut: float, times: Times) -> Stepwise:
    scale = (DOUBT * (SPREAD[0] + SPREAD[1]), DOUBT * SPREAD[2])
    return Stepwise(Nested(1, centre=(CENTRE[0] + CENTRE[1], CENTRE[2]), scale=scale))


def _vague(cut: float, times: Times) -> Stepwise:
    return Stepwise(Nested(2, scale=5.0))


def _no_typical(cut: float, times: Times) -> Stepwise:
    return Stepwise(prediction_belief())


def _nested(effects: tuple[float, ...]) -> Nested:
    return Nested(2, centre=CENTRE, scale=tuple(DOUBT * s for s in SPREAD), effects=effects)


def _patches_only(cut: float, times: Times) -> Stepwise:
    return Stepwise(_nested(EFFECTS[1:]), expect=_typical(cut, times))


def _no_groups(cut: float, times: Times) -> Stepwise:
    return Stepwise(_nested(()), expect=_typical(cut, times))


def _blind(cut: float, times: Times) -> Stepwise:
    return Blind(prediction_belief(), expect=_typical(cut, times))


def _whole(cut: float, times: Times) -> COAF:
    return COAF(belief=prediction_belief(), index=Mean(), rate=MemoryRoot())


def _optimistic(cut: float, times: Times) -> COAF:
    return COAF(belief=prediction_belief(), rate=MemoryRoot())


ABLATIONS: dict[str, Player] = {
    "all of it": PLAYERS["coaf"],
    "no typical patches to begin with": Player(prediction_features, _no_typical),
    "nothing expected at all": Player(prediction_features, _vague),
    "no average over the patch": Player(own_only, _own),
    "no effects of squares": Player(prediction_features, _patches_only),
    "no effects of squares and patches": Player(prediction_features, _no_groups),
    "no value of the option to stop": Player(prediction_features, _blind),
    "whole subsets, by means": Player(prediction_features, _whole),
    "whole subsets, optimistic": Player(prediction_features, _optimistic),
}


def rates(
    recording: Recording, player: Player, row: tuple[str, float, Times], delay: Any, orders: range
) -> FloatArray:
    _, cut, times = row
    passes = play_orders(recording, player, orders, seed=0, cut=cut, times=times, delay=delay)
    return np.array([HOUR * one.good / one.seconds for one in passes])


def _task(task: tuple[Recording, Player, tuple[str, float, Times], Any, range]) -> FloatArray:
    return rates(*task)


def shown(values: FloatArray) -> str:
    digits = 1 if values.mean() > 100 else 2
    error = values.std(ddof=1) / len(values) ** 0.5
    return f"{values.mean():.{digits}f} ± {error:.{digits}f}"


def table(heads: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in [heads, ["---"] * len(heads), *rows]]
    return "\n".join(lines)


Run = Callable[[list[Any]], list[FloatArray]]


def real_part(recording: Recording, orders: int, ablations: int, run: Run) -> list[str]:
    names = ("take-all", "coaf-paper", "coaf-tuned", "coaf")
    tasks = [
        (recording, PLAYERS[name], row, "none", range(orders)) for row, name in product(ROWS, names)
    ]
    found = iter(run(tasks))
    rows = []
    for row in ROWS:
        good, args = recording.good(row[1]), (recording.starts, row[2])
        ends = [
            best_fixed_cut(recording.predicted, good, *args),
            calibrated(recording.predicted, good, *args),
            clairvoyant(good, *args),
        ]
        cells = [shown(next(found)) for _ in names]
        rows.append([row[0], *cells, *(f"{HOUR * end:.1f}" for end in ends)])
    heads = ["", "take all", "COAF as printed", "COAF, a tenth of the radius", "**ours**"]
    heads += ["best fixed cut in hindsight", "calibrated oracle", "clairvoyant"]
    text = [f"Good micrographs per hour, {orders} orders, scores at once:\n", table(heads, rows)]
    tasks = [
        (recording, player, row, "none", range(ablations))
        for player, row in product(ABLATIONS.values(), ROWS)
    ]
    found = iter(run(tasks))
    rows = [[name, *(shown(next(found)) for _ in ROWS)] for name in ABLATIONS]
    text += [f"\nWithout a part of it, {ablations} orders:\n"]
    text += [table(["", *(row[0] for row in ROWS)], rows)]
    tasks = [
        (recording, PLAYERS["coaf"], row, delay, range(ablations))
        for delay, row in product(DELAYS, ROWS)
    ]
    found = iter(run(tasks))
    rows = [[str(delay), *(shown(next(found)) for _ in ROWS)] for delay in DELAYS]
    text += [f"\nScores that come late (seconds, or the measured queue), {ablations} orders:\n"]
    return [*text, table(["delay", *(row[0] for row in ROWS)], rows)]


def simulated_part(grids: int, run: Run) -> list[str]:
    recordings = []
    with TemporaryDirectory() as folder:
        for seed in range(FIRST, FIRST + grids):
            simulator = Simulator(seed, pixels=False, prediction=True, delay="none")
            holes, truth = record(simulator, Path(folder))
            whole = read_recording(holes=holes, truth=truth)
            some = np.random.default_rng(seed).permutation(len(whole.patches))[:80]
            recordings.append(whole.part(some.tolist()))
    players = {"COAF as printed": PLAYERS["coaf-paper"], **ABLATIONS}
    tasks = [
        (recording, player, row, "none", range(1))
        for player, row, recording in product(players.values(), ROWS, recordings)
    ]
    found = np.array([one[0] for one in run(tasks)]).reshape(len(players), len(ROWS), grids)
    base = found[list(players).index("all of it")]
    rows = [
        [
            name,
            *(
                f"{cell.mean():.1f} ({_difference(cell - b)})"
                for cell, b in zip(mine, base, strict=True)
            ),
        ]
        for name, mine in zip(players, found, strict=True)
    ]
    text = f"\n{grids} simulated grids of 80 patches; in brackets, the paired difference:\n"
    return [text, table(["", *(row[0] for row in ROWS)], rows)]


def _difference(values: FloatArray) -> str:
    return f"{values.mean():+.1f} ± {values.std(ddof=1) / len(values) ** 0.5:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--orders", type=int, default=100)
    parser.add_argument("--ablations", type=int, default=40, help="Orders for the ablations.")
    parser.add_argument("--grids", type=int, default=12, help="Simulated grids.")
    given = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with ProcessPoolExecutor() as pool:
        run: Run = lambda tasks: list(pool.map(_task, tasks))  # noqa: E731
        parts = []
        if given.data.is_dir():
            recording = read_recording(given.data)
            parts += real_part(recording, given.orders, given.ablations, run)
        parts += simulated_part(given.grids, run)
    RESULTS.write_text("\n".join(parts) + "\n", encoding="utf-8")
    print(RESULTS.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
