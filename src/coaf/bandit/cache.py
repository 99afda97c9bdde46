"""Where the platform keeps what can be made or fetched again."""

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """The user's cache folder for coaf, which need not exist yet; XDG_CACHE_HOME moves it."""
    home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    if home:
        return Path(home) / "coaf"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "coaf"
    return Path.home() / ".cache" / "coaf"
