"""The array that a scale-free belief keeps, as Python sees it."""

import functools
from typing import Any

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.learner import copied


@functools.cache
def compiled() -> tuple[Any, Any, Any, Any]:
    """The modules that load numba, on first use."""
    from coaf.bandit.compiled import extremes, linear, scale_free, workspace

    return scale_free, extremes, linear, workspace


def extremes_of(
    learner: FloatArray, dim: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Views of the extremes: rows x̃, rewards, what they count for, and weights."""
    module = compiled()[1]
    tail, count = learner[-module.TAIL :], module.EXTREMES
    numbers = (tail[row, :count] for row in (module.REWARDS, module.COUNTED, module.WEIGHTS))
    rewards, counted, weights = numbers
    return tail[:count, : dim + 1], rewards, counted, weights


def _ridge(learner: FloatArray, dim: int) -> FloatArray:
    """The part of V that is no row's."""
    free, top = compiled()[0], 2 * learner.shape[1]
    ranges = learner[top + free.HIGH, :dim] - learner[top + free.LOW, :dim]
    return np.diag(np.append(free.RIDGE * ranges * ranges, 0.0))


def _known(learner: FloatArray, dim: int) -> FloatArray:
    """Σ x̃ x̃ᵀ over the rows learned."""
    from coaf.bandit.beliefs.learner import precision

    return precision(learner, dim + 1) - _ridge(learner, dim)


def discounted(learner: FloatArray, prior: FloatArray, dim: int, factor: float) -> FloatArray:
    """The learner with what came since `prior` at `factor` of its weight; to be derived."""
    _, module, linear, _ = compiled()
    D, top = dim + 1, 2 * learner.shape[1]
    result = copied(learner)
    before = _known(prior, dim)
    result[:D, :D] = _ridge(learner, dim) + before + factor * (_known(learner, dim) - before)
    result[top + 2, linear.WAITING] = 0.0
    sums = [(top + module.REST, slice(D)), (top + 2, module.SQUARES), (top + 2, module.NONZERO)]
    sums.append((top + 2, linear.ROWS))
    # What was an extreme of the prior's and is one still keeps its weight; what is none any more
    # is among the rest now, and was not then.
    old, now = extremes_of(prior, dim), extremes_of(result, dim)
    kept = np.zeros(len(now[3]), dtype=np.bool_)
    earlier = [prior[at].copy() if isinstance(at[1], slice) else float(prior[at]) for at in sums]
    for x, reward, _, weight in zip(*old, strict=True):
        same = (now[3] > 0.0) & ~kept & (now[1] == reward) & (now[0] == x).all(axis=1)
        if weight > 0.0 and same.any():
            kept[int(same.argmax())] = True
        elif weight > 0.0:
            moved = (weight * reward * x, weight * reward * reward, weight, 0.0)
            earlier = [a + b for a, b in zip(earlier, moved, strict=True)]
    for at, then in zip(sums, earlier, strict=True):
        result[at] = then + factor * (learner[at] - then)
    now[3][~kept] *= factor
    return result
