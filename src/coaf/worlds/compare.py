"""Comparing policies over replicates: in parallel, with progress, and resumable."""

import copy
import hashlib
import json
import os
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
from importlib.util import find_spec
from inspect import isfunction, ismethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.select import best
from coaf.bandit.verbs import Policy
from coaf.worlds.cluster import processes
from coaf.worlds.compiled import plan, play_compiled
from coaf.worlds.optimum import least_gaps, optimum
from coaf.worlds.play import play
from coaf.worlds.unfinished import Unfinished, code
from coaf.worlds.world import BulkWorld, World

if TYPE_CHECKING:
    import xarray

CHUNK = 4  # replicates a task; fixed, so that results do not depend on the number of workers

Progress = Callable[[int, int], None]


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
) -> "xarray.Dataset":
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
        where every policy runs compiled, which needs no interpreter, and else processes.
    progress
        Called with how many tasks are done, and of how many.
    resume
        A folder for finished tasks. A run that was interrupted goes on from there; other
        experiments may use the same folder.

    Returns
    -------
    xarray.Dataset
        policy x replicate x round: `seconds`, `mean` (true mean reward), `rate`, and the two
        cumulative regrets `regret` (T·Γ* − Σμ) and `paired` (Σ g(Γ*, A_j) − min_A g(Γ*, A)).

    Examples
    --------
    >>> from coaf.bandit.policy import COAF
    >>> from coaf.worlds.synthetic import Synthetic
    >>> result = compare({"coaf": COAF(dim=3)}, Synthetic(dim=3), rounds=50, replicates=2)
    >>> dict(result.sizes)
    {'policy': 1, 'replicate': 2, 'round': 50}
    """
    for name, policy in policies.items():
        if policy.belief is not None and policy.belief.dim != world.dim:
            raise ValueError(
                f"policy {name!r} has dim={policy.belief.dim}, but the world has dim={world.dim}"
            )
    if find_spec("xarray") is None:  # before the work, not after it
        raise ModuleNotFoundError("compare needs xarray: pip install 'coaf[experiments]'")
    if rounds < 1 or replicates < 1:
        raise ValueError(f"rounds={rounds} and replicates={replicates} must be at least 1")
    if gamma_star is None:
        gamma_star = optimum(world).rate
    names, players = list(policies), list(policies.values())
    starts = range(0, replicates, CHUNK)
    tasks = [(s, min(CHUNK, replicates - s)) for s in starts]
    store = None
    if resume is not None:
        store = Unfinished(Path(resume) / _fingerprint(policies, world, rounds, gamma_star))
    parts: dict[int, FloatArray] = {}
    for first, count in tasks:
        found = None if store is None else store.load(f"{first:07d}")
        if found is not None and found.ndim == 4 and found.shape[1] >= count:
            parts[first] = found[:, :count]
    done = len(parts)
    if progress is not None:
        progress(done, len(tasks))
    compiled = all(plan(p, world) is not None for p in players)
    job = _Job(players, world, rounds, gamma_star)
    with _executor(executor, compiled, len(tasks) - done) as pool:
        waiting: dict[Future[FloatArray], int] = {
            pool.submit(_task, job, first, count): first
            for first, count in tasks
            if first not in parts
        }
        try:
            for future in as_completed(waiting):
                first = waiting[future]
                parts[first] = future.result()
                if store is not None:
                    store.save(f"{first:07d}", parts[first])
                done += 1
                if progress is not None:
                    progress(done, len(tasks))
        except BaseException:
            for future in waiting:
                future.cancel()
            raise
    data = np.concatenate([parts[first] for first, _ in tasks], axis=1)
    return _dataset(names, data, gamma_star)


def _dataset(names: list[str], data: FloatArray, gamma_star: float) -> "xarray.Dataset":
    import xarray  # an extra

    axes = ("policy", "replicate", "round")
    rate, seconds, mean, least = np.moveaxis(data, -1, 0)
    return xarray.Dataset(
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


def _task(job: _Job, first: int, count: int) -> FloatArray:
    """Replicates first to first + count: rate, seconds, true mean reward and smallest gap."""
    players, world, rounds, gamma_star = job.players, job.world, job.rounds, job.gamma_star
    result = np.empty((len(players), count, rounds, 4))
    for r in range(count):
        batch = world.batch(rounds, first + r) if isinstance(world, BulkWorld) else None
        if batch is not None:
            result[:, r, :, 3] = least_gaps(batch, gamma_star)[0]
        else:
            for j, s in enumerate(world.scenes(rounds, first + r)):
                latency, actions, groups = s.round.latency, s.round.actions, s.round.groups
                result[:, r, j, 3] = best(gamma_star, s.means, latency, actions, groups).gap
        for p, template in enumerate(players):
            # The world itself is shared, and an oracle's means must stay recognisably its own.
            player = copy.deepcopy(template, {id(world): world})
            player.seed = template.seed + 1_000_003 * (first + r)
            player.draws = 0
            how = plan(player, world)
            if how is not None and batch is not None:
                result[p, r, :, :3] = play_compiled(player, how, batch)
            else:
                rows = play(player, world, rounds=rounds, replicate=first + r)
                result[p, r, :, :3] = [(x["rate"], x["seconds"], x["mean"]) for x in rows]
    return result


@contextmanager
def _executor(given: Executor | None, compiled: bool, tasks: int) -> Iterator[Executor]:
    if given is not None:
        yield given
        return
    workers = max(1, min(os.cpu_count() or 1, tasks))
    threads = compiled or workers == 1
    with ThreadPoolExecutor(workers) if threads else processes(workers, fresh=False) as pool:
        yield pool


def _describe(thing: Any) -> Any:
    """Settings as JSON, for telling one experiment from another."""
    if thing is None or isinstance(thing, str | int | float | bool):
        return thing
    if isinstance(thing, np.generic):
        return [str(thing.dtype), thing.item()]
    if isinstance(thing, np.ndarray):
        digest = hashlib.sha256(np.ascontiguousarray(thing).tobytes()).hexdigest()
        return [str(thing.dtype), list(thing.shape), digest]
    if isinstance(getattr(thing, "digest", None), str):  # data too large to hash time and again
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
