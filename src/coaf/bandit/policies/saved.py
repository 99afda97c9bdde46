"""Files of saved state."""

import json
import os
import tempfile
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any


def write(path: str | PathLike[str], state: Mapping[str, Any]) -> None:
    """Write a state as JSON, so that the file is there whole or as it was before."""
    target = Path(path)
    text = json.dumps(state)  # before anything is touched
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def read(path: str | PathLike[str]) -> str:
    """What is in such a file."""
    return Path(path).read_text(encoding="utf-8")
