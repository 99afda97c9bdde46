"""Which radius, which rate: the study behind the default. Writes docs/study_results.md.

Every number on that page comes from this script: `make study` (about four minutes on two cores).
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

import coaf
from coaf.bandit.arrays import BoolArray, FloatArray
from coaf.bandit.problem import Decision
from coaf.bandit.verbs import Policy
from coaf.worlds import Synthetic, compare, optimum
from coaf.worlds.classic import Types
from coaf.worlds.play import play

DOCS = Path(__file__).resolve().parent.parent / "docs"


def spread(count: int, low: float, high: float) -> FloatArray:
    """Means between low and high."""
    return np.random.default_rng(5).uniform(low, high, size=count)


def worlds() -> dict[str, Synthetic | Types]:
    """Problems that pull in different directions: noise, dimension, base rates, timing, rewards."""
    return {
        "sphere": Synthetic(dim=10, seed=3),
        "quiet": Synthetic(dim=10, noise=0.1, seed=3),
        "noisy": Synthetic(dim=10, noise=1.0, seed=3),
        "few features": Synthetic(dim=3, seed=3),
        "many features": Synthetic(dim=20, seed=3),
        "mostly good": Synthetic(dim=10, offset=0.5, seed=3),
        "faint": Synthetic(dim=10, norm=0.5, seed=3),
        "microscope": Synthetic(
            dim=5,
            arms=(5, 25),
            base=(10.0, 14.0),
            setup=52.0,
            each=6.7,
            noise=0.4,
            offset=0.15,
            seed=3,
        ),
        "types": Types(spread(10, -0.5, 0.9), noise=0.5),
        "many noisy types": Types(spread(30, -0.5, 0.9), noise=1.0),
        "rare successes": Types(spread(10, 0.0, 0.3)),
        "slow successes": Types(spread(30, 0.0, 0.5), base=45.0, each=5.0),
    }


def norm_of(world: Synthetic | Types) -> float:
    """A bound on ‖θ*‖ that holds."""
    return max(1.0, float(np.linalg.norm(world.theta)))


class MeanScored(coaf.COAF):
    """Chooses optimistically, but scores the rate by means: the combination to avoid."""

    def _spend(self, decision: Decision, executed: BoolArray, seconds: float | None) -> float:
        assert self.belief is not None
        spent = super()._spend(decision, executed, seconds)
        assert self._visit is not None
        means = self.belief.mean(decision.round.features[executed])
        self._visit.spent_reward = float(means.sum())
        self._rate.update(self._visit)
        return spent


def tuned(dim: int, **settings: Any) -> coaf.Linear:
    return coaf.Linear(dim, within="ellipsoid", **settings)


def policies(dim: int, norm: float) -> dict[str, Policy]:
    """The paper's choices, each changed in turn, with a norm bound that holds."""
    valid: dict[str, Any] = {"norm_bound": norm, "mean_bound": 1.0}
    upper: dict[str, Policy] = {
        "as printed": coaf.COAF.paper(dim, **valid),
        "as printed, running ratio": coaf.COAF(
            belief=coaf.COAF.paper(dim, **valid).belief, rate=coaf.Renewal()
        ),
        "determinant radius": coaf.COAF(
            belief=coaf.Linear(dim, delta=0.001, **valid), rate=coaf.RobbinsMonro()
        ),
        "determinant radius, running ratio": coaf.COAF(
            belief=coaf.Linear(dim, delta=0.001, **valid)
        ),
    }
    for scale in (0.3, 0.2, 0.1, 0.05, 0.02):
        for ridge in (1.0, 0.1):
            upper[f"{scale:g} of it, λ = {ridge:g}, running ratio"] = coaf.COAF(
                belief=tuned(dim, scale=scale, regularization=ridge)
            )
    tenth: dict[str, Any] = {"scale": 0.1, "regularization": 0.1}
    upper["0.1, λ = 0.1, Robbins-Monro"] = coaf.COAF(
        belief=tuned(dim, **tenth), rate=coaf.RobbinsMonro()
    )
    upper["0.1, λ = 0.1, memory of 50"] = coaf.COAF(
        belief=tuned(dim, **tenth), rate=coaf.MemoryRoot(size=50)
    )
    upper["0.1, λ = 0.1, within the ball"] = coaf.COAF(belief=coaf.Linear(dim, **tenth, **valid))
    upper["0.1, λ = 0.1, Thompson"] = coaf.COAF(belief=tuned(dim, **tenth), index=coaf.Thompson())
    upper["0.1, λ = 0.1, rate by means"] = MeanScored(belief=tuned(dim, **tenth))
    upper["determinant radius, rate by means"] = MeanScored(
        belief=coaf.Linear(dim, delta=0.001, within="ellipsoid", **valid)
    )
    upper["greedy means"] = coaf.COAF(belief=tuned(dim), index=coaf.Mean())
    return upper


