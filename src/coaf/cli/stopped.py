"""Ctrl-C while no work is under way; nothing is imported here that takes time."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

INTERRUPTED = 130  # what shells say of a process that Ctrl-C ended


@contextmanager
def stopped_with_a_sentence() -> Iterator[None]:
    """End the process, should Ctrl-C be pressed in the block."""
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write("Stopped. No work was under way.\n")
        raise SystemExit(INTERRUPTED) from None
