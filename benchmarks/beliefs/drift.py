"""What fading and windows are worth where conditions change. Writes its results to the docs.

Every number on docs/beliefs/drift.md comes from this script:
`python benchmarks/beliefs/drift.py` (about a minute on one core).
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import coaf
from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.belief import Belief
from coaf.bandit.beliefs.drift import Drift
from coaf.bandit.beliefs.linear import Linear
from coaf.bandit.problem import Round
from coaf.worlds import Synthetic, optimum
from coaf.worlds.batch import Scene

PAGE = Path(__file__).resolve().parents[2] / "docs" / "beliefs" / "drift_results.md"
DIM, NOISE, ROUNDS, REPLICATES = 5, 0.5, 600, 8
WORLD = Synthetic(dim=DIM, noise=NOISE, seed=3)

# The angle of θ* at each share of the way, in degrees.
WORLDS: dict[str, Callable[[float], float]] = {
    "stays": lambda t: 0.0,
    "jumps by 90°": lambda t: 90.0 * (t >= 0.5),
    "turns by 180°": lambda t: 180.0 * t,
}
DRIFTS: dict[str, Callable[[Belief], Belief]] = {
    "the belief alone": lambda belief: belief,
    "half_life=1000": lambda belief: Drift(belief, half_life=1000),
    "half_life=300": lambda belief: Drift(belief, half_life=300),
    "half_life=100": lambda belief: Drift(belief, half_life=100),
    "window=1500": lambda belief: Drift(belief, window=1500),
    "window=450": lambda belief: Drift(belief, window=450),
    "window=150": lambda belief: Drift(belief, window=150),
}


def turned(degrees: float) -> FloatArray:
    """A rotation in the plane of θ* and another direction."""
    plane, _ = np.linalg.qr(np.column_stack([WORLD.theta, np.eye(DIM)[0]]))
    a = np.deg2rad(degrees)
    turn = np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
    result: FloatArray = np.eye(DIM) + plane @ (turn - np.eye(2)) @ plane.T
    return result


def scenes(angle: Callable[[float], float], replicate: int) -> Iterator[Scene]:
    """The world's rounds, with features turned together with θ*: the optimum never changes."""
    for j, scene in enumerate(WORLD.scenes(ROUNDS, replicate)):
        features = scene.round.features @ turned(angle(j / ROUNDS)).T
        yield Scene(Round(features, scene.round.latency), scene.means, scene.rewards)


class Run(NamedTuple):
    """Shares of the best rate over the first and second half; arms not underestimated; rows."""

    first: float
    second: float
    covered: float
    rows: float


def run(belief: Belief, angle: Callable[[float], float], replicate: int, star: float) -> Run:
    policy = coaf.COAF(belief=belief)
    rows, right, shown = [], 0, 0
    for j, scene in enumerate(scenes(angle, replicate)):
        decision = policy.decide(scene.round)
        policy.commit(decision)
        arms = np.flatnonzero(decision.chosen)
        policy.learn(decision, arms, scene.rewards[arms])
        rows.append((scene.means[arms].sum(), decision.seconds, len(arms)))
        if j >= ROUNDS // 2:
            right += int((scene.means <= decision.estimates + 1e-9).sum())
            shown += scene.round.n
    half = np.array(rows).reshape(2, -1, 3).sum(axis=1)
    first, second = half[:, 0] / half[:, 1] / star
    return Run(float(first), float(second), right / shown, float(half[:, 2].sum()))


def means(
    make: Callable[[], Belief], angle: Callable[[float], float], star: float
) -> tuple[Run, Run]:
    """Averages over replicates, and their standard errors."""
    runs = [run(make(), angle, replicate, star) for replicate in range(REPLICATES)]
    errors = np.std(runs, axis=0, ddof=1) / np.sqrt(REPLICATES)
    return Run(*np.mean(runs, axis=0).tolist()), Run(*errors.tolist())


def page() -> str:
    star = optimum(WORLD).rate
    halves = " | ".join(f"{name}: 1st half | 2nd" for name in WORLDS)
    lines = [
        f"Share of the best possible rate, in percent ± standard error. {REPLICATES} "
        f"replicates of {ROUNDS} rounds, {DIM} "
        f"features, noise {NOISE:g}, 6 to 20 arms, `Linear.tuned`; about ROWS rows are "
        "learned. One world (a catalogue and θ*, seed 3).",
        "",
        f"| drift | {halves} |",
        "|---|" + "---|---|" * len(WORLDS),
    ]
    learned = []
    for name, drift in DRIFTS.items():
        cells = []
        for angle in WORLDS.values():
            found, error = means(lambda d=drift: d(Linear.tuned(DIM)), angle, star)  # type: ignore[misc]
            cells += [
                f"{100 * a:.1f} ± {100 * b:.1f}"
                for a, b in ((found.first, error.first), (found.second, error.second))
            ]
            learned.append(found.rows)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines[0] = lines[0].replace("ROWS", f"{round(np.mean(learned), -2):.0f}")
    lines += [
        "",
        "Coverage: the share of arms shown in the second half whose mean was at most `upper`, with "
        f'the valid radius (`Linear({DIM}, noise={NOISE:g}, within="ellipsoid")`).',
        "",
        f"| drift | {' | '.join(WORLDS)} |",
        "|---|" + "---|" * len(WORLDS),
    ]
    for name in ("the belief alone", "half_life=300", "window=450"):
        cells = []
        for angle in WORLDS.values():

            def make(name: str = name) -> Belief:
                return DRIFTS[name](Linear(DIM, noise=NOISE, within="ellipsoid"))

            cells.append(f"{means(make, angle, star)[0].covered:.1%}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))
