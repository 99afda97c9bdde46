"""Fix the constants of the rivals on grids that nothing else is tried on.

    python benchmarks/rivals.py [--grids 10] [--screen 3] [--only window ...]

Half of the grids are the default simulator's with seeds from 1000, half are those of the population
that are there to develop on. Each setting is chosen by the mean, over grids and over both timing
regimes, of what is collected as a share of the clairvoyant limit: all settings are tried on the
first few grids of each kind, and the best of them on all. What comes first is what
`coaf.cryoem.pilots.baselines`, `cut_and_count` and `microscopist` hold.
"""

import argparse
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any, Literal, get_args

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.cryoem.pilot import Pilot
from coaf.cryoem.pilots.baselines import FixedCut, IntensityWindow, ScoreOrder
from coaf.cryoem.pilots.catalogue import clairvoyant
from coaf.cryoem.pilots.cut_and_count import CutAndCount
from coaf.cryoem.pilots.microscopist import THUMB, Microscopist, Thumb
from coaf.cryoem.pilots.square_order import SquareOrder
from coaf.cryoem.session.collect import GOOD, collect
from coaf.cryoem.simulator.population import member
from coaf.cryoem.simulator.simulator import Simulator

FIRST = 1000  # the first seed of the default simulator's
HOURS: dict[Literal["fast", "slow"], float] = {"fast": 3.0, "slow": 24.0}
SQUARES = 40
KEPT = 5  # settings that are tried on all grids
ICE, PREDICTION = 0, -1
ORDERS: tuple[SquareOrder, ...] = get_args(SquareOrder)

Kind = Literal["default", "population"]


@lru_cache(maxsize=4)
def grid(kind: Kind, number: int, regime: Literal["fast", "slow"]) -> tuple[Simulator, float]:
    """A grid, and its limit."""
    same: dict[str, Any] = {"squares": SQUARES, "pixels": False, "prediction": True}
    if kind == "default":
        simulator = Simulator(FIRST + number, regime=regime, **same)
    else:
        one = member(number, "develop")
        simulator = Simulator(one.seed, regime=regime, conditions=one.conditions, **same)
    return simulator, clairvoyant(simulator, hours=HOURS[regime], reward=GOOD).limit


@dataclass(frozen=True)
class Search:
    """What a rival could be set to, and the rival so set."""

    make: Callable[..., Pilot]
    settings: list[dict[str, Any]]


def every(**choices: Any) -> list[dict[str, Any]]:
    """All combinations."""
    return [dict(zip(choices, row, strict=True)) for row in product(*choices.values())]


def window(**setting: Any) -> Pilot:
    return IntensityWindow(ICE, **setting)


def fixed_cut(**setting: Any) -> Pilot:
    return FixedCut(PREDICTION, **setting)


def cut_and_count(**setting: Any) -> Pilot:
    return CutAndCount(PREDICTION, **setting)


def score_order(**setting: Any) -> Pilot:
    return ScoreOrder(PREDICTION, **setting)


def microscopist(column: int, thumb: Thumb) -> Pilot:
    return Microscopist(column, thumb)


def thumbs(count: int) -> Iterator[dict[str, Any]]:
    """The rules that are held now, and sets of rules drawn at random; by both columns."""
    yield from ({"column": column, "thumb": THUMB} for column in (ICE, PREDICTION))
    rng = np.random.default_rng(0)
    for k in range(count):
        thumb = replace(
            THUMB,
            area=float(rng.choice([0.0, 0.5, 0.7])),
            tries=int(rng.choice([4, 8, 12, 20])),
            keep=float(rng.choice([0.05, 0.1, 0.2, 0.3])),
            run=int(rng.choice([3, 5, 8, 12])),
            enough=int(rng.choice([5, 10, 20])),
            margin=float(rng.choice([0.0, 0.25, 0.5])),
            window=(float(rng.choice([0.0, 0.05])), float(rng.choice([0.2, 0.35, 0.5]))),
        )
        yield {"column": (ICE, PREDICTION)[k % 2], "thumb": thumb}


# The order of squares was tried with the simplest rule, and the best of it is the other rules'.
SEARCHES = {
    "fixed-cut": Search(fixed_cut, every(cut=[4.0, 4.5, 5.0, 5.5, 6.0], order=ORDERS)),
    "cut-and-count": Search(
        cut_and_count, every(cut=[4.5, 5.0, 5.5, 6.0], count=[8, 11, 14], share=[0.4, 0.7])
    ),
    "window": Search(
        window, every(window=[(0.0, high) for high in (0.1, 0.2, 0.35, 0.5, 0.75)], first=[1, 3])
    ),
    "score-order": Search(score_order, every(scale=[0.5, 1.0, 2.0, 4.0])),
    "microscopist": Search(microscopist, list(thumbs(28))),
}

Task = tuple[str, list[dict[str, Any]], Kind, int]


def shares(task: Task) -> list[float]:
    """What each setting reaches on a grid, mean of both regimes."""
    name, settings, kind, number = task
    reached = np.empty((len(settings), len(HOURS)))
    for j, (regime, hours) in enumerate(HOURS.items()):
        simulator, limit = grid(kind, number, regime)
        for i, setting in enumerate(settings):
            pilot = SEARCHES[name].make(**setting)
            session = collect(simulator.again(), pilot, hours=hours, explore=0.0)
            reached[i, j] = session.line()["good"] / max(limit, 1.0)
    found: list[float] = reached.mean(axis=1).tolist()
    return found


def tried(
    pool: ProcessPoolExecutor, name: str, settings: list[dict[str, Any]], grids: range
) -> FloatArray:
    """What each setting reaches on each grid: (kinds, grids, settings)."""
    tasks = [(name, settings, kind, k) for kind in get_args(Kind) for k in grids]
    return np.array(list(pool.map(shares, tasks))).reshape(2, len(grids), len(settings))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--grids", type=int, default=10, help="of each kind")
    parser.add_argument("--screen", type=int, default=3, help="of each kind, for all settings")
    parser.add_argument("--only", nargs="*", default=list(SEARCHES), help="these rivals")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with ProcessPoolExecutor(options.workers) as pool:
        for name in options.only:
            settings = SEARCHES[name].settings
            first = tried(pool, name, settings, range(options.screen))
            best = np.argsort(-first.mean(axis=(0, 1)), kind="stable")[:KEPT]
            kept = [settings[k] for k in best]
            rest = tried(pool, name, kept, range(options.screen, options.grids))
            found = np.concatenate([first[:, :, best], rest], axis=1)
            print(f"{name}, {found.shape[0] * found.shape[1]} grids (default, population):")
            flat = found.reshape(-1, len(kept))
            error = flat.std(axis=0, ddof=1) / np.sqrt(len(flat))
            for k in np.argsort(-flat.mean(axis=0), kind="stable"):
                kinds = ", ".join(f"{value:.3f}" for value in found[:, :, k].mean(axis=1))
                print(f"  {flat[:, k].mean():.3f} ± {error[k]:.3f} ({kinds})  {kept[k]}")
            print(flush=True)


if __name__ == "__main__":
    main()
