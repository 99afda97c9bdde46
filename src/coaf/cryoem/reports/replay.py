"""The report of a replay: each pilot beside the yardsticks, and good against time."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from coaf.cryoem.recorded.replay import Pass, curve
from coaf.cryoem.timing import HOUR
from coaf.worlds.figures import COLOURS
from coaf.worlds.report import Page

POINTS = 241


def write(out: Path, result: Mapping[str, Any], passes: Mapping[str, Sequence[Pass]]) -> list[Path]:
    """Write report and figure into a folder; the report first."""
    out.mkdir(parents=True, exist_ok=True)
    figure = draw(result, passes)
    return []


def draw(result: Mapping[str, Any], passes: Mapping[str, Sequence[Pass]]) -> Figure:
    """What had been collected by when, on average over orders."""
    figure = Figure(figsize=(7.0, 4.0), layout="constrained")
    axes = figure.subplots()
    longest = max(one.seconds for found in passes.values() for one in found)
    times = np.linspace(0.0, longest, POINTS)
    for (name, found), colour in zip(passes.items(), COLOURS, strict=False):
        axes.plot(times / HOUR, curve(found, times), label=name, color=colour)
    return figure
