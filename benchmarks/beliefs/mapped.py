"""Feature maps before a belief: coverage, what they earn, what they cost.

Writes docs/beliefs/mapped_results.md. Every number on that page comes from this script (about half
a minute on one core).
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from kernel import DOCS, Bumps, examples, seconds_of, shares, times_of

import coaf
from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.belief import Belief
from coaf.bandit.beliefs.linear import Linear
from coaf.bandit.beliefs.mapped import Mapped
from coaf.bandit.policies.policy import Policy


def maps() -> dict[str, Any]:
    """From too simple to rich enough."""
    approximation, pipeline, preprocessing = (
        import_module(f"sklearn.{name}")
        for name in ("kernel_approximation", "pipeline", "preprocessing")
    )

    def scaled(following: Any) -> Any:
        return pipeline.make_pipeline(preprocessing.StandardScaler(), following)

    return {
        "polynomials of degree 2": scaled(preprocessing.PolynomialFeatures(2)),
        "polynomials of degree 6": scaled(preprocessing.PolynomialFeatures(6)),
        "`Nystroem`, 60": scaled(approximation.Nystroem(gamma=2.0, n_components=60)),
        "`RBFSampler`, 200": scaled(approximation.RBFSampler(gamma=2.0, n_components=200)),
    }


def coverage(seen: FloatArray) -> list[str]:
    """Share of arms whose mean is below upper, after 300 rows, for two truths and two radii."""
    lines = [
        "| map | D | θ·φ(x), `Linear` | θ·φ(x), `tuned` | bumps, `Linear` | bumps, `tuned` |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    world = Bumps()
    for name, transformer in maps().items():
        found: list[list[float]] = []
        for seed in range(10):
            rng = np.random.default_rng(seed)
            X, Z = world.arms(rng, 300), world.arms(rng, 200)
            noise, shares_below = world.noise * rng.standard_normal(300), []
            for curved in (False, True):
                for make in (Linear, Linear.tuned):
                    belief = Mapped.fitted(transformer, seen, partial(make, noise=world.noise))
                    theta = rng.standard_normal(belief.belief.dim)
                    theta /= np.linalg.norm(theta)
                    inside, asked = belief.map(X) @ theta, belief.map(Z) @ theta
                    truth, ask = (world.means(X), world.means(Z)) if curved else (inside, asked)
                    belief.learn(X, truth + noise)
                    shares_below.append(float(np.mean(ask <= belief.upper(Z) + 1e-12)))
            found.append(shares_below)
        cells = " | ".join(f"{share:.1%}" for share in np.mean(found, axis=0))
        lines.append(f"| {name} | {belief.belief.dim} | {cells} |")
    return lines


def costs(seen: FloatArray) -> list[str]:
    """Time for rows and rounds."""
    lines = [
        "| map | map 20 arms | learn one row | learn 5, score 20 | after 10,000 rows |",
        "|---|---:|---:|---:|---:|",
    ]
    X = Bumps().arms(np.random.default_rng(0), 10_000)
    y = Bumps().means(X)
    for name, transformer in maps().items():
        belief = Mapped.fitted(transformer, seen, Linear.tuned)
        mapping = seconds_of(lambda i, belief=belief: belief.map(X[i : i + 20]), 200)  # type: ignore[misc]
        learn, turn, _ = times_of(belief, X, y)
        belief.learn(X, y)
        late = times_of(belief, X, y)[1]
        cells = " | ".join(f"{1e3 * t:.2f} ms" for t in (mapping, learn, turn, late))
        lines.append(f"| {name} | {cells} |")
    return lines


def main() -> None:
    """Measure and write."""
    world = Bumps()
    seen = examples(world, 200)[0]

    def policy(transformer: Any, make: Callable[[int], Belief]) -> Policy:
        return coaf.COAF(belief=Mapped.fitted(transformer, seen, make))

    policies: dict[str, Callable[[], Policy]] = {"none, `ScaleFree`": lambda: coaf.COAF(dim=3)}
    for name, transformer in maps().items():
        policies[f"{name}, `Linear.tuned`"] = partial(policy, transformer, Linear.tuned)
    text = [
        "**Coverage.** The share of arms whose mean reward is below `upper` after 300 rows (10 "
        "replicates, 200 arms, noise 0.3). Where the truth is θ·φ(x) with ‖θ‖ = 1, `Linear` "
        "promises 95 % for all arms and times at once; where it is not, nothing.",
        *["", *coverage(seen), ""],
        "**A world that no line fits** (that of the [kernel belief](kernel.md); 600 rounds, 3 "
        "replicates): reward per second as a share of the best possible.",
        *["", *shares(world, policies, rounds=600, replicates=3), ""],
        "**Cost**: processor time on one core, `Linear.tuned` behind the map.",
        *["", *costs(seen), ""],
    ]
    (DOCS / "mapped_results.md").write_text("\n".join(text))


if __name__ == "__main__":
    main()
