"""Collecting: drive a microscope as the engine says, until its time is over."""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from time import sleep
from typing import Any, Generic, TypeVar

from coaf.bandit.arrays import number
from coaf.bandit.policies.explore import check_share
from coaf.bandit.shown import shown
from coaf.cryoem.microscope import Autoloader, Microscope, NotExposedError, Rehearsal, Survey, whole
from coaf.cryoem.pilot import Pilot
from coaf.cryoem.pilots.catalogue import (
    GRID_RULES,
    check_pilot_name,
    clairvoyant,
    pilot_for,
    rivals,
)
from coaf.cryoem.pilots.exploring import Exploring
from coaf.cryoem.pilots.knowledge import Knowledge
from coaf.cryoem.reward import GoodBelow, Reward, RewardFrom, known_as, parse_reward
from coaf.cryoem.session import events as ev
from coaf.cryoem.session.engine import Engine
from coaf.cryoem.session.instructions import Instruction
from coaf.cryoem.session.scribe import OnRow, Scribe
from coaf.cryoem.session.session import Session

GOOD = GoodBelow(3.8)
EXPLORE = 0.02

T = TypeVar("T")


def collect(
    microscope: Microscope,
    policy: str | Pilot = "coaf",
    *,
    hours: float = 8.0,
    reward: Reward | str = GOOD,
    seed: int = 0,
    explore: float = EXPLORE,
    knowledge: Knowledge | None = None,
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
        What a score is worth, also as the command line has it: "particles/100".
    seed
        Of whatever the pilot draws.
    explore
        The share of what would be skipped that is taken anyway (`Exploring`).
    knowledge
        What an earlier session taught (`Session.knowledge`), for COAF to begin with.
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
    reward = parse_reward(reward) if isinstance(reward, str) else reward
    settings = ev.Settings(
        pilot=name,
        reward=str(reward),
        hours=number("hours", hours, above=0.0),
        seed=seed,
        explore=check_share("explore", explore),
        columns=microscope.feature_names,
        timing=microscope.timing,
        grids=microscope.grids if isinstance(microscope, Autoloader) else (),
        knowledge=knowledge,
    )
    make, rewards = _makers(policy, microscope, settings, reward)
    engine = Engine(make=make, rewards=rewards)
    session = Session(name, str(reward), float(hours), engine=engine)
    driver = Driver(microscope, engine, Scribe(engine, session, watch))
    driver.start(settings)
    driver.run()
    if isinstance(microscope, Rehearsal):
        session.truth = microscope.worth(reward)
        cassette = isinstance(microscope, Autoloader)
        known = ("coaf", *GRID_RULES) if cassette else rivals(microscope.feature_names)
        others = [other for other in known if other != name]
        session.others = partial(beside, microscope, others, hours=hours, reward=reward)
    return session


def beside(
    microscope: Rehearsal,
    pilots: Sequence[str],
    *,
    hours: float,
    reward: Reward = GOOD,
    seed: int = 0,
    watch: OnRow | None = None,
) -> list[Session]:
    """A session of each pilot on the same grid, from the start; these do not explore."""
    same: dict[str, Any] = {"hours": hours, "reward": reward, "seed": seed, "watch": watch}
    return [collect(microscope.again(), name, explore=0.0, **same) for name in pilots]


def _makers(
    pilot: str | Pilot, microscope: Microscope, settings: ev.Settings, reward: Reward
) -> tuple[Callable[[ev.Settings], Pilot], RewardFrom]:
    """What makes the pilot, and makes it again as it was in the beginning; and what is wanted."""
    if isinstance(pilot, str) and pilot != "clairvoyant":
        check_pilot_name(pilot)
        rewards = known_as(reward)
        return partial(pilot_for, rewards=rewards), rewards
    if isinstance(pilot, str):
        if isinstance(microscope, Autoloader):
            raise ValueError("the clairvoyant plans for one grid, not for a cassette")
        if not isinstance(microscope, Rehearsal):
            raise ValueError(
                f"the clairvoyant goes by the truth, which {shown(microscope)} does not know; "
                "a Rehearsal does, as a Simulator is"
            )
        pilot = clairvoyant(microscope, hours=settings.hours or 0.0, reward=reward)
    again = _first_and_copies(pilot)

    def make(now: ev.Settings) -> Pilot:
        flying = next(again)
        return Exploring(flying, now.explore, now.seed) if now.explore else flying

    def only(text: str) -> Reward:
        if text != str(reward):
            raise ValueError(f"this pilot was made for {reward}; another target needs another")
        return reward

    return make, only


def _first_and_copies(pilot: Pilot) -> Iterator[Pilot]:
    """The pilot itself, which its owner may want to look at, then copies of how it began."""
    fresh = deepcopy(pilot)
    yield pilot
    while True:
        yield deepcopy(fresh)


@dataclass(frozen=True, slots=True)
class _Done(Generic[T]):
    """What a call of the microscope gave, and how long it took without maintenance."""

    result: T
    seconds: float = 0.0


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
        if not isinstance(self.microscope, Autoloader):
            self._look()
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

    def _look(self) -> None:
        """Show the atlas, again if that failed."""
        seen = self._try("atlas", "", lambda: tuple(self.microscope.squares()))
        if seen is not None:
            self._tell_seen("atlas", "", ev.AtlasSeen, squares=seen.result, seconds=seen.seconds)

    def _hear(self) -> None:
        heard = self._try("scores", "", self.microscope.collect)
        for score in () if heard is None else heard.result:
            try:
                values = {"ctf": score.ctf, "particles": score.particles, **score.more}
                self._tell(ev.ScoreCame, hole=score.hole, shot=score.shot, values=values)
            except (AttributeError, TypeError, ValueError) as error:  # or of an unknown hole
                if self.scribe is not None:
                    hole = getattr(score, "hole", "?")
                    self.scribe.write("refused", self.time, hole=hole, why=str(error))

    def _do(self, instruction: Instruction) -> None:
        name, told, microscope = str(instruction.name), instruction.id, self.microscope
        match instruction.do:
            case "load grid":
                self._load(name)
            case "open square":
                self._open(name)
            case "go":
                patch = self.engine.book.patch(name).patch
                moved = self._try("move", name, lambda: microscope.move(patch), told=told)
                if moved is not None:
                    self._tell(ev.Moved, patch=name, seconds=moved.seconds, instruction=told)
            case "expose":
                hole = self.engine.book.the_hole(name)
                exposed = self._try("exposure", name, lambda: microscope.expose(hole), told=told)
                if exposed is not None:
                    self._tell(ev.Exposed, hole=name, seconds=exposed.seconds, instruction=told)
            case "wait":
                before = microscope.clock
                waited = self._try("wait", "", lambda: microscope.wait(instruction.seconds))
                if waited is None and microscope.clock <= before:
                    sleep(instruction.seconds)  # else all that fails would fail without a pause
                if self.engine.situation.unseen:
                    self._look()

    def _load(self, name: str) -> None:
        if not isinstance(self.microscope, Autoloader):
            raise TypeError(
                f"grid {name!r} is to be loaded, which {shown(self.microscope)} cannot do; "
                "an Autoloader can"
            )
        loader = self.microscope
        loaded = self._try("grid", name, lambda: loader.load(name))
        if loaded is not None:
            self._tell(ev.GridLoaded, grid=name, seconds=loaded.seconds)
            self._look()

    def _open(self, name: str) -> None:
        found = self._try("square", name, lambda: whole(self.microscope.survey(name)))
        if found is None:
            return
        shown, seconds = replace(found.result, image=None), found.seconds
        fine = self._tell_seen("square", name, ev.SquareOpened, survey=shown, seconds=seconds)
        if fine and self.scribe is not None:
            self.scribe.session.surveys[name] = found.result

    def _tell_seen(self, what: ev.Attempt, name: str, kind: type[ev.Event], **known: Any) -> bool:
        """What was seen, or that it cannot be: it may contradict what is known."""
        try:
            self._tell(kind, **known)
        except ValueError as error:
            self._tell(ev.Failed, what=what, name=name, why=str(error))
            return False
        return True

    def _try(
        self, what: ev.Attempt, name: str, do: Callable[[], T], *, told: str | None = None
    ) -> "_Done[T] | None":
        """Every call of the microscope: what it gave, or None and an event that says why not.

        Whatever it raises: the session of a whole night must not end by one call. `told` is the id
        of the instruction.
        """
        before, kept = self.microscope.clock, dict(self.microscope.upkeep)
        result, trouble = None, None
        try:
            result = _Done(do())
        except Exception as error:
            trouble = error
        seconds = self.microscope.clock - before
        for what_for, so_far in self.microscope.upkeep.items():
            if (more := so_far - kept.get(what_for, 0.0)) > 0.0:
                self._tell(ev.Upkeep, what=what_for, seconds=more)
                seconds -= more
        seconds = max(seconds, 0.0)
        if result is not None:
            return replace(result, seconds=seconds)
        beam = "off" if isinstance(trouble, NotExposedError) else "unknown"
        why = str(trouble) or type(trouble).__name__
        self._tell(
            ev.Failed, what=what, name=name, beam=beam, why=why, seconds=seconds, instruction=told
        )
        return None
