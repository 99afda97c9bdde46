"""Fetch the MovieLens archives once, and keep them."""

import hashlib
import http.client
import os
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

from coaf.bandit.cache import cache_folder
from coaf.worlds.movielens.ratings import DataError

Received = Callable[[int, int | None], None]  # bytes, of how many if that is known

URL = "https://files.grouplens.org/datasets/movielens/ml-{name}.zip"
TIMEOUT = 10.0  # seconds without an answer
_CHUNK = 1 << 16

# SHA-256 of each archive that can be fetched.
CHECKSUMS = {
    "1m": "a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
    "100k": "50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
    "latest-small": "696d65a3dfceac7c45750ad32df2c259311949efec81f0f144fdfb91ebc9e436",
}


class UnreachableError(OSError):
    """The server did not answer, or not to the end."""


def fetch(name: str, *, folder: Path | None = None, progress: Received | None = None) -> Path:
    """Give the archive `name` (1m, 100k, latest-small) from the cache, or else from its server.

    What is kept is complete: an archive gets its name only once its checksum is right.

    Parameters
    ----------
    name
        Which archive.
    folder
        Where archives are kept; a folder of the user's cache unless given.
    progress
        Called with the bytes that have come, and with all that will come if the server says so.
    """
    if name not in CHECKSUMS:
        raise DataError(f"there is no archive {name!r}; there are {', '.join(CHECKSUMS)}")
    folder = cache_folder() / "movielens" if folder is None else Path(folder)
    archive = folder / f"ml-{name}.zip"
    if _checksum(archive) == CHECKSUMS[name]:
        return archive
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Others may be fetching the same, so each has a part of its own.
        handle, made = tempfile.mkstemp(prefix=f"{archive.name}.", suffix=".part", dir=folder)
    except OSError as error:
        raise _unwritable(folder, error) from error
    part = Path(made)
    try:
        with open(handle, "wb") as file:
            got = _transfer(URL.format(name=name), file, progress)
        if got != CHECKSUMS[name]:
            raise DataError(
                f"{URL.format(name=name)} has SHA-256 {got}, and {CHECKSUMS[name]} was expected: "
                "the archive may have changed or been cut short. Try again, or pass --data PATH"
            )
        os.replace(part, archive)
    except UnreachableError:
        raise
    except OSError as error:
        raise _unwritable(folder, error) from error
    finally:
        part.unlink(missing_ok=True)
    return archive


def _unwritable(folder: Path, error: OSError) -> DataError:
    return DataError(
        f"{folder} cannot be written to ({error}); set XDG_CACHE_HOME to a folder that can, "
        "or pass --data PATH"
    )


def _checksum(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:  # not there, or of no use
        return None


def _transfer(url: str, file: BinaryIO, progress: Received | None) -> str:
    """Copy from the server to the file, and return the checksum."""
    sha, done = hashlib.sha256(), 0
    for chunk, total in _chunks(url):
        file.write(chunk)
        sha.update(chunk)
        done += len(chunk)
        if progress is not None:
            progress(done, total)
    return sha.hexdigest()


def _chunks(url: str) -> Iterator[tuple[bytes, int | None]]:
    """What the server sends, with how many bytes it promised."""
    request = urllib.request.Request(url, headers={"User-Agent": "coaf"})
    done = 0
    try:
        with closing(urllib.request.urlopen(request, timeout=TIMEOUT)) as answer:
            length = answer.headers.get("Content-Length", "")
            total = int(length) if length.isdigit() else None
            while chunk := answer.read(_CHUNK):
                done += len(chunk)
                yield chunk, total
    except urllib.error.HTTPError as error:
        error.close()
        raise _unreachable(url, f"it answered {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise _unreachable(url, str(error.reason)) from error
    except (OSError, http.client.HTTPException) as error:
        raise _unreachable(url, f"after {done:,} bytes: {error or type(error).__name__}") from error
    if total is not None and done < total:
        raise _unreachable(url, f"it stopped after {done:,} of {total:,} bytes")


def _unreachable(url: str, why: str) -> UnreachableError:
    return UnreachableError(f"{url} could not be fetched ({why}); pass --data PATH to use a copy")
