"""What a simulated microscope's verbs take: two regimes, heavy tails, maintenance."""

from dataclasses import dataclass

import numpy as np

from coaf.cryoem.simulator.conditions import Conditions
from coaf.cryoem.timing import FAST, HOUR, SLOW, Timing

# Hours from one to the next, and seconds it takes, once it is due and the stage moves anyway.
MAINTENANCE_EVERY = {
    "dewar": (8.0, 720.0),
    "filter": (4.0, 90.0),
    "dark": (24.0, 300.0),
    "emitter": (12.0, 480.0),
}


@dataclass(frozen=True, slots=True)
class Regime:
    """How times spread around a timing.

    Attributes
    ----------
    timing
        What to plan with.
    usual
        A usual way to a patch, relative to the timing's.
    tail_share, tail
        Share of ways that take so many seconds more: a lost focus, a stage that drifts.
    quick_share, quick
        Share of exposures that are quicker, and their seconds: a second mode.
    slip_share, slip
        Share of exposures that take so many seconds more.
    jitter
        Spread (sd of the logarithm) of everything.
    """

    timing: Timing
    usual: float
    tail_share: float
    tail: float
    quick_share: float
    quick: float
    slip_share: float
    slip: float
    jitter: float


REGIMES = {
    # Means as in the paper, with a tail inside them.
    "fast": Regime(FAST, 0.83, 0.06, 150.0, 0.0, 0.0, 0.005, 60.0, 0.08),
    # Hole to hole 91 s or 74 s, hardly any spread; patch to patch 185 s, one in eight 650 s.
    "slow": Regime(SLOW, 1.0, 0.13, 480.0, 0.24, 74.5, 0.01, 60.0, 0.01),
}


class DrawnTimes:
    """Draws what each verb takes, and keeps the log of it.

    Draws start anew at each square and each visit to a patch, so that whoever goes there meets the
    same luck, whatever was done before.

    Attributes
    ----------
    log
        (level, seconds) of everything so far, maintenance too: what `Timing.from_log` reads.
    upkeep
        Seconds of maintenance so far, by kind.
    due
        When which maintenance is due next: of an instrument, so grids in one share it.
    """

    def __init__(
        self, regime: Regime, seed: int, *, tails: float = 1.0, upkeep: float = 1.0
    ) -> None:
        self.regime = regime
        self._tail_share = tails * regime.tail_share
        self._longer = upkeep
        self.log: list[tuple[str, float]] = []
        self.upkeep: dict[str, float] = {}
        self._seed = seed
        self._rng = np.random.default_rng([seed, 3])
        self._luck = np.random.default_rng([seed, 3, 2])  # of maintenance
        self.due = {
            kind: float(self._rng.uniform(0.2, 1.0)) * every * HOUR
            for kind, (every, _) in MAINTENANCE_EVERY.items()
        }

    def square(self, clock: float, square: int) -> float:
        """Open a square at this time of the clock."""
        self._rng = np.random.default_rng([self._seed, 3, 0, square])
        timing = self.regime.timing
        parts = {"stage": timing.stage, "height": timing.height, "image": timing.image}
        return self._maintain(clock) + sum(self._spread(k, v) for k, v in parts.items())

    def enter(self, clock: float, patch: int, visit: int) -> float:
        """Go to a patch and focus."""
        self._rng = np.random.default_rng([self._seed, 3, 1, patch, visit])
        regime, timing = self.regime, self.regime.timing
        seconds = self._maintain(clock) + self._spread("move", regime.usual * timing.move)
        lost = 0.0
        if self._rng.random() < self._tail_share:
            lost = regime.tail * float(np.exp(0.15 * self._rng.standard_normal()))
        return seconds + self._spread("focus", regime.usual * timing.focus, lost)

    def expose(self) -> float:
        """The first shot of a hole."""
        regime = self.regime
        draw = self._rng.random()
        usual = regime.timing.expose - regime.slip_share * regime.slip
        if draw < regime.quick_share:
            usual = regime.quick
        elif regime.quick_share:
            usual = regime.timing.expose
        slip = regime.slip if draw > 1.0 - regime.slip_share else 0.0
        return self._spread("expose", usual, slip)

    def shot(self) -> float:
        """A further shot of the same hole."""
        return self._spread("shot", self.regime.timing.shot)

    def _spread(self, level: str, usual: float, more: float = 0.0) -> float:
        jitter = self.regime.jitter
        seconds = usual * float(np.exp(jitter * self._rng.standard_normal())) + more
        self.log.append((level, seconds))
        return seconds

    def _maintain(self, clock: float) -> float:
        spent = 0.0
        for kind, (every, takes) in MAINTENANCE_EVERY.items():
            if clock >= self.due[kind]:
                seconds = self._longer * takes * float(np.exp(0.1 * self._luck.standard_normal()))
                self.log.append((kind, seconds))
                self.due[kind] = clock + every * HOUR
                self.upkeep[kind] = self.upkeep.get(kind, 0.0) + seconds
                spent += seconds
        return spent


def draw_faults(conditions: Conditions, seed: int) -> tuple[tuple[float, float], ...]:
    """When the instrument is at fault: a share of grids has one episode, in the first day."""
    rng = np.random.default_rng([seed, 6])
    there, begin = rng.random() < conditions.fault_share, rng.uniform(1.0, 20.0) * HOUR
    long = rng.gamma(4.0, conditions.fault_hours / 4.0) * HOUR
    return ((begin, begin + long),) if there else ()
