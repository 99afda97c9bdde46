"""The array that a linear belief keeps, as Python sees it; `compiled/linear.py` has its layout."""

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.state import entry, pack, unpack

Views = Iterator[tuple[str, FloatArray]]


@functools.cache
def compiled() -> tuple[Any, Any, Any, Any]:
    """The modules that load numba, on first use; not held by beliefs, which must pickle."""
    from coaf.bandit.compiled import confidence, guards, linear, workspace

    return linear, confidence, workspace, guards


def scratch(dim: int) -> Any:
    """The arena that compiled functions work in, for one call."""
    return compiled()[2].arena(dim, 1)


def rows(learner: FloatArray) -> float:
    """How many rows were learned."""
    return float(learner[2 * learner.shape[1] + 2, compiled()[0].ROWS])


def numbers(learner: FloatArray) -> list[float]:
    """Rows learned and what else is counted, in the order that `compiled/linear.py` names."""
    result: list[float] = learner[2 * learner.shape[1] + 2, :8].tolist()
    return result


def uncertainty(learner: FloatArray, dim: int) -> float:
    """The sum of the variances of θ̄ for noise 1: the trace of V⁻¹."""
    width = learner.shape[1]
    return float(np.trace(learner[width : width + dim, :dim]))


def theta(learner: FloatArray, dim: int) -> FloatArray:
    """The ridge estimate θ̄."""
    return learner[2 * learner.shape[1] + 1, :dim].copy()


def precision(learner: FloatArray, dim: int) -> FloatArray:
    """V, with the rows that wait to be folded in."""
    V: FloatArray = compiled()[1].precision_of(learner, scratch(dim), dim)
    return V


def fresh(learner: FloatArray, dim: int, regularization: float) -> FloatArray:
    """A learner with the same settings that knows nothing yet."""
    settings = learner[2 * learner.shape[1] + 3]
    result: FloatArray = compiled()[2].learner(dim, regularization, tuple(settings[:8]))
    return result


def copied(learner: FloatArray) -> FloatArray:
    """A copy that lies in memory as compiled functions like it."""
    result: FloatArray = compiled()[2].unset(*learner.shape)
    result[:] = learner
    return result


def views(learner: FloatArray, dim: int) -> Views:
    """What is known, by name and without what fills up lanes.

    The rows that wait are looked for last: how many there are is among the numbers.
    """
    linear, width = compiled()[0], learner.shape[1]
    top = 2 * width
    yield "precision", learner[:dim, :dim]
    yield "inverse", learner[width : width + dim, :dim]
    yield "sums", learner[top, :dim]  # Σ x y
    yield "theta", learner[top + linear.THETA, :dim]
    yield "numbers", learner[top + linear.NUMBERS, :8]
    if dim > linear.SMALL:
        first, waiting = top + linear.HEAD, int(learner[top + linear.NUMBERS, linear.WAITING])
        rows = learner[first : first + 3 * linear.PART].reshape(3, linear.PART, width)
        yield "waiting", rows[:, :waiting, :dim]


def saved(views: Views) -> dict[str, Any]:
    """What is known, as JSON."""
    return {name: pack(view) for name, view in views}


def filled(learner: FloatArray, views: Views, state: Mapping[str, Any], name: str) -> FloatArray:
    """A learner that knows nothing yet, with what was saved as entry `name`, seen by `views`."""
    found = entry(state, name)
    if not isinstance(found, Mapping):
        raise ValueError(f"state entry {name!r} is damaged: it is {found!r}")
    if "float64" in found:  # the whole array with its lanes, as 0.1.0 saved it
        views, found = iter([(name, learner)]), state
    for part, view in views:
        values = unpack(found, part)
        if values.shape != view.shape:
            raise ValueError(
                f"state entry {part!r} has shape {values.shape}, but this belief needs {view.shape}"
            )
        view[:] = values
    return learner


def discounted(learner: FloatArray, prior: FloatArray, dim: int, factor: float) -> FloatArray:
    """The learner whose V, Σ x y and rows are the prior's plus `factor` of what came since."""
    linear, top = compiled()[0], 2 * learner.shape[1]
    V, V0 = precision(learner, dim), precision(prior, dim)
    result = copied(prior)
    result[:dim, :dim] = V0 + factor * (V - V0)
    for row, columns in ((top, slice(dim)), (top + linear.NUMBERS, linear.ROWS)):
        result[row, columns] += factor * (learner[row, columns] - prior[row, columns])
    result[top + linear.NUMBERS, linear.WAITING] = 0.0
    linear.derive(result, dim)
    return result
