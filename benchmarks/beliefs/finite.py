"""How loose `th: cmbub2` is for finite classes, and what `Finite` covers; for the docs.

Every number on docs/beliefs/finite.md comes from this script:
`python benchmarks/beliefs/finite.py` (about a minute on one core).
"""

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

import coaf
from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.finite import Finite
from coaf.bandit.rates.rate import RobbinsMonro
from coaf.bandit.theory.bounds import Scale, general_bound, resolution, w_general
from coaf.bandit.theory.eluder import eluder_dimension
from coaf.worlds import Types, optimum

PAGE = Path(__file__).resolve().parents[2] / "docs" / "beliefs" / "finite_results.md"
ARMS, BASE, EACH, NOISE, XI = 4, 2.0, 1.0, 0.5, 0.5
ROUNDS, REPLICATES, COVERED, ROWS = 1000, 20, 1000, 100


def classes() -> dict[str, FloatArray]:
    """Tables of values, one row a function and one column a type of arm; the first is the truth."""
    rng = np.random.default_rng(1)
    angles = np.linspace(0.0, 2.0 * np.pi, 24, endpoint=False)
    points = np.linspace(0.0, 2.0 * np.pi, 7, endpoint=False)
    return {
        "one good type": np.where(np.eye(6) > 0.0, 0.8, 0.3),
        "unrelated": rng.uniform(-0.5, 0.9, (12, 6)),
        "linear, 24 angles": 0.9 * np.cos(angles[:, None] - points),
    }


def scale_of(horizon: float) -> Scale:
    return Scale(horizon, n_max=ARMS, l_min=BASE, l_max=BASE + ARMS * EACH, noise=NOISE)


class Run(NamedTuple):
    """One replicate: when each round ended, and sums up to then."""

    ends: FloatArray
    rewards: FloatArray
    errors: FloatArray


def run(table: FloatArray, world: Types, replicate: int, *, learns: bool = True) -> Run:
    """COAF as in the theorem, with δ small as its expected form wants it."""
    everything = scale_of(ROUNDS * (BASE + ARMS * EACH))
    belief = Finite(
        table.shape[1], table, noise=NOISE, mean_bound=1.0, delta=1.0 / everything.samples
    )
    policy = coaf.COAF(belief=belief, rate=RobbinsMonro(xi=XI, n_max=ARMS, l_min=BASE))
    rows = []
    for scene in world.scenes(ROUNDS, replicate):
        decision = policy.decide(scene.round)
        policy.commit(decision)
        arms = np.flatnonzero(decision.chosen)
        if learns:
            policy.learn(decision, arms, scene.rewards[arms])
        errors = decision.estimates[arms] - scene.means[arms]
        rows.append((decision.seconds, scene.means[arms].sum(), (errors**2).sum()))
    return Run(*np.cumsum(np.array(rows), axis=0).T)


def earned(one: Run, horizons: FloatArray) -> FloatArray:
    """q(T): what the rounds brought that ended by then."""
    done = np.searchsorted(one.ends, horizons, side="right")
    result: FloatArray = np.concatenate([[0.0], one.rewards])[done]
    return result


def regret_row(name: str, table: FloatArray) -> str:
    """How the regret and the squared errors compare with their bounds."""
    world = Types(table[0], arms=(1, ARMS), base=BASE, each=EACH, noise=NOISE)
    star = optimum(world).rate
    runs = [run(table, world, replicate) for replicate in range(REPLICATES)]
    last = min(float(one.ends[-1]) for one in runs)
    horizons = np.geomspace(10.0, last, 40)
    each = star * horizons - np.array([earned(one, horizons) for one in runs])
    regrets, error = each.mean(axis=0), each[:, -1].std(ddof=1) / math.sqrt(REPLICATES)
    delta = 1.0 / scale_of(ROUNDS * (BASE + ARMS * EACH)).samples
    size, bounds = math.log(len(table)), []
    for horizon in horizons:
        scale = scale_of(float(horizon))
        eluder = eluder_dimension(table, epsilon=resolution(scale))
        bounds.append(
            general_bound(scale, xi=XI, delta=delta, alpha=0.0, log_covering=size, eluder=eluder)
        )
    ratios = np.array(bounds) / np.maximum(regrets, 1e-12)
    slack = float((np.array(bounds) / (star * horizons)).min())
    deaf = run(table, world, 0, learns=False)  # what the check could catch: never learning
    deaf_regret = star * last - float(earned(deaf, np.array([last]))[0])
    if not (regrets <= bounds).all():
        raise RuntimeError(f"{name}: the regret exceeds its bound")
    squares = w_general(scale, delta=delta, alpha=0.0, log_covering=size, eluder=eluder)
    errors = float(np.mean([one.errors[-1] for one in runs]))
    counted = scale.counted("repaired").horizon
    return (
        f"| {name} | {len(table)} | {eluder} | {star * last:.0f} "
        f"| {regrets[-1]:.0f} ± {error:.0f} | {deaf_regret:.0f} | {bounds[-1]:.0f} "
        f"| {ratios.min():.0f} | {slack:.0f} | {errors:.0f} | {deaf.errors[-1]:.0f} "
        f"| {squares / counted:.0f} |"
    )


def cover(table: FloatArray, delta: float) -> FloatArray:
    """How often the truth stayed in the set all along; the shares left in it and in the paper's."""
    points, radius = table.shape[1], 8.0 * NOISE**2 * math.log(len(table) / delta)
    found = np.zeros(3)
    for seed in range(COVERED):
        rng = np.random.default_rng([7, seed])
        belief = Finite(points, table, noise=NOISE, mean_bound=1.0, delta=delta)
        stayed, counts = True, np.zeros(points)
        for _ in range(ROWS // 5):
            shown = rng.integers(points, size=5)
            rewards = table[0, shown] + NOISE * rng.standard_normal(5)
            belief.learn(np.eye(points)[shown], rewards)
            counts += np.bincount(shown, minlength=points)
            stayed = stayed and bool(belief.members[0])
        distances = (table - table[belief.best]) ** 2 @ counts
        found += stayed, belief.members.mean(), (distances <= radius).mean()
    return found / COVERED


def page() -> str:
    lines = [
        f"{REPLICATES} replicates of {ROUNDS} rounds with 1 to {ARMS} arms, base {BASE:g} s and "
        f"{EACH:g} s an arm, noise {NOISE:g}, ξ = {XI:g}, δ = 1/(most rewards there can be). The "
        "regret was below its bound at each of 40 horizons; *least ratio* is the smallest bound "
        "over regret among them. *Squared errors* are those of the estimates that chose, of arms "
        "taken, added up. ± is the standard error over replicates, without that of Γ*. *If it "
        "never learned*: one replicate whose belief is taught nothing.",
        "",
        "| class | functions | eluder dimension | TΓ* | regret | if it never learned | its bound "
        "| least ratio | least bound/TΓ* | squared errors | if it never learned | their bound |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
        *(regret_row(name, table) for name, table in classes().items()),
        "",
        f"Coverage: {COVERED} replicates of {ROWS} rows with δ = 0.05, looked at every 5 rows.",
        "",
        "| class | truth in the set all along | functions left at the end | in the paper's set |",
        "|---|---|---|---|",
    ]
    for name, table in classes().items():
        stayed, left, papers = cover(table, 0.05)
        lines.append(f"| {name} | {stayed:.1%} | {left:.0%} | {papers:.0%} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))
