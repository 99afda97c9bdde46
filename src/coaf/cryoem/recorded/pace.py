"""How long things took, by the times of a recording's shots."""

from collections import defaultdict
from itertools import pairwise

import numpy as np

from coaf.cryoem.recorded.recording import Recording
from coaf.cryoem.recorded.seconds import Seconds


def measured_seconds(recording: Recording) -> Seconds:
    """The medians of what lay between one shot and the next, so that a pause does not count.

    To another shot of the hole it is `shot`, and to another hole of the patch `expose`. To another
    patch it takes `move` on top of that; to another square also the survey, which its patches
    share. What the times do not show is as in `recording.seconds`.
    """
    gaps: dict[str, list[float]] = defaultdict(list)
    shots, patch = recording.shots, recording.patch
    timed = np.flatnonzero(~np.isnan(shots.when))
    order = timed[np.argsort(shots.when[timed], kind="stable")].tolist()
    for before, after in pairwise(order):
        hole, next_hole = shots.hole[before], shots.hole[after]
        here, there = patch[hole], patch[next_hole]
        if hole == next_hole:
            level = "shot"
        elif here == there:
            level = "expose"
        elif recording.squares[here] == recording.squares[there]:
            level = "move"
        elif recording.grids[here] == recording.grids[there]:
            level = "survey"
        else:
            continue  # grids were exchanged
        gaps[level].append(float(shots.when[after] - shots.when[before]))
    found = {level: float(np.median(seconds)) for level, seconds in gaps.items()}
    survey, move, expose, shot, *switches = recording.seconds
    shot = found.get("shot", shot) or shot
    expose = found.get("expose", expose) or expose
    if "move" in found:
        move = max(found["move"] - expose, 0.0)
    if found.get("survey", 0.0) > move + expose:
        squares = len(set(recording.squares))
        survey = (found["survey"] - move - expose) * squares / len(recording.patches)
    return Seconds(survey, move, expose, shot, *switches)
