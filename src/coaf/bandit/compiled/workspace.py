"""Memory for the compiled kernels: learners, and one scratch arena per thread and dimension."""

import itertools
import math
import threading

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.compiled.extremes import TAIL
from coaf.bandit.compiled.linear import (
    CHUNK,
    HEAD,
    LOGDET,
    NUMBERS,
    PART,
    SMALL,
    STATED,
    arena_rows,
)
from coaf.bandit.compiled.scale_free import CAP, WIDTH
from coaf.bandit.compiled.simd import whole_lanes

_local = threading.local()
_uses = itertools.count(1)  # shared, so that no thread takes the scratch of another for its own


def unset(rows: int, columns: int) -> FloatArray:
    """An array that starts on a cache line, so that no load of eight lanes straddles two."""
    count = rows * columns
    buffer = np.empty(count + 8)
    start = (-buffer.ctypes.data // 8) % 8
    return buffer[start : start + count].reshape(rows, columns)


def aligned(rows: int, columns: int) -> FloatArray:
    """The same, of zeros."""
    array = unset(rows, columns)
    array[:] = 0.0
    return array


def learner(d: int, regularization: float, settings: tuple[float, ...]) -> FloatArray:
    """A learner of d features that knows nothing yet; `settings` as `confidence.py` names them."""
    dp = whole_lanes(d)
    result = aligned(2 * dp + HEAD + (3 * PART if d > SMALL else 0), dp)
    result[:d, :d] = regularization * np.eye(d)
    result[dp : dp + d, :d] = np.eye(d) / regularization
    result[2 * dp + NUMBERS, LOGDET] = d * math.log(regularization)
    result[2 * dp + STATED, : len(settings)] = settings
    return result


def free_learner(d: int, cap: float, width: float) -> FloatArray:
    """A learner without units, of d features and a constant, that knows nothing yet."""
    dp = whole_lanes(d + 1)
    result = aligned(2 * dp + HEAD + (3 * PART if d + 1 > SMALL else 0) + TAIL, dp)
    result[2 * dp + STATED, CAP], result[2 * dp + STATED, WIDTH] = cap, width
    return result


def arena(d: int, n: int) -> FloatArray:
    """Scratch for up to n arms of d features, to be used within one call."""
    if d > SMALL:
        _local.uses = next(_uses)
    try:
        found: FloatArray = _local.arenas[d]
        if found.shape[1] >= n:
            return found
    except (AttributeError, KeyError):
        pass
    lanes = max(whole_lanes(n), CHUNK if d <= SMALL else 16)  # narrow rows keep to the cache
    _local.__dict__.setdefault("arenas", {})[d] = aligned(arena_rows(d, lanes), lanes)
    return arena(d, n)


def uses() -> int:
    """How often scratch for many features was handed out: while the same, it is as it was."""
    count: int = getattr(_local, "uses", 0)
    return count
