"""How fast it is, beside the C yardstick, plain NumPy and whichever peers are installed."""

import copy
import ctypes
import importlib.util
import math
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from coaf.bandit.actions import Actions, AnySubset, OneOf
from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.linear import Linear
from coaf.bandit.latency import Additive
from coaf.bandit.policies.coaf import COAF
from coaf.bandit.problem import Round
from coaf.worlds.batch import Batch
from coaf.worlds.compiled import coded, play_compiled
from coaf.worlds.synthetic import Synthetic

DIM, ARMS, ROUNDS = 10, 13, 2000
ANY = AnySubset()


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _best(work: Callable[[], object], repeats: int = 7) -> float:
    work()  # compile and warm up
    return min(_seconds(work) for _ in range(repeats))


def preset(dim: int = DIM) -> COAF:
    """What the yardstick runs: plain ellipsoid capped, the paper's radius, Robbins-Monro."""
    return COAF.paper(dim, within="ellipsoid", n_max=20, l_min=5.0, delta=1.0 / ROUNDS)


class Limit:
    """The C program, compiled and called on our own rounds."""

    def __init__(self, source: Path) -> None:
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            raise RuntimeError("the yardstick needs a C compiler (cc or gcc) on the PATH")
        flags = ["-O3", "-march=native", "-ffast-math", "-DFAST", "-fPIC"]
        with tempfile.TemporaryDirectory() as folder:
            code, library = f"{folder}/limit.o", f"{folder}/limit.so"
            subprocess.run([compiler, "-c", *flags, str(source), "-o", code], check=True)
            # Linked without -ffast-math, which would make this whole process flush tiny numbers.
            subprocess.run([compiler, "-shared", code, "-o", library, "-lm"], check=True)
            self._run = ctypes.CDLL(library).coaf_run
        self._run.restype = ctypes.c_double

    def prepare(self, batch: Batch) -> Callable[[], tuple[float, int]]:
        """A call that plays `batch` and returns the last rate and the number of picks."""
        from coaf.bandit.compiled.workspace import aligned  # loads numba

        rounds, most, padded = len(batch), 20, (DIM + 3) // 4 * 4
        # It reads whole vectors, so rows must be aligned, and up to four arms past the last.
        features = aligned(rounds * most + 8, padded)
        lanes = batch.features.reshape(rounds, DIM, -1).transpose(0, 2, 1)[:, :most]
        features[: rounds * most, :DIM] = lanes.reshape(-1, DIM)
        rewards = np.ascontiguousarray(batch.rewards[:, :most])
        counts, base = batch.counts.astype(np.int32), batch.base
        picks = ctypes.c_long()

        def pointer(array: Any) -> ctypes.c_void_p:
            return ctypes.c_void_p(array.ctypes.data)

        def call() -> tuple[float, int]:
            numbers = (ctypes.c_double(0.5), ctypes.c_double(1.0), ctypes.c_double(1.0 / ROUNDS))
            arrays = (pointer(features), pointer(rewards), pointer(counts), pointer(base))
            rate = self._run(*arrays, ctypes.c_long(rounds), *numbers, ctypes.byref(picks))
            return float(rate), int(picks.value)

        return call