def coverage(
    belief: coaf.Linear, world: Synthetic | Types, *, rounds: int, replicates: int
) -> list[float]:
    """How often θ* is in the ellipsoid at all times, and an arm's estimate is optimistic."""
    always, optimistic, arms = 0, 0, 0
    for replicate in range(replicates):
        mine = coaf.Linear.restore(belief.state())
        policy, inside = coaf.COAF(belief=mine), True
        scenes = world.scenes(rounds, replicate)
        for scene, _ in zip(
            scenes, play(policy, world, rounds=rounds, replicate=replicate), strict=True
        ):
            error = mine.theta - world.theta
            inside = inside and float(error @ mine.precision @ error) <= mine.radius**2
            upper = mine.upper(scene.round.features)
            optimistic += int((upper >= np.minimum(scene.means, mine.mean_bound) - 1e-9).sum())
            arms += scene.round.n
        always += inside
    return [always / replicates, optimistic / arms]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--replicates", type=int, default=24)
    parser.add_argument("--out", type=Path, default=DOCS / "study_results.md")
    options = parser.parse_args()
    regret: dict[str, dict[str, tuple[float, float]]] = {}
    ends: dict[str, dict[str, float]] = {}
    stars = {}
    for title, world in worlds().items():
        best = optimum(world)
        stars[title] = best.rate
        everyone = policies(world.dim, norm_of(world))
        slow = {n: p for n, p in everyone.items() if isinstance(p, MeanScored)}
        quick = {n: p for n, p in everyone.items() if n not in slow}
        for group in (quick, slow):  # apart, so that those in Python do not hold up the compiled
            result = compare(
                group,
                world,
                rounds=options.rounds,
                replicates=options.replicates,
                gamma_star=best.rate,
            )
            for name in group:
                last = result.paired.sel(policy=name).isel(round=-1).values
                error = float(last.std() / np.sqrt(len(last)))
                regret.setdefault(name, {})[title] = (float(last.mean()), error)
                rate = float(result.rate.sel(policy=name).isel(round=-1).mean())
                ends.setdefault(name, {})[title] = rate / best.rate
        print(f"{title}: done", file=sys.stderr, flush=True)
    covered = {}
    for title in ("sphere", "noisy", "microscope", "many noisy types"):
        world = worlds()[title]
        norm = norm_of(world)
        for name, belief in {
            "as printed": coaf.Linear(
                world.dim, radius="printed", within="ellipsoid", norm_bound=norm
            ),
            "determinant radius": coaf.Linear(world.dim, within="ellipsoid", norm_bound=norm),
            "default": coaf.Linear.tuned(world.dim),
        }.items():
            covered[title, name] = coverage(belief, world, rounds=500, replicates=20)
        print(f"{title}: coverage done", file=sys.stderr, flush=True)
    options.out.write_text(page(regret, ends, stars, covered, options))


def page(
    regret: dict[str, dict[str, tuple[float, float]]],
    ends: dict[str, dict[str, float]],
    stars: dict[str, float],
    covered: dict[tuple[str, str], list[float]],
    options: argparse.Namespace,
) -> str:
    titles = list(stars)
    least = {t: min(regret[n][t][0] for n in regret) for t in titles}
    ratio = {n: [regret[n][t][0] / least[t] for t in titles] for n in regret}
    order = sorted(regret, key=lambda n: float(np.mean(np.log(ratio[n]))))
    lines = [
        f"Paired regret after {options.rounds} rounds, mean over {options.replicates} replicates "
        "with its standard error. *Overall* is the geometric mean over worlds of the regret "
        "relative to the best row, *worst* the largest of these ratios, and "
        "*rate* the mean over worlds of the last rate relative to Γ*.",
        "",
        "| policy | overall | worst | rate | " + " | ".join(titles) + " |",
        "|---|---|---|---|" + "---|" * len(titles),
    ]
    for name in order:
        cells = [f"{regret[name][t][0]:.0f} ± {regret[name][t][1]:.0f}" for t in titles]
        overall = float(np.exp(np.mean(np.log(ratio[name]))))
        rate = float(np.mean([ends[name][t] for t in titles]))
        row = f"| {name} | {overall:.2f} | {max(ratio[name]):.1f} | {rate:.2f} | "
        lines.append(row + " | ".join(cells) + " |")
    lines += [
        "| *Γ\\** | | | | " + " | ".join(f"{stars[t]:.4f}" for t in titles) + " |",
        "",
        "Coverage over 20 replicates of 500 rounds at δ = 0.05: how often θ* was in the "
        "ellipsoid at all times, and the share of arms whose estimate was at least their mean.",
        "",
        "| world | set | θ* inside at all times | arms estimated optimistically |",
        "|---|---|---|---|",
    ]
    for (title, name), (always, optimistic) in covered.items():
        lines.append(f"| {title} | {name} | {always:.0%} | {optimistic:.1%} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
