"""Figures of sessions: what was collected when, what an hour was worth, and how it turned out."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from coaf.cryoem.session.session import Session
from coaf.cryoem.timing import HOUR
from coaf.cryoem.unit import MICROGRAPHS, Unit
from coaf.worlds.figures import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def colours(sessions: Sequence[Session]) -> dict[str, str]:
    """A pilot has the same colour in every figure."""
    return {s.policy: COLOURS[i % len(COLOURS)] for i, s in enumerate(sessions)}


def progress_figure(sessions: Sequence[Session], *, unit: Unit = MICROGRAPHS) -> "Figure":
    """What each pilot had collected by when; the first one is drawn thicker."""
    from matplotlib.figure import Figure  # an extra

    figure = Figure(figsize=(10.6, 4.8), layout="constrained")
    axes = figure.subplots()
    for place, session in enumerate(sessions):
        hours, gained = session.curve()
        gained = gained * unit.scale
        dashed = "--" if session.policy == "clairvoyant" else "-"
        axes.step(
            hours,
            gained,
            dashed,
            where="post",
            color=colours(sessions)[session.policy],
            lw=2.6 if place == 0 else 1.5,
            label=f"{session.policy}: {gained[-1]:,.0f}",
        )
    axes.set_xlabel("time (h)")
    axes.set_ylabel(axis(unit))
    axes.set_xlim(0.0, max(session.hours for session in sessions))
    axes.set_ylim(bottom=0.0)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False)
    _plain(axes)
    return figure


def rate_figure(session: Session, *, unit: Unit = MICROGRAPHS) -> "Figure":
    """What an hour was worth when things were decided, beside what an hour brought in fact."""
    from matplotlib.figure import Figure  # an extra

    figure = Figure(figsize=(10.6, 3.9), layout="constrained")
    axes = figure.subplots()
    # A rule does not know what a second is worth, and nor does a pilot that has seen nothing: 0.
    told = [(r["clock"] / HOUR, r["rate"]) for r in session.rows if r["rate"]]
    if told:
        times, rates = np.array(told, dtype=np.float64).T
        axes.plot(
            times,
            rates * HOUR * unit.scale,
            color=COLOURS[0],
            lw=1.4,
            label="what an hour was worth",
        )
    hours, gained = session.curve()
    later = hours > 0.1 * session.hours  # a mean over few exposures is noise
    axes.plot(
        hours[later],
        gained[later] / hours[later] * unit.scale,
        color=COLOURS[1],
        lw=1.4,
        label="collected per hour, so far",
    )
    axes.set_xlabel("time (h)")
    axes.set_ylabel(f"{axis(unit)} an hour")
    axes.set_xlim(0.0, session.hours)
    axes.set_ylim(bottom=0.0)
    axes.legend(frameon=False)
    _plain(axes)
    return figure


def hours_figure(session: Session, fates: Mapping[str, str]) -> "Figure":
    """Exposures in each part of the session, by how they turned out: the `fates` of holes."""
    from matplotlib.figure import Figure  # an extra

    figure = Figure(figsize=(10.6, 3.4), layout="constrained")
    axes = figure.subplots()
    width = 0.25 if session.hours <= 6.0 else 1.0
    edges = np.arange(0.0, session.hours + width, width)
    below = np.zeros(len(edges) - 1)
    for name in ("good", "bad", "not scored"):
        times = [r["clock"] / HOUR for r in session.exposures() if fates[str(r["hole"])] == name]
        count = np.histogram(times, edges)[0] / width
        axes.bar(
            edges[:-1], count, width, below, align="edge", color=_BARS[name], label=name, ec="white"
        )
        below += count
    axes.set_xlabel("time (h)")
    axes.set_ylabel("exposures per hour")
    axes.set_xlim(0.0, session.hours)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False)
    _plain(axes)
    return figure


def axis(unit: Unit) -> str:
    """What is counted, as a heading."""
    return unit.name.removeprefix("of ")


_BARS = {"good": COLOURS[2], "bad": COLOURS[1], "not scored": "0.75"}


def _plain(axes: "Axes") -> None:
    axes.grid(True, which="major", color="0.9", lw=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
