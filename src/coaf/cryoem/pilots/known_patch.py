"""A patch of an opened square as a round, or what is in play of it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.groups import Groups
from coaf.bandit.latency import Additive
from coaf.bandit.problem import Round
from coaf.cryoem.grid import Patch
from coaf.cryoem.pilot import Open
from coaf.cryoem.timing import Timing


@dataclass(slots=True)
class KnownPatch:
    """A patch, and the features of its holes, as the belief takes them."""

    patch: Patch
    features: FloatArray
    _made: tuple[object, Round] | None = None

    def labels(self, n: int) -> Groups:
        """The groups of n of its holes: square and patch."""
        return np.array([[self.patch.square, self.patch.name]]).repeat(n, axis=0)

    def round(
        self,
        timing: Timing,
        rest: Sequence[int],
        *,
        entered: bool = False,
        key: str | None = None,
        follows: str | None = None,
    ) -> Round:
        """Some of its holes as a round; if it was entered before, its survey is paid."""
        shots = [self.patch.holes[i].shots for i in rest]
        latency = timing.latency(shots=shots, opens=False if entered else None)
        return Round(
            self.features[list(rest)],
            latency if follows is None else Additive(0.0, latency.each),
            groups=self.labels(len(rest)),
            follows=follows,
            key=key,
            parts=np.array(shots, dtype=np.int64),
        )

    def left(self, here: Open, timing: Timing) -> Round:
        """What is in play of it; made anew only when that, or the timing, has changed."""
        now = (here.rest, here.entered, timing)
        if self._made is None or self._made[0] != now:
            self._made = (now, self.round(timing, here.rest, entered=here.entered))
        return self._made[1]
