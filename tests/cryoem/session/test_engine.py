"""What a session promises, each as a small story."""

from collections.abc import Sequence
from dataclasses import replace
from math import nan
from typing import Any

import numpy as np
import pytest

from coaf.cryoem.grid import Hole, Patch, Square
from coaf.cryoem.microscope import Survey
from coaf.cryoem.pilot import Choice, Left, Open, Scored
from coaf.cryoem.pilots.baselines import EveryHole, FixedCut
from coaf.cryoem.session import events as ev
from coaf.cryoem.session.engine import Engine
from coaf.cryoem.session.situation import IN_A_ROW
from coaf.cryoem.timing import FAST, HOUR
from cryoem.session.hand import COLUMNS, Hand, again, known, squares, survey

BOTH = pytest.mark.parametrize("pilot", ["take-all", "coaf"])


def added(patch: str, hole: str, square: str = "s1") -> Survey:
    """A new hole of a patch."""
    holes = (Hole(hole, 9.0, 0.0),)
    return Survey(square, (Patch(patch, square, holes, 0, 0),), {patch: np.array([[3.0]])})


# The way of a session


@BOTH
def test_squares_are_opened_patches_gone_to_holes_exposed_and_then_it_stops(pilot: str) -> None:
    hand = Hand(pilot=pilot)
    hand.tell(ev.AtlasSeen, squares=squares("s1"))
    told = []
    while (one := hand.next()).do != "stop":
        told.append(one)
        hand.obey(one)
    assert [one.do for one in told[:3]] == ["open square", "go", "expose"]
    assert {one.name for one in told if one.do == "go"} <= {"s1p1", "s1p2"}
    taken = [one.name for one in told if one.do == "expose"]
    assert len(taken) == len(set(taken)) > 0
    assert all(one.why for one in told)
    assert len({one.id for one in told}) == len(told)
    if pilot == "take-all":
        assert taken == ["s1p1h0", "s1p1h1", "s1p2h0", "s1p2h1"]
    else:
        assert all(one.estimate is not None for one in told if one.do == "expose")
        # Four holes and eight hours: time is no matter, and a second is worth nothing.
        assert {one.rate for one in told if one.do == "expose"} == {0.0}


def test_before_it_started_nothing_is_told_or_asked() -> None:
    engine = Engine()
    with pytest.raises(ValueError, match="tell it Started first"):
        engine.next(0.0)
    with pytest.raises(ValueError, match="the first event is Started"):
        engine.tell(ev.TimePassed(id="a", time=0.0))
    with pytest.raises(ValueError, match="policy is 'nobody'"):
        engine.tell(ev.Started(id="a", time=5.0, settings=ev.Settings(pilot="nobody")))
    assert (engine.events, engine.settings, engine.now) == ([], None, 0.0)
    assert Engine.restore(engine.state()).events == []


def test_what_is_told_twice_counts_once() -> None:
    hand = Hand()
    hand.open("s1")
    hand.obey(hand.next())
    hand.next()
    event = ev.Exposed(id="x", time=10.0, hole="s1p1h0", seconds=9.0)
    hand.engine.tell(event)
    before = known(hand.engine)
    hand.engine.tell(event)
    assert known(hand.engine) == before
    with pytest.raises(ValueError, match="event 'x' was told before, and was another"):
        hand.engine.tell(ev.Exposed(id="x", time=11.0, hole="s1p1h0", seconds=9.0))
    with pytest.raises(ValueError, match="has started already"):
        hand.tell(ev.Started, settings=ev.Settings())


def test_time_ends_it_and_after_the_end_there_is_only_stop() -> None:
    hand = Hand(hours=0.1)
    hand.open("s1")
    hand.clock = 300.0
    told = hand.next()
    assert (told.do, told.why) == ("stop", "60 s are left.") or told.do == "go"
    hand.clock = 350.0
    assert hand.until("stop")
    hand.tell(ev.Ended, why="done")
    hand.tell(ev.BudgetChanged, hours=100.0)
    hand.tell(ev.Overridden, who="Ada", do="force", what="hole", name="s1p2h1")
    assert [hand.next().do for _ in range(3)] == ["stop"] * 3
    assert hand.engine.plan(hand.clock).holes == ()
    hand.tell(ev.Exposed, hole="s1p1h0")
    hand.tell(ev.ScoreCame, hole="s1p1h0", values={"ctf": 3.0})
    assert hand.engine.learning.values


def test_a_budget_can_grow_and_shrink() -> None:
    hand = Hand(hours=0.01)
    hand.open("s1")
    assert hand.next().do == "stop"
    hand.tell(ev.BudgetChanged, hours=1.0)
    assert hand.next().do == "go"
    hand.tell(ev.BudgetChanged, hours=None)
    assert hand.engine.left().seconds == np.inf


def test_a_pause_waits_and_goes_on() -> None:
    hand = Hand()
    hand.open("s1")
    hand.tell(ev.Paused, who="Ada")
    told = hand.next()
    assert (told.do, told.seconds > 0.0) == ("wait", True)
    hand.tell(ev.Resumed, who="Ada")
    assert hand.next().do == "go"


def test_a_restarted_client_asks_what_it_was_told_last() -> None:
    hand = Hand()
    hand.open("s1")
    hand.obey(hand.next())
    told = hand.next()
    assert hand.engine.last == told == again(hand.engine).last
    assert hand.engine.events[-1] == ev.Instructed(
        id=hand.engine.events[-1].id, time=hand.clock, instruction=told
    )


# Exposures that may have happened


def test_what_was_told_and_not_reported_is_unknown_until_it_is_settled() -> None:
    hand = Hand()
    hand.open("s1")
    hand.obey(hand.next())
    lost = hand.next()
    hand.next()
    assert hand.states(str(lost.name)) == ["unknown"]
    hand.until("stop")
    assert hand.exposures().count(str(lost.name)) == 1
    hand.tell(ev.Reconciled, hole=lost.name, taken=False)
    assert hand.until("expose").name == lost.name


