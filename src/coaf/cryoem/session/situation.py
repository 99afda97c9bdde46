"""A situation: all that a session knows, which is the fold of its events."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import replace
from math import inf

from coaf.cryoem.grid import Square
from coaf.cryoem.microscope import Survey, whole
from coaf.cryoem.pilot import Left, Open, Pilot
from coaf.cryoem.reward import Reward
from coaf.cryoem.session import events as ev
from coaf.cryoem.session.book import Book, State
from coaf.cryoem.session.instructions import Instruction, Plan
from coaf.cryoem.session.learning import Learning, Note
from coaf.cryoem.timing import HOUR, LearnedTiming, Timing, switches

DOUBT = 3  # failures in a row after which a person is called, and tries are spaced
FAILING = f"{DOUBT} things in a row failed: look at the microscope."

Make = Callable[[ev.Settings], Pilot]
Rewards = Callable[[str], Reward]


class Situation:
    """What is known, what was told, and what is under way.

    `check` refuses an event that cannot be, `fold` takes it in; `advance` says how late it is. What
    would be done in it is for `choosing` to say.

    Parameters
    ----------
    make
        Makes the pilot that settings name.
    rewards
        Makes a reward from its text.

    Attributes
    ----------
    events
        That were folded, in order.
    book, learning, times
        What is known of the grid, what pilot and guard were taught, and how long things take.
    now
        Seconds since the session began.
    """

    learning: Learning  # from Started on, as are times
    times: LearnedTiming

    def __init__(self, make: Make, rewards: Rewards) -> None:
        self.make, self.rewards = make, rewards
        self.events: list[ev.Event] = []
        self.book = Book()
        self.now = 0.0
        self.ended = self.paused = False
        self.at: str | None = None  # the patch that the stage is at, while it is worked on
        self.square: str | None = None  # that the stage is in, as far as is known
        self.last: Instruction | None = None
        self.told: str | None = None  # a hole that was instructed, and not reported
        self.heading: Instruction | None = None  # to a patch
        self.offer: str | None = None  # a patch that can be had now or never
        self.waiting: list[str] = []  # patches of squares just opened, not looked at yet
        self.returning = False
        self.passed: set[str] = set()  # patches looked at in this pass of returning
        self.gained = False  # whether anything was exposed since it began
        self.failures = 0  # in a row
        self.called: set[str] = set()  # what a person was called for
        self.tried_grids: set[str] = set()  # loaded, or not to be loaded
        self.plans: dict[str, tuple[Plan, float]] = {}  # that are worked on, and since when
        self.given: set[str] = set()  # all plans there were
        self.blindly = False  # no score comes before all was taken
        self._settings: ev.Settings | None = None

    @property
    def started(self) -> bool:
        """Whether the session has begun."""
        return self._settings is not None

    @property
    def settings(self) -> ev.Settings:
        """What the session is to do."""
        if self._settings is None:
            raise ValueError("the session has not started: tell it Started first")
        return self._settings

    @property
    def timing(self) -> Timing:
        """What things take, as far as is known."""
        return self.times.timing

    def left(self) -> Left:
        """What is left of the session."""
        hours = self.settings.hours
        seconds = inf if hours is None else hours * HOUR - self.now
        timing = self.timing
        fits = seconds >= timing.square + timing.enter + timing.hole()
        squares = tuple(self.book.unopened()) if fits else ()
        patches = tuple(self.book.offered())
        return Left(seconds, timing, squares, patches, self.returning, self.blindly, self.place)

    @property
    def place(self) -> Square | None:
        """The square that the stage is in; None if nobody knows."""
        return None if self.square is None else self.book.square(self.square).square

    def enter(self, patch: str) -> float:
        """Seconds to be ready at a patch, from where the stage is."""
        there = self.book.square(self.book.patch(patch).patch.square).square
        return self.timing.enter + self.timing.switch(self.place, there)

    def ahead(self) -> list[Open]:
        """Patches that were shown and not looked at."""
        here = (name for name in self.waiting if self.book.reachable(name))
        return [one for name in here if (one := self.book.open(name)).rest]

    def trial(self, patches: list[str]) -> "Situation":
        """One for pretending: these patches are before it, no other, and no score will come."""
        trial = Situation(self.make, self.rewards)
        trial._settings = replace(self.settings, grids=())
        trial.now, trial.ended, trial.paused = self.now, self.ended, self.paused
        trial.book, trial.times = deepcopy(self.book), deepcopy(self.times)
        trial.square = self.square
        trial.learning, trial.waiting, trial.blindly = self.learning.trial(), patches, True
        for name, known in trial.book.patches.items():
            known.gone = known.gone or name not in patches
        for square in trial.book.squares:
            trial.book.refuse(square, "not in this plan")
        return trial

    # Events

    def check(self, event: ev.Event) -> None:
        """Refuse what cannot be; nothing changes."""
        started = isinstance(event, ev.Started)
        if started == self.started:
            raise ValueError(
                "the session has started already" if started else "the first event is Started"
            )
        book = self.book
        match event:
            case ev.AtlasSeen():
                book.check_atlas(event.squares)
            case ev.PatchOffered() if len(event.survey.patches) != 1:
                count = len(event.survey.patches)
                raise ValueError(f"{count} patches are offered; offer them singly")
            case ev.SquareOpened() | ev.HolesAdded() | ev.PatchOffered():
                book.check(event.survey, len(self.settings.columns) or None)
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
            case ev.PlanSuperseded() | ev.PlanClosed() if event.plan not in self.given:
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
                self.rewards(event.reward)
            case ev.BudgetChanged():
                replace(self.settings, hours=event.hours)

    def _check_instruction(self, told: Instruction) -> None:
        known = {"square": self.book.square, "patch": self.book.patch, "hole": self.book.hole}
        about = {"open square": "square", "go": "patch", "expose": "hole"}.get(told.do, told.level)
        if about in known:
            known[about](str(told.name))

    def fold(self, event: ev.Event) -> None:
        """Take in what happened."""
        if isinstance(event, ev.Started):
            self._start(event.settings)
        self.advance(event.time)
        self._take(event)
        self.events.append(event)

    def advance(self, time: float) -> None:
        """It is so late: plans expire."""
        hours = self.settings.plan_hours
        self.now = max(self.now, time)
        for name, (_, since) in list(self.plans.items()):
            if hours is not None and self.now > since + hours * HOUR:
                self._close(name)

    def _take(self, event: ev.Event) -> None:  # a line for each kind of event
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
                self._added(event.survey)
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
                self._exposed(event.hole, event.time, event.seconds, event.shots, event.known)
            case ev.Failed():
                self._failed(event)
            case ev.Reconciled():
                self._reconciled(event)
            case ev.Overridden():
                self._overridden(event)
            case ev.ScoreCame() | ev.ScoreCorrected():
                self._scored(event)
            case ev.TargetChanged():
                self._aim(replace(self.settings, reward=event.reward))
            case ev.BudgetChanged():
                self._settings = replace(self.settings, hours=event.hours)
            case ev.FaultAcknowledged():
                self.learning.acknowledged(event.time)
            case ev.TimePassed():
                self.learning.passed(event.time)
            case ev.Paused() | ev.Resumed():
                self.paused = isinstance(event, ev.Paused)
            case ev.Ended():
                self.ended = True

    # The session, and the grid

    def _start(self, settings: ev.Settings) -> None:
        reward = self.rewards(settings.reward)
        self.learning = Learning(lambda: self.make(settings), reward)
        self.times = LearnedTiming(settings.timing)
        self._settings = settings

    def _aim(self, settings: ev.Settings) -> None:
        reward = self.rewards(settings.reward)
        self.learning.aim(lambda: self.make(settings), reward)
        self._settings = settings

    def _loaded(self, grid: str) -> None:
        self._away()
        self.offer, self.waiting, self.square = None, [], None
        self.returning, self.passed = False, set()
        self.book.load(grid)
        self.tried_grids.add(grid)
        self._worked()

    def _opened(self, event: ev.SquareOpened) -> None:
        self._away()
        if event.seconds > 0.0:
            self.times.learn_together(("stage", "height", "image"), event.seconds)
        self.waiting = [patch.name for patch in self._changed(event.survey).patches]
        self.square = event.survey.square
        self._worked()

    def _away(self) -> None:
        """The stage is not where it was."""
        if self.at is not None:
            self._leave(self.at)
        self.heading = None

    def _worked(self) -> None:
        """Something went well."""
        self.failures = 0
        self.called.discard(FAILING)

    def _changed(self, given: Survey) -> Survey:
        """Take in a survey, and tell the pilot all of the patches that it changes."""
        survey = self.book.opened(whole(given))
        self.learning.opened(survey, self.timing)
        return survey

    def _added(self, survey: Survey) -> None:
        """Holes are known that nobody went to see; those of a square never opened wait, too."""
        known = self.book.squares.get(survey.square)
        opened = known is not None and known.opened
        patches = self._changed(survey).patches
        if not opened:
            self.waiting += [patch.name for patch in patches]

    def _offered(self, event: ev.PatchOffered) -> None:
        for patch in self._changed(event.survey).patches:
            self.offer, self.square = patch.name, patch.square

    # What was told and done

    def _instructed(self, instruction: Instruction) -> None:
        # Silence is looked for when scores were heard, which is before something is asked for.
        self.learning.passed(self.now)
        self.learning.refresh()
        if self.told is not None:
            self.book.mark(self.told, "unknown")
        self.told, name = None, instruction.name
        match instruction.do:
            case "expose":
                assert name is not None
                known = self.book.hole(name)
                self.book.mark(name, "told")
                self.told = name
                if instruction.propensity < 1.0:
                    self.book.patch(known.patch).explored = True
            case "go":
                assert name is not None
                self._look(name)
                self.heading = instruction
            case "leave" if instruction.level == "patch":
                assert name is not None
                self._look(name)
                self._leave(name)
            case "leave":
                patches = self.book.patches
                self.waiting = [p for p in self.waiting if patches[p].patch.square != name]
            case "alarm":
                self.called.add(instruction.why)
        self.last = instruction

    def _look(self, patch: str) -> None:
        """A patch was looked at: one of a square just opened, or one of those left behind."""
        if patch in (self.at, self.offer):
            return
        wanted = self.book.forced()
        asked = wanted is not None and self.book.hole(wanted).patch == patch
        if patch in self.waiting or asked or patch in self.learning.guard.check:
            self.waiting = [name for name in self.waiting if name != patch]
            self.returning = False
        else:
            if patch in self.passed or not self.returning:
                self.passed, self.gained = set(), False
            self.passed.add(patch)
            self.returning = True

    def _leave(self, patch: str) -> None:
        known = self.book.patch(patch)
        if patch == self.offer:
            self.offer, known.gone = None, True
        if self.at == patch:
            self.at = None
        self.heading = None
        self.learning.done(self.book.open(patch), self.left())

    def _moved(self, event: ev.Moved) -> None:
        known, heading = self.book.patch(event.patch), self.heading
        if self.at != event.patch:
            self._away()
        here = self.book.open(event.patch)
        told = heading is not None and heading.name == event.patch
        rate = heading.rate if told and heading is not None else None
        there = self.book.square(known.patch.square).square
        if event.seconds > 0.0:
            # A switch that is expected to take no time has no share in it.
            way = [s for s in switches(self.place, there) if getattr(self.timing, s) > 0.0]
            self.times.learn_together(("move", "focus", *way), event.seconds)
        self.square = there.name
        self.learning.moved(here, self.left(), rate)
        self.at, self.heading = event.patch, None
        known.entered, known.open = True, None
        self._worked()

    def _exposed(
        self,
        name: str,
        time: float,
        seconds: float = 0.0,
        shots: int | None = None,
        known: Mapping[str, float | None] | None = None,
    ) -> None:
        hole = self.book.hole(name)
        if hole.state == "taken":
            self._note("refused", "reported as exposed a second time", name, time)
            return
        count = self.book.the_hole(name).shots if shots is None else shots
        if seconds > 0.0:
            own = max(seconds - (count - 1) * self.timing.shot, 0.0)
            self.times.learn("expose", own)
        if self.told == name:
            self.told = None
        self.book.mark(name, "taken")
        self.gained = True
        self._worked()
        square = self.book.patch(hole.patch).patch.square
        place = {"square": square, "patch": hole.patch}
        self.learning.exposed(name, time, **place, shots=count, known=known or {})

    def _failed(self, event: ev.Failed) -> None:
        match event.what:
            case "exposure":
                known = self.book.hole(event.name)
                if known.state == "taken":
                    self._note("refused", "it failed, and was exposed", event.name, event.time)
                    return
                self.told = None if self.told == event.name else self.told
                known.failures += event.beam == "off"
                again: State = "free" if known.failures < self.settings.tries else "failed"
                self.book.mark(event.name, again if event.beam == "off" else "unknown")
            case "move":
                patch = self.book.patch(event.name)
                patch.failures += 1
                patch.lost = patch.failures >= self.settings.tries
                self.passed.discard(event.name)
                self._away()
            case "square":
                self.book.refuse(event.name, event.why or "it could not be opened")
                self._away()
            case "grid":
                self.tried_grids.add(event.name)
                self._away()
        self.failures += 1

    def _reconciled(self, event: ev.Reconciled) -> None:
        if event.taken:
            self._exposed(event.hole, event.time)
        else:
            self.told = None if self.told == event.hole else self.told
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
            self._exposed(hole, event.time)  # or there were no score
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
        self.plans[event.plan.id] = (event.plan, event.time)
        self.given.add(event.plan.id)

    def _close(self, plan: str) -> None:
        self.plans.pop(plan, None)  # it may have expired
        for hole in self.book.planned(plan):
            self.book.mark(hole, "free")
