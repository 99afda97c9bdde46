"""How the ranking of policies moves when each of the simulator's conditions changes by 30 %.

    python benchmarks/ranking.py [--seeds 2] [--hours 1] [--squares 12]

Writes docs/simulator_ranking.md: for each number, good micrographs (by truth) of every policy on
the same grids, relative to COAF's in the same, and whether the order changed.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields
from pathlib import Path

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.cryoem.session.collect import collect
from coaf.cryoem.simulator.conditions import Conditions
from coaf.cryoem.simulator.simulator import Simulator

RESULTS = Path(__file__).parents[1] / "docs" / "simulator_ranking.md"
POLICIES = ("coaf", "microscopist", "window", "fixed-cut", "score-order", "take-all")
FACTORS = (0.7, 1.3)
FIRST = 2000  # seeds that nothing was fitted to


def good(task: tuple[str, float, int, float, int]) -> list[float]:
    """Truly good micrographs of each policy on one grid."""
    name, factor, seed, hours, squares = task
    conditions = Conditions().scaled(**{name: factor}) if name else Conditions()
    found = []
    for policy in POLICIES:
        simulator = Simulator(
            seed, squares=squares, pixels=False, prediction=True, faults=(), conditions=conditions
        )
        session = collect(simulator, policy, hours=hours, explore=0.0)
        found.append(float(session.summary()["true_good"]))
    return found


def described(totals: FloatArray) -> str:
    share = totals / max(totals[0], 1.0)
    return " | ".join([f"{totals[0]:.0f}", *(f"{100 * s:.0f} %" for s in share[1:])])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--squares", type=int, default=12)
    given = parser.parse_args()
    settings = [("", 1.0), *((f.name, by) for f in fields(Conditions) for by in FACTORS)]
    seeds = range(FIRST, FIRST + given.seeds)
    tasks = [(n, by, s, given.hours, given.squares) for n, by in settings for s in seeds]
    with ProcessPoolExecutor() as pool:
        found = np.array(list(pool.map(good, tasks, chunksize=2)))
    totals = found.reshape(len(settings), given.seeds, len(POLICIES)).sum(axis=1)
    usual = np.argsort(-totals[0], kind="stable")
    lines = [
        f"{given.seeds} grids of {given.squares} squares, {given.hours:g} h each at the paper's "
        "times. COAF in good micrographs, the others as a share of COAF's.\n",
        f"| parameter | factor | {' | '.join(POLICIES)} | order |",
        f"|{'---|' * (len(POLICIES) + 3)}",
    ]
    moved = lost = 0
    for (name, by), total in zip(settings, totals, strict=True):
        order = np.argsort(-total, kind="stable")
        same = np.array_equal(order, usual)
        first = order[0] == 0
        moved, lost = moved + (not same), lost + (not first)
        note = "" if same else ("moved" if first else "COAF is not first")
        lines.append(f"| {name or 'as it is'} | {by:g} | {described(total)} | {note} |")
    lines.insert(
        1,
        f"Of {len(settings) - 1} changes {moved} move the order of the policies, and {lost} take "
        "COAF from the first place.\n",
    )
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(RESULTS.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