@pytest.mark.parametrize("way", ["reported", "reconciled", "scored"])
def test_a_late_report_settles_it(way: str) -> None:
    hand = Hand()
    hand.open("s1")
    hand.obey(hand.next())
    hole = str(hand.next().name)
    hand.next()
    if way == "reported":
        hand.tell(ev.Exposed, hole=hole, seconds=7.0)
    elif way == "reconciled":
        hand.tell(ev.Reconciled, hole=hole, taken=True)
    else:
        hand.tell(ev.ScoreCame, hole=hole, values={"ctf": 3.0})
    assert hand.states(hole) == ["taken"]
    hand.until("stop")
    assert hand.exposures().count(hole) == 1
    with pytest.raises(ValueError, match="is taken: there is nothing to settle"):
        hand.tell(ev.Reconciled, hole=hole, taken=False)


@pytest.mark.parametrize("tries", [1, 2])
def test_a_score_knows_better_than_a_report_that_the_beam_was_off(tries: int) -> None:
    hand = Hand(tries=tries)
    hand.open("s1")
    hand.obey(hand.until("go"))
    assert hand.next().name == "s1p1h0"
    hand.tell(ev.Failed, what="exposure", name="s1p1h0", beam="off")
    assert hand.states("s1p1h0") == ["failed" if tries == 1 else "free"]
    hand.tell(ev.ScoreCame, hole="s1p1h0", values={"ctf": 3.0})
    assert hand.states("s1p1h0") == ["taken"]
    assert hand.engine.learning.values[("s1p1h0", 0)] == {"ctf": 3.0}


def test_a_pilot_that_fails_loses_no_time_that_passed() -> None:
    """It is later for everybody who is told the events, too."""

    class Stumbling(EveryHole):
        broken = False

        def hole(self, here: Open, left: Left, *, inside: bool) -> Choice:
            if self.broken:
                raise RuntimeError("no answer")
            return super().hole(here, left, inside=inside)

    hand = Hand(Engine(make=lambda _: Stumbling()), plan_hours=1.0)
    hand.open("s1", "s2")
    hand.engine.plan(hand.clock, "s1")
    Stumbling.broken = True
    with pytest.raises(RuntimeError, match="no answer"):
        hand.engine.next(hand.clock + 4000.0)
    Stumbling.broken = False
    other = Engine(make=lambda _: Stumbling())
    for event in hand.engine.events:
        other.tell(event)
    assert other.now == hand.engine.now >= 4000.0
    assert other.book.hole("s1p1h0").state == hand.engine.book.hole("s1p1h0").state == "free"
    assert other.plans == hand.engine.plans == ()


def test_a_failure_before_the_beam_was_on_is_tried_again_so_often() -> None:
    hand = Hand(tries=3)
    hand.open("s1")
    hand.obey(hand.next())
    ids = set()
    for _ in range(3):
        told = hand.until("expose")
        assert told.name == "s1p1h0"
        ids.add(told.id)
        hand.tell(ev.Failed, what="exposure", name="s1p1h0", beam="off", why="column valve")
    assert len(ids) == 3
    assert hand.states("s1p1h0") == ["failed"]
    hand.until("stop")
    assert hand.exposures().count("s1p1h0") == 3
    hand.tell(ev.Overridden, who="Ada", do="return", what="hole", name="s1p1h0")
    assert hand.until("expose").name == "s1p1h0"


def test_a_failure_that_may_have_exposed_is_not_tried_again() -> None:
    hand = Hand()
    hand.open("s1")
    hand.obey(hand.next())
    hole = str(hand.next().name)
    hand.tell(ev.Failed, what="exposure", name=hole, why="camera did not answer")
    assert hand.states(hole) == ["unknown"]
    hand.until("stop")
    assert hand.exposures().count(hole) == 1


def test_a_failure_reported_after_the_score_changes_nothing() -> None:
    hand = Hand()
    hand.open("s1")
    hand.obey(hand.next())
    hole = str(hand.next().name)
    hand.tell(ev.ScoreCame, hole=hole, values={"ctf": 3.0})
    hand.tell(ev.Failed, what="exposure", name=hole, beam="off")
    assert hand.states(hole) == ["taken"]


@pytest.mark.parametrize("ways", ["exclude", "delete"])
@pytest.mark.parametrize("end", ["off", "unknown", "silence"])
def test_what_is_barred_while_it_is_told_stays_barred(ways: str, end: str) -> None:
    hand = Hand()
    hand.open("s1")
    hand.obey(hand.next())
    hole = str(hand.next().name)
    if ways == "exclude":
        hand.tell(ev.Overridden, who="Ada", do="exclude", what="hole", name=hole)
    else:
        hand.tell(ev.HolesDeleted, holes=(hole,))
    if end == "silence":
        hand.next()
    else:
        hand.tell(ev.Failed, what="exposure", name=hole, beam=end)
    if end != "off":
        assert hand.states(hole) == ["unknown"]
        hand.tell(ev.Reconciled, hole=hole, taken=False)
    assert hand.states(hole) == ["excluded" if ways == "exclude" else "deleted"]
    hand.until("stop")
    assert hand.exposures().count(hole) == 1
    hand.tell(ev.Overridden, who="Ada", do="return", what="hole", name=hole)
    assert hand.states(hole) == ["free" if ways == "exclude" else "deleted"]


# Failures


def test_a_patch_that_cannot_be_reached_is_tried_again_later_and_then_left() -> None:
    hand = Hand(tries=2)
    hand.open("s1")
    goes = []
    while (told := hand.next()).do != "stop":
        if told.do == "go" and told.name == "s1p1":
            goes.append(told)
            hand.tell(ev.Failed, what="move", name="s1p1", why="stage")
        else:
            hand.obey(told)
    assert len(goes) == 2
    assert "s1p2h1" in hand.exposures()
    assert not any(hole.startswith("s1p1") for hole in hand.exposures())
    hand.tell(ev.Overridden, who="Ada", do="return", what="patch", name="s1p1")
    assert (hand.next().name) == "s1p1"


