"""Beginning with what an earlier grid taught: what it gains where grids are alike, and may cost.

    python benchmarks/knowledge.py [--grids 16] [--splits 6] [--half judge] [--workers 2]

Writes docs/knowledge_results.md. On grids of the population COAF collects for 3 hours: from
nothing, after a session of 3 hours on a grid of the same specimen (the same numbers behind it,
another seed), and after one on another member of the population, whatever that is. Of the recorded
grid of aldolase one half of the squares is played in random orders, from nothing and after the
other half.
How far an earlier grid is trusted was chosen on the half "develop".
"""

import argparse
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import get_args

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.cryoem.pilots.coaf import CoafPilot
from coaf.cryoem.pilots.knowledge import Knowledge
from coaf.cryoem.recorded.reading import read_recording
from coaf.cryoem.recorded.recording import Recording
from coaf.cryoem.recorded.replay import play
from coaf.cryoem.reward import GoodBelow
from coaf.cryoem.session.collect import collect
from coaf.cryoem.session.events import Settings
from coaf.cryoem.session.session import Session
from coaf.cryoem.simulator.population import Half, member
from coaf.cryoem.simulator.simulator import Simulator
from coaf.worlds.statistics import mean

RESULTS = Path(__file__).parents[1] / "docs" / "knowledge_results.md"
RECORDED = Path(__file__).parents[2] / "shared" / "data" / "cryorl-aldolase"
HOURS, SQUARES, ORDERS = 3.0, 32, 1
CUTS = (3.8, 6.0)
OTHER_SEED = 500_000
FIRST = 10  # numbers of the members: those before were looked at while this was written


def session(
    index: int, half: Half, *, more: int = 0, knowledge: Knowledge | None = None
) -> Session:
    one = member(index, half)
    simulator = Simulator(
        one.seed + more,
        squares=SQUARES,
        pixels=False,
        prediction=True,
        faults=(),
        conditions=one.conditions,
    )
    return collect(simulator, "coaf", hours=HOURS, explore=0.0, knowledge=knowledge)


def of_grid(task: tuple[int, Half]) -> list[float]:
    """Good micrographs from nothing, after a grid like it, and after the member that follows."""
    index, half = task
    before = [
        None,
        session(index, half, more=OTHER_SEED).knowledge,
        session(index + 1, half, more=OTHER_SEED).knowledge,
    ]
    return [float(session(index, half, knowledge=one).line()["good"]) for one in before]


def halves(recording: Recording, number: int) -> tuple[Recording, Recording]:
    """The holes of half of the squares, and of the others."""
    rng = np.random.default_rng([14, number])
    names = sorted(set(recording.squares))
    first = set(rng.permutation(names)[: len(names) // 2].tolist())
    inside = np.array([square in first for square in recording.squares])
    one, other = (recording.part(np.flatnonzero(held).tolist()) for held in (inside, ~inside))
    return one, other


def of_split(task: tuple[Path, int, float]) -> list[float]:
    """Good an hour on a half: from nothing, and after the other half."""
    folder, number, cut = task
    reward, kept = GoodBelow(cut), list[CoafPilot]()
    recording = read_recording(folder)

    def make(settings: Settings, *, earlier: Sequence[Knowledge] = ()) -> CoafPilot:
        columns = settings.columns
        pilot = CoafPilot(settings.timing, reward=reward, columns=columns, earlier=earlier)
        kept.append(pilot)
        return pilot

    found: list[list[float]] = []
    for learned, played in (pair := halves(recording, number), pair[::-1]):
        count = len(learned.playable().patches)
        play(
            learned, make, np.random.default_rng(number).permutation(count).tolist(), reward=reward
        )
        known = kept[-1].knowledge()
        rates = []
        for earlier in ((), () if known is None else (known,)):
            rng = np.random.default_rng([number, 5])
            of = len(played.playable().patches)
            told = partial(make, earlier=earlier)
            passes = [
                play(played, told, rng.permutation(of).tolist(), reward=reward)
                for _ in range(ORDERS)
            ]
            rates.append(float(np.mean([3600.0 * one.good / one.seconds for one in passes])))
        found.append(rates)
    return [float(value) for value in np.mean(found, axis=0)]


def shown(gain: FloatArray) -> str:
    found = mean(100.0 * gain)
    return f"{found.value:+.1f} [{found.low:+.1f}, {found.high:+.1f}]"


def lines(table: FloatArray, rows: FloatArray, half: Half) -> Iterator[str]:
    nothing, alike, unlike = table.T
    base = nothing.mean()
    yield (
        f'{len(table)} grids of the half "{half}" of the population, {HOURS:g} h, fast, {SQUARES} '
        "squares: good micrographs a session, means, and the gain over beginning with nothing in "
        "percent of its mean, paired, with 95 % intervals."
    )
    yield ""
    yield "| begins with | good | gain |"
    yield "|---|---|---|"
    yield f"| nothing | {base:.1f} | |"
    for what, good in (("a grid of the same specimen", alike), ("another grid", unlike)):
        yield f"| {what} | {good.mean():.1f} | {shown((good - nothing) / base)} |"
    yield ""
    yield (
        f"The recorded grid, {len(rows)} splits of its squares in halves, each half played in "
        f"random order ({ORDERS} each): good an hour."
    )
    yield ""
    yield "| good below | nothing | the other half | gain |"
    yield "|---|---|---|---|"
    for cut, pairs in zip(CUTS, np.swapaxes(rows, 0, 1), strict=True):
        before, after = pairs.T
        gain = shown((after - before) / before.mean())
        yield f"| {cut:g} Å | {before.mean():.1f} | {after.mean():.1f} | {gain} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--grids", type=int, default=16)
    parser.add_argument("--splits", type=int, default=6)
    parser.add_argument("--half", choices=get_args(Half), default="judge")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--recorded", type=Path, default=RECORDED)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    grids = [(FIRST + k, given.half) for k in range(given.grids)]
    splits = [(given.recorded, k, cut) for k in range(given.splits) for cut in CUTS]
    with ProcessPoolExecutor(given.workers) as pool:
        table = np.array(list(pool.map(of_grid, grids)))
        rows = np.array(list(pool.map(of_split, splits))).reshape(-1, len(CUTS), 2)
    text = "\n".join(lines(table, rows, given.half)) + "\n"
    given.out.write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()
