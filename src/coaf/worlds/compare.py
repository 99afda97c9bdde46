"""Comparing policies over replicates: in parallel, with progress, and resumable."""

import copy
import hashlib
import json
import os
import pickle
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import (
    Executor,
    Future,
    ThreadPoolExecutor,
    as_completed,
)
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from importlib.util import find_spec
from inspect import isfunction, ismethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from rich.console import Console
from rich.progress import Progress as Bars

from coaf.bandit.arrays import FloatArray
from coaf.bandit.extras import require_extra
from coaf.bandit.policies.policy import Policy, require_policy
from coaf.bandit.shown import shown
from coaf.bandit.subsets import whole
from coaf.worlds.cluster import processes
from coaf.worlds.compiled import coded, play_compiled
from coaf.worlds.optimum import least_gaps, optimum
from coaf.worlds.play import play
from coaf.worlds.progress import Progress, Tell
from coaf.worlds.unfinished import Unfinished, code
from coaf.worlds.world import BulkWorld, World, require_world

if TYPE_CHECKING:
    from coaf.worlds.comparison import Comparison


def compare(
    policies: Mapping[str, Policy],
    world: World,
    *,
    rounds: int = 2000,
    replicates: int = 100,
    gamma_star: float | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    resume: str | Path | None = None,
) -> "Comparison":
    """Play each policy over the same replicates of a world.

    Parameters
    ----------
    policies
        Templates by name: each replicate starts from a copy, with a seed of its own.
    world
        Where they are played. Replicate r is the same for every policy.
    rounds, replicates
        How many rounds each, and how many times.
    gamma_star
        The best possible rate; computed unless given.
    executor
        Any `concurrent.futures.Executor` (a Dask client's will do). By default all cores: threads
        where every policy runs compiled, which needs no interpreter, or something cannot be sent
        to another process (a lambda), and else processes.
    progress
        Called with how many tasks are done, and of how many: each replicate is one, and so is Γ*
        where it is computed. Unless given, a bar where stderr is a terminal.
    resume
        A folder for finished tasks. A run that was interrupted goes on from there; other
        experiments may use the same folder.

    Returns
    -------
    Comparison
        An `xarray.Dataset` over policy x replicate x round that prints as a table: `seconds`,
        `mean` (true mean reward), `rate`, and the two cumulative regrets `regret` (T·Γ* − Σμ) and
        `paired` (Σ g(Γ*, A_j) − min_A g(Γ*, A)). Its `figure("regret.png")` is the plot.

    Examples
    --------
    >>> from coaf.bandit.policies.coaf import COAF
    >>> from coaf.worlds.synthetic import Synthetic
    >>> result = compare({"coaf": COAF(dim=3)}, Synthetic(dim=3), rounds=50, replicates=2)
    >>> dict(result.sizes)
    {'policy': 1, 'replicate': 2, 'round': 50}
    """
    if not isinstance(policies, Mapping) or not policies:
        given = shown(policies) if not isinstance(policies, Mapping) else "empty"
        raise TypeError(f'policies is {given}; give them by name, as {{"coaf": COAF(dim=3)}}')
    require_world(world)
    for name, policy in policies.items():
        require_policy(f"policies[{name!r}]", policy)
        if policy.belief is not None and policy.belief.dim != world.dim:
            raise ValueError(
                f"policy {name!r} has dim={policy.belief.dim}, but the world has dim={world.dim}"
            )
    require_extra("xarray", "compare")  # before the work, not after it
    rounds, replicates = whole("rounds", rounds, low=1), whole("replicates", replicates, low=1)
    with _watched(progress, replicates + (gamma_star is None)) as watch:
        known = gamma_star is None  # a task of its own
        if gamma_star is None:
            gamma_star = optimum(world, progress=partial(_of_best, watch)).rate
        data = _played(
            policies,
            _Job(list(policies.values()), world, rounds, gamma_star),
            replicates,
            executor,
            lambda done: watch("comparing", done + known, replicates + known),
            resume,
        )
    return _dataset(list(policies), data, gamma_star)


def _of_best(watch: Tell, step: str, done: int, of: int | None) -> None:
    watch(f"the best possible rate, {step}", done, of)


@contextmanager
def _watched(progress: Progress | None, tasks: int) -> Iterator[Tell]:
    """Who is told of progress: whoever asked to be, or a bar on a terminal or in a notebook."""
    if progress is not None:
        yield lambda stage, done, of: progress(done if stage == "comparing" else 0, tasks)
        return
    console = Console(stderr=True)
    seen = console.is_terminal or (console.is_jupyter and find_spec("ipywidgets") is not None)
    if not seen:
        yield lambda stage, done, of: None
        return
    with Bars(console=console, transient=True) as bars:
        bar = bars.add_task("the best possible rate", total=None)
        yield lambda stage, done, of: bars.update(bar, description=stage, completed=done, total=of)


