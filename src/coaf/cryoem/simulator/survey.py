"""What opening a simulated square shows: holes found, grouped, and described."""

from dataclasses import dataclass

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.cryoem.grid import Hole, Patch
from coaf.cryoem.microscope import Survey
from coaf.cryoem.simulator.conditions import Conditions
from coaf.cryoem.simulator.draw import Foil
from coaf.cryoem.simulator.features import latent_features, predictions
from coaf.cryoem.simulator.grid import RADIUS, SPACING, GridTruth, SquareTruth, turn


@dataclass(frozen=True, slots=True)
class Target:
    """What a found hole is in truth: which hole (-1: none), and how far off its patch's centre."""

    square: int
    hole: int
    patch: str
    shift: float


@dataclass(frozen=True, slots=True)
class Opened:
    """A survey, with the truth behind it."""

    survey: Survey
    truth: SquareTruth
    targets: dict[str, Target]


def open_square(
    conditions: Conditions,
    grid: GridTruth,
    truth: SquareTruth,
    *,
    index: int,
    name: str,
    foil: Foil,
    prediction: bool,
    rng: np.random.Generator,
) -> Opened:
    """Survey a square without drawing it.

    The finder misses some holes and finds some that are none. Patches are blocks of the lattice.
    """
    features = latent_features(grid, truth, foil, rng)
    if prediction:
        features = np.column_stack([features, predictions(conditions, truth)])
    found = (truth.block >= 0) & (rng.random(len(truth.block)) >= conditions.missed)
    false = found & (rng.random(len(found)) < conditions.false)
    left_out = ~truth.hidden & (truth.block < 0)
    patches: list[Patch] = []
    rows: dict[str, FloatArray] = {}
    targets: dict[str, Target] = {}
    centre = grid.places[index]
    shots = truth.luck.shape[1]
    for block in range(int(truth.block.max(initial=-1)) + 1):
        members = np.flatnonzero(found & (truth.block == block))
        if not len(members):
            continue
        patch = f"{name}_v01_{len(patches) + 1:05d}hl"
        # A find that is no hole looks like one, so it has the features of a hole, moved a little.
        aside = np.where(false[members, None], 0.5 * SPACING, 0.0) @ turn(grid.angle)[:1]
        places = truth.place[members] + aside
        middle = truth.place[members].mean(axis=0)
        holes = tuple(
            Hole(f"{patch}_v01_{k + 1:05d}en", x, y, radius=RADIUS, shots=shots)
            for k, (x, y) in enumerate((centre + places).tolist())
        )
        nearest = truth.place[members[np.argmin(np.hypot(*(truth.place[members] - middle).T))]]
        # The middle of four holes misses them all.
        focus = centre + nearest + 0.5 * SPACING * turn(grid.angle).sum(axis=0)
        x, y = (centre + middle).tolist()
        patches.append(Patch(patch, name, holes, x, y, focus=(float(focus[0]), float(focus[1]))))
        rows[patch] = features[members]
        shifts = np.hypot(*(places - middle).T)
        for hole, member, shift in zip(holes, members, shifts, strict=True):
            true = -1 if false[member] else int(member)
            targets[hole.name] = Target(index, true, patch, float(shift))
    excluded = {"too few in reach": int(left_out.sum())} if left_out.any() else {}
    return Opened(Survey(name, tuple(patches), rows, None, excluded), truth, targets)
