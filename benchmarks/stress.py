"""How the default does in worlds that are ordinary somewhere. Writes docs/stress_results.md.

Every number on that page comes from this script: `make stress` (about a quarter of an hour on two
cores).
"""

import argparse
import os
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import numpy as np

import coaf
from coaf.bandit.arrays import FloatArray
from coaf.bandit.policies.policy import Policy
from coaf.bandit.problem import Decision, Round
from coaf.bandit.select import best
from coaf.worlds import optimum, play
from ordinary import (
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
GOAL, CHANGE_GOAL = 0.97, 0.85  # shares of Γ*: stationary worlds, after times have changed
CHANGE = "times 5 x dearer"


@dataclass(frozen=True)
class Case:
    """A world, how late its rewards come, which rounds count, and whether it stays as it is."""

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


# Width and rate were chosen on these.
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
    "rounds in runs of 60": Case(usual(alike=60, shift=(1.0,) * 5)),
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
    CHANGE: Case(usual(pace=times_change(1500, 5.0)), 0, (1500, 1700), False),
    "times 5 x cheaper": Case(usual(pace=times_change(1500, 0.2)), 0, (1500, 1700), False),
    "times 5 x dearer, with a setup": Case(
        usual(setup=10.0, pace=times_change(1500, 5.0)), 0, (1500, 1700), False
    ),
    "rounds in runs of 25": Case(usual(alike=25, shift=(0.7,) * 5)),
    "rounds in runs of 100": Case(usual(alike=100, shift=(1.0,) * 5)),
    "drifting times": Case(usual(pace=times_drift(1.0, 600.0)), 0, (750, 1500), False),
}


def markers(rng: np.random.Generator, mu: FloatArray) -> FloatArray:
    """Noise, and in one of a hundred rewards a marker."""
    return np.where(rng.random(len(mu)) < 0.01, 1e5, mu + 0.5 * rng.normal(size=len(mu)))


# Where what the default assumes does not hold.
WEAK: dict[str, Case] = {
    "1 reward in 100 is 1e5": Case(usual(rewards=markers)),
    "a product of two features": Case(
        Ordinary(2, normal_features(2), lambda X: 0.2 + 0.4 * X[:, 0] * X[:, 1], normal_noise(0.5))
    ),
}
SETS = {"held out": HELD_OUT, "chosen on": CHOSEN_ON, "weak": WEAK}
TITLES = {
    "held out": "Held out: looked at once all was chosen",
    "chosen on": "Chosen on",
    "weak": "What the default does not cover",
}


def settled(case: Case) -> Ordinary:
    """The world as it is from the first round that counts on, at a pace of 1."""
    looks, first = case.world.features, case.window[0]
    return replace(
        case.world,
        features=lambda rng, j, n: looks(rng, j + first, n),
        pace=lambda number: 1.0,
        spoiled=None,
    )


class Told(coaf.COAF):
    """A policy for one who knows all: features, and rewards unless said, in units of at most 1."""

    def __init__(self, case: Case, *, paper: bool) -> None:
        scenes = list(settled(case).scenes(200, 2**31 - 3))
        X = np.concatenate([s.round.features for s in scenes])
        self.middle, self.spread = X.mean(axis=0), X.std(axis=0)
        self.longest = 3.0 * np.sqrt(X.shape[1])
        self.size, dim = 1.0, X.shape[1] + 1
        if not paper:
            super().__init__(belief=coaf.Linear.tuned(dim), rate=coaf.Renewal())
            return
        self.size = float(np.abs(np.concatenate([s.means for s in scenes])).max())
        noise = float(np.std(np.concatenate([s.rewards - s.means for s in scenes])))
        told = coaf.COAF.paper(
            dim,
            noise=noise / self.size,
            norm_bound=2.0 * np.sqrt(X.shape[1]),
            mean_bound=1.0,
        )
        super().__init__(belief=told.belief, rate=told.pricing)

    def decide(self, round: Round) -> Decision:
        Z = np.clip((round.features - self.middle) / self.spread / self.longest, -0.5, 0.5)
        Z = np.column_stack([Z, np.full(len(Z), 0.5)])
        Z /= np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1.0)
        return super().decide(Round(Z, round.latency, round.actions))

    def learn(self, decision: Decision, arms: FloatArray, rewards: FloatArray) -> None:  # type: ignore[override]
        super().learn(decision, arms, np.asarray(rewards) / self.size)


