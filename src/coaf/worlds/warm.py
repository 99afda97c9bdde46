"""Compile everything ahead, so that no decision has to wait for it: `coaf.warm`."""

import importlib
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from coaf.bandit.actions import AnySubset, Capped, Grouped
from coaf.bandit.arrays import FloatArray, locked
from coaf.bandit.beliefs.linear import Linear
from coaf.bandit.beliefs.nested.nested import Nested
from coaf.bandit.beliefs.scale_free import ScaleFree
from coaf.bandit.index import Truth
from coaf.bandit.kept.notice import notice
from coaf.bandit.kept.place import PACKAGE, place, sources
from coaf.bandit.latency import Additive, Latency, Setup, Tour, Tree
from coaf.bandit.policies.baselines import TakeAll, Threshold
from coaf.bandit.policies.coaf import COAF
from coaf.bandit.policies.policy import Policy
from coaf.bandit.policies.stepwise import Stepwise
from coaf.bandit.problem import Round
from coaf.bandit.rates.memory_root import MemoryRoot
from coaf.bandit.select import best
from coaf.worlds.batch import gather
from coaf.worlds.compiled import coded, play_compiled
from coaf.worlds.optimum import least_gaps
from coaf.worlds.synthetic import Synthetic

_X = np.array([[0.6, 0.0], [0.0, 0.6], [0.3, 0.3]])
_Y = np.array([1.0, 0.0, 1.0])


@dataclass(frozen=True, slots=True)
class Warmed:
    """What `warm` did.

    Attributes
    ----------
    folder
        Where the code is kept; None if there is no place for it.
    compiled
        How many functions had to be compiled, once for each kind of arguments.
    seconds
        How long it took.
    lost
        Why some of it could not be kept; empty if all was.
    """

    folder: Path | None
    compiled: int
    seconds: float
    lost: str

    def __str__(self) -> str:
        done = f"{self.compiled} functions compiled in {self.seconds:.0f} s"
        if not self.compiled:
            done = f"Nothing left to compile, as {self.seconds:.0f} s of trying found"
        if self.lost:
            return f"{done}, and not kept: {self.lost}."
        return f"{done}; the code is kept in {self.folder}."


def warm() -> Warmed:
    """Compile all that policies, selection and compiled replicates use, and keep it.

    It takes about a minute the first time, and a second or two once everything is there. For
    containers: with XDG_CACHE_HOME or NUMBA_CACHE_DIR naming a folder of the image, call it (or
    `coaf warm`) while the image is built. That folder may be read-only later on.
    """
    start = time.perf_counter()
    for path in sources():
        importlib.import_module(_module(path))
    from coaf.bandit.kept.files import LOST, misses  # loads numba

    before, lost = _count(misses()), len(LOST)
    with notice.withheld():
        for rehearse in REHEARSALS:
            rehearse()
    found = place()
    return Warmed(
        folder=None if found is None else found.folder,
        compiled=_count(misses()) - before,
        seconds=time.perf_counter() - start,
        lost=LOST[-1] if len(LOST) > lost else "",
    )


