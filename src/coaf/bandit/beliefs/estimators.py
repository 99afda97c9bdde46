"""Estimators and functions of other libraries as JSON: where they are found, and their settings."""

import importlib
import math
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from coaf.bandit.state import entry


def encode_estimator(value: Any, where: str = "estimator") -> Any:
    """An estimator, an importable function or class, or what their parameters are made of.

    What an estimator has learned is not kept. Nested ones and pipelines are.

    Examples
    --------
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> encode_estimator(FunctionTransformer(np.log1p))["params"]["func"]
    {'name': 'numpy:log1p'}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        items = [encode_estimator(item, f"{where}[{i}]") for i, item in enumerate(value)]
        return {"list" if isinstance(value, list) else "tuple": items}
    if isinstance(value, slice):
        return {"slice": [encode_estimator(v) for v in (value.start, value.stop, value.step)]}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufU":
        items = [encode_estimator(item, where) for item in value.ravel().tolist()]
        return {"array": items, "shape": list(value.shape), "dtype": value.dtype.str}
    if isinstance(value, Mapping):
        pairs = value.items()
        return {"dict": [[encode_estimator(k), encode_estimator(v, where)] for k, v in pairs]}
    if hasattr(value, "get_params") and not isinstance(value, type):
        params = value.get_params(deep=False)
        settings = {name: encode_estimator(v, f"{where}.{name}") for name, v in params.items()}
        return {"class": _path(type(value), where), "params": settings}
    if callable(value):
        return {"name": _path(value, where)}
    raise ValueError(
        f"{where} is {value!r}, which cannot be saved: it must be made of numbers, text, lists, "
        "arrays, estimators, and functions that can be imported (and random_state an integer)"
    )


def _path(thing: Any, where: str) -> str:
    """Where it is imported from."""
    module = getattr(thing, "__module__", None)
    if module is None and isinstance(thing, np.ufunc):  # older NumPy does not tell
        module = "numpy"
    path = f"{module}:{getattr(thing, '__qualname__', getattr(thing, '__name__', ''))}"
    if found_at(path) is not thing:
        raise ValueError(
            f"{where} is {thing!r}, which cannot be imported by name, so it could not be restored: "
            "define it at the top of a module, or give an estimator (with fit and get_params)"
        )
    return path


def found_at(path: str) -> Any:
    """What is at that path, None if there is nothing."""
    module, _, name = path.partition(":")
    try:
        return operator.attrgetter(name)(importlib.import_module(module))
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] == "sklearn":
            raise ModuleNotFoundError(
                "this belief needs scikit-learn: pip install 'coaf[experiments]'"
            ) from error
        return None
    except (AttributeError, ValueError):
        return None


def _named(path: str) -> Any:
    found = found_at(path)
    if found is None:
        raise ValueError(f"state names {path!r}, which is not here")
    return found


def decode_estimator(value: Any, seed: int) -> Any:
    """What was encoded, not fitted; a random_state that is None becomes `seed`.

    Examples
    --------
    >>> from sklearn.kernel_approximation import RBFSampler
    >>> decode_estimator(encode_estimator(RBFSampler(gamma=2.0)), 5)
    RBFSampler(gamma=2.0, random_state=5)
    """
    if not isinstance(value, Mapping):
        return value
    if "class" in value:
        kind = _named(value["class"])
        if not isinstance(kind, type) or not hasattr(kind, "get_params"):
            raise ValueError(f"state names {value['class']!r}, which is no class of estimators")
        saved = entry(value, "params").items()
        params = {name: decode_estimator(setting, seed) for name, setting in saved}
        if "random_state" in params and params["random_state"] is None:
            params["random_state"] = seed
        return kind(**params)
    if "name" in value:
        return _named(value["name"])
    if "float" in value:
        return float(value["float"])
    if "slice" in value:
        return slice(*value["slice"])
    if "array" in value:
        items = [decode_estimator(item, seed) for item in value["array"]]
        return np.array(items, dtype=entry(value, "dtype")).reshape(entry(value, "shape"))
    if "dict" in value:
        return {decode_estimator(k, seed): decode_estimator(v, seed) for k, v in value["dict"]}
    name = "list" if "list" in value else "tuple"
    items = [decode_estimator(item, seed) for item in entry(value, name)]
    return items if name == "list" else tuple(items)
