"""What each part of the policy for recorded grids brings, on a recorded grid and on simulated ones.

    python benchmarks/replay.py [--data DIR] [--orders 100] [--ablations 40] [--grids 12]

Writes docs/replay_results.md, or what `--out` names. DIR is a recorded grid,
`../shared/data/cryorl-aldolase` unless given; without one, the simulated grids are all there is.
"""

import argparse
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.mixture import Mixture
from coaf.bandit.beliefs.nested.nested import Nested
from coaf.bandit.index import Mean
from coaf.bandit.latency import Latency
from coaf.bandit.policies.coaf import COAF
from coaf.bandit.policies.stepwise import Stepwise
from coaf.bandit.problem import Round
from coaf.bandit.rates.memory_root import MemoryRoot
from coaf.cryoem.pilots.coaf import CoafPilot
from coaf.cryoem.pilots.designs import NEAR, Design, design_for
from coaf.cryoem.pilots.paper import WholePatch
from coaf.cryoem.pilots.prediction import (
    OTHER,
    SHARES,
    USUAL,
    prediction_belief,
    typical_patches,
)
from coaf.cryoem.recorded.reading import read_recording
from coaf.cryoem.recorded.recording import Recording
from coaf.cryoem.recorded.replay import play_orders
from coaf.cryoem.recorded.seconds import Seconds
from coaf.cryoem.recorded.yardsticks import best_fixed_cut, calibrated, clairvoyant_rate
from coaf.cryoem.reward import GoodBelow, parse_reward
from coaf.cryoem.session.events import Settings
from coaf.cryoem.session.situation import Make
from coaf.cryoem.simulator.record import record
from coaf.cryoem.simulator.simulator import Simulator
from coaf.cryoem.timing import HOUR

