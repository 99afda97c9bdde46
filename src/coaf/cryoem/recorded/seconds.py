"""How long things took on a recorded grid: four numbers, and three for switching."""

from typing import NamedTuple

from coaf.bandit.arrays import number
from coaf.bandit.latency import Setup
from coaf.cryoem.timing import SWITCHES, Timing, hole_seconds

_LEAST = 0.001  # seconds: nothing that must take time takes less


class Seconds(NamedTuple):
    """What a patch and its holes cost; unless given, the means of the paper.

    Parameters
    ----------
    survey
        To look at a patch: its share of opening its square.
    move
        To be ready at a patch once one of its holes is wanted.
    expose
        For the first shot of a hole.
    shot
        For each further shot of the same hole.
    to_square, to_tile, to_grid
        Switching, beyond moving: to a patch of another square than the stage is in, beyond that of
        another tile, and of another grid. To look at a patch has its own way there.

    Examples
    --------
    >>> Seconds().hole(7)
    30.66
    """

    survey: float = 12.09
    move: float = 51.99
    expose: float = 6.66
    shot: float = 4.0
    to_square: float = 0.0
    to_tile: float = 0.0
    to_grid: float = 0.0

    @classmethod
    def of(cls, timing: Timing) -> "Seconds":
        """What a session takes with this timing."""
        needed = (timing.survey, timing.enter, timing.expose, timing.shot)
        more = (getattr(timing, name) for name in SWITCHES)
        return cls(*(max(seconds, _LEAST) for seconds in needed), *more)

    def hole(self, shots: int = 1) -> float:
        """To take all shots of a hole."""
        return hole_seconds(self.expose, self.shot, shots)

    def latency(self) -> Setup:
        """The time of a patch whose holes have one shot each (`eq: microscope`)."""
        return Setup(self.survey, self.move, self.expose)

    def checked(self) -> "Seconds":
        """The same as floats; an error names what cannot be."""
        return Seconds(
            number("survey", self.survey, above=0.0),
            number("move", self.move, low=0.0),
            number("expose", self.expose, above=0.0),
            number("shot", self.shot, above=0.0),
            *(number(name, getattr(self, name), low=0.0) for name in SWITCHES),
        )
