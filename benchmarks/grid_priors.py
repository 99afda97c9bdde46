"""What simulated grids say before any score: the constants of `prediction.py` and `designs.py`.

    python benchmarks/grid_priors.py [--grids 24] [--first 500]

Every hole of a grid is learned by a nested belief that expects nothing; the coefficients of many
grids, and their spread, are what a new grid may be expected to have. The seeds are used nowhere
else. Real recordings are not looked at.
"""

import argparse

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.nested.nested import Nested
from coaf.cryoem.pilots.designs import ice_features
from coaf.cryoem.pilots.prediction import prediction_features
from coaf.cryoem.simulator.simulator import Simulator

CUTS = (3.8, 4.5, 6.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--grids", type=int, default=24)
    parser.add_argument("--first", type=int, default=500, help="The first seed.")
    given = parser.parse_args()
    found: dict[str, list[FloatArray]] = {}
    shapes: list[FloatArray] = []
    for seed in range(given.first, given.first + given.grids):
        simulator = Simulator(seed, pixels=False, prediction=True, delay="none")
        names = simulator.feature_names
        column, ice, around = (names.index(n) for n in ("prediction", "ice", "neighbours"))
        patches = [
            (survey.features[patch.name], [simulator.truth(h.name) for h in patch.holes], patch)
            for square in simulator.squares()
            for survey in [simulator.peek(square.name)]
            for patch in survey.patches
        ]
        groups = np.concatenate([[[p.square, p.name]] * len(p.holes) for _, _, p in patches])
        ctf = np.array([np.inf if t is None else t for _, truth, _ in patches for t in truth])
        logs = [np.log(rows[:, column]) for rows, _, _ in patches]
        shapes.append(
            np.array(
                [
                    np.mean([one.mean() for one in logs]),
                    np.std([one.mean() for one in logs]),
                    np.mean([one.std() for one in logs]),
                    np.mean([len(one) for one in logs]),
                ]
            )
        )
        for cut in CUTS:
            good = (ctf < cut).astype(np.float64)
            X = np.concatenate(
                [prediction_features(rows[:, column], cut) for rows, _, _ in patches]
            )
            belief = Nested(2, scale=8.0, effects=(0.7, 0.7))
            belief.learn(X, good, groups)
            found.setdefault(f"prediction, {cut} Å", []).append(
                np.concatenate([belief.theta, belief.deviations])
            )
        X = np.concatenate([ice_features(rows[:, ice], rows[:, around]) for rows, _, _ in patches])
        belief = Nested(3, scale=8.0, effects=(0.7, 0.7))
        belief.learn(X, (ctf < CUTS[0]).astype(np.float64), groups)
        found.setdefault("ice, 3.8 Å", []).append(np.concatenate([belief.theta, belief.deviations]))
    print("coefficients, intercept, deviations of squares and patches: mean and spread of grids")
    for name, rows in found.items():
        print(f"{name:18}", np.mean(rows, axis=0).round(2), np.std(rows, axis=0, ddof=1).round(2))
    print("ln of predictions: mean, spread of patches, spread within one; holes of a patch")
    print(f"{'':18}", np.mean(shapes, axis=0).round(2), np.std(shapes, axis=0, ddof=1).round(2))


if __name__ == "__main__":
    main()
