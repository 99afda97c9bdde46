"""The paper's "Cryo-EM Data Collection Simulations": its algorithm, and ours, against others."""

import json
import shutil
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coaf.bandit.arrays import FloatArray, number
from coaf.cryoem.reports.words import shown
from coaf.cryoem.reward import GoodBelow, Particles, Reward
from coaf.cryoem.session import events as ev
from coaf.cryoem.session.collect import beside
from coaf.cryoem.session.session import Session
from coaf.cryoem.simulator.simulator import Simulator
from coaf.cryoem.unit import Unit, unit_of
from coaf.worlds.cluster import tasks_on
from coaf.worlds.progress import Tell
from coaf.worlds.statistics import Estimate, mean
from coaf.worlds.unfinished import Unfinished, code

OURS = {"coaf-paper": "COAF as printed", "coaf": "coaf's own COAF"}  # whom claims are about
RIVALS = ("microscopist", "take-all", "cut-and-count")
CLAIMED = {"microscopist": "the microscopist", "take-all": "taking all"}
COMPARED = (*OURS, *RIVALS)
SQUARES = 40
POINTS = 121  # of a curve


@dataclass(frozen=True, slots=True)
class Experiment:
    """One of the paper's two: its name for people, and what a micrograph is worth."""

    title: str
    reward: Reward

    @property
    def unit(self) -> Unit:
        """What is counted."""
        return unit_of(self.reward)


EXPERIMENTS = {
    "good": Experiment("0/1 reward", GoodBelow(3.8)),
    "particles": Experiment("particle counts", Particles(100.0)),
}


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """What each pilot collected on one grid, and what that took.

    Attributes
    ----------
    collected
        (pilots, points) over time.
    exposed
        (pilots,) holes.
    seconds
        (pilots, 3): spent on opening squares, on ways to patches and on exposures.
    counts
        (pilots, 4): how many of each, and how many patches the squares showed.
    """

    collected: FloatArray
    exposed: FloatArray
    seconds: FloatArray
    counts: FloatArray

    def plain(self) -> FloatArray:
        """All of it in one array."""
        return np.column_stack([self.collected, self.exposed, self.seconds, self.counts])

    @classmethod
    def restore(cls, held: FloatArray) -> "Curves":
        """The one that was made plain."""
        return cls(held[:, :-8], held[:, -8], held[:, -7:-4], held[:, -4:])


