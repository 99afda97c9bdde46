"""Where replicates are played: threads here, or a Dask cluster."""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

TIMEOUT = "20s"


class _Scattering(Executor):
    """A Dask client as an executor that sends what the tasks of a comparison share once.

    Dask's own would send the world, which may be large, with every task.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._pool = client.get_executor(pure=False)
        self._sent: tuple[Any, Any] = (None, None)  # what was sent last, here and there

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Run fn(*args) somewhere."""
        future: Future[Any] = self._pool.submit(fn, *map(self._there, args), **kwargs)
        return future

    def _there(self, thing: Any) -> Any:
        if isinstance(thing, int | float | str):
            return thing
        if self._sent[0] is not thing:  # once another is sent, the cluster may drop this one
            self._sent = (thing, self._client.scatter(thing, broadcast=True, hash=False))
        return self._sent[1]


@contextmanager
def dask_executor(address: str) -> Iterator[Executor]:
    """The cluster whose scheduler listens at `address`, as an executor for `compare`."""
    try:
        from distributed import Client  # an extra
    except ImportError as error:
        raise ModuleNotFoundError(
            "a Dask cluster needs distributed: pip install 'coaf[dask]'", name="distributed"
        ) from error
    try:
        client = Client(address, timeout=TIMEOUT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConnectionError(f"no Dask scheduler answers at {address}: {error}") from error
    with client:
        yield _Scattering(client)


@contextmanager
def pool(*, workers: int | None = None, dask: str | None = None) -> Iterator[Executor | None]:
    """An executor for compiled replicates, which need no interpreter; None leaves it to `compare`.

    `workers` is a number of threads, `dask` the address of a cluster; only one can be given.
    """
    if workers is not None and dask is not None:
        raise ValueError("give a number of workers or a Dask cluster, not both")
    if dask is not None:
        with dask_executor(dask) as executor:
            yield executor
    elif workers is not None:
        with ThreadPoolExecutor(workers) as executor:
            yield executor
    else:
        yield None
