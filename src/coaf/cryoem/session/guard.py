"""A guard: scores that the ice cannot explain are an instrument's fault, and so is silence.

It looks at what was measured, not at rewards, so it sees the same whatever is wanted and whoever
decides. Three things watch: `Evidence` for faults that come at once, on the `Yardstick` of what the
ice can explain; `Decline` for those that come slowly; `Silence` for scores that do not come.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import inf, isfinite, log
from statistics import median
from typing import Any, Literal

import numpy as np

from coaf.bandit.arrays import number
from coaf.cryoem.reward import NO_FIT
from coaf.cryoem.session.decline import Decline, Fall
from coaf.cryoem.session.evidence import Evidence, FaultKind
from coaf.cryoem.session.silence import Silence
from coaf.cryoem.session.yardstick import USUAL

SUSPECT, ALARM = 5.5, 14.0  # logarithms of likelihood ratios
_EXPLAINED = 3.0  # with less a suspicion is over
_DECLINES, _CHECKED = 17.5, 9.0  # unchecked, and with the scores of a check
_MAYBE, _NOT = 5.0, 3.0  # of a decline: it is suspected, and it is not any more
_AGAIN = 900.0  # seconds from one check of what is suspected to the next
_EVERY = 300.0  # seconds from one look for a decline to the next
_BACK, _ONE = log(1000.0), 2.5  # what ends a fault, and what one score may say for that
_CHECKS = 2  # shots of a check
_UNITS = 20  # scores after which a value whose unit nobody knows has one
_WORSE_UP = ("motion", "drift")  # values of which more is worse, in units that differ
_COUNT = "particles"  # less is worse; it depends on more than the instrument, and a fit says more

Kind = Literal["fault", "decline", "silent", "suspicion"]
Cause = Literal["fault", "decline"]
_CAUSES: tuple[Cause, ...] = ("fault", "decline")  # of suspicions, the more urgent first


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something is wrong with the instrument, or was.

    Attributes
    ----------
    kind
        "fault" if scores are too bad, "decline" if they become worse and worse, "silent" if none
        come; "suspicion" if they are bad and a bad place may be why.
    since
        The number of the first shot in doubt, counted from 0 in the order of exposure.
    until
        The number of the first shot that is good again; None while it lasts.
    evidence
        The logarithm of the likelihood ratio; for silence the seconds without a score.
    message
        For a person.
    check
        Of a suspicion: patches known to be good, best first. Scores that are bad there, or worse
        than they were, are the instrument's.
    """

    kind: Kind
    since: int
    until: int | None
    evidence: float
    message: str
    check: tuple[str, ...] = ()

    def covers(self, number: int) -> bool:
        """Whether this shot is in doubt."""
        return self.since <= number and (self.until is None or number < self.until)


@dataclass(slots=True)
class _Seen:
    number: int
    time: float
    square: str
    patch: str
    values: Mapping[str, float | None] | None = None
    compares: bool = False  # it was taken to see whether fits decline


@dataclass(slots=True)
class _Doubt:
    """A suspicion that lasts, by its place among all; and the check that would end it."""

    at: int
    check: tuple[str, ...]
    since: float
    shots: int = 0  # of the check, so far
    heard: list[tuple[float, float]] = field(default_factory=list)  # their fits, and when taken


