"""A session as a state machine: events in, instructions out. It has no clock, and no hands."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import replace
from math import inf, isfinite, nan
from typing import Any, Self

from coaf.bandit.state import entry, seal, unseal
from coaf.cryoem.microscope import Survey, whole
from coaf.cryoem.pilot import Choice, Left, Open, Pilot
from coaf.cryoem.pilots.catalogue import pilot_for
from coaf.cryoem.reward import Reward, parse_reward
from coaf.cryoem.session import events as ev
from coaf.cryoem.session.book import Book, State
from coaf.cryoem.session.guard import Guard
from coaf.cryoem.session.instructions import Do, Instruction, Level, Plan
from coaf.cryoem.session.learning import Learning, Note
from coaf.cryoem.timing import HOUR, LearnedTiming, Timing

PAUSE = 60.0  # seconds to wait while nothing may be done
DOUBT = 3  # failures in a row after which a person is called, and tries are spaced
FAILING = f"{DOUBT} things in a row failed: look at the microscope."

Make = Callable[[ev.Settings], Pilot]


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

    def __init__(
        self, *, make: Make | None = None, rewards: Callable[[str], Reward] | None = None
    ) -> None:
        self.events: list[ev.Event] = []
        self.settings: ev.Settings | None = None
        self.book = Book()
        self.now = 0.0
        self.ended = self.paused = False
        self.grid: str | None = None
        self.at: str | None = None  # the patch that the stage is at, while it is worked on
        self.last: Instruction | None = None
        self._make, self._rewards = make or pilot_for, rewards or parse_reward
        self._known: dict[str, int] = {}  # events by id: which of them it is
        self._told: str | None = None  # a hole that was instructed, and not reported
        self._heading: Instruction | None = None  # to a patch
        self._offer: str | None = None  # a patch that can be had now or never
        self._waiting: list[str] = []  # patches of the square opened last, not looked at yet
        self._returning = False
        self._passed: set[str] = set()  # patches looked at in this pass of returning
        self._gained = False  # whether anything was exposed since it began
        self._failures = 0  # in a row
        self._called: set[str] = set()  # what a person was called for
        self._lost: set[tuple[str, int]] = set()
        self._tried_grids: set[str] = set()  # loaded, or not to be loaded
        self._plans: dict[str, tuple[Plan, float]] = {}  # that are worked on, and since when
        self._given: set[str] = set()  # all plans there were
        self._blindly = False

    # Events

    def tell(self, event: ev.Event) -> None:
        """Take in what happened. Told again it changes nothing; an error leaves all as it was."""
        if event.id in self._known:
            if ev.to_json(self.events[self._known[event.id]]) != ev.to_json(event):
                raise ValueError(f"event {event.id!r} was told before, and was another")
            return
        started = isinstance(event, ev.Started)
        if started == (self.settings is not None):
            raise ValueError(
                "the session has started already" if started else "the first event is Started"
            )
        if isinstance(event, ev.Started):
            self._start(event.settings)
        self._check(event)
        self._advance(event.time)
        self._fold(event)
        self._known[event.id] = len(self.events)
        self.events.append(event)

    def _check(self, event: ev.Event) -> None:
        """Refuse what cannot be, before anything changes."""
        book = self.book
        match event:
            case ev.AtlasSeen():
                book.check_atlas(event.squares)
            case ev.PatchOffered() if len(event.survey.patches) != 1:
                count = len(event.survey.patches)
                raise ValueError(f"{count} patches are offered; offer them singly")
            case ev.SquareOpened() | ev.HolesAdded() | ev.PatchOffered():
                book.check(event.survey, len(self._set.columns) or None)
            case ev.SquareRefused():
                book.square(event.square)
            case ev.HolesDeleted():
                for hole in event.holes:
                    book.hole(hole)
            case ev.Instructed():
                self._check_instruction(event.instruction)
            case ev.PlanGiven():
                for hole in event.plan.holes:
                    book.hole(hole)
            case ev.PlanSuperseded() | ev.PlanClosed() if event.plan not in self._given:
                raise ValueError(f"there was no plan {event.plan!r} in this session")
            case ev.Moved():
                book.patch(event.patch)
            case ev.Failed() if event.what != "grid":
                known = {"square": book.square, "move": book.patch, "exposure": book.hole}
                known[event.what](event.name)
            case ev.Reconciled():
                state = book.hole(event.hole).state
                if state not in ("unknown", "told", "planned"):
                    raise ValueError(f"hole {event.hole!r} is {state}: there is nothing to settle")
            case ev.Overridden():
                book.named(event.what, event.name)
            case (
                ev.HoleMoved()
                | ev.Exposed()
                | ev.ScoreCame()
                | ev.ScoreCorrected()
                | ev.ScoreLost()
            ):
                book.hole(event.hole)
            case ev.TargetChanged():
                self._rewards(event.reward)
            case ev.BudgetChanged():
                replace(self._set, hours=event.hours)

    def _check_instruction(self, told: Instruction) -> None:
        known = {"square": self.book.square, "patch": self.book.patch, "hole": self.book.hole}
        about = {"open square": "square", "go": "patch", "expose": "hole"}.get(told.do, told.level)
        if about in known:
            known[about](str(told.name))

    def _fold(self, event: ev.Event) -> None:  # a line for each kind of event
        match event:
            case ev.GridLoaded():
                self._loaded(event.grid)
            case ev.AtlasSeen():
                self.book.saw(event.squares)
                self.learning.saw(event.squares)
            case ev.SquareOpened():
                self._opened(event)
            case ev.SquareRefused():
                self.book.refuse(event.square, event.why or "refused")
            case ev.PatchOffered():
                self._offered(event)
            case ev.HolesAdded():
                self._changed(event.survey)
            case ev.HoleMoved():
                self.learning.opened(self.book.moved(event.hole, event.x, event.y), self.timing)
            case ev.HolesDeleted():
                for hole in event.holes:
                    self.book.bar(hole, "deleted")
            case ev.Instructed():
                self._instructed(event.instruction)
            case ev.PlanGiven():
                self._plan_given(event)
            case ev.PlanSuperseded() | ev.PlanClosed():
                self._close(event.plan)
            case ev.Moved():
                self._moved(event)
            case ev.Exposed():
                self._exposed(event.hole, event.time, event.seconds, event.shots)
            case ev.Failed():
                self._failed(event)
            case ev.Reconciled():
                self._reconciled(event)
            case ev.Overridden():
                self._overridden(event)
            case ev.ScoreCame() | ev.ScoreCorrected():
                self._scored(event)
            case ev.ScoreLost():
                self._lost.add((event.hole, event.shot))
            case ev.TargetChanged():
                self._aim(replace(self._set, reward=event.reward))
            case ev.BudgetChanged():
                self.settings = replace(self._set, hours=event.hours)
            case ev.FaultAcknowledged():
                self.learning.acknowledged(event.time)
            case ev.TimePassed():
                self.learning.passed(event.time)
            case ev.Paused() | ev.Resumed():
                self.paused = isinstance(event, ev.Paused)
            case ev.Ended():
                self.ended = True

    @property
    def _set(self) -> ev.Settings:
        if self.settings is None:
            raise ValueError("the session has not started: tell it Started first")
        return self.settings

    @property
    def timing(self) -> Timing:
        """What things take, as far as is known."""
        return self._times.timing

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

    def _start(self, settings: ev.Settings) -> None:
        reward = self._rewards(settings.reward)
        self.learning = Learning(lambda: self._make(settings), reward)
        self._times = LearnedTiming(settings.timing)
        self.settings = settings

    def _aim(self, settings: ev.Settings) -> None:
        reward = self._rewards(settings.reward)
        self.learning.aim(lambda: self._make(settings), reward)
        self.settings = settings

    def _loaded(self, grid: str) -> None:
        self._away()
        self.grid, self._offer, self._waiting = grid, None, []
        self._returning, self._passed = False, set()
        self.book.load(grid)
        self._tried_grids.add(grid)
        self._worked()

    def _opened(self, event: ev.SquareOpened) -> None:
        self._away()
        if event.seconds > 0.0:
            self._times.learn_together(("stage", "height", "image"), event.seconds)
        self._waiting = [patch.name for patch in self._changed(event.survey).patches]
        self._worked()

    def _away(self) -> None:
        """The stage is not where it was."""
        if self.at is not None:
            self._leave(self.at)
        self._heading = None

    def _worked(self) -> None:
        """Something went well."""
        self._failures = 0
        self._called.discard(FAILING)

    def _changed(self, given: Survey) -> Survey:
        """Take in a survey, and tell the pilot all of the patches that it changes."""
        survey = self.book.opened(whole(given))
        self.learning.opened(survey, self.timing)
        return survey

    def _offered(self, event: ev.PatchOffered) -> None:
        for patch in self._changed(event.survey).patches:
            self._offer = patch.name

    # What was told and done

    def _instructed(self, instruction: Instruction) -> None:
        # Silence is looked for when scores were heard, which is before something is asked for.
        self.learning.passed(self.now)
        self.learning.refresh()
        if self._told is not None:
            self.book.mark(self._told, "unknown")
        self._told, name = None, instruction.name
        match instruction.do:
            case "expose":
                assert name is not None
                known = self.book.hole(name)
                self.book.mark(name, "told")
                self._told = name
                if instruction.propensity < 1.0:
                    self.book.patch(known.patch).explored = True
            case "go":
                assert name is not None
                self._look(name)
                self._heading = instruction
            case "leave" if instruction.level == "patch":
                assert name is not None
                self._look(name)
                self._leave(name)
            case "leave":
                patches = self.book.patches
                self._waiting = [p for p in self._waiting if patches[p].patch.square != name]
            case "alarm":
                self._called.add(instruction.why)
        self.last = instruction

    def _look(self, patch: str) -> None:
        """A patch was looked at: one of a square just opened, or one of those left behind."""
        if patch in (self.at, self._offer):
            return
        wanted = self.book.forced()
        asked = wanted is not None and self.book.hole(wanted).patch == patch
        if patch in self._waiting or asked or patch in self.guard.check:
            self._waiting = [name for name in self._waiting if name != patch]
            self._returning = False
        else:
            if patch in self._passed or not self._returning:
                self._passed, self._gained = set(), False
            self._passed.add(patch)
            self._returning = True

    def _leave(self, patch: str) -> None:
        known = self.book.patch(patch)
        if patch == self._offer:
            self._offer, known.gone = None, True
        if self.at == patch:
            self.at = None
        self._heading = None
        self.learning.done(self.book.open(patch), self.left())

    def _moved(self, event: ev.Moved) -> None:
        known, heading = self.book.patch(event.patch), self._heading
        if self.at != event.patch:
            self._away()
        here = self.book.open(event.patch)
        told = heading is not None and heading.name == event.patch
        rate = heading.rate if told and heading is not None else None
        if event.seconds > 0.0:
            self._times.learn_together(("move", "focus"), event.seconds)
        self.learning.moved(here, self.left(), rate)
        self.at, self._heading = event.patch, None
        known.entered, known.open = True, None
        self._worked()

    def _exposed(self, name: str, time: float, seconds: float, shots: int | None) -> None:
        known = self.book.hole(name)
        if known.state == "taken":
            self._note("refused", "reported as exposed a second time", name, time)
            return
        count = self.book.the_hole(name).shots if shots is None else shots
        if seconds > 0.0:
            own = max(seconds - (count - 1) * self.timing.shot, 0.0)
            self._times.learn("expose", own)
        if self._told == name:
            self._told = None
        self.book.mark(name, "taken")
        self._gained = True
        self._worked()
        square = self.book.patch(known.patch).patch.square
        self.learning.exposed(name, time, square=square, patch=known.patch, shots=count)

    def _failed(self, event: ev.Failed) -> None:
        match event.what:
            case "exposure":
                known = self.book.hole(event.name)
                if known.state == "taken":
                    self._note("refused", "it failed, and was exposed", event.name, event.time)
                    return
                self._told = None if self._told == event.name else self._told
                known.failures += event.beam == "off"
                again: State = "free" if known.failures < self._set.tries else "failed"
                self.book.mark(event.name, again if event.beam == "off" else "unknown")
            case "move":
                patch = self.book.patch(event.name)
                patch.failures += 1
                patch.lost = patch.failures >= self._set.tries
                self._passed.discard(event.name)
                self._away()
            case "square":
                self.book.refuse(event.name, event.why or "it could not be opened")
                self._away()
            case "grid":
                self._tried_grids.add(event.name)
                self._away()
        self._failures += 1

    def _reconciled(self, event: ev.Reconciled) -> None:
        if event.taken:
            self._exposed(event.hole, event.time, 0.0, None)
        else:
            self._told = None if self._told == event.hole else self._told
            self.book.mark(event.hole, "free")

    def _overridden(self, event: ev.Overridden) -> None:
        if event.what == "square":
            square = self.book.square(event.name)
            square.refused = f"excluded by {event.who}" if event.do == "exclude" else ""
            square.forced = event.who if event.do == "force" and not square.opened else ""
        for name in self.book.named(event.what, event.name):
            if event.do == "exclude":
                self.book.bar(name, "excluded")
            else:
                self.book.free(name, forced=event.who if event.do == "force" else "")

    def _scored(self, event: ev.ScoreCame | ev.ScoreCorrected) -> None:
        hole, shot = event.hole, (event.hole, event.shot)
        if shot in self.learning.values:
            if self.learning.values[shot] == event.values:
                return
            if isinstance(event, ev.ScoreCorrected):
                self.learning.corrected(shot, event.values)
            else:
                why = f"a second score of shot {event.shot}; if it is right, correct the first"
                self._note("refused", why, hole, event.time)
            return
        maybe = self.book.hole(hole).state in ("unknown", "told", "planned")
        shots = self.book.the_hole(hole).shots if maybe else self.learning.shots(hole)
        if shots is None or not 0 <= event.shot < shots:
            why = f"a score of shot {event.shot}, which was not taken in this session"
            self._note("refused", why, hole, event.time)
            return
        if maybe:
            self._exposed(hole, event.time, 0.0, None)  # or there were no score
        self.learning.scored(shot, event.values, event.time)

    def _note(self, what: str, why: str, hole: str, time: float) -> None:
        self.learning.notes.append(Note(time, what, why, hole))

    # Plans

    def _plan_given(self, event: ev.PlanGiven) -> None:
        self.learning.refresh()
        for hole in event.plan.holes:
            if self.book.hole(hole).state == "free":
                self.book.mark(hole, "planned")
                self.book.hole(hole).plan = event.plan.id
        self._plans[event.plan.id] = (event.plan, event.time)
        self._given.add(event.plan.id)

    def _close(self, plan: str) -> None:
        self._plans.pop(plan, None)  # it may have expired
        for hole in self.book.planned(plan):
            self.book.mark(hole, "free")

    @property
    def plans(self) -> tuple[Plan, ...]:
        """Plans that are worked on."""
        return tuple(plan for plan, _ in self._plans.values())

    def plan(self, time: float, scope: str | None = None) -> Plan:
        """All holes to take of a patch, a square or all that is open, before any score comes.

        They are in the order of taking. A plan takes the place of those whose holes it could have
        had. What is told, planned holes included, is an event.

        Parameters
        ----------
        time
            Seconds since the session began.
        scope
            A patch or a square; None for all that is open.
        """
        self._advance(time)
        patches = self._scope(scope)
        old = [p.id for p in self.plans if {self.book.hole(h).patch for h in p.holes} & patches]
        for name in old:
            self.tell(ev.PlanSuperseded(id=self._id(), time=self.now, plan=name))
        self.learning.refresh()
        trial = self._trial([name for name in self.book.patches if name in patches])
        plan = Plan(f"plan {len(self.events)}", scope, tuple(trial._rehearse()))
        self.tell(ev.PlanGiven(id=self._id(), time=self.now, plan=plan))
        return plan

    def _scope(self, scope: str | None) -> set[str]:
        if scope is None:
            return set(self.book.patches)
        if scope in self.book.patches:
            return {scope}
        return set(self.book.square(scope).patches)

    def _trial(self, patches: list[str]) -> "Engine":
        """An engine that may pretend: it has these patches before it, and no other."""
        trial = copy(self)
        trial.book, trial._times = deepcopy(self.book), deepcopy(self._times)
        trial.learning = self.learning.trial()
        trial.events, trial._known = [], {}
        trial._waiting, trial._passed, trial._plans, trial._called = patches, set(), {}, set()
        trial.at = trial._told = trial._heading = trial._offer = trial.last = None
        trial._returning, trial._blindly, trial._failures = False, True, 0
        for name, known in trial.book.patches.items():
            known.gone = known.gone or name not in patches
        for square in trial.book.squares:
            trial.book.refuse(square, "not in this plan")
        trial.settings = replace(self._set, grids=())
        return trial

    def _rehearse(self) -> Iterable[Instruction]:
        """What would be instructed until all patches before it were looked at."""
        while self._ahead() or self.at is not None:
            step = self._choose()
            if step.do not in ("go", "expose", "leave"):
                return
            yield step
            self.tell(ev.Instructed(id=self._id(), time=self.now, instruction=step))
            if step.do == "go" and step.name is not None:
                seconds = self.timing.enter
                self.tell(ev.Moved(id=self._id(), time=self.now + seconds, patch=step.name))
            elif step.do == "expose" and step.name is not None:
                seconds = self.timing.hole(self.book.the_hole(step.name).shots)
                self.tell(ev.Exposed(id=self._id(), time=self.now + seconds, hole=step.name))

    # Instructions

    def next(self, time: float) -> Instruction:
        """What to do now. It is an event like others, and is told already."""
        self._advance(time)
        self.learning.passed(self.now)
        self.learning.refresh()
        instruction = self._choose()
        self.tell(ev.Instructed(id=self._id(), time=self.now, instruction=instruction))
        return instruction

    def _advance(self, time: float) -> None:
        hours = self._set.plan_hours
        self.now = max(self.now, time)
        for name, (_, since) in list(self._plans.items()):
            if hours is not None and self.now > since + hours * HOUR:
                self._close(name)

    def _id(self) -> str:
        return f"engine {len(self.events)}"

    def left(self) -> Left:
        """What is left of the session."""
        hours = self._set.hours
        seconds = inf if hours is None else hours * HOUR - self.now
        timing = self.timing
        fits = seconds >= timing.square + timing.enter + timing.hole()
        squares = tuple(self.book.unopened()) if fits else ()
        patches = tuple(self.book.offered())
        return Left(seconds, timing, squares, patches, self._returning, self._blindly)

    def _say(
        self,
        do: Do,
        level: Level | None = None,
        name: str | None = None,
        choice: Choice | None = None,
        **more: Any,
    ) -> Instruction:
        chosen = choice or Choice(name)
        estimate = chosen.estimate if isfinite(chosen.estimate) else None
        known: dict[str, Any] = {
            "why": chosen.why,
            "estimate": estimate,
            "rate": chosen.rate if isfinite(chosen.rate) else 0.0,
            "propensity": chosen.propensity,
            "reward": self._set.reward,
        }
        known |= {"level": level, **more}
        return Instruction(f"instruction {len(self.events)}", do, name, **known)

    def _choose(self) -> Instruction:
        if self.ended:
            return self._say("stop", why="The session is over.")
        lasting = [alarm.message for alarm in self.guard.alarms if alarm.until is None]
        for message in lasting:
            if message not in self._called:
                return self._say("alarm", why=message)
        if self.paused:
            return self._say("wait", why="Someone has paused the session.", seconds=PAUSE)
        left = self.left()
        if (failing := self._failing()) is not None and left.seconds > 0.0:
            return failing
        if self._set.grids and self.grid is None:
            return self._load() or self._say("stop", why="No grid could be loaded.")
        if (check := self._check_place(left)) is not None:
            return check
        if self.at is not None:
            return self._inside(left)
        if self._offer is not None:
            return self._consider(self.book.open(self._offer), left)
        if left.seconds < left.timing.enter + left.timing.hole():
            return self._say("stop", why=f"{max(left.seconds, 0.0):.0f} s are left.")
        wanted = self.book.forced()
        if wanted is not None:
            return self._go(self.book.open(self.book.hole(wanted).patch), self._asked_for(wanted))
        for square in left.squares:
            if who := self.book.square(square.name).forced:
                return self._open(Choice(square.name, f"{who} asked for it."))
        return self._elsewhere(left)

    def _failing(self) -> Instruction | None:
        """Too much fails: call a person once, and wait between tries."""
        last = None if self.last is None else self.last.do
        if self._failures < DOUBT or last == "wait":
            return None
        if FAILING not in self._called:
            return self._say("alarm", why=FAILING)
        return self._say("wait", why="Nothing works just now; it is tried again.", seconds=PAUSE)

    def _check_place(self, left: Left) -> Instruction | None:
        """Where scores are suspect: a shot of a patch known to be good tells what is wrong."""
        places = {} if self._offer else {one.patch.name: one for one in left.patches}
        here = next((places[name] for name in self.guard.check if name in places), None)
        if here is None or left.seconds < left.timing.enter + left.timing.hole():
            return None
        why = "Scores are suspect: this place is known to be good."
        if self.at not in (None, here.patch.name):
            return self._out(self.book.open(str(self.at)), Choice(None, why))
        estimates = self._estimates(here)
        names = [here.patch.holes[i].name for i in here.rest]
        best = max(names, key=lambda name: estimates.get(name, -inf))
        choice = Choice(best, why, estimates.get(best, nan))
        return self._go(here, choice) if self.at is None else self._expose(best, choice)

    def _load(self) -> Instruction | None:
        """The next grid of the cassette, if there is one."""
        names = [name for name in self._set.grids if name not in self._tried_grids]
        if not names:
            return None
        return self._say("load grid", "grid", names[0], why="The next grid in order.")

    def _inside(self, left: Left) -> Instruction:
        here = self.book.open(str(self.at))
        wanted = self.book.forced()
        if wanted is not None:
            if self.book.hole(wanted).patch == self.at:
                return self._expose(wanted, self._asked_for(wanted))
            return self._out(here, Choice(None, "Another hole was asked for."))
        if not here.rest:
            return self._out(here, Choice(None, "Nothing is left here."))
        needed = left.timing.hole(max(here.patch.holes[i].shots for i in here.rest))
        if left.seconds < needed:
            return self._out(here, _no_time(needed, left.seconds))
        choice = self._hole(here, left, inside=True)
        return self._out(here, choice) if choice.name is None else self._expose(choice.name, choice)

    def _ahead(self) -> list[Open]:
        """Patches of the square opened last that were not looked at."""
        here = (name for name in self._waiting if self.book.reachable(name))
        return [one for name in here if (one := self.book.open(name)).rest]

    def _elsewhere(self, left: Left) -> Instruction:
        """Another patch of this square, another square, or what was left behind."""
        waiting = self._ahead()
        if waiting:
            near = replace(left, returning=False)
            choice = self._patch(waiting, near)
            if choice.name is None:
                square = waiting[0].patch.square
                return self._say("leave", "square", square, choice)
            return self._consider(self.book.open(choice.name), near)
        away = replace(left, returning=False)
        choice = self.pilot.square(left.squares, away)
        if choice.name is not None:
            if choice.name not in {square.name for square in left.squares}:
                raise ValueError(
                    f"the pilot chose square {choice.name!r}, which it was not offered"
                )
            return self._open(choice)
        found = self._back(replace(left, returning=True))
        if found is not None:
            return found
        if left.squares:
            # A microscope that stands idle collects nothing, whatever a second is thought worth.
            why = "Nothing seemed worth it, and time is left."
            return self._open(Choice(left.squares[0].name, why, rate=choice.rate))
        return self._load() or self._rest(choice)

    def _rest(self, choice: Choice) -> Instruction:
        if any(self.book.planned(plan) for plan in self._plans):
            why = "All that is worth it is planned."
            return self._say("wait", why=why, seconds=PAUSE)
        if self._set.hours is None and not self.book.squares:
            return self._say("wait", why="Nothing is offered.")
        return self._say("stop", why=choice.why or "Nothing is left that is worth its time.")

    def _back(self, left: Left) -> Instruction | None:
        """To a patch with holes left: each once, and again if that brought anything."""
        every = list(left.patches)
        new = [one for one in every if one.patch.name not in self._passed]
        for offered in [new, every] if self._gained else [new]:
            if offered:
                choice = self._patch(offered, left)
                if choice.name is not None:
                    return self._consider(self.book.open(choice.name), left)
        return None

    def _consider(self, here: Open, left: Left) -> Instruction:
        """Go to a patch, or leave it aside."""
        if not here.rest:
            return self._out(here, Choice(None, "Nothing is left here."))
        if not self.book.reachable(here.patch.name):
            return self._out(here, Choice(None, "It cannot be reached."))
        needed = left.timing.enter + left.timing.hole(
            max(here.patch.holes[i].shots for i in here.rest)
        )
        if left.seconds < needed:
            return self._out(here, _no_time(needed, left.seconds))
        choice = self._hole(here, left, inside=False)
        return self._out(here, choice) if choice.name is None else self._go(here, choice)

    def _open(self, choice: Choice) -> Instruction:
        return self._say("open square", "square", choice.name, choice, seconds=self.timing.square)

    def _go(self, here: Open, choice: Choice) -> Instruction:
        more = {"seconds": self.timing.enter, "estimates": self._estimates(here)}
        return self._say("go", "patch", here.patch.name, choice, **more)

    def _out(self, here: Open, choice: Choice) -> Instruction:
        return self._say("leave", "patch", here.patch.name, choice, estimates=self._estimates(here))

    def _expose(self, hole: str, choice: Choice) -> Instruction:
        seconds = self.timing.hole(self.book.the_hole(hole).shots)
        return self._say("expose", "hole", hole, choice, seconds=seconds)

    def _asked_for(self, hole: str) -> Choice:
        return Choice(hole, f"{self.book.hole(hole).forced} asked for it.")

    def _estimates(self, here: Open) -> dict[str, float]:
        told = self.pilot.estimates(here.patch).tolist()
        each = {here.patch.holes[i].name: told[i] for i in here.rest}
        return {name: value for name, value in each.items() if isfinite(value)}

    def _hole(self, here: Open, left: Left, *, inside: bool) -> Choice:
        choice = self.pilot.hole(here, left, inside=inside)
        names = {here.patch.holes[i].name for i in here.rest}
        if choice.name is not None and choice.name not in names:
            raise ValueError(f"the pilot chose hole {choice.name!r}, which it was not offered")
        return choice

    def _patch(self, offered: Sequence[Open], left: Left) -> Choice:
        choice = self.pilot.patch(offered, left)
        names = {one.patch.name for one in offered}
        if choice.name is not None and choice.name not in names:
            raise ValueError(f"the pilot chose patch {choice.name!r}, which it was not offered")
        return choice

    # State

    def snapshot(self) -> dict[str, Any]:
        """What makes it quick to be here again, beside the events: for `replay`."""
        known = {} if self.settings is None else self.learning.snapshot()
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
            engine.tell(event)
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


def _no_time(needed: float, seconds: float) -> Choice:
    return Choice(None, f"It would take {needed:.0f} s, and {max(seconds, 0.0):.0f} s are left.")
