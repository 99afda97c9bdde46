"""Pictures as SVG text, in the colours of the page, so that they follow its light and dark."""

from collections.abc import Iterable, Sequence
from html import escape
from itertools import count
from typing import Any

from rooms import Family, House, Room, first_sentence

WIDTH = 740.0
LINE = 16.0
LETTER = 6.7  # the width of a letter of the small monospaced text
MARGIN = 12.0
LANE = 9.0  # between the lines that run beside the boxes
INDENT = 18.0

STYLE = """
<style>
.coaf-picture { overflow-x: auto; margin: 1rem 0; }
.coaf-picture svg { width: 100%; min-width: 640px; height: auto; }
.coaf-picture text { fill: var(--color-foreground-primary, currentColor); font-size: 12px;
  font-family: var(--font-stack, sans-serif); }
.coaf-picture .mono { font-size: 11px; font-family: var(--font-stack--monospace, monospace); }
.coaf-picture .quiet { fill: var(--color-foreground-secondary, currentColor); }
.coaf-picture .title { font-weight: bold; }
.coaf-picture .room { fill: var(--color-background-secondary, none);
  stroke: var(--color-foreground-border, currentColor); }
.coaf-picture .box { fill: var(--color-background-primary, none);
  stroke: var(--color-foreground-border, currentColor); }
.coaf-picture path { fill: none; stroke: var(--color-foreground-muted, currentColor); }
.coaf-picture .arrow { stroke: var(--color-brand-primary, currentColor); }
.coaf-picture .head { fill: var(--color-brand-primary, currentColor); }
</style>
"""


def _text(x: float, y: float, content: str, kind: str = "", title: str = "") -> str:
    tip = f"<title>{escape(title)}</title>" if title else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{tip}{escape(content)}</text>'


def _box(x: float, y: float, width: float, height: float, kind: str) -> str:
    size = f'width="{width:.1f}" height="{height:.1f}"'
    return f'<rect x="{x:.1f}" y="{y:.1f}" {size} rx="4" class="{kind}"/>'


def _detour(x: float, start: float, lane: float, end: float, title: str, both: bool) -> str:
    """An arrow that leaves an edge at `start`, runs along `lane`, and returns at `end`."""
    out = 1.0 if lane > x else -1.0
    heads = [end, start] if both else [end]
    points = [
        f'<polygon class="head" points="{x:.1f},{y:.1f} {x + 6 * out:.1f},{y - 3:.1f} '
        f'{x + 6 * out:.1f},{y + 3:.1f}"/>'
        for y in heads
    ]
    route = f"M {x:.1f} {start:.1f} H {lane:.1f} V {end:.1f} H {x + 4 * out:.1f}"
    return (
        f'<g><title>{escape(title)}</title><path class="arrow" d="{route}"/>{"".join(points)}</g>'
    )


def _svg(parts: Iterable[str], height: float, label: str) -> str:
    return (
        f'{STYLE}<div class="coaf-picture"><svg viewBox="0 0 {WIDTH:g} {height:g}" role="img" '
        f'aria-label="{escape(label)}">{"".join(parts)}</svg></div>'
    )


def _flow(names: Sequence[str], width: float) -> list[list[tuple[float, int]]]:
    """Lines of names, each as where it begins and which it is."""
    lines: list[list[tuple[float, int]]] = [[]]
    x = 0.0
    for i, name in enumerate(names):
        if x > 0.0 and x + len(name) * LETTER > width:
            lines.append([])
            x = 0.0
        lines[-1].append((x, i))
        x += (len(name) + 2) * LETTER
    return lines


Span = tuple[int, int]  # the positions of two boxes, the upper first


def _lanes(spans: Iterable[Span]) -> dict[Span, int]:
    """A lane for each span so that none shares one with another beside it; short ones inside."""
    taken: list[list[Span]] = []
    found = {}
    for span in sorted(spans, key=lambda s: (s[1] - s[0], s)):
        for lane in count():
            if lane == len(taken):
                taken.append([])
            if all(span[1] <= other[0] or other[1] <= span[0] for other in taken[lane]):
                taken[lane].append(span)
                found[span] = lane
                break
    return found


def _ports(spans: Iterable[Span], boxes: int) -> dict[tuple[int, Span], float]:
    """Where, from top to bottom as a share of its edge, each span touches a box."""
    ports = {}
    for box in range(boxes):
        # What comes from above arrives at the top, the farthest last, so that lines do not cross.
        above = sorted((s for s in spans if s[1] == box), key=lambda s: -s[0])
        below = sorted((s for s in spans if s[0] == box), key=lambda s: -s[1])
        touching = [*above, *below]
        for i, span in enumerate(touching):
            ports[box, span] = (i + 1) / (len(touching) + 1)
    return ports


def _tell(upper: str, lower: str, down: int, up: int) -> str:
    told = [
        f"{one} imports {other} {n} times" if n > 1 else f"{one} imports {other} once"
        for one, other, n in ((upper, lower, down), (lower, upper, up))
        if n
    ]
    return "; ".join(told)


