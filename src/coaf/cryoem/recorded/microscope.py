"""A recorded grid behind the microscope's verbs: what was collected once is collected again."""

from collections import Counter

import numpy as np

from coaf.bandit.arrays import FloatArray, number
from coaf.cryoem.feedback import Delay, Feedback
from coaf.cryoem.grid import Hole, Patch, Shot, Square
from coaf.cryoem.microscope import Score, Survey
from coaf.cryoem.recorded.recording import Recording, Times
from coaf.cryoem.timing import Timing

PIXEL = 0.01  # µm: recordings give offsets in pixels of the patch's image, of unknown size
_APART = 100.0  # µm between patches, whose own positions are not recorded


class RecordedMicroscope:
    """Drive over a recorded grid, with constant times and scores that may come late.

    A square is paid when it is opened: the survey of each of its patches. Names are those of the
    recording. Positions are relative: of holes within their patch, as recorded, and of patches in
    a row.

    Parameters
    ----------
    recording
        What was collected.
    times
        Seconds to survey a patch, to move to it, and to expose a hole.
    delay, seed
        When scores arrive, as in `Feedback`.
    """

    feature_names = ("prediction",)
    upkeep = 0.0

    def __init__(
        self,
        recording: Recording,
        *,
        times: Times = Times(),  # noqa: B008
        delay: Delay = "none",
        seed: int = 0,
    ) -> None:
        self.recording, self.times = recording, times
        self.feedback = Feedback(delay, seed=seed)
        self._clock = 0.0
        self._row = {name: i for i, name in enumerate(recording.names)}
        self._patch = {name: i for i, name in enumerate(recording.patches)}
        self._squares = tuple(dict.fromkeys(recording.squares))
        self._paid: set[str] = set()
        self._taken: set[str] = set()
        self._at: int | None = None

    @property
    def timing(self) -> Timing:
        """What to plan with."""
        per_square = Counter(self.recording.squares)
        patches = len(self.recording.patches) / len(per_square)
        return Timing.constant(*self.times, patches=patches)

    @property
    def clock(self) -> float:
        """Seconds since the session began."""
        return self._clock

    def squares(self) -> list[Square]:
        """The squares of the recording; no atlas was kept."""
        return [Square(name, _APART * k, 0.0) for k, name in enumerate(self._squares)]

    def survey(self, square: str) -> Survey:
        """Open a square; paid once."""
        if square not in self._squares:
            raise KeyError(f"the recording has no square {square!r}")
        inside = [i for i, name in enumerate(self.recording.squares) if name == square]
        if square not in self._paid:
            self._paid.add(square)
            self._clock += self.times.survey * len(inside)
            self._at = None
        patches = tuple(self._as_patch(i) for i in inside)
        features = {self.recording.patches[i]: self._features(i) for i in inside}
        return Survey(square, patches, features)

    def _rows(self, patch: int) -> range:
        return range(int(self.recording.starts[patch]), int(self.recording.starts[patch + 1]))

    def _features(self, patch: int) -> FloatArray:
        return self.recording.predicted[self._rows(patch), None]

    def _as_patch(self, patch: int) -> Patch:
        held, x = self.recording, _APART * patch
        holes = tuple(
            Hole(held.names[i], x + PIXEL * float(held.x[i]), PIXEL * float(held.y[i]))
            for i in self._rows(patch)
        )
        return Patch(held.patches[patch], held.squares[patch], holes, x, 0.0)

    def move(self, patch: Patch) -> float:
        """Go to a patch and focus."""
        if patch.name not in self._patch:
            raise KeyError(f"the recording has no patch {patch.name!r}")
        at = self._patch[patch.name]
        if self.recording.squares[at] not in self._paid:
            raise ValueError(
                f"square {self.recording.squares[at]!r} is not open; survey it before moving there"
            )
        self._at = at
        self._clock += self.times.move
        return self.times.move

    def expose(self, hole: Hole) -> float:
        """Take the one shot of a hole of this patch."""
        if hole.name not in self._row:
            raise KeyError(f"the recording has no hole {hole.name!r}")
        if self._at is None or self._row[hole.name] not in self._rows(self._at):
            raise ValueError(f"hole {hole.name!r} is not of the patch moved to last; move first")
        if hole.name in self._taken:
            raise ValueError(f"hole {hole.name!r} was exposed already")
        self._taken.add(hole.name)
        self._clock += self.times.expose
        self.feedback.submit(Shot(hole.name), self._clock)
        return self.times.expose

    def collect(self) -> list[Score]:
        """The scores that arrived since they were last collected."""
        return [
            Score(
                done.shot.hole,
                done.shot.number,
                self._ctf(done.shot.hole),
                None,
                done.exposed_at,
                done.arrived_at,
            )
            for done in self.feedback.ready(self._clock)
        ]

    def _ctf(self, hole: str) -> float | None:
        ctf = float(self.recording.ctf[self._row[hole]])
        return None if np.isnan(ctf) else ctf

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self._clock += number("seconds", seconds, low=0.0)
