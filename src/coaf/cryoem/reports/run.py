"""What `coaf run` does: a session on a simulated grid, its rivals, and the report."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from coaf.bandit.arrays import number
from coaf.bandit.policies.explore import check_share
from coaf.cryoem.pilots.catalogue import OTHERS, check_pilot_name
from coaf.cryoem.pilots.knowledge import FILE, Knowledge
from coaf.cryoem.recorded.export import recording_of
from coaf.cryoem.recorded.folder import write_recording
from coaf.cryoem.recorded.reading import SESSION
from coaf.cryoem.reports import session as session_report
from coaf.cryoem.reward import Reward
from coaf.cryoem.session.collect import EXPLORE, GOOD, beside, collect
from coaf.cryoem.session.session import Row, Session
from coaf.cryoem.simulator.simulator import Simulator
from coaf.cryoem.timing import HOUR
from coaf.worlds.cluster import processes
from coaf.worlds.progress import Tell


def run(
    *,
    seed: int = 0,
    hours: float = 3.0,
    regime: Literal["fast", "slow"] = "fast",
    squares: int = 32,
    policy: str = "coaf",
    reward: Reward = GOOD,
    explore: float = EXPLORE,
    knowledge: Knowledge | None = None,
    out: Path,
    watch: Tell | None = None,
) -> tuple[list[Session], list[Path]]:
    """Collect from a simulated grid with `policy` and then with every other.

    `knowledge` of an earlier session is for `policy` to begin with; what this one taught lies
    beside its report.

    Returns
    -------
    sessions, files
        One session per pilot, `policy` first; the report, and what lies beside it.
    """
    tell = watch or (lambda stage, done, total: None)
    # All is checked before the long part begins.
    check_pilot_name(policy)
    check_share("explore", explore)
    number("hours", hours, above=0.0)
    out.mkdir(parents=True, exist_ok=True)
    simulator = Simulator(seed, regime=regime, squares=squares, prediction=True)
    _draw(simulator, tell)
    begun = simulator.again()

    def follow(name: str) -> Callable[[Row], None]:
        whole = round(hours * HOUR)
        return lambda row: tell(name, min(round(row["clock"]), whole), whole)

    def over(name: str) -> None:
        """A session ends a little early, as what it could begin would end too late."""
        tell(name, round(hours * HOUR), round(hours * HOUR))

    sessions = [
        collect(
            begun,
            policy,
            hours=hours,
            reward=reward,
            seed=seed,
            explore=explore,
            knowledge=knowledge,
            watch=follow(policy),
        )
    ]
    events = out / "session.json"
    events.write_text(json.dumps(sessions[0].plain()) + "\n", encoding="utf-8")
    kept = [*_keep(sessions[0], out / SESSION), *taught(sessions[0], out)]
    over(policy)
    for name in (other for other in ("coaf", *OTHERS) if other != policy):
        sessions += beside(
            simulator, [name], hours=hours, reward=reward, seed=seed, watch=follow(name)
        )
        over(name)
    about = f"A simulated grid of {squares} squares, seed {seed}, {regime} stage."
    files = session_report.write(sessions, out, about=about)
    return sessions, [*files, events, *kept]


def taught(session: Session, out: Path) -> list[Path]:
    """Write what a session taught, for the next to begin with; nothing if it taught nothing."""
    found = session.knowledge
    return [] if found is None else [found.save(out / FILE)]


def _keep(session: Session, folder: Path) -> list[Path]:
    """Write the session as a recording, which `coaf replay` reads; none if nothing was scored."""
    if session.engine is None or not session.engine.learning.values:
        return []
    return [write_recording(recording_of(session.engine, "simulated session"), folder)]


def _draw(simulator: Simulator, tell: Tell) -> None:
    """Draw all squares first, on all cores: every pilot sees the same ones."""
    count = len(simulator.squares())
    tell("drawing", 0, count)
    cores = min(os.cpu_count() or 1, count)
    with processes(cores) as pool:
        for done, _ in enumerate(simulator.draw_ahead(pool), start=1):
            tell("drawing", done, count)
