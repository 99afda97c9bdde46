"""Coverage, cost and play of `Regression`: writes docs/beliefs/regression_results.md.

Every number on docs/beliefs/regression.md comes from this script:
`python benchmarks/beliefs/regression.py` (under two minutes on one core).
"""

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.belief import Belief
from coaf.bandit.beliefs.ensemble import Ensemble
from coaf.bandit.beliefs.regression import Regression
from coaf.bandit.index import Index, Thompson, Truth, Upper
from coaf.bandit.latency import Setup
from coaf.bandit.policies.coaf import COAF
from coaf.bandit.problem import Round
from coaf.worlds.batch import Scene
from coaf.worlds.optimum import optimum
from coaf.worlds.play import play

DOCS = Path(__file__).parents[2] / "docs" / "beliefs"
NOISE = 0.3
ARMS, SEEDS = 40, 4  # fresh ones in each replicate of the coverage, and replicates


class Bent:
    """A world that no line fits: a sine in one feature, a step in another, and a constant."""

    dim = 3

    def means(self, features: FloatArray) -> FloatArray:
        x = np.sqrt(3.0) * features
        wave: FloatArray = 0.25 + 0.25 * np.sin(4.0 * x[:, 0])
        return wave + np.where(x[:, 1] > 0.2, 0.3, 0.0)

    def arms(self, rng: np.random.Generator, n: int) -> FloatArray:
        bound = 3.0**-0.5
        return np.column_stack([rng.uniform(-bound, bound, (n, 2)), np.full(n, bound)])

    def rewards(self, rng: np.random.Generator, features: FloatArray) -> FloatArray:
        noise: FloatArray = rng.normal(0.0, NOISE, len(features))
        return self.means(features) + noise

    def scenes(self, rounds: int, replicate: int) -> Iterator[Scene]:
        rng = np.random.default_rng([replicate, 7])
        for _ in range(rounds):
            X = self.arms(rng, 10)
            latency = Setup(base=4.0, setup=6.0, each=2.0)
            yield Scene(Round(X, latency), self.means(X), self.rewards(rng, X))


def regressors() -> dict[str, Any]:
    """What is tried, by a name for the tables; scikit-learn is an extra, and has no types."""
    linear = import_module("sklearn.linear_model")
    polynomials = import_module("sklearn.preprocessing").PolynomialFeatures(3, include_bias=False)
    boosting = import_module("sklearn.ensemble").GradientBoostingRegressor
    chain = import_module("sklearn.pipeline").make_pipeline
    return {
        "ridge": linear.Ridge(1e-3),
        "cubic ridge": chain(polynomials, linear.Ridge(1e-2)),
        "kernel ridge": import_module("sklearn.kernel_ridge").KernelRidge(kernel="rbf", gamma=6.0),
        "tree, 8 leaves": import_module("sklearn.tree").DecisionTreeRegressor(
            max_leaf_nodes=8, min_samples_leaf=5
        ),
        "boosting": boosting(n_estimators=30, min_samples_leaf=10),
        "5 neighbours": import_module("sklearn.neighbors").KNeighborsRegressor(5),
    }


def table(head: list[str], rows: list[list[str]]) -> str:
    """Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def taught(belief: Belief, rows: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Fresh arms and their means, once `belief` has learned `rows` rows."""
    rng, world = np.random.default_rng([seed, rows]), Bent()
    X = world.arms(rng, rows)
    belief.learn(X, world.rewards(rng, X))
    arms = world.arms(rng, ARMS)
    return arms, world.means(arms)


def ranks(values: FloatArray) -> FloatArray:
    return np.argsort(np.argsort(values)).astype(np.float64)


def cover(make: Callable[..., Belief], rows: int) -> tuple[str, str]:
    """The share of fresh arms whose mean is below `upper`, and how far that is above `mean`."""
    covered, widths = [], []
    for seed in range(SEEDS):
        belief = make(seed=seed)
        arms, means = taught(belief, rows, seed)
        upper = belief.upper(arms)
        covered.append(np.mean(upper >= means))
        widths.append(np.mean(upper - belief.mean(arms)))
    return f"{np.mean(covered):.2f}", f"{np.mean(widths):.2f}"


def coverage() -> str:
    """`upper`, `upper_exact` and `Ensemble.upper` on the same rows and arms."""
    lines = []
    for name, regressor in regressors().items():
        if name == "5 neighbours":
            continue
        for rows in (50, 200, 1000):
            ours, ensemble = (
                cover(partial(kind, 3, regressor, noise=NOISE, mean_bound=1.0), rows)
                for kind in (Regression, Ensemble)
            )
            small = rows <= 200 and name != "boosting"
            exact = compare_with_exact(regressor, rows) if small else [""] * 3
            lines.append([name, str(rows), *ours, *exact, *ensemble])
    head = ["regressor", "rows", "`upper`", "width", "exact", "width", "rank correlation"]
    return table([*head, "`Ensemble`", "width"], lines)


