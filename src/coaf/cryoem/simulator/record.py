"""A simulated grid as a recording: the two files that `coaf replay` reads."""

from pathlib import Path

import numpy as np

from coaf.cryoem.reward import NO_FIT
from coaf.cryoem.simulator.grid import SPACING
from coaf.cryoem.simulator.simulator import Simulator

PIXELS = 183.0 / SPACING  # per µm: positions are in pixels of the patch's image, from its centre


def record(simulator: Simulator, folder: Path) -> tuple[Path, Path]:
    """Write every hole of the grid, as if all had been exposed once and scored.

    Parameters
    ----------
    simulator
        Made with `prediction=True`.
    folder
        Where the files go; it is made if it is not there.

    Returns
    -------
    holes, truth
        `sim0003_by_hl.txt` with name and predicted CTFMaxRes, and `sim0003.csv` with name, x, y,
        CTFMaxRes (100000 where there was no fit) and confidence.
    """
    if not simulator.prediction:
        raise ValueError("a recording holds predictions; make the Simulator with prediction=True")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    column = simulator.feature_names.index("prediction")
    rng = np.random.default_rng([simulator.seed, 11])
    told, true = [], []
    for square in simulator.squares():
        survey = simulator.peek(square.name)
        for number, patch in enumerate(survey.patches, start=1):
            guesses = survey.features[patch.name][:, column]
            for k, (hole, guess) in enumerate(zip(patch.holes, guesses.tolist(), strict=True)):
                ctf = simulator.truth(hole.name)
                x, y = (hole.x - patch.x) * PIXELS, (hole.y - patch.y) * PIXELS
                name = f"{square.name}_v01_{number:05d}hl_v01_{k + 1:05d}en-a"
                told.append(f"{name} {guess:.2f}")
                fit = NO_FIT if ctf is None else ctf
                true.append(f"{name},{x:.6f},{y:.6f},{fit:.6f},{_confidence(ctf, rng):.6f}")
    base = f"sim{simulator.seed:04d}"
    holes, truth = folder / f"{base}_by_hl.txt", folder / f"{base}.csv"
    holes.write_text("\n".join(told) + "\n", encoding="utf-8")
    truth.write_text("\n".join(true) + "\n", encoding="utf-8")
    return holes, truth


def _confidence(ctf: float | None, rng: np.random.Generator) -> float:
    """Near 1 for a good fit, anything for a poor one."""
    if ctf is None:
        return float(rng.beta(1.0, 8.0))
    poor = min(max(ctf - 4.0, 0.0) / 12.0, 1.0)
    return float(rng.beta(2.0 + 40.0 * (1.0 - poor), 1.2 + 2.0 * poor))
