"""What grids say before any score: the constants of `prediction.py` and `designs.py`.

    python benchmarks/grid_priors.py [--grids 80]

Every hole of a grid is learned by a nested belief that expects nothing; the coefficients of many
grids, and their spread, are what a new grid may be expected to have. Grids are those that were made
like a recorded one, and those of the half of the population that is there to be fitted to, by what
their pixels say. Real recordings are not looked at.
"""

import argparse
import os
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.nested.nested import Nested
from coaf.cryoem.pilots.designs import ice_features
from coaf.cryoem.pilots.prediction import prediction_features
from coaf.cryoem.simulator.population import member
from coaf.cryoem.simulator.simulator import Simulator

CUTS = (3.8, 4.5, 6.0)
SQUARES = 12
FIRST = 500  # seed of the grids like a recorded one
MOST = 2000  # holes of a grid


def learned(X: FloatArray, y: FloatArray, groups: FloatArray, family: str) -> FloatArray:
    """Coefficients, intercept and deviations of a grid all of whose holes are known."""
    belief = Nested(X.shape[1], family=family, scale=8.0, effects=(0.7, 0.7))  # type: ignore[arg-type]
    belief.learn(X, y, groups)
    return np.concatenate([belief.theta, belief.deviations])


Found = tuple[str, dict[str, FloatArray]]  # the kind of grid; by design, what is found on it


def of_grid(task: tuple[str, int]) -> Found:
    """What is found on a grid that was made like a recorded one, or on one of the population."""
    kind, index = task
    one = member(index, "develop")
    alike = kind == "recorded"
    simulator = Simulator(
        FIRST + index if alike else one.seed,
        squares=SQUARES,
        pixels=False,
        prediction=True,
        delay="none",
        conditions=None if alike else one.conditions,
    )
    names = simulator.feature_names
    column, ice, around = (names.index(n) for n in ("prediction", "ice", "neighbours"))
    patches = [
        (survey.features[patch.name], patch)
        for square in simulator.squares()
        for survey in [simulator.peek(square.name)]
        for patch in survey.patches
    ]
    some = np.random.default_rng(index).permutation(len(patches))
    counts = np.cumsum([len(patches[k][1].holes) for k in some])
    patches = [patches[k] for k in some[: max(int(np.searchsorted(counts, MOST)), 10)]]
    holes = [hole.name for _, patch in patches for hole in patch.holes]
    groups = np.concatenate([[[p.square, p.name]] * len(p.holes) for _, p in patches])
    ctf = np.array([np.inf if (t := simulator.truth(h)) is None else t for h in holes])
    count = np.array([simulator.particles(h) or 0.0 for h in holes])
    logs = [np.log(rows[:, column]) for rows, _ in patches]
    found = {
        "shape": np.array(
            [
                np.mean([x.mean() for x in logs]),
                np.std([x.mean() for x in logs]),
                np.mean([x.std() for x in logs]),
                np.mean([len(x) for x in logs]),
            ]
        )
    }
    looks = np.concatenate([ice_features(rows[:, ice], rows[:, around]) for rows, _ in patches])
    for cut in CUTS:
        good = (ctf < cut).astype(np.float64)
        X = np.concatenate([prediction_features(rows[:, column], cut) for rows, _ in patches])
        if alike or one.holes >= 4:  # in smaller patches holes hardly differ from their patch
            found[f"prediction, {cut} Å"] = learned(X, good, groups, "logistic")
        found[f"ice, {cut} Å"] = learned(looks, good, groups, "logistic")
    found["ice, particles in spreads"] = learned(
        looks, (count - count.mean()) / count.std(), groups, "gaussian"
    )
    return kind if alike else one.relation, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--grids", type=int, default=80)
    given = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    tasks = [("recorded", k) for k in range(min(given.grids, 24))]
    tasks += [("population", k) for k in range(given.grids)]
    with ProcessPoolExecutor() as pool:
        grids = list(pool.map(of_grid, tasks))
    print("coefficients, intercept, deviations of squares and patches: mean and spread of grids")
    print("(shape: of ln(predicted) the mean, the spread of patches and within one; holes)")
    for name in grids[0][1]:
        for kind in ("recorded", "usual", "shifted", "flat", "inverted"):
            rows = [found[name] for of, found in grids if of == kind and name in found]
            if len(rows) > 1:
                means, spreads = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1)
                print(f"{name:26}{kind:10}{len(rows):4}", means.round(2), spreads.round(2))


if __name__ == "__main__":
    main()
