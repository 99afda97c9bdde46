"""A patch of an opened square, and what is left of it as a round."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.groups import Groups
from coaf.bandit.latency import Additive
from coaf.bandit.problem import Decision, Round
from coaf.cryoem.grid import Patch
from coaf.cryoem.timing import Timing


@dataclass(slots=True)
class KnownPatch:
    """A patch, the features of its holes, and what was done with it.

    Attributes
    ----------
    patch, features
        The patch, and a row for each of its holes, as the belief takes them.
    taken
        Holes that were exposed.
    entered
        Whether the stage was there before; the survey is paid then.
    """

    patch: Patch
    features: FloatArray
    taken: set[str] = field(default_factory=set)
    entered: bool = False
    _made: tuple[object, Round] | None = None

    @property
    def rest(self) -> list[int]:
        """Positions of the holes that are left."""
        return [i for i, hole in enumerate(self.patch.holes) if hole.name not in self.taken]

    def labels(self, n: int) -> Groups:
        """The groups of n of its holes: square and patch."""
        return np.array([[self.patch.square, self.patch.name]]).repeat(n, axis=0)

    def round(
        self,
        timing: Timing,
        rest: Sequence[int],
        *,
        key: str | None = None,
        follows: Decision | None = None,
    ) -> Round:
        """Some of its holes as a round."""
        shots = [self.patch.holes[i].shots for i in rest]
        latency = timing.latency(shots=shots, opens=False if self.entered else None)
        return Round(
            self.features[list(rest)],
            latency if follows is None else Additive(0.0, latency.each),
            groups=self.labels(len(rest)),
            follows=follows,
            key=key,
            parts=np.array(shots),
        )

    def left(self, timing: Timing) -> Round:
        """What is left of it as a round; made anew only when it, or the timing, has changed."""
        now = (len(self.taken), self.entered, int(timing.enter), int(10.0 * timing.expose))
        if self._made is None or self._made[0] != now:
            self._made = (now, self.round(timing, self.rest))
        return self._made[1]
