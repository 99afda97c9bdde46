"""Collecting: drive a microscope as the engine says, until its time is over."""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from coaf.bandit.arrays import number
from coaf.bandit.policies.explore import check_share
from coaf.cryoem.microscope import Microscope, NotExposedError, Rehearsal, Survey, whole
from coaf.cryoem.pilot import Pilot
from coaf.cryoem.pilots.catalogue import check_pilot_name, clairvoyant, pilot_for, rivals
from coaf.cryoem.pilots.exploring import Exploring
from coaf.cryoem.reward import GoodBelow, Reward
from coaf.cryoem.session import events as ev
from coaf.cryoem.session.engine import Engine
from coaf.cryoem.session.instructions import Instruction
from coaf.cryoem.session.scribe import OnRow, Scribe
from coaf.cryoem.session.session import Session

GOOD = GoodBelow(3.8)
EXPLORE = 0.02
# What a microscope may raise when something does not work: the session goes on.
TROUBLE = (OSError, ValueError, RuntimeError)


def collect(
    microscope: Microscope,
    policy: str | Pilot = "coaf",
    *,
    hours: float = 8.0,
    reward: Reward = GOOD,
    seed: int = 0,
    explore: float = EXPLORE,
    watch: OnRow | None = None,
) -> Session:
    """Collect for some hours.

    Scores are told as they arrive. Nothing is begun that is expected to end too late. Once no
    square is left to open, patches with holes left can be returned to. A pilot that wants nothing
    while squares are left gets the next one opened: an idle microscope collects nothing. What fails
    is an event like others, and the session goes on.

    Parameters
    ----------
    microscope
        What to drive.
    policy
        The name of a pilot (`pilots.catalogue.PILOTS`), or any pilot.
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
    name = policy if isinstance(policy, str) else type(policy).__name__
    settings = ev.Settings(
        pilot=name,
        reward=str(reward),
        hours=number("hours", hours, above=0.0),
        seed=seed,
        explore=check_share("explore", explore),
        columns=microscope.feature_names,
        timing=microscope.timing,
    )
    make = _maker(policy, microscope, settings, reward)
    engine = Engine(make=make, rewards=lambda text: reward)
    session = Session(name, str(reward), float(hours), engine=engine)
    driver = Driver(microscope, engine, Scribe(engine, session, watch))
    driver.start(settings)
    driver.run()
    if isinstance(microscope, Rehearsal):
        session.truth = microscope.worth(reward)
        others = [other for other in rivals(microscope.feature_names) if other != name]
        session.others = partial(beside, microscope, others, hours=hours, reward=reward)
    return session


def beside(
    microscope: Rehearsal,
    policies: Sequence[str],
    *,
    hours: float,
    reward: Reward = GOOD,
    seed: int = 0,
    watch: OnRow | None = None,
) -> list[Session]:
    """A session of each pilot on the same grid, from the start; these do not explore."""
    same: dict[str, Any] = {"hours": hours, "reward": reward, "seed": seed, "watch": watch}
    return [collect(microscope.again(), name, explore=0.0, **same) for name in policies]


def _maker(
    policy: str | Pilot, microscope: Microscope, settings: ev.Settings, reward: Reward
) -> Callable[[ev.Settings], Pilot]:
    """What makes the pilot, and makes it again as it was in the beginning."""
    if isinstance(policy, str) and policy != "clairvoyant":
        check_pilot_name(policy)
        return lambda now: pilot_for(now, reward)
    if isinstance(policy, str):
        if not isinstance(microscope, Rehearsal):
            raise ValueError(
                f"the clairvoyant goes by the truth, which a {type(microscope).__name__} does not "
                "know; a Rehearsal does, as a Simulator is"
            )
        policy = clairvoyant(microscope, hours=settings.hours or 0.0, reward=reward)
    pilots = _first_and_copies(policy)

    def make(now: ev.Settings) -> Pilot:
        pilot = next(pilots)
        return Exploring(pilot, now.explore, now.seed) if now.explore else pilot

    return make


def _first_and_copies(pilot: Pilot) -> Iterator[Pilot]:
    """The pilot itself, which its owner may want to look at, then copies of how it began."""
    fresh = deepcopy(pilot)
    yield pilot
    while True:
        yield deepcopy(fresh)


class Driver:
    """Hands and eyes of an engine: does what it says on a microscope, and tells what happened."""

    def __init__(
        self, microscope: Microscope, engine: Engine, scribe: Scribe | None = None
    ) -> None:
        self.microscope, self.engine, self.scribe = microscope, engine, scribe
        self._start = microscope.clock

    @property
    def time(self) -> float:
        """Seconds since the session began."""
        return max(self.microscope.clock - self._start, 0.0)

    @property
    def over(self) -> bool:
        """Whether the session has ended."""
        return self.engine.ended

    def start(self, settings: ev.Settings) -> None:
        """The first event."""
        self._tell(ev.Started, settings=settings)

    def run(self, ahead: Sequence[Survey] = ()) -> None:
        """Show the atlas, and what is known ahead; work to the end, after which nothing waits."""
        self._tell(ev.AtlasSeen, squares=tuple(self.microscope.squares()))
        for survey in ahead:
            self._tell(ev.HolesAdded, survey=survey)
        while not self.over:
            self.step()

    def offer(self, survey: Survey) -> None:
        """Show a patch that can be had now or never."""
        self._tell(ev.PatchOffered, survey=survey)

    def step(self) -> Instruction:
        """Tell what has come in, ask what to do, and do it."""
        self._hear()
        instruction = self.engine.next(self.time)
        if self.scribe is not None:
            self.scribe.told(self.engine.events[-1])
        if instruction.do == "stop":
            self._tell(ev.Ended, why=instruction.why)
        else:
            self._do(instruction)
        return instruction

    def _tell(self, kind: type[ev.Event], **known: Any) -> None:
        event = kind(id=f"driver {len(self.engine.events)}", time=self.time, **known)
        self.engine.tell(event)
        if self.scribe is not None:
            self.scribe.told(event)

    def _hear(self) -> None:
        for score in self.microscope.collect():
            values = {"ctf": score.ctf, "particles": score.particles, **score.more}
            try:
                self._tell(ev.ScoreCame, hole=score.hole, shot=score.shot, values=values)
            except ValueError as error:  # of a hole that nobody knows
                if self.scribe is not None:
                    self.scribe.write("refused", self.time, hole=score.hole, why=str(error))

    def _do(self, instruction: Instruction) -> None:
        name, microscope = str(instruction.name), self.microscope
        match instruction.do:
            case "open square":
                self._open(name)
            case "go":
                patch = self.engine.book.patch(name).patch
                seconds = self._try("move", name, lambda: microscope.move(patch))
                if seconds is not None:
                    self._tell(ev.Moved, patch=name, seconds=seconds)
            case "expose":
                hole = self.engine.book.the_hole(name)
                seconds = self._try("exposure", name, lambda: microscope.expose(hole))
                if seconds is not None:
                    self._tell(ev.Exposed, hole=name, seconds=seconds)
            case "wait":
                microscope.wait(instruction.seconds)

    def _open(self, name: str) -> None:
        found: list[Survey] = []
        seconds = self._try(
            "square", name, lambda: found.append(whole(self.microscope.survey(name)))
        )
        for survey in found:
            shown = replace(survey, image=None)
            try:
                self._tell(ev.SquareOpened, survey=shown, seconds=seconds or 0.0)
            except ValueError as error:  # it contradicts what is known
                self._tell(ev.Failed, what="square", name=name, why=str(error))
            else:
                if self.scribe is not None:
                    self.scribe.session.surveys[name] = survey

    def _try(
        self, what: Literal["square", "move", "exposure"], name: str, do: Callable[[], object]
    ) -> float | None:
        """The seconds it took without maintenance, which is told by itself; None if it failed."""
        before, kept, trouble = self.microscope.clock, self.microscope.upkeep, None
        try:
            do()
        except TROUBLE as error:
            trouble = error
        upkeep = self.microscope.upkeep - kept
        if upkeep > 0.0:
            self._tell(ev.Upkeep, seconds=upkeep)
        seconds = max(self.microscope.clock - before - upkeep, 0.0)
        if trouble is None:
            return seconds
        beam = "off" if isinstance(trouble, NotExposedError) else "unknown"
        why = str(trouble) or type(trouble).__name__
        self._tell(ev.Failed, what=what, name=name, beam=beam, why=why, seconds=seconds)
        return None
