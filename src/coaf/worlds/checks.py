"""A checker for worlds of one's own."""

from itertools import islice

import numpy as np

from coaf.bandit.checks.contract import ContractError, close, require_parts
from coaf.bandit.problem import Round
from coaf.bandit.shown import shown
from coaf.worlds.batch import Scene
from coaf.worlds.world import BulkWorld, World


def check_world(world: World, *, rounds: int = 20) -> None:
    """Play a few rounds of a world twice, and raise a `ContractError` that says what is wrong.

    Examples
    --------
    >>> from coaf.worlds.synthetic import Synthetic
    >>> check_world(Synthetic(dim=3))
    """
    name = type(world).__name__
    require_parts(world, "a world", ("dim", "means", "scenes"))
    first, again, other = (
        list(islice(world.scenes(rounds, replicate), rounds)) for replicate in (0, 0, 1)
    )
    for number, scenes in enumerate((first, again, other)):
        if len(scenes) != rounds:
            raise ContractError(f"{name}.scenes({rounds}, ...) yields {len(scenes)} rounds")
        for j, scene in enumerate(scenes):
            _check_scene(world, scene, f"{name}.scenes({rounds}, {number // 2}), round {j}")
    if not all(map(_same, first, again)):
        raise ContractError(
            f"{name}.scenes gives other rounds when asked again for the same replicate: every "
            "policy must meet the same, so make a random generator from `replicate` in it"
        )
    if all(map(_same, first, other)):
        raise ContractError(f"{name}.scenes gives the same rounds and rewards for all replicates")
    if isinstance(world, BulkWorld):
        _check_batch(world, first, name)


def _check_batch(world: BulkWorld, scenes: list[Scene], name: str) -> None:
    inside = list(world.batch(len(scenes), 0).scenes())
    if len(inside) != len(scenes):
        raise ContractError(f"{name}.batch({len(scenes)}, 0) holds {len(inside)} rounds")
    for j, pair in enumerate(zip(inside, scenes, strict=True)):
        if not _same(*pair):
            raise ContractError(
                f"{name}.batch({len(scenes)}, 0) holds another round {j} than scenes yields: "
                "compiled and other policies must meet the same"
            )


def _check_scene(world: World, scene: Scene, where: str) -> None:
    if not isinstance(scene, Scene) or not isinstance(scene.round, Round):
        raise ContractError(f"{where} is {shown(scene)}; it must be a Scene of a Round")
    n, dim = scene.round.features.shape
    if dim != world.dim:
        raise ContractError(f"{where} has {dim} features, but dim is {world.dim}")
    for what, values in (("means", scene.means), ("rewards", scene.rewards)):
        if np.shape(values) != (n,) or not np.isfinite(values).all():
            raise ContractError(f"{where}: {what} must be {n} finite numbers, one for each arm")
    if scene.round.groups is not None:
        return  # features alone do not say it
    told = world.means(scene.round.features)
    if not close(told, scene.means):
        raise ContractError(
            f"{where} has the means {scene.means}, but means(features) says {told}: by the first "
            "policies are judged, by the second the best one decides"
        )


def _same(one: Scene, other: Scene) -> bool:
    a, b = one.round, other.round
    taken = (np.zeros(a.n, dtype=np.bool_), np.ones(a.n, dtype=np.bool_))
    return (
        np.array_equal(a.features, b.features)
        and all(close(a.latency.seconds(some), b.latency.seconds(some)) for some in taken)
        and np.array_equal(one.means, other.means)
        and np.array_equal(one.rewards, other.rewards)
    )
