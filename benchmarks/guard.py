"""How soon the guard sees faults, and how often it is wrong. Writes docs/guard_results.md.

Every number on that page comes from this script: `python benchmarks/guard.py` (an hour or more on
two cores; `--grids`, `--coaf` and `--free` do less). Sessions are of the "judge" half of the
population of simulated grids; the guard was tuned on the other.
"""

import argparse
import sys
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from coaf.cryoem.session import events as ev
from coaf.cryoem.session.collect import collect
from coaf.cryoem.session.engine import Engine
from coaf.cryoem.simulator.population import member
from coaf.cryoem.simulator.simulator import Simulator
from coaf.cryoem.timing import HOUR

DOCS = Path(__file__).resolve().parent.parent / "docs"
HOURS = {"fast": 3.0, "slow": 12.0}
PILOTS = ("take-all", "microscopist", "coaf")
MINUTES = (20, 60)
SOON = 90.0  # minutes in which a decline of 1 Å an hour is to be seen
FEW = 5  # a fault of fewer scores can hardly be seen
NEVER = 1e6  # hours
SAYS = {"fault": "not the ice", "decline": "best fits", "silent": "No score has come"}

Regime = Literal["fast", "slow"]


@dataclass(frozen=True)
class Case:
    """A session: who decides on which grid, and what goes wrong."""

    pilot: str
    regime: Regime
    grid: int
    minutes: int = 0  # of a fault
    decline: bool = False

    def begin(self) -> float:
        """When it goes wrong, in seconds."""
        rng = np.random.default_rng([self.grid, self.minutes, self.regime == "fast", 88])
        return float(rng.uniform(0.25, HOURS[self.regime] - (self.minutes or SOON) / 60.0) * HOUR)

    def play(self) -> tuple[Engine, float]:
        """What was told, and the hours used. Without a fault the processing never stops."""
        grid, begin = member(self.grid, "judge"), self.begin()
        conditions = grid.conditions
        if not self.minutes:
            conditions = replace(conditions, outage_every=NEVER, lapse_every=NEVER)
        microscope = Simulator(
            grid.seed,
            regime=self.regime,
            pixels=False,
            prediction=True,
            faults=[(begin, begin + 60.0 * self.minutes)] if self.minutes else (),
            decay=(begin, 1.0) if self.decline else (0.0, 0.0),
            conditions=conditions,
        )
        session = collect(microscope, self.pilot, hours=HOURS[self.regime])
        assert session.engine is not None
        return session.engine, session.ended / HOUR


def raised(engine: Engine, kind: str) -> list[float]:
    """When such alarms were."""
    return [n.time for n in engine.notes if n.what == "alarm" and SAYS[kind] in n.why]


@dataclass(frozen=True)
class Fault:
    """What was seen of a fault: all are scores or shots."""

    scores: int
    until_suspected: float
    until_seen: float
    onset: float
    early: int  # alarms before it


def fault(case: Case) -> Fault:
    engine, _ = case.play()
    begin, end = case.begin(), case.begin() + 60.0 * case.minutes
    exposed = {e.hole: e.time for e in engine.events if isinstance(e, ev.Exposed)}
    bad = [
        e.time
        for e in engine.events
        if isinstance(e, ev.ScoreCame) and begin <= exposed[e.hole] < end
    ]
    first = min(bad, default=np.inf)
    alarms = raised(engine, "fault")
    seen = [time for time in alarms if first <= time]
    doubts = [n.time for n in engine.notes if n.what == "suspicion" and n.time >= first]
    number = sum(time < begin for time in exposed.values())
    since = [a.since - number for a in engine.guard.alarms if a.kind == "fault"]
    return Fault(
        len(bad),
        sum(time <= min([*doubts, *seen]) for time in bad) if doubts or seen else np.inf,
        sum(time <= seen[0] for time in bad) if seen else np.inf,
        float(min(since, key=abs)) if seen and since else np.nan,
        sum(time < first for time in alarms),
    )


def free(case: Case) -> tuple[float, int, int, int, int]:
    """Hours, alarms of each kind, and suspicions, where nothing is wrong."""
    engine, hours = case.play()
    doubts = sum(n.what == "suspicion" and "would tell" in n.why for n in engine.notes)
    kinds = [len(raised(engine, kind)) for kind in ("fault", "decline", "silent")]
    return (hours, kinds[0], kinds[1], kinds[2], doubts)


def decline(case: Case) -> float:
    """Minutes until it was seen; before it began less than 0."""
    engine, _ = case.play()
    alarms = raised(engine, "decline")
    return (alarms[0] - case.begin()) / 60.0 if alarms else np.inf


Write = Callable[[str], None]


def head(write: Write, title: str, text: str, columns: list[str]) -> None:
    write(f"\n## {title}\n\n{text}\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}")


