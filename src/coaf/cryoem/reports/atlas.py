"""The atlas as SVG: squares where they are, coloured by what they gave."""

from collections.abc import Mapping, Sequence
from html import escape

from coaf.cryoem.grid import Square
from coaf.cryoem.reports.outcomes import Outcomes, clock, tally
from coaf.cryoem.session.session import Session

_GAP = 0.9  # how much of the way to its next neighbour a square may fill
_WIDTH = 1000.0
_WIDEST, _LARGEST = 44.0, 6.0  # of a map and of a square on it, in letters' heights


def atlas_map(outcomes: Outcomes, names: Mapping[str, str]) -> list[str]:
    """A map of each grid; `names` are the identifiers of opened squares in the page."""
    return [_drawn(outcomes, squares, names) for squares in _grids(outcomes)]


def _grids(outcomes: Outcomes) -> list[list[Square]]:
    """Squares by the grid that they are on: places on two grids say nothing of each other."""
    held: dict[str | None, list[Square]] = {}
    for name, square in outcomes.squares.items():
        held.setdefault(_grid_of(outcomes.session, name), []).append(square)
    return list(held.values())


def _grid_of(session: Session, square: str) -> str | None:
    if session.engine is None or square not in session.engine.book.squares:
        return None
    return session.engine.book.squares[square].grid


def _drawn(outcomes: Outcomes, squares: Sequence[Square], names: Mapping[str, str]) -> str:
    side = _side(squares)
    left = min(s.x for s in squares) - 0.6 * side
    top = min(s.y for s in squares) - 0.6 * side
    right = max(s.x for s in squares) + 0.6 * side
    bottom = max(s.y for s in squares) + 0.6 * side
    scale = _WIDTH / (right - left)
    most = max((outcomes.of_square(name).per_hour for name in outcomes.session.surveys), default=0)
    # A few squares do not fill the page.
    width = min(_WIDEST, _LARGEST * _WIDTH / (side * scale))
    parts = [
        f'<svg class="atlas" style="max-width:{width:.0f}rem" role="img" '
        f'aria-label="Map of {len(squares)} squares" '
        f'viewBox="0 0 {_WIDTH:.0f} {(bottom - top) * scale:.0f}">'
    ]
    for square in squares:
        at = ((square.x - left) * scale, (square.y - top) * scale)
        parts.append(_square(outcomes, square, at, side * scale, most, names))
    return "".join([*parts, "</svg>"])


def _side(squares: Sequence[Square]) -> float:
    """As large as squares can be drawn without covering each other, and no smaller than half."""
    near = min(
        (
            max(abs(a.x - b.x), abs(a.y - b.y))
            for i, a in enumerate(squares)
            for b in squares[i + 1 :]
        ),
        default=0.0,
    )
    return max(_GAP * near, 0.5 * max(square.size for square in squares))


def _square(
    outcomes: Outcomes,
    square: Square,
    at: tuple[float, float],
    side: float,
    most: float,
    names: Mapping[str, str],
) -> str:
    (x, y), half = at, 0.5 * side
    box = f'x="{x - half:.0f}" y="{y - half:.0f}" width="{side:.0f}" height="{side:.0f}"'
    title = f"<title>{escape(_told(outcomes, square.name))}</title>"
    if square.name not in outcomes.session.surveys:
        return f'<g class="square unopened">{title}<rect {box}/></g>'
    given = outcomes.of_square(square.name)
    order = list(outcomes.session.surveys).index(square.name) + 1
    number = f'<text class="order" x="{x - 0.42 * side:.0f}" y="{y - 0.24 * side:.0f}" '
    number += f'font-size="{0.2 * side:.0f}">{order}</text>'
    kind, shade, words = "untaken", "", ""
    if given.taken:
        kind = "gave" if given.brought > 0.0 else "gave-none"
        words = outcomes.unit.bare(max(given.per_hour, 0.0))
    if kind == "gave":
        shade = f' fill-opacity="{0.15 + 0.8 * given.per_hour / most:.2f}"'
    value = (
        f'<text x="{x:.0f}" y="{y + 0.2 * side:.0f}" text-anchor="middle" '
        f'font-size="{min(0.3, 1.3 / max(len(words), 1)) * side:.0f}">{escape(words)}</text>'
    )
    drawn = f"{title}<rect {box}{shade}/>{number}{value}"
    return f'<a href="#{names[square.name]}"><g class="square {kind}">{drawn}</g></a>'


def _told(outcomes: Outcomes, name: str) -> str:
    """All that is to be said of a square, a line each."""
    session, lines = outcomes.session, [f"square {outcomes.short(name)}"]
    if name not in session.surveys:
        entry = None if session.engine is None else session.engine.book.squares.get(name)
        refused = entry.refused if entry is not None else ""
        return "\n".join([*lines, f"not opened: {refused}" if refused else "not opened"])
    given = outcomes.of_square(name)
    lines.append(tally(given, outcomes.unit))
    if given.taken:
        per_hour = outcomes.unit.count(max(given.per_hour, 0.0))
        lines.append(f"{per_hour} an hour, in {clock(given.seconds)}")
    for row in session.rows:
        if row["event"] == "open" and row["square"] == name:
            lines.append(f"opened at {clock(row['clock'])}: {row['why']}")
    return "\n".join(lines)