def test_one_failed_move_while_returning_does_not_end_the_session() -> None:
    class Late(EveryHole):
        """Wants holes only when nothing is left to open."""

        def wanted(self, features: Any) -> Any:
            return np.zeros(len(features), dtype=np.bool_)

    hand = Hand(Engine(make=lambda _: Late()))
    hand.open("s1")
    first = hand.until("go")
    assert hand.engine.left().returning
    hand.tell(ev.Failed, what="move", name=str(first.name))
    hand.until("stop")
    assert len(hand.exposures()) == 4


def test_an_offered_patch_that_cannot_be_reached_is_passed() -> None:
    hand = Hand(tries=2)
    hand.tell(ev.PatchOffered, survey=survey("s1", {"p": 2}))
    for _ in range(2):
        told = hand.until("go")
        hand.tell(ev.Failed, what="move", name=str(told.name))
    assert hand.next().do == "leave"
    assert hand.next().do == "stop"


def test_a_square_that_cannot_be_opened_is_not_told_again() -> None:
    hand = Hand()
    hand.tell(ev.AtlasSeen, squares=squares("s1", "s2", "s3"))
    for _ in range(2):
        assert hand.next().name == "s1"
        hand.tell(ev.Failed, what="square", name="s1", why="black image")
    hand.tell(ev.SquareRefused, square="s2", why="broken")
    assert hand.next().name == "s3"
    hand.tell(ev.Overridden, who="Ada", do="return", what="square", name="s1")
    assert hand.next().name == "s1"


def test_failures_in_a_row_call_a_person_once_and_space_tries() -> None:
    hand = Hand(tries=9)
    hand.open("s1")
    told = []
    for _ in range(20):
        told.append(hand.next())
        if told[-1].do == "go":
            hand.tell(ev.Failed, what="move", name=str(told[-1].name))
        else:
            hand.obey(told[-1])
    dos = [one.do for one in told]
    assert dos.count("alarm") == 1
    assert dos.index("alarm") == IN_A_ROW
    assert "row failed" in told[IN_A_ROW].why
    assert all(dos[k - 1] == "wait" for k in range(IN_A_ROW + 1, 20) if dos[k] == "go")
    hand.until("go")
    hand.tell(ev.Moved, patch="s1p1")
    assert hand.until("expose", "wait", "alarm").do == "expose"
    for _ in range(IN_A_ROW):
        hand.tell(ev.Failed, what="exposure", name="s1p1h0", beam="off")
    assert hand.next().do == "alarm", "the next row of failures is another"


@pytest.mark.parametrize(("explore", "last"), [(1e-9, ["ah4", "ah5"]), (0.0, ["bh5", "ch0"])])
def test_holes_are_kept_to_check_by_where_none_would_be_left(
    explore: float, last: list[str]
) -> None:
    """Two of a patch, once an hour, if anything is spent on finding out; they come last."""
    hand = Hand(explore=explore)
    hand.tell(ev.AtlasSeen, squares=squares("s1"))
    hand.tell(ev.SquareOpened, survey=survey("s1", {"a": 6, "b": 6, "c": 1}))
    told = [hand.next()]
    while told[-1].do != "stop":
        hand.obey(told[-1])
        told.append(hand.next())
    taken = hand.exposures()
    assert taken[-2:] == last
    assert len(taken) == 13, "nothing is lost"
    kept = [one.name for one in told if "kept" in one.why]
    assert kept == (["a"] if explore else []), "once an hour"


def test_none_are_kept_of_small_patches_or_at_the_end() -> None:
    for hours, sizes in ((8.0, {"a": 2, "b": 2}), (0.9, {"a": 6, "b": 6})):
        hand = Hand(hours=hours)
        hand.tell(ev.AtlasSeen, squares=squares("s1"))
        hand.tell(ev.SquareOpened, survey=survey("s1", sizes))
        hand.until("stop")
        assert hand.exposures() == sorted(hand.exposures())


def test_leaving_is_no_new_failure() -> None:
    """After a row of failed exposures the rest of the patch is left without another alarm."""
    hand = Hand(tries=1)
    hand.tell(ev.AtlasSeen, squares=squares("s1"))
    hand.tell(ev.SquareOpened, survey=survey("s1", {"a": 3, "b": 1}))
    told = []
    for _ in range(16):
        told.append(hand.next())
        if told[-1].do == "expose":
            hand.tell(ev.Failed, what="exposure", name=str(told[-1].name), beam="off")
        else:
            hand.obey(told[-1])
    assert [one.do for one in told].count("alarm") == 1


# People


@BOTH
def test_excluded_holes_are_not_told_and_can_return(pilot: str) -> None:
    hand = Hand(pilot=pilot)
    hand.open("s1")
    hand.tell(ev.Overridden, who="Ada", do="exclude", what="patch", name="s1p1")
    hand.tell(ev.Overridden, who="Ada", do="exclude", what="hole", name="s1p2h0")
    hand.until("stop")
    assert hand.exposures() == ["s1p2h1"]
    hand.tell(ev.Overridden, who="Ada", do="return", what="square", name="s1")
    assert hand.states("s1p1h0", "s1p1h1", "s1p2h0") == ["free"] * 3


def test_a_forced_hole_is_next_wherever_it_is_and_nothing_else_of_its_patch() -> None:
    hand = Hand(Engine(make=lambda _: FixedCut(0, cut=0.0)))
    hand.tell(ev.AtlasSeen, squares=squares("s1", "s2", "s3"))
    for _ in range(3):  # opens, and wants nothing
        hand.obey(hand.next())
    hand.tell(ev.Overridden, who="Ada", do="force", what="hole", name="s1p1h1")
    told = hand.next()
    assert (told.do, told.name, told.why) == ("go", "s1p1", "Ada asked for it.")
    hand.obey(told)
    assert hand.until("expose").name == "s1p1h1"
    hand.tell(ev.Exposed, hole="s1p1h1")
    assert hand.until("open square").name == "s2"
    assert hand.exposures() == ["s1p1h1"]


