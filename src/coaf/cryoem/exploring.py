"""A small share of what would be skipped is taken anyway, so that wrong beliefs are found out."""

from collections.abc import Sequence
from typing import Any
from zlib import crc32

import numpy as np

from coaf.bandit.arrays import number
from coaf.cryoem.grid import Patch, Square
from coaf.cryoem.microscope import Survey
from coaf.cryoem.pilot import Choice, Left, Pilot


class Exploring:
    """A pilot that follows another, and now and then takes what the other leaves.

    - In a patch that was entered, each hole left behind is taken with probability `share`.
    - A patch that would be skipped is entered with probability `share`, for one of its holes,
      each as likely as the others. The pilot is then asked again, and may go on.

    Luck is drawn from the seed and the name of hole or patch alone, so a restart decides the same.
    `Choice.propensity` holds the probability, given all before.

    Parameters
    ----------
    pilot
        Whom to follow.
    share
        0 explores nothing.
    seed
        Of the luck.
    """

    def __init__(self, pilot: Pilot, share: float, seed: int = 0) -> None:
        self.pilot, self.share, self.seed = pilot, check_share(share), seed
        self._followed: set[str] = set()  # patches in which the pilot itself took a hole
        self._explored: set[str] = set()  # patches entered by luck
        if hasattr(pilot, "unlearn"):
            self.unlearn = pilot.unlearn

    def square(self, squares: Sequence[Square], left: Left) -> Choice:
        return self.pilot.square(squares, left)

    def opened(self, survey: Survey, seconds: float) -> None:
        self.pilot.opened(survey, seconds)

    def patch(self, patches: Sequence[Patch], left: Left) -> Choice:
        return self.pilot.patch(patches, left)

    def hole(self, patch: Patch, rest: Sequence[int], left: Left) -> Choice:
        choice = self.pilot.hole(patch, rest, left)
        if choice.name is not None:
            self._followed.add(patch.name)
            return choice
        if self.share == 0.0:
            return choice
        if patch.name in self._followed:
            lucky = [i for i in rest if self._luck(patch.holes[i].name)[0] < self.share]
            return self._take(patch, lucky[0], self.share, choice) if lucky else choice
        luck, which = self._luck(patch.name)
        if patch.name in self._explored or luck >= self.share:
            return choice
        self._explored.add(patch.name)
        position = rest[int(which * len(rest))]
        return self._take(patch, position, self.share / len(rest), choice)

    def exposed(self, hole: str, seconds: float) -> None:
        self.pilot.exposed(hole, seconds)

    def left(self, patch: Patch) -> None:
        self.pilot.left(patch)

    def scored(self, hole: str, shot: int, reward: float) -> None:
        self.pilot.scored(hole, shot, reward)

    def estimates(self, patch: Patch) -> Any:
        return self.pilot.estimates(patch)

    def _luck(self, name: str) -> tuple[float, float]:
        first, second = np.random.default_rng([self.seed, crc32(name.encode())]).random(2)
        return float(first), float(second)

    def _take(self, patch: Patch, position: int, propensity: float, instead: Choice) -> Choice:
        estimate = float(np.asarray(self.pilot.estimates(patch), dtype=np.float64)[position])
        why = f"To find out, with probability {propensity:.2g}; else: {instead.why or 'leave'}"
        name = patch.holes[position].name
        return Choice(name, why, estimate, instead.rate, propensity)


def check_share(share: float) -> float:
    """The share to explore, if it can be one."""
    if not 0.0 <= number("explore", share) < 1.0:
        raise ValueError(f"explore is {share}; it is a probability: at least 0 and below 1")
    return float(share)
