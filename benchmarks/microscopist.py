"""Fix the constants of the baselines on grids that nothing else is tried on.

    python benchmarks/microscopist.py [--grids 10] [--tries 48]

Each constant is chosen by the mean, over grids and over both timing regimes, of what is collected
as a share of the clairvoyant limit. The best of each are printed; they are what
`coaf.cryoem.pilots.baselines` and `coaf.cryoem.pilots.microscopist` hold.
"""

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from coaf.cryoem.pilot import Pilot
from coaf.cryoem.pilots.baselines import FixedCut, IntensityWindow, ScoreOrder
from coaf.cryoem.pilots.catalogue import clairvoyant
from coaf.cryoem.pilots.microscopist import THUMB, Microscopist, Thumb
from coaf.cryoem.session.collect import GOOD, collect
from coaf.cryoem.simulator.simulator import Simulator

FIRST = 1000  # the first seed
HOURS = {"fast": 3.0, "slow": 24.0}
SQUARES = 40
ICE, PREDICTION = 0, -1


@cache
def grid(seed: int, regime: str) -> tuple[Simulator, float]:
    """A grid, and its limit."""
    simulator = Simulator(seed, regime=regime, squares=SQUARES, pixels=False, prediction=True)  # type: ignore[arg-type]
    return simulator, clairvoyant(simulator, hours=HOURS[regime], reward=GOOD).limit


def window(setting: tuple[float, float]) -> Pilot:
    return IntensityWindow(ICE, setting)


def cut(setting: float) -> Pilot:
    return FixedCut(PREDICTION, setting)


def order(setting: float) -> Pilot:
    return ScoreOrder(PREDICTION, setting)


def person(setting: tuple[int, Thumb]) -> Pilot:
    return Microscopist(*setting)


def shares(task: tuple[int, Callable[[Any], Pilot], list[object]]) -> list[float]:
    """What each setting reaches on a grid, mean of both regimes."""
    seed, make, settings = task
    reached = []
    for setting in settings:
        each = []
        for regime, hours in HOURS.items():
            simulator, limit = grid(seed, regime)
            pilot = make(setting)
            session = collect(simulator.again(), pilot, hours=hours, explore=0.0)
            each.append(session.line()["good"] / max(limit, 1.0))
        reached.append(float(np.mean(each)))
    return reached


def thumbs(count: int) -> list[object]:
    """Sets of rules, drawn at random."""
    rng = np.random.default_rng(0)
    made: list[object] = []
    for k in range(count):
        thumb = replace(
            THUMB,
            area=float(rng.choice([0.0, 0.5, 0.7])),
            tries=int(rng.choice([4, 8, 12, 20])),
            keep=float(rng.choice([0.05, 0.1, 0.2, 0.3])),
            run=int(rng.choice([3, 5, 8, 12])),
            enough=int(rng.choice([5, 10, 20])),
            margin=float(rng.choice([0.0, 0.25, 0.5])),
            window=(float(rng.choice([0.0, 0.05])), float(rng.choice([0.1, 0.2, 0.35, 0.5]))),
        )
        made.append(((ICE, PREDICTION)[k % 2], thumb))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--grids", type=int, default=10)
    parser.add_argument("--tries", type=int, default=48)
    options = parser.parse_args()
    windows: list[object] = list(product((0.0, 0.02, 0.05), (0.06, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75)))
    cuts: list[object] = [4.0, 4.5, 5.0, 5.5, 6.0, 6.5, 7.0, 8.0]
    scales: list[object] = [0.25, 0.5, 1.0, 2.0, 4.0]
    searches: dict[str, tuple[Callable[[Any], Pilot], list[object]]] = {
        "window": (window, windows),
        "fixed cut": (cut, cuts),
        "score order": (order, scales),
        "microscopist": (person, thumbs(options.tries)),
    }
    seeds = range(FIRST, FIRST + options.grids)
    with ProcessPoolExecutor(2) as pool:
        for name, (make, settings) in searches.items():
            tasks = [(seed, make, settings) for seed in seeds]
            found = np.array(list(pool.map(shares, tasks)))
            mean, error = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(len(found))
            print(f"{name}, {len(found)} grids:")
            for k in np.argsort(-mean)[:6]:
                print(f"  {mean[k]:.3f} ± {error[k]:.3f}  {settings[k]}", flush=True)


if __name__ == "__main__":
    main()
