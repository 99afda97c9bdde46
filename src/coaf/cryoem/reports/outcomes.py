"""What came of a session's holes and squares, gathered for its report."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite
from statistics import fmean, median

from coaf.cryoem.grid import Patch, Square
from coaf.cryoem.reward import fit_of, parse_reward
from coaf.cryoem.session import events as ev
from coaf.cryoem.session.session import Row, Session, row_of
from coaf.cryoem.timing import HOUR
from coaf.cryoem.unit import REWARD, Unit, percent, unit_of

FATES = ("good", "bad", "not scored", "left")


@dataclass(frozen=True, slots=True)
class Measured:
    """What arrived of one shot: the fit in Å and the particles, None where there is no number."""

    ctf: float | None
    particles: float | None


@dataclass(frozen=True, slots=True)
class Taken:
    """A hole that was exposed, and what came of it.

    Attributes
    ----------
    row
        Of the exposure.
    fate
        One of `FATES`.
    score
        The sum of the rewards that arrived; None if none did.
    scored_at
        When the last of them did.
    measured
        By shot that was scored; empty where the session does not tell.
    held_back
        Whether it was taken during a fault, and not learned.
    """

    row: Row
    fate: str
    score: float | None = None
    scored_at: float | None = None
    measured: tuple[Measured, ...] = ()
    held_back: bool = False

    @property
    def explored(self) -> bool:
        """Whether it was taken by chance, to find out."""
        return (self.row["propensity"] or 1.0) < 1.0


@dataclass(frozen=True, slots=True)
class Given:
    """What a square, or a patch, gave for its time.

    `seconds` are those of opening it, of moving to patches and of exposing. `brought` is the sum
    of the rewards that arrived.
    """

    holes: int
    taken: int = 0
    good: int = 0
    unscored: int = 0
    brought: float = 0.0
    seconds: float = 0.0

    @property
    def per_hour(self) -> float:
        """The reward that an hour there brought."""
        return self.brought / self.seconds * HOUR if self.seconds > 0.0 else 0.0


class Outcomes:
    """What came of each hole, patch and square of a session.

    Attributes
    ----------
    unit
        What rewards are counted in.
    bar
        The reward from which a hole counts as good: anything for rewards of 0 and 1, else the
        median of all that arrived.
    taken
        By hole that was exposed.
    visits
        By patch: the rows that say why it was gone to, left or skipped.
    squares
        Those of the atlas, by name; of an opened one that no atlas shows, where its holes are.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.unit = _unit(session)
        scores = session.scores()
        self.bar = 0.0
        if not self.unit.chance and scores:
            self.bar = median(scores.values())
        self.rows = _with_moves(session)
        self.taken = self._holes(scores)
        self.visits: dict[str, list[Row]] = {}
        for row in self.rows:
            if row["event"] in ("go", "leave", "skip") and row["patch"]:
                self.visits.setdefault(row["patch"], []).append(row)
        self.squares = _squares(session)
        self._shared = _beginning(list(self.squares))

    def _holes(self, scores: dict[str, float]) -> dict[str, Taken]:
        found: dict[str, Taken] = {}
        for row in self.session.rows:
            hole = row["hole"]
            if hole is None:
                continue
            if row["event"] == "expose":
                fate = self._fate(scores.get(hole))
                measured = _measured(self.session, hole)
                found[hole] = Taken(row, fate, scores.get(hole), None, measured)
            elif row["event"] == "score" and hole in found:
                found[hole] = replace(found[hole], scored_at=row["clock"])
            elif row["event"] == "held back" and hole in found:
                found[hole] = replace(found[hole], held_back=True)
        return found

    def _fate(self, score: float | None) -> str:
        if score is None:
            return "not scored"
        above = score >= self.bar if self.bar > 0.0 else score > 0.0
        return "good" if above else "bad"

    # Tallies

    def fates(self) -> dict[str, str]:
        """By hole that was exposed: how it turned out, as far as scores tell."""
        return {hole: one.fate for hole, one in self.taken.items()}

    def of_patch(self, patch: Patch) -> Given:
        """What a patch gave."""
        return self._given([patch], opening=0.0)

    def of_square(self, name: str) -> Given:
        """What an opened square gave."""
        opening = sum(
            row["seconds"] or 0.0
            for row in self.session.rows
            if row["event"] == "open" and row["square"] == name
        )
        return self._given(self.session.surveys[name].patches, opening=opening)

    def _given(self, patches: Sequence[Patch], *, opening: float) -> Given:
        holes = [hole.name for patch in patches for hole in patch.holes]
        taken = [self.taken[name] for name in holes if name in self.taken]
        return Given(
            len(holes),
            len(taken),
            sum(one.fate == "good" for one in taken),
            sum(one.fate == "not scored" for one in taken),
            sum(one.score or 0.0 for one in taken),
            opening + sum(one.row["seconds"] or 0.0 for one in taken),
        )

    # Words

    def short(self, name: str | None) -> str:
        """A name without what all squares' names begin with."""
        return (name or "").removeprefix(self._shared)

    def estimate(self, hole: str) -> float | None:
        """What was expected of a hole when it was taken, else when last decided about."""
        if hole in self.taken:
            return self.taken[hole].row["estimate"]
        found = self.session.estimates.get(hole)
        return found if found is not None and isfinite(found) else None

    def expected(self, value: float | None) -> str:
        """An estimate in words."""
        if value is None:
            return ""
        if self.unit.chance and 0.0 <= value <= 1.0:
            return percent(value)
        return self.unit.bare(max(value, 0.0))

    def came(self, hole: str) -> str:
        """What was measured of a hole, and whether that is good."""
        one = self.taken[hole]
        parts = []
        if any(shot.ctf is not None for shot in one.measured):
            parts.append(_listed([shot.ctf for shot in one.measured], ".1f") + " Å")
        elif one.measured:
            parts.append("no fit")
        if any(shot.particles is not None for shot in one.measured):
            parts.append(_listed([shot.particles for shot in one.measured], ".0f") + " particles")
        if self.unit.chance or one.score is None:
            parts.append(one.fate)
        elif self.unit == REWARD or not one.measured:
            parts.append(self.unit.count(max(one.score, 0.0)))
        if one.held_back:
            parts.append("held back: the instrument was at fault")
        return ", ".join(parts)

    def label(self, hole: str) -> str:
        """What was measured of a hole, as short as can be: its best fit in Å, or its reward."""
        one = self.taken[hole]
        if one.fate == "not scored":
            return "?"
        if self.shows_fits:
            fits = [shot.ctf for shot in one.measured if shot.ctf is not None]
            return f"{min(fits):.1f}" if fits else "–"
        return self.unit.bare(max(one.score or 0.0, 0.0))

    @property
    def shows_fits(self) -> bool:
        """Whether a hole's label is its CTF fit, and not its reward."""
        return self.unit.chance and any(one.measured for one in self.taken.values())


