"""What to do next: the one thing that follows from a situation."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf, isfinite, nan
from typing import Any

from coaf.cryoem.grid import Square
from coaf.cryoem.pilot import Choice, Left, Open, Other
from coaf.cryoem.session.instructions import Do, Instruction, Level
from coaf.cryoem.session.situation import FAILING, Situation
from coaf.cryoem.timing import HOUR

_LAST = 2  # holes of a patch that are kept to check scores by
PAUSE = 60.0  # seconds to wait while nothing may be done
_COMPARED = "Scores are suspect: they are compared with those of a place known to be good."


def choose(situation: Situation) -> Instruction:
    """What to do now. The situation stays as it is: what is instructed is an event, to be told."""
    return _Chooser(situation).instruction()


class _Chooser:
    """Asks the pilot where it may choose, and says the rest itself."""

    def __init__(self, situation: Situation) -> None:
        self.situation, self.book = situation, situation.book
        self.pilot = situation.learning.pilot
        # What a second is worth where it is not chosen for that: what the pilot said last.
        last, reward = situation.last, situation.settings.reward
        self.rate = last.rate if last is not None and last.reward == reward else 0.0

    def instruction(self) -> Instruction:
        if self.situation.ended:
            return self._say("stop", why="The session is over.")
        for alarm in self.situation.learning.guard.alarms:
            if alarm.until is None and alarm.message not in self.situation.called:
                return self._say("alarm", why=alarm.message)
        left = self.situation.left()
        if self.situation.paused and left.seconds > 0.0:
            return self._say("wait", why="Someone has paused the session.", seconds=PAUSE)
        if (failing := self._failing()) is not None and left.seconds > 0.0:
            return failing
        if self.situation.settings.grids and self.book.grid is None:
            idle = replace(left, idle=True)
            found = self._load(idle) or self._again(left)
            return found or self._say("stop", why="No grid could be loaded.")
        if (check := self._check_place(left)) is not None:
            return check
        if self.situation.at is not None:
            return self._inside(left)
        if self.situation.offer is not None:
            return self._consider(self.book.open(self.situation.offer), left)
        if left.seconds < left.timing.enter + left.timing.hole():
            return self._say("stop", why=f"{max(left.seconds, 0.0):.0f} s are left.")
        wanted = self.book.forced()
        if wanted is not None:
            return self._go(self.book.open(self.book.hole(wanted).patch), self._asked_for(wanted))
        if (asked := self._asked_square(left)) is not None:
            return self._open(asked)
        return self._elsewhere(left)

    def _failing(self) -> Instruction | None:
        """Too much fails: call a person once, and wait between tries."""
        if not self.situation.failing:
            return None
        if FAILING not in self.situation.called:
            return self._say("alarm", why=FAILING)
        if self.situation.last is not None and self.situation.last.do == "wait":
            return None
        return self._say("wait", why="Nothing works just now; it is tried again.", seconds=PAUSE)

    def _again(self, left: Left) -> Instruction | None:
        """Nothing is left but what was given up while nothing worked: that is tried again."""
        if not self.situation.failing or left.seconds <= 0.0:
            return None
        why = "Nothing works just now; what was given up meanwhile is tried again."
        seconds = min(PAUSE * len(self.situation.failed), HOUR / 2)  # ever longer, as it goes on
        return self._say("wait", why=why, seconds=seconds, again=True)

    def _check_place(self, left: Left) -> Instruction | None:
        """Where scores are suspect: a shot of a patch known to be good tells what is wrong."""
        suspect = self.situation.learning.guard.check
        if not suspect or self.situation.offer:
            return None
        places = {one.patch.name: one for one in left.patches}
        here = next((places[name] for name in suspect if name in places), None)
        if here is None:
            return None
        if left.seconds < self.situation.enter(here.patch.name) + left.timing.hole():
            return None
        at = self.situation.at
        if at not in (None, here.patch.name):
            return self._out(self.book.open(str(at)), Choice(None, _COMPARED), unfinished=True)
        estimates = self._estimates(here)
        names = [here.patch.holes[i].name for i in here.rest]
        # Who estimates nothing may still like some of them more than others.
        liked = None if estimates else self._hole(here, replace(left, returning=True), inside=True)
        best = (liked and liked.name) or max(names, key=lambda name: estimates.get(name, -inf))
        choice = Choice(best, _COMPARED, estimates.get(best, nan))
        return self._go(here, choice, check=True) if at is None else self._expose(best, choice)

    def _load(self, left: Left) -> Instruction | None:
        """Another grid of the cassette, if there is one and the pilot wants it."""
        others = self.situation.others()
        choice = self._grid(others, left) if others else Choice(None)
        if choice.name is None and others and self.book.grid is None:
            choice = Choice(others[0].name, "No grid is loaded yet.")
        if choice.name is None:
            return None
        seconds = left.timing.load
        seconds += 0.0 if choice.name in self.situation.grids else left.timing.atlas
        return self._say("load grid", "grid", choice.name, choice, seconds=seconds)

    def _inside(self, left: Left) -> Instruction:
        here = self.book.open(str(self.situation.at))
        wanted = self.book.forced()
        if wanted is not None:
            if self.book.hole(wanted).patch == self.situation.at:
                return self._expose(wanted, self._asked_for(wanted))
            return self._out(here, Choice(None, "Another hole was asked for."))
        if self._asked_square(left) is not None:
            return self._out(here, Choice(None, "Another square was asked for."))
        if not here.rest:
            return self._out(here, Choice(None, "Nothing is left here."))
        needed = left.timing.hole(max(here.patch.holes[i].shots for i in here.rest))
        if left.seconds < needed:
            return self._out(here, _no_time(needed, left.seconds))
        if self._keep(here, left):
            return self._out(here, Choice(None, "Its last holes are kept, to check scores by."))
        choice = self._hole(here, left, inside=True)
        return self._out(here, choice) if choice.name is None else self._expose(choice.name, choice)

    def _keep(self, here: Open, left: Left) -> bool:
        """Whether to keep the last holes here: each hour some of a place that is not bad.

        Who leaves holes behind anyway keeps no others, nor does a session that spends nothing on
        finding out (`Settings.explore`). They are taken in the end, like all that was left behind.
        """
        if self.situation.settings.explore == 0.0:
            return False
        taken = sum(self.book.hole(hole.name).state == "taken" for hole in here.patch.holes)
        if len(here.rest) > _LAST or taken < _LAST or left.returning or left.blindly:
            return False
        if self.situation.offer is not None or left.seconds < HOUR:
            return False
        guard, since = self.situation.learning.guard, self.situation.now - HOUR
        others = (one.patch.name for one in left.patches if one.patch.name != here.patch.name)
        known = (name for name in others if self.book.patch(name).since > since)
        return guard.sound(here.patch.name) and not any(map(guard.sound, known))

    def _elsewhere(self, left: Left) -> Instruction:
        """Another patch of this square, another square, or what was left behind."""
        waiting = self.situation.ahead()
        away = replace(left, returning=False, ahead=bool(waiting))
        if (load := self._load(away)) is not None:
            return load
        if waiting:
            near = replace(left, returning=False)
            choice = self._patch(waiting, near)
            if choice.name is None:
                square = waiting[0].patch.square
                return self._say("leave", "square", square, choice)
            return self._consider(self.book.open(choice.name), near)
        choice = self._square(left.squares, away)
        if choice.name is not None:
            return self._open(choice)
        found = self._back(replace(left, returning=True))
        if found is not None:
            return found
        if (load := self._load(replace(left, idle=True))) is not None:
            return load
        if left.squares:
            # A microscope that stands idle collects nothing, whatever a second is thought worth.
            why = "Nothing seemed worth it, and time is left."
            return self._open(Choice(left.squares[0].name, why, rate=choice.rate))
        return self._again(left) or self._rest(choice)

    def _rest(self, choice: Choice) -> Instruction:
        if self.situation.unseen:
            why = "The atlas could not be shown; it is tried again."
            return self._say("wait", why=why, seconds=PAUSE)
        if any(self.book.planned(plan) for plan in self.situation.plans):
            why = "All that is worth it is planned."
            return self._say("wait", why=why, seconds=PAUSE)
        if self.situation.settings.hours is None and not self.book.squares:
            return self._say("wait", why="Nothing is offered.")
        return self._say("stop", why=choice.why or "Nothing is left that is worth its time.")

    def _back(self, left: Left) -> Instruction | None:
        """To a patch with holes left: each once, and again if that brought anything."""
        every = list(left.patches)
        new = [one for one in every if one.patch.name not in self.situation.passed]
        for offered in [new, every] if self.situation.gained else [new]:
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
        needed = self.situation.enter(here.patch.name) + left.timing.hole(
            max(here.patch.holes[i].shots for i in here.rest)
        )
        if left.seconds < needed:
            return self._out(here, _no_time(needed, left.seconds))
        choice = self._hole(here, left, inside=False)
        return self._out(here, choice) if choice.name is None else self._go(here, choice)

    # As instructions

    def _say(
        self,
        do: Do,
        level: Level | None = None,
        name: str | None = None,
        choice: Choice | None = None,
        **more: Any,
    ) -> Instruction:
        chosen = choice or Choice(name)
        known: dict[str, Any] = {
            "why": chosen.why,
            "estimate": chosen.estimate if isfinite(chosen.estimate) else None,
            "rate": chosen.rate if isfinite(chosen.rate) else self.rate,
            "propensity": chosen.propensity,
            "reward": self.situation.settings.reward,
        }
        known |= {"level": level, **more}
        return Instruction(f"instruction {len(self.situation.events)}", do, name, **known)

    def _open(self, choice: Choice) -> Instruction:
        return self._say(
            "open square", "square", choice.name, choice, seconds=self.situation.timing.square
        )

    def _go(self, here: Open, choice: Choice, *, check: bool = False) -> Instruction:
        seconds = self.situation.enter(here.patch.name)
        more = {"seconds": seconds, "estimates": self._estimates(here), "check": check}
        return self._say("go", "patch", here.patch.name, choice, **more)

    def _out(self, here: Open, choice: Choice, *, unfinished: bool = False) -> Instruction:
        estimates = self._estimates(here)
        if not isfinite(choice.estimate):
            choice = replace(choice, estimate=max(estimates.values(), default=nan))
        more = {"estimates": estimates, "unfinished": unfinished}
        return self._say("leave", "patch", here.patch.name, choice, **more)

    def _expose(self, hole: str, choice: Choice) -> Instruction:
        seconds = self.situation.timing.hole(self.book.the_hole(hole).shots)
        return self._say("expose", "hole", hole, choice, seconds=seconds)

    def _asked_square(self, left: Left) -> Choice | None:
        """A square that someone wants to be opened next."""
        who = ((square.name, self.book.square(square.name).forced) for square in left.squares)
        return next((Choice(name, f"{one} asked for it.") for name, one in who if one), None)

    def _asked_for(self, hole: str) -> Choice:
        known = self.book.hole(hole)
        estimate = self._estimates(self.book.open(known.patch)).get(hole, nan)
        return Choice(hole, f"{known.forced} asked for it.", estimate)

    def _estimates(self, here: Open) -> dict[str, float]:
        told = self.pilot.estimates(here.patch).tolist()
        each = {here.patch.holes[i].name: told[i] for i in here.rest}
        return {name: value for name, value in each.items() if isfinite(value)}

    # The pilot

    def _grid(self, offered: Sequence[Other], left: Left) -> Choice:
        choice = self.pilot.grid(offered, left)
        return self._among("grid", choice, (other.name for other in offered))

    def _square(self, offered: Sequence[Square], left: Left) -> Choice:
        choice = self.pilot.square(offered, left)
        return self._among("square", choice, (square.name for square in offered))

    def _patch(self, offered: Sequence[Open], left: Left) -> Choice:
        choice = self.pilot.patch(offered, left)
        return self._among("patch", choice, (one.patch.name for one in offered))

    def _hole(self, here: Open, left: Left, *, inside: bool) -> Choice:
        choice = self.pilot.hole(here, left, inside=inside)
        return self._among("hole", choice, (here.patch.holes[i].name for i in here.rest))

    def _among(self, what: str, choice: Choice, offered: Iterable[str]) -> Choice:
        if choice.name is not None and choice.name not in set(offered):
            raise ValueError(f"the pilot chose {what} {choice.name!r}, which it was not offered")
        self.rate = choice.rate if isfinite(choice.rate) else self.rate
        return choice


def _no_time(needed: float, seconds: float) -> Choice:
    return Choice(None, f"It would take {needed:.0f} s, and {max(seconds, 0.0):.0f} s are left.")
