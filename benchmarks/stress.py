"""How the default does in worlds that are ordinary somewhere. Writes docs/stress_results.md.

Every number on that page comes from this script (about fifteen minutes on two cores).
"""

import argparse
import os
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

import coaf
from coaf.bandit.arrays import FloatArray
from coaf.bandit.problem import Decision, Round
from coaf.bandit.verbs import Policy
from coaf.worlds import optimum, play
from coaf.worlds.ordinary import (
    Ordinary,
    coins,
    counts,
    exponential,
    linear,
    lognormal,
    normal_features,
    normal_noise,
    of_type,
    pareto,
    raw_features,
    stars,
    student,
    times_change,
    times_drift,
    types,
)

DOCS = Path(__file__).resolve().parent.parent / "docs"
USUAL = (0.4, -0.3, 0.2, 0.1, 0.0)
LATE, LATE_DEV = (0.1, 0.2, 0.3, 0.35, 0.15, 0.9), (0.05, 0.4, 0.3, 0.2, 0.1, 0.8)


@dataclass(frozen=True)
class Case:
    """A world, how late its rewards come, and which rounds count."""

    world: Ordinary
    late: int = 0
    window: tuple[int, int] = (750, 1500)
    stationary: bool = True


def usual(noise: float = 0.5, constant: float = 0.2, **settings: object) -> Ordinary:
    made = Ordinary(5, normal_features(5), linear(USUAL, constant), normal_noise(noise))
    return replace(made, **settings)  # type: ignore[arg-type]


def pair(bad: float, good: float) -> Ordinary:
    return Ordinary(
        2,
        lambda rng, j, n: np.eye(2),
        of_type((bad, good)),
        coins,
        arms=(2, 2),
        base=(1.0, 1.0),
        actions=coaf.OneOf(),
    )


def negative(constant: float, **settings: object) -> Ordinary:
    made = Ordinary(3, normal_features(3), linear((0.4, -0.3, 0.2), constant), normal_noise(0.5))
    return replace(made, **settings)  # type: ignore[arg-type]


def skewed(rewards: Callable[..., FloatArray]) -> Ordinary:
    means = exponential(linear((0.4, -0.3, 0.2, 0.2), -1.0))
    return Ordinary(4, normal_features(4), means, rewards)


def late_type(means: tuple[float, ...], at: int) -> Ordinary:
    return Ordinary(6, types(means, late=at), of_type(means), coins, arms=(10, 10), base=(5.0, 5.0))


# Radius and rate were chosen on these.
CHOSEN_ON: dict[str, Case] = {
    "star ratings": Case(stars(2.0, 4.8, base=3.0, each=6.0, seed=7)),
    "raw features": Case(raw_features((-300.0, 1e-4, 2e4), (1.0, 3e-5, 4e3))),
    "two arms": Case(pair(0.3, 0.7)),
    "a good type appears": Case(late_type(LATE_DEV, 400)),
    "rewards 200 rounds late": Case(usual(0.3), late=200),
    "negative rewards": Case(negative(-0.8)),
    "negative, one of": Case(negative(-0.8, actions=coaf.OneOf())),
    "heavy tails": Case(
        Ordinary(4, normal_features(4), linear((0.4, -0.3, 0.2, 0.2), 0.2), student(2.0, 0.3))
    ),
    "skewed rewards": Case(skewed(lognormal(1.0))),
    "counts": Case(skewed(counts(0.0))),
    "one reward of 1e5": Case(usual(0.3, spoiled=60)),
    "times 3 x dearer": Case(usual(pace=times_change(1500, 3.0)), 0, (1500, 1700), False),
    "times 3 x cheaper": Case(usual(pace=times_change(1500, 1 / 3)), 0, (1500, 1700), False),
    "drifting times": Case(usual(pace=times_drift(0.8, 800.0)), 0, (750, 1500), False),
}

