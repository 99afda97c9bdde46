"""One thread of linear algebra while a belief scores or learns.

Its products are small and many. On a busy machine the threads of BLAS and OpenMP wait for each
other at every one of them, which can take tens of times as long as doing without.
"""

import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import ContextDecorator
from typing import Any, NamedTuple, TypeVar

C = TypeVar("C")

# What a belief does with rows; see the contract in `beliefs/belief.py`.
VERBS = ("mean", "upper", "sample", "learn", "refit", "forget", "settle")


class Pool(NamedTuple):
    """The threads of a library: how many it may use, and a way to say so."""

    get: Callable[[], int | None]
    set: Callable[[int], object]


class _Mine(threading.local):
    """What one thread has entered. OpenMP counts for each thread that asks it to work."""

    def __init__(self) -> None:
        self.depth = 0
        self.limited = 0
        self.before: list[tuple[Pool, int]] = []


def _limit(pools: Sequence[Pool], before: list[tuple[Pool, int]]) -> None:
    for pool in pools:
        count = pool.get()
        if count is not None and count > 1:
            before.append((pool, count))
            pool.set(1)


def _restore(before: list[tuple[Pool, int]]) -> None:
    while before:
        pool, count = before.pop()
        pool.set(count)


class OneThread(ContextDecorator):
    """Limits BLAS and OpenMP to one thread, for as long as any Python thread is inside.

    It may be entered again while inside, from any thread, and decorates functions, too. Pools that
    belong to the process are limited by the first thread that enters, and get back what they had
    when the last one leaves; so work elsewhere in the process has one thread for that long as well.

    Examples
    --------
    >>> import numpy as np
    >>> with one_thread:
    ...     np.eye(2) @ np.ones(2)
    array([1., 1.])
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0  # threads
        self._limited = 0  # of the shared pools
        self._before: list[tuple[Pool, int]] = []
        self._mine = _Mine()
        self._shared: list[Pool] = []
        self._own: list[Pool] = []  # pools with a limit for each thread
        self._seen: set[str] = set()
        self._modules = -1
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self._lock = threading.Lock()  # another thread may have held it

    def _look(self) -> None:
        """Find the libraries there are; they come with modules, so it is enough to count those."""
        from threadpoolctl import ThreadpoolController  # takes longer than the rest of this file

        self._modules = len(sys.modules)
        for library in ThreadpoolController().lib_controllers:
            if library.filepath not in self._seen:
                self._seen.add(library.filepath)
                self._add(library)

    def _add(self, library: Any) -> None:
        if getattr(library, "threading_layer", None) == "openmp":
            return  # it asks OpenMP how many threads to use, and that is a library of its own
        # Later releases of threadpoolctl let only one Python thread limit OpenBLAS; which may, and
        # when, is what is counted here.
        change = getattr(library, "_real_set_num_threads", library.set_num_threads)
        own = library.internal_api == "openmp" and library.prefix != "vcomp"
        (self._own if own else self._shared).append(Pool(library.get_num_threads, change))

    def __enter__(self) -> None:
        mine = self._mine
        if mine.depth and len(sys.modules) == self._modules:
            mine.depth += 1
            return
        with self._lock:
            if len(sys.modules) != self._modules:
                self._look()
            _limit(self._shared[self._limited :], self._before)
            self._limited = len(self._shared)
            self._inside += not mine.depth
        _limit(self._own[mine.limited :], mine.before)
        mine.limited = len(self._own)
        mine.depth += 1

    def __exit__(self, *error: object) -> None:
        mine = self._mine
        mine.depth -= 1
        if mine.depth:
            return
        _restore(mine.before)
        mine.limited = 0
        with self._lock:
            self._inside -= 1
            if not self._inside:
                _restore(self._before)
                self._limited = 0


one_thread = OneThread()


def on_one_thread(*more: str) -> Callable[[type[C]], type[C]]:
    """Decorate a class of beliefs: its verbs, and the methods named, run within `one_thread`.

    Those of a base class are that class's own affair.

    Examples
    --------
    >>> @on_one_thread("forecast")
    ... class Sleepy:
    ...     def mean(self, features: list[float]) -> list[float]:
    ...         '''Nothing to report.'''
    ...         return [0.0 for _ in features]
    ...
    ...     def forecast(self) -> float:
    ...         return 0.0
    >>> Sleepy().mean([1.0]), Sleepy.mean.__doc__
    ([0.0], 'Nothing to report.')
    """

    def wrap(kind: type[C]) -> type[C]:
        missing = [name for name in more if name not in vars(kind)]
        if missing:
            raise AttributeError(f"{kind.__name__} has no method {missing[0]!r} of its own")
        for name in dict.fromkeys((*VERBS, *more)):
            if name in vars(kind):
                setattr(kind, name, one_thread(vars(kind)[name]))
        return kind

    return wrap
