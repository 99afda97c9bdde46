"""What `coaf run --grids` does: a session on a simulated cassette, and the same as people would."""

import json
from pathlib import Path
from typing import Literal

from coaf.bandit.arrays import number
from coaf.bandit.policies.explore import check_share
from coaf.cryoem.pilots.catalogue import GRID_RULES, check_pilot_name
from coaf.cryoem.pilots.knowledge import Knowledge
from coaf.cryoem.reports.run import taught
from coaf.cryoem.reward import Reward
from coaf.cryoem.session.collect import EXPLORE, GOOD, collect
from coaf.cryoem.session.events import GridLoaded
from coaf.cryoem.session.session import Session
from coaf.cryoem.simulator.cassette import Cassette
from coaf.cryoem.simulator.population import Half, member
from coaf.cryoem.simulator.simulator import Simulator
from coaf.cryoem.timing import HOUR
from coaf.worlds.progress import Tell


def cassette_of(
    index: int,
    half: Half = "judge",
    *,
    grids: int = 4,
    regime: Literal["fast", "slow"] = "fast",
    squares: int = 32,
) -> Cassette:
    """A cassette of grids of the population, which differ as much as real ones; no two share one.

    Examples
    --------
    >>> cassette_of(0, grids=2, squares=3).grids
    ('grid 1', 'grid 2')
    """
    members = (member(grids * index + k, half) for k in range(grids))
    return Cassette(
        [
            Simulator(
                one.seed,
                regime=regime,
                squares=squares,
                pixels=False,
                prediction=True,
                faults=(),
                conditions=one.conditions,
            )
            for one in members
        ]
    )


def run_cassette(
    *,
    grids: int,
    seed: int = 0,
    hours: float = 12.0,
    regime: Literal["fast", "slow"] = "fast",
    squares: int = 32,
    policy: str = "coaf",
    reward: Reward = GOOD,
    explore: float = EXPLORE,
    knowledge: Knowledge | None = None,
    out: Path,
    watch: Tell | None = None,
) -> tuple[list[Session], list[Path]]:
    """Collect from a cassette with `policy`, and then with COAF as people would load grids.

    Returns
    -------
    sessions, files
        One session per policy, `policy` first; what it was told and what it learned.
    """
    check_pilot_name(policy)
    check_share("explore", explore)
    number("hours", hours, above=0.0)
    cassette = cassette_of(seed, grids=grids, regime=regime, squares=squares)
    sessions = []
    names = [policy, *(name for name in ("coaf", *GRID_RULES) if name != policy)]
    for done, name in enumerate(names):
        if watch is not None:
            watch("playing", done, len(names))
        ours = name == policy
        sessions.append(
            collect(
                cassette.again(),
                name,
                hours=hours,
                reward=reward,
                seed=seed,
                explore=explore if ours else 0.0,
                knowledge=knowledge if ours else None,
            )
        )
    if watch is not None:
        watch("playing", len(names), len(names))
    out.mkdir(parents=True, exist_ok=True)
    events = out / "session.json"
    events.write_text(json.dumps(sessions[0].plain()) + "\n", encoding="utf-8")
    return sessions, [events, *taught(sessions[0], out)]


def visits(session: Session) -> list[tuple[str, float]]:
    """Which grids were loaded, and at which hour."""
    events = () if session.engine is None else session.engine.events
    return [(one.grid, one.time / HOUR) for one in events if isinstance(one, GridLoaded)]
