"""What a session promises, each as a small story."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from coaf.cryoem.grid import Hole, Patch, Square
from coaf.cryoem.microscope import Survey
from coaf.cryoem.pilot import Choice, Left, Open, Scored
from coaf.cryoem.pilots.baselines import EveryHole, FixedCut
from coaf.cryoem.session import events as ev
from coaf.cryoem.session.engine import Engine
from coaf.cryoem.session.situation import DOUBT
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


def test_a_score_of_a_shot_that_a_hole_does_not_have_settles_nothing() -> None:
    hand = Hand()
    hand.open("s1")
    hand.obey(hand.next())
    hole = str(hand.next().name)
    hand.tell(ev.ScoreCame, hole=hole, shot=3, values={"ctf": 3.0})
    assert hand.states(hole) == ["told"]
    assert [note.what for note in hand.engine.notes] == ["refused"]


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
    assert dos.index("alarm") == DOUBT
    assert "row failed" in told[DOUBT].why
    assert all(dos[k - 1] == "wait" for k in range(DOUBT + 1, 20) if dos[k] == "go")
    hand.until("go")
    hand.tell(ev.Moved, patch="s1p1")
    assert hand.until("expose", "wait", "alarm").do == "expose"
    for _ in range(DOUBT):
        hand.tell(ev.Failed, what="exposure", name="s1p1h0", beam="off")
    assert hand.next().do == "alarm", "the next row of failures is another"


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
    assert hand.next().name == "s1"


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
    hand.tell(ev.ScoreCame, hole="s1p2h0", values={"ctf": 3.0})
    assert "not taken in this session" in hand.engine.notes[-1].why
    assert len(diary(hand).scores) == 1


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
    hand = Hand(grids=("A", "B"))
    for name in ("A", "B"):
        assert hand.next().name == name
        hand.tell(ev.Failed, what="grid", name=name)
    assert hand.next().do == "stop"


def test_the_only_grid_may_be_named_after_it_was_seen() -> None:
    hand = Hand()
    hand.open("s1")
    hand.tell(ev.GridLoaded, grid="A")
    assert hand.next().do == "go" or hand.engine.left().patches