# These were looked at once all was chosen.
HELD_OUT: dict[str, Case] = {
    "star ratings": Case(stars(1.6, 4.5, base=2.0, each=10.0, seed=8)),
    "raw features": Case(raw_features()),
    "two arms": Case(pair(0.5, 0.9)),
    "a good type appears": Case(late_type(LATE, 500)),
    "rewards 200 rounds late": Case(usual(), late=200),
    "negative rewards": Case(negative(-0.5)),
    "negative, one of": Case(negative(-0.5, actions=coaf.OneOf())),
    "heavy tails": Case(skewed(pareto(2.2))),
    "skewed rewards": Case(skewed(lognormal(1.3))),
    "counts": Case(skewed(counts(0.25))),
    "one reward of 1e5": Case(usual(spoiled=100)),
    "times 5 x dearer": Case(usual(pace=times_change(1500, 5.0)), 0, (1500, 1700), False),
    "times 5 x cheaper": Case(usual(pace=times_change(1500, 0.2)), 0, (1500, 1700), False),
    "exposures 5 x dearer": Case(
        usual(setup=10.0, pace=times_change(1500, 5.0)), 0, (1500, 1700), False
    ),
    "drifting times": Case(usual(pace=times_drift(1.0, 600.0)), 0, (750, 1500), False),
}
SETS = {"chosen on": CHOSEN_ON, "held out": HELD_OUT}


class Told(coaf.COAF):
    """The paper's policy for one who knows all: features and rewards in units of at most 1."""

    def __init__(self, case: Case) -> None:
        scenes = list(case.world.scenes(200, 2**31 - 3))
        X = np.concatenate([s.round.features for s in scenes])
        self.middle, self.spread = X.mean(axis=0), X.std(axis=0)
        self.longest = 3.0 * np.sqrt(X.shape[1])
        mu = np.concatenate([s.means for s in scenes])
        self.size = float(np.abs(mu).max())
        noise = float(np.std(np.concatenate([s.rewards - s.means for s in scenes])))
        paper = coaf.COAF.paper(
            X.shape[1] + 1,
            noise=noise / self.size,
            norm_bound=2.0 * np.sqrt(X.shape[1]),
            mean_bound=1.0,
        )
        super().__init__(belief=paper.belief, rate=paper._rate)

    def decide(self, round: Round) -> Decision:
        Z = np.clip((round.features - self.middle) / self.spread / self.longest, -0.5, 0.5)
        Z = np.column_stack([Z, np.full(len(Z), 0.5)])
        Z /= np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1.0)
        return super().decide(Round(Z, round.latency, round.actions))

    def learn(self, decision: Decision, arms: FloatArray, rewards: FloatArray) -> None:  # type: ignore[override]
        super().learn(decision, arms, np.asarray(rewards) / self.size)


POLICIES: dict[str, Callable[[Case], Policy]] = {
    "default": lambda case: coaf.COAF(case.world.dim),
    "for units of 1": lambda case: coaf.COAF(
        belief=coaf.Linear.tuned(case.world.dim), rate=coaf.Renewal()
    ),
    "paper, told all": Told,
    "take all": lambda case: coaf.TakeAll(),
}


def scaled(case: Case, units: tuple[float, float, float]) -> Case:
    return replace(case, world=case.world.scaled(*units))


@cache
def best_rate(where: str, name: str) -> float:
    """Γ* of the rounds that count, in units of 1."""
    case = SETS[where][name]
    first, last = case.window
    if case.stationary or "drift" in name:
        world = replace(case.world, spoiled=None)
        if "type" in name:
            world = replace(world, features=types(LATE if where == "held out" else LATE_DEV))
        if not case.stationary:  # all times of a period alike
            samples = [optimum(_shifted(world, t), rounds=500).rate for t in range(first, last, 25)]
            paces = [world.pace(t) for t in range(first, last, 25)]
            # reward per second over the whole window: each stretch weighted by its time
            return float(np.sum(np.array(samples) * paces) / np.sum(paces))
        return optimum(world, rounds=6000).rate
    return optimum(_shifted(case.world, first), rounds=6000).rate


def _shifted(world: Ordinary, at: int) -> Ordinary:
    pace = world.pace(at)
    return replace(world, pace=lambda number: pace)