POLICIES: dict[str, Callable[[Case], Policy]] = {
    "default": lambda case: coaf.COAF(case.world.dim),
    "default of 0.1.0": partial(Told, paper=False),
    "paper": partial(Told, paper=True),
    "take all": lambda case: coaf.TakeAll(),
}
ONE = "1"
UNITS = {  # of rewards, seconds, the first feature
    ONE: (1.0, 1.0, 1.0),
    "rewards x 1e-6": (1e-6, 1.0, 1.0),
    "rewards x 0.001": (1e-3, 1.0, 1.0),
    "rewards x 1000": (1e3, 1.0, 1.0),
    "rewards x 1e6": (1e6, 1.0, 1.0),
    "seconds x 1e-6": (1.0, 1e-6, 1.0),
    "seconds x 1e6": (1.0, 1e6, 1.0),
    "a feature x 1e-6": (1.0, 1.0, 1e-6),
    "a feature x 1e6": (1.0, 1.0, 1e6),
}
Column = tuple[str, str]  # policy, units
COLUMNS: list[Column] = [(who, ONE) for who in POLICIES]
SCALES: list[Column] = [("default", unit) for unit in UNITS if unit != ONE]
OLD_SCALES: list[Column] = [("default of 0.1.0", f"rewards x {by}") for by in ("0.001", "1000")]


@cache
def best_rate(where: str, name: str) -> float:
    """Γ* of the rounds that count, at a pace of 1 and in units of 1."""
    world = settled(SETS[where][name])
    rounds = 6000 if world.alike == 1 else 60_000  # runs even out more slowly
    return optimum(world, rounds=rounds).rate


class Judge:
    """What share of Γ* choices in the rounds that count bring, less what is lost by chance.

    Reward lost beside the best choice in the same round, over what the time spent is worth.
    """

    def __init__(self, where: str, name: str, replicate: int) -> None:
        self.case = SETS[where][name]
        first, last = self.case.window
        self.scenes = list(self.case.world.scenes(last, replicate))[first:]
        star = best_rate(where, name)
        self.prices = np.array([star / self.case.world.pace(j) for j in range(first, last)])
        self.least = sum(
            best(float(price), s.means, s.round.latency, s.round.actions).gap
            for price, s in zip(self.prices, self.scenes, strict=True)
        )

    def share(self, rewards: FloatArray, seconds: FloatArray) -> float:
        lost = float((self.prices * seconds - rewards).sum()) - self.least
        return 1.0 - lost / float((np.abs(self.prices) * seconds).sum())

    def played(self, policy: str, units: str, replicate: int) -> float:
        of_rewards, of_seconds, _ = UNITS[units]
        case = replace(self.case, world=self.case.world.scaled(*UNITS[units]))
        first, last = case.window
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows = play(
                POLICIES[policy](case), case.world, rounds=last, replicate=replicate, late=case.late
            )
            kept = np.array([(row["mean"], row["seconds"]) for row in rows])[first:]
        return self.share(kept[:, 0] / of_rewards, kept[:, 1] / of_seconds)

    def cut(self, at: float) -> float:
        """The share of taking every arm whose true mean is above a cut, or the best arm."""
        kept = []
        for s in self.scenes:
            chosen = s.means > at
            if not s.round.actions.allows(chosen):
                chosen = np.arange(s.round.n) == int(s.means.argmax())
            kept.append((float(s.means[chosen].sum()), s.round.latency.seconds(chosen)))
        rewards, seconds = np.array(kept).T
        return self.share(rewards, seconds)


def cuts(where: str, name: str) -> FloatArray:
    """Thirty cuts from taking all to hardly anything."""
    scenes = settled(SETS[where][name]).scenes(200, 2**31 - 3)
    means = np.concatenate([s.means for s in scenes])
    return np.append(-np.inf, np.quantile(means, np.linspace(0.02, 0.98, 29)))


