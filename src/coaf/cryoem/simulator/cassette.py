"""Several simulated grids in one microscope, which loads them one at a time, on one clock."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Self

from coaf.bandit.arrays import number
from coaf.cryoem.grid import Hole, Patch, Square, check_unique
from coaf.cryoem.microscope import Score, Survey
from coaf.cryoem.simulator.simulator import Simulator
from coaf.cryoem.timing import Timing

LOAD, ATLAS = 240.0, 600.0  # seconds: an exchange by an autoloader, and an atlas of a new grid


class Cassette:
    """Grids that are loaded one at a time. None is there in the beginning.

    Parameters
    ----------
    simulators
        A grid each, of different seeds and with the same features. The instrument, its maintenance
        and its faults, are those of the first.
    load, atlas
        Seconds to load a grid, and to see the atlas of one that was never loaded.

    Attributes
    ----------
    grids
        Their names, in order.

    Examples
    --------
    >>> cassette = Cassette([Simulator(seed, squares=2, pixels=False) for seed in (3, 4)])
    >>> cassette.grids
    ('grid 1', 'grid 2')
    >>> cassette.load("grid 2"), len(cassette.squares()), cassette.clock
    (240.0, 2, 840.0)
    """

    def __init__(
        self, simulators: Sequence[Simulator], *, load: float = LOAD, atlas: float = ATLAS
    ) -> None:
        check_unique("seed", (str(one.seed) for one in simulators))
        columns = {one.feature_names for one in simulators}
        if len(columns) != 1:
            raise ValueError(f"a cassette is of grids with the same features, not of {columns}")
        self._seconds = number("load", load, low=0.0), number("atlas", atlas, low=0.0)
        self.grids = tuple(f"grid {k}" for k in range(1, len(simulators) + 1))
        self._held = dict(zip(self.grids, simulators, strict=True))
        self.feature_names = simulators[0].feature_names
        self._clock = 0.0
        self._loaded: str | None = None
        self._seen: set[str] = set()  # grids whose atlas was taken
        self._of: dict[str, Simulator] = {}  # by square and hole that were shown
        for one in simulators:
            one.share_instrument(simulators[0])

    def again(self) -> Self:
        """The same cassette from the start: its clock at 0, nothing loaded."""
        load, atlas = self._seconds
        return type(self)([one.again() for one in self._held.values()], load=load, atlas=atlas)

    @property
    def timing(self) -> Timing:
        """What to plan with."""
        load, atlas = self._seconds
        return replace(self._held[self.grids[0]].timing, load=load, atlas=atlas)

    @property
    def clock(self) -> float:
        """Seconds since the session began."""
        return self._clock

    @property
    def upkeep(self) -> dict[str, float]:
        """Seconds of the clock that went to maintenance, by kind."""
        found: dict[str, float] = {}
        for one in self._held.values():
            for kind, seconds in one.upkeep.items():
                found[kind] = found.get(kind, 0.0) + seconds
        return found

    def load(self, grid: str) -> float:
        """Load a grid instead of the one that is there."""
        if grid not in self._held:
            raise KeyError(f"the cassette has no grid {grid!r}; it has {', '.join(self.grids)}")
        self._loaded = grid
        self.wait(self._seconds[0])
        return self._seconds[0]

    def squares(self) -> list[Square]:
        """The atlas of the grid that is loaded; for the first time that takes time."""
        here, name = self._here()
        if name not in self._seen:
            self._seen.add(name)
            self.wait(self._seconds[1])
        return self._known(name, here)

    def _known(self, name: str, simulator: Simulator) -> list[Square]:
        squares = [replace(square, grid=name) for square in simulator.squares()]
        self._of |= {square.name: simulator for square in squares}
        return squares

    def survey(self, square: str) -> Survey:
        """Open a square of the grid that is loaded; paid once."""
        here, name = self._here()
        if self._owner("square", square) is not here:
            raise ValueError(f"square {square!r} is not on {name}, which is loaded")
        survey = here.survey(square)
        self._clock = here.clock
        return self._shown(survey, here)

    def peek(self, square: str) -> Survey:
        """What a survey would show, at no cost: for yardsticks, not for policies."""
        for name, simulator in self._held.items():
            self._known(name, simulator)
        owner = self._owner("square", square)
        return self._shown(owner.peek(square), owner)

    def _shown(self, survey: Survey, owner: Simulator) -> Survey:
        holes = (hole for patch in survey.patches for hole in patch.holes)
        self._of |= {hole.name: owner for hole in holes}
        return survey

    def move(self, patch: Patch) -> float:
        """Go to a patch of the grid that is loaded, and focus."""
        here, name = self._here()
        if self._owner("square", patch.square) is not here:
            raise ValueError(f"patch {patch.name!r} is not on {name}, which is loaded")
        seconds = here.move(patch)
        self._clock = here.clock
        return seconds

    def expose(self, hole: Hole) -> float:
        """Take the shots of a hole of this patch."""
        here, name = self._here()
        if self._owner("hole", hole.name) is not here:
            raise ValueError(f"hole {hole.name!r} is not on {name}, which is loaded")
        seconds = here.expose(hole)
        self._clock = here.clock
        return seconds

    def collect(self) -> list[Score]:
        """The scores that arrived since the last time, of any grid."""
        for one in self._held.values():
            one.wait(max(self._clock - one.clock, 0.0))
        scores = [score for one in self._held.values() for score in one.collect()]
        return sorted(scores, key=lambda score: score.arrived_at)

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self._clock += number("seconds", seconds, low=0.0)

    def worth(self, reward: Callable[[Score], float | None]) -> dict[str, float]:
        """By hole that was exposed: what its shots were worth, scored or not; 0 without a fit."""
        return {h: y for one in self._held.values() for h, y in one.worth(reward).items()}

    def first_visit(self, reward: Callable[[Score], float | None], hole: str) -> float:
        """What a hole that was shown is worth on a first visit without a fault."""
        return self._owner("hole", hole).first_visit(reward, hole)

    def _here(self) -> tuple[Simulator, str]:
        if self._loaded is None:
            raise ValueError("no grid is loaded; load one first")
        here = self._held[self._loaded]
        here.wait(max(self._clock - here.clock, 0.0))
        return here, self._loaded

    def _owner(self, what: str, name: str) -> Simulator:
        if name not in self._of:
            raise KeyError(f"no grid of the cassette has shown a {what} {name!r}")
        return self._of[name]
