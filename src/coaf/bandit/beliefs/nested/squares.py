"""What rows count, and what they share with those near them: squares in place of likelihoods."""

from dataclasses import dataclass, replace

import numpy as np

from coaf.bandit.arrays import FloatArray, IntArray
from coaf.bandit.beliefs.nested.groups import GroupTree, padded

_ARRAYS = ("at", "w", "MZ", "own", "logdets", "roots")


def starts_of(nodes: IntArray, tree: GroupTree) -> IntArray:
    """Where the rows of each group begin, which are sorted by it: of those without one first."""
    return np.searchsorted(nodes, np.arange(-1, len(tree.paths) + 1))


@dataclass(frozen=True)
class Squares:
    """Squares that touch the log likelihood of rows where these were: `nesting.expand`.

    Attributes
    ----------
    at, w : (rows,)
        The η at which each row was expanded, and its weight there.
    MZ : (rows, dim + 2)
        Its share of M·(x, 1, response).
    own : (rows,)
        The variance of `near` that is left, given all else.
    logdets : (groups + 1,)
        ln det(I + variance·W·C), of rows without groups first.
    roots : (rows, largest group)
        The Cholesky factors of I + variance·√W·C·√W, of each group in the rows of its own.
    variance, noise
        Of what rows near each other share; of Gaussian rewards, which are squares anywhere, else 0.
    """

    at: FloatArray
    w: FloatArray
    MZ: FloatArray
    own: FloatArray
    logdets: FloatArray
    roots: FloatArray
    variance: float
    noise: float = 0.0

    @classmethod
    def none(
        cls, Z: FloatArray, starts: IntArray, variance: float, noise: float = 0.0
    ) -> "Squares":
        """Before any row was expanded."""
        rows, width = Z.shape
        nowhere, zero = np.full(rows, np.nan), np.zeros(rows)
        MZ, logdets = np.zeros((rows, width + 1)), np.zeros(len(starts) - 1)
        # Those without a group come first, and are near nobody.
        largest = int(np.diff(starts[1:]).max(initial=0)) if variance > 0.0 else 0
        roots = np.zeros((rows, largest))
        return cls(nowhere, zero, MZ, zero.copy(), logdets, roots, variance, noise)

    @property
    def arrays(self) -> tuple[FloatArray, ...]:
        """What expanding changes."""
        return tuple(getattr(self, name) for name in _ARRAYS)

    def copy(self) -> "Squares":
        """Some groups of which can be expanded anew."""
        return replace(self, **{name: getattr(self, name).copy() for name in _ARRAYS})

    def grown(self, nodes: IntArray, order: IntArray, tree: GroupTree) -> "Squares":
        """With further rows, which are yet to be expanded: `nodes` of all rows, to be sorted so."""
        more = len(nodes) - len(self.at)

        def joint(old: FloatArray, new: float) -> FloatArray:
            added = np.full((more, *old.shape[1:]), new)
            rows: FloatArray = np.concatenate([old, added])[order]
            return rows

        roots, largest = joint(self.roots, 0.0), int(np.bincount(nodes + 1)[1:].max(initial=0))
        wide = padded(roots.T, max(largest, roots.shape[1])).T.copy()
        at, w, MZ = joint(self.at, np.nan), joint(self.w, 0.0), joint(self.MZ, 0.0)
        own, logdets = joint(self.own, 0.0), padded(self.logdets, len(tree.paths) + 1)
        return replace(self, at=at, w=w, MZ=MZ, own=own, logdets=logdets, roots=wide)
