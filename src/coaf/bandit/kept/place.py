"""The folder that compiled code is kept in."""

import functools
import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from coaf.bandit.cache import cache_folder

PACKAGE = Path(__file__).parents[2]
FOLDER = "bandit/compiled"
# Files elsewhere whose functions, or constants, are compiled.
ELSEWHERE = (
    "bandit/rates/rate.py",
    "bandit/rates/restarting.py",
    "bandit/selection/steps.py",
    "worlds/codes.py",
    "worlds/replicate.py",
)


def sources() -> list[Path]:
    """Every file that what is compiled depends on."""
    return sorted([*(PACKAGE / FOLDER).rglob("*.py"), *(PACKAGE / name for name in ELSEWHERE)])


@functools.cache
def digest() -> str:
    """A name for what these sources compile to.

    It is made from all of them, since callers hold functions of other files inlined.
    """
    content = hashlib.sha256(b"".join(path.read_bytes() for path in sources()))
    return content.hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Place:
    """A folder for compiled code, and whether more can be added to it."""

    folder: Path
    writable: bool


def candidates() -> tuple[Path, ...]:
    """Folders for compiled code, best first: where the user says, or beside the sources."""
    said = os.environ.get("NUMBA_CACHE_DIR")
    chosen = Path(said) / "coaf" if said else cache_folder()
    return tuple(folder / digest() for folder in (chosen, PACKAGE / "__pycache__"))


@functools.cache
def place() -> Place | None:
    """The first candidate that can be written to, or was filled before; None if there is none."""
    for folder in candidates():
        if _writable(folder):
            return Place(folder, writable=True)
        if _filled(folder):
            return Place(folder, writable=False)
    return None


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"?")
    except OSError:
        return False
    return True


def _filled(folder: Path) -> bool:
    try:
        return any(folder.glob("*.nbi"))
    except OSError:  # not even to be read
        return False
