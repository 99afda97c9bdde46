"""Silence: no score comes for longer than scores take here."""

from dataclasses import dataclass
from statistics import median

_NEVER = 1800.0  # seconds to wait for the first score of a session
_LEAST = 120.0
_TIMES = 4.0  # of the usual delay
_SHOTS = 5  # overdue, one after another: single ones get lost
_REMEMBER = 100


@dataclass(frozen=True, slots=True)
class Quiet:
    """Since which shot, how many shots and how many seconds."""

    since: int
    shots: int
    seconds: float


class Silence:
    """Knows how long scores take, and which shots wait for theirs."""

    def __init__(self) -> None:
        self._exposed: list[float] = []  # when each shot was
        self._lost: set[int] = set()  # shots whose score will never come
        self._delays: list[float] = []
        self._heard = 0  # all shots before have a score, or are older than one that has
        self._last = 0.0  # when a score came

    @property
    def patience(self) -> float:
        """Seconds after which a score is overdue."""
        if not self._delays:
            return _NEVER
        return _LEAST + _TIMES * median(self._delays[-_REMEMBER:])

    def exposed(self, time: float) -> None:
        self._exposed.append(time)

    def scored(self, number: int, time: float) -> None:
        self._delays.append(max(time - self._exposed[number], 0.0))
        self._heard = max(self._heard, number + 1)
        self._last = max(self._last, time)

    def lost(self, number: int) -> None:
        self._lost.add(number)

    def quiet(self, time: float) -> Quiet | None:
        """Whether nothing was heard for too long."""
        due = time - self.patience
        ahead = enumerate(self._exposed[self._heard :], start=self._heard)
        overdue = [k for k, exposed in ahead if exposed <= due and k not in self._lost]
        if len(overdue) < _SHOTS or self._last > due:
            return None
        first = self._exposed[overdue[0]]
        return Quiet(overdue[0], len(overdue), time - max(first, self._last))
