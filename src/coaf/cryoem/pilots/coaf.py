"""COAF as a pilot: squares, patches and holes, each taken if it is worth its time."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from math import ceil, isfinite, nan
from typing import Any

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.beside import Beside
from coaf.bandit.beliefs.mixture import Mixture
from coaf.bandit.beliefs.nested.nested import Nested
from coaf.bandit.groups import Groups
from coaf.bandit.policies.prospects import Prospects
from coaf.bandit.policies.stepwise import Stepwise
from coaf.bandit.problem import Decision
from coaf.bandit.state import entry
from coaf.cryoem.grid import Patch, Square
from coaf.cryoem.microscope import Survey
from coaf.cryoem.pilot import Choice, Left, Open, Other, Scored
from coaf.cryoem.pilots import reasons
from coaf.cryoem.pilots.designs import PLACES, Design, design_for
from coaf.cryoem.pilots.grid_order import next_grid
from coaf.cryoem.pilots.guess import guessed
from coaf.cryoem.pilots.knowledge import Knowledge, informed
from coaf.cryoem.pilots.known_patch import KnownPatch, prospects
from coaf.cryoem.pilots.shot_effects import SCALE, ShotEffects
from coaf.cryoem.pilots.square_choice import SquareChoice
from coaf.cryoem.pilots.switching import Switching
from coaf.cryoem.reward import Reward
from coaf.cryoem.timing import Timing
from coaf.cryoem.unit import unit_of
from coaf.cryoem.vision.features import HOLE_FEATURES

_WAITS = 50  # scores whose waiting tells how late the next ones come
_LATEST = 20  # holes; later than that makes no difference
_SQUARES = 50  # opened, from which others are judged: more would take time and tell no more


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
    earlier
        What grids before this one taught, for the belief to begin with beside its own prior.

    Notes
    -----
    The rest of a patch is a follow-up round, at the price that a second had when going there was
    decided. Before each entry the policy is told the time left, how many patches are to be
    expected of the squares not opened, and which patches could be returned to, so that the price
    of a second falls when the grid runs out.

    What shots were taken under, as far as scores say, is learned beside the ice (`ShotEffects`),
    and holes are judged at what is usual of it.
    """

    any_order = True

    def __init__(
        self,
        timing: Timing,
        *,
        reward: Reward,
        columns: Sequence[str] = HOLE_FEATURES,
        design: Design | None = None,
        earlier: Sequence[Knowledge] = (),
    ) -> None:
        self._about = str(reward), tuple(columns)
        self._own = design_for(columns, reward) if design is None else design
        self._begin(earlier)
        self.policy = Stepwise(self.design.belief())
        self.unit = unit_of(reward)
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
        self._priced: tuple[tuple[object, ...], float] | None = None  # what was asked last
        self._offered: tuple[list[Open], Timing, Prospects] | None = None

    def _begin(self, earlier: Sequence[Knowledge]) -> None:
        """Whatever is learned is learned from here."""
        reward, columns = self._about
        for one in earlier:
            one.check(columns, reward)
        self.earlier, self.design = tuple(earlier), self._own
        if earlier and not self._own.portable:
            raise ValueError(f"what is learned for {reward} stays on its grid: it has no unit")
        if earlier:
            belief = partial(informed, self._own.belief(), earlier)
            self.design = replace(self._own, belief=belief)

    # Asked

    def grid(self, others: Sequence[Other], left: Left) -> Choice:
        return next_grid(others, left)

    def square(self, squares: Sequence[Square], left: Left) -> Choice:
        with self._facing(left):
            rate, opens = self.policy.rate, left.timing.square
            if not squares:
                return Choice(None, "No square is left to open.", rate=rate)
            if self.policy.blind:
                # Who knows nothing of holes knows nothing of squares: as who takes all.
                return Choice(squares[0].name, "The next in order: no score tells yet.", rate=rate)
            rows = self._opened(left.timing, rate)
            choice = self.squares.choose(squares, rows, rate=rate, seconds=opens)
            if choice.name is None:
                again = self._prospects(left.patches, left.timing)
                if not (self.policy.worth(again, rate, anew=False, paying=True) > 0).any():
                    best, worth = self.squares.ranking[0]
                    why = f"{choice.why} Nothing else does either, so the best is opened."
                    choice = Choice(best, why, estimate=worth, rate=rate)
            return replace(choice, why=f"{choice.why}{self.shots.said}")

    def patch(self, patches: Sequence[Open], left: Left) -> Choice:
        with self._facing(left):
            rate = self.policy.rate
            rounds = self._prospects(patches, left.timing)
            way = self._way(patches, left, left.at)
            worth = partial(self.policy.worth, rounds, rate, anew=False, before=way.seconds)
            values = worth(paying=True)
            best, pays = way.best(values, rate)
            if not pays:  # then it matters by how much
                values = worth()
                best, pays = way.best(values, rate)
        # Of a square just opened each patch is looked at, so that each has its own reason to be
        # skipped; when returning, or far from there, nothing is looked at in vain.
        if not pays and (left.returning or way.seconds[best] > 0.0):
            why = reasons.no_patch(self.unit, len(patches), float(values[best]))
            return Choice(None, why, rate=rate)
        return Choice(
            patches[best].patch.name,
            reasons.patch(self.unit, len(patches), float(values[best])),
            estimate=float(values[best]),
            rate=rate,
        )

    def hole(self, here: Open, left: Left, *, inside: bool) -> Choice:
        if not here.rest:
            return Choice(None, "No hole is left.")
        name, timing = here.patch.name, left.timing
        known = self._known[name]
        # When nothing else can be started, what is left here is free: it is priced anew.
        needed = timing.enter + timing.hole()
        last = left.seconds < needed + timing.switch(None, self._square(name))
        if last:
            others = [one for one in left.patches if one.patch.name != name]
            nearest = min(self._way(others, left, self._square(name)).seconds, default=0.0)
            last = left.seconds < needed + nearest
        with self._facing(left, at=name, inside=inside, anew=not inside or last):
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

    @property
    def rate(self) -> float:
        """What a second is worth on a grid like this without end; 0 until a score tells."""
        return self.policy.rate

    def estimates(self, patch: Patch) -> FloatArray:
        known, belief = self._known[patch.name], self.policy.belief
        assert belief is not None
        shots = np.array([hole.shots for hole in patch.holes])
        found: FloatArray = shots * belief.mean(known.features, known.labels(len(shots)))
        return found

    @property
    def _believed(self) -> Any:
        """The belief of holes, circumstances aside."""
        belief = self.policy.belief
        return belief.belief if isinstance(belief, Beside) else belief

    def guess(self) -> str:
        return guessed(self._believed, self.earlier)

    def knowledge(self) -> Knowledge | None:
        known = self._believed
        if not self.design.portable or not isinstance(known, Nested | Mixture) or not known.rows:
            return None
        reward, columns = self._about
        features = self.design.belief().dim - PLACES
        return Knowledge.of(known, columns=columns, reward=reward, features=features)

    # Told

    def loaded(self, grid: str) -> None:
        pass

    def saw(self, squares: Sequence[Square]) -> None:
        self._atlas |= {square.name: square for square in squares}

    def opened(self, survey: Survey, timing: Timing) -> None:
        if survey.square not in self._patches:
            self.squares.opened(survey.square, len(survey.patches))
        held, new = self._patches.setdefault(survey.square, []), []
        number = list(self._patches).index(survey.square)
        for patch in survey.patches:
            found, before = survey.features[patch.name], self._known
            rows = self.design.rows(patch, found, placed=survey.placed)
            place = (number, before[patch.name].place[1] if patch.name in before else len(before))
            known = KnownPatch(patch, rows, place)
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
        self._priced = self._offered = None

    def moved(self, here: Open, left: Left, rate: float | None) -> None:
        self._priced = None
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
        self._priced = None
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
        known = {"policy": self.policy.state(), "waits": waits, "shots": shots}
        return {**known, "earlier": [one.state() for one in self.earlier]}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.policy = Stepwise.restore(entry(state, "policy"))
        self._waits = list(entry(state, "waits"))
        self.shots = ShotEffects.restore(state.get("shots"))
        # States of earlier releases began with nothing.
        self._begin([Knowledge.restore(one) for one in state.get("earlier", [])])

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

    def _opened(self, timing: Timing, rate: float) -> list[tuple[Square, float]]:
        """Squares of the atlas opened last, and what their patches were worth as new ones."""
        squares = [name for name in self._patches if name in self._atlas][-_SQUARES:]
        held = [[self._known[patch] for patch in self._patches[name]] for name in squares]
        every = prospects(((one, one.whole) for patches in held for one in patches), timing)
        gains = np.maximum(self.policy.worth(every, rate, paying=True), 0.0)
        of = np.repeat(np.arange(len(squares)), [len(patches) for patches in held])
        worth = np.bincount(of, gains, len(squares)).tolist()
        return [(self._atlas[name], each) for name, each in zip(squares, worth, strict=True)]

    def _prospects(self, patches: Sequence[Open], timing: Timing) -> Prospects:
        """What is in play of patches; the same again where that was asked for last."""
        asked = [*patches]
        if self._offered is None or self._offered[:2] != (asked, timing):
            pairs = ((self._known[one.patch.name], one) for one in asked)
            self._offered = (asked, timing, prospects(pairs, timing))
        return self._offered[2]

    def _square(self, patch: str) -> Square:
        """The square of a patch, as the atlas has it if there is one."""
        name = self._known[patch].patch.square
        return self._atlas.get(name) or Square(name, 0.0, 0.0)

    def _way(self, patches: Sequence[Open], left: Left, here: Square | None) -> Switching:
        """The switches that lie before patches."""
        return Switching([self._square(one.patch.name) for one in patches], here, left.timing)

    @contextmanager
    def _facing(
        self, left: Left, *, at: str = "", inside: bool = False, anew: bool = True
    ) -> Iterator[None]:
        """Let the policy know how things stand, for as long as it is asked."""
        lag = self.policy.lag
        if left.blindly:
            self.policy.lag = max((len(one.rest) for one in left.patches), default=lag)
        try:
            with self.policy.keeping():
                if not anew or not isfinite(left.seconds):
                    yield
                    return
                # Who decides about a patch reckons as if there: the way is its square's matter.
                here = self._square(at) if at else left.at
                way = left.timing.switch(left.at, here) if here is not None else 0.0
                seconds = max(left.seconds - way, 0.0)
                rate = self._price(left, here, seconds, at if inside else "")
                with self.policy.remaining(seconds=seconds, rate=rate):
                    yield
        finally:
            self.policy.lag = lag

    def _price(self, left: Left, here: Square | None, seconds: float, worked: str) -> float:
        """What a second is worth from here on, beside a patch that is being worked on.

        A patch is looked at and then decided about in the same situation: it is priced once.
        """
        patches = [one for one in left.patches if one.patch.name != worked]
        way = self._way(patches, left, here)
        at = here if way.setups else None
        asked = (seconds, left.timing, left.squares, left.blindly, patches, at, left.elsewhere)
        if self._priced is None or self._priced[0] != asked:
            with self.policy.remaining(
                seconds=seconds,
                rounds=len(left.squares) * self.squares.patches(left.timing.patches),
                again=self._prospects(patches, left.timing),
                setups=way.setups,
            ):
                self._priced = (asked, max(self.policy.rate, left.elsewhere))
        return self._priced[1]