def test_a_forced_hole_brings_the_stage_from_another_patch() -> None:
    hand = Hand()
    hand.open("s1")
    hand.obey(hand.next())
    hand.tell(ev.Overridden, who="Ada", do="force", what="hole", name="s1p2h1")
    told = [hand.next() for _ in range(1)]
    hand.obey(told[0])
    hand.obey(hand.next())
    assert (told[0].do, hand.next().name) == ("leave", "s1p2h1")


def test_a_square_can_be_forced_open() -> None:
    hand = Hand()
    hand.tell(ev.AtlasSeen, squares=squares("s1", "s2", "s3"))
    hand.tell(ev.Overridden, who="Ada", do="force", what="square", name="s3")
    told = hand.next()
    assert (told.do, told.name, told.why) == ("open square", "s3", "Ada asked for it.")
    hand.tell(ev.Failed, what="square", name="s3")
    assert hand.next().name == "s3"
    hand.tell(ev.Failed, what="square", name="s3")
    assert hand.next().name == "s1"


class Priced(EveryHole):
    """Knows what a second is worth, and what holes give; leaves a patch after its first hole."""

    def hole(self, here: Open, left: Left, *, inside: bool) -> Choice:
        if len(here.rest) < len(here.patch.holes):
            return Choice(None, "enough", rate=0.02)
        return Choice(here.patch.holes[0].name, "the first", 0.4, rate=0.01)

    def estimates(self, patch: Patch) -> Any:
        return 0.5 + 0.1 * np.arange(len(patch.holes))


def test_every_instruction_says_what_is_expected_and_what_a_second_is_worth() -> None:
    """Also where a person decided, or the clock: by what the pilot said last."""
    hand = Hand(Engine(make=lambda _: Priced()), hours=0.2)
    hand.open("s1", "s2")
    hand.obey(hand.next())
    hand.obey(hand.next())
    leave = hand.next()
    assert (leave.do, leave.estimate, leave.rate) == ("leave", 0.6, 0.02), "the best hole left"
    hand.tell(ev.Overridden, who="Ada", do="force", what="hole", name="s2p1h1")
    for do in ("go", "expose"):
        told = hand.next()
        assert (told.do, told.estimate, told.rate) == (do, 0.6, 0.02)
        hand.obey(told)
    hand.tell(ev.TargetChanged, reward="particles")
    hand.tell(ev.Paused, who="Ada")
    assert hand.next().rate == 0.0, "what a second was worth in another reward says nothing"
    hand.tell(ev.Resumed, who="Ada")
    hand.obey(hand.until("go"))
    hand.clock = 719.0
    late = hand.next()
    assert (late.do, late.estimate, late.rate) == ("leave", 0.6, 0.01)
    assert "It would take" in late.why


def test_what_was_taken_or_may_have_been_cannot_be_forced() -> None:
    hand = Hand()
    hand.open("s1")
    hand.obey(hand.next())
    hand.obey(hand.next())
    hand.next()
    hand.next()
    assert hand.states("s1p1h0", "s1p1h1") == ["taken", "unknown"]
    hand.tell(ev.Overridden, who="Ada", do="force", what="patch", name="s1p1")
    assert hand.states("s1p1h0", "s1p1h1") == ["taken", "unknown"]
    hand.until("stop")
    assert len(hand.exposures()) == 4


@BOTH
def test_holes_are_added_moved_and_deleted(pilot: str) -> None:
    hand = Hand(pilot=pilot)
    hand.open("s1")
    hand.tell(ev.HolesAdded, survey=added("s1p1", "new"))
    hand.tell(ev.HolesAdded, survey=added("s1p3", "newest"))
    hand.tell(ev.HoleMoved, hole="new", x=5.0, y=6.0)
    hand.tell(ev.HolesDeleted, holes=("s1p1h0", "s1p1h1", "s1p2h0", "s1p2h1"))
    assert hand.engine.book.the_hole("new") == Hole("new", 5.0, 6.0)
    hand.until("stop")
    assert set(hand.exposures()) == {"new", "newest"}
    assert len(hand.engine.pilot.estimates(hand.engine.book.patch("s1p1").patch)) == 3


@BOTH
def test_the_stage_is_elsewhere_when_a_square_was_opened(pilot: str) -> None:
    hand = Hand(pilot=pilot)
    hand.open("s1")
    hand.obey(hand.next())
    hand.tell(ev.SquareOpened, survey=survey("s2"))
    assert hand.engine.at is None
    assert hand.next().do == "go"


@BOTH
def test_moves_and_exposures_nobody_asked_for_are_learned_from(pilot: str) -> None:
    hand = Hand(pilot=pilot)
    hand.open("s1")
    hand.tell(ev.Moved, patch="s1p2", seconds=50.0)
    hand.tell(ev.Exposed, hole="s1p2h1", seconds=7.0)
    hand.tell(ev.ScoreCame, hole="s1p2h1", values={"ctf": 3.0})
    assert hand.engine.at == "s1p2"
    assert hand.engine.learning.values == {("s1p2h1", 0): {"ctf": 3.0}}
    hand.tell(ev.Moved, patch="s1p2")  # where nothing may be left
    hand.tell(ev.Overridden, who="Ada", do="exclude", what="patch", name="s1p1")
    hand.tell(ev.Moved, patch="s1p1")
    assert hand.until("go").name == "s1p2"


# Scores


