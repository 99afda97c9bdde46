"""How long things took on a recorded grid, in four numbers."""

from typing import NamedTuple

from coaf.bandit.arrays import number
from coaf.bandit.latency import Setup


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

    Examples
    --------
    >>> Seconds().hole(7)
    30.66
    """

    survey: float = 12.09
    move: float = 51.99
    expose: float = 6.66
    shot: float = 4.0

    def hole(self, shots: int = 1) -> float:
        """To take all shots of a hole."""
        return self.expose + (shots - 1) * self.shot

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
        )
