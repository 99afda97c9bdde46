"""What a simulated square truly holds: holes on a lattice, and the ice in them."""

from dataclasses import dataclass

import numpy as np

from coaf.bandit.arrays import BoolArray, FloatArray, IntArray
from coaf.cryoem.simulator.conditions import Conditions, thickness_loss

SPACING = 2.5  # µm from hole to hole, as of the common R1.2/1.3 foils
RADIUS = 0.6  # µm
SIDE = 52.0  # µm, the opening of a 300 mesh grid
PITCH = 85.0  # µm from square to square
MARGIN = 1.2  # µm of foil along the bars without holes
FEWEST = 0.6  # a block with a smaller share of its holes is seldom worth a target
DISC = 6.0  # µm, of the thick ice that hides holes
_WAVES = 48


@dataclass(frozen=True, slots=True)
class GridTruth:
    """What is true of a whole simulated grid.

    Attributes
    ----------
    angle
        Of its lattice, in radians.
    places : (squares, 2)
        Centres of the squares on the stage, in µm.
    tile : (squares,)
        Which tile of the atlas each is on; an area of the grid.
    log_ice : (squares,)
        Log of each square's median thickness in nm.
    middle
        Log of the grid's median thickness.
    sight : (squares,)
        Error of what pixels tell of log thickness, shared by a square: of its area and grid.
    gain
        What a nanometre of ice does to brightness, relative to other grids.
    """

    angle: float
    places: FloatArray
    tile: IntArray
    log_ice: FloatArray
    middle: float
    sight: FloatArray
    gain: float


@dataclass(frozen=True, slots=True)
class SquareTruth:
    """What is true of a square; positions in µm from its centre, n holes.

    Attributes
    ----------
    place : (n, 2)
        Where the holes are.
    block : (n,)
        Which block of the lattice each belongs to, or -1 where a block is too small.
    thickness, tilt : (n,), (n, 2)
        Ice in nm, and its slope across the hole in nm/µm.
    crystalline, broken, hidden : (n,)
        Ice with crystals; torn foil; under ice too thick to see the hole.
    loss : (n,)
        Badness that does not depend on how the hole is visited.
    luck : (n, shots)
        Badness of each shot.
    chance : (n, shots)
        Uniform, for failed fits.
    crowd, count : (n,), (n, shots)
        For particles: a factor of mean 1, and a normal for the counting of each shot.
    sight, whim : (n,)
        What pixels tell of log thickness beyond the truth; error of the log of a prediction.
    dirt : (m, 3)
        x, y, radius.
    shade : (2,)
        Slow change of brightness over the square image.
    covered : (k, 3)
        x, y, radius of the discs of thick ice that hide holes.
    """

    place: FloatArray
    block: IntArray
    thickness: FloatArray
    tilt: FloatArray
    crystalline: BoolArray
    broken: BoolArray
    hidden: BoolArray
    loss: FloatArray
    luck: FloatArray
    chance: FloatArray
    crowd: FloatArray
    count: FloatArray
    sight: FloatArray
    whim: FloatArray
    dirt: FloatArray
    shade: FloatArray
    covered: FloatArray


