"""Collecting: drive a microscope with a pilot until its time is over."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from coaf.bandit.arrays import number
from coaf.cryoem.grid import Hole, Patch, Square
from coaf.cryoem.microscope import Microscope, Rehearsal, Survey, whole
from coaf.cryoem.pilot import Choice, Left, Pilot
from coaf.cryoem.pilots.catalogue import make_pilot, rivals
from coaf.cryoem.pilots.exploring import Exploring
from coaf.cryoem.reward import GoodBelow, Reward
from coaf.cryoem.session.inbox import Inbox
from coaf.cryoem.session.session import Row, Session, row_of
from coaf.cryoem.timing import HOUR, LearnedTiming, Timing

GOOD = GoodBelow(3.8)
EXPLORE = 0.02
GRACE = HOUR  # how long scores are waited for after the end, for the tally


def collect(
    microscope: Microscope,
    policy: str | Pilot = "coaf",
    *,
    hours: float = 8.0,
    reward: Reward = GOOD,
    seed: int = 0,
    explore: float = EXPLORE,
    watch: Callable[[Row], None] | None = None,
) -> Session:
    """Collect for some hours.

    Before each decision the pilot is told the scores that arrived. Nothing is begun that is
    expected to end too late. Once no square is left to open, patches with holes left can be
    returned to. A pilot that wants nothing while squares are left gets the next one opened: an idle
    microscope collects nothing.

    Parameters
    ----------
    microscope
        What to drive. One whose grid can be played again (`Rehearsal`) also tells what was
        collected in truth, and what the other policies make of it.
    policy
        A name (`pilots.POLICIES`), or any pilot.
    hours
        The time there is.
    reward
        What a score is worth.
    seed
        Of whatever the pilot draws.
    explore
        The share of what would be skipped that is taken anyway (`Exploring`).
    watch
        Called with each row as it is written.

    Examples
    --------
    >>> from coaf.cryoem.simulator.simulator import Simulator
    >>> session = collect(Simulator(seed=3, squares=4, pixels=False), "take-all", hours=0.5)
    >>> session.summary()["hours"] <= 0.5
    True
    """
    budget = number("hours", hours, above=0.0) * HOUR
    pilot: Pilot
    if isinstance(policy, str):
        name, pilot = policy, make_pilot(policy, microscope, hours=hours, reward=reward, seed=seed)
    else:
        name, pilot = type(policy).__name__, policy
    if explore:
        pilot = Exploring(pilot, explore, seed)
    session = Session(name, str(reward), float(hours))
    drive = _Drive(microscope, pilot, reward, session, microscope.clock + budget, watch)
    drive.run()
    if isinstance(microscope, Rehearsal):
        session.truth = microscope.worth(reward)
        others = [other for other in rivals(microscope) if other != name]
        session.others = partial(beside, microscope, others, hours=hours, reward=reward)
    return session


def beside(
    microscope: Rehearsal,
    policies: Sequence[str],
    *,
    hours: float,
    reward: Reward = GOOD,
    seed: int = 0,
    watch: Callable[[Row], None] | None = None,
) -> list[Session]:
    """A session of each policy on the same grid, from the start; these do not explore."""
    same: dict[str, Any] = {"hours": hours, "reward": reward, "seed": seed, "watch": watch}
    return [collect(microscope.again(), name, explore=0.0, **same) for name in policies]


class _Drive:
    """One session as it runs."""

    def __init__(
        self,
        microscope: Microscope,
        pilot: Pilot,
        reward: Reward,
        session: Session,
        end: float,
        watch: Callable[[Row], None] | None,
    ) -> None:
        self.microscope, self.pilot, self.session, self.end = microscope, pilot, session, end
        self.watch = watch
        self.start = microscope.clock
        self.inbox = Inbox(microscope, pilot, reward, self.record)
        self.times = LearnedTiming(microscope.timing)
        self.unopened = {square.name: square for square in microscope.squares()}
        self.exposed: set[str] = set()
        self.passed: set[str] = set()  # patches looked at in this pass of returning
        self.entered = False  # whether any was entered in this pass
        self._timing: Timing = self.times.timing

    def run(self) -> None:
        while self._step():
            pass
        self.record("end", why=f"{self.left().seconds:.0f} s were left")
        self.session.alarms = list(self.inbox.guard.alarms)
        waited = 0.0
        while self.inbox.due and waited < GRACE:
            self.microscope.wait(60.0)
            waited += 60.0
            self.inbox.tally()

    def left(self) -> Left:
        return Left(self.end - self.microscope.clock, len(self.unopened))

    def _step(self) -> bool:
        """Work through a square, or return to a patch; False when there is nothing to do."""
        self.inbox.deliver()
        timing = self._timing
        if self.left().seconds < timing.enter + timing.hole():
            return False
        fits = self.left().seconds >= timing.square + timing.enter + timing.hole()
        squares = list(self.unopened.values()) if fits else []
        choice = self.pilot.square(squares, self.left())
        if choice.name is None:
            if self._return():
                return True
            if not squares:
                return False
            # A microscope that stands idle collects nothing, whatever a second is thought worth.
            why = "Nothing seemed worth it, and time is left."
            choice = Choice(squares[0].name, why, rate=choice.rate)
        if choice.name not in {square.name for square in squares}:
            raise ValueError(f"the pilot chose square {choice.name!r}, which it was not offered")
        self._work(self._open(self.unopened.pop(choice.name), choice))
        return True

    def _open(self, square: Square, choice: Choice) -> Survey:
        before, upkeep = self.microscope.clock, self.microscope.upkeep
        try:
            survey = whole(self.microscope.survey(square.name))
        except (OSError, ValueError) as error:  # no image, or one that is none: the rest goes on
            survey = Survey(square.name, (), {}, excluded={f"not surveyed: {error}": 1})
        _, seconds = self._took(before, upkeep, square=square.name)
        self._learn(("stage", "height", "image"), seconds)
        self.session.surveys[square.name] = survey
        empty = "" if survey.patches else " No patch was found in it."
        empty += "".join(f" {reason}: {count}." for reason, count in survey.excluded.items())
        self.record("open", choice, square=square.name, seconds=seconds, why=choice.why + empty)
        self.pilot.opened(survey, seconds)
        for patch in survey.patches:
            self._note_estimates(patch, patch.holes)
        return survey

    def _work(self, survey: Survey) -> None:
        waiting = {patch.name: patch for patch in survey.patches}
        while waiting and self._time_for_one():
            self.inbox.deliver()
            choice = self.pilot.patch(list(waiting.values()), self.left())
            if choice.name is None:
                self.record("pass", choice, square=survey.square)
                return
            self._visit(_pop(waiting, choice.name))

    def _return(self) -> bool:
        """Go back to a patch with holes left: each once, and again if one was entered."""
        rest = [
            patch
            for survey in self.session.surveys.values()
            for patch in survey.patches
            if not all(hole.name in self.exposed for hole in patch.holes)
        ]
        offered = {patch.name: patch for patch in rest if patch.name not in self.passed}
        if not offered and self.entered:
            self.passed, self.entered = set(), False
            offered = {patch.name: patch for patch in rest}
        if not offered:
            return False
        choice = self.pilot.patch(list(offered.values()), self.left())
        if choice.name is None:
            again, self.passed, self.entered = self.entered, set(), False
            return again  # since what was entered in this pass more may be known of the rest
        patch = _pop(offered, choice.name)
        self.passed.add(patch.name)
        self.entered |= self._visit(patch)
        return True

    def _visit(self, patch: Patch) -> bool:
        """Take the holes of a patch that the pilot wants; whether it was entered."""
        rest = [i for i, hole in enumerate(patch.holes) if hole.name not in self.exposed]
        names = {patch.holes[i].name: i for i in rest}
        self._note_estimates(patch, [patch.holes[i] for i in rest])
        inside = False
        while rest:
            self.inbox.deliver()
            if not self._time_for_one(inside=inside, shots=max(patch.holes[i].shots for i in rest)):
                break
            choice = self.pilot.hole(patch, tuple(rest), self.left())
            if choice.name is None:
                event = "leave" if inside else "skip"
                self.record(event, choice, square=patch.square, patch=patch.name)
                break
            if names.get(choice.name) not in rest:
                raise ValueError(f"the pilot chose hole {choice.name!r}, which it was not offered")
            rest.remove(names[choice.name])
            self._expose(patch, patch.holes[names[choice.name]], choice, first=not inside)
            inside = True
        self.pilot.left(patch)
        return inside

    def _note_estimates(self, patch: Patch, holes: Sequence[Hole]) -> None:
        """Keep what is expected of holes now, for people to see."""
        told = np.asarray(self.pilot.estimates(patch), dtype=np.float64).tolist()
        by_name = {hole.name: one for hole, one in zip(patch.holes, told, strict=True)}
        self.session.estimates |= {hole.name: by_name[hole.name] for hole in holes}

    def _expose(self, patch: Patch, hole: Hole, choice: Choice, *, first: bool) -> None:
        before, upkeep = self.microscope.clock, self.microscope.upkeep
        moved = 0.0
        if first:
            self.microscope.move(patch)
            _, moved = self._took(before, upkeep, square=patch.square)
            self._learn(("move", "focus"), moved)
        seconds = self.microscope.expose(hole)
        self._learn(("expose",), seconds - (hole.shots - 1) * self._timing.shot)
        self.exposed.add(hole.name)
        self.session.shots[hole.name] = hole.shots
        self.record(
            "expose",
            choice,
            square=patch.square,
            patch=patch.name,
            hole=hole.name,
            seconds=moved + seconds,
            propensity=choice.propensity,
        )
        self.pilot.exposed(hole.name, moved + seconds)
        # Also what was expected before the patch told anything of itself, or a fault would hide
        # behind what it made the pilot believe.
        entered = self.session.estimates.get(hole.name, choice.estimate)
        expected = float(np.fmax(entered, choice.estimate))
        self.inbox.expect(hole, patch=patch.name, estimate=expected)

    def _took(self, before: float, upkeep: float, *, square: str) -> tuple[float, float]:
        """Seconds since `before`, and those of them that were not maintenance."""
        took, kept = self.microscope.clock - before, self.microscope.upkeep - upkeep
        if kept > 0.0:
            self.record("upkeep", square=square, seconds=kept, why="maintenance was due")
        return took, took - kept

    def _learn(self, levels: tuple[str, ...], seconds: float) -> None:
        self.times.learn_together(levels, max(seconds, 0.0))
        self._timing = self.times.timing

    def _time_for_one(self, *, inside: bool = False, shots: int = 1) -> bool:
        needed = self._timing.hole(shots) + (0.0 if inside else self._timing.enter)
        return self.left().seconds >= needed

    def record(self, event: str, choice: Choice | None = None, **more: Any) -> None:
        """Write a row, and show it to who watches."""
        known: dict[str, Any] = {}
        if choice is not None:
            known = {"estimate": choice.estimate, "rate": choice.rate, "why": choice.why}
        row = row_of(self.microscope.clock - self.start, event, known | more)
        self.session.rows.append(row)
        if self.watch is not None:
            self.watch(row)


def _pop(offered: dict[str, Patch], name: str) -> Patch:
    if name not in offered:
        raise ValueError(f"the pilot chose patch {name!r}, which it was not offered")
    return offered.pop(name)
