"""The kernel belief: coverage, what it earns, what it costs. Writes docs/beliefs/kernel_results.md.

Every number on that page comes from this script (about a minute on one core).
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np

import coaf
from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.belief import Belief
from coaf.bandit.beliefs.kernel.basis import Covariance, Part
from coaf.bandit.beliefs.kernel.kernel import Kernel
from coaf.bandit.beliefs.kernel.likelihood import likeliest
from coaf.bandit.beliefs.mapped import Mapped
from coaf.bandit.index import Thompson
from coaf.bandit.latency import Additive, Setup
from coaf.bandit.policies.policy import Policy
from coaf.bandit.problem import Round
from coaf.worlds import World, optimum, play
from coaf.worlds.batch import Scene

DOCS = Path(__file__).resolve().parents[2] / "docs" / "beliefs"


class Bumps:
    """Two features and a constant; arms are good near two places, and nowhere else."""

    dim, noise = 3, 0.3

    def means(self, features: FloatArray) -> FloatArray:
        def bump(x: float, y: float, width: float) -> FloatArray:
            squares = (features[:, 0] - x) ** 2 + (features[:, 1] - y) ** 2
            return np.asarray(np.exp(-squares / (2.0 * width**2)))

        return 0.9 * bump(0.35, 0.3, 0.15) + 0.7 * bump(-0.3, -0.2, 0.12) - 0.1

    def arms(self, rng: np.random.Generator, n: int) -> FloatArray:
        return np.column_stack([rng.uniform(-0.6, 0.6, (n, 2)), np.full(n, 0.5)])

    def scenes(self, rounds: int, replicate: int) -> Iterator[Scene]:
        rng = np.random.default_rng([1, replicate])
        for _ in range(rounds):
            X = self.arms(rng, int(rng.integers(6, 20)))
            latency = Additive(base=float(rng.uniform(5.0, 10.0)), each=1.0)
            means = self.means(X)
            rewards = means + self.noise * rng.standard_normal(len(X))
            yield Scene(Round(X, latency), means, rewards)


class Ice:
    """Patches of holes on a grid: a weak feature of the image, and ice that varies over x and y.

    Features are what the image says, a constant, and x and y in µm. Entering a patch takes time.
    """

    dim, noise = 4, 0.4

    def __init__(self) -> None:
        place = Part(np.array([2, 3]), np.array([60.0, 60.0]), 0.35)
        self.field = Covariance((place,), "matern").draw(np.random.default_rng(7))

    def means(self, features: FloatArray) -> FloatArray:
        return 0.2 + 0.3 * features[:, 0] + self.field(features)

    def scenes(self, rounds: int, replicate: int) -> Iterator[Scene]:
        rng = np.random.default_rng([2, replicate])
        for _ in range(rounds):
            n = int(rng.integers(5, 25))
            places = rng.uniform(0.0, 400.0, 2) + rng.normal(0.0, 5.0, (n, 2))
            X = np.column_stack([rng.uniform(-0.8, 0.8, n), np.full(n, 0.5), places])
            means = self.means(X)
            rewards = means + self.noise * rng.standard_normal(n)
            latency = Setup(base=12.1, setup=52.0, each=6.7)
            yield Scene(Round(X, latency), means, rewards)


def without_place(features: FloatArray) -> FloatArray:
    """The features of a hole but for where it is."""
    return features[:, :2]


def examples(world: World, count: int) -> tuple[FloatArray, FloatArray]:
    """Arms taken at random, and their rewards."""
    scenes = list(world.scenes(count // 4, 99))
    X = np.concatenate([scene.round.features[:4] for scene in scenes])
    return X, np.concatenate([scene.rewards[:4] for scene in scenes])


def shares(
    world: World, policies: Mapping[str, Callable[[], Policy]], rounds: int, replicates: int
) -> list[str]:
    """Lines of a table: reward per second as a share of Γ*, over the run and its last third."""
    best = optimum(world, rounds=3000).rate
    lines = ["| belief | whole run | last third |", "|---|---:|---:|"]
    for name, make in policies.items():
        earned: list[list[float]] = []
        for replicate in range(replicates):
            rows = list(play(make(), world, rounds=rounds, replicate=replicate))
            parts = (rows, rows[-rounds // 3 :])
            earned.append(
                [sum(r["mean"] for r in p) / sum(r["seconds"] for r in p) / best for p in parts]
            )
        whole, last = np.mean(earned, axis=0)
        lines.append(f"| {name} | {whole:.0%} | {last:.0%} |")
    return lines


def coverage() -> list[str]:
    """Functions from the prior, 300 rows, 100 arms: inside ±2 sd, below upper, error, points."""
    lines = [
        "| kernel | points | settings | within 2 sd | below `upper` | error / exact | `novelty` |",
        "|---|---:|---|---:|---:|---:|---:|",
    ]
    cases: list[tuple[Any, int, str, float]] = [
        ("rbf", 200, "true", 1.0),
        ("rbf", 50, "true", 1.0),
        ("rbf", 25, "true", 1.0),
        ("matern", 200, "true", 1.0),
        ("matern", 50, "true", 1.0),
        ("rbf", 200, "length scale halved", 0.5),
        ("rbf", 200, "length scale doubled", 2.0),
        ("rbf", 200, "`likeliest`", 0.0),
    ]
    for kind, points, name, factor in cases:
        inside, below, errors, novelty = [], [], [], []
        for seed in range(20):
            rng = np.random.default_rng(seed)
            truth = Kernel(
                2,
                length_scale=0.4,
                signal=0.6,
                noise=0.4,
                prior_mean=0.0,
                kind=kind,
                points=400,
            )
            f = truth._memory.basis.covariance.draw(rng)
            X, Z = rng.uniform(-1.0, 1.0, (300, 2)), rng.uniform(-1.0, 1.0, (100, 2))
            y = f(X) + 0.4 * rng.standard_normal(300)
            if factor:
                settings: dict[str, Any] = {"length_scale": 0.4 * factor, "signal": 0.6}
                settings |= {"noise": 0.4, "kind": kind}
            else:
                settings = likeliest(X[:100], y[:100], kind=kind)
            ours = Kernel(2, points=points, **settings)
            for one in (truth, ours):
                one.learn(X, y)
            off = f(Z) - ours.mean(Z)
            inside.append(np.abs(off) <= 2.0 * ours.deviation(Z))
            below.append(f(Z) <= ours.upper(Z))
            errors.append(np.sqrt(np.mean(off**2) / np.mean((f(Z) - truth.mean(Z)) ** 2)))
            novelty.append(ours.novelty)
        lines.append(
            f"| {kind} | {points} | {name} | {np.mean(inside):.1%} | {np.mean(below):.1%} "
            f"| {np.mean(errors):.2f} | {np.median(novelty):.1g} |"
        )
    return lines


def seconds_of(action: Callable[[int], object], times: int) -> float:
    """The median processor time that it takes, given 0, 1, 2 and so on."""
    spent = []
    for i in range(times):
        start = time.process_time()
        action(i)
        spent.append(time.process_time() - start)
    return float(np.median(spent))


def times_of(belief: Belief, X: FloatArray, y: FloatArray) -> tuple[float, float, float]:
    """Seconds to learn a row, to learn 5 and score 20, and to draw 20."""
    known, rng = deepcopy(belief), np.random.default_rng(0)

    def turn(i: int) -> None:
        known.learn(X[i : i + 5], y[i : i + 5])
        known.upper(X[i : i + 20])

    return (
        seconds_of(lambda i: known.learn(X[i : i + 1], y[i : i + 1]), 500),
        seconds_of(turn, 200),
        seconds_of(lambda i: known.sample(X[i : i + 20], rng), 50),
    )


def costs() -> list[str]:
    """Time for rows and rounds, with points all used (a rough kernel over three features)."""
    lines = [
        "| points | rows so far | one row | in bulk, each | learn 5, score 20 | one draw | state |",
        "|---:|---:|---:|---:|---:|---:|---:|",
    ]
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (100_000, 3))
    y = np.sin(3.0 * X[:, 0]) + 0.3 * rng.standard_normal(len(X))
    for points in (50, 200):
        belief, done = Kernel(3, kind="matern", points=points), 0
        for rows in (1_000, 10_000, 100_000):
            start = time.process_time()
            belief.learn(X[done:rows], y[done:rows])
            bulk = (time.process_time() - start) / (rows - done)
            done = rows
            learn, turn, draw = times_of(belief, X, y)
            size = len(json.dumps(belief.state())) / 1e6
            lines.append(
                f"| {points} | {rows:,} | {1e6 * learn:.0f} µs | {1e6 * bulk:.0f} µs "
                f"| {1e3 * turn:.2f} ms | {1e3 * draw:.2f} ms | {size:.1f} MB |"
            )
    return lines


def main() -> None:
    """Measure and write."""
    bumps, ice = Bumps(), Ice()
    known = likeliest(*examples(bumps, 200))
    seen = likeliest(*examples(ice, 300), space=(2, 3), kind="matern")
    flat = {name: seen[name] for name in ("kind", "noise", "prior_mean", "length_scale", "signal")}
    curved = shares(
        bumps,
        {
            "`ScaleFree(3)`": lambda: coaf.COAF(dim=3),
            "`Kernel(3)`, defaults": lambda: coaf.COAF(belief=Kernel(3)),
            "`Kernel(3)`, Thompson": lambda: coaf.COAF(belief=Kernel(3), index=Thompson(), draws=0),
            "`Kernel`, settings from 200 examples": lambda: coaf.COAF(belief=Kernel(3, **known)),
            "the same, `width=1`": lambda: coaf.COAF(belief=Kernel(3, **known, width=1.0)),
            "the same, 30 points": lambda: coaf.COAF(belief=Kernel(3, **known, points=30)),
        },
        rounds=600,
        replicates=3,
    )
    spatial = shares(
        ice,
        {
            "`ScaleFree`, features alone": lambda: coaf.COAF(
                belief=Mapped(without_place, coaf.ScaleFree(2), dim=4)
            ),
            "`Kernel`, features alone": lambda: coaf.COAF(
                belief=Mapped(without_place, Kernel(2, **flat), dim=4)
            ),
            "`Kernel` with `space=(2, 3)`": lambda: coaf.COAF(belief=Kernel(4, **seen)),
            "the same, `width=1`": lambda: coaf.COAF(belief=Kernel(4, **seen, width=1.0)),
        },
        rounds=600,
        replicates=3,
    )
    text = [
        "**Coverage.** 20 functions from the prior, 300 rows each, 100 arms; two features in "
        "±1, length scale 0.4, signal 0.6, noise 0.4. Right would be 95.4 % within two standard "
        "deviations, and 97.7 % below `upper`. The exact process has an error of 1.",
        *["", *coverage(), ""],
        "**A world that no line fits** (two bumps; 600 rounds, 3 replicates): reward per second "
        "as a share of the best possible.",
        *["", *curved, ""],
        "**Ice that varies over the grid** (patches of 5 to 24 holes on 400 × 400 µm; base "
        "12.1 s, set-up 52 s, 6.7 s each; 600 rounds, 3 replicates). From 300 labelled holes, "
        f"`likeliest` found a length scale of {seen['space_length']:.0f} µm (in truth 60) and a "
        f"noise of {seen['noise']:.2f} (0.4).",
        *["", *spatial, ""],
        "**Cost**: processor time on one core, all points in use. The first rows cost more while "
        "points are still being chosen.",
        *["", *costs(), ""],
    ]
    DOCS.mkdir(parents=True, exist_ok=True)
    (DOCS / "kernel_results.md").write_text("\n".join(text))


if __name__ == "__main__":
    main()