def make_grid(conditions: Conditions, seed: int, squares: int) -> GridTruth:
    """The squares of a grid: where they are, and their ice."""
    rng = np.random.default_rng([seed, 0])
    side = int(np.ceil(np.sqrt(squares)))
    cells = np.stack(np.meshgrid(np.arange(side), np.arange(side)), axis=-1).reshape(-1, 2)
    middle = (side - 1) / 2.0
    order = np.argsort(np.hypot(*(cells - middle).T), kind="stable")[:squares]
    steps = cells[np.sort(order)].astype(np.float64) - middle
    angle = float(rng.uniform(-np.pi / 4, np.pi / 4))
    places = steps @ turn(angle) * PITCH + rng.normal(0.0, 1.0, (squares, 2))
    # An area is a strip of the grid: what the ice does from one side of it to the other.
    heading = rng.uniform(0.0, 2.0 * np.pi)
    along = steps @ [np.cos(heading), np.sin(heading)] / max(middle, 1.0)
    tile = np.clip(np.floor((along + 1.0) * 2.5), 0, 4).astype(np.int64)
    grid = rng.normal(np.log(conditions.thickness), conditions.grid_spread)
    log_ice = (
        grid + conditions.area_drift * along + rng.normal(0.0, conditions.square_spread, squares)
    )
    sight = (
        rng.normal(conditions.sight_shift, conditions.sight_grid)
        + rng.normal(0.0, conditions.sight_area, 5)[tile]
    )
    gain = float(np.exp(rng.normal(0.0, conditions.pixel_gain)))
    return GridTruth(angle, places, tile, log_ice, float(grid), sight, gain)


