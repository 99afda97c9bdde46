"""What scores bring: sessions with them, without any, and with all known of a grid in hindsight.

    python benchmarks/scores.py [--grids 30] [--half judge] [--workers 2]

Writes docs/scores_results.md. Grids are drawn from the population, by what pixels say of quality
there. On each, COAF collects four times: with scores, without any, with scores but from a weak
prior that expects nothing of pixels, and with scores from what all holes of this very grid would
teach of coefficients and deviations. It sees ice and a network's prediction, or ice alone. Two
rules that need no scores stand beside it: all is taken, or what is within a window of intensity.
Nothing was fitted to grids of the half "judge".
"""

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.nested.nested import Nested
from coaf.cryoem.microscope import Survey
from coaf.cryoem.pilots.coaf import CoafPilot
from coaf.cryoem.pilots.designs import EFFECTS, NEAR, Design, design_for
from coaf.cryoem.session.collect import GOOD, collect
from coaf.cryoem.simulator.population import RELATIONS, Half, Member, Relation, member
from coaf.cryoem.simulator.simulator import Simulator
from coaf.worlds.statistics import Estimate, mean

RESULTS = Path(__file__).parents[1] / "docs" / "scores_results.md"
HOURS: dict[Literal["fast", "slow"], float] = {"fast": 3.0, "slow": 12.0}
SQUARES = 32
WAYS = ("scores", "none", "weak", "hindsight")
RULES = ("take-all", "window")
SEEN = {"ice and prediction": True, "ice alone": False}
PAYS, MISLEADS, COSTS = 3.0, -5.0, -1.0  # percent: what hindsight brings, and the least allowed
WEAK = 2.5  # deviation of every coefficient
SURE = 0.05


def grid(
    one: Member, regime: Literal["fast", "slow"], *, silent: bool = False, prediction: bool = True
) -> Simulator:
    conditions = replace(one.conditions, stray=1.0) if silent else one.conditions
    same: dict[str, Any] = {"pixels": False, "prediction": prediction, "faults": ()}
    return Simulator(one.seed, regime=regime, squares=SQUARES, conditions=conditions, **same)


def nothing(latency: Any, holes: int) -> list[Any]:
    """No patches to expect."""
    return []


def weak(design: Design) -> Design:
    """The same features, of which nothing is expected."""
    dim = design.belief().dim
    belief = partial(Nested, dim, scale=WEAK, effects=EFFECTS, near=NEAR)
    return replace(design, belief=belief, typical=nothing)


def known(design: Design, simulator: Simulator) -> Design:
    """What all holes of the grid teach."""
    surveys: list[Survey] = [simulator.peek(square.name) for square in simulator.squares()]
    patches = [(one, patch) for one in surveys for patch in one.patches]
    X = np.concatenate([design.rows(p, one.features[p.name]) for one, p in patches])
    names = [hole.name for _, patch in patches for hole in patch.holes]
    y = np.array([simulator.first_visit(GOOD, name) for name in names])
    groups = np.concatenate([[[p.square, p.name]] * len(p.holes) for _, p in patches])
    taught = Nested(X.shape[1], scale=8.0, effects=EFFECTS, near=NEAR)
    taught.learn(X, y, groups)
    *effects, near = taught.deviations.tolist()
    belief = partial(
        Nested,
        X.shape[1],
        centre=taught.theta.tolist(),
        scale=SURE,
        effects=effects,
        near=near,
        variances="fixed",
    )
    return replace(design, belief=belief)


def play(task: tuple[Half, bool, Relation, Literal["fast", "slow"], int]) -> list[float]:
    """Good micrographs by truth, in each way, and by the rules."""
    half, prediction, _, regime, index = task
    one, found = member(index, half), []
    for way in (*WAYS, *RULES):
        simulator = grid(one, regime, silent=way == "none", prediction=prediction)
        columns = simulator.feature_names
        design = design_for(columns, GOOD)
        if way == "weak":
            design = weak(design)
        elif way == "hindsight":
            design = known(design, simulator)
        pilot: str | CoafPilot = way
        if way in WAYS:
            pilot = CoafPilot(simulator.timing, reward=GOOD, columns=columns, design=design)
        session = collect(simulator, pilot, hours=HOURS[regime], explore=0.0)
        found.append(float(session.line()["good"]))
    return found