def measure(
    where: str, name: str, replicate: int, columns: list[Column], with_cuts: bool
) -> tuple[dict[Column, float], FloatArray]:
    """The shares of policies in a replicate, and those of fixed cuts."""
    judge = Judge(where, name, replicate)
    found = {column: judge.played(*column, replicate) for column in columns}
    fixed = [judge.cut(float(at)) for at in cuts(where, name)] if with_cuts else []
    return found, np.array(fixed)


def is_stuck(replicate: int) -> bool:
    """Whether the better of two arms is not the usual one by the end."""
    world = HELD_OUT["two arms"].world
    rows = play(coaf.COAF(2), world, rounds=2000, replicate=replicate)
    return sum(float(row["mean"]) == 0.9 for row in list(rows)[1000:]) < 500


def escape(failures: int, seed: int) -> tuple[int, float, bool]:
    """Rows until an arm that failed at first is tried again, the bound on them, and if it held.

    Two arms, one of them a round; the other succeeds with 0.5.
    """
    rng, eye, tried, rows, bound, held = np.random.default_rng(seed), np.eye(2), 0, 0, 0.0, True
    belief = coaf.ScaleFree(2)
    policy = coaf.COAF(belief=belief)
    while True:
        decision = policy.decide(coaf.Round(eye, coaf.Additive(1.0, 1.0), coaf.OneOf()))
        arm = int(decision.chosen.argmax())
        if tried == failures and arm == 1:
            return rows, bound, held
        if tried == failures and not decision.blind:
            size = belief.reward_size
            lead = float(decision.estimates[0] - belief.mean(eye)[1]) / size
            now = belief.patience(failures, lead, noise=belief.noise / size)
            bound, held = now, held and rows <= now
        policy.commit(decision)
        policy.learn(decision, [arm], [float(rng.random() < 0.5) if arm == 0 else 0.0])
        tried, rows = tried + arm, rows + 1


def refused(where: str, name: str) -> bool:
    """Whether the default of 0.1.0 refuses the features as they are."""
    scenes = SETS[where][name].world.scenes(50, 0)
    return any(np.linalg.norm(s.round.features, axis=1).max() > 1.0 + 1e-9 for s in scenes)