class _Measure:
    """One of the values of scores: its evidence, and what it is now."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.evidence = Evidence()
        self._first: list[float] = []  # until a unit is known

    def read(self, values: Mapping[str, float | None]) -> tuple[bool, float | None]:
        """Whether there is a value, and its logarithm; None for a fit that failed."""
        if self.name not in values or (self.name == _COUNT and "ctf" in values):
            return False, None
        value = values[self.name]
        if self.name == "ctf":
            if value is not None and value <= 0.0:
                return False, None  # no fit gives that: it is refused elsewhere
            failed = value is None or not isfinite(value) or value >= NO_FIT
            return True, None if failed or value is None else log(value)
        if value is None or not isfinite(value) or value < 0.0:
            return False, None
        if self.name == _COUNT and value == 0.0:
            return len(self._first) == _UNITS, None  # nothing is there, as where a fit failed
        if len(self._first) < _UNITS:
            self._first.append(value)
            return False, None
        far = log(max(value / max(median(self._first), 1e-9), 1e-3))
        return True, USUAL + (-far if self.name == _COUNT else far)


class Guard:
    """Watches what was measured, and says when to doubt it.

    Shots are told in the order of exposure; their scores in any order, as they arrive. It has no
    clock: times come with what it is told.

    Parameters
    ----------
    listen
        Whether silence is an alarm.

    Examples
    --------
    >>> guard = Guard()
    >>> for i in range(100):
    ...     _ = guard.exposed(f"shot {i}", time=10.0 * i, square="s", patch=f"patch {i // 8}")
    ...     ctf = 4.0 + i % 3 if i < 60 else 20.0 + i % 5
    ...     changed = guard.scored(f"shot {i}", time=10.0 * i + 5.0, values={"ctf": ctf})
    ...     if changed and changed[0].kind == "fault":
    ...         break
    >>> i, changed[0].since
    (64, 60)
    """

    def __init__(self, *, listen: bool = True) -> None:
        self.suspicions: list[Alarm] = []
        self._raised: list[Alarm] = []
        self._silent: list[Alarm] = []
        self._silence, self._listen = Silence(), listen
        self._shots: dict[str, _Seen] = {}
        self._order: list[_Seen] = []  # as scores came
        self._measures = {name: _Measure(name) for name in ("ctf", *_WORSE_UP, _COUNT)}
        self._decline = Decline()
        self._fall: Fall | None = None
        self._kind: tuple[str, FaultKind] | None = None  # of the fault that lasts
        self._good: dict[int, float] = {}  # by shot of that fault: what speaks for the ice
        self._doubts: dict[Cause, _Doubt] = {}
        self._looked = -inf  # when, for a decline

    @property
    def alarms(self) -> list[Alarm]:
        """All that there were, by their first shot."""
        return sorted([*self._raised, *self._silent], key=lambda alarm: alarm.since)

    @property
    def fault(self) -> Alarm | None:
        """The fault that lasts, if one does: scores are not to be learned."""
        return self._lasting("fault")

    @property
    def suspicion(self) -> Alarm | None:
        """What may be a fault, or a decline, or bad places; the fault if both."""
        lasting = [self._doubts[cause].at for cause in _CAUSES if cause in self._doubts]
        return self.suspicions[lasting[0]] if lasting else None

    @property
    def check(self) -> tuple[str, ...]:
        """Patches known to be good, of which a shot or two would tell what the reason is."""
        doubt = self._to_check
        return () if doubt is None else doubt.check

    @property
    def _to_check(self) -> _Doubt | None:
        if self.fault is not None:
            return None
        lasting = (self._doubts[cause] for cause in _CAUSES if cause in self._doubts)
        return next((doubt for doubt in lasting if doubt.shots < _CHECKS), None)

    def sound(self, patch: str) -> bool:
        """Whether a patch is known to be good, or not known well enough."""
        yardstick = self._measures["ctf"].evidence.yardstick
        level = yardstick.level(patch)
        return level is None or level < yardstick.usual

    def quarantined(self, shot: str) -> bool:
        """Whether a shot was taken during a fault, so that its score says nothing of the ice."""
        at = self._find(shot).number
        return any(alarm.kind == "fault" and alarm.covers(at) for alarm in self._raised)

    # What happens

    def exposed(self, shot: str, *, time: float, square: str, patch: str) -> tuple[Alarm, ...]:
        """A shot was taken; the alarms that begin with it."""
        if shot in self._shots:
            raise ValueError(f"shot {shot!r} was exposed already")
        known = _Seen(len(self._shots), number("time", time), square, patch)
        self._shots[shot] = known
        self._silence.exposed(known.time)
        doubt = self._to_check
        if doubt is not None and patch in doubt.check:
            doubt.shots += 1
            known.compares = doubt is self._doubts.get("decline")
        return self.passed(known.time)

    def passed(self, time: float) -> tuple[Alarm, ...]:
        """Nothing happened until now; the alarm that begins with it."""
        deaf = not self._listen or self._lasting("silent") is not None
        quiet = None if deaf else self._silence.quiet(time)
        if quiet is None:
            return ()
        text = (
            f"No score has come for {quiet.seconds / 60.0:.0f} minutes, where {quiet.shots} shots "
            f"since shot {quiet.since} should have one: is the processing running?"
        )
        self._silent.append(Alarm("silent", quiet.since, None, quiet.seconds, text))
        return (self._silent[-1],)

    def scored(
        self, shot: str, *, time: float, values: Mapping[str, float | None]
    ) -> tuple[Alarm, ...]:
        """What was measured came; the alarms and suspicions that begin or end with it."""
        known = self._find(shot)
        if known.values is not None:
            raise ValueError(f"shot {shot!r} was scored already")
        self._silence.scored(known.number, number("time", time))
        return (*self._heard(), *self._measured(known, values))

    def lost(self, shot: str) -> None:
        """The score of a shot will never come: silence about it says nothing."""
        self._silence.lost(self._find(shot).number)

    def acknowledge(self) -> tuple[Alarm, ...]:
        """Someone has seen to the instrument: a fault that lasts is over from the next shot on."""
        changed, now = [], len(self._shots)
        if self._lasting("fault"):
            changed.append(self._end_fault(now))
        if self._lasting("decline"):
            changed.append(self._end_decline(now))
        return tuple(changed)

    def hear_as(self, other: "Guard") -> None:
        """Take another's silences for one's own: what nobody heard then is never corrected."""
        self._silent = other._silent

    # Silence

    def _heard(self) -> list[Alarm]:
        if not self._lasting("silent"):
            return []
        self._silent[-1] = replace(
            self._silent[-1], until=len(self._shots), message="Scores come again."
        )
        return [self._silent[-1]]

    # Faults

    def _measured(self, known: _Seen, values: Mapping[str, float | None]) -> list[Alarm]:
        known.values = values
        self._order.append(known)
        fault = self.fault
        if fault is not None and known.number >= fault.since:
            return self._recovering(known, fault)
        changed: list[Alarm] = []
        self._teach(known)
        if fault is None:
            changed += self._doubt(known.time)
        if self.fault is None:
            changed += self._declining(known)
        return changed

    def _doubt(self, time: float) -> list[Alarm]:
        """A fault, a suspicion, or the end of one."""
        measure = max(self._measures.values(), key=lambda one: one.evidence.ratio)
        evidence, suspected = measure.evidence, "fault" in self._doubts
        if evidence.ratio >= ALARM and self._elsewhere(evidence.since):
            self._explain("fault", "It was a fault.")
            return [self._begin_fault(measure)]
        if not suspected and evidence.ratio >= SUSPECT:
            return [self._suspect_fault(measure, time)]
        if suspected and evidence.ratio < _EXPLAINED:
            return self._explain("fault", "Good scores have come since: it was the place.")
        return []

    def _elsewhere(self, since: int) -> bool:
        """Whether more is bad than one square from its first shot on, which may be the square."""
        squares = {shot.square for shot in self._order if shot.number >= since}
        known = {shot.square for shot in self._order if shot.number < since}
        return len(squares) > 1 or bool(squares & known)

    def _suspect_fault(self, measure: _Measure, time: float) -> Alarm:
        evidence = measure.evidence
        doubted = {s.patch for s in self._order if s.number >= evidence.since}
        levels = {p: evidence.yardstick.level(p) for p in evidence.yardstick.patches}
        good = sorted(
            (level, patch)
            for patch, level in levels.items()
            if level is not None and level < evidence.yardstick.usual and patch not in doubted
        )
        text = f"Scores since shot {evidence.since} are bad: a bad place, or a fault."
        check = tuple(patch for _, patch in good)
        return self._suspect("fault", text, check, evidence.since, evidence.ratio, time)

    def _suspect(
        self,
        cause: Cause,
        text: str,
        check: tuple[str, ...],
        since: int,
        ratio: float,
        time: float,
    ) -> Alarm:
        if check:
            text += f" A shot or two of {check[0]}, known to be good, would tell."
        self._doubts[cause] = _Doubt(len(self.suspicions), check, time)
        self.suspicions.append(Alarm("suspicion", since, None, ratio, text, check))
        return self.suspicions[-1]

    def _explain(self, cause: Cause, text: str) -> list[Alarm]:
        """The end of a suspicion, if there is one."""
        doubt = self._doubts.pop(cause, None)
        if doubt is None:
            return []
        found = replace(self.suspicions[doubt.at], until=len(self._shots), message=text)
        self.suspicions[doubt.at] = found
        return [found]

    def _begin_fault(self, measure: _Measure) -> Alarm:
        evidence = measure.evidence
        since = evidence.since
        bad = [shot for shot in self._order if shot.number >= since]
        places = len({shot.patch for shot in bad})
        text = (
            f"{len(bad)} scores of {places} {'patch' if places == 1 else 'patches'} since shot "
            f"{since} are far worse than expected: this is not the ice. Look at beam, focus, "
            "energy filter and camera."
        )
        self._raised.append(Alarm("fault", since, None, evidence.ratio, text))
        self._kind, self._good = (measure.name, evidence.kind()), {}
        self._forget(since)
        return self._raised[-1]

    def _forget(self, since: int) -> None:
        """Take back what shots in doubt have taught."""
        self._decline.drop(since, len(self._shots))
        told, self._order = self._order, []
        self._measures = {name: _Measure(name) for name in self._measures}
        for shot in told:
            self._order.append(shot)
            if not self._covered(shot):
                self._teach(shot)

    def _covered(self, shot: _Seen) -> bool:
        return any(alarm.kind == "fault" and alarm.covers(shot.number) for alarm in self._raised)

    def _teach(self, shot: _Seen) -> None:
        if shot.compares:
            return  # of holes that were left, perhaps as they are bad: no evidence of a fault
        for measure in self._measures.values():
            there, value = measure.read(shot.values or {})
            if there:
                measure.evidence.tell(shot.number, shot.square, shot.patch, value)

    def _recovering(self, known: _Seen, fault: Alarm) -> list[Alarm]:
        """A score of during the fault: is it over?"""
        assert self._kind is not None
        name, kind = self._kind
        measure = self._measures[name]
        there, value = measure.read(known.values or {})
        if not there:
            return []
        says = measure.evidence.good(known.square, known.patch, value, kind)
        self._good[known.number] = min(says, _ONE)
        numbers = sorted(self._good, reverse=True)
        sums = np.cumsum([self._good[one] for one in numbers])
        if float(sums.max()) < _BACK:
            return []
        return [self._end_fault(numbers[int(np.argmax(sums))])]

    def _end_fault(self, until: int) -> Alarm:
        at = self._raised.index(self.fault) if self.fault is not None else -1
        text = (
            f"Scores are good again from shot {until}; those of shots {self._raised[at].since} to "
            f"{until - 1} are held back."
        )
        self._raised[at] = replace(self._raised[at], until=until, message=text)
        after = [s for s in self._order if s.number >= until]
        self._kind, self._good = None, {}
        for shot in after:
            self._teach(shot)
        for measure in self._measures.values():
            measure.evidence.calm(len(self._shots))
        return self._raised[at]

    # Decline

    def _declining(self, known: _Seen) -> list[Alarm]:
        there, value = self._measures["ctf"].read(known.values or {})
        if not there or value is None:
            return []
        self._decline.tell(
            known.number,
            time=known.time,
            square=known.square,
            patch=known.patch,
            fit=float(np.exp(value)),
            left=known.compares,
        )
        doubt = self._doubts.get("decline")
        if doubt is not None and known.compares:
            doubt.heard.append((known.time, float(np.exp(value))))
        elif known.time < self._looked + _EVERY:
            return []
        self._looked = max(known.time, self._looked)
        if self._fall is not None:
            until = self._decline.over(self._fall)
            return [] if until is None else [self._end_decline(until)]
        fall = self._decline.look(self._looked)
        if fall is None:
            return []
        heard = [] if doubt is None else doubt.heard
        checked = len(heard) >= _CHECKS and any(fall.explains(*one) for one in heard)
        if fall.ratio >= (_CHECKED if checked else _DECLINES):
            self._explain("decline", "It was a decline.")
            return [self._begin_decline(fall)]
        if doubt is not None and fall.ratio < _NOT:
            return self._explain("decline", "Fits are as good as they were where they were good.")
        if doubt is None and fall.ratio >= _MAYBE:
            text = f"The best fits may have become worse since shot {fall.since}."
            check = self._decline.references(fall)
            return [self._suspect("decline", text, check, fall.since, fall.ratio, self._looked)]
        if doubt is not None and self._looked >= doubt.since + _AGAIN:
            check = self._decline.references(fall)
            self._doubts["decline"] = replace(doubt, check=check, since=self._looked, shots=0)
        return []

    def _begin_decline(self, fall: Fall) -> Alarm:
        self._fall = fall
        text = (
            f"The best fits, which were at {fall.pile.place:.1f} Å, have become worse by about "
            f"{fall.rate:.1f} Å an hour since shot {fall.since}. Look at charging, drift, focus "
            "and beam."
        )
        self._raised.append(Alarm("decline", fall.since, None, fall.ratio, text))
        return self._raised[-1]

    def _end_decline(self, until: int) -> Alarm:
        at = next(i for i, a in enumerate(self._raised) if a.kind == "decline" and a.until is None)
        text = f"The best fits are as good as before from shot {until}."
        self._raised[at] = replace(self._raised[at], until=until, message=text)
        self._decline.drop(self._raised[at].since, until)
        self._fall = None
        return self._raised[at]

    # The rest

    def _find(self, shot: str) -> _Seen:
        if shot not in self._shots:
            raise ValueError(f"shot {shot!r} was never exposed")
        return self._shots[shot]

    def _lasting(self, kind: Kind) -> Alarm | None:
        among: Sequence[Alarm] = self._silent if kind == "silent" else self._raised
        return next((a for a in among if a.kind == kind and a.until is None), None)

    def state(self) -> dict[str, Any]:
        """What it thinks, as JSON. A guard that is told the same again thinks the same."""
        ratios = {name: one.evidence.ratio for name, one in self._measures.items()}
        return {
            "alarms": [asdict(alarm) for alarm in self.alarms],
            "suspicions": [asdict(alarm) for alarm in self.suspicions],
            "shots": len(self._shots),
            "scored": len(self._order),
            "evidence": {name: r if r > -inf else None for name, r in ratios.items()},
        }
