"""A cassette as a pilot: a pilot for each of its grids, and which of them is loaded."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from coaf.bandit.arrays import FloatArray
from coaf.bandit.state import entry
from coaf.cryoem.grid import Patch, Square
from coaf.cryoem.microscope import Survey
from coaf.cryoem.pilot import Choice, Left, Open, Other, Scored
from coaf.cryoem.pilots.coaf import CoafPilot
from coaf.cryoem.pilots.grid_choice import GridChoice
from coaf.cryoem.pilots.grid_order import GridRule, Standing
from coaf.cryoem.pilots.knowledge import Knowledge
from coaf.cryoem.timing import Timing

MOST = 3  # earlier grids that a new one begins with: those that most is known of

MakeOne = Callable[[Sequence[Knowledge]], CoafPilot]


@dataclass(slots=True)
class _Tally:
    """A grid that was loaded: who decides on it, and what was done there."""

    pilot: CoafPilot
    seen: dict[str, None] = field(default_factory=dict)  # squares of its atlas
    opened: dict[str, int] = field(default_factory=dict)  # squares, and how many patches they have
    looked: dict[str, None] = field(default_factory=dict)  # patches
    worked: float = 0.0
    hole: float = 0.0  # seconds that one takes
    taken: int = 0
    scored: int = 0
    gained: float = 0.0
    rate: float | None = None  # None where it must be asked anew

    def standing(self, *, priced: bool = True) -> Standing:
        if self.rate is None and priced:
            self.rate = self.pilot.rate
        patches, looked = sum(self.opened.values()), len(self.looked)
        squares = sum(name not in self.opened for name in self.seen)
        left = patches - looked + squares * (patches / len(self.opened) if self.opened else 1.0)
        return Standing(
            self.rate or 0.0,
            squares=len(self.opened),
            looked=looked,
            left=max(left, 0.0),
            worked=self.worked,
            taken=self.taken,
            scored=self.scored,
            gained=self.gained,
        )


class CassettePilot:
    """COAF on each grid of a cassette, and a rule one level up: which of them to load.

    Each grid has its own pilot, which is as it was when the grid is loaded again. That of a new
    grid begins with what the others have learned by then (`Knowledge`), beside its own prior.

    Parameters
    ----------
    make
        A pilot of a grid that begins with this knowledge.
    rule
        Which grid to load; `GridChoice` unless given.
    earlier
        Of an earlier session.
    """

    def __init__(
        self, make: MakeOne, rule: GridRule | None = None, *, earlier: Sequence[Knowledge] = ()
    ) -> None:
        self.make, self.rule, self.earlier = make, rule or GridChoice(), tuple(earlier)
        self.here = ""  # until a grid is named
        self.grids = {self.here: _Tally(make(self.earlier))}
        self._of: dict[str, str] = {}  # by square and hole: the grid

    # Asked

    def grid(self, others: Sequence[Other], left: Left) -> Choice:
        if not self.here:
            return Choice(others[0].name, "The first in order: nothing is known of any.")
        known = {name: one.standing() for name, one in self.grids.items()}
        return self.rule.choose(self.here, known, others, left)

    def square(self, squares: Sequence[Square], left: Left) -> Choice:
        return self._pilot.square(squares, self._priced(left))

    def patch(self, patches: Sequence[Open], left: Left) -> Choice:
        return self._pilot.patch(patches, self._priced(left))

    def hole(self, here: Open, left: Left, *, inside: bool) -> Choice:
        return self._pilot.hole(here, self._priced(left), inside=inside)

    def estimates(self, patch: Patch) -> FloatArray:
        return self._at(patch.square).pilot.estimates(patch)

    def knowledge(self) -> Knowledge | None:
        """What was learned on the grid that most is known of."""
        return next(iter(self._learned()), None)

    # Told

    def loaded(self, grid: str) -> None:
        first = self.grids.pop("", None)
        self.here = grid
        if first is not None and first.seen:  # it was there all the time
            self.grids[grid] = first
            self._of = dict.fromkeys(self._of, grid)
        if grid not in self.grids:
            earlier = (*self._learned()[:MOST], *self.earlier)
            self.grids[grid] = _Tally(self.make(earlier))

    def saw(self, squares: Sequence[Square]) -> None:
        names = dict.fromkeys(square.name for square in squares)
        self._tally.seen |= names
        self._of |= dict.fromkeys(names, self.here)
        self._pilot.saw(squares)

    def opened(self, survey: Survey, timing: Timing) -> None:
        tally = self._at(survey.square)
        if survey.square not in tally.opened:
            tally.worked += timing.square
            tally.opened[survey.square] = len(survey.patches)
        grid = self._of.setdefault(survey.square, self.here)
        holes = (hole.name for patch in survey.patches for hole in patch.holes)
        self._of |= dict.fromkeys(holes, grid)
        tally.rate = None
        tally.pilot.opened(survey, timing)

    def moved(self, here: Open, left: Left, rate: float | None) -> None:
        tally = self._at(here.patch.square)
        tally.worked += left.timing.enter
        tally.hole = left.timing.hole(here.patch.holes[0].shots)
        tally.pilot.moved(here, left, rate)

    def exposed(self, hole: str) -> None:
        tally = self._at(hole)
        tally.worked += tally.hole
        tally.taken += 1
        tally.pilot.exposed(hole)

    def done(self, here: Open, left: Left) -> None:
        tally = self._at(here.patch.square)
        tally.looked[here.patch.name] = None
        tally.pilot.done(here, left)

    def scored(self, scores: Sequence[Scored]) -> None:
        by: dict[str, list[Scored]] = {}
        for score in scores:
            by.setdefault(self._of[score.hole], []).append(score)
        for grid, held in by.items():
            tally = self.grids[grid]
            tally.scored += len(held)
            tally.gained += sum(score.reward for score in held)
            tally.rate = None
            tally.pilot.scored(held)

    def state(self) -> dict[str, Any]:
        held = {
            name: {"pilot": one.pilot.state(), "scored": one.scored, "gained": one.gained}
            for name, one in self.grids.items()
        }
        return {"grids": held}

    def restore(self, state: Mapping[str, Any]) -> None:
        for name, saved in entry(state, "grids").items():
            tally = self.grids[name]
            tally.pilot.restore(entry(saved, "pilot"))
            tally.scored, tally.gained = int(entry(saved, "scored")), float(entry(saved, "gained"))
            tally.rate = None

    # What is known

    @property
    def _tally(self) -> _Tally:
        """Of the grid that is loaded."""
        return self.grids[self.here]

    @property
    def _pilot(self) -> CoafPilot:
        return self._tally.pilot

    def _at(self, name: str) -> _Tally:
        """Of the grid that a square or a hole is on; of the one that is loaded if nobody said."""
        grid = self._of.get(name)
        return self._tally if grid is None else self.grids[grid]

    def _priced(self, left: Left) -> Left:
        """What is left, with what a second is worth on the other grids."""
        others = {name: one.standing() for name, one in self.grids.items() if name != self.here}
        here = self._tally.standing(priced=False)
        return replace(left, elsewhere=self.rule.elsewhere(here, others, left))

    def _learned(self) -> list[Knowledge]:
        """What each grid taught: what most scores taught first."""
        told = (one.pilot.knowledge() for one in self.grids.values())
        return sorted((one for one in told if one is not None), key=lambda one: -one.scores)
