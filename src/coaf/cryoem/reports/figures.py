"""Drawings of sessions: what was collected when, what a second was worth, and the squares."""

import base64
import io
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.cryoem.images import Image
from coaf.cryoem.session.session import Session
from coaf.cryoem.timing import HOUR
from coaf.worlds.figures import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIDE = 760  # of the drawing of a square
_PIXELS = 420  # of its picture: finer than this only costs space
_GREYS = 24
_BRIGHTEST = 220.0  # so that rings and numbers stand out
# Of a hole, by how it turned out; the last is what was left behind.
RINGS = {
    "good": "#00c389",
    "bad": "#ff7b2e",
    "not scored": "#ffe14d",
    "left": "#3d8bd9",
}


def colours(sessions: Sequence[Session]) -> dict[str, str]:
    """A policy has the same colour in every figure."""
    return {s.policy: COLOURS[i % len(COLOURS)] for i, s in enumerate(sessions)}


def progress_figure(sessions: Sequence[Session], *, what: str = "good micrographs") -> "Figure":
    """What each policy had collected by when; the first one is drawn thicker."""
    from matplotlib.figure import Figure  # an extra

    figure = Figure(figsize=(10.6, 4.8), layout="constrained")
    axes = figure.subplots()
    for place, session in enumerate(sessions):
        hours, gained = session.curve()
        dashed = "--" if session.policy == "clairvoyant" else "-"
        axes.step(
            hours,
            gained,
            dashed,
            where="post",
            color=colours(sessions)[session.policy],
            lw=2.6 if place == 0 else 1.5,
            label=f"{session.policy}: {gained[-1]:.0f}",
        )
    axes.set_xlabel("time (h)")
    axes.set_ylabel(what)
    axes.set_xlim(0.0, max(session.hours for session in sessions))
    axes.set_ylim(bottom=0.0)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False)
    _plain(axes)
    return figure


def rate_figure(session: Session) -> "Figure":
    """What a second was worth when things were decided, beside what an hour brought in fact."""
    from matplotlib.figure import Figure  # an extra

    figure = Figure(figsize=(10.6, 3.9), layout="constrained")
    axes = figure.subplots()
    # A rule does not know what a second is worth, and nor does a pilot that has seen nothing: 0.
    told = [(r["clock"] / HOUR, r["rate"]) for r in session.rows if r["rate"]]
    if told:
        times, rates = np.array(told, dtype=np.float64).T
        axes.plot(times, rates * HOUR, color=COLOURS[0], lw=1.4, label="what an hour was worth")
    hours, gained = session.curve()
    later = hours > 0.1 * session.hours  # a mean over few exposures is noise
    axes.plot(
        hours[later],
        gained[later] / hours[later],
        color=COLOURS[1],
        lw=1.4,
        label="collected per hour, so far",
    )
    axes.set_xlabel("time (h)")
    axes.set_ylabel("reward per hour")
    axes.set_xlim(0.0, session.hours)
    axes.set_ylim(bottom=0.0)
    axes.legend(frameon=False)
    _plain(axes)
    return figure


def hours_figure(session: Session) -> "Figure":
    """Exposures in each part of the session, by how they turned out."""
    from matplotlib.figure import Figure  # an extra

    figure = Figure(figsize=(10.6, 3.4), layout="constrained")
    axes = figure.subplots()
    width = 0.25 if session.hours <= 6.0 else 1.0
    edges = np.arange(0.0, session.hours + width, width)
    ends = fates(session)
    below = np.zeros(len(edges) - 1)
    for name in ("good", "bad", "not scored"):
        times = [r["clock"] / HOUR for r in session.exposures() if ends[str(r["hole"])] == name]
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


_BARS = {"good": COLOURS[2], "bad": COLOURS[1], "not scored": "0.75"}


def fates(session: Session) -> dict[str, str]:
    """By hole that was exposed: how it turned out, as far as scores tell; the first of `RINGS`."""
    scores = session.scores()
    return {
        hole: "not scored" if hole not in scores else "good" if scores[hole] > 0.0 else "bad"
        for hole in session.shots
    }


def square_drawing(session: Session, square: str, ends: Mapping[str, str]) -> bytes:
    """A square with its holes, as SVG: each with its estimate at its top right corner.

    `ends` are the `fates` of the session.
    """
    survey = session.surveys[square]
    holes = [hole for patch in survey.patches for hole in patch.holes]
    image = survey.image or _blank(np.array([(hole.x, hole.y) for hole in holes]))
    rows, columns = image.pixels.shape
    scale = SIDE / columns
    height = rows * scale
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIDE} {height:.0f}" '
        f'width="{SIDE}" height="{height:.0f}" font-family="sans-serif">',
        f'<image width="{SIDE}" height="{height:.0f}" '
        f'href="data:image/png;base64,{base64.b64encode(_png(image)).decode()}"/>',
    ]
    places = image.to_pixels([(hole.x, hole.y) for hole in holes]) * scale if holes else []
    explored = {row["hole"] for row in session.exposures() if (row["propensity"] or 1.0) < 1.0}
    for hole, (x, y) in zip(holes, places, strict=True):
        now = ends.get(hole.name, "left")
        radius = max(hole.radius / image.pixel_size * scale, 3.0)
        width = 0.9 if now == "left" else 2.2
        dashes = ' stroke-dasharray="3 2"' if hole.name in explored else ""
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="none" '
            f'stroke="{RINGS[now]}" stroke-width="{width}"{dashes}/>'
        )
        estimate = session.estimates.get(hole.name, np.nan)
        if np.isfinite(estimate):
            parts.append(
                f'<text x="{x + 0.65 * radius:.1f}" y="{y - 0.75 * radius:.1f}" font-size="8.5" '
                f'fill="#fff" stroke="#000" stroke-width="1.6" paint-order="stroke">'
                f"{escape(_short(float(estimate)))}</text>"
            )
    parts.append("</svg>")
    return "".join(parts).encode()


def _short(value: float) -> str:
    """Two decimals and no zero before them: there are many, and little room."""
    return f"{value:.2f}".removeprefix("0") if 0.0 <= value < 1.0 else f"{value:.1f}"


def _blank(places: FloatArray) -> Image:
    """A grey ground where there is no image."""
    if not len(places):
        return Image(np.full((64, 64), 0.5), 1.0)
    low, high = places.min(axis=0) - 3.0, places.max(axis=0) + 3.0
    side, (x, y) = float((high - low).max()), (0.5 * (low + high)).tolist()
    return Image(np.full((256, 256), 0.5), side / 256.0, x, y)


def _png(image: Image) -> bytes:
    """A small picture: averaged, the darkest and brightest clipped, few greys."""
    from PIL import Image as Picture  # an extra: matplotlib brings it

    factor = max(-(-image.pixels.shape[1] // _PIXELS), 1)
    rows, columns = (n // factor * factor for n in image.pixels.shape)
    small = image.pixels[:rows, :columns].reshape(rows // factor, factor, columns // factor, factor)
    small = small.mean(axis=(1, 3))
    low, high = np.quantile(small, [0.01, 0.995])
    level = np.clip((small - low) / max(float(high - low), 1e-9), 0.0, 1.0)
    greys = np.round(level * _GREYS) * (_BRIGHTEST / _GREYS)
    held = io.BytesIO()
    Picture.fromarray(greys.astype(np.uint8)).save(held, format="PNG", optimize=True)
    return held.getvalue()


def _plain(axes: "Axes") -> None:
    axes.grid(True, which="major", color="0.9", lw=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
