"""How long instructions take in a long session, also after a score was corrected.

    python benchmarks/retell.py

Writes docs/retell_results.md. After a correction a new pilot is told everything that the session
knows.
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
from coaf.cryoem.session.instructions import Instruction
from coaf.cryoem.simulator.simulator import Simulator
from coaf.cryoem.timing import HOUR

PAGE = Path(__file__).parents[1] / "docs" / "retell_results.md"
PILOTS = ("coaf", "coaf-paper")
SCORES = (500, 1500, 6000, 10000)
SQUARES, HOURS = 200, 72.0  # more than it takes
LAST = 1000  # instructions of which quantiles are taken
REPEATS = 3


class Timed(Engine):
    """Notes how long it took over each instruction, and over the scores told before it."""

    def __init__(self) -> None:
        super().__init__()
        self.took: list[tuple[float, float]] = []
        self._heard = 0.0

    def tell(self, event: ev.Event) -> None:
        start = time.process_time()
        super().tell(event)
        if isinstance(event, ev.ScoreCame):
            self._heard += time.process_time() - start

    def next(self, now: float) -> Instruction:
        start = time.process_time()
        instruction = super().next(now)
        self.took.append((time.process_time() - start, self._heard))
        self._heard = 0.0
        return instruction


def session(pilot: str) -> Iterator[Timed]:
    """A session on a simulated grid, each time that one more of these numbers of scores is in."""
    microscope = Simulator(seed=0, squares=SQUARES, pixels=False)
    engine = Timed()
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


def corrected(engine: Engine) -> float:
    """Seconds of the next instruction, the first score being corrected before; in copies.

    Of the processor, so that it does not matter what else the machine does.
    """
    took = []
    for _ in range(REPEATS):
        copy = deepcopy(engine)
        hole, shot = next(iter(copy.learning.values))
        values = {"ctf": 9.9}
        copy.tell(ev.ScoreCorrected(id="late", time=copy.now, hole=hole, shot=shot, values=values))
        start = time.process_time()
        copy.next(copy.now)
        took.append(time.process_time() - start)
    return float(np.median(took))


def page() -> str:
    lines = [
        f"Measured in one run on {platform.machine()}, Python {platform.python_version()}, in time "
        f"of the processor. Median and 99 % of the last {LAST:,} instructions, by themselves and "
        f"with the scores that came before them; and after a correction, the median of {REPEATS}:",
        "",
        "| pilot | scores | patches | hours of session | an instruction | with its scores "
        "| after a correction |",
        "|---|---|---|---|---|---|---|",
    ]
    for pilot in PILOTS:
        for count, engine in zip(SCORES, session(pilot), strict=True):
            took = 1e3 * np.array(engine.took[-LAST:])
            alone, both = (np.quantile(t, (0.5, 0.99)) for t in (took[:, 0], took.sum(axis=1)))
            after = corrected(engine)
            known = f"{len(engine.book.patches):,} | {engine.now / HOUR:.1f}"
            each = " | ".join(f"{half:.1f}, {most:.1f} ms" for half, most in (alone, both))
            lines.append(f"| `{pilot}` | {count:,} | {known} | {each} | {after:.2f} s |")
            print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
