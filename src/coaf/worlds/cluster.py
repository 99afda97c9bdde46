"""Where replicates are played: threads or processes here, or a Dask cluster."""

import os
import re
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from types import FrameType
from typing import Any, TypeVar

from coaf.worlds.progress import Progress

TIMEOUT = "20s"
_BROKEN = (
    "a worker process ended before its work was done. In a script, what starts the work must stand "
    'under `if __name__ == "__main__":` where processes do not begin as copies (Windows, macOS, '
    "Python 3.14 and later); else look whether the machine ran out of memory"
)
_ADDRESS = re.compile(r"((tcp|tls|wss?|ucx)://)?(\[[^\s\[\]]+\]|[^\s\[\]:/]+):\d{1,5}|inproc://\S+")


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
    # A client that cannot read its address waits for 40 s before it ends, and prints a traceback.
    if not _ADDRESS.fullmatch(address):
        raise ValueError(
            f"the address of a Dask scheduler is {address!r}; give host:port, as "
            "'127.0.0.1:8786' or 'tcp://host:8786'"
        )
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


class _Workers(ProcessPoolExecutor):
    """Processes that Ctrl-C does not reach: it is for the one that started them to end them."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Run fn(*args) in a process; those that are missing are started now."""
        with _interrupts_held():
            return super().submit(fn, *args, **kwargs)

    def end(self) -> None:
        """End the processes, whatever they are doing."""
        started = list((self._processes or {}).values())
        # First, or the thread that watches them could take what was cancelled for broken, and fail.
        self.shutdown(wait=False, cancel_futures=True)
        for process in started:
            process.terminate()
        for process in started:
            process.join()


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """A Ctrl-C waits until the end of the block, and processes started in it never hear of one."""
    with _handled_later(), _blocked():
        yield


@contextmanager
def _blocked() -> Iterator[None]:
    """What is started here does not hear of a Ctrl-C."""
    if not hasattr(signal, "pthread_sigmask"):  # on Windows they ignore it once they are up
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _handled_later() -> Iterator[None]:
    """A Ctrl-C that another thread hears of is for this one to handle, too: after the block."""
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(usual):
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
        if came:
            usual(*came[0])


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def processes(count: int, *, fresh: bool = True) -> Iterator[Executor]:
    """So many worker processes. If the block fails or is interrupted, they end at once.

    Forking a process that has threads can hang, so they are `fresh` ones; without threads they need
    not be, and then a script needs no guard around its main part.
    """
    context = get_context("spawn") if fresh else None
    workers = _Workers(count, mp_context=context, initializer=_ignore_interrupts)
    try:
        yield workers
    except BrokenProcessPool as error:
        workers.end()
        raise BrokenProcessPool(_BROKEN) from error
    except BaseException:
        workers.end()
        raise
    workers.shutdown()


Task = TypeVar("Task", bound=tuple[int | float | str, ...])
Result = TypeVar("Result")


def tasks_on(
    do: Callable[..., Result],
    shared: Any,
    tasks: Sequence[Task],
    *,
    workers: int | None = None,
    dask: str | None = None,
    told: Progress | None = None,
) -> Generator[tuple[Task, Result], None, None]:
    """Each task with do(shared, *task), in order: from processes here, or a Dask cluster.

    What comes out does not depend on where it was done. All cores are used unless a number of
    `workers` is given; one is this very process. `told` is called with how many are done, and of
    how many; then there are threads, and processes are fresh ones.
    """
    if workers is not None and dask is not None:
        raise ValueError("give a number of workers or a Dask cluster, not both")
    count = min(workers or os.cpu_count() or 1, len(tasks))

    def gathered(results: Iterable[Result]) -> Iterator[tuple[Task, Result]]:
        for done, pair in enumerate(zip(tasks, results, strict=True), start=1):
            if told is not None:
                told(done, len(tasks))
            yield pair

    if dask is None and count <= 1:
        yield from gathered(do(shared, *task) for task in tasks)
        return
    place = dask_executor(dask) if dask is not None else processes(count, fresh=told is not None)
    with place as executor:
        futures = [executor.submit(do, shared, *task) for task in tasks]
        yield from gathered(future.result() for future in futures)


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
