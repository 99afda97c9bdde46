"""How long the next instruction takes after a score was corrected: writes docs/retell_results.md.

    python benchmarks/retell.py

A new pilot is then told everything that the session knows.
"""

import platform
import time
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import numpy as np

from coaf.cryoem.session import events as ev
from coaf.cryoem.session.collect import Driver
from coaf.cryoem.session.engine import Engine
from coaf.cryoem.simulator.simulator import Simulator
from coaf.cryoem.timing import HOUR

PAGE = Path(__file__).parents[1] / "docs" / "retell_results.md"
PILOTS = ("coaf", "coaf-paper")
SCORES = (500, 1500, 6000)
SQUARES, HOURS = 200, 48.0  # more than it takes
REPEATS = 5


def session(pilot: str) -> Iterator[Engine]:
    """A session on a simulated grid, each time that one more of these numbers of scores is in."""
    microscope = Simulator(seed=0, squares=SQUARES, pixels=False)
    engine = Engine()
    driver = Driver(microscope, engine)
    columns, timing = microscope.feature_names, microscope.timing
    driver.start(ev.Settings(pilot=pilot, hours=HOURS, columns=columns, timing=timing))
    squares = tuple(microscope.squares())
    engine.tell(ev.AtlasSeen(id="atlas", time=driver.time, squares=squares))
    for count in SCORES:
        while len(engine.learning.values) < count:
            if driver.step().do == "stop":
                raise RuntimeError(f"there were no {count} scores; give more squares or hours")
        yield engine


def seconds(engine: Engine, *, correct: bool) -> float:
    """Of the next instruction, the first score being corrected before or not; in copies.

    Of the processor, so that it does not matter what else the machine does.
    """
    took = []
    for _ in range(REPEATS):
        copy = deepcopy(engine)
        if correct:
            hole, shot = next(iter(copy.learning.values))
            values = {"ctf": 9.9}
            copy.tell(
                ev.ScoreCorrected(id="late", time=copy.now, hole=hole, shot=shot, values=values)
            )
        start = time.process_time()
        copy.next(copy.now)
        took.append(time.process_time() - start)
    return float(np.median(took))


def page() -> str:
    lines = [
        f"Measured in one run on {platform.machine()}, Python {platform.python_version()}, in time "
        f"of the processor; medians of {REPEATS}:",
        "",
        "| pilot | scores | patches | hours of session | an instruction | after a correction |",
        "|---|---|---|---|---|---|",
    ]
    for pilot in PILOTS:
        for count, engine in zip(SCORES, session(pilot), strict=True):
            usual, after = (seconds(engine, correct=correct) for correct in (False, True))
            known = f"{len(engine.book.patches):,} | {engine.now / HOUR:.1f}"
            took = f"{1e3 * usual:.1f} ms | {after:.2f} s"
            lines.append(f"| `{pilot}` | {count:,} | {known} | {took} |")
            print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