def _played(
    policies: Mapping[str, Policy],
    job: "_Job",
    replicates: int,
    executor: Executor | None,
    progress: Callable[[int], None],
    resume: str | Path | None,
) -> FloatArray:
    """Every replicate; those that were finished before come from their folder."""
    store = None
    if resume is not None:
        settings = _fingerprint(policies, job.world, job.rounds, job.gamma_star)
        store = Unfinished(Path(resume) / settings)
    parts: dict[int, FloatArray] = {}
    for replicate in range(replicates):
        found = None if store is None else store.load(f"{replicate:07d}")
        if found is not None and found.ndim == 3:
            parts[replicate] = found
    progress(len(parts))
    compiled = all(coded(p, job.world) is not None for p in job.players)
    threads = compiled or not _travels(job)
    with _executor(executor, threads, replicates - len(parts)) as pool:
        waiting: dict[Future[FloatArray], int] = {
            pool.submit(_task, job, r): r for r in range(replicates) if r not in parts
        }
        try:
            for future in as_completed(waiting):
                replicate = waiting[future]
                parts[replicate] = future.result()
                if store is not None:
                    store.save(f"{replicate:07d}", parts[replicate])
                progress(len(parts))
        except BaseException:
            for future in waiting:
                future.cancel()
            raise
    return np.stack([parts[replicate] for replicate in range(replicates)], axis=1)


def _dataset(names: list[str], data: FloatArray, gamma_star: float) -> "Comparison":
    from coaf.worlds.comparison import Comparison  # an extra

    axes = ("policy", "replicate", "round")
    rate, seconds, mean, least = np.moveaxis(data, -1, 0)
    return Comparison(
        {
            "seconds": (axes, seconds),
            "mean": (axes, mean),
            "rate": (axes, rate),
            "regret": (axes, np.cumsum(seconds * gamma_star - mean, axis=-1)),
            "paired": (axes, np.cumsum(seconds * gamma_star - mean - least, axis=-1)),
        },
        coords={
            "policy": names,
            "replicate": np.arange(data.shape[1]),
            "round": np.arange(data.shape[2]),
        },
        attrs={"gamma_star": gamma_star},
    )


@dataclass(frozen=True, slots=True)
class _Job:
    """What all tasks share: one object, so that an executor may send it to its workers once."""

    players: list[Policy]
    world: World
    rounds: int
    gamma_star: float


def _task(job: _Job, replicate: int) -> FloatArray:
    """One replicate: rate, seconds, true mean reward and smallest gap of each policy and round."""
    players, world, rounds, gamma_star = job.players, job.world, job.rounds, job.gamma_star
    result = np.empty((len(players), rounds, 4))
    batch = world.batch(rounds, replicate) if isinstance(world, BulkWorld) else None
    if batch is not None:
        result[:, :, 3] = least_gaps(batch, gamma_star)[0]
    else:
        for j, s in enumerate(world.scenes(rounds, replicate)):
            result[:, j, 3] = s.round.best(gamma_star, s.means).gap
    for p, template in enumerate(players):
        # The world itself is shared, and an oracle's means must stay recognisably its own.
        player = copy.deepcopy(template, {id(world): world})
        player.seed = template.seed + 1_000_003 * replicate
        player.draws = 0
        how = coded(player, world)
        if how is not None and batch is not None:
            result[p, :, :3] = play_compiled(player, how, batch)
        else:
            rows = play(player, world, rounds=rounds, replicate=replicate)
            result[p, :, :3] = [(x["rate"], x["seconds"], x["mean"]) for x in rows]
    return result


def _travels(job: _Job) -> bool:
    """Whether it can be sent to other processes: a lambda, or a class of a notebook, may not."""
    try:
        pickle.dumps(job)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return True


@contextmanager
def _executor(given: Executor | None, threads: bool, tasks: int) -> Iterator[Executor]:
    if given is not None:
        yield given
        return
    workers = max(1, min(os.cpu_count() or 1, tasks))
    threads = threads or workers == 1
    with ThreadPoolExecutor(workers) if threads else processes(workers, fresh=False) as pool:
        yield pool


@runtime_checkable
class Digested(Protocol):
    """Data too large to hash time and again, which knows its digest."""

    digest: str


def _describe(thing: Any) -> Any:
    """Settings as JSON, for telling one experiment from another."""
    if thing is None or isinstance(thing, str | int | float | bool):
        return thing
    if isinstance(thing, np.generic):
        return [str(thing.dtype), thing.item()]
    if isinstance(thing, np.ndarray):
        digest = hashlib.sha256(np.ascontiguousarray(thing).tobytes()).hexdigest()
        return [str(thing.dtype), list(thing.shape), digest]
    if isinstance(thing, Digested) and isinstance(thing.digest, str):
        return [_name(thing), thing.digest]
    if isinstance(thing, Mapping):
        return {str(k): _describe(v) for k, v in sorted(thing.items())}
    if isinstance(thing, tuple | list | set | frozenset | deque):
        return [_describe(item) for item in thing]
    if ismethod(thing):  # an oracle's means are its world's
        return [thing.__qualname__, _describe(thing.__self__)]
    if isfunction(thing):
        code, cells = thing.__code__, thing.__closure__ or ()
        held = [_describe(cell.cell_contents) for cell in cells]
        return [thing.__qualname__, code.co_code.hex(), repr(code.co_consts), held]
    if isinstance(thing, type):
        return thing.__qualname__
    if is_dataclass(thing):
        return [_name(thing), {f.name: _describe(getattr(thing, f.name)) for f in fields(thing)}]
    return [_name(thing), _describe(getattr(thing, "__dict__", None))]


def _name(thing: object) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def _fingerprint(
    policies: Mapping[str, Policy], world: World, rounds: int, gamma_star: float
) -> str:
    settings = [
        code("bandit", "worlds"),
        {name: _describe(policy) for name, policy in policies.items()},
        _describe(world),
        rounds,
        gamma_star,
    ]
    return hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:16]
