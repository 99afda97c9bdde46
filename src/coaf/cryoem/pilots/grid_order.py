"""How people go through the grids of a cassette: one after another, or the best first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from coaf.cryoem.pilot import Choice, Left, Other


@dataclass(frozen=True, slots=True)
class Standing:
    """How things stand with a grid that was loaded.

    Attributes
    ----------
    rate
        What a second is worth on it, as far as is known now; 0 before anything tells.
    squares
        How many of them were opened.
    looked, left
        How many patches were looked at, and about how many are left.
    worked
        Seconds spent on it, loading aside.
    taken
        Micrographs taken.
    scored, gained
        Of how many of them the score came, and the reward of those.
    """

    rate: float
    squares: int
    looked: int
    left: float
    worked: float
    taken: int
    scored: int
    gained: float

    @property
    def each(self) -> float:
        """Seconds that a patch takes, with its share of a square and all that is wanted of it."""
        return self.worked / max(self.looked, 1)

    @property
    def yielded(self) -> float:
        """Reward a second so far, unscored micrographs counted like scored ones."""
        return self.gained / max(self.scored, 1) * self.taken / max(self.worked, 1e-6)


class GridRule(Protocol):
    """Which grid to load: asked before each square, and when nothing more is wanted of a grid."""

    def choose(
        self, here: str, known: Mapping[str, Standing], others: Sequence[Other], left: Left
    ) -> Choice:
        """One of the others, or None to stay `here`; `known` are the grids that were loaded."""

    def elsewhere(self, here: Standing, known: Mapping[str, Standing], left: Left) -> float:
        """What a second is worth at least, as other known grids would have it; 0 if nobody asks."""


def next_grid(others: Sequence[Other], left: Left) -> Choice:
    """The next grid never loaded, once nothing more is wanted of the one that is.

    Examples
    --------
    >>> from coaf.cryoem.timing import FAST
    >>> held = [Other("a", seen=True), Other("b"), Other("c")]
    >>> here = Left(3600.0, FAST)
    >>> next_grid(held, here).name, next_grid(held, Left(3600.0, FAST, idle=True)).name
    (None, 'b')
    """
    new = [other.name for other in others if not other.seen]
    if left.idle and new:
        return Choice(new[0], "The next grid in order.")
    return Choice(None, "There is no grid left." if left.idle else "This grid is not done.")


class InOrder:
    """A rule that knows of no price between grids."""

    def elsewhere(self, here: Standing, known: Mapping[str, Standing], left: Left) -> float:
        return 0.0


class InTurn(InOrder):
    """One grid after another: each for an equal share of the time, or each to its end.

    Parameters
    ----------
    seconds, grids
        The time there is, and how many grids share it; each is worked on to its end if the time
        has none.
    """

    def __init__(self, seconds: float, grids: int) -> None:
        self.seconds, self.grids = seconds, grids

    def choose(
        self, here: str, known: Mapping[str, Standing], others: Sequence[Other], left: Left
    ) -> Choice:
        new = [other.name for other in others if not other.seen]
        if new and left.seconds <= self.seconds * len(new) / self.grids < float("inf"):
            return Choice(new[0], "Its share of the time begins.")
        return next_grid(others, left)


class ScreenAll(InOrder):
    """A square of each grid, then the grid whose first square gave most a second, to its end."""

    def choose(
        self, here: str, known: Mapping[str, Standing], others: Sequence[Other], left: Left
    ) -> Choice:
        new = [other.name for other in others if not other.seen]
        now = known.get(here)
        if left.ahead or (now is not None and not now.squares and now.left and not left.idle):
            return Choice(None, "Its first square comes first.")
        if new:
            return Choice(new[0], "A square of each grid comes first.")
        gave = {other.name: known[other.name].yielded for other in others if other.squares}
        stays = now is not None and now.left and not left.idle
        if now is not None and stays:
            gave[here] = now.yielded if now.squares == 1 else float("inf")  # it was chosen
        best = max(gave, key=lambda name: gave[name], default=here)
        if best == here:
            return Choice(None, "It is the best of those screened.")
        return Choice(best, "The best of those screened.")
