"""The paper's "Cryo-EM Data Collection Simulations": COAF against the microscopist."""

import json
import shutil
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coaf.bandit.arrays import FloatArray, number
from coaf.cryoem.reward import GoodBelow, Particles, Reward
from coaf.cryoem.session.collect import beside
from coaf.cryoem.session.session import Session
from coaf.cryoem.simulator.simulator import Simulator
from coaf.worlds.cluster import tasks_on
from coaf.worlds.progress import Tell
from coaf.worlds.statistics import Estimate, mean
from coaf.worlds.unfinished import Unfinished, code

POLICIES = ("coaf", "microscopist", "take-all")
SQUARES = 40
POINTS = 121  # of a curve


@dataclass(frozen=True, slots=True)
class Experiment:
    """One of the paper's two.

    Attributes
    ----------
    title, what
        For people: its name, and what is counted.
    reward
        What a micrograph is worth.
    unit
        How many of `what` a reward of 1 is.
    """

    title: str
    what: str
    reward: Reward
    unit: float


EXPERIMENTS = {
    "good": Experiment("0/1 reward", "good micrographs", GoodBelow(3.8), 1.0),
    "particles": Experiment("particle counts", "particles", Particles(100.0), 100.0),
}


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """What each policy collected on one grid: (policies, points) over time, and its tallies."""

    collected: FloatArray
    exposed: FloatArray


def reproduce(
    *,
    out: Path,
    seeds: int = 20,
    hours: float = 3.0,
    seed: int = 0,
    workers: int | None = None,
    dask: str | None = None,
    watch: Tell | None = None,
) -> dict[str, Any]:
    """Play both experiments on `seeds` simulated grids, and write report and figures into `out`.

    Grids have the paper's times (12.09, 51.99 and 6.66 s on average), 40 squares, the measured
    queue of scores, and a network's prediction beside the features of the pixels. Finished grids
    are kept in `out/unfinished` until all is done, so that an interrupted run goes on from there.
    """
    from coaf.cryoem.reports import reproduce_pages  # draws

    if number("seeds", seeds) < 2:
        raise ValueError(f"seeds is {seeds}; intervals need at least 2")
    number("hours", hours, above=0.0)
    out.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    digest = code("bandit", "worlds", "cryoem")[:16]
    unfinished = Unfinished(out / "unfinished" / f"{digest}-{float(hours)!r}")
    where = {"workers": workers, "dask": dask}
    found = _play(range(seed, seed + seeds), hours, unfinished, where, watch)
    summary: dict[str, Any] = {
        "data": f"{seeds} simulated grids of {SQUARES} squares, seeds {seed} to {seed + seeds - 1}",
        "hours": hours,
        "seeds": seeds,
        "seed": seed,
        "claims": [_claim(name, curves) for name, curves in found.items()],
        "experiments": {name: _results(name, curves, hours) for name, curves in found.items()},
        "seconds": time.perf_counter() - began,
    }
    files = reproduce_pages.write(out, summary, found)
    summary["files"] = [str(path) for path in files]
    (out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    shutil.rmtree(unfinished.folder, ignore_errors=True)
    with suppress(OSError):  # another run of this folder may be unfinished yet
        unfinished.folder.parent.rmdir()
    return summary


Task = tuple[str, int, float]  # which experiment, on which grid, for how many hours


def _play(
    seeds: range,
    hours: float,
    unfinished: Unfinished,
    where: dict[str, Any],
    watch: Tell | None,
) -> dict[str, list[Curves]]:
    tasks: list[Task] = [(name, seed, hours) for seed in seeds for name in EXPERIMENTS]
    held: dict[Task, Curves] = {}
    for task in tasks:
        kept = unfinished.load(_file(task))
        if kept is not None:
            held[task] = Curves(kept[:, :-1], kept[:, -1])

    def tell() -> None:
        if watch is not None:
            watch("playing", len(held), len(tasks))

    tell()
    left = [task for task in tasks if task not in held]
    # Closed, or its processes would outlive an interrupt.
    with closing(tasks_on(_one, None, left, **where)) as played:
        for task, curves in played:
            held[task] = curves
            unfinished.save(_file(task), np.column_stack([curves.collected, curves.exposed]))
            tell()
    return {name: [held[name, seed, hours] for seed in seeds] for name in EXPERIMENTS}


def _file(task: Task) -> str:
    return f"{task[0]}-{task[1]}"


def _one(shared: None, name: str, seed: int, hours: float) -> Curves:
    return play_grid(name, seed, hours)


def play_grid(name: str, seed: int, hours: float) -> Curves:
    """One experiment on one grid."""
    experiment = EXPERIMENTS[name]
    simulator = Simulator(seed, squares=SQUARES, pixels=False, prediction=True)
    sessions = beside(simulator, POLICIES, hours=hours, reward=experiment.reward, seed=seed)
    curves = np.array([on_grid(session, POINTS) for session in sessions])
    exposed = np.array([len(session.exposures()) for session in sessions], dtype=np.float64)
    return Curves(curves * experiment.unit, exposed)


def on_grid(session: Session, points: int) -> FloatArray:
    """What had been collected at evenly spaced times from 0 to the end of the time there was."""
    hours, gained = session.curve()
    times = np.linspace(0.0, session.hours, points)
    held: FloatArray = gained[np.searchsorted(hours, times, side="right") - 1]
    return held


def ends(curves: list[Curves]) -> FloatArray:
    """What was collected in the end (grids, policies)."""
    return np.array([one.collected[:, -1] for one in curves])


def lead(curves: list[Curves], rival: str) -> Estimate:
    """How much more COAF collected than a rival, over the same grids."""
    last = ends(curves)
    return mean(last[:, 0] - last[:, POLICIES.index(rival)])


def shown(value: float) -> str:
    """A count for people: whole where it is large.

    Examples
    --------
    >>> shown(54029.7), shown(7.256)
    ('54,030', '7.26')
    """
    return f"{value:,.0f}" if abs(value) >= 100.0 else f"{value:.3g}"


def _results(name: str, curves: list[Curves], hours: float) -> dict[str, Any]:
    last = ends(curves)
    rows = {}
    for k, policy in enumerate(POLICIES):
        rows[policy] = {
            "collected": mean(last[:, k]).plain(),
            "per_hour": float(last[:, k].mean()) / hours,
            "exposed": float(np.mean([one.exposed[k] for one in curves])),
        }
    return {
        "counted": EXPERIMENTS[name].what,
        "policies": rows,
        "lead": {rival: lead(curves, rival).plain() for rival in POLICIES[1:]},
        "grids": [dict(zip(POLICIES, row, strict=True)) for row in last.tolist()],
    }


def _claim(name: str, curves: list[Curves]) -> dict[str, Any]:
    experiment, last = EXPERIMENTS[name], ends(curves)
    more, every = lead(curves, "microscopist"), lead(curves, "take-all")
    ours, theirs = last[:, 0].mean(), last[:, 1].mean()
    ahead = int(np.sum(last[:, 0] > last[:, 1]))
    return {
        "claim": f"{experiment.title}: COAF collects more {experiment.what} than the microscopist",
        "held": bool(more.low > 0.0),
        "evidence": f"{shown(ours)} against {shown(theirs)} in the same time, a difference of "
        f"{shown(more.value)} [{shown(more.low)}, {shown(more.high)}]; ahead on {ahead} of "
        f"{len(last)} grids. Over taking all: {shown(every.value)} [{shown(every.low)}, "
        f"{shown(every.high)}]",
    }
