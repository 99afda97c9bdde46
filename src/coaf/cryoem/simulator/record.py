"""A simulated grid as a recording."""

from math import nan

from coaf.cryoem.microscope import Score
from coaf.cryoem.recorded.build import build_recording
from coaf.cryoem.recorded.recording import Recording
from coaf.cryoem.recorded.seconds import Seconds
from coaf.cryoem.simulator.simulator import Simulator


def record(simulator: Simulator) -> Recording:
    """Every hole of the grid, as if all had been exposed once and scored.

    Features are what a survey shows; seconds are those to plan with.

    Examples
    --------
    >>> recording = record(Simulator(3, squares=2, pixels=False))
    >>> len(recording.holes) == len(recording.shots)
    True
    """
    surveys = [simulator.peek(square.name) for square in simulator.squares()]
    scores = (
        Score(name, k, simulator.truth(name, k), simulator.particles(name, k), nan, nan)
        for survey in surveys
        for patch in survey.patches
        for hole in patch.holes
        for name in [hole.name]
        for k in range(hole.shots)
    )
    return build_recording(
        f"sim{simulator.seed:04d}",
        surveys,
        scores,
        columns=simulator.feature_names,
        seconds=Seconds.of(simulator.timing),
        provenance={"simulator": f"seed {simulator.seed}"},
    )
