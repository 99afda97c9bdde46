"""Opening a simulated square through its image: drawn, searched and measured."""

import numpy as np

from coaf.bandit.arrays import BoolArray, FloatArray, IntArray
from coaf.cryoem.grid import Hole
from coaf.cryoem.images import Image
from coaf.cryoem.microscope import Survey
from coaf.cryoem.simulator.conditions import Conditions
from coaf.cryoem.simulator.draw import Foil, Specimen, draw_square
from coaf.cryoem.simulator.features import predictions, seen_thickness
from coaf.cryoem.simulator.grid import RADIUS, SIDE, SPACING, GridTruth, SquareTruth, turn
from coaf.cryoem.simulator.survey import Opened, Target
from coaf.cryoem.vision.features import hole_features
from coaf.cryoem.vision.holes import find_holes
from coaf.cryoem.vision.patches import group_holes

DOSE = 100.0  # electrons per pixel without ice
REACH = 9.0  # µm of beam shift: about 25 holes of this lattice


def draw_truth(grid: GridTruth, truth: SquareTruth, *, index: int, foil: Foil, seed: int) -> Image:
    """The image of a square. Holes under thick ice are there, and not seen."""
    open_ones = ~truth.hidden
    specimen = Specimen(
        holes=truth.place[open_ones],
        radius=np.full(int(open_ones.sum()), RADIUS),
        thickness=seen_thickness(grid, truth)[open_ones],
        tilt_of_ice=truth.tilt[open_ones],
        crystalline=truth.crystalline[open_ones],
        broken=truth.broken[open_ones],
        dirt=truth.dirt,
        size=SIDE,
        angle=grid.angle,
        foil=foil,
        covered=truth.covered,
        shade=truth.shade,
    )
    image = draw_square(specimen, pixels=1024, dose=DOSE, seed=seed)
    x, y = grid.places[index].tolist()
    return Image(image.pixels, image.pixel_size, x, y)


def draw_and_open(
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
    """Survey a square through its image, with whatever the finder makes of it."""
    image = draw_truth(grid, truth, index=index, foil=foil, seed=int(rng.integers(2**31)))
    found = find_holes(image)
    places = image.to_stage(found.holes)
    centre = grid.places[index]
    shots = truth.luck.shape[1]
    holes = [
        Hole(f"{name}_v01_{k + 1:05d}en", x, y, radius=RADIUS, shots=shots)
        for k, (x, y) in enumerate(places.tolist())
    ]
    if not holes:
        return Opened(Survey(name, (), {}, image, {found.why or "no holes": 0}), truth, {})
    # A session knows what its camera counts without ice: from an empty hole, or from beside one.
    features = hole_features(image, places, found.radius, found=found, vacuum=DOSE)
    match, real = match_holes(places - centre, truth)
    if prediction:
        told = predictions(conditions, truth)
        # To a network a find that is no hole looks like the hole next to it.
        features = np.column_stack([features, told[match]])
    inside = (places - centre) @ turn(-grid.angle)
    edges = SIDE / 2 - np.abs(inside).max(axis=1)
    grouped = group_holes(holes, square=name, radius=REACH, edges=np.maximum(edges, 0.0))
    row = {hole.name: k for k, hole in enumerate(holes)}
    rows: dict[str, FloatArray] = {}
    targets: dict[str, Target] = {}
    for patch in grouped.patches:
        at = [row[hole.name] for hole in patch.holes]
        rows[patch.name] = features[at]
        for hole, k in zip(patch.holes, at, strict=True):
            shift = float(np.hypot(hole.x - patch.x, hole.y - patch.y))
            targets[hole.name] = Target(index, int(match[k]) if real[k] else -1, patch.name, shift)
    survey = Survey(name, grouped.patches, rows, image, dict(grouped.excluded))
    return Opened(survey, truth, targets)


def match_holes(places: FloatArray, truth: SquareTruth) -> tuple[IntArray, BoolArray]:
    """The true hole nearest to each find, and whether exposing the find is exposing that hole.

    It is not where the find is off, or under ice so thick that nothing comes of it.
    """
    from scipy.spatial import cKDTree

    away, which = cKDTree(truth.place).query(places)
    taken = np.zeros(len(truth.place), dtype=np.bool_)
    real = np.zeros(len(places), dtype=np.bool_)
    # Two finds of one hole are one hole, found by the nearer.
    for k in np.argsort(away, kind="stable"):
        real[k] = away[k] < SPACING / 3 and not (taken[which[k]] or truth.hidden[which[k]])
        taken[which[k]] |= real[k]
    return which, real
