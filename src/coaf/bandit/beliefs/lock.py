"""A lock for what is worked out on first use, so that several threads may ask at once."""

import threading


class Lock:
    """A lock that may be taken again by who holds it; copied or pickled, it is another one.

    Examples
    --------
    >>> from copy import deepcopy
    >>> lock = Lock()
    >>> with lock, deepcopy(lock):
    ...     print("both held")
    both held
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __reduce__(self) -> tuple[type["Lock"], tuple[()]]:
        return Lock, ()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()
