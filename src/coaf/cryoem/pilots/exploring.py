"""A small share of what would be skipped is taken anyway, so that wrong beliefs are found out."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from coaf.bandit.actions import AnySubset
from coaf.bandit.index import generator
from coaf.bandit.policies.explore import chance, check_share
from coaf.cryoem.grid import Patch, Square
from coaf.cryoem.microscope import Survey
from coaf.cryoem.pilot import Choice, Left, Pilot


class Exploring:
    """A pilot that follows another, and now and then takes what the other leaves.

    When the pilot leaves a patch, or would skip it, one of the holes left is taken all the same
    with probability `share`: by the rule of chance that policies explore by (`chance`), each as
    likely as the others. The pilot is then asked again, and may go on.

    Luck is drawn from the seed and the name of the patch alone, so a restart decides the same.
    `Choice.propensity` holds the probability of the hole, given all before.

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
        self.pilot, self.share, self.seed = pilot, check_share("explore", share), seed
        self._explored: set[str] = set()  # patches in which luck was tried
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
        if choice.name is not None or patch.name in self._explored or not rest:
            return choice
        rng = generator(self.seed, patch.name, "explore")
        lucky = rng.random() < self.share
        self._explored.add(patch.name)
        if not lucky:
            return choice
        rule = chance(AnySubset(), len(rest))
        k = int(rule.take(rng).argmax())
        return self._take(patch, rest[k], self.share * float(rule.of_arms()[k]), choice)

    def exposed(self, hole: str, seconds: float) -> None:
        self.pilot.exposed(hole, seconds)

    def left(self, patch: Patch) -> None:
        self.pilot.left(patch)

    def scored(self, hole: str, shot: int, reward: float) -> None:
        self.pilot.scored(hole, shot, reward)

    def estimates(self, patch: Patch) -> Any:
        return self.pilot.estimates(patch)

    def _take(self, patch: Patch, position: int, propensity: float, instead: Choice) -> Choice:
        estimate = float(np.asarray(self.pilot.estimates(patch), dtype=np.float64)[position])
        why = f"To find out, with probability {propensity:.2g}; else: {instead.why or 'leave'}"
        name = patch.holes[position].name
        return Choice(name, why, estimate, instead.rate, propensity)
