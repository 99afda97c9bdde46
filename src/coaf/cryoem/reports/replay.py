"""The report of a replay: each pilot beside the yardsticks, and good against time."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.cryoem.timing import HOUR
from coaf.version import __version__
from coaf.worlds.figures import COLOURS
from coaf.worlds.report import Cell, Page, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from coaf.cryoem.recorded.replay import Pass

_POINTS = 241
_YARDSTICKS = {
    "clairvoyant": "the best subset of each patch, by who knows every outcome",
    "calibrated": "the paper's rule, with what a column means on this grid known beforehand",
    "best_fixed_cut": "the best cut on a column, found in hindsight",
}


def write(
    out: Path, result: Mapping[str, Any], passes: "Mapping[str, Sequence[Pass]]"
) -> list[Path]:
    """Write report and figure into a folder; the report first."""
    png, vector = save(good_against_time(passes), out, "collected")
    report = _page(result, vector.read_bytes())
    return [report.write(out / "report.html"), png, vector]


def _page(result: Mapping[str, Any], drawing: bytes) -> Page:
    data = result["data"]
    how = {
        "random": f"Patches are shown once each, in {data['orders']} random orders.",
        "recorded": "Patches are shown once each, in the order in which they were collected.",
        "free": "Pilots choose where to go, and may return.",
    }[data["order"]]
    columns = ", ".join(data["columns"]) or "nothing"
    report = Page(
        f"Replay of {data['name']}",
        lead=f"{data['holes']:,} holes in {data['patches']} patches of {data['squares']} squares; "
        f"known before exposure: {columns}. A reward is {data['reward']}. {how}",
    )
    report.section("Result")
    rows: list[list[Cell]] = [
        [
            name,
            found["good_per_hour"],
            found["standard_error"],
            found["good"],
            found["exposed"],
            found["hours"],
        ]
        for name, found in result["policies"].items()
    ]
    heads = ["pilot", "good per hour", "standard error", "good", "exposed", "hours"]
    report.table(heads, rows, caption="Means over orders.")
    limits: list[list[Cell]] = [
        [named(name, data), value, _YARDSTICKS[name]]
        for name, value in result["yardsticks"].items()
    ]
    report.table(["yardstick", "good per hour", "what it is"], limits)
    if data["not_played"]:
        report.text(
            f"{data['not_played']:,} holes could not be played: they were never exposed, or a "
            "number that is known of others is missing."
        )
    report.section("Good against time")
    report.figure(
        drawing,
        caption="What had been collected by when, on average over orders. A line ends where a "
        "pilot had seen all patches.",
        alt="Lines of the reward collected against hours, one for each pilot.",
    )
    files = ", ".join(Path(path).name for path in data["files"])
    report.footer(f"coaf {__version__}. Read from {files}.")
    return report


def named(yardstick: str, data: Mapping[str, Any]) -> str:
    """What a yardstick is called, with the column that it goes by."""
    column = data["yardstick_columns"].get(yardstick)
    return yardstick.replace("_", " ") + (f" ({column})" if column else "")


def good_against_time(passes: "Mapping[str, Sequence[Pass]]") -> "Figure":
    """What each pilot had collected by when, on average over its passes, until they end."""
    from matplotlib.figure import Figure  # an extra

    figure = Figure(figsize=(9.0, 4.6), layout="constrained")
    axes = figure.subplots()
    for k, (name, found) in enumerate(passes.items()):
        ends = float(np.mean([one.seconds for one in found]))
        times = np.linspace(0.0, ends, _POINTS)
        colour = COLOURS[k % len(COLOURS)]
        axes.plot(times / HOUR, curve(found, times), color=colour, label=name)
    axes.set_xlabel("hours")
    axes.set_ylabel("reward collected")
    axes.set_xlim(left=0.0)
    axes.set_ylim(bottom=0.0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return figure


def curve(passes: "Sequence[Pass]", times: FloatArray) -> FloatArray:
    """What had been collected at these times, in seconds, on average over passes."""
    summed = np.zeros(len(times))
    for one in passes:
        when = np.array([time for time, _ in one.gains])
        total = np.concatenate([[0.0], np.cumsum([gain for _, gain in one.gains])])
        summed += total[np.searchsorted(when, times, side="right")]
    mean: FloatArray = summed / len(passes)
    return mean
