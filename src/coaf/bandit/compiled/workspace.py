"""Memory for the compiled kernels: learners, and one scratch arena per thread and dimension."""

import threading

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.compiled.kernels import CHUNK, HEAD, PART, SMALL, arena_rows

_local = threading.local()


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


def learner(d: int) -> FloatArray:
    """A learner of d features, all zero."""
    dp = (d + 7) // 8 * 8
    waiting = 3 * PART if d > SMALL else 0
    return aligned(2 * dp + HEAD + waiting, dp)


def arena(d: int, n: int) -> FloatArray:
    """Scratch for up to n arms of d features, to be used within one call."""
    try:
        found: FloatArray = _local.arenas[d]
        if found.shape[1] >= n:
            return found
    except (AttributeError, KeyError):
        pass
    lanes = max((n + 7) // 8 * 8, CHUNK)
    _local.__dict__.setdefault("arenas", {})[d] = aligned(arena_rows(d, lanes), lanes)
    return arena(d, n)
