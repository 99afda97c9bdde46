"""Files of saved state."""

import json
import os
import secrets
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any


def write(path: str | PathLike[str], state: Mapping[str, Any]) -> None:
    """Write a state as JSON, so that the file is there whole or as it was before.

    A link is followed, and permissions are those of the file before, or of any new file.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file in it")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: there is no folder {target.parent}")
    text = json.dumps(state)  # before anything is touched
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            part.chmod(target.stat().st_mode & 0o777)
        part.replace(target)
    except BaseException:
        part.unlink()
        raise


def read(path: str | PathLike[str]) -> str:
    """What is in such a file."""
    if Path(path).is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file in it")
    if not Path(path).exists():
        raise FileNotFoundError(f"there is no file {path}")
    return Path(path).read_text(encoding="utf-8")