def faults(pool: Executor, grids: dict[str, range], write: Write) -> None:
    columns = ["pilot", "regime", "minutes", "faults", "suspected", "seen", "scores to suspicion"]
    columns += ["scores to alarm", "onset off by (shots)", "too few scores"]
    head(
        write,
        "Faults",
        "They begin at random. *Seen* is the share with an alarm; *scores* are those of the fault "
        "that came before, at the median, with quartiles, over all faults, where not to be seen "
        f"counts as ∞. Faults of fewer than {FEW} scores, most of them in an outage of the "
        "processing, are counted in the last column and nowhere else.",
        columns,
    )
    for pilot in PILOTS:
        for regime in ("fast", "slow"):
            for minutes in MINUTES:
                make = partial(Case, pilot, regime, minutes=minutes)
                every = list(pool.map(fault, [make(grid=k) for k in grids[pilot]]))
                if not every:
                    continue
                told = [f for f in every if f.scores >= FEW]
                seen = np.mean([np.isfinite(f.until_seen) for f in told])
                doubted = np.mean([np.isfinite(f.until_suspected) for f in told])
                off = [f.onset for f in told if np.isfinite(f.onset)]
                write(
                    f"| {pilot} | {regime} | {minutes} | {len(told)} | {doubted:.2f} | {seen:.2f} "
                    f"| {spread([f.until_suspected for f in told])} "
                    f"| {spread([f.until_seen for f in told])} "
                    f"| {np.median(np.abs(off)) if off else np.nan:.0f} "
                    f"| {len(every) - len(told)} |"
                )


def spread(values: list[float]) -> str:
    """The median, and quartiles."""
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75], method="higher")
    return f"{middle:.0f} ({low:.0f} to {high:.0f})".replace("inf", "∞")


def nothing(pool: Executor, grids: dict[str, range], write: Write) -> None:
    columns = ["pilot", "regime", "hours", "fault", "decline", "silent", "suspicions"]
    head(
        write,
        "Nothing is wrong",
        "Alarms by kind, all of them false, and suspicions, each of which costs a check: a way to "
        "a patch known to be good, and two shots.",
        columns,
    )
    sums = np.zeros(5)
    for pilot in PILOTS:
        for regime in ("fast", "slow"):
            make = partial(Case, pilot, regime)
            each = np.array(list(pool.map(free, [make(grid=k) for k in grids[pilot]])))
            if not len(each):
                continue
            total = each.sum(axis=0)
            sums += total
            write(
                f"| {pilot} | {regime} | {total[0]:.0f} | {total[1]:.0f} | {total[2]:.0f} "
                f"| {total[3]:.0f} | {total[4]:.0f} |"
            )
    write(
        f"| all | | {sums[0]:.0f} | {sums[1]:.0f} | {sums[2]:.0f} | {sums[3]:.0f} | {sums[4]:.0f} |"
    )


def declines(pool: Executor, grids: dict[str, range], write: Write) -> None:
    columns = ["pilot", "regime", "sessions", f"seen in {SOON:.0f} minutes", "seen at all"]
    columns += ["minutes to alarm"]
    head(
        write,
        "A slow decline",
        "From a random time on, fits become worse by 1 Å an hour. Minutes are the median of those "
        "that were seen.",
        columns,
    )
    for pilot in PILOTS:
        for regime in ("fast", "slow"):
            make = partial(Case, pilot, regime, decline=True)
            found = np.array(list(pool.map(decline, [make(grid=k) for k in grids[pilot]])))
            if not len(found):
                continue
            true = (found > 0.0) & np.isfinite(found)
            minutes = f"{np.median(found[true]):.0f}" if true.any() else "–"
            write(
                f"| {pilot} | {regime} | {len(found)} | {np.mean(true & (found <= SOON)):.2f} "
                f"| {np.mean(true):.2f} | {minutes} |"
            )


PARTS = {"faults": faults, "declines": declines, "nothing": nothing}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--grids", type=int, default=60, help="with something wrong, by pilot")
    parser.add_argument("--coaf", type=int, default=30, help="the same for coaf, which is slower")
    parser.add_argument("--free", type=int, default=150, help="with nothing wrong, by pilot")
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=DOCS / "guard_results.md")
    options = parser.parse_args()
    lines: list[str] = []

    def write(text: str) -> None:
        lines.append(text)
        print(text, file=sys.stderr, flush=True)
        options.out.write_text("\n".join(lines).lstrip("\n") + "\n")

    few = {pilot: range(options.grids) for pilot in PILOTS} | {"coaf": range(options.coaf)}
    many = {pilot: range(options.free) for pilot in PILOTS} | {"coaf": range(options.coaf)}
    with ProcessPoolExecutor(options.processes) as pool:
        for part in options.parts:
            PARTS[part](pool, many if part == "nothing" else few, write)


if __name__ == "__main__":
    main()