def reproduce(
    *,
    out: Path,
    seeds: int = 30,
    hours: float = 3.0,
    seed: int = 0,
    workers: int | None = None,
    dask: str | None = None,
    watch: Tell | None = None,
) -> dict[str, Any]:
    """Play both experiments on `seeds` simulated grids, and write report and figures into `out`.

    Grids have times that are drawn around the paper's means (12.09, 51.99 and 6.66 s), 40 squares,
    the measured queue of scores, and a network's prediction beside the features of the pixels.
    Finished grids are kept in `out/unfinished` until all is done, so that an interrupted run goes
    on from there.
    """
    from coaf.cryoem.reports import patch_figure, reproduce_pages  # draw

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
        "claims": [
            _claim(name, ours, rival, curves)
            for ours in OURS
            for name, curves in found.items()
            for rival in CLAIMED
        ],
        "experiments": {name: _results(name, curves, hours) for name, curves in found.items()},
        "times": _times(found),
    }
    # After a long session no square may be left to look at.
    patch = patch_figure.decided_patch(
        seed=seed, hours=min(hours, 3.0), reward=EXPERIMENTS["good"].reward
    )
    summary["seconds"] = time.perf_counter() - began
    files = reproduce_pages.write(out, summary, found, patch)
    summary["files"] = [str(path) for path in files]
    (out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    shutil.rmtree(unfinished.folder, ignore_errors=True)
    with suppress(OSError):  # another run of this folder may be unfinished yet
        unfinished.folder.parent.rmdir()
    return summary


Flight = tuple[str, int, float]  # which experiment, on which grid, for how many hours


def _play(
    seeds: range,
    hours: float,
    unfinished: Unfinished,
    where: dict[str, Any],
    watch: Tell | None,
) -> dict[str, list[Curves]]:
    tasks: list[Flight] = [(name, seed, hours) for seed in seeds for name in EXPERIMENTS]
    held: dict[Flight, Curves] = {}
    for task in tasks:
        kept = unfinished.load(_file(task))
        if kept is not None:
            held[task] = Curves.restore(kept)

    def tell() -> None:
        if watch is not None:
            watch("playing", len(held), len(tasks))

    tell()
    left = [task for task in tasks if task not in held]
    # Closed, or its processes would outlive an interrupt.
    with closing(tasks_on(_one, None, left, **where)) as played:
        for task, curves in played:
            held[task] = curves
            unfinished.save(_file(task), curves.plain())
            tell()
    return {name: [held[name, seed, hours] for seed in seeds] for name in EXPERIMENTS}


def _file(task: Flight) -> str:
    return f"{task[0]}-{task[1]}"


def _one(shared: None, name: str, seed: int, hours: float) -> Curves:
    return play_grid(name, seed, hours)


def play_grid(name: str, seed: int, hours: float) -> Curves:
    """One experiment on one grid."""
    experiment = EXPERIMENTS[name]
    simulator = Simulator(seed, squares=SQUARES, pixels=False, prediction=True)
    sessions = beside(simulator, COMPARED, hours=hours, reward=experiment.reward, seed=seed)
    curves = np.array([on_grid(session, POINTS) for session in sessions])
    exposed = np.array([len(session.exposures()) for session in sessions], dtype=np.float64)
    spent = [seconds_spent(session) for session in sessions]
    seconds, counts = (np.array(each) for each in zip(*spent, strict=True))
    return Curves(curves * experiment.unit.scale, exposed, seconds, counts)


def seconds_spent(session: Session) -> tuple[list[float], list[float]]:
    """What opening squares, ways and exposures took, without upkeep; how many, and of patches."""
    assert session.engine is not None
    told = session.engine.events
    squares = [event for event in told if isinstance(event, ev.SquareOpened)]
    took = [
        [event.seconds or 0.0 for event in squares],
        [event.seconds or 0.0 for event in told if isinstance(event, ev.Moved)],
        [event.seconds or 0.0 for event in told if isinstance(event, ev.Exposed)],
    ]
    patches = sum(len(event.survey.patches) for event in squares)
    return [sum(each) for each in took], [*(float(len(each)) for each in took), float(patches)]


def on_grid(session: Session, points: int) -> FloatArray:
    """What had been collected at evenly spaced times from 0 to the end of the time there was."""
    hours, gained = session.curve()
    times = np.linspace(0.0, session.hours, points)
    held: FloatArray = gained[np.searchsorted(hours, times, side="right") - 1]
    return held


def ends(curves: list[Curves]) -> FloatArray:
    """What was collected in the end (grids, policies)."""
    return np.array([one.collected[:, -1] for one in curves])


def lead(curves: list[Curves], ours: str, rival: str) -> Estimate:
    """How much more one of ours collected than a rival, over the same grids."""
    last = ends(curves)
    return mean(last[:, COMPARED.index(ours)] - last[:, COMPARED.index(rival)])


def _times(found: dict[str, list[Curves]]) -> dict[str, float]:
    """What opening a square, a way and an exposure took on average; patches of a square."""
    every = [one for curves in found.values() for one in curves]
    seconds = np.sum([one.seconds.sum(axis=0) for one in every], axis=0)
    *counts, patches = np.sum([one.counts.sum(axis=0) for one in every], axis=0).tolist()
    means = seconds / np.maximum(counts, 1.0)
    return {
        **dict(zip(("square", "move", "expose"), means.tolist(), strict=True)),
        "patches": patches / max(counts[0], 1.0),
    }


def _results(name: str, curves: list[Curves], hours: float) -> dict[str, Any]:
    last = ends(curves)
    rows = {}
    for k, pilot in enumerate(COMPARED):
        rows[pilot] = {
            "collected": mean(last[:, k]).plain(),
            "per_hour": float(last[:, k].mean()) / hours,
            "exposed": float(np.mean([one.exposed[k] for one in curves])),
        }
    return {
        "counted": EXPERIMENTS[name].unit.heading,
        "policies": rows,
        "lead": {
            ours: {rival: lead(curves, ours, rival).plain() for rival in COMPARED if rival != ours}
            for ours in OURS
        },
        "grids": [dict(zip(COMPARED, row, strict=True)) for row in last.tolist()],
    }


def _claim(name: str, ours: str, rival: str, curves: list[Curves]) -> dict[str, Any]:
    experiment, last = EXPERIMENTS[name], ends(curves)
    a, b = last[:, COMPARED.index(ours)], last[:, COMPARED.index(rival)]
    more = lead(curves, ours, rival)
    what = experiment.unit.heading
    return {
        "policy": ours,
        "experiment": name,
        "rival": rival,
        "claim": f"{experiment.title}: {OURS[ours]} collects more {what} than {CLAIMED[rival]}",
        "held": bool(more.low > 0.0),
        "evidence": f"{shown(a.mean())} against {shown(b.mean())} in the same time, a difference "
        f"of {shown(more.value)} [{shown(more.low)}, {shown(more.high)}]; ahead on "
        f"{int(np.sum(a > b))} of {len(last)} grids",
    }
