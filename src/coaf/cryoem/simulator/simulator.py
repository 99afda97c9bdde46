"""A grid and a microscope that behave like real ones, on a virtual clock."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from copy import copy
from dataclasses import replace
from math import inf, isnan
from typing import Literal, Self
from warnings import warn
from zlib import crc32

import numpy as np

from coaf.bandit.arrays import number
from coaf.cryoem.feedback import Delay, Feedback, Queue
from coaf.cryoem.grid import Hole, Patch, Shot, Square
from coaf.cryoem.images import Image
from coaf.cryoem.microscope import Score, Survey
from coaf.cryoem.simulator.atlas import atlas_features, draw_atlas
from coaf.cryoem.simulator.conditions import Conditions, defocus_of, useful_share
from coaf.cryoem.simulator.draw import Foil
from coaf.cryoem.simulator.grid import SIDE, make_grid, make_square
from coaf.cryoem.simulator.pixels import draw_and_open
from coaf.cryoem.simulator.quality import FAULT_LOSS, visit_quality
from coaf.cryoem.simulator.survey import Opened, Target, open_square
from coaf.cryoem.simulator.times import REGIMES, DrawnTimes, draw_faults
from coaf.cryoem.timing import HOUR, Timing
from coaf.cryoem.vision.features import HOLE_FEATURES

_Shots = tuple[list[float], list[float]]  # of a hole: Å and particles of each shot


class Simulator:
    """A simulated grid under a simulated microscope.

    Everything follows from the seed and the calls made. What a hole would give does not depend on
    when it is asked, apart from focus and defocus of the visit and faults of the instrument.

    Parameters
    ----------
    seed
        Another seed is another grid.
    regime
        "fast" takes the times of the paper; "slow" those of a recorded grid.
    squares
        How many the grid has.
    foil
        "carbon" or "gold".
    shots
        Micrographs per hole.
    pixels
        Draw each square, find its holes in the image and measure their features there. Without,
        features come from the truth and noise; a day then takes less than a second.
    prediction
        Add a column: the CTFMaxRes in Å that a trained network would predict.
    delay
        When scores arrive, as in `Feedback`.
    faults
        (from, to) in seconds: when the instrument is at fault. None: as the seed has it.
    decay
        From when on, in seconds, fits become worse by how many Å an hour: charging, drift, a dying
        beam. They do not unless given.
    conditions
        The numbers behind it all.
    world
        Their former name.

    Attributes
    ----------
    feature_names
        The columns of a survey's features.

    Examples
    --------
    >>> microscope = Simulator(seed=3, pixels=False, delay="none")
    >>> square = microscope.squares()[0]
    >>> survey = microscope.survey(square.name)
    >>> patch = survey.patches[0]
    >>> seconds = microscope.move(patch) + microscope.expose(patch.holes[0])
    >>> [score.hole == patch.holes[0].name for score in microscope.collect()]
    [True]
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        regime: Literal["fast", "slow"] = "fast",
        squares: int = 25,
        foil: Foil = "carbon",
        shots: int = 1,
        pixels: bool = True,
        prediction: bool = False,
        delay: Delay = "measured",
        faults: Sequence[tuple[float, float]] | None = None,
        decay: tuple[float, float] = (0.0, 0.0),
        conditions: Conditions | None = None,
        world: Conditions | None = None,
    ) -> None:
        if world is not None:
            warn("Simulator(world=...) is Simulator(conditions=...)", DeprecationWarning, 2)
            conditions = world
        if regime not in REGIMES:
            raise ValueError(f"regime is {regime!r}; there are {', '.join(REGIMES)}")
        if foil not in ("carbon", "gold"):
            raise ValueError(f"foil is {foil!r}; there are carbon and gold")
        self.seed = int(number("seed", seed, low=0))
        self.shots = int(number("shots", shots, low=1))
        self.foil: Foil = foil
        self.pixels, self.prediction = pixels, prediction
        self.conditions = conditions or Conditions()
        self.grid = make_grid(self.conditions, self.seed, int(number("squares", squares, low=1)))
        self.faults = draw_faults(self.conditions, self.seed) if faults is None else tuple(faults)
        self.decay = decay
        self.feature_names = (*HOLE_FEATURES, *(("prediction",) if prediction else ()))
        self._regime = REGIMES[regime]
        self._names = [
            f"sim{self.seed:04d}_grid1_{tile + 1:05d}gr_{k + 1:05d}sq"
            for k, tile in enumerate(self.grid.tile.tolist())
        ]
        self._index = {name: k for k, name in enumerate(self._names)}
        # What is there does not change, so it is worked out once for all who are there `again`.
        self._squares: list[Square] = []
        self._opened: dict[str, Opened] = {}
        self._qualities: dict[tuple[str, int, float], dict[str, _Shots]] = {}
        self._begin(delay)

    def __repr__(self) -> str:
        """Which grid it is, and under which microscope."""
        regime = next(name for name, times in REGIMES.items() if times is self._regime)
        drawn = "drawn" if self.pixels else "not drawn"
        squares = f"{len(self._names)} squares, {drawn}"
        return f"<Simulator of seed {self.seed}: {squares}; {regime} stage, at {self.clock:.0f} s>"

    def _begin(self, delay: Delay) -> None:
        """Start the clock, with nothing done yet."""
        self.feedback = Feedback(delay, seed=self.seed, queue=_queue(self.conditions))
        self._clock = 0.0
        self._times = DrawnTimes(
            self._regime, self.seed, tails=self.conditions.tails, upkeep=self.conditions.upkeep
        )
        self._paid: set[str] = set()
        self._visits: dict[str, int] = {}
        self._at: str | None = None
        self._taken: dict[str, list[Score]] = {}
        self._turns: dict[int, int] = {}  # by square: holes exposed

    def again(self) -> Self:
        """The same grid under the same microscope: its clock at 0, nothing opened or exposed.

        Squares are drawn once for all of them, by whoever opens them first.

        Examples
        --------
        >>> first = Simulator(seed=3, squares=2, pixels=False)
        >>> name = first.squares()[0].name
        >>> first.again().survey(name) is first.survey(name)
        True
        """
        self.squares()  # or each would work out the atlas
        same = copy(self)
        same._begin(self.feedback.delay)
        return same

    def share_instrument(self, other: "Simulator") -> None:
        """Lie in the microscope of another grid: what is maintained, or at fault, is the same."""
        self._times.due = other._times.due
        self.faults, self.decay = other.faults, other.decay

    def draw_ahead(self, executor: Executor) -> Iterator[str]:
        """Draw all squares in other processes; yields their names as they are done."""
        fresh = self.again()
        fresh._opened, fresh._qualities = {}, {}  # or all of it would be sent with each
        names = [square.name for square in self.squares() if square.name not in self._opened]
        for name, opened in zip(names, executor.map(fresh._open, names), strict=True):
            self._opened[name] = opened
            yield name

    @property
    def timing(self) -> Timing:
        """What to plan with."""
        return self._regime.timing

    @property
    def clock(self) -> float:
        """Seconds since the session began."""
        return self._clock

    @property
    def upkeep(self) -> dict[str, float]:
        """Seconds of the clock that went to maintenance, by kind."""
        return dict(self._times.upkeep)

    @property
    def log(self) -> list[tuple[str, float]]:
        """(level, seconds) of all that was done, maintenance too."""
        return list(self._times.log)

    def squares(self) -> list[Square]:
        """The squares of the atlas."""
        if not self._squares:
            features = atlas_features(self.conditions, self.grid, self.seed, len(self._names))
            self._squares = [
                Square(name, x, y, size=SIDE, features=tuple(seen))
                for name, (x, y), seen in zip(
                    self._names, self.grid.places.tolist(), features.tolist(), strict=True
                )
            ]
        return list(self._squares)

    def atlas(self) -> list[Image]:
        """The tiles of the atlas, drawn."""
        return draw_atlas(self.conditions, self.grid, self.seed, len(self._names))

    def survey(self, square: str) -> Survey:
        """Open a square; paid once."""
        opened = self._open(square)
        if square not in self._paid:
            self._paid.add(square)
            self._clock += self._times.square(self._clock, self._index[square])
            self._at = None
        return opened.survey

    def peek(self, square: str) -> Survey:
        """What a survey would show, at no cost: for yardsticks, not for pilots."""
        return self._open(square).survey

    def move(self, patch: Patch) -> float:
        """Go to a patch and focus."""
        if patch.square not in self._paid:
            self._open(patch.square)
            raise ValueError(f"square {patch.square!r} is not open; survey it before moving there")
        if patch.name not in self._opened[patch.square].survey.features:
            raise KeyError(f"square {patch.square!r} has no patch {patch.name!r}")
        visit = self._visits.get(patch.name, 0)
        seconds = self._times.enter(self._clock, crc32(patch.name.encode()), visit)
        self._clock += seconds
        self._at = patch.name
        self._visits[patch.name] = visit + 1
        return seconds

    def expose(self, hole: Hole) -> float:
        """Take the shots of a hole of this patch."""
        target = self._target(hole.name)
        if self._at != target.patch:
            where = f"at {self._at!r}" if self._at else "at no patch"
            raise ValueError(
                f"hole {hole.name!r} is of patch {target.patch!r}, and the stage is {where}; "
                f"move there first"
            )
        if hole.name in self._taken:
            raise ValueError(f"hole {hole.name!r} was exposed already")
        started = self._clock
        held = self._taken[hole.name] = []
        for shot in range(self.shots):
            self._clock += self._times.expose() if shot == 0 else self._times.shot()
            score = self._score(hole.name, target, shot, self._visits[target.patch] - 1)
            held.append(score)
            self.feedback.submit(Shot(hole.name, shot), self._clock)
        self._turns[target.square] = self._turns.get(target.square, 0) + 1
        return self._clock - started

    def collect(self) -> list[Score]:
        """The scores that arrived since the last time."""
        return [
            _arrived(self._taken[done.shot.hole][done.shot.number], done.arrived_at)
            for done in self.feedback.ready(self._clock)
        ]

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self._clock += number("seconds", seconds, low=0.0)

    def truth(self, hole: str, shot: int = 0) -> float | None:
        """The CTF in Å that a hole gives on a first visit without a fault; None without a fit.

        It is that of the usual defocus, which costs nothing.
        """
        return self._quality(hole, self._target(hole), shot, 0)[0]

    def particles(self, hole: str, shot: int = 0) -> float | None:
        """The particles that a hole gives on a first visit without a fault."""
        return self._quality(hole, self._target(hole), shot, 0)[1]

    def first_visit(self, reward: Callable[[Score], float | None], hole: str) -> float:
        """What a hole is worth on a first visit without a fault."""
        shots = range(self.shots)
        return _worth(
            (Score(hole, k, self.truth(hole, k), self.particles(hole, k), 0.0, 0.0) for k in shots),
            reward,
        )

    def worth(self, reward: Callable[[Score], float | None]) -> dict[str, float]:
        """By hole that was exposed: what its shots were worth, scored or not; 0 without a fit."""
        return {hole: _worth(shots, reward) for hole, shots in self._taken.items()}

    def _open(self, square: str) -> Opened:
        if square in self._opened:
            return self._opened[square]
        if square not in self._index:
            raise KeyError(
                f"the grid has no square {square!r}; its squares are {self._names[0]!r}…"
            )
        index = self._index[square]
        truth = make_square(self.conditions, self.grid, self.seed, index, self.shots)
        look = draw_and_open if self.pixels else open_square
        opened = look(
            self.conditions,
            self.grid,
            truth,
            index=index,
            name=square,
            foil=self.foil,
            prediction=self.prediction,
            rng=np.random.default_rng([self.seed, 4, index]),
        )
        self._opened[square] = opened
        return opened

    def _target(self, hole: str) -> Target:
        # A hole's name begins with its square's.
        square = hole.split("sq_", maxsplit=1)[0] + "sq"
        if square not in self._index or hole not in self._open(square).targets:
            raise KeyError(f"the grid has no hole {hole!r}")
        return self._opened[square].targets[hole]

    def _score(self, hole: str, target: Target, shot: int, visit: int) -> Score:
        defocus, more = defocus_of(self.conditions, self._turns.get(target.square, 0))
        if any(begin <= self._clock < end for begin, end in self.faults):
            more += FAULT_LOSS
        ctf, particles = self._quality(hole, target, shot, visit, more)
        worse = max(self._clock - self.decay[0], 0.0) / HOUR * self.decay[1]
        if ctf is not None and particles is not None and worse > 0.0:
            share = useful_share(self.conditions, np.array([ctf + worse, ctf]))
            ctf, particles = ctf + worse, float(np.rint(particles * share[0] / share[1]))
        known = {} if defocus is None else {"defocus": defocus}
        return Score(hole, shot, ctf, particles, self._clock, inf, known)

    def _quality(
        self, hole: str, target: Target, shot: int, visit: int, more: float = 0.0
    ) -> tuple[float | None, float | None]:
        key = (target.patch, visit, more)
        if key not in self._qualities:
            self._qualities[key] = self._visit(target, visit, more)
        ctf, particles = self._qualities[key][hole]
        return (None, None) if isnan(ctf[shot]) else (ctf[shot], particles[shot])

    def _visit(self, target: Target, visit: int, more: float) -> dict[str, _Shots]:
        """What the holes of a patch give on a visit: all at once is quicker than one by one."""
        opened = self._opened[self._names[target.square]]
        there = {n: t for n, t in opened.targets.items() if t.patch == target.patch}
        ctf, particles = visit_quality(
            self.conditions,
            opened.truth,
            np.array([t.hole for t in there.values()]),
            shift=np.array([t.shift for t in there.values()]),
            focus=self._focus(target.patch, visit),
            more=more,
        )
        each = zip(ctf.tolist(), particles.tolist(), strict=True)
        return dict(zip(there, each, strict=True))

    def _focus(self, patch: str, visit: int) -> float:
        """How far off focus a visit is: the same for all its holes."""
        rng = np.random.default_rng([self.seed, 5, crc32(patch.encode()), visit])
        return abs(float(rng.standard_normal()))


def _worth(shots: Iterable[Score], reward: Callable[[Score], float | None]) -> float:
    return sum((reward(score) or 0.0 for score in shots), start=0.0)


def _arrived(score: Score, at: float) -> Score:
    return replace(score, arrived_at=at)


def _queue(conditions: Conditions) -> Queue:
    return Queue(
        median=conditions.delay,
        stray=conditions.stray,
        outage_every=conditions.outage_every,
        outage_hours=conditions.outage_hours,
        lapse_every=conditions.lapse_every,
        lapse_hours=conditions.lapse_hours,
    )
