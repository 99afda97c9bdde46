"""Scores on their way to what learns from them, past the guard."""

from collections.abc import Callable, Iterator
from math import isfinite
from typing import Any

from coaf.cryoem.grid import Hole
from coaf.cryoem.microscope import Microscope, Score
from coaf.cryoem.pilot import Pilot
from coaf.cryoem.reward import Reward
from coaf.cryoem.session.guard import Alarm, Guard

Record = Callable[..., None]


class Inbox:
    """Takes scores from the microscope, turns them into rewards, and tells the pilot.

    Scores of shots taken during a fault are held back. What was learned of them before the fault
    was seen is taken back, where the pilot offers `unlearn(holes)`; what turns out to have been
    taken after the fault is told then. The guard compares scores with the estimates, so it sees
    faults only for rewards of 0 and 1 and pilots that estimate; silence it sees for all.
    """

    def __init__(
        self, microscope: Microscope, pilot: Pilot, reward: Reward, record: Record
    ) -> None:
        self.guard = Guard()
        self.due = 0
        self._microscope, self._pilot, self._reward = microscope, pilot, reward
        self._record = record
        self._chances = reward.family == "logistic"
        self._waiting: set[str] = set()  # shots whose scores are due
        self._told: dict[str, tuple[str, int, float]] = {}
        self._held: dict[str, tuple[str, int, float]] = {}

    def expect(self, hole: Hole, *, patch: str, estimate: float) -> None:
        """A hole was exposed, of which so much was expected."""
        chance = estimate / hole.shots if self._chances and isfinite(estimate) else 0.0
        for shot in range(hole.shots):
            self.due += 1
            name = _name(hole.name, shot)
            self._waiting.add(name)
            self._alarms(self.guard.exposed(name, patch=patch, chance=min(max(chance, 0.0), 1.0)))

    def deliver(self) -> None:
        """Tell the pilot what arrived."""
        for score in self._due():
            value, name = self._value(score), _name(score.hole, score.shot)
            if value is None:
                self._alarms(self.guard.scored(name, good=None))
                continue
            item = (score.hole, score.shot, value)
            self._alarms(self.guard.scored(name, good=value > 0.0 or not self._chances))
            if self.guard.quarantined(name):
                self._held[name] = item
                why = "taken while the instrument was at fault"
                self._record("held back", hole=score.hole, reward=value, why=why)
            else:
                self._tell(name, item)

    def tally(self) -> None:
        """Take in what arrived after the end: for the count, not for learning."""
        for score in self._due():
            self._value(score)

    def _due(self) -> Iterator[Score]:
        """Scores that arrived and are due. Others are written down, and nothing more."""
        for score in self._microscope.collect():
            name = _name(score.hole, score.shot)
            if name in self._waiting:
                self._waiting.remove(name)
                yield score
            else:
                why = "a second score, or one of a shot that was not taken in this session"
                self._record("refused", hole=score.hole, why=why)

    def _value(self, score: Score) -> float | None:
        """The reward of a score, written down; None where there is nothing to learn from it."""
        self.due -= 1
        try:
            value = self._reward(score)
        except ValueError as error:
            self._record("refused", hole=score.hole, why=str(error))
            value = None
        else:
            why = "" if value is not None else "no value: missing, not bad"
            self._record("score", hole=score.hole, reward=value, why=why)
        return value

    def _tell(self, name: str, item: tuple[str, int, float]) -> None:
        self._told[name] = item
        self._pilot.scored(*item)

    def _alarms(self, changed: tuple[Alarm, ...]) -> None:
        for alarm in changed:
            begins = alarm.until is None
            self._record("alarm" if begins else "all clear", why=alarm.message)
            if alarm.kind != "fault":
                continue
            if begins:
                self._take_back()
            for name in [n for n in self._held if not self.guard.quarantined(n)]:
                self._tell(name, self._held.pop(name))

    def _take_back(self) -> None:
        doubted = [name for name in self._told if self.guard.quarantined(name)]
        for name in doubted:
            self._held[name] = self._told.pop(name)
        unlearn: Any = getattr(self._pilot, "unlearn", None)
        if doubted and unlearn is not None:
            holes = {self._held[name][0] for name in doubted}
            unlearn(sorted(holes))
            # Of a hole with several shots some may not be in doubt: these are told again.
            for item in [item for item in self._told.values() if item[0] in holes]:
                self._pilot.scored(*item)


def _name(hole: str, shot: int) -> str:
    return f"{hole} shot {shot}"
