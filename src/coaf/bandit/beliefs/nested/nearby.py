"""What arms near each other share beyond their group: a field that forgets itself with distance."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from coaf.bandit.arrays import FloatArray, IntArray


@cache
def nesting() -> Any:
    """The compiled loops, which load numba, on first use."""
    from coaf.bandit.compiled import nesting

    return nesting


def likeness(some: FloatArray, others: FloatArray) -> FloatArray:
    """e^−distance of places (n, 2) and (m, 2).

    Examples
    --------
    >>> likeness(np.zeros((1, 2)), np.array([[0.0, 0.0], [3.0, 4.0]])).round(3)
    array([[1.   , 0.007]])
    """
    alike: FloatArray = np.exp(-np.hypot(*(some[:, None] - others).transpose(2, 0, 1)))
    return alike


@dataclass(frozen=True)
class Nearby:
    """The rows of groups, and what they say of arms near them.

    What an arm shares with rows near it has the mean K·M·(response − rest), with K = variance·C
    between arm and rows, and M the precision of the rows once what they share is averaged over.

    Attributes
    ----------
    starts : (groups + 1,)
        Where the rows of each group begin.
    spots, w : (rows, 2), (rows,)
        Their places and weights.
    MZ : (rows, dim + 2)
        M·(x, 1, response).
    lean : (rows,)
        By how much responses differ at the mean from those at the mode.
    roots : (rows, largest group)
        The Cholesky factors of I + variance·√W·C·√W, of each group in the rows of its own.
    variance
        Of what is shared.
    """

    starts: IntArray
    spots: FloatArray
    w: FloatArray
    MZ: FloatArray
    lean: FloatArray
    roots: FloatArray
    variance: float

    def tell(self, Z: FloatArray, spots: FloatArray, nodes: IntArray) -> FloatArray:
        """Let η = Z·(θ, −1) of arms at these places of groups count the rows near them.

        Z is changed. Returns the variance that is left of what each arm shares with those near it,
        given all else.
        """
        own, _ = self._look(Z, spots, nodes, 0)
        return own

    def left(self, spots: FloatArray, nodes: IntArray, which: IntArray) -> FloatArray:
        """The covariance that is left of what arms share with those near them, given all else.

        `which` are numbers that are equal for arms of one group, seen or not.
        """
        same = which[:, None] == which
        alike = np.where(same, self.variance * likeness(spots, spots), 0.0)
        nothing = np.zeros((len(spots), self.MZ.shape[1]))
        _, half = self._look(nothing, spots, nodes, int(np.diff(self.starts).max(initial=0)))
        covariance: FloatArray = alike - np.where(same, half @ half.T, 0.0)
        return covariance

    def _look(
        self, Z: FloatArray, spots: FloatArray, nodes: IntArray, width: int
    ) -> tuple[FloatArray, FloatArray]:
        own, half = np.full(len(Z), self.variance), np.zeros((len(Z), width))
        rows = (self.starts, self.spots, self.w, self.MZ, self.lean, self.roots, self.variance)
        nesting().look_around(*rows, np.ascontiguousarray(spots), nodes, Z, own, half)
        return own, half