def compiled(limit: Path | None, *, repeats: int = 60) -> dict[str, float]:
    """Compiled replicates, turn by turn with the yardstick on the same rounds; medians."""
    world = Synthetic(dim=DIM, arms=(6, 20), base=(5.0, 10.0), seed=1)
    batch = world.batch(ROUNDS, 0)

    def turn(policy: COAF) -> Callable[[], object]:
        how = coded(policy, world)
        assert how is not None
        return lambda: play_compiled(policy, how, batch)

    result: dict[str, float] = {}
    turns = {"compiled": turn(preset()), "default": turn(COAF(DIM))}
    if limit is not None:
        turns["limit"] = Limit(limit).prepare(batch)
    alone = {
        "paper": turn(COAF.paper(DIM)),
        "draw": lambda: world.batch(ROUNDS, 1),
    }
    for group, times in ((turns, repeats), *(({n: w}, repeats // 6) for n, w in alone.items())):
        spent = {name: [_seconds(work)] for name, work in group.items()}  # the first compiles
        for _ in range(times):
            for name, work in group.items():
                spent[name].append(_seconds(work))
        for name, seconds in spent.items():
            result[f"{name}_us_per_round"] = statistics.median(seconds[1:]) / ROUNDS * 1e6
    if limit is not None:
        result["ratio"] = result["compiled_us_per_round"] / result["limit_us_per_round"]
        result["default_ratio"] = result["default_us_per_round"] / result["limit_us_per_round"]
    return result


def _rounds(dim: int, arms: int, count: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((count, arms, dim))
    X /= np.linalg.norm(X, axis=2, keepdims=True)
    theta = np.abs(rng.standard_normal(dim))
    theta /= np.linalg.norm(theta)
    return X, X @ theta + 0.5 * rng.standard_normal((count, arms))


def live(
    policy: COAF,
    *,
    dim: int = DIM,
    arms: int = ARMS,
    count: int = 1000,
    actions: Actions = ANY,
) -> float:
    """Microseconds for one round through the public API: Round, decide, commit, learn."""
    X, y = _rounds(dim, arms, count)

    def work(player: COAF) -> None:
        for features, rewards in zip(X, y, strict=True):
            patch = Round(features, Additive(base=7.5, each=1.0), actions)
            decision = player.decide(patch)
            player.commit(decision)
            taken = decision.chosen.nonzero()[0]
            player.learn(decision, taken, rewards[taken])

    work(copy.deepcopy(policy))  # compile and warm up
    players = [copy.deepcopy(policy) for _ in range(7)]
    return min(_seconds(lambda p=player: work(p)) for player in players) / count * 1e6  # type: ignore[misc]


def plain_numpy(*, count: int = 1000) -> float:
    """Microseconds for the same round in plain NumPy, with one inverse a round."""
    X, y = _rounds(DIM, ARMS, count)

    def work() -> None:
        V, b, rate, floor, rows = np.eye(DIM), np.zeros(DIM), 0.0, 0.0, 0
        for x, rewards in zip(X, y, strict=True):
            P = np.linalg.inv(V)
            radius = 1.0 + math.sqrt(2.0 * math.log(ROUNDS) + DIM * math.log1p(rows / DIM))
            widths = np.sqrt(np.einsum("ij,jk,ik->i", x, P, x))
            estimates = np.minimum(x @ (P @ b) + radius * widths, 1.0)
            chosen = estimates > rate
            seconds = 7.5 + chosen.sum()
            floor += 7.5
            rate -= (seconds * rate - estimates[chosen].sum()) / (0.5 * floor)
            rate = min(max(rate, -4.0), 4.0)
            V += x[chosen].T @ x[chosen]
            b += x[chosen].T @ rewards[chosen]
            rows += int(chosen.sum())

    return _best(work) / count * 1e6


def peers(*, dim: int = DIM, count: int = 500) -> dict[str, float]:
    """Microseconds a round of peers that are installed: score all, take one, learn it."""
    found: dict[str, float] = {}
    if importlib.util.find_spec("contextualbandits") is None:
        return found
    from contextualbandits.linreg import LinearRegression  # an extra

    X, y = _rounds(dim, ARMS, count)

    def work() -> None:
        model = LinearRegression(lambda_=1.0, fit_intercept=False, use_float=False)
        model.fit(X[0][:1], y[0][:1])
        for x, rewards in zip(X, y, strict=True):
            arm = int(np.argmax(model.predict_ucb(x, 1.0)))
            model.partial_fit(x[arm : arm + 1], rewards[arm : arm + 1])

    found["contextualbandits"] = _best(work, repeats=3) / count * 1e6
    return found


def one_pick(dim: int, count: int) -> float:
    """Microseconds a round for what the peers do: score all, take one, learn it."""
    return live(preset(dim), dim=dim, count=count, actions=OneOf())


def growth() -> list[dict[str, float]]:
    """Microseconds a live round as arms and features grow, all picks learned."""
    sizes = [(10, 13), (10, 130), (10, 1300), (30, 13), (100, 13), (300, 13), (1000, 13)]
    table = []
    for dim, arms in sizes:
        count = max(20, min(1000, 20_000_000 // (dim * dim * arms)))
        table.append(
            {"dim": dim, "arms": arms, "us": live(preset(dim), dim=dim, arms=arms, count=count)}
        )
    return table


def memory(learners: int = 10_000) -> float:
    """Megabytes for so many learners of d = 10."""
    import tracemalloc  # slows everything once loaded and started

    Linear(DIM)
    tracemalloc.start()
    kept = [Linear(DIM) for _ in range(learners)]
    used = tracemalloc.get_traced_memory()[0] / 1e6
    tracemalloc.stop()
    del kept
    return used


def import_seconds() -> float:
    """Seconds that `import coaf` takes in a fresh interpreter, once that has started."""
    code = "import time; t = time.perf_counter(); import coaf; print(time.perf_counter() - t)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(run.stdout)