class Diary(EveryHole):
    """Takes all, and keeps what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.scores: list[Scored] = []

    def scored(self, scores: Sequence[Scored]) -> None:
        self.scores += scores


def diary(hand: Hand) -> Diary:
    hand.engine.learning.refresh()
    assert isinstance(hand.engine.pilot, Diary)
    return hand.engine.pilot


def test_scores_are_told_once_with_how_long_they_were_waited_for() -> None:
    hand = Hand(Engine(make=lambda _: Diary()))
    hand.open("s1")
    hand.obey(hand.next())
    hand.obey(hand.next())
    hand.clock += 44.0
    hand.tell(ev.ScoreCame, hole="s1p1h0", values={"ctf": 3.0})
    hand.tell(ev.ScoreCame, hole="s1p1h0", values={"ctf": 3.0})
    hand.tell(ev.ScoreCame, hole="s1p1h0", values={"ctf": 9.0})
    assert diary(hand).scores == [Scored("s1p1h0", 0, 1.0, 45.0)]
    assert ["second score" in note.why for note in hand.engine.notes] == [True]
    hand.tell(ev.ScoreCame, hole="s1p1h0", shot=1, values={"ctf": 3.0})
    assert "shot 1, which was not taken in this session" in hand.engine.notes[-1].why
    assert len(diary(hand).scores) == 1


def test_without_an_exposure_there_is_no_score() -> None:
    """Whoever took the hole, and whether or not that is reported; but for what is no hole."""
    hand = Hand(Engine(make=lambda _: Diary()))
    hand.open("s1")
    hand.tell(ev.Overridden, who="Ada", do="exclude", what="hole", name="s1p1h1")
    hand.tell(ev.HolesDeleted, holes=("s1p2h1",))
    for hole in ("s1p1h0", "s1p1h1", "s1p2h1"):
        hand.tell(ev.ScoreCame, hole=hole, values={"ctf": 3.0})
    assert hand.states("s1p1h0", "s1p1h1", "s1p2h1") == ["taken", "taken", "deleted"]
    assert [score.hole for score in diary(hand).scores] == ["s1p1h0", "s1p1h1"]
    assert [note.hole for note in hand.engine.notes] == ["s1p2h1"]


def test_a_report_that_comes_after_its_score_counts() -> None:
    """What it took, how many shots, and what they were taken under; once."""
    late, timely = (Hand(Engine(make=lambda _: Diary())) for _ in range(2))
    report = {"hole": "s1p1h0", "seconds": 9.0, "shots": 2, "known": {"defocus": -1.5}}
    for hand in (late, timely):
        hand.tell(ev.SquareOpened, survey=survey("s1", shots=2))
        hand.obey(hand.next())
        hand.next()
    taken, scored = timely.clock, timely.clock + 40.0
    timely.engine.tell(ev.Exposed(id="taken", time=taken, **report))  # type: ignore[arg-type]
    score = ev.ScoreCame(id="score", time=scored, hole="s1p1h0", shot=1, values={"ctf": 3.0})
    timely.engine.tell(score)
    late.engine.tell(score)
    assert late.states("s1p1h0") == ["taken"]
    late.engine.tell(ev.Exposed(id="taken", time=taken, **report))  # type: ignore[arg-type]
    late.engine.next(scored)
    assert diary(late).scores == diary(timely).scores
    assert diary(late).scores[0].circumstances == {"defocus": -1.5}
    assert late.engine.timing == timely.engine.timing
    assert late.engine.learning.missing == timely.engine.learning.missing == 1
    late.engine.tell(ev.Exposed(id="again", time=scored, **report))  # type: ignore[arg-type]
    assert [note.why for note in late.engine.notes] == ["reported as exposed a second time"]


def test_a_failure_that_is_reported_twice_counts_once() -> None:
    """The second report comes when the hole was told again, and may just be exposed."""
    hand = Hand(tries=3)
    hand.open("s1")
    hand.obey(hand.next())
    first = hand.next()
    failed: dict[str, Any] = {"what": "exposure", "name": first.name, "beam": "off"}
    hand.tell(ev.Failed, **failed, instruction=first.id)
    second = hand.next()
    assert (second.name, second.id != first.id) == (first.name, True)
    hand.tell(ev.Failed, **failed, instruction=first.id)
    assert hand.states(str(first.name)) == ["told"]
    assert f"{first.id!r} was reported before" in hand.engine.notes[-1].why
    assert hand.next().name != first.name
    assert hand.states(str(first.name)) == ["unknown"]


def test_what_was_taken_cannot_be_instructed() -> None:
    hand = Hand()
    hand.open("s1")
    hand.obey(hand.next())
    told = hand.next()
    hand.obey(told)
    with pytest.raises(ValueError, match="hole 's1p1h0' is taken: it is not to be exposed"):
        hand.tell(ev.Instructed, instruction=told)


SHOTS: Any = 2.0
HALF = replace(
    survey(),
    patches=tuple(
        replace(p, holes=tuple(replace(h, shots=SHOTS) for h in p.holes)) for p in survey().patches
    ),
)


@pytest.mark.parametrize(
    ("kind", "entries", "wrong"),
    [
        (ev.AtlasSeen, {"squares": (Square("s", nan, 0.0),)}, "x of squares"),
        (ev.SquareOpened, {"survey": HALF}, "shots of holes"),
        (ev.ScoreCame, {"hole": "h", "shot": 0.0}, "shot of a 'scored' event"),
        (ev.Failed, {"what": "expose"}, "what of a 'failed' event"),
        (
            ev.Overridden,
            {"who": "Ada", "do": "forget", "what": "hole", "name": "h"},
            "do of a 'overridden' event",
        ),
    ],
)
def test_what_could_not_be_read_again_is_refused(
    kind: type[ev.Event], entries: dict[str, Any], wrong: str
) -> None:
    hand = Hand()
    before = known(hand.engine)
    with pytest.raises(ValueError, match=wrong):
        hand.engine.tell(kind(id="a", time=0.0, **entries))
    assert known(hand.engine) == before


def test_ids_of_others_may_look_like_its_own() -> None:
    hand = Hand()
    hand.open("s1")
    count = len(hand.engine.events)
    for k in range(4):
        hand.engine.tell(ev.TimePassed(id=f"engine {count + 4 + k}", time=hand.clock))
    for _ in range(4):
        hand.next()
    assert len({event.id for event in hand.engine.events}) == len(hand.engine.events)


def test_a_patch_is_offered_now_or_never() -> None:
    hand = Hand()
    hand.tell(ev.PatchOffered, survey=survey("s1", {"a": 2}))
    hand.tell(ev.PatchOffered, survey=survey("s1", {"b": 2}))
    hand.until("stop")
    assert {hole[0] for hole in hand.exposures()} == {"b"}


def test_pilots_are_told_what_shots_were_taken_under() -> None:
    """By the score, or by the exposure for all its shots; also when all is told again."""
    hand = Hand(Engine(make=lambda _: Diary()))
    hand.open("s1")
    hand.obey(hand.next())
    hand.next()
    known = {"defocus": -1.5, "tilt": 30.0, "dose": 40.0}
    hand.tell(ev.Exposed, hole="s1p1h0", known=known)
    hand.tell(ev.ScoreCame, hole="s1p1h0", values={"ctf": 3.0, "defocus": -1.4, "place": None})
    told = {"defocus": -1.4, "tilt": 30.0}
    assert [dict(score.circumstances) for score in diary(hand).scores] == [told]
    assert hand.engine.learning.score(("s1p1h0", 0)).more == {**told, "dose": 40.0}
    hand.tell(ev.ScoreCorrected, hole="s1p1h0", values={"ctf": 9.0})
    hand.next()
    again = [Scored("s1p1h0", 0, 0.0, 1.0, {"defocus": -1.5, "tilt": 30.0})]
    assert diary(hand).scores == again


def test_a_correction_is_told_from_the_start_and_past_instructions_stay() -> None:
    hand = Hand(Engine(make=lambda _: Diary()))
    hand.open("s1")
    hand.obey(hand.next())
    hand.obey(hand.next())
    hand.tell(ev.ScoreCame, hole="s1p1h0", values={"ctf": 3.0})
    before = list(hand.engine.events)
    hand.tell(ev.ScoreCorrected, hole="s1p1h0", values={"ctf": 9.0})
    hand.next()
    assert [score.reward for score in diary(hand).scores] == [0.0]
    assert hand.engine.events[: len(before)] == before
    hand.tell(ev.TargetChanged, reward="ctf<10")
    told = hand.next()
    assert [score.reward for score in diary(hand).scores] == [1.0]
    assert told.reward == "ctf<10"
    with pytest.raises(ValueError, match="rubbish"):
        hand.tell(ev.TargetChanged, reward="rubbish")
    assert hand.engine.settings is not None
    assert hand.engine.settings.reward == "ctf<10"


def test_a_score_that_cannot_be_is_refused_and_one_that_is_lost_is_no_error() -> None:
    hand = Hand(Engine(make=lambda _: Diary()))
    hand.open("s1")
    hand.obey(hand.next())
    hand.obey(hand.next())
    hand.tell(ev.ScoreLost, hole="s1p1h0")
    hand.tell(ev.ScoreCame, hole="s1p1h0", values={"ctf": -3.0})
    assert diary(hand).scores == []
    assert [note.what for note in hand.engine.notes] == ["refused"]
    hand.tell(ev.ScoreCorrected, hole="s1p1h0", values={"ctf": 3.0})
    hand.next()
    assert [score.reward for score in diary(hand).scores] == [1.0]


def listening(count: int) -> Hand:
    """Holes taken 10 s apart, of which the first ten were scored at once."""
    hand = Hand()
    hand.tell(ev.SquareOpened, survey=survey("s1", {"p": count}))
    hand.tell(ev.Moved, patch="p")
    for k in range(count):
        hand.clock = 100.0 + 10.0 * k
        hand.tell(ev.Exposed, hole=f"ph{k}")
        if k < 10:
            hand.tell(ev.ScoreCame, hole=f"ph{k}", values={"ctf": 3.0})
    return hand


def test_scores_known_to_be_lost_are_not_waited_for() -> None:
    """Nobody is called for them, nor counted as missing; others are missed as before."""
    for lost, silent in ((range(10, 20), []), (range(10, 15), ["silent"]), ((), ["silent"])):
        hand = listening(20)
        for k in lost:
            hand.tell(ev.ScoreLost, hole=f"ph{k}")
        hand.clock += 3600.0
        hand.tell(ev.TimePassed)
        alarms = hand.engine.guard.alarms
        assert [alarm.kind for alarm in alarms] == silent
        assert all(alarm.since == 10 + len(lost) for alarm in alarms)
        assert hand.engine.learning.missing == 10 - len(lost)
        assert known(again(hand.engine)) == known(hand.engine)


def test_a_score_that_was_thought_lost_counts_when_it_comes() -> None:
    hand = listening(11)
    hand.tell(ev.ScoreLost, hole="ph10")
    assert hand.engine.learning.missing == 0
    hand.tell(ev.ScoreCame, hole="ph10", values={"ctf": 3.0})
    assert ("ph10", 0) in hand.engine.learning.values
    assert hand.engine.learning.missing == 0
    assert hand.engine.notes == []
    hand.tell(ev.ScoreLost, hole="ph10")
    assert [note.why for note in hand.engine.notes] == ["the score of shot 0 is lost, and is here"]


def test_the_loss_of_a_score_says_of_no_hole_that_it_was_taken() -> None:
    """It counts once an exposure is reported; there may be none."""
    hand = Hand()
    hand.open("s1")
    hand.obey(hand.next())
    assert hand.next().name == "s1p1h0"
    for hole in ("s1p2h0", "s1p1h0"):
        hand.tell(ev.ScoreLost, hole=hole)
    assert hand.states("s1p1h0", "s1p2h0") == ["told", "free"]
    assert hand.engine.learning.missing == 0
    hand.tell(ev.Exposed, hole="s1p1h0")
    assert hand.engine.learning.lost == {("s1p1h0", 0)}
    hand.tell(ev.ScoreLost, hole="s1p1h0", shot=1)
    why = "a score of shot 1, which was not taken in this session"
    assert [note.why for note in hand.engine.notes] == [why]
    assert hand.engine.learning.missing == 0


def test_several_shots_of_a_hole_are_scored_each() -> None:
    hand = Hand(Engine(make=lambda _: Diary()))
    hand.tell(ev.SquareOpened, survey=survey("s1", shots=3))
    hand.obey(hand.next())
    hand.obey(hand.next())
    for shot in (2, 0, 1, 3):
        hand.tell(ev.ScoreCame, hole="s1p1h0", shot=shot, values={"ctf": 3.0})
    assert [score.shot for score in diary(hand).scores] == [2, 0, 1]
    hand.tell(ev.Exposed, hole="s1p1h1", shots=1)
    hand.tell(ev.ScoreCame, hole="s1p1h1", shot=1, values={"ctf": 3.0})
    assert len(diary(hand).scores) == 3


# Times


def test_maintenance_says_nothing_of_how_long_things_take() -> None:
    hand = Hand()
    hand.open("s1")
    before = hand.engine.timing
    hand.tell(ev.Upkeep, seconds=900.0)
    hand.tell(ev.TimePassed)
    assert hand.engine.timing == before
    hand.tell(ev.Moved, patch="s1p1", seconds=100.0)
    hand.tell(ev.Exposed, hole="s1p1h0", seconds=20.0)
    assert hand.engine.timing.enter > before.enter
    assert hand.engine.timing.expose > before.expose


# What cannot be


@pytest.mark.parametrize(
    ("kind", "entries", "said"),
    [
        (ev.Moved, {"patch": "nowhere", "seconds": 50.0}, "no patch 'nowhere'"),
        (ev.Exposed, {"hole": "none", "seconds": 5.0}, "no hole 'none'"),
        (ev.ScoreCame, {"hole": "none"}, "no hole 'none'"),
        (ev.ScoreLost, {"hole": "none"}, "no hole 'none'"),
        (ev.HoleMoved, {"hole": "none", "x": 0.0, "y": 0.0}, "no hole 'none'"),
        (ev.HolesDeleted, {"holes": ("s1p1h1", "none")}, "no hole 'none'"),
        (ev.SquareRefused, {"square": "none", "why": ""}, "no square 'none'"),
        (ev.Failed, {"what": "move", "name": "s1"}, "no patch 's1'"),
        (ev.Failed, {"what": "square", "name": "none"}, "no square 'none'"),
        (ev.Failed, {"what": "exposure", "name": "none"}, "no hole 'none'"),
        (ev.Reconciled, {"hole": "s1p2h0", "taken": True}, "is free: there is nothing to settle"),
        (ev.PlanClosed, {"plan": "plan 9"}, "no plan 'plan 9'"),
        (ev.PlanSuperseded, {"plan": "plan 9"}, "no plan 'plan 9'"),
        (ev.TargetChanged, {"reward": "beauty"}, "beauty"),
        (
            ev.Overridden,
            {"who": "Ada", "do": "force", "what": "patch", "name": "s1p1h0"},
            "no patch 's1p1h0'",
        ),
        (ev.SquareOpened, {"survey": survey("s1"), "seconds": 500.0}, "is known already"),
        (ev.HolesAdded, {"survey": added("fine", "s1p1h0")}, "is known already"),
        (ev.HolesAdded, {"survey": added("s1p1", "new", "s2")}, "is said to be of"),
        (
            ev.HolesAdded,
            {"survey": Survey("s1", added("x", "new").patches, {})},
            "features of patch 'x'",
        ),
        (
            ev.HolesAdded,
            {"survey": Survey("s1", added("x", "new").patches, {"x": np.zeros((1, 7))})},
            "with 1 columns",
        ),
        (
            ev.SquareOpened,
            {
                "survey": Survey(
                    "s9",
                    (*survey("s9").patches, *added("p", "s9p1h0", "s9").patches),
                    {**survey("s9").features, "p": np.zeros((1, 1))},
                ),
                "seconds": 500.0,
            },
            "hole 's9p1h0' is there more than once",
        ),
        (ev.PatchOffered, {"survey": survey("s9")}, "2 patches are offered; offer them singly"),
    ],
)
@BOTH
def test_an_error_leaves_all_as_it_was(
    pilot: str, kind: type[ev.Event], entries: dict[str, Any], said: str
) -> None:
    hand = Hand(pilot=pilot, plan_hours=1.0)
    hand.open("s1")
    hand.engine.plan(hand.clock, "s1p2")
    hand.tell(ev.Overridden, who="Ada", do="return", what="square", name="s1")
    hand.engine.tell(ev.PlanClosed(id="close", time=hand.clock, plan=hand.engine.plans[0].id))
    hand.obey(hand.next())
    hand.next()
    before, now = known(hand.engine), hand.clock
    hand.clock = 1e6
    with pytest.raises(ValueError, match=said):
        hand.tell(kind, **entries)
    assert known(hand.engine) == before
    assert hand.engine.next(now) == again_next(before, now)


def again_next(before: tuple[object, ...], now: float) -> object:
    return Engine.restore(str(before[0])).next(now)


class Wrong(EveryHole):
    """Chooses what it was not offered."""

    def __init__(self, level: str) -> None:
        super().__init__()
        self.level = level

    def square(self, squares: Sequence[Square], left: Left) -> Choice:
        return Choice("elsewhere") if self.level == "square" else super().square(squares, left)

    def patch(self, patches: Sequence[Open], left: Left) -> Choice:
        return Choice("elsewhere") if self.level == "patch" else super().patch(patches, left)

    def hole(self, here: Open, left: Left, *, inside: bool) -> Choice:
        wrong = self.level == "hole"
        return Choice("elsewhere") if wrong else super().hole(here, left, inside=inside)


@pytest.mark.parametrize("level", ["square", "patch", "hole"])
def test_a_pilot_that_chooses_something_else_is_refused(level: str) -> None:
    hand = Hand(Engine(make=lambda _: Wrong(level)))
    hand.tell(ev.AtlasSeen, squares=squares("s1"))
    with pytest.raises(ValueError, match=f"chose {level} 'elsewhere', which it was not offered"):
        hand.until("stop")


class Restless(EveryHole):
    """Goes to patches, and there takes nothing."""

    def hole(self, here: Open, left: Left, *, inside: bool) -> Choice:
        return Choice(None, "no") if inside else super().hole(here, left, inside=inside)


def test_a_pilot_that_takes_nothing_ends_without_a_budget_too() -> None:
    hand = Hand(Engine(make=lambda _: Restless()), hours=None)
    hand.open("s1")
    hand.until("stop")
    assert hand.exposures() == []


class Nowhere(EveryHole):
    """Has a rate that is no number."""

    def hole(self, here: Open, left: Left, *, inside: bool) -> Choice:
        return Choice(here.patch.holes[here.rest[0]].name, "why", np.nan, np.nan)


def test_numbers_of_a_pilot_that_are_none_are_left_out() -> None:
    hand = Hand(Engine(make=lambda _: Nowhere()))
    hand.open("s1")
    told = hand.until("expose")
    assert (told.estimate, told.rate) == (None, 0.0)
    assert again(hand.engine).last == told


class Picky(EveryHole):
    """Leaves a square when it has seen one patch of it."""

    def patch(self, patches: Sequence[Open], left: Left) -> Choice:
        if left.returning or len(patches) > 1:
            return Choice(patches[0].patch.name)
        return Choice(None, "enough")


def test_a_square_may_have_the_name_of_a_patch() -> None:
    hand = Hand(Engine(make=lambda _: Picky()))
    hand.tell(ev.AtlasSeen, squares=squares("1"))
    hand.tell(ev.SquareOpened, survey=survey("1", {"2": 1, "1": 1}))
    for _ in range(3):
        hand.obey(hand.next())
    told = hand.next()
    assert (told.do, told.level, told.name) == ("leave", "square", "1")
    assert hand.until("expose").name == "1h0"


def test_columns_are_those_of_the_settings() -> None:
    hand = Hand(columns=())
    hand.tell(ev.SquareOpened, survey=survey("s1"))
    assert hand.next().do == "go"
    assert COLUMNS == ("prediction",)


# Grids


def test_grids_are_loaded_in_order_and_what_is_on_others_is_not_told() -> None:
    hand = Hand(grids=("A", "B", "C"), pilot="take-all")
    assert (hand.next().do, hand.next().name) == ("load grid", "A")
    hand.tell(ev.GridLoaded, grid="A")
    hand.tell(ev.AtlasSeen, squares=squares("a1", "a2"))
    hand.obey(hand.next())
    hand.tell(ev.SquareRefused, square="a2", why="torn")
    hand.tell(ev.Overridden, who="Ada", do="exclude", what="patch", name="a1p2")
    told = hand.until("load grid")
    assert told.name == "B"
    assert [hole[:4] for hole in hand.exposures()] == ["a1p1", "a1p1"]
    for _ in range(2):
        assert hand.next().name == "B"
        hand.tell(ev.Failed, what="grid", name="B", why="the loader is stuck")
    told = hand.next()
    assert (told.do, told.name) == ("load grid", "C")
    hand.tell(ev.GridLoaded, grid="C")
    hand.tell(ev.Overridden, who="Ada", do="force", what="patch", name="a1p2")
    hand.tell(ev.Overridden, who="Ada", do="return", what="square", name="a2")
    assert hand.engine.left().patches == ()
    hand.tell(ev.AtlasSeen, squares=squares("c1"))
    hand.until("stop")
    assert {hole[:2] for hole in hand.exposures()} == {"a1", "c1"}
    with pytest.raises(ValueError, match="square 'a1' is on grid 'A', and 'C' is loaded"):
        hand.tell(ev.AtlasSeen, squares=squares("a1"))


def test_a_grid_loaded_by_hand_is_none_of_the_list() -> None:
    hand = Hand(grids=("A", "B"))
    hand.tell(ev.GridLoaded, grid="spare")
    hand.open("s1")
    assert hand.until("load grid").name == "A"


def test_no_grid_that_can_be_loaded_is_the_end() -> None:
    hand = Hand(grids=("A",), tries=2)
    for _ in range(2):
        assert hand.next().name == "A"
        hand.tell(ev.Failed, what="grid", name="A")
    assert hand.next().do == "stop"


def test_a_grid_is_not_loaded_when_nothing_could_be_taken_there() -> None:
    timing = replace(FAST, load=600.0, atlas=900.0)
    needed = (1500.0 + timing.square + timing.enter + timing.hole()) / HOUR
    for hours, do in ((needed * 0.99, "stop"), (needed * 1.01, "load grid")):
        assert Hand(grids=("A", "B"), timing=timing, hours=hours).next().do == do


def test_the_only_grid_may_be_named_after_it_was_seen() -> None:
    hand = Hand()
    hand.open("s1")
    hand.tell(ev.GridLoaded, grid="A")
    assert hand.next().do == "go" or hand.engine.left().patches


@pytest.mark.parametrize("any_order", [False, True])
def test_all_is_told_again_at_once_to_whom_order_does_not_matter(any_order: bool) -> None:
    """But for the visit under way: its price was that of then."""
    told: list[list[str]] = []

    class Listener(EveryHole):
        def __init__(self) -> None:
            super().__init__()
            self.any_order = any_order
            told.clear()

        def moved(self, here: Open, left: Left, rate: float | None) -> None:
            told.append([here.patch.name])

        def scored(self, scores: Sequence[Scored]) -> None:
            told.append([score.hole for score in scores])

    hand, visits = Hand(Engine(make=lambda settings: Listener())), list[tuple[str, list[str]]]()
    hand.open("s1", "s2")
    for _ in range(3):
        patch = str(hand.until("go").name)
        visits.append((patch, [f"{patch}h0", f"{patch}h1"]))
        hand.tell(ev.Moved, patch=patch)
        for hole in visits[-1][1]:
            assert hand.next().name == hole
            hand.tell(ev.Exposed, hole=hole)
            hand.tell(ev.ScoreCame, hole=hole, shot=0, values={"ctf": 3.0})
    hand.tell(ev.ScoreCorrected, hole="s1p1h0", shot=0, values={"ctf": 9.0})
    hand.next()
    if any_order:
        (first, some), (second, more), (last, rest) = visits
        assert told == [[first], [second], some + more, [last], rest]
    else:
        assert told == [one for patch, holes in visits for one in ([patch], holes)]
