"""COAF as a pilot: squares, patches and holes, each taken if it is worth its time."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import ceil, isfinite, nan
from typing import Any

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.beside import Beside
from coaf.bandit.groups import Groups
from coaf.bandit.policies.stepwise import Stepwise
from coaf.bandit.problem import Decision, Round
from coaf.bandit.state import entry
from coaf.cryoem.grid import Patch, Square
from coaf.cryoem.microscope import Survey
from coaf.cryoem.pilot import Choice, Left, Open, Scored
from coaf.cryoem.pilots import reasons
from coaf.cryoem.pilots.designs import Design, design_for
from coaf.cryoem.pilots.known_patch import KnownPatch
from coaf.cryoem.pilots.shot_effects import SCALE, ShotEffects
from coaf.cryoem.pilots.square_choice import SquareChoice
from coaf.cryoem.pilots.switching import Switching
from coaf.cryoem.reward import Reward
from coaf.cryoem.timing import Timing
from coaf.cryoem.vision.features import HOLE_FEATURES

_WAITS = 50  # scores whose waiting tells how late the next ones come
_LATEST = 20  # holes; later than that makes no difference


class CoafPilot:
    """Decide by what a second is worth, hole by hole (`Stepwise`), and square by square.

    Parameters
    ----------
    timing
        What to expect of the microscope before anything was measured.
    reward
        What a score is worth: it says which belief suits, and at which cut.
    columns
        The names of the features that surveys bring.
    design
        What the belief is given and how it begins; what suits columns and reward unless given.

    Notes
    -----
    The rest of a patch is a follow-up round, at the price that a second had when going there was
    decided. Before each entry the policy is told the time left, how many patches are to be
    expected of the squares not opened, and which patches could be returned to, so that the price
    of a second falls when the grid runs out.

    What shots were taken under, as far as scores say, is learned beside the ice (`ShotEffects`),
    and holes are judged at what is usual of it.
    """

    def __init__(
        self,
        timing: Timing,
        *,
        reward: Reward,
        columns: Sequence[str] = HOLE_FEATURES,
        design: Design | None = None,
    ) -> None:
        self.design = design_for(columns, reward) if design is None else design
        self.policy = Stepwise(self.design.belief())
        self.unit = reasons.unit_of(reward)
        self.squares = SquareChoice(self.unit)
        self._known: dict[str, KnownPatch] = {}
        self._patches: dict[str, list[str]] = {}  # by square opened; one may hold no patch
        self._atlas: dict[str, Square] = {}
        self._where: dict[str, tuple[KnownPatch, int]] = {}  # by hole
        self._visits = 0
        self._visit = ""  # the name of the one under way
        self._expose = timing.hole()
        self._waits: list[float] = []
        self.shots = ShotEffects()

    # Asked

    def square(self, squares: Sequence[Square], left: Left) -> Choice:
        with self._facing(left):
            rate, opens = self.policy.rate, left.timing.square
            if not squares:
                return Choice(None, "No square is left to open.", rate=rate)
            if self.policy.blind:
                # Who knows nothing of holes knows nothing of squares: as who takes all.
                return Choice(squares[0].name, "The next in order: no score tells yet.", rate=rate)
            rows = [
                (self._atlas[name], self._worth(held, left.timing, rate))
                for name, held in self._patches.items()
                if name in self._atlas
            ]
            choice = self.squares.choose(squares, rows, rate=rate, seconds=opens)
            if choice.name is None:
                again = self._again(left)
                if not (self.policy.worth(again, rate, anew=False) > 0).any():
                    best, worth = self.squares.ranking[0]
                    why = f"{choice.why} Nothing else does either, so the best is opened."
                    choice = Choice(best, why, estimate=worth, rate=rate)
            return replace(choice, why=f"{choice.why}{self.shots.said}")

    def patch(self, patches: Sequence[Open], left: Left) -> Choice:
        with self._facing(left):
            rate = self.policy.rate
            rounds = [self._known[one.patch.name].left(one, left.timing) for one in patches]
            way = self._way(patches, left, left.at)
            worth = self.policy.worth(rounds, rate, anew=False, before=way.seconds)
        best, pays = way.best(worth, rate)
        # Of a square just opened each patch is looked at, so that each has its own reason to be
        # skipped; when returning, or far from there, nothing is looked at in vain.
        if not pays and (left.returning or way.seconds[best] > 0.0):
            why = reasons.no_patch(self.unit, len(patches), float(worth[best]))
            return Choice(None, why, rate=rate)
        return Choice(
            patches[best].patch.name,
            reasons.patch(self.unit, len(patches), float(worth[best])),
            estimate=float(worth[best]),
            rate=rate,
        )

    def hole(self, here: Open, left: Left, *, inside: bool) -> Choice:
        if not here.rest:
            return Choice(None, "No hole is left.")
        name, timing = here.patch.name, left.timing
        known = self._known[name]
        # When nothing else can be started, what is left here is free: it is priced anew.
        others = [one for one in left.patches if one.patch.name != name]
        nearest = min(self._way(others, left, self._square(name)).seconds, default=0.0)
        last = left.seconds < timing.enter + nearest + timing.hole()
        with self._facing(left, at=name, anew=not inside or last):
            decision = self.policy.decide(
                known.round(
                    timing,
                    here.rest,
                    entered=here.entered,
                    follows=self._visit if inside else None,
                    key=f"{self._visits}/{name}/{len(here.rest)}",
                )
            )
        now, hole = self._reckoned(decision, here, timing, inside)
        fault = f" {decision.fault}" if decision.fault else ""
        if not decision.chosen.any():
            return Choice(None, reasons.no_hole(self.unit, now) + fault, rate=decision.rate)
        why = reasons.take_hole(self.unit, now) + fault
        return Choice(hole, why, now.estimate if now.knows else nan, decision.rate)

    def estimates(self, patch: Patch) -> FloatArray:
        known, belief = self._known[patch.name], self.policy.belief
        assert belief is not None
        shots = np.array([hole.shots for hole in patch.holes])
        found: FloatArray = shots * belief.mean(known.features, known.labels(len(shots)))
        return found

    # Told

    def saw(self, squares: Sequence[Square]) -> None:
        self._atlas |= {square.name: square for square in squares}

    def opened(self, survey: Survey, timing: Timing) -> None:
        if survey.square not in self._patches:
            self.squares.opened(survey.square, len(survey.patches))
        held, new = self._patches.setdefault(survey.square, []), []
        for patch in survey.patches:
            known = KnownPatch(patch, self.design.features(survey.features[patch.name]))
            if patch.name not in self._known:
                new.append(known)
                held.append(patch.name)
            self._known[patch.name] = known
            self._where |= {hole.name: (known, i) for i, hole in enumerate(patch.holes)}
        if new and len(self._known) == len(new):
            # The first patches tell how large patches are here; of the rest they are too few.
            usual = ceil(np.mean([len(known.patch.holes) for known in new]))
            self.policy.expected = self.design.typical(timing.latency(), usual)
        every = (known.round(timing, range(len(known.patch.holes))) for known in new)
        self.policy.meet(every)

    def moved(self, here: Open, left: Left, rate: float | None) -> None:
        self._visits += 1
        self._visit = f"{self._visits}/{here.patch.name}"
        if rate is None:
            with self._facing(left, at=here.patch.name):
                rate = self.policy.rate
        self.policy.visit(self._visit, rate)
        self._expose = left.timing.hole(here.patch.holes[0].shots)

    def exposed(self, hole: str) -> None:
        pass

    def done(self, here: Open, left: Left) -> None:
        pass

    def scored(self, scores: Sequence[Scored]) -> None:
        if self.shots.tell(scores):
            belief, usual = self.design.belief(), self.shots.usual
            wide = Beside(belief.widened(len(usual), SCALE), usual) if len(usual) else belief
            self.policy.belief = wide
            self.policy.refit(*self._rows(self.shots.scores))
        else:
            self.policy.absorb(*self._rows(scores))
        self._waits += [score.waited for score in scores if score.shot == 0]
        self._waits = self._waits[-_WAITS:]
        if self._waits:
            late = float(np.median(self._waits)) / max(self._expose, 1e-6)
            self.policy.lag = min(ceil(late - 1e-9), _LATEST)

    def state(self) -> dict[str, Any]:
        waits, shots = list(self._waits), self.shots.state()
        return {"policy": self.policy.state(), "waits": waits, "shots": shots}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.policy = Stepwise.restore(entry(state, "policy"))
        self._waits = list(entry(state, "waits"))
        self.shots = ShotEffects.restore(state.get("shots"))

    def _rows(self, scores: Sequence[Scored]) -> tuple[FloatArray, list[float], Groups]:
        """Scores as the belief learns them."""
        where = [self._where[score.hole] for score in scores]
        ice = np.array([known.features[i] for known, i in where])
        return (
            np.hstack([ice, self.shots.columns(scores)]),
            [self.design.target(score.reward) for score in scores],
            np.concatenate([known.labels(1) for known, _ in where]),
        )

    def _reckoned(
        self, decision: Decision, here: Open, timing: Timing, inside: bool
    ) -> tuple[reasons.Facing, str]:
        """What a decision rests on, and the name of its best hole: that chosen, if one is."""
        best = decision.chosen if decision.chosen.any() else decision.estimates
        k = int(best.argmax())
        hole = here.patch.holes[here.rest[k]]
        now = reasons.Facing(
            len(here.rest),
            float(decision.estimates[k]),
            decision.rate,
            seconds=timing.hole(hole.shots),
            gain=decision.option or 0.0,
            shots=hole.shots,
            inside=inside,
            scored=bool(self._waits),
            blind=decision.blind,
        )
        return now, hole.name

    # Rounds

    def _worth(self, patches: Iterable[str], timing: Timing, rate: float) -> float:
        """What the patches of a square were worth beyond their time, as if they came anew."""
        known = [self._known[name] for name in patches]
        rounds = [one.round(timing, range(len(one.patch.holes))) for one in known]
        return float(np.maximum(self.policy.worth(rounds, rate), 0.0).sum())

    def _again(self, left: Left, at: str = "") -> list[Round]:
        """What is left of patches that can be returned to."""
        there = (one for one in left.patches if one.patch.name != at)
        return [self._known[one.patch.name].left(one, left.timing) for one in there]

    def _square(self, patch: str) -> Square:
        """The square of a patch, as the atlas has it if there is one."""
        name = self._known[patch].patch.square
        return self._atlas.get(name) or Square(name, 0.0, 0.0)

    def _way(self, patches: Sequence[Open], left: Left, here: Square | None) -> Switching:
        """The switches that lie before patches."""
        return Switching([self._square(one.patch.name) for one in patches], here, left.timing)

    @contextmanager
    def _facing(self, left: Left, *, at: str = "", anew: bool = True) -> Iterator[None]:
        """Let the policy know how things stand, for as long as it is asked."""
        lag = self.policy.lag
        if left.blindly:
            self.policy.lag = max((len(one.rest) for one in left.patches), default=lag)
        try:
            if not anew or not isfinite(left.seconds):
                yield
                return
            rounds = len(left.squares) * self.squares.patches(left.timing.patches)
            # Who decides about a patch reckons as if there: the way to it is its square's matter.
            here = self._square(at) if at else left.at
            way = left.timing.switch(left.at, here) if here is not None else 0.0
            there = [one for one in left.patches if one.patch.name != at]
            with self.policy.remaining(
                seconds=max(left.seconds - way, 0.0),
                rounds=rounds,
                again=self._again(left, at),
                setups=self._way(there, left, here).setups,
            ):
                yield
        finally:
            self.policy.lag = lag
