"""What a session teaches its pilot and its guard, and teaches again when it has changed."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from typing import Any

from coaf.bandit.state import entry
from coaf.cryoem.circumstances import circumstances_of
from coaf.cryoem.grid import Square
from coaf.cryoem.microscope import Score, Survey
from coaf.cryoem.pilot import Left, Open, Pilot, Scored, in_any_order
from coaf.cryoem.reward import Reward
from coaf.cryoem.session.guard import Alarm, Guard
from coaf.cryoem.timing import Timing

ShotKey = tuple[str, int]  # a hole, and which of its shots
Fact = Callable[[Pilot], None]


@dataclass(frozen=True, slots=True)
class Note:
    """What was made of it: "refused", "held back", "suspicion", "alarm" or "all clear"."""

    time: float
    what: str
    why: str
    hole: str | None = None
    reward: float | None = None


@dataclass(frozen=True, slots=True)
class _Taken:
    """A hole that was exposed: when, where, how many shots, and what is known of them all."""

    hole: str
    time: float
    square: str
    patch: str
    shots: int
    known: Mapping[str, float | None]
    first: int = 0  # of these shots: those before it were told of before


@dataclass(frozen=True, slots=True)
class _Came:
    """Scores of a shot are in `values`, at the latest as they are now."""

    shot: ShotKey
    time: float


class _Acknowledged:
    """A person has seen to the instrument."""


class Learning:
    """Tells pilot and guard what happens, in order, and remembers it.

    Scores are told to the pilot together, before it is asked or told anything else: what is learned
    at once is learned many times as quickly as one by one. What was taken during a fault of the
    instrument is not told to it. When a score is corrected, when scores are worth something else,
    or when a fault is seen or was none, a new pilot is told everything again (`refresh`), so that
    it knows what one would know who was told the truth from the start.

    Parameters
    ----------
    make
        A pilot that was told nothing.
    reward, target
        What a score is worth, and as what that is known.
    """

    def __init__(self, make: Callable[[], Pilot], reward: Reward, target: str) -> None:
        self.pilot, self.guard = make(), Guard()
        self.reward, self.target = reward, target
        self.stale = False  # the pilot must be told everything again
        self._misled = False  # so must the guard
        self.deaf = False  # the pilot is told no scores for now
        self.values: dict[ShotKey, Mapping[str, float | None]] = {}
        self.lost: set[ShotKey] = set()  # whose score will never come
        self.notes: list[Note] = []
        self._make = make
        self._story: list[Fact | _Taken | _Came | _Acknowledged] = []
        self._visit = 0  # where in the story the last one began
        self._taken: dict[str, _Taken] = {}
        self._waiting: list[_Came] = []  # scores that the pilot was not told yet

    # Facts

    def saw(self, squares: Sequence[Square]) -> None:
        self._fact(lambda pilot: pilot.saw(squares))

    def loaded(self, grid: str) -> None:
        self._fact(lambda pilot: pilot.loaded(grid))

    def opened(self, survey: Survey, timing: Timing) -> None:
        self._fact(lambda pilot: pilot.opened(survey, timing))

    def moved(self, here: Open, left: Left, price: tuple[float, str] | None) -> None:
        """The stage is at a patch, as was decided at a price of a second, in some unit."""
        self._visit = len(self._story)

        def fact(pilot: Pilot) -> None:
            same = price is not None and price[1] == self.target
            pilot.moved(here, left, price[0] if same and price is not None else None)

        self._fact(fact)

    def done(self, here: Open, left: Left) -> None:
        self._fact(lambda pilot: pilot.done(here, left))

    def _fact(self, fact: Fact) -> None:
        self._tell_scores()
        self._story.append(fact)
        if self.deaf or not self.stale:
            fact(self.pilot)

    def exposed(
        self,
        hole: str,
        time: float,
        *,
        square: str,
        patch: str,
        shots: int,
        known: Mapping[str, float | None],
    ) -> None:
        """A hole was exposed."""
        taken = self._taken[hole] = _Taken(hole, time, square, patch, shots, known)
        self._story.append(taken)
        self._watch(taken, time)
        if self.deaf or not self.stale:
            self.pilot.exposed(hole)

    def reported(
        self, hole: str, time: float, *, shots: int, known: Mapping[str, float | None]
    ) -> None:
        """What was taken for granted of an exposure is known now."""
        told = [
            k for k, one in enumerate(self._story) if isinstance(one, _Taken) and one.hole == hole
        ]
        before = self._taken[hole].shots
        now = replace(self._taken[hole], time=time, shots=shots, known=known)
        if now == self._story[told[0]]:
            return
        self._taken[hole] = self._story[told[0]] = now
        for k in reversed(told[1:]):
            del self._story[k]
            self._visit -= k < self._visit
        if shots > before:  # a guard that was told otherwise hears scores until all is told again
            self._watch(replace(now, first=before), time)
        self.lost = {shot for shot in self.lost if shot[0] != hole or shot[1] < shots}
        self.stale = self._misled = True

    def further(self, hole: str, time: float, shots: int) -> None:
        """More shots were taken of a hole than was known: so many in all."""
        was = self._taken[hole]
        more = replace(was, time=time, shots=shots, first=was.shots)
        self._taken[hole] = replace(was, shots=shots)
        self._story.append(more)
        self._watch(more, time)

    # Scores

    def shots(self, hole: str) -> int | None:
        """How many shots of a hole were taken; None if it was not exposed."""
        return self._taken[hole].shots if hole in self._taken else None

    def scored_shots(self, hole: str) -> int:
        """How many shots of a hole there must have been, by the scores that came."""
        return max((shot + 1 for name, shot in self.values if name == hole), default=0)

    @property
    def missing(self) -> int:
        """How many shots have no score yet, and are not known to be lost."""
        settled = len(self.values) + len(self.lost)
        return sum(taken.shots for taken in self._taken.values()) - settled

    def scored(self, shot: ShotKey, values: Mapping[str, float | None], time: float) -> None:
        """What was measured of a shot arrived."""
        self.values[shot] = values
        self.lost.discard(shot)
        came = _Came(shot, time)
        self._story.append(came)
        self._waiting.append(came)
        self._watch(came, time)

    def _tell_scores(self) -> None:
        """Tell the pilot of the scores that came since it was last told of any."""
        came, self._waiting = self._waiting, []
        if came and not self.stale and not self.deaf:
            told = self._learnable(came)
            if told:
                self.pilot.scored(told)

    def _learnable(self, came: Iterable[_Came]) -> list[Scored]:
        """What a pilot is told of scores: nothing of those that have no value, or were spoilt."""
        found = []
        for one in came:
            reward = self.worth(one.shot)
            if reward is not None and not self.guard.quarantined(_name(one.shot)):
                found.append(self._told(one, reward))
        return found

    def never(self, shot: ShotKey) -> None:
        """The score of a shot will never come; if it does all the same, it counts."""
        self.lost.add(shot)
        self.guard.lost(_name(shot))

    def corrected(self, shot: ShotKey, values: Mapping[str, float | None]) -> None:
        """What was measured of a shot was something else."""
        self.values[shot] = values
        self.stale = self._misled = True

    def acknowledged(self, time: float) -> None:
        """A person has seen to the instrument: the fault is over."""
        done = _Acknowledged()
        self._story.append(done)
        self._watch(done, time)

    def aim(self, make: Callable[[], Pilot], reward: Reward, target: str) -> None:
        """Scores are worth something else, from the start."""
        self._make, self.reward, self.target, self.stale = make, reward, target, True
        if self.deaf:
            self.pilot = make()
            self._tell_all(self.pilot)

    def worth(self, shot: ShotKey) -> float | None:
        """The reward of a shot; None where there is none, or nothing to learn from it."""
        try:
            return self.reward(self.score(shot))
        except ValueError:
            return None

    def score(self, shot: ShotKey) -> Score:
        """What was measured of a shot, and is known of it."""
        known, exposed_at = self._known(shot), self._taken[shot[0]].time
        ctf, particles = known.pop("ctf", None), known.pop("particles", None)
        more = {name: value for name, value in known.items() if value is not None}
        return Score(*shot, ctf, particles, exposed_at, exposed_at, more)

    def _known(self, shot: ShotKey) -> dict[str, float | None]:
        """Of a shot: what was known of the exposure, unless its score says otherwise."""
        return {**self._taken[shot[0]].known, **self.values[shot]}

    def _told(self, came: _Came, reward: float) -> Scored:
        waited = max(came.time - self._taken[came.shot[0]].time, 0.0)
        return Scored(*came.shot, reward, waited, circumstances_of(self._known(came.shot)))

    # The guard

    def passed(self, time: float) -> None:
        """Nothing happened until now."""
        self._note_alarms(self.guard.passed(time), time)

    def _watch(self, what: _Taken | _Came | _Acknowledged, time: float) -> None:
        """Let the guard see it, and take note of what it says."""
        self._note_alarms(self._seen(self.guard, what), time)
        if isinstance(what, _Came):
            self._note_score(what)

    def _note_alarms(self, alarms: Iterable[Alarm], time: float) -> None:
        for alarm in alarms:
            said = "alarm" if alarm.until is None else "all clear"
            what = "suspicion" if alarm.kind == "suspicion" else said
            self.notes.append(Note(time, what, alarm.message))
            self.stale |= alarm.kind == "fault"

    def _note_score(self, came: _Came) -> None:
        hole, reward = came.shot[0], None
        try:
            reward = self.reward(self.score(came.shot))
        except ValueError as error:
            self.notes.append(Note(came.time, "refused", str(error), hole))
        if reward is not None and self.guard.quarantined(_name(came.shot)):
            why = "taken while the instrument was at fault"
            self.notes.append(Note(came.time, "held back", why, hole, reward))

    def _seen(self, guard: Guard, what: _Taken | _Came | _Acknowledged) -> Iterator[Alarm]:
        if isinstance(what, _Taken):
            place = {"square": what.square, "patch": what.patch}
            for k in range(what.first, what.shots):
                yield from guard.exposed(_name((what.hole, k)), time=what.time, **place)
        elif isinstance(what, _Came):
            values = self.values[what.shot]
            yield from guard.scored(_name(what.shot), time=what.time, values=values)
        else:
            yield from guard.acknowledge()

    # Telling again

    def refresh(self) -> None:
        """Let the pilot know all that is known; all again if something was not as it was told."""
        if self.stale:
            self._retell()
        self._tell_scores()

    def _retell(self) -> None:
        """Tell a new pilot everything, with scores as they are known now.

        A new guard is told first, if those that the guard was told were others.
        """
        if self._misled:
            guard = Guard()
            for one in self._story:
                if not callable(one):
                    list(self._seen(guard, one))
            for shot in self.lost:
                guard.lost(_name(shot))
            guard.hear_as(self.guard)
            self.guard, self._misled = guard, False
        self.stale, self._waiting = False, []
        if not self.deaf:  # else it was told all but scores, stale or not
            self.pilot = self._make()
            self._tell_all(self.pilot)

    def _tell_all(self, pilot: Pilot) -> None:
        """Tell a new pilot the whole story; a deaf one without scores."""
        patient = in_any_order(pilot)
        waiting: list[_Came] = []

        def tell() -> None:
            nonlocal waiting
            came, waiting = waiting, []
            if told := [] if self.deaf else self._learnable(came):
                pilot.scored(told)

        for k, one in enumerate(self._story):
            if isinstance(one, _Taken):
                if not one.first:
                    pilot.exposed(one.hole)
            elif isinstance(one, _Came):
                waiting.append(one)
            elif callable(one):
                if not (patient and k < self._visit):
                    tell()
                one(pilot)
        tell()

    def trial(self) -> "Learning":
        """A copy for pretending: its pilot learns what is told, and its guard raises no alarm."""
        trial = copy(self)
        trial.pilot, trial.guard = deepcopy(self.pilot), Guard(listen=False)
        trial._story, trial._visit, trial._taken, trial.notes, trial._waiting = [], 0, {}, [], []
        return trial

    def snapshot(self) -> dict[str, Any]:
        """What makes it quick to be here again: `restore`."""
        waiting = [list(came.shot) for came in self._waiting]
        known = None if self.stale else self.pilot.state()
        return {"stale": self.stale, "pilot": known, "waiting": waiting}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Be where `snapshot` was taken, after the same was told to a deaf one."""
        self.deaf, self.stale = False, bool(entry(saved, "stale"))
        waiting = {tuple(shot) for shot in saved.get("waiting", [])}  # not in earlier releases
        came = (one for one in self._story if isinstance(one, _Came))
        self._waiting = [one for one in came if one.shot in waiting]
        if not self.stale:
            self.pilot.restore(entry(saved, "pilot"))


def _name(shot: ShotKey) -> str:
    return f"{shot[0]} shot {shot[1]}"
