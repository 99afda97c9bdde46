"""A guard: failures that the ice cannot explain are an instrument's fault, and so is silence.

The test is a sum of likelihood ratios (Shiryaev and Roberts): R ← (1 + R)·L after each score, where
L compares "every shot since some shot is bad" with what was predicted. While all is well R less
the number of scores is a martingale, so that within n scores R reaches 1/level with probability at
most n·level (Ville). Four things make "what was predicted" hard to blame for an alarm:

- holes of a patch share their fate, so a patch's own scores pull its predictions along, as with
  a beta distribution of correlation `_SHARED` within patches;
- a prediction may be too high: L is at most 1 on average as long as the true chance is at least
  `_TRUST` of the predicted one;
- shots of which less than `_LEAST` was expected are no evidence: poor holes are taken when time is
  left over, and beliefs are least to be trusted about them;
- with a fault a shot may still be good, by a chance of `_LUCK`.
"""

from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass, replace
from math import exp, log
from typing import Any, Literal, Self

from coaf.bandit.arrays import number
from coaf.bandit.state import entry

_SHARED = 0.3  # correlation of "good" within patches, as measured on real grids
_TRUST = 0.6
_LEAST = 0.15
_LUCK = 0.02
_BACK = 1000.0  # ratio at which good scores end an alarm

