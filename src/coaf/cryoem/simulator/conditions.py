"""The physics of a simulated grid: from ice and focus to the resolution of a micrograph."""

from dataclasses import dataclass, fields, replace
from math import inf
from typing import Any

import numpy as np

from coaf.bandit.arrays import BoolArray, FloatArray, number

_LEAST = {"patch_rows": 1.0, "patch_columns": 1.0, "sight_slope": -inf, "sight_shift": -inf}
_SHARP = 4.0  # Å: with a better fit all particles are of use
_SHARES = ("empty", "heavy", "crystalline", "no_fit", "missed", "false", "stray", "fault_share")


@dataclass(frozen=True, slots=True)
class Conditions:
    """Every number of a simulated grid and microscope.

    The defaults were fitted to a real grid of aldolase; `population` draws others, as wide as real
    grids are. Spreads are standard deviations; those of thickness are of its logarithm. Losses are
    in the unit of `middle`: what is added to a hole's badness, which `resolution` turns into Å.

    Attributes
    ----------
    thickness, grid_spread
        Median ice thickness over grids in nm, and how much grids differ in it.
    square_spread, area_drift, patch_spread, hole_spread
        Of thickness: between squares, from one side of the grid to its middle, of a smooth field
        inside a square, and from hole to hole.
    reach
        How far the smooth field remembers itself, in µm.
    empty, heavy, crystalline
        Shares of holes without ice, with several times the ice, and with crystals in it.
    thin, thick
        Between these two thicknesses (nm) ice is at its best.
    thin_loss, thick_loss, crystal_loss
        Badness per unit of log thickness below `thin`, and above `thick`; of crystals.
    focus, shift_loss, luck, shot_luck
        Badness of a focus error, shared by a visit to a patch; of a hole 10 µm off the patch's
        centre (it grows with the square); of the hole alone, and of each of its shots alone.
    floor, scale, steep, middle
        Å of a perfect hole; Å per unit of badness in bad ones; how sharply, and where, the one
        turns into the other.
    no_fit
        Share of failed fits where there is ice.
    particles, useful
        Mean count of the best micrographs, and the resolution in Å at which only half of the
        particles there are of use.
    crowd_square, crowd_patch, crowd_hole
        Spread of the logarithm of particle counts: between squares, of a smooth field inside a
        square, and from hole to hole.
    defocus_steps, defocus_loss
        How many defoci a session cycles through, from −2.5 to −0.5 µm and hole by hole, anew in
        each square; and the badness of the last of them. 0 steps: one defocus, and no word of it.
    patch_rows, patch_columns
        Holes along the two sides of a patch, where no image is drawn.
    sight_slope, sight_shift
        How much of a difference in log thickness pixels show: 0 none, −1 the opposite; and by how
        much all of it seems thicker than it is.
    sight_hole, sight_patch, sight_area, sight_grid
        Error of what pixels tell of log thickness: of each hole, shared by a patch, by an area
        (a tile of the atlas), by a grid.
    sight_noise
        Spread of the logarithm of a prediction in Å that has no reason at all.
    pixel_gain
        How much grids differ in what a nanometre of ice does to brightness.
    atlas_noise
        Error of what the atlas tells of a square's log thickness.
    usable
        Mean share of a square that thick ice does not hide.
    missed, false
        Of the hole finder, where no image is drawn: share of holes it misses, and of finds that
        are no hole.
    tails, upkeep
        Relative to the regime: how often ways to a patch take long; how long maintenance takes.
    delay, stray, outage_every, outage_hours, lapse_every, lapse_hours
        Of the queue of scores, as in `feedback.Queue`.
    fault_share, fault_hours
        Share of grids with an episode in which every score is bad, and its mean length.
    """

    thickness: float = 97.0
    grid_spread: float = 0.12
    square_spread: float = 0.34
    area_drift: float = 0.2
    patch_spread: float = 0.295
    hole_spread: float = 0.16
    reach: float = 10.0
    empty: float = 0.004
    heavy: float = 0.01
    crystalline: float = 0.02
    thin: float = 24.0
    thick: float = 48.0
    thin_loss: float = 4.0
    thick_loss: float = 1.5
    crystal_loss: float = 1.0
    focus: float = 0.44
    shift_loss: float = 0.1
    luck: float = 0.385
    shot_luck: float = 0.15
    floor: float = 3.15
    scale: float = 4.4
    steep: float = 4.7
    middle: float = 0.53
    no_fit: float = 0.004
    particles: float = 110.0
    useful: float = 6.0
    crowd_square: float = 0.4
    crowd_patch: float = 0.4
    crowd_hole: float = 0.5
    defocus_steps: float = 0.0
    defocus_loss: float = 1.0
    patch_rows: float = 5.0
    patch_columns: float = 5.0
    sight_slope: float = 1.0
    sight_shift: float = 0.0
    sight_hole: float = 0.108
    sight_patch: float = 0.137
    sight_area: float = 0.06
    sight_grid: float = 0.08
    sight_noise: float = 0.06
    pixel_gain: float = 0.15
    atlas_noise: float = 0.2
    usable: float = 0.56
    missed: float = 0.01
    false: float = 0.005
    tails: float = 1.0
    upkeep: float = 1.0
    delay: float = 45.0
    stray: float = 0.02
    outage_every: float = 60.0
    outage_hours: float = 3.0
    lapse_every: float = 15.0
    lapse_hours: float = 2.0
    fault_share: float = 0.1
    fault_hours: float = 2.0

    def __post_init__(self) -> None:
        for one in fields(self):
            number(one.name, getattr(self, one.name), low=_LEAST.get(one.name, 0.0))
        for name in _SHARES:
            if getattr(self, name) > 1.0:
                raise ValueError(f"{name} is {getattr(self, name):g}; a share is at most 1")
        if not 0.0 < self.usable < 1.0:
            raise ValueError(f"usable is {self.usable:g}; it must be between 0 and 1")
        if not 0.0 < self.thin < self.thick:
            raise ValueError(
                f"thin is {self.thin:g} and thick {self.thick:g}; need 0 < thin < thick"
            )

    def scaled(self, **factors: float) -> "Conditions":
        """The same with some of its numbers multiplied.

        Examples
        --------
        >>> Conditions(luck=0.5).scaled(luck=1.3).luck
        0.65
        """
        known = {one.name for one in fields(self)}
        unknown = sorted(set(factors) - known)
        if unknown:
            raise ValueError(
                f"Conditions have no {unknown[0]!r}; they have {', '.join(sorted(known))}"
            )
        changes: dict[str, Any] = {name: getattr(self, name) * by for name, by in factors.items()}
        return replace(self, **changes)


