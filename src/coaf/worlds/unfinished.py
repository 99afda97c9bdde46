"""Finished parts of an experiment, kept in a folder until all of it is done."""

import functools
import hashlib
from pathlib import Path

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.kept.place import PACKAGE


@functools.cache
def code(*rooms: str) -> str:
    """A name for these rooms' code: results of another version are another experiment's."""
    sources = sorted(path for room in rooms for path in (PACKAGE / room).rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()


class Unfinished:
    """Arrays by name, each whole or not there at all.

    Parameters
    ----------
    folder
        Where they lie. It should name the experiment, its settings and its `code`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)

    def load(self, name: str) -> FloatArray | None:
        """The part of this name, if it was finished."""
        path = self.folder / f"{name}.npy"
        if not path.exists():
            return None
        try:
            found: FloatArray = np.load(path)
        except (OSError, ValueError, EOFError):  # cut short, as by a power failure: play it again
            return None
        return found

    def save(self, name: str, part: FloatArray) -> None:
        """Keep a part."""
        path = self.folder / f"{name}.part"
        with path.open("wb") as file:
            np.save(file, part)
        path.replace(path.with_suffix(".npy"))
