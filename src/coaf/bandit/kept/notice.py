"""What a user is told who has to wait while code is compiled."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from coaf.bandit.kept.place import candidates, place

_WAIT = "coaf compiles code for this machine, which takes about half a minute"
_NAME = "let XDG_CACHE_HOME or NUMBA_CACHE_DIR name a folder that can"


def message() -> str:
    """Why it takes so long, and how not to wait again."""
    found = place()
    if found is None:
        tried = " nor ".join(str(folder.parent) for folder in candidates())
        return (
            f"{_WAIT}, and will again at every start: neither {tried} can be written to. To wait "
            f"once, {_NAME}; `coaf warm` fills it ahead."
        )
    if not found.writable:
        return (
            f"{_WAIT}, and will again at every start: {found.folder} lacks some of it, and cannot "
            f"be written to. Fill it where it can with `coaf warm`, or {_NAME}."
        )
    return f"{_WAIT}, once: it is kept in {found.folder}. `coaf warm` does this ahead."


class Notice:
    """Said once in a process, on stderr: no warning to turn into an error, nothing to set up."""

    def __init__(self) -> None:
        self.said = False

    def give(self) -> None:
        """Say it, unless that was done."""
        if not self.said and sys.stderr is not None:
            with suppress(OSError, ValueError):  # closed, as that of a service may be
                print(message(), file=sys.stderr, flush=True)
        self.said = True

    @contextmanager
    def withheld(self) -> Iterator[None]:
        """For who knows that it takes a while."""
        before, self.said = self.said, True
        try:
            yield
        finally:
            self.said = before


notice = Notice()