def thickness_loss(conditions: Conditions, nanometres: FloatArray) -> FloatArray:
    """Badness of ice: none in the window, and growing to both sides of it.

    Examples
    --------
    >>> conditions = Conditions(thin=20, thick=60, thin_loss=2, thick_loss=1)
    >>> thickness_loss(conditions, np.array([10.0, 40.0, 120.0]))
    array([1.38629436, 0.        , 0.69314718])
    """
    # A hole without ice is a thousandth of a nanometre to the logarithm; it has no fit anyway.
    log = np.log(np.maximum(nanometres, 1e-3))
    loss: FloatArray = conditions.thin_loss * np.maximum(np.log(conditions.thin) - log, 0.0)
    loss += conditions.thick_loss * np.maximum(log - np.log(conditions.thick), 0.0)
    return loss


def resolution(conditions: Conditions, badness: FloatArray) -> FloatArray:
    """CTFMaxRes in Å of a hole's badness: flat near the floor, then `scale` Å per unit."""
    bend = np.logaddexp(0.0, conditions.steep * (badness - conditions.middle)) / conditions.steep
    angstrom: FloatArray = conditions.floor + conditions.scale * bend
    return angstrom


# Nodes and weights of a normal mean: the expected resolution where luck is not known.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


def expected_resolution(conditions: Conditions, badness: FloatArray) -> FloatArray:
    """The mean of `resolution` over focus, luck and shot: the best guess from the ice alone."""
    spread = np.sqrt(
        conditions.luck**2 + conditions.shot_luck**2 + (1.0 - 2.0 / np.pi) * conditions.focus**2
    )
    centre = badness + np.sqrt(2.0 / np.pi) * conditions.focus
    each = resolution(conditions, centre[..., None] + spread * _NODES)
    mean: FloatArray = each @ _WEIGHTS
    return mean


def fails(conditions: Conditions, nanometres: FloatArray, draw: FloatArray) -> BoolArray:
    """Where no fit is found, given uniform draws: in holes without ice, and now and then."""
    bare = nanometres < conditions.thin / 4.0
    failed: BoolArray = bare | (draw < conditions.no_fit)
    return failed


def particle_mean(conditions: Conditions, nanometres: FloatArray, ctf: FloatArray) -> FloatArray:
    """Expected particles of use: few in thin ice, most a little above it, none where it blurs.

    What a picker finds in a micrograph that resolves nothing is of no use to a structure.

    Examples
    --------
    >>> ctf = np.array([3.5, 6.0, 10.0])
    >>> particle_mean(Conditions(particles=100), np.full(3, 90.0), ctf).round()
    array([100.,  50.,   4.])
    """
    holds = 1.0 - np.exp(-((nanometres / (1.5 * conditions.thin)) ** 2))
    mean: FloatArray = conditions.particles * holds * useful_share(conditions, ctf)
    return mean


def useful_share(conditions: Conditions, ctf: FloatArray) -> FloatArray:
    """Of the particles of a micrograph with this fit, the share that is of use."""
    beyond = np.maximum(ctf - _SHARP, 0.0) / max(conditions.useful - _SHARP, 1e-6)
    share: FloatArray = 1.0 / (1.0 + beyond**3)
    return share


def defocus_of(conditions: Conditions, turn: int) -> tuple[float | None, float]:
    """The defocus in µm of the hole taken at this turn of a square, and its badness.

    Examples
    --------
    >>> [defocus_of(Conditions(defocus_steps=5), turn)[0] for turn in (0, 4, 5)]
    [-2.5, -0.5, -2.5]
    """
    steps = int(conditions.defocus_steps)
    if steps == 0:
        return None, 0.0
    along = (turn % steps) / max(steps - 1, 1)
    # Little defocus is little contrast: the loss comes with the last micrometre.
    return -2.5 + 2.0 * along, conditions.defocus_loss * max(2.0 * along - 1.0, 0.0) ** 2