def met(yes: bool) -> str:
    return "met" if yes else "missed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=24)
    parser.add_argument("--first", type=int, default=0, help="The first replicate.")
    parser.add_argument("--scaled", type=int, default=6, help="Replicates at other scales.")
    parser.add_argument("--stuck", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", choices=list(SETS), help="One of the sets.")
    parser.add_argument("--out", type=Path, default=DOCS / "stress_results.md")
    options = parser.parse_args()
    chosen = [options.only] if options.only else list(SETS)
    summary: list[str] = []
    tables: list[str] = []
    with ProcessPoolExecutor(options.workers) as pool:
        for where in chosen:
            says, table = section(pool, where, options)
            summary += says
            tables += table
        if options.stuck:
            found = list(pool.map(is_stuck, range(options.stuck), chunksize=10))
            summary.append(
                "- Two arms, successes with 0.5 and 0.9, one of them a round: the better one was "
                f"taken in fewer than half of rounds 1,001 to 2,000 in {sum(found)} of "
                f"{options.stuck:,} replicates; the goal, none, is **{met(not any(found))}**."
            )
            tables += escapes(pool)
    options.out.write_text("\n".join([*summary, "", *tables]) + "\n")


def section(
    pool: ProcessPoolExecutor, where: str, options: argparse.Namespace
) -> tuple[list[str], list[str]]:
    """What became of the goals in a set of worlds, and its tables."""
    names = list(SETS[where])
    shares: dict[str, dict[Column, FloatArray]] = {}
    fixed: dict[str, float] = {}
    jobs = {}
    for name in names:
        for i in range(options.replicates):
            asked = COLUMNS + (SCALES + OLD_SCALES if i < options.scaled else [])
            r = options.first + i
            jobs[name, i] = pool.submit(measure, where, name, r, asked, i < options.scaled)
    for name in names:
        found = [jobs[name, i].result() for i in range(options.replicates)]
        shares[name] = {
            column: np.array([one[column] for one, _ in found if column in one])
            for column in COLUMNS + SCALES + OLD_SCALES
        }
        fixed[name] = float(np.mean([cut for _, cut in found if len(cut)], axis=0).max())
        print(where, name, shares[name]["default", ONE].mean(), file=sys.stderr, flush=True)
    same = {name: shares[name]["default", ONE][: options.scaled] for name in names}
    changes = {
        name: max(float(np.abs(shares[name][c] - same[name]).max()) for c in SCALES)
        for name in names
    }
    unmoved = [name for name in names if SETS[where][name].stationary]
    lines = [
        f"**{TITLES[where]}.** Shares of Γ* over {options.replicates} replicates; *change* is the "
        f"most by which another scale changes the default's share in any of {options.scaled} of "
        "them. † The world changes.",
        "",
        "| world | default | change | default of 0.1.0 | its rewards x 0.001 | x 1000 | paper | "
        "take all | best fixed threshold |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in names:
        mine = shares[name]
        cells = [written(mine["default", ONE]), f"{changes[name]:.4f}"]
        cells += [written(mine[c]) for c in [COLUMNS[1], *OLD_SCALES, *COLUMNS[2:]]]
        mark = "" if SETS[where][name].stationary else " †"
        lines.append(f"| {name}{mark} | {' | '.join(cells)} | {fixed[name]:.3f} |")
    lines.append("")
    if where == "weak":
        return [], lines
    over = f"{options.scaled} replicates"
    lines += [f"| scale | least share of a stationary world, {over} | in |", "|---|---|---|"]
    for _, unit in SCALES:
        by_name = {name: float(shares[name]["default", unit].mean()) for name in unmoved}
        last = min(by_name, key=by_name.__getitem__)
        lines.append(f"| {unit} | {by_name[last]:.3f} | {last} |")
    means = {name: float(shares[name]["default", ONE].mean()) for name in names}
    last = min(unmoved, key=means.__getitem__)
    atmost = max(changes[name] for name in unmoved)
    lowest = min(means[name] - changes[name] for name in unmoved)
    says = [
        f"- Worlds that were {where}: in every stationary one the default reaches at least "
        f"{means[last]:.3f} of Γ* (*{last}*), and a change of scale between 1e-6 and 1e6 moves "
        f"that by at most {atmost:.4f}; the goal, {GOAL:g} at every scale, is "
        f"**{met(lowest >= GOAL)}**."
    ]
    if CHANGE in means:
        says.append(
            f"- When all times become 5 times dearer, the default reaches {means[CHANGE]:.3f} of "
            f"the new Γ* in the next 200 rounds; the goal, {CHANGE_GOAL:g}, is "
            f"**{met(means[CHANGE] >= CHANGE_GOAL)}**."
        )
    said_no = sum(refused(where, name) for name in names)
    says.append(
        f"- As they are, the features of {said_no} of these {len(names)} worlds are refused by the "
        "default of 0.1.0."
    )
    return says, [*lines, ""]


def written(shares: FloatArray) -> str:
    error = shares.std(ddof=1) / np.sqrt(len(shares)) if len(shares) > 1 else 0.0
    return f"{shares.mean():.3f} ± {error:.3f}"


def escapes(pool: ProcessPoolExecutor) -> list[str]:
    lines = [
        "**How long bad luck lasts.** Two arms, one of them a round: one fails at its first "
        "trials, the other succeeds with 0.5. Rows until the first is tried again, in 100 "
        "replicates, beside `patience` at the last trial of the other; it *held* where it was "
        "never passed.",
        "",
        "| failures | chance, if 0.9 is its mean | median | longest | bound, median | held |",
        "|---|---|---|---|---|---|",
    ]
    for failures in range(1, 6):
        found = list(pool.map(escape, [failures] * 100, range(100), chunksize=5))
        rows, bounds, held = np.array(found).T
        lines.append(
            f"| {failures} | {0.1**failures:g} | {np.median(rows):.0f} | {rows.max():.0f} "
            f"| {np.median(bounds):.0f} | {held.sum():.0f} of 100 |"
        )
    return lines


if __name__ == "__main__":
    main()
