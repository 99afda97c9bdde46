"""Squares as SVG: every hole with what was expected of it and what was measured."""

import base64
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.cryoem.grid import Hole, Patch
from coaf.cryoem.images import Image, binned
from coaf.cryoem.microscope import Survey
from coaf.cryoem.reports.outcomes import Outcomes, clock, tally

_WIDE = 1000  # of a map, in its own units
_PIXELS = 700  # of its picture: finer than this only costs space
_SMALL = 200  # of a thumbnail
_LETTERS = 14.0  # their height, at most
_MARGIN = 40.0  # around the holes that are shown, at least
_NEAREST = 450.0  # of what is shown of a map, at least
_NARROWEST = 40.0  # µm, of a square without a picture
_BRIGHTEST = 215.0  # so that rings and numbers stand out


_Box = tuple[float, float, float, float]  # left, top, width and height


@dataclass(frozen=True, slots=True)
class _Ground:
    """What a map is drawn on: a picture where there is one, and where things are on it."""

    image: Image
    shown: bool

    @property
    def scale(self) -> float:
        return float(_WIDE / self.image.pixels.shape[1])

    @property
    def height(self) -> float:
        return float(self.image.pixels.shape[0] * self.scale)

    def places(self, holes: Iterable[Hole]) -> FloatArray:
        found: FloatArray = self.image.to_pixels([(h.x, h.y) for h in holes]) * self.scale
        return found

    @property
    def all(self) -> _Box:
        return 0.0, 0.0, float(_WIDE), self.height

    def around(self, holes: Sequence[Hole]) -> _Box:
        """Where holes are, and a little more: squares are rarely as large as their pictures."""
        if not holes:
            return self.all
        places = self.places(holes)
        margin = max(_MARGIN, 4.0 * max(map(self.radius, holes)))
        low, high = places.min(axis=0) - margin, places.max(axis=0) + margin
        middle, (wide, tall) = 0.5 * (low + high), (high - low).tolist()
        # Neither so narrow nor so near that it fills more than the page when drawn as wide.
        wide = min(max(wide, 0.85 * tall, _NEAREST), float(_WIDE))
        tall = min(max(tall, 0.4 * wide), self.height)
        left = min(max(float(middle[0]) - 0.5 * wide, 0.0), _WIDE - wide)
        top = min(max(float(middle[1]) - 0.5 * tall, 0.0), self.height - tall)
        return left, top, wide, tall

    def radius(self, hole: Hole) -> float:
        return max(hole.radius / self.image.pixel_size * self.scale, 5.0)

    def picture(self, pixels: int) -> str:
        size = f'width="{_WIDE}" height="{self.height:.0f}"'
        if not self.shown:
            return f'<rect class="ground" {size}/>'
        data = base64.b64encode(_jpeg(self.image, pixels)).decode()
        return f'<image {size} href="data:image/jpeg;base64,{data}"/>'


def square_map(outcomes: Outcomes, square: str, names: Mapping[str, str]) -> str:
    """A square with its patches outlined, and its holes with estimate and measurement.

    The estimate is at the top right of a hole, what was measured is in it. Hovering tells the rest.
    `names` are the identifiers of holes in the page.
    """
    survey = outcomes.session.surveys[square]
    ground = _ground(survey)
    label = f"Square {square}, its patches and holes"
    holes = [hole for patch in survey.patches for hole in patch.holes]
    letters = min(1.25 * min(map(ground.radius, holes), default=8.0), _LETTERS)
    begin = _begin(label, ground.around(holes), letters=letters)
    parts = [begin, ground.picture(_PIXELS)]
    for patch in survey.patches:
        places = ground.places(patch.holes)
        told = outcomes.visits.get(patch.name, [])
        entered = any(hole.name in outcomes.taken for hole in patch.holes)
        parts.append(
            f'<g class="patch{"" if entered else " skipped"}">'
            f"<title>{escape(_of_patch(outcomes, patch))}</title>"
            f'<path d="{_outline(places, [ground.radius(h) for h in patch.holes])}"/></g>'
        )
        why = told[-1]["why"] if told else ""
        for hole, (x, y) in zip(patch.holes, places.tolist(), strict=True):
            drawn = _hole(outcomes, hole, x, y, ground.radius(hole))
            title = escape(_of_hole(outcomes, hole, patch, why))
            kind = _kind(outcomes, hole.name)
            parts.append(
                f'<g id="{names[hole.name]}" class="hole {kind}"><title>{title}</title>{drawn}</g>'
            )
    return "".join([*parts, "</svg>"])


def thumbnail(outcomes: Outcomes, square: str) -> str:
    """The same, small: dots by how holes turned out."""
    survey = outcomes.session.surveys[square]
    ground = _ground(survey)
    holes = [hole for patch in survey.patches for hole in patch.holes]
    parts = [_begin(f"Square {square}", ground.all), ground.picture(_SMALL)]
    for hole, (x, y) in zip(holes, ground.places(holes).tolist(), strict=True):
        if hole.name in outcomes.taken:
            kind = _kind(outcomes, hole.name)
            # Larger than they are, or they could not be seen.
            size = max(1.6 * ground.radius(hole), 9.0)
            parts.append(f'<circle class="dot {kind}" cx="{x:.0f}" cy="{y:.0f}" r="{size:.0f}"/>')
    return "".join([*parts, "</svg>"])


def _begin(label: str, box: _Box, *, letters: float = 0.0) -> str:
    view = " ".join(f"{value:.0f}" for value in box)
    size = f' font-size="{letters:.1f}"' if letters else ""
    return f'<svg viewBox="{view}"{size} role="img" aria-label="{escape(label, quote=True)}">'


