"""Saved state: versioned JSON, with arrays as exact bits.

A state is a plain dictionary that `json.dumps` accepts. Floats survive JSON exactly, and arrays are
kept as base64 of little-endian doubles, so a restored learner makes the same next decision.
"""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from coaf.bandit import actions, latency
from coaf.bandit.arrays import FloatArray
from coaf.bandit.selection.found import WORK

VERSION = 3
# What states of each version, and of those before it, do without.
_NEW: dict[int, dict[str, Any]] = {
    1: {"prior": None, "rewards": [0.0, 0]},
    2: {
        "reward_range": None,
        "history": None,
        "work": WORK,
        "fresh": "linear",
        "units": None,
        "dispersion": 0.0,
        "beyond": [0.0, 0.0],
        "counts": None,
        "earned": [0.0, 0],
        "warned": [],
    },
}
_NEW_INSIDE: dict[str, dict[str, Any]] = {
    "ledger": {"seconds": 0.0, "given_up": 0, "expiry": [None, None]},
    "visit": {"blind": False, "overrun": 0.0, "otherwise": False},
    "rate": {"visits": [0, 0]},
}
_CLASSES = {
    name: value
    for module in (latency, actions)
    for name, value in vars(module).items()
    if isinstance(value, type) and is_dataclass(value)
}


def seal(kind: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """Mark `content` as the state of a `kind` of this version."""
    return {"coaf": kind, "version": VERSION, **content}


def kind_of(state: Mapping[str, Any] | str, expected: str) -> tuple[Any, Mapping[str, Any]]:
    """The kind that `state` (a dictionary or its JSON text) says it is of, and the dictionary."""
    if isinstance(state, str):
        try:
            state = json.loads(state)
        except json.JSONDecodeError as error:
            raise ValueError(
                f"state is not complete JSON ({error}); is the file truncated?"
            ) from None
    if not isinstance(state, Mapping) or "coaf" not in state:
        raise ValueError(f"state is not a saved {expected}: it has no 'coaf' entry")
    return state["coaf"], state


def unseal(kind: str, state: Mapping[str, Any] | str) -> Mapping[str, Any]:
    """Check that `state` (a dictionary or its JSON text) is of this kind and version.

    Examples
    --------
    >>> unseal("coaf", '{"coaf": "linear", "version": 1}')
    Traceback (most recent call last):
    ...
    ValueError: state is of a 'linear', expected a 'coaf'
    """
    found, state = kind_of(state, kind)
    if found != kind:
        raise ValueError(f"state is of a {found!r}, expected a {kind!r}")
    version = state.get("version")
    if version != VERSION and version not in _NEW:
        raise ValueError(
            f"state has version {version!r}, this release reads versions 1 to {VERSION}"
        )
    return state if version == VERSION else _upgraded(state)


def _upgraded(state: Mapping[str, Any]) -> Mapping[str, Any]:
    """A state of an earlier version with what it does without."""
    inside = {
        name: {**new, **state[name]}
        for name, new in _NEW_INSIDE.items()
        if isinstance(state.get(name), Mapping)
    }
    new = {
        name: value
        for at, more in _NEW.items()
        if at >= state["version"]
        for name, value in more.items()
    }
    return {**new, **state, **inside}


def entry(state: Mapping[str, Any], name: str) -> Any:
    """`state[name]`, or an error that says what is missing."""
    if name not in state:
        raise ValueError(f"state has no entry {name!r}; is the file truncated?")
    return state[name]


def pack(array: FloatArray) -> dict[str, Any]:
    """An array as exact bits."""
    data = np.ascontiguousarray(array, dtype="<f8").tobytes()
    return {"shape": list(array.shape), "float64": base64.b64encode(data).decode("ascii")}


def unpack(state: Mapping[str, Any], name: str) -> FloatArray:
    """The array that `pack` made of entry `name`."""
    packed = entry(state, name)
    try:
        data = base64.b64decode(packed["float64"], validate=True)
        flat: FloatArray = np.frombuffer(data, dtype="<f8").astype(np.float64)
        return flat.reshape(packed["shape"])
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise ValueError(f"state entry {name!r} is damaged: {error}") from None


def encode(value: Any) -> Any:
    """A latency, an action space or anything they are made of, as JSON."""
    if is_dataclass(value) and type(value).__name__ in _CLASSES:
        content = {f.name: encode(getattr(value, f.name)) for f in fields(value)}
        return {"class": type(value).__name__, "fields": content}
    if isinstance(value, np.ndarray):
        if value.dtype == np.float64:
            return {"array": pack(value)}
        return {"columns": value.T.tolist()} if value.ndim == 2 else {"labels": value.tolist()}
    if isinstance(value, Mapping):
        return {"mapping": [[encode(k), encode(v)] for k, v in value.items()]}
    if isinstance(value, tuple | list):
        return {"tuple": [encode(v) for v in value]}
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ValueError(
        f"{type(value).__name__} cannot be saved: state holds only the library's own latencies "
        "and actions"
    )


def _labels(values: Any) -> npt.NDArray[Any]:
    labels = np.array(values)
    return labels if labels.size else labels.astype(np.int64)


def decode(value: Any) -> Any:
    """What `encode` was given."""
    if not isinstance(value, Mapping):
        return value
    if "class" in value:
        if value["class"] not in _CLASSES:
            raise ValueError(f"state names an unknown class {value['class']!r}")
        kind, content = _CLASSES[value["class"]], entry(value, "fields")
        return kind(**{f.name: decode(entry(content, f.name)) for f in fields(kind)})
    if "array" in value:
        return unpack(value, "array")
    if "labels" in value:
        return _labels(value["labels"])
    if "columns" in value:
        return _labels(value["columns"]).T
    if "mapping" in value:
        return {decode(k): decode(v) for k, v in value["mapping"]}
    return tuple(decode(v) for v in entry(value, "tuple"))