RESULTS = Path(__file__).parents[1] / "docs" / "replay_results.md"
DATA = Path(__file__).parents[2] / "shared" / "data" / "cryorl-aldolase"
ROWS = [
    ("paper's times, 3.8 Å", 3.8, Seconds()),
    ("paper's times, 6 Å", 6.0, Seconds()),
    ("slow stage, 3.8 Å", 3.8, Seconds(10.0, 95.0, 91.0)),
    ("slow stage, 6 Å", 6.0, Seconds(10.0, 95.0, 91.0)),
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


def designed(settings: Settings) -> Design:
    """The design of all of it, for what is seen and rewarded here."""
    return design_for(settings.columns, parse_reward(settings.reward))


def piloted(settings: Settings, design: Design) -> CoafPilot:
    reward = parse_reward(settings.reward)
    return CoafPilot(settings.timing, reward=reward, columns=settings.columns, design=design)


def nothing(latency: Latency, holes: int) -> list[Round]:
    """No rounds to expect."""
    return []


def no_typical(settings: Settings) -> CoafPilot:
    return piloted(settings, replace(designed(settings), typical=nothing))


def vague(settings: Settings) -> CoafPilot:
    belief = partial(Nested, 2, scale=5.0)
    design = replace(designed(settings), belief=belief, typical=nothing, placed=False)
    return piloted(settings, design)


def own_only(settings: Settings) -> CoafPilot:
    whole = designed(settings)

    def own(rows: FloatArray) -> FloatArray:
        found: FloatArray = whole.features(rows).sum(axis=1, keepdims=True)
        return found

    def belief() -> Mixture:
        beliefs = [
            Nested(3, centre=(c[0], c[2]), scale=(s[0], s[2]), effects=effects, near=NEAR)
            for c, s, effects in (USUAL, OTHER)
        ]
        return Mixture(beliefs, weights=SHARES)

    return piloted(settings, replace(whole, features=own, belief=belief, typical=nothing))


def grouped(settings: Settings, levels: int) -> CoafPilot:
    """With effects of the innermost levels alone; without any, nothing is shared nearby either."""
    near = NEAR if levels else None

    def belief() -> Mixture:
        beliefs = [
            Nested(4 if levels else 2, centre=c, scale=s, effects=e[len(e) - levels :], near=near)
            for c, s, e in (USUAL, OTHER)
        ]
        return Mixture(beliefs, weights=SHARES)

    design = replace(designed(settings), belief=belief)
    return piloted(settings, design if levels else unplaced(settings, belief))


def unplaced(settings: Settings, belief: Callable[[], Mixture]) -> Design:
    """With a belief that is not told where holes lie."""
    reward = parse_reward(settings.reward)
    assert isinstance(reward, GoodBelow)

    def typical(latency: Latency, holes: int) -> list[Round]:
        return typical_patches(reward.cut, latency, np.zeros((holes, 0)))

    return replace(designed(settings), belief=belief, typical=typical, placed=False)


def no_places(settings: Settings) -> CoafPilot:
    return piloted(settings, unplaced(settings, prediction_belief))


def one_prior(settings: Settings, prior: tuple[tuple[float, ...], ...]) -> CoafPilot:
    centre, scale, effects = prior
    belief = partial(Nested, 4, centre=centre, scale=scale, effects=effects, near=NEAR)
    return piloted(settings, replace(designed(settings), belief=belief))


def blind(settings: Settings) -> CoafPilot:
    design = designed(settings)
    pilot = piloted(settings, design)
    pilot.policy = Blind(design.belief())
    return pilot


def whole_subsets(settings: Settings, *, optimistic: bool) -> WholePatch:
    index = None if optimistic else Mean()
    policy = COAF(belief=prediction_belief(), index=index, rate=MemoryRoot())
    return WholePatch(policy, designed(settings).features)


ABLATIONS: dict[str, str | Make] = {
    "all of it": "coaf",
    "no typical patches to begin with": no_typical,
    "nothing expected at all": vague,
    "no average over the patch": own_only,
    "only the usual prior": partial(one_prior, prior=USUAL),
    "only the other prior": partial(one_prior, prior=OTHER),
    "no effects of squares": partial(grouped, levels=1),
    "no effects of squares and patches": partial(grouped, levels=0),
    "holes near each other no more alike": no_places,
    "no value of the option to stop": blind,
    "whole subsets, by means": partial(whole_subsets, optimistic=False),
    "whole subsets, optimistic": partial(whole_subsets, optimistic=True),
}


def rates(
    recording: Recording,
    pilot: str | Make,
    row: tuple[str, float, Seconds],
    delay: Any,
    orders: range,
) -> FloatArray:
    _, cut, seconds = row
    asked: dict[str, Any] = {"reward": GoodBelow(cut), "seconds": seconds, "delay": delay}
    passes = play_orders(recording, pilot, orders, seed=0, **asked)
    return np.array([HOUR * one.good / one.seconds for one in passes])


def _task(
    task: tuple[Recording, str | Make, tuple[str, float, Seconds], Any, range],
) -> FloatArray:
    return rates(*task)


def shown(values: FloatArray) -> str:
    digits = 1 if values.mean() > 100 else 2
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    error = values.std(ddof=1) / len(values) ** 0.5
    return f"{values.mean():.{digits}f} ± {error:.{digits}f}"


def table(heads: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in [heads, ["---"] * len(heads), *rows]]
    return "\n".join(lines)


Run = Callable[[list[Any]], list[FloatArray]]


def real_part(recording: Recording, orders: int, ablations: int, run: Run) -> list[str]:
    names = ("take-all", "coaf-paper", "coaf-tuned", "coaf")
    tasks: list[Any] = [
        (recording, name, row, "none", range(orders)) for row, name in product(ROWS, names)
    ]
    found = iter(run(tasks))
    rows = []
    for row in ROWS:
        asked = (recording, GoodBelow(row[1]))
        ends = [
            best_fixed_cut(*asked, "prediction", row[2]),
            calibrated(*asked, "prediction", row[2]),
            clairvoyant_rate(*asked, row[2]),
        ]
        cells = [shown(next(found)) for _ in names]
        rows.append([row[0], *cells, *(f"{HOUR * end:.1f}" for end in ends)])
    heads = ["", "take all", "COAF as printed", "COAF, a tenth of the radius", "**ours**"]
    heads += ["best fixed cut in hindsight", "calibrated oracle", "clairvoyant"]
    text = [f"Good micrographs per hour, {orders} orders, scores at once:\n", table(heads, rows)]
    tasks = [
        (recording, pilot, row, "none", range(ablations))
        for pilot, row in product(ABLATIONS.values(), ROWS)
    ]
    found = iter(run(tasks))
    rows = [[name, *(shown(next(found)) for _ in ROWS)] for name in ABLATIONS]
    text += [f"\nWithout a part of it, {ablations} orders:\n"]
    text += [table(["", *(row[0] for row in ROWS)], rows)]
    tasks = [
        (recording, "coaf", row, delay, range(ablations)) for delay, row in product(DELAYS, ROWS)
    ]
    found = iter(run(tasks))
    rows = [[str(delay), *(shown(next(found)) for _ in ROWS)] for delay in DELAYS]
    text += [f"\nScores that come late (seconds, or the measured queue), {ablations} orders:\n"]
    return [*text, table(["delay", *(row[0] for row in ROWS)], rows)]


def simulated_part(grids: int, run: Run) -> list[str]:
    recordings = []
    for seed in range(FIRST, FIRST + grids):
        whole = record(Simulator(seed, pixels=False, prediction=True, delay="none"))
        some = np.random.default_rng(seed).permutation(len(whole.patches))[:80]
        recordings.append(whole.part(some.tolist()))
    pilots: dict[str, str | Make] = {"COAF as printed": "coaf-paper", **ABLATIONS}
    tasks = [
        (recording, pilot, row, "none", range(1))
        for pilot, row, recording in product(pilots.values(), ROWS, recordings)
    ]
    found = np.array([one[0] for one in run(tasks)]).reshape(len(pilots), len(ROWS), grids)
    base = found[list(pilots).index("all of it")]
    rows = [
        [
            name,
            *(
                f"{cell.mean():.1f} ({_difference(cell - b)})"
                for cell, b in zip(mine, base, strict=True)
            ),
        ]
        for name, mine in zip(pilots, found, strict=True)
    ]
    text = f"\n{grids} simulated grids of 80 patches; in brackets, the paired difference:\n"
    return [text, table(["", *(row[0] for row in ROWS)], rows)]


def _difference(values: FloatArray) -> str:
    if len(values) == 1:
        return f"{values[0]:+.1f}"
    return f"{values.mean():+.1f} ± {values.std(ddof=1) / len(values) ** 0.5:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--orders", type=int, default=100)
    parser.add_argument("--ablations", type=int, default=40, help="Orders for the ablations.")
    parser.add_argument("--grids", type=int, default=12, help="Simulated grids.")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with ProcessPoolExecutor() as pool:
        run: Run = lambda tasks: list(pool.map(_task, tasks))  # noqa: E731
        parts = []
        if given.data.is_dir():
            recording = read_recording(given.data)
            parts += real_part(recording, given.orders, given.ablations, run)
        parts += simulated_part(given.grids, run)
    given.out.write_text("\n".join(parts) + "\n", encoding="utf-8")
    print(given.out.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