def _beginning(names: Sequence[str]) -> str:
    """The words that all names begin with, up to an underscore; none for a single name."""
    if len(names) < 2:
        return ""
    # What the first and the last in order share, all share.
    first, last = min(names), max(names)
    same = next((k for k, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), 0)
    return first[: first.rfind("_", 0, same) + 1]


def clock(seconds: float) -> str:
    """Hours, minutes and seconds."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def tally(given: Given, unit: Unit) -> str:
    """What a patch or a square gave, in words."""
    if not given.taken:
        return f"none of {given.holes} holes taken"
    words = f"{given.taken} of {given.holes} holes taken"
    words += f", {given.good} good" if unit.chance else f", {unit.count(max(given.brought, 0.0))}"
    return f"{words}, {given.unscored} not scored" if given.unscored else words


def _unit(session: Session) -> Unit:
    if session.engine is not None:
        return unit_of(session.engine.learning.reward)
    try:
        return unit_of(parse_reward(session.reward))
    except ValueError:  # somebody's own, of which only the text is left
        return REWARD


def _with_moves(session: Session) -> list[Row]:
    """The rows, and those of going to patches, which only the engine remembers."""
    if session.engine is None:
        return list(session.rows)
    moves = []
    for event in session.engine.events:
        if isinstance(event, ev.Instructed) and event.instruction.do == "go":
            told = event.instruction
            where = session.engine.book.patch(str(told.name)).patch.square
            known = {"patch": told.name, "square": where, "rate": told.rate, "why": told.why}
            moves.append(row_of(event.time, "go", known | {"propensity": told.propensity}))
    # A row's clock is when it was over, so what was decided then comes after it.
    return sorted([*session.rows, *moves], key=lambda row: row["clock"])


def _measured(session: Session, hole: str) -> tuple[Measured, ...]:
    if session.engine is None:
        return ()
    learning = session.engine.learning
    found = []
    for shot in range(learning.shots(hole) or 0):
        if (hole, shot) in learning.values:
            score = learning.score((hole, shot))
            try:
                fit = fit_of(score)
            except ValueError:  # no resolution: it was refused
                fit = None
            count = score.particles
            found.append(Measured(fit, count if count is not None and abs(count) < inf else None))
    return tuple(found)


def _squares(session: Session) -> dict[str, Square]:
    found: dict[str, Square] = {}
    if session.engine is not None:
        found = {name: entry.square for name, entry in session.engine.book.squares.items()}
    for name, survey in session.surveys.items():
        holes = [hole for patch in survey.patches for hole in patch.holes]
        if name not in found and holes:
            found[name] = Square(name, fmean(h.x for h in holes), fmean(h.y for h in holes))
    return found


def _listed(values: Sequence[float | None], form: str) -> str:
    return ", ".join("none" if value is None else format(value, form) for value in values)