def _module(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _count(misses: dict[str, list[str]]) -> int:
    return sum(map(len, misses.values()))


def _first(features: FloatArray) -> FloatArray:
    return features[:, 0]


def _live_policies() -> None:
    """Every verb of every policy."""
    policies: tuple[Policy, ...] = (
        COAF(2),
        COAF.paper(2),
        COAF.paper(2, index="thompson"),
        COAF(2, rate=MemoryRoot(size=2)),
        Threshold(0.1),
        TakeAll(),
    )
    latencies: tuple[Latency, ...] = (Additive(1.0, 0.1), Setup(1.0, 0.1, [0.1, 0.1, 0.1]))
    for policy in policies:
        for latency in latencies:
            decision = policy.decide(Round(_X, latency))
            policy.commit(decision, executed=[True, True, True])
            policy.learn(decision, [0], [1.0])
        policy.refit(_X, _Y)
    for rate in (None, MemoryRoot(size=2)):
        oracle = COAF(index=Truth(_first), rate=rate)
        for latency in latencies:
            oracle.commit(oracle.decide(Round(_X, latency)))
        oracle.decide(Round(_X, latencies[0]))


def _rewards() -> None:
    """Arms and rewards in arrays of other libraries, perhaps read-only, perhaps after a restart."""
    arms, rewards = np.array([0, 2]), _Y[:2]
    for numbers, values in itertools.product((arms, locked(arms)), (rewards, locked(rewards))):
        policy = COAF(2)
        decision = policy.decide(Round(_X, Additive(1.0, 0.1)))
        policy.commit(decision)
        restored = COAF.restore(policy.state())
        for either in (policy, restored):
            either.learn(decision, numbers, values)


def _linear() -> None:
    """Linear beliefs by themselves."""
    linear, free = Linear(2), ScaleFree(2)
    for belief in (linear, free):
        belief.upper(_X)
        belief.mean(_X)
        belief.sample(_X, np.random.default_rng(0))
        belief.learn(_X, _Y)
        belief.correct(_X[:1], _Y[:1], _Y[1:2])
        belief.forget(0.5)
    _ = linear.radius, linear.precision
    many = Linear(512)  # with so many features, learning goes on from what scoring found
    X = 0.1 * np.eye(2, 512)
    many.upper(X)
    many.learn(X, _Y[:2])


def _tours() -> None:
    for n in (3, 20):  # exact, and searched
        points = np.random.default_rng(0).uniform(0.0, 9.0, (n, 2))
        tour = Tour(base=1.0, points=points, each=0.5, start=[0, 0])
        for actions in (AnySubset(), Capped(12.0)):
            best(0.1, np.full(n, 2.0), tour, actions)


def _caps() -> None:
    """Limits that must be met together: a cap, and groups of arms at one node or at several."""
    mu, each = np.linspace(0.5, 1.0, 20), np.linspace(1.0, 2.0, 20)
    for groups in (np.arange(20) // 5, np.arange(20) % 4):
        tree = Tree(1.0, [-1, 0, 0], [1.0, 0.5, 0.5], [1 + (i // 10) for i in range(20)], each)
        best(0.1, mu, tree, Capped(15.0, Grouped(2)), groups)
        best(-0.1, mu, tree, Capped(15.0, Grouped(2)), groups)
    best(0.1, mu, Additive(1.0, each), Capped(9.0))


def _arms_one_by_one() -> None:
    placed = Nested(4, near=1.0, scale=1.0)
    for belief in (Nested(2), Nested(2, family="gaussian"), placed):
        policy, X = Stepwise(belief), np.hstack([_X] * (belief.dim // 2))
        for patch in ("a", "b"):
            holes = Round(X, Setup(1.0, 0.1, 0.1), groups=[["square", patch]] * 3)
            decision = policy.decide(holes)
            policy.commit(decision, executed=[True, True, True])
            policy.learn(decision, [0, 1, 2], _Y)
            policy.decide(holes)
            policy.remain(seconds=60.0, rounds=1, again=[holes])  # patches to go back to are priced
            policy.decide(Round(X, Setup(1.0, 0.1, 0.1), groups=[["square", "c"]] * 3))
        belief.sample(X, np.random.default_rng(0), np.array([["square", "a"]] * 3))


def _replicates() -> None:
    world = Synthetic(2, arms=(2, 3), items=4)
    batch = world.batch(3, 0)
    least_gaps(batch, 0.1)
    for policy in (COAF(2), COAF.paper(2, index="thompson"), COAF(2, rate=MemoryRoot()), TakeAll()):
        how = coded(policy, world)
        assert how is not None
        play_compiled(policy, how, batch)
    shown, counts = np.zeros((2, 3), dtype=np.int64), np.array([3, 2])
    for kind in (np.int32, np.int64):
        gather(_X, shown.astype(kind), counts)


# Between them they call every compiled function, with every kind of arguments met in practice.
REHEARSALS: tuple[Callable[[], None], ...] = (
    _live_policies,
    _rewards,
    _linear,
    _tours,
    _caps,
    _arms_one_by_one,
    _replicates,
)
