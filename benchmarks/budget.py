"""A deadline and an end of rounds: `Budget` beside `MemoryRoot`. Writes docs/budget_results.md.

Every number on that page comes from this script: `python benchmarks/budget.py` (a few minutes).
"""

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from pathlib import Path

import numpy as np

import coaf
from coaf.bandit.actions import Actions, AnySubset, Capped
from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.belief import Belief
from coaf.bandit.budget import Budget
from coaf.bandit.latency import Setup
from coaf.bandit.price import price, worth_of
from coaf.bandit.problem import Round
from coaf.bandit.rate import Rate
from coaf.bandit.select import best
from coaf.worlds import Synthetic, optimum
from coaf.worlds.batch import Scene
from coaf.worlds.optimum import STREAM
from coaf.worlds.patches import Patches
from coaf.worlds.statistics import mean

DOCS = Path(__file__).resolve().parent.parent / "docs"
LOOK = 0.5  # seconds to go back to the list of what was left

# Means are never below 0, as of micrographs; "harmful" is the exception, to see what it does.
WORLDS: dict[str, Synthetic | Patches] = {
    "microscope": Synthetic(
        dim=5,
        arms=(5, 25),
        base=(10.0, 14.0),
        setup=52.0,
        each=6.7,
        noise=0.4,
        norm=0.8,
        offset=0.5,
        seed=3,
    ),
    "quick": Synthetic(dim=5, arms=(6, 20), setup=2.0, offset=0.5, seed=3),
    "patches": Patches(dim=3, visits=1, arms=20, base=12.0, setup=52.0, each=6.7, seed=3),
    "harmful": Synthetic(dim=5, arms=(6, 20), setup=2.0, seed=3),
}
ROUNDS = (15, 50)
SHARES = (0.5, 1.0, 2.0)
RULES = ("budget", "infinite horizon", "infinite horizon, then everything")


@dataclass(frozen=True)
class Setting:
    """A world, how many rounds it has, and the time there is for them.

    The time is a `share` of what the infinite-horizon optimum would spend on all the rounds.
    """

    world: str
    rounds: int
    share: float
    knows: bool

    def seconds(self) -> float:
        return self.share * self.rounds * usual_seconds(self.world)


@cache
def usual_seconds(name: str) -> float:
    """What a round takes at the best rate of a world without end."""
    world, rate = WORLDS[name], optimum(WORLDS[name], rounds=2000).rate
    scenes = list(world.scenes(2000, STREAM))
    found = [best(rate, s.means, s.round.latency, s.round.actions) for s in scenes]
    return float(np.mean([f.seconds for f in found]))


def scenes_of(setting: Setting, replicate: int) -> list[Scene]:
    """The replicate's rounds; every arm takes the same time, and a number says so at once."""
    found = []
    for s in WORLDS[setting.world].scenes(setting.rounds, replicate):
        assert isinstance(s.round.latency, Setup)
        base, setup = s.round.latency.base, s.round.latency.setup
        latency = Setup(base, setup, float(np.max(s.round.latency.each)))
        found.append(replace(s, round=Round(s.round.features, latency, groups=s.round.groups)))
    return found


class Truth:
    """The means of the rounds of a replicate, found by their features."""

    def __init__(self, scenes: list[Scene]) -> None:
        self.means = {
            row.tobytes(): mu
            for s in scenes
            for row, mu in zip(s.round.features, s.means.tolist(), strict=True)
        }

    def __call__(self, features: FloatArray) -> FloatArray:
        return np.array([self.means[row.tobytes()] for row in features])


def player(setting: Setting, truth: Truth, rate: Rate, belief: Belief | None = None) -> coaf.COAF:
    """One that knows the means, or one that learns them."""
    if setting.knows:
        return coaf.COAF(index=coaf.Truth(truth), rate=rate)
    dim = WORLDS[setting.world].dim
    if setting.world == "patches":
        return coaf.COAF(belief=belief or coaf.Nested(dim), index=coaf.Mean(), rate=rate)
    return coaf.COAF(belief=belief or coaf.Linear.tuned(dim), rate=rate)


