"""A recorded grid behind the microscope's verbs: what was collected once is collected again."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from coaf.bandit.arrays import FloatArray, number
from coaf.cryoem.feedback import Delay, Feedback
from coaf.cryoem.grid import Hole, Patch, Shot, Square
from coaf.cryoem.microscope import Score, Survey
from coaf.cryoem.recorded.build import APART
from coaf.cryoem.recorded.recording import Recording
from coaf.cryoem.recorded.seconds import Seconds
from coaf.cryoem.timing import SWITCHES, Timing

_SPACING = 2.0  # µm: where positions are not known, the holes of a patch stand in a column


class RecordedMicroscope:
    """Drive over a recorded grid, with constant times and scores that may come late.

    A square is paid when it is opened: the survey of each of its patches. Names are those of the
    recording; the shots of a hole are counted from 0, in their order. Holes that were never
    exposed, or lack a number known before exposure, are not offered, as nobody knows what they
    would have given; surveys count them as excluded. Positions are made up where the recording
    does not have them all.

    Parameters
    ----------
    recording
        What was collected.
    seconds
        What things take; those of the recording unless given.
    delay, seed
        When scores arrive, as in `Feedback`.
    ahead
        Whether all holes are known from the start, so that opening a square takes no time.

    Attributes
    ----------
    recording
        The holes that are offered.
    feature_names
        The columns known before exposure, if there are any.
    """

    upkeep: Mapping[str, float] = MappingProxyType({})

    def __init__(
        self,
        recording: Recording,
        *,
        seconds: Seconds | None = None,
        delay: Delay = "none",
        seed: int = 0,
        ahead: bool = False,
    ) -> None:
        self.recording, self.ahead = recording.playable(), ahead
        self.seconds = recording.seconds if seconds is None else seconds.checked()
        self.feature_names = recording.columns
        self.feedback = Feedback(delay, seed=seed)
        self._clock = 0.0
        self._counts = self.recording.counts.tolist()
        self._row = {name: i for i, name in enumerate(self.recording.holes)}
        self._patch = {name: i for i, name in enumerate(self.recording.patches)}
        self._squares = tuple(dict.fromkeys(self.recording.squares))
        self._excluded = _excluded(recording)
        self._x, self._y = _places(self.recording)
        self._placed = _placed(self.recording)
        self._paid: set[str] = set(self._squares if ahead else ())
        self._shown: set[int] = set()  # patches that were shown singly
        self._taken: set[str] = set()
        self._at: int | None = None
        self._atlas = {square.name: square for square in self.squares()}
        self._place: Square | None = None  # the square that the stage is in

    @property
    def timing(self) -> Timing:
        """What to plan with."""
        survey, move, expose, *more = self.seconds
        patches = len(self.recording.patches) / len(self._squares)
        extra = dict(zip(("shot", *SWITCHES), more, strict=True))
        timing = Timing.constant(survey, move, expose, patches=patches, **extra)
        return replace(timing, image=0.0) if self.ahead else timing

    @property
    def clock(self) -> float:
        """Seconds since the session began."""
        return self._clock

    def squares(self) -> list[Square]:
        """The squares of the recording; no atlas was kept."""
        held = self.recording
        of = np.array(held.squares)[held.patch]
        lies_in = dict(
            zip(held.squares, zip(held.tiles or held.grids, held.grids, strict=True), strict=True)
        )
        return [
            Square(
                name,
                float(self._x[of == name].mean()),
                float(self._y[of == name].mean()),
                tile=lies_in[name][0],
                grid=lies_in[name][1],
            )
            for name in self._squares
        ]

    def survey(self, square: str) -> Survey:
        """Open a square; paid once."""
        survey = self.peek(square)
        if square not in self._paid:
            self._paid.add(square)
            self._clock += self.seconds.survey * len(survey.patches)
            self._at, self._place = None, self._atlas[square]
        return survey

    def peek(self, square: str) -> Survey:
        """What a survey would show, at no cost: for yardsticks, not for pilots."""
        if square not in self._squares:
            raise KeyError(f"the recording has no square {square!r}")
        inside = [i for i, name in enumerate(self.recording.squares) if name == square]
        patches = tuple(self._as_patch(i) for i in inside)
        features = {self.recording.patches[i]: self.recording.known[self._rows(i)] for i in inside}
        excluded = {why: count for (of, why), count in self._excluded.items() if of == square}
        return Survey(square, patches, features, excluded=excluded, placed=self._placed)

    def offer(self, patch: int) -> Survey:
        """Show a single patch, given by its index, for the seconds that takes."""
        self._clock += self.seconds.survey
        self._shown.add(patch)
        self._place = self._atlas[self.recording.squares[patch]]
        name = self.recording.patches[patch]
        features = {name: self.recording.known[self._rows(patch)]}
        shown = (self._as_patch(patch),)
        return Survey(self.recording.squares[patch], shown, features, placed=self._placed)

    def again(self) -> "RecordedMicroscope":
        """The same grid under the same microscope, from the start."""
        return RecordedMicroscope(
            self.recording,
            seconds=self.seconds,
            delay=self.feedback.delay,
            seed=self.feedback.seed,
            ahead=self.ahead,
        )

    def worth(self, reward: Callable[[Score], float | None]) -> dict[str, float]:
        """By hole that was exposed: what its shots were worth together, scored or not."""
        return {hole: self.first_visit(reward, hole) for hole in self._taken}

    def first_visit(self, reward: Callable[[Score], float | None], hole: str) -> float:
        """What a hole gives."""
        return sum(reward(score) or 0.0 for score in self.recording.scores(self._row[hole]))

    def _rows(self, patch: int) -> range:
        return range(int(self.recording.starts[patch]), int(self.recording.starts[patch + 1]))

    def _as_patch(self, patch: int) -> Patch:
        held, rows = self.recording, self._rows(patch)
        holes = tuple(
            Hole(held.holes[i], float(self._x[i]), float(self._y[i]), shots=self._counts[i])
            for i in rows
        )
        x, y = float(self._x[rows].mean()), float(self._y[rows].mean())
        return Patch(held.patches[patch], held.squares[patch], holes, x, y)

    def move(self, patch: Patch) -> float:
        """Go to a patch and focus."""
        if patch.name not in self._patch:
            raise KeyError(f"the recording has no patch {patch.name!r}")
        at = self._patch[patch.name]
        if self.recording.squares[at] not in self._paid and at not in self._shown:
            raise ValueError(
                f"square {self.recording.squares[at]!r} is not open; survey it before moving there"
            )
        there = self._atlas[self.recording.squares[at]]
        took = self.seconds.move + self.timing.switch(self._place, there)
        self._at, self._place = at, there
        self._clock += took
        return took

    def expose(self, hole: Hole) -> float:
        """Take the shots of a hole of this patch."""
        if hole.name not in self._row:
            raise KeyError(f"the recording has no hole {hole.name!r}")
        row = self._row[hole.name]
        if self._at is None or row not in self._rows(self._at):
            raise ValueError(f"hole {hole.name!r} is not of the patch moved to last; move first")
        if hole.name in self._taken:
            raise ValueError(f"hole {hole.name!r} was exposed already")
        self._taken.add(hole.name)
        began = self._clock
        for shot in range(self._counts[row]):
            self._clock = began + self.seconds.hole(shot + 1)
            self.feedback.submit(Shot(hole.name, shot), self._clock)
        return self._clock - began

    def collect(self) -> list[Score]:
        """The scores that arrived since they were last collected."""
        return [
            replace(
                self.recording.scores(self._row[done.shot.hole])[done.shot.number],
                shot=done.shot.number,
                exposed_at=done.exposed_at,
                arrived_at=done.arrived_at,
            )
            for done in self.feedback.ready(self._clock)
        ]

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self._clock += number("seconds", seconds, low=0.0)


def _excluded(recording: Recording) -> Counter[tuple[str, str]]:
    """How many holes of each square are not offered, and why."""
    found: Counter[tuple[str, str]] = Counter()
    bare = recording.counts == 0
    for why, which in (
        ("never exposed", bare),
        ("features that are no numbers", ~bare & np.isnan(recording.known).any(axis=1)),
    ):
        found.update((recording.squares[p], why) for p in recording.patch[which])
    return found


def _placed(recording: Recording) -> bool:
    """Whether all positions are known."""
    return bool(np.isfinite([recording.x, recording.y]).all())


def _places(recording: Recording) -> tuple[FloatArray, FloatArray]:
    if _placed(recording):
        return recording.x, recording.y
    row = np.arange(len(recording.holes)) - recording.starts[recording.patch]
    return APART * recording.patch.astype(np.float64), _SPACING * row.astype(np.float64)
