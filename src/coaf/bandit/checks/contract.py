"""How checkers require something, and say what was wrong."""

import json
from collections.abc import Callable, Iterable
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.belief import FeaturesBounded
from coaf.bandit.policies.faults import is_fault

CLOSE = 1e-8  # absolute plus relative


class ContractError(AssertionError):
    """A promise was broken; the message names the likely mistake."""


@runtime_checkable
class HasDim(Protocol):
    """Something that is about so many features."""

    dim: int


def require(promise: Any, thing: object, mistake: str) -> None:
    if not promise:
        raise ContractError(f"{type(thing).__name__}: {mistake}")


def require_parts(thing: Any, kind: str, parts: Iterable[str]) -> None:
    """Require that `thing` is `kind` ("a rate"), not the class of one, with all of its parts."""
    if isinstance(thing, type):
        name = thing.__name__
        raise ContractError(f"{name} is a class, not {kind}: give {name}(...)")
    lacks = [part for part in parts if not hasattr(thing, part)]
    require(not lacks, thing, f"lacks {', '.join(lacks)}, which {kind} has")


def as_json(thing: Any, saved: bool = True) -> str:
    try:
        return json.dumps(thing.state(), sort_keys=True, allow_nan=False) if saved else ""
    except (TypeError, ValueError) as error:
        raise ContractError(f"{type(thing).__name__}: state() is not JSON: {error}") from error


def refuses(thing: Any, saved: bool, what: str, action: Callable[[], object]) -> None:
    """Require that `action` raises ValueError and changes nothing."""
    before, raised, right = as_json(thing, saved), "nothing", False
    try:
        action()
    except Exception as error:
        raised = type(error).__name__
        right = isinstance(error, ValueError) and not is_fault(error)
    require(right, thing, f"{what} must raise ValueError, raised {raised}")
    require(as_json(thing, saved) == before, thing, f"refusing {what} changed the state")


def close(a: npt.ArrayLike, b: npt.ArrayLike, tolerance: float = CLOSE) -> bool:
    return np.shape(a) == np.shape(b) and bool(np.allclose(a, b, rtol=tolerance, atol=tolerance))


def some_features(belief: Any, n: int | None = None, seed: int = 0) -> FloatArray:
    """Arms in the ball of the belief's `feature_bound`, 1 if it has none."""
    dim = belief.dim if isinstance(belief, HasDim) else 3
    stated = belief.feature_bound if isinstance(belief, FeaturesBounded) else None
    bound = 1.0 if stated is None else stated
    X = np.random.default_rng(seed).normal(size=(n or 16 + 8 * dim, dim))
    return np.asarray(bound * X / (1.0 + np.linalg.norm(X, axis=1, keepdims=True)))


def coins(n: int) -> FloatArray:
    """Rewards 0 or 1."""
    return np.random.default_rng(1).integers(0, 2, n).astype(np.float64)
