"""By how much COAF leads what careful people would set, on grids that nothing was fixed on.

    python benchmarks/leads.py [--grids 30] [--reward ctf<3.8 particles/100] [--half judge]

Writes docs/leads_results.md. Grids are the default simulator's with seeds from 8000, and those of
the half "judge" of the population; with `--half develop`, of others from 7000 and that half, for
those who change a pilot. All pilots collect from each, without exploring, in both timing
regimes; what counts is the truth, scored or not.
"""

import argparse
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.cryoem.pilots.catalogue import OTHERS
from coaf.cryoem.reward import parse_reward
from coaf.cryoem.session.collect import collect
from coaf.cryoem.simulator.population import Half, member
from coaf.cryoem.simulator.simulator import Simulator
from coaf.cryoem.unit import unit_of
from coaf.worlds.statistics import mean

RESULTS = Path(__file__).parents[1] / "docs" / "leads_results.md"
Regime = Literal["fast", "slow"]
Kind = Literal["default", "population"]
Task = tuple[Half, str, Kind, Regime, int]

PILOTS = ("coaf", *OTHERS)
HOURS: dict[Regime, float] = {"fast": 3.0, "slow": 12.0}
SQUARES = 32
FIRST: dict[Half, int] = {"judge": 8000, "develop": 7000}
KINDS = {"default": "the default simulator's", "population": "of the population"}


def grid(half: Half, kind: Kind, regime: Regime, number: int) -> Simulator:
    same: dict[str, Any] = {"regime": regime, "squares": SQUARES, "pixels": False}
    if kind == "default":
        return Simulator(FIRST[half] + number, prediction=True, **same)
    one = member(number, half)
    return Simulator(one.seed, conditions=one.conditions, prediction=True, **same)


def play(task: Task) -> list[float]:
    """What each pilot collects in truth."""
    half, reward, kind, regime, number = task
    microscope = grid(half, kind, regime, number)
    found = []
    for name in PILOTS:
        session = collect(microscope.again(), name, hours=HOURS[regime], reward=reward, explore=0.0)
        found.append(float(session.line()["good"]))
    return found


def table(rewards: list[str], found: FloatArray) -> Iterator[str]:
    """Of what was collected (reward, kind, regime, grid, pilot)."""
    grids = found.shape[3]
    yield (
        f"Means over {grids} grids; fast is {HOURS['fast']:g} h, slow {HOURS['slow']:g} h, "
        f"{SQUARES} squares. The lead of `coaf` is paired by grid, in percent of the other's mean, "
        "with a 95 % interval."
    )
    for (text, kind), of_kind in zip(
        product(rewards, KINDS), found.reshape(-1, *found.shape[2:]), strict=True
    ):
        unit = unit_of(parse_reward(text))
        yield f"\n{unit.heading.capitalize()} ({text}), grids {KINDS[kind]}:\n"
        yield "| | " + " | ".join(f"{regime} | lead of `coaf`" for regime in HOURS) + " |"
        yield "|---" * (1 + 2 * len(HOURS)) + "|"
        for k, name in enumerate(PILOTS):
            cells = []
            for rows in of_kind:
                cells.append(f"{unit.scale * rows[:, k].mean():,.0f}")
                if k == 0:
                    cells.append("")
                    continue
                lead = mean(100.0 * (rows[:, 0] - rows[:, k]) / rows[:, k].mean())
                cells.append(f"{lead.value:+.1f} [{lead.low:+.1f}, {lead.high:+.1f}]")
            yield f"| `{name}` | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--grids", type=int, default=30)
    parser.add_argument("--reward", nargs="+", default=["ctf<3.8", "particles/100"])
    parser.add_argument("--half", choices=get_args(Half), default="judge")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    tasks = list(product([given.half], given.reward, KINDS, HOURS, range(given.grids)))
    with ProcessPoolExecutor(given.workers) as pool:
        found = np.array(list(pool.map(play, tasks)))
    shape = len(given.reward), len(KINDS), len(HOURS), given.grids, len(PILOTS)
    given.out.write_text("\n".join(table(given.reward, found.reshape(shape))) + "\n", "utf-8")
    print(given.out.read_text("utf-8"))


if __name__ == "__main__":
    main()