Kind = Literal["fault", "silent"]


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something is wrong with the instrument, or was.

    Attributes
    ----------
    kind
        "fault" if scores are too bad, "silent" if none come.
    since
        The number of the first shot in doubt, counted from 0 in the order of exposure.
    until
        The number of the first shot that is good again; None while it lasts.
    evidence
        For a fault the likelihood ratio, for silence the number of shots without a score.
    message
        For a person.
    """

    kind: Kind
    since: int
    until: int | None
    evidence: float
    message: str

    def covers(self, number: int) -> bool:
        """Whether this shot is in doubt."""
        return self.since <= number and (self.until is None or number < self.until)


@dataclass(slots=True)
class _Shot:
    """A shot that was taken: its number, its patch, its chance, and how it turned out."""

    number: int
    patch: str
    chance: float
    done: bool = False
    evidence: float = 0.0  # log L: above 0 if bad, 0 as long as there is no score


class Guard:
    """Watches predictions and scores, and says when to doubt them.

    Shots are told in the order of exposure; their scores in any order, as they arrive.

    Parameters
    ----------
    level
        The chance of a false alarm per score: at most one in 1/level scores, on average.
    silent
        So many shots without any score in between are a fault, too.

    Examples
    --------
    >>> guard = Guard()
    >>> for i in range(100):
    ...     _ = guard.exposed(f"shot {i}", patch=f"patch {i // 6}", chance=0.6)
    ...     changed = guard.scored(f"shot {i}", good=i in (0, 3, 8, 10, 12))
    ...     if changed:
    ...         break
    >>> i, changed[0].kind, changed[0].since
    (47, 'fault', 13)
    """

    def __init__(self, *, level: float = 1e-4, silent: int = 50) -> None:
        self.level = number("level", level, above=0.0)
        if self.level >= 1.0:
            raise ValueError(f"level is {self.level}; it is a chance per score, below 1")
        self.silent = int(number("silent", silent, low=1))
        self.alarms: list[Alarm] = []
        self._shots: dict[str, _Shot] = {}
        self._tally: dict[str, tuple[int, int]] = {}  # scores of a patch: good ones, and all
        self._ratio, self._quiet = 0.0, 0

    @property
    def fault(self) -> Alarm | None:
        """The fault that lasts, if one does: scores are not to be learned."""
        return self._lasting("fault")

    def quarantined(self, shot: str) -> bool:
        """Whether a shot was taken during a fault, so that its score says nothing of the ice."""
        at = self._find(shot).number
        return any(alarm.kind == "fault" and alarm.covers(at) for alarm in self.alarms)

    def exposed(self, shot: str, *, patch: str, chance: float) -> tuple[Alarm, ...]:
        """A shot was taken whose chance to be good was this; the alarms that begin with it."""
        if not 0.0 <= number("chance", chance) <= 1.0:
            raise ValueError(f"chance of shot {shot!r} is {chance}; it must be from 0 to 1")
        if shot in self._shots:
            raise ValueError(f"shot {shot!r} was exposed already")
        self._shots[shot] = _Shot(len(self._shots), patch, float(chance))
        self._quiet += 1
        if self._quiet < self.silent or self._lasting("silent"):
            return ()
        since = len(self._shots) - self._quiet
        text = (
            f"No score has come for {self._quiet} shots, since shot {since}: is the processing "
            "running?"
        )
        self.alarms.append(Alarm("silent", since, None, float(self._quiet), text))
        return (self.alarms[-1],)

    def scored(self, shot: str, *, good: bool | None) -> tuple[Alarm, ...]:
        """A score came, None if it has no value; the alarms that begin or end with it."""
        known = self._find(shot)
        if known.done:
            raise ValueError(f"shot {shot!r} was scored already")
        known.done = True
        self._quiet = 0
        changed = [self._end("silent", len(self._shots))] if self._lasting("silent") else []
        if good is None:  # processed, and without a value: no silence, and no evidence
            return tuple(changed)
        fault = self.fault
        if fault:  # a good score speaks for the instrument even where little was expected
            doubted = max(_TRUST * known.chance, 2.0 * _LUCK)
        else:
            pulled = self._pulled(known, good)
            doubted = max(_TRUST * pulled, _LUCK) if known.chance >= _LEAST else _LUCK
        known.evidence = log(_LUCK / doubted) if good else log((1.0 - _LUCK) / (1.0 - doubted))
        if fault is None and known.chance >= _LEAST:
            self._ratio = (1.0 + self._ratio) * exp(known.evidence)
            if self._ratio >= 1.0 / self.level and self._spread():
                changed.append(self._begin())
        elif fault is not None and known.number >= fault.since:
            self._ratio = (1.0 + self._ratio) * exp(-known.evidence)
            if self._ratio >= _BACK:
                changed.append(self._recover(fault))
        return tuple(changed)

    def acknowledge(self) -> tuple[Alarm, ...]:
        """Someone has seen to the instrument: a fault that lasts is over from the next shot on."""
        fault = self.fault
        if fault is None:
            return ()
        self._calm(list(self._shots.values())[fault.since :])
        return (self._end("fault", len(self._shots)),)

    def _find(self, shot: str) -> _Shot:
        if shot not in self._shots:
            raise ValueError(f"shot {shot!r} was never exposed")
        return self._shots[shot]

    def _lasting(self, kind: Kind) -> Alarm | None:
        return next((a for a in self.alarms if a.kind == kind and a.until is None), None)

    def _end(self, kind: Kind, until: int) -> Alarm:
        at = next(i for i, a in enumerate(self.alarms) if a.kind == kind and a.until is None)
        text = (
            f"Scores are good again from shot {until}; those of shots {self.alarms[at].since} to "
            f"{until - 1} are held back."
            if kind == "fault"
            else "Scores come again."
        )
        self.alarms[at] = replace(self.alarms[at], until=until, message=text)
        return self.alarms[at]

    def _pulled(self, shot: _Shot, good: bool) -> float:
        """The chance after what its patch has shown: the mean of the beta distribution."""
        successes, count = self._tally.get(shot.patch, (0, 0))
        self._tally[shot.patch] = (successes + good, count + 1)
        strength = (1.0 - _SHARED) / _SHARED
        return (shot.chance * strength + successes) / (strength + count)

    def _spread(self) -> bool:
        """Whether the failures lie in more than one patch: one alone may be the ice."""
        shots = list(self._shots.values())
        since = _start([shot.evidence for shot in shots])
        return len({shot.patch for shot in shots[since:] if shot.evidence > 0.0}) > 1

    def _begin(self) -> Alarm:
        shots = list(self._shots.values())
        since = _start([shot.evidence for shot in shots])
        bad = [shot for shot in shots[since:] if shot.evidence > 0.0]
        patches = len({shot.patch for shot in bad})
        text = (
            f"{len(bad)} bad shots in {patches} patches since shot {since}, where "
            f"{sum(shot.chance for shot in bad):.0f} good ones were expected: this is not the ice. "
            "Look at beam, focus, energy filter and camera."
        )
        self.alarms.append(Alarm("fault", since, None, self._ratio, text))
        self._ratio, self._tally = 0.0, {}
        return self.alarms[-1]

    def _recover(self, fault: Alarm) -> Alarm:
        shots = list(self._shots.values())[fault.since :]
        until = fault.since + _start([-shot.evidence for shot in shots])
        self._calm(shots)
        return self._end("fault", until)

    def _calm(self, shots: list[_Shot]) -> None:
        """Begin anew: what these shots said would count for the next fault, too."""
        self._ratio, self._tally = 0.0, {}
        for shot in shots:
            shot.evidence = 0.0

    def state(self) -> dict[str, Any]:
        """Everything, as JSON."""
        return {
            "level": self.level,
            "silent": self.silent,
            "alarms": [asdict(alarm) for alarm in self.alarms],
            "shots": {name: list(astuple(shot)) for name, shot in self._shots.items()},
            "tally": {patch: list(tally) for patch, tally in self._tally.items()},
            "ratio": self._ratio,
            "quiet": self._quiet,
        }

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> Self:
        """The guard that `state` was taken from."""
        guard = cls(level=entry(state, "level"), silent=entry(state, "silent"))
        guard.alarms = [Alarm(**alarm) for alarm in entry(state, "alarms")]
        guard._shots = {name: _Shot(*shot) for name, shot in entry(state, "shots").items()}
        guard._tally = {p: (good, count) for p, (good, count) in entry(state, "tally").items()}
        guard._ratio, guard._quiet = entry(state, "ratio"), entry(state, "quiet")
        return guard


def _start(evidence: list[float]) -> int:
    """Where to begin so that the sum to the end is largest."""
    best, total, start = 0.0, 0.0, len(evidence)
    for i in reversed(range(len(evidence))):
        total += evidence[i]
        if total > best:
            best, start = total, i
    return start