def numbers_of(half: Half, relation: Relation, count: int) -> list[int]:
    """The first members of a half in which pixels say this."""
    found: list[int] = []
    index = 0
    while len(found) < count:
        if member(index, half).relation == relation:
            found.append(index)
        index += 1
    return found


def relative(differences: FloatArray, base: float) -> Estimate:
    return mean(100.0 * differences / base)


def shown(found: Estimate) -> str:
    return f"{found.value:+.1f} [{found.low:+.1f}, {found.high:+.1f}]"


def verdict(pays: Estimate, gain: Estimate, against_weak: Estimate) -> str:
    """Whether scores paid where there was something to learn, and a wrong prior was overcome."""
    missed = []
    if pays.value >= PAYS and gain.low <= 0.0:
        missed.append("scores do not surely pay")
    if pays.value < PAYS and gain.value < COSTS:
        missed.append(f"scores cost more than {-COSTS:g} %")
    if against_weak.value < MISLEADS:
        missed.append(f"the prior costs more than {-MISLEADS:g} %")
    return "; ".join(missed) or "held"


def page(half: Half, grids: int, table: FloatArray) -> str:
    """Of good micrographs (seen, relation, regime, grid, way)."""
    heads = [*WAYS[:2], "weak prior", *WAYS[3:], *RULES, "hindsight − none", "scores − none"]
    heads += ["scores − weak prior", "goals"]
    lines = [
        f"Good micrographs a session, means over {grids} grids of the half "
        f'"{half}" of the population in each row; fast is {HOURS["fast"]:g} h, slow '
        f"{HOURS['slow']:g} h, {SQUARES} squares. Differences are paired, in percent of the second "
        "of each pair, with 95 % intervals. The goals: where hindsight brings "
        f"{PAYS:g} % or more, the gain by scores has an interval above 0, and elsewhere they cost "
        f"at most {-COSTS:g} %; the prior costs at most {-MISLEADS:g} % against the weak one.",
    ]
    shares = np.array([RELATIONS[relation] for relation in get_args(Relation)])
    for seen, of_seen in zip(SEEN, table, strict=True):
        lines += ["", f"Of holes, pilots see {seen}:", ""]
        lines += [
            "| pixels say | regime | " + " | ".join(heads) + " |",
            "|---" * (len(heads) + 2) + "|",
        ]
        for relation, of_relation in zip(get_args(Relation), of_seen, strict=True):
            for regime, rows in zip(HOURS, of_relation, strict=True):
                scores, none, weakly, hindsight, *_ = rows.T
                found = (
                    relative(hindsight - none, none.mean()),
                    relative(scores - none, none.mean()),
                    relative(scores - weakly, weakly.mean()),
                )
                cells = [f"{one.mean():.0f}" for one in rows.T]
                cells += [*map(shown, found), verdict(*found)]
                lines.append(f"| {relation} | {regime} | {' | '.join(cells)} |")
        lines += ["", "Without any score, over the population as it is mixed:", ""]
        lines += [
            "| regime | none | take-all | window | none − take-all | none − window |",
            "|---|---|---|---|---|---|",
        ]
        for k, regime in enumerate(HOURS):
            mixed = len(shares) * shares[:, None, None] * of_seen[:, k]  # (relation, grid, way)
            rows = mixed.mean(axis=0)
            none, everything, window = rows[:, 1], rows[:, 4], rows[:, 5]
            cells = [f"{one.mean():.0f}" for one in (none, everything, window)]
            cells += [shown(relative(none - one, one.mean())) for one in (everything, window)]
            lines.append(f"| {regime} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--grids", type=int, default=30, help="of each kind")
    parser.add_argument("--half", choices=get_args(Half), default="judge")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    members = {one: numbers_of(given.half, one, given.grids) for one in get_args(Relation)}
    tasks = [
        (given.half, prediction, relation, regime, index)
        for prediction, relation, regime in product(SEEN.values(), members, HOURS)
        for index in members[relation]
    ]
    with ProcessPoolExecutor(given.workers) as pool:
        found = np.array(list(pool.map(play, tasks)))
    shape = len(SEEN), len(members), len(HOURS), given.grids, len(WAYS) + len(RULES)
    given.out.write_text(page(given.half, given.grids, found.reshape(shape)), "utf-8")
    print(given.out.read_text("utf-8"))


if __name__ == "__main__":
    main()
