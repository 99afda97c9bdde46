"""All beliefs on one page: where each wins, and what a round costs as rows pile up.

Writes docs/beliefs_results.md and docs/figures/beliefs.png: `python benchmarks/beliefs/page.py`, a
few minutes on two cores.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.tree import DecisionTreeRegressor

import coaf
from coaf.bandit import select
from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.belief import Belief
from coaf.bandit.beliefs.choose import with_constant
from coaf.bandit.beliefs.regressor import Regressor
from coaf.worlds import Synthetic, World, optimum, play
from coaf.worlds.batch import Scene
from coaf.worlds.figures import COLOURS
from coaf.worlds.patches import Patches
from coaf.worlds.surfaces import Bumps, Checkerboard, Growth, Sigmoid, Surface, Wave

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
ROUNDS, REPLICATES, WINDOW = 2000, 4, 200


class Turning:
    """Conditions that change at half time: another θ*, the same best rate."""

    dim = 5

    def __init__(self) -> None:
        self.before, self.after = (Synthetic(5, items=4000, seed=s) for s in (1, 2))

    def means(self, features: FloatArray) -> FloatArray:
        return self.before.means(features)

    def scenes(self, rounds: int, replicate: int) -> Iterator[Scene]:
        half = rounds // 2
        yield from self.before.scenes(half, replicate)
        yield from self.after.scenes(rounds - half, replicate)


def plain(dim: int, top: float = 1.0) -> Belief:
    """The linear belief, given a constant so that it is not beaten for the lack of one."""
    inner = coaf.Linear.tuned(dim + 1, feature_bound=1.5, norm_bound=2.0 * top, mean_bound=top)
    return coaf.Mapped(with_constant, inner, dim=dim)


WAVES = [Wave(angle, phase) for angle in np.linspace(0.0, 3.0, 8) for phase in (0.0, 1.5, 3.0, 4.5)]


def nystroem() -> Belief:
    examples = Surface(2, Bumps(), seed=9).items[:400]
    inner = coaf.Linear.tuned(60, norm_bound=3.0, mean_bound=1.0, noise=0.3)
    return coaf.Mapped(Nystroem(gamma=6.0, n_components=60), inner, examples=examples)


@dataclass(frozen=True)
class Case:
    """A world, and the belief that suits it beside one that does not."""

    name: str
    world: World
    right: Callable[[], Belief]
    linear: Callable[[], Belief]


def cases() -> list[Case]:
    trees, boosting = (
        DecisionTreeRegressor(min_samples_leaf=5),
        GradientBoostingRegressor(n_estimators=40),
    )
    scale: dict[str, Any] = {"noise": 0.2, "mean_bound": 1.0}
    microscope: dict[str, Any] = {"base": (12.0, 12.1), "setup": 60.0, "each": 6.7}
    smooth = partial(plain, 2)
    return [
        Case("finite", Surface(2, WAVES[9]), partial(coaf.Finite, 2, WAVES, **scale), smooth),
        Case(
            "logistic",
            Surface(3, Sigmoid(25.0, 0.7, 0.95), rewards="bernoulli", **microscope),
            partial(coaf.Logistic, 3),
            partial(plain, 3),
        ),
        Case(
            "poisson",
            Surface(3, Growth(0.0003, 10.0), rewards="poisson", **microscope),
            partial(coaf.Poisson, 3, mean_bound=10.0),
            partial(plain, 3, 10.0),
        ),
        Case("kernel", Surface(2, Bumps()), partial(coaf.Kernel, 2, noise=0.2, width=1.0), smooth),
        Case("mapped (Nystroem)", Surface(2, Bumps()), nystroem, smooth),
        Case(
            "regression",
            Surface(2, Checkerboard()),
            partial(coaf.Regression, 2, boosting, **scale),
            smooth,
        ),
        Case(
            "ensemble",
            Surface(2, Checkerboard()),
            partial(coaf.Ensemble, 2, trees, width=1.0, **scale),
            smooth,
        ),
        Case(
            "nested",
            Patches(3, visits=60, arms=3, patches=4.0, setup=2.0),
            partial(coaf.Nested, 3),
            partial(plain, 3),
        ),
        Case(
            "drift",
            Turning(),
            lambda: coaf.Drift(coaf.Linear.tuned(5), half_life=500),
            lambda: coaf.Linear.tuned(5),
        ),
    ]


def shares(number: int, right: bool, replicate: int, best: float) -> FloatArray:
    """The share of the best rate in a moving window: what paired regret leaves of it."""
    case = cases()[number]
    policy = coaf.COAF(belief=case.right() if right else case.linear(), seed=replicate)
    rows = list(play(policy, case.world, rounds=ROUNDS, replicate=replicate))
    least = [
        select.best(best, s.means, s.round.latency, s.round.actions, s.round.groups).gap
        for s in case.world.scenes(ROUNDS, replicate)
    ]
    seconds, means = (np.array([row[key] for row in rows]) for key in ("seconds", "mean"))
    lost = np.cumsum(np.append(0.0, seconds * best - means - least))
    spent = np.cumsum(np.append(0.0, seconds * best))
    shares: FloatArray = 1.0 - (lost[WINDOW:] - lost[:-WINDOW]) / (spent[WINDOW:] - spent[:-WINDOW])
    return shares


def wins() -> list[dict[str, Any]]:
    """Every case, played by both beliefs."""
    found = []
    with ProcessPoolExecutor(2) as pool:
        for number, case in enumerate(cases()):
            rounds = 50_000 if isinstance(case.world, Surface) else 5_000
            best = optimum(case.world, rounds=rounds).rate
            row: dict[str, Any] = {"name": case.name, "best": best}
            for key, right in (("right", True), ("linear", False)):
                runs = [pool.submit(shares, number, right, r, best) for r in range(REPLICATES)]
                row[key] = np.array([run.result() for run in runs])
            found.append(row)
            print(
                case.name, *(f"{row[k][:, -1].mean():.3f}" for k in ("right", "linear")), flush=True
            )
    return found


def draw(found: list[dict[str, Any]]) -> Figure:
    figure = Figure(figsize=(11.5, 8.6), layout="constrained")
    panels = list(figure.subplots(3, 3, sharex=True, sharey=True).flat)
    for axes, row in zip(panels, found, strict=True):
        x = np.arange(WINDOW, ROUNDS + 1)
        for key, colour, label in (
            ("right", COLOURS[0], "the belief of the title"),
            ("linear", COLOURS[1], "linear, with a constant"),
        ):
            axes.plot(x, 100.0 * row[key].T, color=colour, lw=0.6, alpha=0.35)
            axes.plot(x, 100.0 * row[key].mean(axis=0), color=colour, lw=2.0, label=label)
        axes.axhline(95.0, color="0.5", lw=0.8, ls=":")
        axes.set_title(row["name"], fontsize=11)
        axes.grid(True, color="0.92", lw=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_ylim(30.0, 105.0)
    for axes in panels[::3]:
        axes.set_ylabel("share of $\\Gamma^*$ (%)")
    for axes in panels[6:]:
        axes.set_xlabel("round")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    return figure


def growth(rows: tuple[int, ...] = (1_000, 10_000, 100_000)) -> dict[str, list[float | None]]:
    """Milliseconds of a round, 13 arms scored and 6 learned, once so many rows are known."""
    rng = np.random.default_rng(0)
    made: dict[str, Callable[[], Belief]] = {
        "linear": lambda: coaf.Linear.tuned(3),
        "logistic": lambda: coaf.Logistic(3),
        "poisson": lambda: coaf.Poisson(3),
        "finite (32)": lambda: coaf.Finite(3, WAVES, noise=1.0, mean_bound=1.0),
        "kernel (200 points)": lambda: coaf.Kernel(3, noise=0.3),
        "mapped (constant)": lambda: plain(3),
        "nested, gaussian": lambda: coaf.Nested(3, family="gaussian"),
        "nested, logistic": lambda: coaf.Nested(3),
        "drift (half-life)": lambda: coaf.Drift(coaf.Linear.tuned(3), half_life=500),
        "regression (boosting)": lambda: coaf.Regression(
            3, GradientBoostingRegressor(n_estimators=40), noise=1.0, mean_bound=1.0
        ),
        "ensemble (trees)": lambda: coaf.Ensemble(
            3, DecisionTreeRegressor(min_samples_leaf=5), noise=1.0, mean_bound=1.0
        ),
    }
    result: dict[str, list[float | None]] = {}
    for name, make in made.items():
        result[name] = []
        for count in rows:
            if result[name] and (result[name][-1] or np.inf) > 500.0:
                result[name].append(None)  # ten times more would take minutes
                continue
            belief = make()
            X = rng.uniform(-0.55, 0.55, size=(count, 3))
            y = (rng.random(count) < 0.15 + 0.1 * X[:, 0]).astype(np.float64)
            groups = np.stack([np.arange(count) // 160, np.arange(count) // 20], axis=1)
            belief.refit(X, y, groups)
            start = time.perf_counter()
            belief.upper(X[:13], groups[:13])
            fit, took = time.perf_counter() - start, []
            for turn in range(21):
                new = np.full((13, 2), [10**7, 10**7 + turn])
                start = time.perf_counter()
                belief.upper(X[turn : turn + 13], new)
                belief.learn(X[turn : turn + 6], y[turn : turn + 6], new[:6])
                took.append(time.perf_counter() - start)
            # Regressors are fitted once while rows grow by a quarter: each round bears its part.
            part = 6.0 * fit / (0.25 * count) if isinstance(belief, Regressor) else 0.0
            result[name].append(1e3 * (float(np.median(took)) + part))
        print(name, result[name], flush=True)
    return result


def main() -> None:
    found = wins()
    (DOCS / "figures").mkdir(exist_ok=True)
    draw(found).savefig(DOCS / "figures" / "beliefs.png", dpi=130)
    lines = [
        f"{REPLICATES} replicates of {ROUNDS:,} rounds; the share of Γ* in the second half, and "
        f"when its mean over {WINDOW} rounds first passed 95 %.",
        "",
        "| belief | its share of Γ* | linear's share | first at 95 % (round) |",
        "|---|---|---|---|",
    ]
    for row in found:
        mean = row["right"].mean(axis=0)
        over = np.flatnonzero(mean >= 0.95)
        first = f"{WINDOW + int(over[0])}" if over.size else "not reached"
        last = [f"{row[key][:, -ROUNDS // 2 :].mean():.1%}" for key in ("right", "linear")]
        lines.append(f"| {row['name']} | {last[0]} | {last[1]} | {first} |")
    lines += [
        "",
        "| ms a round (13 arms scored, 6 learned) | 10³ rows | 10⁴ rows | 10⁵ rows |",
        "|---|---|---|---|",
        *(
            f"| {name} | {' | '.join('–' if ms is None else f'{ms:.3g}' for ms in cells)} |"
            for name, cells in growth().items()
        ),
    ]
    (DOCS / "beliefs_results.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
