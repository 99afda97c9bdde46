"""Pilots on many simulated grids: what each collects, and by how much one leads."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from coaf.bandit.arrays import number
from coaf.bandit.policies.explore import check_share
from coaf.cryoem.pilots.catalogue import OTHERS, check_pilot_name
from coaf.cryoem.reports.words import shown
from coaf.cryoem.reward import Reward
from coaf.cryoem.session.collect import EXPLORE, GOOD, collect
from coaf.cryoem.simulator.simulator import Simulator
from coaf.cryoem.unit import Unit, unit_of
from coaf.version import __version__
from coaf.worlds.cluster import tasks_on
from coaf.worlds.progress import Tell
from coaf.worlds.report import Page
from coaf.worlds.statistics import mean


def run_grids(
    *,
    seeds: Sequence[int],
    hours: float = 3.0,
    regime: Literal["fast", "slow"] = "fast",
    squares: int = 32,
    policy: str = "coaf",
    reward: Reward = GOOD,
    explore: float = EXPLORE,
    workers: int | None = None,
    dask: str | None = None,
    out: Path,
    watch: Tell | None = None,
) -> dict[str, Any]:
    """Collect from each grid with `policy`, which explores, and with every other pilot.

    The numbers do not depend on where that is done. Report and `summary.json` go into `out`.

    Returns
    -------
    dict
        `policies` by name: `good` in truth, `exposed` and `good_per_hour`, means over grids, and
        `lead`: how much more `policy` collects than this one, paired by grid, with an interval.
        `counted` says what that is: `good` of a reward in particles is particles.
    """
    check_pilot_name(policy)
    check_share("explore", explore)
    number("hours", hours, above=0.0)
    if len(seeds) < 2:
        raise ValueError(f"{len(seeds)} grid is given; intervals need at least 2")
    names = [policy, *(name for name in ("coaf", *OTHERS) if name != policy)]
    shared = {"hours": hours, "reward": reward, "regime": regime, "squares": squares}
    tasks = [(name, seed, explore if name == policy else 0.0) for seed in seeds for name in names]
    told = None if watch is None else lambda done, total: watch("playing", done, total)
    lines: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for (name, _, _), line in tasks_on(_one, shared, tasks, workers=workers, dask=dask, told=told):
        lines[name].append(line)
    unit = unit_of(reward)
    good = {
        name: unit.scale * np.array([line["good"] for line in found])
        for name, found in lines.items()
    }
    summary = {
        "grids": len(seeds),
        "seeds": [seeds[0], seeds[-1]],
        "hours": hours,
        "regime": regime,
        "squares": squares,
        "reward": str(reward),
        "counted": unit.heading,
        "policies": {
            name: {
                "good": mean(good[name]).plain(),
                "good_per_hour": unit.scale * float(np.mean([x["good_per_hour"] for x in found])),
                "exposed": float(np.mean([line["exposed"] for line in found])),
                "lead": None if name == policy else mean(good[policy] - good[name]).plain(),
            }
            for name, found in lines.items()
        },
    }
    out.mkdir(parents=True, exist_ok=True)
    (out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    page = _report(summary, policy, unit).write(out / "report.html")
    return {**summary, "files": [str(page), str(out / "summary.json")]}


def _one(shared: dict[str, Any], name: str, seed: int, explore: float) -> dict[str, Any]:
    """What a pilot collects from a grid."""
    simulator = Simulator(
        seed, regime=shared["regime"], squares=shared["squares"], pixels=False, prediction=True
    )
    session = collect(
        simulator,
        name,
        hours=shared["hours"],
        reward=shared["reward"],
        seed=seed,
        explore=explore,
    )
    return session.line()


def _report(summary: dict[str, Any], policy: str, unit: Unit) -> Page:
    first, last = summary["seeds"]
    report = Page(
        f"{summary['grids']} simulated grids, {summary['hours']:g} hours each",
        lead=f"Seeds {first} to {last}, {summary['squares']} squares, {summary['regime']} stage. "
        f"The reward is {summary['reward']}; {unit.heading} are counted by the truth, scored or "
        "not. Features come from the truth and noise: no image is drawn.",
    )
    report.section("Result")
    rows = []
    for name, row in summary["policies"].items():
        lead = row["lead"]
        good = row["good"]
        rows.append(
            [
                name,
                shown(good["value"]),
                f"{shown(good['low'])} to {shown(good['high'])}",
                shown(row["good_per_hour"]),
                round(row["exposed"]),
                "" if lead is None else shown(lead["value"]),
                "" if lead is None else f"{shown(lead['low'])} to {shown(lead['high'])}",
            ]
        )
    heads = [*("pilot", unit.short, "95 %", unit.per_hour, "holes exposed")]
    heads += [f"lead of {policy}", "95 %"]
    report.table(heads, rows, caption="Means over grids; leads are paired by grid.")
    report.footer(f"coaf {__version__}.")
    return report
