"""How the checks in `checks.py` require something, and say what was wrong."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

CLOSE = 1e-8  # absolute plus relative


class ContractError(AssertionError):
    """A promise was broken; the message names the likely mistake."""


def require(promise: Any, thing: object, mistake: str) -> None:
    if not promise:
        raise ContractError(f"{type(thing).__name__}: {mistake}")


def as_json(thing: Any, saved: bool = True) -> str:
    try:
        return json.dumps(thing.state(), sort_keys=True, allow_nan=False) if saved else ""
    except (TypeError, ValueError) as error:
        raise ContractError(f"{type(thing).__name__}: state() is not JSON: {error}") from error


def refuses(thing: Any, saved: bool, what: str, action: Callable[[], object]) -> None:
    """Require that `action` raises ValueError and changes nothing."""
    before, raised = as_json(thing, saved), "nothing"
    try:
        action()
    except Exception as error:
        raised = type(error).__name__
    require(raised == "ValueError", thing, f"{what} must raise ValueError, raised {raised}")
    require(as_json(thing, saved) == before, thing, f"refusing {what} changed the state")


def close(a: npt.ArrayLike, b: npt.ArrayLike) -> bool:
    return np.shape(a) == np.shape(b) and bool(np.allclose(a, b, rtol=CLOSE, atol=CLOSE))
