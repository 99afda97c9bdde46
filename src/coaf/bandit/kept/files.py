"""The files that compiled code is kept in, and every function that has some.

Numba's own cache does not read from a folder that it cannot write to, and fails a call whose code
it cannot save. This one reads what `coaf warm` left in a read-only image, and saves if it can.
"""

from contextlib import suppress
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from numba.core import caching

from coaf.bandit.kept.notice import notice
from coaf.bandit.kept.place import digest, place

FUNCTIONS: list[Any] = []  # all that is compiled on first use, as numba's dispatchers
LOST: list[str] = []  # why code that was compiled could not be kept

_CUT_SHORT = (EOFError, UnpicklingError)  # what reading a part of a file raises


def remember(function: Any) -> None:
    """Keep what numba compiles of a function, and let `coaf.warm` know of it."""
    make: Any = _Unkept if place() is None else _Kept
    function._cache = make(function.py_func)
    FUNCTIONS.append(function)


def name_of(function: Any) -> str:
    """Where a compiled function is found."""
    return f"{function.__module__}.{function.__qualname__}"


def misses() -> dict[str, list[str]]:
    """What had to be compiled in this process: signatures by function."""
    found = {name_of(f): [str(sig) for sig in f.stats.cache_misses] for f in FUNCTIONS}
    return {name: signatures for name, signatures in found.items() if signatures}


class _Locator(caching._CacheLocator):
    """Tells numba the folder. Sources are in its name: neither their age nor their place counts."""

    def __init__(self, function: Any, path: str) -> None:
        self._py_file = path
        self._name = f"{Path(path).parent.name}-{function.__code__.co_firstlineno}"

    def ensure_cache_path(self) -> None:
        """That was seen to before."""

    def get_cache_path(self) -> str:
        found = place()
        assert found is not None
        return str(found.folder)

    def get_source_stamp(self) -> str:
        return digest()

    def get_disambiguator(self) -> str:
        return self._name

    @classmethod
    def from_function(cls, function: Any, path: str) -> "_Locator":
        return cls(function, path)


class _Files(caching.CompileResultCacheImpl):
    _locator_classes: Any = [_Locator]  # noqa: RUF012


class _Kept(caching.FunctionCache):
    _impl_class = _Files

    def load_overload(self, signature: Any, context: Any) -> Any:
        found = None
        try:
            found = super().load_overload(signature, context)  # type: ignore[no-untyped-call]
        except OSError:
            pass
        except _CUT_SHORT:  # begin again, or nothing could ever be added
            with suppress(OSError):
                self.flush()  # type: ignore[no-untyped-call]
        if found is None:
            notice.give()
        return found

    def save_overload(self, signature: Any, result: Any) -> None:
        found = place()
        if found is None or not found.writable:
            LOST.append(f"{self.cache_path} cannot be written to")
            return
        try:
            super().save_overload(signature, result)  # type: ignore[no-untyped-call]
        except OSError as error:  # a full disk must not stop a decision
            LOST.append(f"{self.cache_path}: {error}")


class _Unkept(caching.NullCache):
    def __init__(self, _function: Any) -> None:
        super().__init__()

    def load_overload(self, signature: Any, context: Any) -> None:
        notice.give()

    def save_overload(self, signature: Any, result: Any) -> None:
        LOST.append("there is no folder that can be written to")