def turn(angle: float) -> FloatArray:
    """The matrix that turns rows of points by an angle."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, s], [-s, c]])


def make_square(
    conditions: Conditions, grid: GridTruth, seed: int, index: int, shots: int
) -> SquareTruth:
    """The holes of a square, their ice and their luck; the same whenever it is asked."""
    rng = np.random.default_rng([seed, 1, index])
    each_shot = np.random.default_rng([seed, 12, index])  # so that more shots leave the rest alone
    reach = int((SIDE / 2 - MARGIN) / SPACING)
    steps = np.arange(-reach, reach + 1)
    # The lattice starts anywhere in the square, so the blocks at its edges are cut as they fall.
    start = rng.uniform(-0.5, 0.5, 2)
    ij = np.stack(np.meshgrid(steps, steps, indexing="ij"), axis=-1).reshape(-1, 2)
    flat = (ij + start) * SPACING
    ij = ij[np.abs(flat).max(axis=1) <= SIDE / 2 - MARGIN]
    flat = (ij + start) * SPACING
    place = flat @ turn(grid.angle)
    covered = _covered(conditions, grid.angle, rng)
    n = len(ij)
    away = np.hypot(*(place[:, None] - covered[:, :2]).transpose(2, 0, 1))
    hidden = (away < DISC + RADIUS).any(axis=1)
    gone = rng.random(n) < 0.07  # torn away or under dirt
    sides = np.array([int(conditions.patch_rows), int(conditions.patch_columns)])
    offset = rng.integers(0, sides)
    block = _blocks(ij + offset, ~hidden & ~gone, sides, rng)
    field = _field(place, conditions.reach, rng)
    log = grid.log_ice[index] + conditions.patch_spread * field
    log = log + rng.normal(0.0, conditions.hole_spread, n)
    kind = rng.random(n)
    heavy = kind > 1.0 - conditions.heavy
    thickness = np.where(heavy, 3.0, 1.0) * np.exp(log)
    thickness = np.where(kind < conditions.empty, 0.0, thickness)
    crystalline = rng.random(n) < conditions.crystalline
    noise = rng.normal(0.0, conditions.sight_hole, n)
    rough = _field(place, conditions.reach, rng)
    sight = grid.sight[index] + conditions.sight_patch * rough + noise
    sight = sight + (conditions.sight_slope - 1.0) * (log - grid.middle)
    loss = thickness_loss(conditions, thickness) + conditions.crystal_loss * crystalline
    luck = rng.normal(0.0, conditions.luck, n)[:, None] + each_shot.normal(
        0.0, conditions.shot_luck, (n, shots)
    )
    # Torn holes are those that lost their ice; a few more are torn beside it.
    broken = (thickness == 0.0) & (rng.random(n) < 0.5)
    dirt = np.column_stack([place[gone], rng.uniform(0.5, 1.1, int(gone.sum())) * RADIUS * 1.5])
    crowd = _crowd(conditions, place, np.random.default_rng([seed, 13, index]))
    keep = ~gone
    return SquareTruth(
        place=place[keep],
        block=block[keep],
        thickness=thickness[keep],
        tilt=rng.normal(0.0, 0.05, (n, 2))[keep] * thickness[keep, None],
        crystalline=crystalline[keep],
        broken=broken[keep],
        hidden=hidden[keep],
        loss=loss[keep],
        luck=luck[keep],
        chance=each_shot.random((n, shots))[keep],
        crowd=crowd[keep],
        count=each_shot.standard_normal((n, shots))[keep],
        sight=sight[keep],
        whim=rng.normal(0.0, conditions.sight_noise, n)[keep],
        dirt=dirt,
        shade=rng.normal(0.0, 0.05, 2),
        covered=covered,
    )


def _covered(conditions: Conditions, angle: float, rng: np.random.Generator) -> FloatArray:
    """Thick ice that comes in from one side of the square: discs (k, 3), x, y and radius."""
    share = float(
        np.clip(rng.beta(4.0 * conditions.usable, 4.0 * (1.0 - conditions.usable)), 0.2, 1.0)
    )
    heading = rng.uniform(0.0, 2.0 * np.pi)
    line = (np.arange(40) + 0.5) / 40.0 - 0.5
    points = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2) * SIDE @ turn(angle)
    inward = np.array([np.cos(heading), np.sin(heading)])
    edge = np.quantile(points @ inward, share)
    steps = np.arange(0.0, 1.5 * SIDE, 1.4 * DISC)
    across = np.concatenate([-steps[:0:-1], steps])
    depth, side = np.meshgrid(edge + DISC + steps, across, indexing="ij")
    depth = depth + rng.uniform(-0.1, 0.1, depth.shape) * DISC
    beside = np.array([-inward[1], inward[0]])
    centres = depth.reshape(-1, 1) * inward + side.reshape(-1, 1) * beside
    near = np.abs(centres @ turn(-angle)).max(axis=1) < SIDE / 2 + DISC
    return np.column_stack([centres[near], np.full(int(near.sum()), DISC)])


def _blocks(ij: IntArray, there: BoolArray, sides: IntArray, rng: np.random.Generator) -> IntArray:
    """Number the blocks of the lattice that are worth a target, -1 elsewhere."""
    cell = np.floor_divide(ij, sides)
    key = (cell[:, 0] - cell[:, 0].min()) * 100 + cell[:, 1] - cell[:, 1].min()
    labels, where = np.unique(key, return_inverse=True)
    counts = np.bincount(where, there)
    enough, some = FEWEST * sides.prod(), max(float(sides.prod()) / 5.0, 1.0)
    worth = (counts >= enough) | ((counts >= some) & (rng.random(len(labels)) < 0.04))
    numbers = np.where(worth, np.cumsum(worth) - 1, -1)
    return np.where(there, numbers[where], -1).astype(np.int64)


def _crowd(conditions: Conditions, place: FloatArray, rng: np.random.Generator) -> FloatArray:
    """How crowded holes are, relative to others: by square, by surroundings and by themselves."""
    spreads = conditions.crowd_square, conditions.crowd_patch, conditions.crowd_hole
    square, near, own = spreads
    log = square * rng.standard_normal() + near * _field(place, conditions.reach, rng)
    log = log + own * rng.standard_normal(len(place))
    crowd: FloatArray = np.exp(log - 0.5 * sum(spread**2 for spread in spreads))
    return crowd


def _field(place: FloatArray, reach: float, rng: np.random.Generator) -> FloatArray:
    """A smooth random field of unit variance, which forgets itself over `reach`."""
    waves = rng.standard_normal((2, _WAVES)) / max(reach, 1e-6)
    phase = rng.uniform(0.0, 2.0 * np.pi, _WAVES)
    height = rng.standard_normal(_WAVES)
    field: FloatArray = np.cos(place @ waves + phase) @ height * np.sqrt(2.0 / _WAVES)
    return field
