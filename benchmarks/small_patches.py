"""Patches of few holes: what COAF collects of a recorded grid cut to k holes a patch.

    python benchmarks/small_patches.py [--data DIR] [--orders 200] [--workers 2]

Writes docs/small_patches_results.md. DIR is a recorded grid, `../shared/data/cryorl-aldolase`
unless given. Each cell is a number of holes, a cut and a stage; all policies play the same orders,
and COAF is compared, order by order, with the better of the two rivals.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.cryoem.recorded.reading import read_recording
from coaf.cryoem.recorded.recording import Recording, Shots
from coaf.cryoem.recorded.replay import play_orders
from coaf.cryoem.recorded.seconds import Seconds
from coaf.cryoem.reward import GoodBelow
from coaf.cryoem.timing import HOUR

ROOT = Path(__file__).parents[1]
HOLES = (1, 2, 3, 5, 8, 13, 20)
CUTS = (3.8, 6.0)
STAGES = {"fast": Seconds(), "slow": Seconds(survey=10.0, move=95.0, expose=91.0)}
RIVALS = ("coaf-tuned", "take-all")
Cell = tuple[int, float, str]


def first_holes(recording: Recording, k: int) -> Recording:
    """The recording with the first k holes of each patch."""
    kept = np.concatenate(
        [
            np.arange(first, min(first + k, end))
            for first, end in zip(recording.starts[:-1], recording.starts[1:], strict=True)
        ]
    )
    starts = np.append(0, np.cumsum(np.minimum(np.diff(recording.starts), k)))
    row = np.full(len(recording.holes), -1)
    row[kept] = np.arange(len(kept))
    shots = recording.shots
    of = row[shots.hole] >= 0
    return replace(
        recording,
        holes=tuple(recording.holes[i] for i in kept),
        starts=starts,
        x=recording.x[kept],
        y=recording.y[kept],
        known=recording.known[kept],
        shots=Shots(
            row[shots.hole[of]],
            shots.number[of],
            shots.when[of],
            {name: values[of] for name, values in shots.values.items()},
        ),
    )


def play(recording: Recording, orders: int, task: tuple[Cell, str]) -> FloatArray:
    """Good an hour in each order; taking all is the same in every one."""
    (k, cut, stage), policy = task
    count = 1 if policy == "take-all" else orders
    played = play_orders(
        first_holes(recording, k),
        policy,
        range(count),
        seed=0,
        reward=GoodBelow(cut),
        seconds=STAGES[stage],
    )
    return np.resize([one.good / one.seconds * HOUR for one in played], orders)


def page(found: dict[tuple[Cell, str], FloatArray], orders: int) -> str:
    lines = [
        f"Good micrographs an hour, means over {orders} orders of the patches. The difference is "
        "to the better of the two rivals, paired, with its standard error.",
        "",
        "| holes | good below | stage | COAF | tuned COAF | take all | difference | relative | z |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    below = unsure = 0
    for cell in product(HOLES, CUTS, STAGES):
        ours, rivals = found[cell, "coaf"], [found[cell, name] for name in RIVALS]
        best = max(rivals, key=lambda one: float(one.mean()))
        difference = ours - best
        error = float(difference.std(ddof=1)) / np.sqrt(orders)
        relative = float(difference.mean() / best.mean())
        z = float(difference.mean()) / error if error else 0.0
        below, unsure = below + (relative < -0.05), unsure + (z < -2.0)
        means = " | ".join(f"{one.mean():.1f}" for one in (ours, *rivals))
        lines.append(
            f"| {cell[0]} | {cell[1]:g} Å | {cell[2]} | {means} | "
            f"{difference.mean():+.2f} ± {error:.2f} | {relative:+.1%} | {z:+.1f} |"
        )
    lines += [
        "",
        f"Cells below −5 %: {below}. Cells more than two standard errors below: {unsure}.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared/data/cryorl-aldolase")
    parser.add_argument("--orders", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "small_patches_results.md")
    given = parser.parse_args()
    tasks = list(product(product(HOLES, CUTS, STAGES), ("coaf", *RIVALS)))
    work = partial(play, read_recording(given.data), given.orders)
    with ProcessPoolExecutor(given.workers) as pool:
        found = dict(zip(tasks, pool.map(work, tasks), strict=True))
    given.out.write_text(page(found, given.orders), "utf-8")


if __name__ == "__main__":
    main()
