"""Writes the rows of a session as its events come."""

from collections.abc import Callable
from typing import Any

from coaf.cryoem.session import events as ev
from coaf.cryoem.session.engine import Engine
from coaf.cryoem.session.instructions import Instruction
from coaf.cryoem.session.session import Row, Session, row_of
from coaf.cryoem.session.situation import FAILING

OnRow = Callable[[Row], None]


class Scribe:
    """Keeps a `Session` up to date with what an engine is told.

    Parameters
    ----------
    engine
        Which was told each event before this is.
    session
        Where rows, estimates and alarms are written.
    watch
        Called with each row.
    """

    def __init__(self, engine: Engine, session: Session, watch: OnRow | None = None) -> None:
        self.engine, self.session, self.watch = engine, session, watch
        self._inside: str | None = None  # a patch that was moved to
        self._moved = 0.0  # seconds, which count for the first hole there
        self._noted = 0

    def told(self, event: ev.Event) -> None:
        """Write what an event means to people."""
        notes = self.engine.notes[self._noted :]
        self._noted += len(notes)
        match event:
            case ev.Instructed():
                self._instructed(event)
            case ev.SquareOpened():
                self._opened(event)
            case ev.Moved():
                self._inside, self._moved = event.patch, event.seconds
            case ev.Exposed():
                self._exposed(event)
            case ev.Failed():
                self._failed(event)
            case ev.Upkeep():
                why = f"maintenance was due: {event.what}"
                self.write("upkeep", event.time, seconds=event.seconds, why=why)
            case ev.ScoreCame() if not any(note.what == "refused" for note in notes):
                self._scored(event)
            case ev.Ended():
                self.write("end", event.time, why=event.why)
        for note in notes:
            self.write(note.what, note.time, hole=note.hole, reward=note.reward, why=note.why)
            self.session.alarms = list(self.engine.guard.alarms)

    def write(self, what: str, time: float, **known: Any) -> None:
        """Write a row, and show it to who watches."""
        row = row_of(time, what, known)
        self.session.rows.append(row)
        if self.watch is not None:
            self.watch(row)

    def _instructed(self, event: ev.Instructed) -> None:
        told = event.instruction
        self.session.estimates |= told.estimates
        if told.do == "leave" and told.level == "patch":
            inside, self._inside = self._inside == told.name, None
            patch = self.engine.book.patch(str(told.name))
            if told.estimates or self.engine.book.open(str(told.name)).rest:
                what = "leave" if inside else "skip"
                more = {"square": patch.patch.square, "patch": told.name}
                self.write(what, event.time, **_reasons(told), **more)
        elif told.do == "leave":
            self.write("pass", event.time, square=told.name, **_reasons(told))
        elif told.do == "alarm" and told.why == FAILING:  # what the guard says is noted already
            self.write("call", event.time, why=told.why)

    def _opened(self, event: ev.SquareOpened) -> None:
        survey = event.survey
        reasons = _reasons(self.engine.last)
        empty = "" if survey.patches else " No patch was found in it."
        known = self.engine.book.squares[survey.square].patches
        empty += "".join(f" {reason}: {count}." for reason, count in survey.excluded.items())
        reasons["why"] = f"{reasons.get('why', '')}{empty}"
        more = {"square": survey.square, "seconds": event.seconds}
        self.write("open", event.time, **reasons, **more)
        for name in known:
            patch = self.engine.book.patch(name).patch
            told = self.engine.pilot.estimates(patch).tolist()
            self.session.estimates |= {h.name: e for h, e in zip(patch.holes, told, strict=True)}

    def _exposed(self, event: ev.Exposed) -> None:
        told, entry = self.engine.last, self.engine.book.hole(event.hole)
        ours = told is not None and told.do == "expose" and told.name == event.hole
        reasons = _reasons(told) if ours else {"why": "Nobody here asked for it."}
        propensity = told.propensity if ours and told is not None else None
        patch = self.engine.book.patch(entry.patch).patch
        shots = self.engine.learning.shots(event.hole) or 1
        self.session.shots[event.hole] = shots
        self.write(
            "expose",
            event.time,
            **reasons,
            square=patch.square,
            patch=patch.name,
            hole=event.hole,
            propensity=propensity,
            seconds=self._moved + event.seconds,
        )
        self._moved = 0.0

    def _failed(self, event: ev.Failed) -> None:
        level = {"square": "square", "move": "patch", "exposure": "hole"}.get(event.what)
        known = {} if level is None else {level: event.name}
        why = f"The {event.what} failed: {event.why}"
        self.write("failed", event.time, seconds=event.seconds, why=why, **known)

    def _scored(self, event: ev.ScoreCame) -> None:
        value = self.engine.learning.worth((event.hole, event.shot))
        why = "" if value is not None else "no value: missing, not bad"
        self.write("score", event.time, hole=event.hole, reward=value, why=why)


def _reasons(told: Instruction | None) -> dict[str, Any]:
    if told is None:
        return {}
    return {"estimate": told.estimate, "rate": told.rate, "why": told.why}
