"""What pricing a second by what is left brings. Writes docs/budget_results.md.

Every number on that page comes from this script: `python benchmarks/budget.py` (half an hour or
more on two cores; `--squares` and `--seeds` do less).
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from math import inf
from pathlib import Path
from typing import Literal

import numpy as np

import coaf
from coaf.bandit.actions import AnySubset, Capped
from coaf.bandit.arrays import FloatArray
from coaf.bandit.latency import Setup
from coaf.bandit.problem import Round
from coaf.bandit.rates.budget import Budget
from coaf.bandit.select import best
from coaf.cryoem.grid import Square
from coaf.cryoem.pilot import Choice, Left, Open
from coaf.cryoem.pilots.coaf import CoafPilot
from coaf.cryoem.session.collect import GOOD, collect
from coaf.cryoem.simulator.simulator import Simulator
from coaf.cryoem.timing import FAST, HOUR, SLOW
from coaf.worlds import Synthetic, optimum
from coaf.worlds.optimum import STREAM
from coaf.worlds.statistics import mean

DOCS = Path(__file__).resolve().parent.parent / "docs"
SQUARES = (6, 15)
HOURS = 64.0  # a row plays at least so many: where sessions are short gains are small
TIMES = {"scarce": 0.1, "about enough": 0.3, "plenty": 0.9}  # of what taking every hole needs
PATCHES, HOLES = 7, 20  # of a square, as a rule
FIRST = 6000  # the seeds before were used to find the rule


class Endless(CoafPilot):
    """The same pilot with the infinite-horizon rule: it is never told that time runs out.

    The session still starts nothing that cannot finish, and still offers to return to patches.
    """

    def square(self, squares: Sequence[Square], left: Left) -> Choice:
        return super().square(squares, replace(left, seconds=inf))

    def patch(self, patches: Sequence[Open], left: Left) -> Choice:
        return super().patch(patches, replace(left, seconds=inf))

    def hole(self, here: Open, left: Left, *, inside: bool) -> Choice:
        return super().hole(here, replace(left, seconds=inf), inside=inside)


@dataclass(frozen=True)
class Grid:
    """A simulated grid and the time there is for it."""

    regime: Literal["fast", "slow"]
    squares: int
    time: str

    @property
    def hours(self) -> float:
        timing = FAST if self.regime == "fast" else SLOW
        square = timing.square + PATCHES * (timing.enter + HOLES * timing.hole())
        return TIMES[self.time] * self.squares * square / HOUR


def sessions(grid: Grid, seed: int) -> list[float]:
    """Good micrographs, by truth, and the share of the time used, of both rules."""
    found: list[float] = []
    for rule in (CoafPilot, Endless):
        microscope = Simulator(
            seed,
            regime=grid.regime,
            squares=grid.squares,
            pixels=False,
            prediction=True,
            delay="none",
        )
        pilot = rule(microscope.timing, reward=GOOD, columns=microscope.feature_names)
        told = collect(microscope, pilot, hours=grid.hours, explore=0.0).summary()
        found += [told["true_good"], told["hours"] / grid.hours]
    return found


def grids(
    pool: Executor, seeds: range, squares: Sequence[int], write: Callable[[str], None]
) -> None:
    shares = ", ".join(f"{share:g}" for share in TIMES.values())
    heads = ["regime", "squares", "time", "grids", "hours", "budget", "used", "infinite horizon"]
    heads += ["used", "budget − infinite horizon"]
    write(
        "\n## Sessions\n\nGood micrographs by truth over *grids* (seeds from "
        f"{seeds[0]}, none of which was used to find the rule), scores at once; differences are "
        "paired, with 95 % intervals. *Scarce*, *about enough* and *plenty* are "
        f"{shares} of the time that taking every hole needs; *used* is the share of the time that "
        f"was used.\n\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}"
    )
    for time, count, regime in product(TIMES, squares, ("fast", "slow")):
        grid = Grid(regime, count, time)  # type: ignore[arg-type]
        drawn = range(seeds[0], seeds[0] + max(len(seeds), round(HOURS / grid.hours)))
        found = np.array(list(pool.map(partial(sessions, grid), drawn)))
        ours, used, theirs, used_too = found.mean(axis=0)
        write(
            f"| {regime} | {count} | {time} | {len(drawn)} | {grid.hours:.1f} "
            f"| {ours:.1f} | {used:.2f} | {theirs:.1f} | {used_too:.2f} "
            f"| {mean(found[:, 0] - found[:, 2])} |"
        )


# Rounds of a synthetic world: COAF with one rate or the other.

WORLD = Synthetic(
    dim=5,
    arms=(5, 25),
    base=(10.0, 14.0),
    setup=52.0,
    each=6.7,
    noise=0.4,
    norm=0.8,
    offset=0.5,
    seed=3,
)
ROUNDS = (15, 50)
SHARES = (0.5, 1.0, 2.0)


@cache
def usual_seconds() -> float:
    """What a round takes at the best rate of a world without end."""
    rate = optimum(WORLD, rounds=2000).rate
    scenes = WORLD.scenes(2000, STREAM)
    found = [best(rate, s.means, s.round.latency, s.round.actions) for s in scenes]
    return float(np.mean([f.seconds for f in found]))


def rounds_to_a_deadline(count: int, seconds: float, replicate: int) -> list[float]:
    """The expected reward of both rules, which learn the means; every round comes once."""
    found: list[float] = []
    for budget in (Budget(seconds, count), None):
        policy = coaf.COAF(WORLD.dim, rate=budget or coaf.MemoryRoot())
        left, reward = seconds, 0.0
        for j, scene in enumerate(WORLD.scenes(count, replicate)):
            r = scene.round
            if r.floor > left:
                break
            assert isinstance(r.latency, Setup)
            # Every arm takes the same time, and a number says so at once.
            latency = Setup(r.latency.base, r.latency.setup, float(np.max(r.latency.each)))
            all_of_it = latency.seconds(np.ones(r.n, dtype=np.bool_))
            actions = AnySubset() if all_of_it <= left else Capped(left)
            here = Round(r.features, latency, actions, key=f"{j}")
            if budget is not None:
                budget.remain(seconds=left, rounds=count - j - 1, here=here)
            decision = policy.decide(here)
            policy.commit(decision)
            arms = np.flatnonzero(decision.chosen)
            policy.learn(decision, arms, scene.rewards[arms])
            left -= decision.seconds
            reward += float(scene.means[arms].sum())
        found.append(reward)
    return found


def synthetic(pool: Executor, seeds: range, write: Callable[[str], None]) -> None:
    write(
        f"## Rounds of a synthetic world\n\nExpected reward over {len(seeds)} replicates of "
        "`COAF` with the rate `Budget` or `MemoryRoot`. Rounds come once, one after another. "
        "*Time* is relative to what the best rule without an end would spend on all rounds."
        "\n\n| rounds | time | budget | infinite horizon | budget − infinite horizon |"
        "\n|---|---|---|---|---|"
    )
    for count, share in product(ROUNDS, SHARES):
        play = partial(rounds_to_a_deadline, count, share * count * usual_seconds())
        found: FloatArray = np.array(list(pool.map(play, seeds, chunksize=5)))
        ours, theirs = found.T
        write(
            f"| {count} | {share:g} | {ours.mean():.2f} | {theirs.mean():.2f} "
            f"| {mean(ours - theirs)} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first", type=int, default=FIRST)
    parser.add_argument("--squares", type=int, nargs="*", default=SQUARES)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=DOCS / "budget_results.md")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    lines: list[str] = []

    def write(text: str) -> None:
        lines.append(text)
        print(text, file=sys.stderr, flush=True)
        options.out.write_text("\n".join(lines) + "\n")

    with ProcessPoolExecutor(options.processes) as pool:
        synthetic(pool, range(options.first, options.first + 60), write)
        grids(pool, seeds, options.squares, write)


if __name__ == "__main__":
    main()
