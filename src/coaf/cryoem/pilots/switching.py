"""Where to go next when going there takes time that several patches share."""

from collections.abc import Sequence

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.rates.price import Setups, bundled
from coaf.cryoem.grid import Square
from coaf.cryoem.timing import SWITCHES, Timing, switches


class Switching:
    """The switches that lie before patches, on a tree: grids of tiles of squares of patches.

    A switch is paid once for all that is then done there, and again after leaving. So at a price
    of a second a square is worth the sum of its patches that pay, less the way to it; a tile the
    sum of its squares that pay, less the way to it.

    Parameters
    ----------
    squares
        That patches lie in: one entry a patch.
    here
        The square that the stage is in; None if nobody knows.
    timing
        What switching takes.

    Attributes
    ----------
    setups
        What patches share, from the inside out; none where switching takes no time.
    seconds : (patches,)
        The way to each.
    """

    def __init__(self, squares: Sequence[Square], here: Square | None, timing: Timing) -> None:
        self.setups: list[Setups] = []
        self.seconds = np.zeros(len(squares))
        if not any(getattr(timing, level) > 0.0 for level in SWITCHES):
            return
        ways = {square: switches(here, square) for square in dict.fromkeys(squares)}
        takes = {square: timing.switch(here, square) for square in ways}
        self.seconds = np.array([takes[square] for square in squares])
        below = list(squares)
        for level, depth in zip(SWITCHES, (3, 2, 1), strict=True):
            groups: dict[tuple[str, ...], tuple[int, Square]] = {}
            paths = [(s.grid, s.tile, s.name)[:depth] for s in below]
            of = [
                groups.setdefault(path, (len(groups), s))[0]
                for path, s in zip(paths, below, strict=True)
            ]
            below = [square for _, square in groups.values()]
            lasts = [getattr(timing, level) if level in ways[s] else 0.0 for s in below]
            self.setups.append(Setups(np.array(of, dtype=np.int64), np.array(lasts)))

    def best(self, worth: FloatArray, rate: float) -> tuple[int, bool]:
        """The patch to go to, and whether it pays together with what shares its way.

        What pays without a switch comes first: after leaving, the way would be paid again. Of
        others, the nearest first, then those of the best tile, its best square, its best patch, and
        of equals the first.

        Parameters
        ----------
        worth : (patches,)
            What each patch is worth beyond its time, the switches apart.
        rate
            What a second is worth.
        """
        ranks, pays = [worth], worth > 0.0
        together, at = lambda _: (worth, worth), np.arange(len(worth))
        for shared in self.setups:
            together = bundled(together, shared)
            at = shared.of[at]
            ranks.append(together(rate)[0][at])
            pays = pays & (ranks[-1] > 0.0)
        keys = [key[::-1] for key in (*ranks, -self.seconds, pays)]
        best = len(worth) - 1 - int(np.lexsort(keys)[-1])  # the first of equals
        return best, bool(pays[best])
