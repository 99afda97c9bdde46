"""A patch of an opened square as a round, or what is in play of it; and many at once."""

from collections.abc import Iterable, Sequence

import numpy as np

from coaf.bandit.arrays import FloatArray, IntArray
from coaf.bandit.groups import Groups
from coaf.bandit.latency import Additive
from coaf.bandit.policies.prospects import Prospects
from coaf.bandit.problem import Round
from coaf.cryoem.grid import Patch
from coaf.cryoem.pilot import Open
from coaf.cryoem.timing import Timing


class KnownPatch:
    """A patch, and the features of its holes, as the belief takes them.

    `place` are the numbers of its square and of itself: a belief tells groups apart by them.
    """

    def __init__(self, patch: Patch, features: FloatArray, place: tuple[int, int]) -> None:
        self.patch, self.features, self.place = patch, features, place
        self.whole = Open(patch, tuple(range(len(patch.holes))))
        self._shots = np.array([hole.shots for hole in patch.holes], dtype=np.int64)
        self._whole = self.whole.rest, features, self._shots, self.labels(len(patch.holes))
        self._part = self._whole

    def labels(self, n: int) -> Groups:
        """The groups of n of its holes: square and patch."""
        return np.array([self.place]).repeat(n, axis=0)

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
        shots = self._shots[list(rest)]
        latency = timing.latency(shots=shots.tolist(), opens=False if entered else None)
        return Round(
            self.features[list(rest)],
            latency if follows is None else Additive(0.0, latency.each),
            groups=self.labels(len(rest)),
            follows=follows,
            key=key,
            parts=shots,
        )

    def part(self, rest: tuple[int, ...]) -> tuple[object, FloatArray, IntArray, Groups]:
        """Features, shots and labels of some holes: kept, as decisions ask for the same again."""
        if rest == self.whole.rest:
            return self._whole
        if self._part[0] != rest:
            of = list(rest)
            self._part = rest, self.features[of], self._shots[of], self.labels(len(of))
        return self._part


def prospects(held: Iterable[tuple[KnownPatch, Open]], timing: Timing) -> Prospects:
    """What is in play of patches, as `KnownPatch.round` has each."""
    pairs = list(held)
    if not pairs:
        return Prospects.of([])
    _, features, shots, labels = zip(*(known.part(one.rest) for known, one in pairs), strict=True)
    new, paid = (timing.latency(opens=opens) for opens in (None, False))
    parts = np.concatenate(shots)
    return Prospects(
        np.concatenate(features),
        np.concatenate(labels),
        timing.holes(parts),
        parts,
        np.array([len(one.rest) for _, one in pairs]),
        np.array([(paid if one.entered else new).base for _, one in pairs]),
        np.full(len(pairs), new.setup),
    )