def _spans(names: Sequence[str], imports: dict[tuple[str, str], int]) -> dict[Span, Span]:
    """Pairs of boxes that import one another, with how often downwards and upwards."""
    pairs = [(i, j) for j in range(len(names)) for i in range(j)]
    counts = {
        (i, j): (imports.get((names[i], names[j]), 0), imports.get((names[j], names[i]), 0))
        for i, j in pairs
    }
    return {span: both for span, both in counts.items() if any(both)}


def _arrows(
    labels: Sequence[str],
    spans: dict[Span, Span],
    edges: Sequence[tuple[float, float]],
    x: float,
    out: float,
    step: float,
) -> list[str]:
    """The arrows of `spans` between boxes whose edges lie at `edges`, beside `x`."""
    lanes, ports, parts = _lanes(spans), _ports(spans, len(labels)), []
    for (i, j), (down, up) in spans.items():
        at = [edges[k][0] + ports[k, (i, j)] * (edges[k][1] - edges[k][0]) for k in (i, j)]
        start, end = at if down else at[::-1]
        lane = x + out * (max(12.0, step) + step * lanes[i, j])
        told = _tell(labels[i], labels[j], down, up)
        parts.append(_detour(x, start, lane, end, told, bool(down and up)))
        if step > LANE:  # there is room for the number
            parts.append(_text(lane + 4.0, (start + end) / 2 + 4.0, str(down + up), "quiet"))
    return parts


def _family(family: Family, x: float, y: float, width: float, touching: int) -> tuple[str, float]:
    names = [module.name for module in family.modules]
    lines = _flow(names, width - 2 * MARGIN)
    title = f"{family.name}/" if family.name else "in the room itself"
    height = max(26.0 + LINE * len(lines), 7.0 * (touching + 1))
    parts = [_box(x, y, width, height, "box")]
    parts.append(_text(x + MARGIN, y + 16.0, title, "title", family.about))
    parts += [
        _text(x + MARGIN + at, y + 32.0 + LINE * k, names[i], "mono", family.modules[i].about)
        for k, line in enumerate(lines)
        for at, i in line
    ]
    return "".join(parts), height


def _room(room: Room, x: float, y: float) -> tuple[str, float]:
    spans = _spans([family.name for family in room.families], room.imports)
    lanes = 1 + max(_lanes(spans).values()) if spans else 0
    right = MARGIN + (12.0 + LANE * lanes if spans else 0.0)
    width = WIDTH - 1.0 - x - MARGIN - right
    parts, edges = [], []
    at = y + 46.0
    for k, family in enumerate(room.families):
        touching = sum(k in span for span in spans)
        drawn, height = _family(family, x + MARGIN, at, width, touching)
        parts.append(drawn)
        edges.append((at, at + height))
        at += height + MARGIN
    labels = [family.name or "the room itself" for family in room.families]
    parts += _arrows(labels, spans, edges, x + MARGIN + width, 1.0, LANE)
    title = [
        _box(x, y, WIDTH - 1.0 - x, at - y, "room"),
        _text(x + MARGIN, y + 20.0, room.name, "title"),
        _text(x + MARGIN, y + 36.0, room.about.replace("`", ""), "quiet"),
    ]
    return "".join([*title, *parts]), at - y


def draw_rooms(house: House) -> str:
    """Rooms below the rooms that import them, with their families and modules."""
    names = [room.name for room in house.rooms]
    spans = _spans(names, house.imports)
    step = 30.0
    x = 4.0 + step * (1 + max(_lanes(spans).values(), default=0))
    parts, edges, y = [], [], 1.0
    for room in house.rooms:
        drawn, height = _room(room, x, y)
        parts.append(drawn)
        edges.append((y, y + height))
        y += height + 2 * MARGIN
    parts += _arrows(names, spans, edges, x, -1.0, step)
    return _svg(parts, y - MARGIN, "Rooms, families and modules, and who imports whom")


def draw_round(steps: Sequence[dict[str, Any]], root: str) -> str:
    """What is called in turn: each call that enters another module, below the one that makes it."""
    parts, y = [], 4.0
    for step in steps:
        parts.append(_box(1.0, y, WIDTH - 2.0, 26.0, "room"))
        parts.append(_text(MARGIN, y + 17.0, step["step"], "mono title"))
        y += 26.0
        above = [y]  # the lower edge of the last call of each depth
        for call in step["calls"]:
            depth = call["depth"]
            x, middle = MARGIN + INDENT * (depth + 1), y + 18.0
            del above[depth + 1 :]
            corner = x - INDENT + 6.0
            parts.append(f'<path d="M {corner:.1f} {above[depth]:.1f} V {middle:.1f} H {x:.1f}"/>')
            where = call["module"].removeprefix(f"{root}.").replace(".", "/")
            wide = len(where) * LETTER + 12.0
            parts.append(_box(x, middle - 9.0, wide, 18.0, "box"))
            parts.append(_text(x + 6.0, middle + 4.0, where, "mono"))
            parts.append(_text(x + wide + 8.0, middle + 4.0, call["function"], "mono title"))
            about = first_sentence(call["about"]).replace("`", "")
            parts.append(_text(x + 14.0, middle + 23.0, about, "quiet"))
            above[depth] = middle  # a sister's line begins where this one ended
            above.append(middle + 9.0)
            y = middle + 26.0
        y += 16.0
    return _svg(parts, y, "The calls of one round, in order")
