"""The posterior of coefficients and nested group effects, by eliminating one level at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np

from coaf.bandit.arrays import FloatArray, IntArray
from coaf.bandit.beliefs.nested.groups import GroupTree
from coaf.bandit.beliefs.nested.nearby import Nearby, nesting


@dataclass(frozen=True)
class Level:
    """What was found when the effects of one level were eliminated; last, a node never seen.

    Attributes
    ----------
    column : (nodes + 1, dim + 2)
        Σ w z over the rows of each node, with z = (x, 1, y), levels below eliminated.
    shrink : (nodes + 1,)
        The variance τ²/(1 + τ²n) of an effect given the coefficients and the effects above it.
    ratio : (nodes + 1,)
        1/(1 + τ²n): what an effect above counts, once this one is known.
    """

    column: FloatArray
    shrink: FloatArray
    ratio: FloatArray


@dataclass(frozen=True)
class NestedPosterior:
    """The joint Gaussian of coefficients θ (the last is the intercept) and effects.

    Attributes
    ----------
    theta : (dim + 1,)
        The mean of θ.
    root : (dim + 1, dim + 1)
        R with RᵀR the covariance of θ, the effects integrated out.
    levels
        Effects given θ, outermost first.
    misfit
        What is left of Σ w (y − η)² and the squares of the prior at the best θ and effects.
    logdet
        ln det of the precision of θ, plus Σ ln(1 + τ²n) over all groups.
    nearby
        Rows that say something of arms near them, where rows have places.
    """

    theta: FloatArray
    root: FloatArray
    levels: tuple[Level, ...]
    misfit: float
    logdet: float
    nearby: Nearby | None = None

    @property
    def v(self) -> FloatArray:
        """(θ, −1), so that z·v = η − y, effects aside."""
        return np.append(self.theta, -1.0)

    def effects(self, tree: GroupTree) -> tuple[FloatArray, ...]:
        """The mean effect of each group, level by level."""
        found, above = [], np.zeros(1)
        for level, parent in zip(self.levels, tree.parents, strict=True):
            c, shrink = level.column[:-1], level.shrink[:-1]
            above = above[parent]
            found.append(-shrink * (c @ self.v + c[:, -2] * above))
            above = above + found[-1]
        return tuple(found)

    def forms(self, nodes: IntArray) -> tuple[FloatArray, FloatArray]:
        """The sum S of effects above rows at `nodes` (m, levels): S = F·(θ, −1) + Σ a_l ε_l.

        ε_l is standard normal, one for each group of level l. An effect given what is above it is
        e = −shrink·(c·(θ, −1) + n·S_above) + √shrink·ε, so S = ratio·S_above − shrink·c·(θ, −1)
        + √shrink·ε.
        """
        F = np.zeros((len(nodes), len(self.theta) + 1))
        a = np.zeros(nodes.shape)
        for number, level in enumerate(self.levels):
            at = nodes[:, number]
            ratio, shrink = level.ratio[at, None], level.shrink[at, None]
            F = ratio * F - shrink * level.column[at]
            a *= ratio
            a[:, number] = np.sqrt(shrink[:, 0])
        return F, a


def condition(
    gram: FloatArray, columns: FloatArray, tree: GroupTree, variances: Sequence[float]
) -> NestedPosterior:
    """The posterior of θ and the effects of groups.

    Parameters
    ----------
    gram : (dim + 2, dim + 2)
        Σ w z zᵀ over all rows, z = (x, 1, y), plus the prior of θ as if it were rows.
    columns : (groups, dim + 2)
        Σ w z over the rows of each innermost group.
    tree
        Which group lies in which.
    variances
        τ² of each level, outermost first.

    Notes
    -----
    The precision of an effect is 1/τ² + n with n = Σ w, and it meets the coefficients and the
    effects above it in the column c = Σ w z alone. Its Schur complement takes shrink·c cᵀ from
    the gram, and leaves ratio·c of the column, which the level above sums over its groups: exact
    block elimination (Henderson's mixed-model equations; Bates et al., J. Stat. Softw. 67, 2015),
    in time linear in the number of groups, however many rows they hold.
    """
    fast = nesting()
    E, logdet, levels = gram.copy(), 0.0, []
    for level in reversed(range(tree.levels)):
        groups, width = columns.shape
        # Last, a group never seen.
        shrink, ratio = np.full(groups + 1, variances[level]), np.ones(groups + 1)
        logdet += fast.eliminate(E, columns, variances[level], shrink, ratio)
        levels.append(Level(np.concatenate([columns, np.zeros((1, width))]), shrink, ratio))
        if level:
            above = np.zeros((tree.sizes[level - 1], width))
            fast.fold(columns, ratio, tree.parents[level], above)
            columns = above
    root, own = fast.inverse_root(E)
    if isnan(own):
        raise np.linalg.LinAlgError("the precision of the coefficients is not positive definite")
    half = root @ E[:-1, -1]
    return NestedPosterior(
        theta=root.T @ half,
        root=root,
        levels=tuple(reversed(levels)),
        misfit=float(E[-1, -1] - half @ half),
        logdet=logdet + own,
    )