def compare_with_exact(regressor: Any, rows: int) -> list[str]:
    """Coverage and width of `upper_exact`, and how the widths of `upper` rank beside its."""
    covered, widths, correlations = [], [], []
    for seed in range(SEEDS):
        belief = Regression(3, regressor, noise=NOISE, mean_bound=1.0, seed=seed)
        arms, means = taught(belief, rows, seed)
        exact, mean = belief.upper_exact(arms), belief.mean(arms)
        covered.append(np.mean(exact >= means))
        widths.append(np.mean(exact - mean))
        both = np.corrcoef(ranks(exact - mean), ranks(belief.upper(arms) - mean))
        correlations.append(both[0, 1])
    return [f"{np.mean(found):.2f}" for found in (covered, widths, correlations)]


def cost(make: Callable[[Any], Belief], names: tuple[str, ...]) -> str:
    """Seconds of an epoch, and microseconds per row learned and per round scored."""
    lines, arms = [], Bent().arms(np.random.default_rng(0), 10)
    for name in names:
        for rows in (1_000, 10_000) if name == "boosting" else (1_000, 10_000, 100_000):
            belief = make(regressors()[name])
            taught(belief, rows, 0)
            start = time.process_time()
            belief.upper(arms)
            fitted = time.process_time() - start
            repeats = 30
            start = time.process_time()
            for _ in range(repeats):
                belief.upper(arms)
            scored = (time.process_time() - start) / repeats
            per_row = 4e6 * fitted / rows  # the next fit is a quarter more rows away
            lines.append([name, f"{rows:,}", f"{fitted:.2f}", f"{per_row:.0f}",
                          f"{1e6 * scored:.0f}"])  # fmt: skip
    head = ["regressor", "rows", "s per epoch", "µs per row learned, amortised"]
    return table([*head, "µs to score 10 arms"], lines)


def shares(policies: Mapping[str, Callable[[], COAF]], rounds: int, replicates: int) -> str:
    """Reward per second as a share of Γ*, in the first and in the second half of the rounds."""
    world = Bent()
    best = optimum(world, rounds=4000).rate
    lines = []
    for name, make in policies.items():
        halves = []
        for replicate in range(replicates):
            log = list(play(make(), world, rounds=rounds, replicate=replicate))
            for half in (log[: rounds // 2], log[rounds // 2 :]):
                seconds = sum(row["seconds"] for row in half)
                halves.append(sum(row["mean"] for row in half) / seconds / best)
        found = np.reshape(halves, (replicates, 2)).mean(axis=0)
        lines.append([name, *(f"{100 * share:.0f} %" for share in found)])
    return table(["belief", f"first {rounds // 2} rounds", f"last {rounds // 2}"], lines)


def policies(beliefs: Mapping[str, Callable[[], Belief]]) -> dict[str, Callable[[], COAF]]:
    """The yardsticks, and COAF with each of these beliefs."""

    def with_belief(make: Callable[[], Belief], index: Index) -> Callable[[], COAF]:
        return lambda: COAF(belief=make(), index=index, draws=0)

    result: dict[str, Callable[[], COAF]] = {
        "the true means": lambda: COAF(index=Truth(Bent().means)),
        "`ScaleFree`": lambda: COAF(dim=3),
    }
    for name, make in beliefs.items():
        index: Index = Thompson() if "Thompson" in name else Upper()
        result[name] = with_belief(make, index)
    return result


def main() -> None:
    found = regressors()
    tree, boosting, cubic = (found[n] for n in ("tree, 8 leaves", "boosting", "cubic ridge"))
    beliefs: dict[str, Callable[[], Belief]] = {
        "tree": lambda: Regression(3, tree, noise=NOISE, mean_bound=1.0),
        "tree, β/10": lambda: Regression(3, tree, noise=NOISE, mean_bound=1.0, beta=0.6 * NOISE**2),
        "tree, β/10, Thompson": lambda: Regression(
            3, tree, noise=NOISE, mean_bound=1.0, beta=0.6 * NOISE**2
        ),
        "cubic ridge, β/10": lambda: Regression(
            3, cubic, noise=NOISE, mean_bound=1.0, beta=0.6 * NOISE**2
        ),
        "boosting, β/10": lambda: Regression(
            3, boosting, noise=NOISE, mean_bound=1.0, beta=0.6 * NOISE**2
        ),
    }
    parts = [
        "Share of fresh arms whose true mean is at most the bound (0.95 or more is meant), and how "
        "far the bound is above the estimate, on average:",
        coverage(),
        "Cost with 8 copies, one thread:",
        cost(
            lambda one: Regression(3, one, noise=NOISE, mean_bound=1.0),
            ("tree, 8 leaves", "boosting"),
        ),
        "Reward per second as a share of the optimum Γ*, played by COAF:",
        shares(policies(beliefs), 300, 2),
    ]
    (DOCS / "regression_results.md").write_text("\n\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
