"""What exposing the holes of a simulated patch gives, on one visit to it."""

import numpy as np

from coaf.bandit.arrays import FloatArray, IntArray
from coaf.cryoem.simulator.conditions import Conditions, fails, particle_mean, resolution
from coaf.cryoem.simulator.grid import SquareTruth

FAULT_LOSS = 4.0  # badness while the instrument is at fault: no ice explains it


def visit_quality(
    conditions: Conditions,
    truth: SquareTruth,
    holes: IntArray,
    *,
    shift: FloatArray,
    focus: float,
    more: float = 0.0,
) -> tuple[FloatArray, FloatArray]:
    """CTFMaxRes in Å and particles, each (n, shots); nan where there is no fit.

    Parameters
    ----------
    holes : (n,)
        Which holes of the square, -1 for a find that is none.
    shift : (n,)
        How far each is off the patch's centre, in µm.
    focus
        How far off focus the visit is, the same for all.
    more
        Badness of all of them besides: of defocus, of a fault.
    """
    nanometres = truth.thickness[holes][:, None]
    shared = conditions.focus * focus + more
    off = shared + conditions.shift_loss * (shift[:, None] / 10.0) ** 2
    ctf = resolution(conditions, truth.loss[holes][:, None] + truth.luck[holes] + off)
    mean = particle_mean(conditions, nanometres, ctf) * truth.crowd[holes][:, None]
    count = np.maximum(np.rint(mean + np.sqrt(mean) * truth.count[holes]), 0.0)
    failed = fails(conditions, nanometres, truth.chance[holes]) | (holes < 0)[:, None]
    return np.where(failed, np.nan, ctf), np.where(failed, np.nan, count)
