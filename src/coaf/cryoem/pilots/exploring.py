"""A small share of what would be skipped is taken anyway, so that wrong beliefs are found out."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from coaf.bandit.actions import AnySubset
from coaf.bandit.arrays import FloatArray
from coaf.bandit.index import generator
from coaf.bandit.policies.explore import chance, check_share
from coaf.cryoem.grid import Patch, Square
from coaf.cryoem.microscope import Survey
from coaf.cryoem.pilot import Choice, Left, Open, Other, Pilot, Scored, guess_of, in_any_order
from coaf.cryoem.pilots.knowledge import Knowledge
from coaf.cryoem.timing import Timing


class Exploring:
    """A pilot that follows another, and now and then takes what the other leaves.

    When the pilot leaves a patch, or would skip it, one of the holes left is taken all the same
    with probability `share`: by the rule of chance that policies explore by (`chance`), each as
    likely as the others. The pilot is then asked again, and may go on.

    Luck is drawn from the seed and the name of the patch alone, so a restart decides the same.
    `Choice.propensity` holds the probability of the hole, or of leaving, given all before.

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

    @property
    def any_order(self) -> bool:
        return in_any_order(self.pilot)

    def guess(self) -> str:
        return guess_of(self.pilot)

    def grid(self, others: Sequence[Other], left: Left) -> Choice:
        return self.pilot.grid(others, left)

    def square(self, squares: Sequence[Square], left: Left) -> Choice:
        return self.pilot.square(squares, left)

    def patch(self, patches: Sequence[Open], left: Left) -> Choice:
        return self.pilot.patch(patches, left)

    def hole(self, here: Open, left: Left, *, inside: bool) -> Choice:
        choice = self.pilot.hole(here, left, inside=inside)
        if choice.name is not None or here.explored or not here.rest:
            return choice
        rng = generator(self.seed, here.patch.name, "explore")
        if rng.random() >= self.share:
            return replace(choice, propensity=choice.propensity * (1.0 - self.share))
        rule = chance(AnySubset(), len(here.rest))
        k = int(rule.take(rng).argmax())
        return self._take(here.patch, here.rest[k], self.share * float(rule.of_arms()[k]), choice)

    def _take(self, patch: Patch, position: int, propensity: float, instead: Choice) -> Choice:
        estimate = float(self.pilot.estimates(patch)[position])
        why = f"To find out, with probability {propensity:.2g}; else: {instead.why or 'leave'}"
        return Choice(patch.holes[position].name, why, estimate, instead.rate, propensity)

    def estimates(self, patch: Patch) -> FloatArray:
        return self.pilot.estimates(patch)

    def knowledge(self) -> Knowledge | None:
        return self.pilot.knowledge()

    def loaded(self, grid: str) -> None:
        self.pilot.loaded(grid)

    def saw(self, squares: Sequence[Square]) -> None:
        self.pilot.saw(squares)

    def opened(self, survey: Survey, timing: Timing) -> None:
        self.pilot.opened(survey, timing)

    def moved(self, here: Open, left: Left, rate: float | None) -> None:
        self.pilot.moved(here, left, rate)

    def exposed(self, hole: str) -> None:
        self.pilot.exposed(hole)

    def done(self, here: Open, left: Left) -> None:
        self.pilot.done(here, left)

    def scored(self, scores: Sequence[Scored]) -> None:
        self.pilot.scored(scores)

    def state(self) -> Mapping[str, Any] | None:
        return self.pilot.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        self.pilot.restore(state)