def _kind(outcomes: Outcomes, hole: str) -> str:
    """Classes that say how a hole turned out."""
    if hole not in outcomes.taken:
        return "left"
    one = outcomes.taken[hole]
    return one.fate.replace(" ", "-") + (" chance" if one.explored else "")


def _hole(outcomes: Outcomes, hole: Hole, x: float, y: float, radius: float) -> str:
    drawn = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>'
    estimate = outcomes.estimate(hole.name)
    if estimate is not None:
        at = f'x="{x + 0.7 * radius:.1f}" y="{y - 0.8 * radius:.1f}"'
        drawn += f'<text class="expected" {at}>{escape(_short(outcomes, estimate))}</text>'
    if hole.name in outcomes.taken:
        measured = escape(outcomes.label(hole.name))
        drawn += f'<text class="measured" x="{x:.1f}" y="{y:.1f}" dy=".36em">{measured}</text>'
    return drawn


def _short(outcomes: Outcomes, estimate: float) -> str:
    """Two decimals of a chance and no zero before them: there are many, and little room."""
    value = max(estimate * outcomes.unit.scale, 0.0)
    if value < 0.995 and outcomes.unit.scale < 10.0:
        return f"{value:.2f}".removeprefix("0")
    return f"{value:.1f}" if value < 9.95 and outcomes.unit.scale < 10.0 else f"{value:.0f}"


def _of_hole(outcomes: Outcomes, hole: Hole, patch: Patch, why: str) -> str:
    """All that is to be said of a hole, a line each."""
    lines = [outcomes.short(hole.name)]
    expected = outcomes.expected(outcomes.estimate(hole.name))
    if hole.name not in outcomes.taken:
        lines.append(f"expected: {expected}; left" if expected else "left")
        return "\n".join([*lines, why] if why else lines)
    one = outcomes.taken[hole.name]
    if expected:
        lines.append(f"expected when decided: {expected}")
    lines.append(f"measured: {outcomes.came(hole.name)}")
    late = "" if one.scored_at is None else f", scored {_after(one.scored_at - one.row['clock'])}"
    lines.append(f"taken at {clock(one.row['clock'])}{late}")
    return "\n".join([*lines, one.row["why"]])


def _after(seconds: float) -> str:
    return f"{seconds:.0f} s later" if seconds < 100.0 else f"{seconds / 60.0:.0f} min later"


def _of_patch(outcomes: Outcomes, patch: Patch) -> str:
    lines = [f"patch {outcomes.short(patch.name)}", tally(outcomes.of_patch(patch), outcomes.unit)]
    for row in outcomes.visits.get(patch.name, []):
        lines.append(f"{clock(row['clock'])} {row['event']}: {row['why']}")
    return "\n".join(lines)


def _outline(places: FloatArray, radii: list[float]) -> str:
    """The convex hull of some circles, a little larger than they are, as a path."""
    turns = np.linspace(0.0, 2.0 * np.pi, 12, endpoint=False)
    around = np.column_stack([np.cos(turns), np.sin(turns)])
    points = (places[:, None, :] + 1.5 * np.array(radii)[:, None, None] * around).reshape(-1, 2)
    corners = " ".join(f"{x:.0f},{y:.0f}" for x, y in _hull(points))
    return f"M{corners}Z"


def _hull(points: FloatArray) -> list[tuple[float, float]]:
    """Andrew's monotone chain."""
    ordered = sorted({(float(x), float(y)) for x, y in points.round(1)})

    def half(some: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
        chain: list[tuple[float, float]] = []
        for point in some:
            while len(chain) > 1 and _turn(chain[-2], chain[-1], point) <= 0.0:
                chain.pop()
            chain.append(point)
        return chain[:-1]

    return half(ordered) + half(reversed(ordered))


def _turn(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _ground(survey: Survey) -> _Ground:
    if survey.image is not None:
        return _Ground(survey.image, shown=True)
    holes = [hole for patch in survey.patches for hole in patch.holes]
    if not holes:
        return _Ground(Image(np.zeros((16, 16), np.float32), 1.0), shown=False)
    places = np.array([(hole.x, hole.y) for hole in holes])
    low, high = places.min(axis=0), places.max(axis=0)
    # As wide as the holes need, and not much higher or lower than that.
    width, height = np.maximum(high - low + 10.0, _NARROWEST).tolist()
    x, y = (0.5 * (low + high)).tolist()
    rows = round(min(max(256.0 * height / width, 64.0), 384.0))
    size = max(width / 256.0, height / rows)
    return _Ground(Image(np.zeros((rows, 256), np.float32), size, x, y), shown=False)


def _jpeg(image: Image, pixels: int) -> bytes:
    """A small picture: averaged, the darkest and brightest clipped."""
    from PIL import Image as Picture  # an extra: matplotlib brings it

    shape = image.pixels.shape
    factor = max(shape[1] // pixels, 1)
    small = binned(image.pixels, factor)[: shape[0] // factor, : shape[1] // factor]
    low, high = np.quantile(small, [0.01, 0.995])
    level = np.clip((small - low) / max(float(high - low), 1e-9), 0.0, 1.0)
    picture = Picture.fromarray((level * _BRIGHTEST).astype(np.uint8))
    ratio = pixels / picture.width
    if ratio < 1.0:
        picture = picture.resize((pixels, max(round(picture.height * ratio), 1)))
    held = io.BytesIO()
    picture.save(held, format="JPEG", quality=70, optimize=True)
    return held.getvalue()
