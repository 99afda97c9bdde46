"""A situation: all that a session knows, which is the fold of its events."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from math import inf

from coaf.cryoem.grid import Square
from coaf.cryoem.microscope import Survey, whole
from coaf.cryoem.pilot import Left, Open, Other, Pilot
from coaf.cryoem.reward import RewardFrom
from coaf.cryoem.session import events as ev
from coaf.cryoem.session.book import LISTED, Book, State
from coaf.cryoem.session.instructions import Instruction, Plan
from coaf.cryoem.session.learning import Learning, Note
from coaf.cryoem.timing import HOUR, LearnedTiming, Timing, switches

PARDONS = 3  # of what may be at fault itself
IN_A_ROW = 3  # failures in a row after which a person is called, and tries are spaced
SHOTS = 100  # of a hole, that scores alone can tell of: more is a mistake
FAILING = f"{IN_A_ROW} things in a row failed: look at the microscope."

Make = Callable[[ev.Settings], Pilot]


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

    def __init__(self, make: Make, rewards: RewardFrom) -> None:
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
        self.failed: list[tuple[ev.Attempt, str]] = []  # in a row, and of what
        self.unseen = False  # whether the atlas is still to be shown, as that failed
        self.called: set[str] = set()  # what a person was called for
        self.shelved: dict[str | None, list[str]] = {}  # by grid: as waiting, when it was taken out
        self.grids: set[str] = set()  # of the cassette: those that were loaded
        self.unloaded: dict[str, int] = {}  # how often a grid failed to load since it last did
        self.pardoned = Counter[tuple[ev.Attempt, str]]()  # what failed while nothing worked
        self.plans: dict[str, tuple[Plan, float]] = {}  # with when they were last heard of
        self.given: set[str] = set()  # all plans there were
        self.blindly = False  # no score comes before all was taken
        self.inferred: set[str] = set()  # holes that were exposed, which was not reported yet
        self.losses: list[ev.ScoreLost] = []  # of shots that nobody has said were taken, yet
        self.answered: set[str] = set()  # instructions of which was reported what became of them
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
        patches = self.book.offered()
        return Left(seconds, timing, squares, patches, self.returning, self.blindly, self.place)

    def others(self) -> tuple[Other, ...]:
        """Grids of the cassette that could be loaded and give something before the time is over."""
        timing, found, time = self.timing, list[Other](), self.left().seconds
        needed = timing.load + timing.enter + timing.hole()
        for name in self.settings.grids:
            if name == self.book.grid or self.unloaded.get(name, 0) >= self.settings.tries:
                continue
            seen = name in self.grids
            more = 0.0 if seen else timing.atlas + timing.square
            if time >= needed + more:
                found.append(Other(name, seen, tuple(self.book.unopened(name))))
        return tuple(found)

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

    def trial(self, patches: list[str], without: Iterable[str]) -> "Situation":
        """One for pretending: these patches are before it, no other, and no score will come.

        Nor are there plans `without` which it is to be.
        """
        trial = Situation(self.make, self.rewards)
        trial._settings = replace(self.settings, grids=())
        trial.now, trial.ended, trial.paused = self.now, self.ended, self.paused
        trial.book, trial.times = deepcopy(self.book), deepcopy(self.times)
        trial.square, trial.last = self.square, self.last
        trial.learning, trial.waiting, trial.blindly = self.learning.trial(), patches, True
        for plan in without:
            trial._close(plan)
        for name, known in trial.book.patches.items():
            known.gone = known.gone or name not in patches
            trial.book.changed(name)
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
            case ev.Started() if (taught := event.settings.knowledge) is not None:
                taught.check(event.settings.columns, event.settings.reward)
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
            case ev.Failed() if event.what in ("square", "move", "exposure"):
                known = {"square": book.square, "move": book.patch, "exposure": book.hole}
                known[event.what](event.name)
            case ev.Reconciled():
                state = book.hole(event.hole).state
                same = event.taken == (state == "taken")
                if state not in ("unknown", "told", *LISTED) and not same:
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
        if told.do == "expose":
            state = self.book.hole(str(told.name)).state
            if state not in ("free", *LISTED):
                raise ValueError(f"hole {told.name!r} is {state}: it is not to be exposed")

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
                self._loaded(event)
            case ev.AtlasSeen():
                self._saw(event)
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
                self._exposed(event)
            case ev.Failed():
                self._failed(event)
            case ev.Reconciled():
                self._reconciled(event)
            case ev.Overridden():
                self._overridden(event)
            case ev.ScoreCame() | ev.ScoreCorrected():
                self._scored(event)
            case ev.ScoreLost():
                self._lost(event)
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
                self.learning.refresh()

    # The session, and the grid

    def _start(self, settings: ev.Settings) -> None:
        reward = self.rewards(settings.reward)
        self.learning = Learning(lambda: self.make(settings), reward, settings.reward)
        self.times = LearnedTiming(settings.timing)
        self._settings = settings

    def _aim(self, settings: ev.Settings) -> None:
        reward = self.rewards(settings.reward)
        self.learning.aim(lambda: self.make(settings), reward, settings.reward)
        self._settings = settings

    def _loaded(self, event: ev.GridLoaded) -> None:
        self._away()
        if event.seconds > 0.0:
            self.times.learn("load", event.seconds)
        self.shelved[self.book.grid] = self.waiting
        self.waiting = self.shelved.pop(event.grid, [])
        self.offer, self.square = None, None
        self.returning, self.passed = False, set()
        self.book.load(event.grid)
        self.grids.add(event.grid)
        self.unloaded.pop(event.grid, None)
        self.learning.loaded(event.grid)
        self.unseen = False
        self._worked()

    def _saw(self, event: ev.AtlasSeen) -> None:
        if event.seconds > 0.0:
            self.times.learn("atlas", event.seconds)
        self.book.saw(event.squares)
        self.unseen = False
        self.learning.saw(event.squares)

    def _opened(self, event: ev.SquareOpened) -> None:
        if event.seconds > 0.0:
            self.times.learn_together(("stage", "height", "image"), event.seconds)
        square = event.survey.square
        if square in self.book.squares and not self.book.here(square):  # it is told late
            self._added(event.survey)
        else:
            self._away()
            self.waiting = [patch.name for patch in self._changed(event.survey).patches]
            self.square = square
        self._worked()

    def _away(self) -> None:
        """The stage is not where it was."""
        if self.at is not None:
            self._leave(self.at)
        self.heading = None

    def _worked(self, *, exposed: bool = False) -> None:
        """Something went well; who moves has exposed nothing yet.

        What failed while nothing worked was not to blame: it may be tried again, a few times.
        """
        over = {one: None for one in self.failed if exposed or one[0] != "exposure"}
        if self.failing and len(over) > 1:
            self._pardon([one for one in over if self.pardoned[one] < PARDONS])
            self.pardoned.update(over.keys())
        self.failed = [one for one in self.failed if one not in over]
        if not self.failing:
            self.called.discard(FAILING)

    @property
    def failing(self) -> bool:
        """Whether nothing works, as far as can be told."""
        return len(self.failed) >= IN_A_ROW

    def _pardon(self, failed: Iterable[tuple[ev.Attempt, str]]) -> None:
        for what, name in failed:
            if what == "grid":
                self.unloaded.pop(name, None)
            self.book.pardon(what, name)

    def _changed(self, given: Survey) -> Survey:
        """Take in a survey, and tell the pilot all of the patches that it changes."""
        survey = self.book.opened(whole(given))
        self.learning.opened(survey, self.timing)
        return survey

    def _added(self, survey: Survey) -> None:
        """Holes are known that nobody went to see; those of a square never opened wait, too."""
        known = self.book.squares.get(survey.square)
        opened = known is not None and known.opened
        patches = [patch.name for patch in self._changed(survey).patches]
        grid = self.book.square(survey.square).grid
        if not opened and grid == self.book.grid:
            self.waiting += patches
        elif not opened:
            self.shelved.setdefault(grid, []).extend(patches)

    def _offered(self, event: ev.PatchOffered) -> None:
        if self.offer is not None:  # now or never: it was not taken then
            self._leave(self.offer)
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
                self._look(name, check=instruction.check)
                self.heading = instruction
            case "leave" if instruction.level == "patch":
                assert name is not None
                self._look(name)
                self._leave(name)
                if instruction.unfinished:
                    self.waiting.insert(0, name)
            case "leave":
                patches = self.book.patches
                self.waiting = [p for p in self.waiting if patches[p].patch.square != name]
            case "alarm":
                self.called.add(instruction.why)
            case "wait" if instruction.again:
                self._pardon(self.failed)
        self.last = instruction

    def _look(self, patch: str, *, check: bool = False) -> None:
        """A patch was looked at: one of a square just opened, or one of those left behind.

        Or it is gone to for a `check`.
        """
        if patch in (self.at, self.offer):
            return
        wanted = self.book.forced()
        asked = wanted is not None and self.book.hole(wanted).patch == patch
        if patch in self.waiting or asked or check:
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
            self.book.changed(patch)
        if self.at == patch:
            self.at = None
        self.heading = None
        self.learning.done(self.book.open(patch), self.left())

    def _moved(self, event: ev.Moved) -> None:
        known, heading = self.book.patch(event.patch), self.heading
        there = self.book.square(known.patch.square).square
        if event.seconds > 0.0:
            # A switch that is expected to take no time has no share in it.
            way = [s for s in switches(self.place, there) if getattr(self.timing, s) > 0.0]
            self.times.learn_together(("move", "focus", *way), event.seconds)
        if self.book.here(there.name):  # else it is told late: another grid is there by now
            if self.at != event.patch:
                self._away()
            told = heading is not None and heading.name == event.patch
            price = (heading.rate, heading.reward) if told and heading is not None else None
            self.square = there.name
            self.learning.moved(self.book.open(event.patch), self.left(), price)
            self.at, self.heading = event.patch, None
        known.entered, known.since, known.failures = True, event.time, 0
        self.book.changed(event.patch)
        self._worked()

    def _exposed(self, event: ev.Exposed) -> None:
        name, hole = event.hole, self.book.hole(event.hole)
        if hole.state == "taken" and name not in self.inferred:
            self._note("refused", "reported as exposed a second time", name, event.time)
            return
        shots = self.book.the_hole(name).shots if event.shots is None else event.shots
        if event.seconds > 0.0:
            own = max(event.seconds - (shots - 1) * self.timing.shot, 0.0)
            self.times.learn("expose", own)
        if event.instruction is not None:
            self.answered.add(event.instruction)
        self._seen_at(hole.patch, event.time)
        if hole.state == "taken":
            self.inferred.discard(name)
            if (scored := self.learning.scored_shots(name)) > shots:
                why = f"reported with {shots} shots, and {scored} have scores"
                self._note("refused", why, name, event.time)
                shots = scored
            self.learning.reported(name, event.time, shots=shots, known=event.known)
            self._lose(name)
        else:
            self._take_hole(name, event.time, shots, event.known)

    def _seen_at(self, patch: str, time: float) -> None:
        """Something was exposed there: where the stage was, unless it is told late."""
        if self.at not in (None, patch) and time > self.book.patch(str(self.at)).since:
            self._away()
            square = self.book.patch(patch).patch.square
            self.square = square if self.book.here(square) else None

    def _infer(self, name: str, time: float, shots: int) -> None:
        """A hole was exposed, as follows from what is known, and so many shots at least."""
        self.inferred.add(name)
        self._take_hole(name, time, shots, {})

    def _take_hole(
        self, name: str, time: float, shots: int, known: Mapping[str, float | None]
    ) -> None:
        hole = self.book.hole(name)
        if self.told == name:
            self.told = None
        self._mark(name, "taken")
        self.gained = True
        self._worked(exposed=True)
        square = self.book.patch(hole.patch).patch.square
        place = {"square": square, "patch": hole.patch}
        self.learning.exposed(name, time, **place, shots=shots, known=known)
        self._lose(name)

    def _lose(self, name: str) -> None:
        """Scores are lost of shots of a hole that may be known by now."""
        early = [event for event in self.losses if event.hole == name]
        self.losses = [event for event in self.losses if event.hole != name]
        for event in early:
            self._lost(event)

    def _failed(self, event: ev.Failed) -> None:
        if event.instruction is not None:
            if event.instruction in self.answered:
                why = f"what became of {event.instruction!r} was reported before"
                self._note("refused", why, event.name, event.time)
                return
            self.answered.add(event.instruction)
        name, tries = event.name, self.settings.tries
        match event.what:
            case "exposure":
                known = self.book.hole(name)
                if known.state == "taken":
                    self._note("refused", "it failed, and was exposed", name, event.time)
                    return
                self.told = None if self.told == name else self.told
                known.failures += event.beam == "off"
                again: State = "free" if known.failures < tries else "failed"
                self._mark(name, again if event.beam == "off" else "unknown")
            case "move":
                patch = self.book.patch(name)
                patch.failures += 1
                patch.lost = patch.failures >= tries
                self.book.changed(name)
                self.passed.discard(name)
                self._away()
            case "square":
                square = self.book.square(name)
                square.failures += 1
                if square.failures >= tries:
                    self.book.refuse(name, event.why or "it could not be opened")
                self._away()
            case "grid":
                self.unloaded[name] = self.unloaded.get(name, 0) + 1
                self._away()
            case "atlas":
                self.unseen = True
            case "scores":
                return  # the microscope works; that none come is for the guard to hear
        self.failed.append((event.what, name))

    def _reconciled(self, event: ev.Reconciled) -> None:
        if self.book.hole(event.hole).state not in ("unknown", "told", *LISTED):
            return  # it is settled already, so
        if event.taken:
            self._infer(event.hole, event.time, self.book.the_hole(event.hole).shots)
        else:
            self.told = None if self.told == event.hole else self.told
            self._mark(event.hole, "free")

    def _overridden(self, event: ev.Overridden) -> None:
        if event.what == "square":
            square = self.book.square(event.name)
            square.refused = f"excluded by {event.who}" if event.do == "exclude" else ""
            square.forced = event.who if event.do == "force" and not square.opened else ""
            if square.forced and not self.book.here(event.name):
                why = f"square {event.name!r} was asked for, and its grid is not loaded"
                self._note("waits", why, None, event.time)
        self.book.exclude(event.what, event.name, out=event.do == "exclude")
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
        # Whatever was said of a hole before, there is no score without an exposure.
        taken = self.learning.shots(hole)
        if taken is not None and hole not in self.inferred:
            most = taken
        else:  # nor without the shots before it, of one that nobody has reported
            most = 0 if self.book.hole(hole).state == "deleted" else SHOTS
        if self._not_taken(event, most):
            return
        if taken is None:
            shots = max(self.book.the_hole(hole).shots, event.shot + 1)
            self._infer(hole, event.time, shots)
        elif event.shot >= taken:
            self.learning.further(hole, event.time, event.shot + 1)
            self._lose(hole)
        self.learning.scored(shot, event.values, event.time)

    def _lost(self, event: ev.ScoreLost) -> None:
        """That a score is lost says of no shot that it was taken."""
        shot, shots = (event.hole, event.shot), self.learning.shots(event.hole)
        if shot in self.learning.values:
            why = f"the score of shot {event.shot} is lost, and is here"
            self._note("refused", why, event.hole, event.time)
        elif shots is None or (event.shot >= shots and event.hole in self.inferred):
            self.losses.append(event)
        elif not self._not_taken(event, shots):
            self.learning.never(shot)

    def _not_taken(
        self, event: ev.ScoreCame | ev.ScoreCorrected | ev.ScoreLost, shots: int
    ) -> bool:
        """Whether there was no such shot, which is taken note of."""
        if 0 <= event.shot < shots:
            return False
        why = f"a score of shot {event.shot}, which was not taken in this session"
        self._note("refused", why, event.hole, event.time)
        return True

    def _note(self, what: str, why: str, hole: str | None, time: float) -> None:
        self.learning.notes.append(Note(time, what, why, hole))

    # Plans

    def _plan_given(self, event: ev.PlanGiven) -> None:
        self.learning.refresh()
        for hole in event.plan.holes:
            if self.book.hole(hole).state == "free":
                self.book.mark(hole, "advised" if event.plan.advice else "planned")
                self.book.hole(hole).plan = event.plan.id
        if event.plan.holes:
            self.plans[event.plan.id] = (event.plan, event.time)
        self.given.add(event.plan.id)

    def _mark(self, hole: str, state: State) -> None:
        """A hole was reported: someone works through the plan that it is on."""
        plan = self.book.hole(hole).plan
        if plan in self.plans:
            self.plans[plan] = (self.plans[plan][0], self.now)
        self.book.mark(hole, state)

    def _close(self, plan: str) -> None:
        self.plans.pop(plan, None)  # it may have expired
        for hole in self.book.planned(plan):
            self.book.mark(hole, "free")
