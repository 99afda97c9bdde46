"""Decide, while the clock runs, which options are worth their time."""

import importlib
from typing import TYPE_CHECKING, Any

from coaf.version import __version__ as __version__

if TYPE_CHECKING:
    from coaf.public import *  # noqa: F403
    from coaf.public import __all__ as __all__


def __getattr__(name: str) -> Any:
    """What `coaf.public` has, on first use: until then there is nothing to wait for."""
    found = globals()[name] = getattr(importlib.import_module("coaf.public"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