def share(where: str, name: str, who: str, units: tuple[float, float, float], r: int) -> float:
    """Reward per second in the rounds that count, over Γ*; nan where a policy refused."""
    case = scaled(SETS[where][name], units)
    first, last = case.window
    star = best_rate(where, name) * units[0] / units[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            policy = POLICIES[who](case)
            rows = list(play(policy, case.world, rounds=last, replicate=r, late=case.late))[first:]
        except ValueError:
            return float("nan")
    got = float(sum(row["mean"] for row in rows) / sum(row["seconds"] for row in rows))
    return got / star if star > 0.0 else 2.0 - got / star


def best_cut(where: str, name: str) -> float:
    """The share of the best fixed cut on true means, chosen in hindsight."""
    case = SETS[where][name]
    first, last = case.window
    scenes = [s for r in range(6) for s in list(case.world.scenes(last, r))[first:]]
    cuts = np.quantile(np.concatenate([s.means for s in scenes]), np.linspace(0.0, 0.98, 50))
    results = []
    for cut in [-np.inf, *cuts]:
        reward = seconds = 0.0
        for s in scenes:
            chosen = s.means > cut
            if not s.round.actions.allows(chosen):
                chosen = np.arange(s.round.n) == int(s.means.argmax())
            reward += float(s.means[chosen].sum())
            seconds += s.round.latency.seconds(chosen)
        results.append(reward / seconds)
    star = best_rate(where, name)
    best = max(results)
    return best / star if star > 0.0 else 2.0 - best / star


def stuck(replicates: int, workers: int) -> tuple[int, int]:
    """In how many replicates the better of two arms is not the usual one by the end."""
    with ProcessPoolExecutor(workers) as pool:
        found = list(pool.map(_is_stuck, range(replicates), chunksize=10))
    return sum(found), replicates


def _is_stuck(replicate: int) -> bool:
    world = HELD_OUT["two arms"].world
    rows = play(coaf.COAF(2), world, rounds=2000, replicate=replicate)
    return sum(float(row["mean"]) == 0.9 for row in list(rows)[1000:]) < 500


UNITS = {
    "1": (1.0, 1.0, 1.0),
    "rewards x 0.001": (1e-3, 1.0, 1.0),
    "rewards x 1000": (1e3, 1.0, 1.0),
    "seconds x 1000": (1.0, 1e3, 1.0),
    "a feature x 0.001": (1.0, 1.0, 1e-3),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=24)
    parser.add_argument("--first", type=int, default=0, help="The first replicate.")
    parser.add_argument("--stuck", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", choices=list(SETS), help="One of the two sets.")
    parser.add_argument("--out", type=Path, default=DOCS / "stress_results.md")
    options = parser.parse_args()
    chosen = [options.only] if options.only else list(SETS)
    lines: list[str] = []
    with ProcessPoolExecutor(options.workers) as pool:
        for where in chosen:
            lines += section(pool, where, options)
    if "held out" in chosen and options.stuck:
        count, of = stuck(options.stuck, options.workers)
        lines.append(
            "Two arms, successes with 0.5 and 0.9, one of them a round: the better one is taken in "
            f"fewer than half of rounds 1,001 to 2,000 in {count} of {of} replicates."
        )
    options.out.write_text("\n".join(lines) + "\n")


def section(pool: ProcessPoolExecutor, where: str, options: argparse.Namespace) -> list[str]:
    replicates = range(options.first, options.first + options.replicates)
    titles = [*(f"default, {unit}" if unit != "1" else "default" for unit in UNITS)]
    titles += [name for name in POLICIES if name != "default"] + ["best fixed cut"]
    lines = [
        f"**Worlds that were {where}**, {options.replicates} replicates.",
        "",
        f"| world | {' | '.join(titles)} |",
        "|---|" + "---|" * len(titles),
    ]
    for name in SETS[where]:
        asked = [("default", units) for units in UNITS.values()]
        asked += [(who, UNITS["1"]) for who in POLICIES if who != "default"]
        cells = []
        for who, units in asked:
            jobs = [pool.submit(share, where, name, who, units, r) for r in replicates]
            shares = np.array([job.result() for job in jobs])
            error = shares.std(ddof=1) / np.sqrt(len(shares))
            refused = bool(np.isnan(shares).any())
            cells.append("refused" if refused else f"{shares.mean():.3f} ± {error:.3f}")
        cells.append(f"{best_cut(where, name):.3f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
        print(where, lines[-1], file=sys.stderr, flush=True)
    return [*lines, ""]


if __name__ == "__main__":
    main()