class Session:
    """One replicate under a rule: new rounds one after another, then back to what was left."""

    def __init__(self, setting: Setting, rule: str, replicate: int) -> None:
        self.setting, self.rule = setting, rule
        self.scenes = scenes_of(setting, replicate)
        self.truth = Truth(self.scenes)
        self.left, self.reward = setting.seconds(), 0.0
        self.budget = Budget(self.left, setting.rounds) if rule == "budget" else None
        self.policy = player(setting, self.truth, self.budget or coaf.MemoryRoot())
        self.waiting: dict[str, tuple[Scene, Round]] = {}

    def run(self) -> float:
        """The expected reward of all that was taken."""
        for j, scene in enumerate(self.scenes):
            r = scene.round
            if r.floor > self.left:
                break
            here = Round(r.features, r.latency, self.cap(r), groups=r.groups, key=f"new {j}")
            self.stand(self.setting.rounds - j - 1, here)
            self.take(scene, here)
        if self.budget is None:  # it knows no end: its price stays, or is dropped by hand
            last = coaf.Fixed(self.policy.rate if self.rule == RULES[1] else 0.0)
            self.policy = player(self.setting, self.truth, last, self.policy.belief)
        while self.back():
            pass
        return self.reward

    def cap(self, round: Round) -> Actions:
        """Nothing is started that cannot finish; where all fits there is no need of a cap."""
        all_of_it = round.latency.seconds(np.ones(round.n, dtype=np.bool_))
        return AnySubset() if all_of_it <= self.left else Capped(self.left)

    def stand(self, rounds: int, here: Round | None = None) -> None:
        if self.budget is not None:
            again = [r for _, r in self.waiting.values()]
            self.budget.remain(seconds=self.left, rounds=rounds, again=again, here=here)

    def take(self, scene: Scene, round: Round) -> None:
        decision = self.policy.decide(round)
        self.policy.commit(decision)
        arms = np.flatnonzero(decision.chosen)
        self.policy.learn(decision, arms, scene.rewards[arms])
        self.left -= decision.seconds
        self.reward += float(scene.means[arms].sum())
        rest = np.flatnonzero(~decision.chosen)
        self.waiting.pop(round.key or "", None)
        if len(rest):
            assert isinstance(round.latency, Setup)
            latency = Setup(LOOK, round.latency.setup, round.latency.each)
            groups = None if round.groups is None else round.groups[rest]
            key = f"{round.key}, again"
            later = Round(round.features[rest], latency, groups=groups, key=key)
            part = Scene(later, scene.means[rest], scene.rewards[rest])
            self.waiting[key] = (part, later)

    def back(self) -> bool:
        """Return to the round that is worth most at today's price; whether there was one."""
        self.stand(0)
        rate, most, found = self.policy.rate, 0.0, None
        for scene, r in self.waiting.values():
            if r.floor > self.left:
                continue
            capped = Round(r.features, r.latency, self.cap(r), groups=r.groups, key=r.key)
            mu = self.policy._estimates(r.features, r.groups, self.policy._noise(0), [])
            choice = best(rate, mu, capped.latency, capped.actions)
            gain = choice.reward - rate * choice.seconds
            if choice.chosen.any() and gain / choice.seconds >= most:
                most, found = gain / choice.seconds, (scene, capped)
        if found is None:
            return False
        self.take(*found)
        return True


def limit(setting: Setting, replicate: int) -> float:
    """No policy takes more: the dual with the true means of all rounds of the replicate."""
    scenes = scenes_of(setting, replicate)
    seconds, means = setting.seconds(), np.concatenate([s.means for s in scenes])
    worth = worth_of([s.round for s in scenes], means, seconds)
    rate = price(seconds=seconds, open=worth)
    return rate * seconds + float(np.maximum(worth(rate)[0], 0.0).sum())


def replicate(setting: Setting, number: int) -> list[float]:
    return [*(Session(setting, rule, number).run() for rule in RULES), limit(setting, number)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--world", action="append", choices=list(WORLDS), default=None)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=DOCS / "budget_results.md")
    options = parser.parse_args()
    settings = [
        Setting(*s) for s in product(options.world or WORLDS, ROUNDS, SHARES, (True, False))
    ]
    lines = [
        f"Expected reward over {options.replicates} replicates; differences are paired, with 95 % "
        "intervals. *Time* is the share of what the best rule without an end would spend on all "
        "rounds; *limit* is the dual with the true means, which nothing exceeds.",
        "",
        "| world | means | rounds | time | budget | infinite horizon | then everything | limit "
        "| budget − infinite horizon | budget − then everything |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    with ProcessPoolExecutor(options.processes) as pool:
        for setting in settings:
            found = np.array(
                list(pool.map(partial(replicate, setting), range(options.replicates), chunksize=5))
            )
            ours, theirs, greedy, _ = found.T
            cells = " | ".join(f"{x:.2f}" for x in found.mean(axis=0))
            known = "known" if setting.knows else "learned"
            lines.append(
                f"| {setting.world} | {known} | {setting.rounds} | {setting.share:g} | {cells} "
                f"| {mean(ours - theirs)} | {mean(ours - greedy)} |"
            )
            print(lines[-1], file=sys.stderr, flush=True)
            options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
