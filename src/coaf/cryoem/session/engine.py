"""A session as a state machine: events in, instructions out. It has no clock, and no hands."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

from coaf.bandit.state import entry, seal, unseal
from coaf.cryoem.pilot import Left, Pilot
from coaf.cryoem.pilots.catalogue import pilot_for
from coaf.cryoem.reward import RewardFrom, parse_reward
from coaf.cryoem.session import events as ev
from coaf.cryoem.session.book import Book
from coaf.cryoem.session.choosing import choose
from coaf.cryoem.session.guard import Guard
from coaf.cryoem.session.instructions import Instruction, Plan
from coaf.cryoem.session.learning import Learning, Note
from coaf.cryoem.session.situation import Make, Situation
from coaf.cryoem.timing import Timing


class Engine:
    """All that a session knows is the fold of its events; what it would do follows from that.

    `tell` takes what happened, `next` says what to do, one thing at a time, and `plan` a whole list
    for clients that work through one. What is instructed is an event, too: an engine that is told
    the events of another is that other, and gives the same next instruction.

    A hole whose exposure may have happened is never instructed again until that is settled: when
    another instruction is asked for before an exposure was reported, its hole is "unknown". One
    that failed before the beam was on is tried again, `Settings.tries` times in all, and then left.

    Parameters
    ----------
    make
        Makes the pilot that settings name; `pilots.catalogue.pilot_for` unless given.
    rewards
        Makes a reward from its text; `parse_reward` unless given.
    """

    def __init__(self, *, make: Make | None = None, rewards: RewardFrom | None = None) -> None:
        self.situation = Situation(make or pilot_for, rewards or parse_reward)
        self._known: dict[str, ev.Event] = {}  # by id

    # Events in

    def tell(self, event: ev.Event) -> None:
        """Take in what happened. Told again it changes nothing; an error leaves all as it was."""
        if event.id in self._known:
            if ev.to_json(self._known[event.id]) != ev.to_json(event):
                raise ValueError(f"event {event.id!r} was told before, and was another")
            return
        ev.check_readable(event)
        self._take(event)

    def _take(self, event: ev.Event) -> None:
        self.situation.check(event)
        try:
            self.situation.fold(event)
        except Exception:  # a pilot's, half-way: all is as the events say that were taken in
            self.situation = self._folded(self.events)
            raise
        self._known[event.id] = event

    def _folded(self, events: Iterable[ev.Event]) -> Situation:
        situation = Situation(self.situation.make, self.situation.rewards)
        for event in events:
            situation.fold(event)
        return situation

    # Instructions out

    def next(self, time: float) -> Instruction:
        """What to do now. It is an event like others, and is told already."""
        with self._at(time):
            self.learning.passed(self.now)
            self.learning.refresh()
            instruction = choose(self.situation)
        self.tell(ev.Instructed(id=self._id(), time=self.now, instruction=instruction))
        return instruction

    def plan(self, time: float, scope: str | None = None, *, advice: bool = False) -> Plan:
        """All holes to take of a patch, a square or all that is open, before any score comes.

        They are in the order of taking. A plan takes the place of those whose holes it could have
        had; while the session is paused, and when it is over, it is empty and takes nobody's. What
        is told, planned holes included, is an event.

        Parameters
        ----------
        time
            Seconds since the session began.
        scope
            A patch or a square; None for all that is open.
        advice
            Whether it is for someone who takes no instructions, a person or another program: its
            holes are "advised" where others are "planned", and the rest is the same.
        """
        patches = self._scope(scope)
        with self._at(time):
            over = self.paused or self.ended
            patches = set() if over else {name for name in patches if self.book.reachable(name)}
            old = [p.id for p in self.plans if {self.book.hole(h).patch for h in p.holes} & patches]
            self.learning.refresh()
            ahead = [name for name in self.book.patches if name in patches]
            steps = tuple(_pretended(self.situation.trial(ahead, without=old)))
        for name in old:
            self.tell(ev.PlanSuperseded(id=self._id(), time=self.now, plan=name))
        name = f"plan {len(self.events)}"
        steps = tuple(replace(step, id=f"{name}, step {k}") for k, step in enumerate(steps, 1))
        plan = Plan(name, scope, steps, advice)
        self.tell(ev.PlanGiven(id=self._id(), time=self.now, plan=plan))
        return plan

    @contextmanager
    def _at(self, time: float) -> Iterator[None]:
        """It is so late. If what is asked then fails, what came of that is to be found again."""
        self.situation.advance(time)
        try:
            yield
        except Exception:
            self.tell(ev.TimePassed(id=self._id(), time=self.now))
            raise

    def _scope(self, scope: str | None) -> set[str]:
        if scope is None:
            return set(self.book.patches)
        if scope in self.book.patches:
            return {scope}
        return set(self.book.square(scope).patches)

    def _id(self) -> str:
        name = f"engine {len(self.events)}"
        while name in self._known:  # others may name events so, too
            name += "+"
        return name

    # What is known

    @property
    def events(self) -> Sequence[ev.Event]:
        """All that was told, in order."""
        return self.situation.events

    @property
    def settings(self) -> ev.Settings | None:
        """What the session is to do; None before it has started."""
        return self.situation.settings if self.situation.started else None

    @property
    def book(self) -> Book:
        """Squares, patches and holes, and how things stand with them."""
        return self.situation.book

    @property
    def now(self) -> float:
        """Seconds since the session began."""
        return self.situation.now

    @property
    def ended(self) -> bool:
        """Whether the session is over."""
        return self.situation.ended

    @property
    def paused(self) -> bool:
        """Whether someone has paused it."""
        return self.situation.paused

    @property
    def grid(self) -> str | None:
        """The grid that is loaded."""
        return self.book.grid

    @property
    def at(self) -> str | None:
        """The patch that the stage is at, while it is worked on."""
        return self.situation.at

    @property
    def last(self) -> Instruction | None:
        """What was instructed last."""
        return self.situation.last

    @property
    def plans(self) -> tuple[Plan, ...]:
        """Plans that are worked on."""
        return tuple(plan for plan, _ in self.situation.plans.values())

    @property
    def timing(self) -> Timing:
        """What things take, as far as is known."""
        return self.situation.timing

    @property
    def learning(self) -> Learning:
        """What pilot and guard were taught."""
        return self.situation.learning

    @property
    def pilot(self) -> Pilot:
        """Who decides."""
        return self.learning.pilot

    @property
    def guard(self) -> Guard:
        """Who watches the instrument."""
        return self.learning.guard

    @property
    def notes(self) -> Sequence[Note]:
        """What was made of what was told, where it was not simply taken in."""
        return self.learning.notes

    def left(self) -> Left:
        """What is left of the session."""
        return self.situation.left()

    # State

    def snapshot(self) -> dict[str, Any]:
        """What makes it quick to be here again, beside the events: for `replay`."""
        known = self.learning.snapshot() if self.situation.started else {}
        return {"events": len(self.events), **known}

    @classmethod
    def replay(
        cls, told: Iterable[ev.Event], snapshot: Mapping[str, Any] | None = None, **parts: Any
    ) -> Self:
        """The engine that was told these events; quicker with a snapshot that was taken of it.

        `parts` are the parameters of the class.
        """
        engine = cls(**parts)
        # Where a pilot has no state of its own, telling it everything is the quick way.
        quick = snapshot is not None and (snapshot.get("pilot") or snapshot.get("stale"))
        until = entry(snapshot, "events") if snapshot is not None and quick else 0
        for event in told:
            if event.id not in engine._known:  # what was told before can be read
                engine._take(event)
            if len(engine.events) == 1 and until:
                engine.learning.deaf = True
            if len(engine.events) == until and snapshot is not None:
                engine.learning.restore(snapshot)
        if len(engine.events) < until:
            raise ValueError(
                f"the snapshot is of {until} events, and there are {len(engine.events)}"
            )
        return engine

    def state(self) -> dict[str, Any]:
        """Everything, as JSON."""
        told = [ev.to_json(event) for event in self.events]
        return seal("session", {"events": told, "snapshot": self.snapshot()})

    @classmethod
    def restore(cls, state: Mapping[str, Any] | str, **parts: Any) -> Self:
        """The engine that `state` was taken from."""
        saved = unseal("session", state)
        told = [ev.from_json(event) for event in entry(saved, "events")]
        return cls.replay(told, entry(saved, "snapshot"), **parts)


def _pretended(trial: Situation) -> Iterator[Instruction]:
    """What would be instructed until all patches before it were looked at."""

    def tell(kind: type[ev.Event], seconds: float = 0.0, **known: Any) -> None:
        trial.fold(kind(id=f"trial {len(trial.events)}", time=trial.now + seconds, **known))

    while trial.ahead() or trial.at is not None:
        step = choose(trial)
        if step.do not in ("go", "expose", "leave"):
            return
        yield step
        tell(ev.Instructed, instruction=step)
        if step.do == "go":
            tell(ev.Moved, trial.enter(str(step.name)), patch=step.name)
        elif step.do == "expose":
            shots = trial.book.the_hole(str(step.name)).shots
            tell(ev.Exposed, trial.timing.hole(shots), hole=step.name)
