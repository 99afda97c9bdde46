"""What goes wrong for a while, comes late, or comes in another order than it happened."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from coaf.cryoem.grid import Patch, Square
from coaf.cryoem.microscope import Score, Survey
from coaf.cryoem.session import collect as collecting
from coaf.cryoem.session import events as ev
from coaf.cryoem.session.collect import Driver, collect
from coaf.cryoem.session.engine import Engine
from coaf.cryoem.session.situation import IN_A_ROW, SHOTS
from coaf.cryoem.simulator.simulator import Simulator
from coaf.cryoem.timing import HOUR
from cryoem.session.hand import Hand, again, known, squares, survey

GOOD = {"ctf": 3.0}


# Nothing works for a while


class Away(Simulator):
    """The stage does not answer for some time."""

    since, until = 600.0, 600.0

    def _answer(self) -> None:
        if self.since <= self.clock < self.until:
            self.wait(5.0)
            raise OSError("the stage does not answer")

    def survey(self, square: str) -> Survey:
        if square not in self._paid:  # what was seen is shown again at no time
            self._answer()
        return super().survey(square)

    def move(self, patch: Patch) -> float:
        self._answer()
        return super().move(patch)


@pytest.mark.parametrize("minutes", [5.0, 30.0, 60.0])
def test_after_an_outage_the_session_goes_on_with_all_that_there_is(minutes: float) -> None:
    def taken(until: float) -> tuple[int, str]:
        microscope = Away(3, squares=4, pixels=False, faults=(), delay="none")
        microscope.until = until
        session = collect(microscope, "take-all", hours=4.0, explore=0.0)
        return session.summary()["exposed"], session.rows[-1]["why"]

    usual, outage = taken(600.0), taken(600.0 + 60.0 * minutes)
    assert outage == usual, "four squares take less than the time there is, outage or not"


def test_squares_that_really_cannot_be_opened_do_not_keep_the_session_from_others() -> None:
    hand = Hand(hours=2.0)
    hand.tell(ev.AtlasSeen, squares=squares("b1", "b2", "b3", "s1", "s2"))
    tried, last = list[tuple[str, float]](), 0.0
    while (told := hand.next()).do != "stop":
        if told.do == "open square" and str(told.name).startswith("b"):
            tried.append((str(told.name), hand.clock))
            hand.tell(ev.Failed, what="square", name=told.name, instruction=told.id)
        else:
            hand.obey(told)
            last = hand.clock if told.do == "expose" else last
    assert len(hand.exposures()) == 8
    before = Counter(name for name, clock in tried if clock < last)
    assert before == {"b1": 4, "b2": 4, "b3": 4}, "when others are opened they have another chance"
    after = [clock for _, clock in tried if clock > last]
    assert 0 < len(after) < 40, "when nothing else is left they are tried, at ever longer intervals"


def test_a_cassette_that_does_not_load_is_tried_again() -> None:
    hand = Hand(grids=("g1", "g2"))
    for _ in range(2 * IN_A_ROW):
        told = hand.until("load grid", "stop")
        assert told.do == "load grid"
        hand.tell(ev.Failed, what="grid", name=told.name, instruction=told.id)
    assert hand.clock > 60.0, "and not at once"
    hand.obey(hand.until("load grid", "stop"))
    assert hand.engine.grid in ("g1", "g2")


def test_a_move_that_worked_forgets_those_that_did_not() -> None:
    hand = Hand(tries=2)
    hand.open("s1")
    hand.tell(ev.Failed, what="move", name="s1p1")
    hand.tell(ev.Moved, patch="s1p1")
    hand.tell(ev.Exposed, hole="s1p1h0")
    hand.tell(ev.Failed, what="move", name="s1p1")
    assert not hand.engine.book.patch("s1p1").lost


class Gone(Simulator):
    """Nothing can be asked of it any more, not even to wait; only its clock goes on."""

    def squares(self) -> list[Square]:
        raise ConnectionError("the socket is closed")

    def wait(self, seconds: float) -> None:
        raise ConnectionError("the socket is closed")


def test_a_microscope_that_cannot_even_wait_is_not_asked_without_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    microscope, slept = Gone(3, squares=1, pixels=False), list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        microscope._clock += seconds

    monkeypatch.setattr(collecting, "sleep", sleep)
    session = collect(microscope, "take-all", hours=0.5)
    assert sum(slept) >= 0.5 * HOUR - 200.0
    assert len(session.rows) < 100


# Shots of a hole: what is said of them, and in which order


def told_late(*steps: tuple[str, Any], shots: int = 1) -> Hand:
    """Events about the first hole of a patch gone to, whose score may come before its report."""
    hand = Hand()
    hand.tell(ev.AtlasSeen, squares=squares("s1"))
    hand.tell(ev.SquareOpened, survey=survey("s1", shots=shots))
    hand.tell(ev.Moved, patch="s1p1")
    for what, number in steps:
        match what:
            case "scored":
                hand.tell(ev.ScoreCame, hole="s1p1h0", shot=number, values=GOOD)
            case "lost":
                hand.tell(ev.ScoreLost, hole="s1p1h0", shot=number)
            case "reported":
                hand.tell(ev.Exposed, hole="s1p1h0", shots=number)
            case "corrected":
                hand.tell(ev.ScoreCorrected, hole="s1p1h0", shot=number, values={"ctf": 9.0})
    return hand


def goes_on(hand: Hand) -> None:
    """The session goes on to its end, scores included, and can be told again."""
    while (told := hand.next()).do != "stop":
        hand.obey(told)
        if told.do == "expose":
            hand.tell(ev.ScoreCame, hole=told.name, values=GOOD)
    assert known(again(hand.engine)) == known(hand.engine)


@pytest.mark.parametrize(
    ("steps", "shots", "scores", "taken"),
    [
        ([("scored", 2), ("reported", 1)], 3, {2}, 3),
        ([("scored", 0), ("reported", 3), ("scored", 2)], 1, {0, 2}, 3),
        ([("scored", 2), ("reported", 3)], 1, {2}, 3),
        ([("scored", 0), ("scored", 1), ("scored", 2)], 1, {0, 1, 2}, 3),
        ([("scored", 1), ("corrected", 1), ("reported", None)], 1, {1}, 2),
        ([("lost", 2), ("scored", 0), ("reported", 3)], 1, {0}, 3),
        ([("scored", 0), ("lost", 1), ("scored", 1)], 1, {0, 1}, 2),
        ([("scored", 0), ("lost", 2), ("reported", 2)], 3, {0}, 2),
    ],
)
def test_scores_and_reports_of_several_shots_come_in_any_order(
    steps: list[tuple[str, Any]], shots: int, scores: set[int], taken: int
) -> None:
    hand = told_late(*steps, shots=shots)
    learning = hand.engine.learning
    assert {shot for _, shot in learning.values} == scores
    assert learning.shots("s1p1h0") == taken
    assert learning.missing == taken - len(scores) - len(learning.lost)
    goes_on(hand)


def test_a_score_that_was_said_to_be_lost_is_lost_whenever_the_shot_is_told() -> None:
    hand = told_late(("lost", 2), ("scored", 0), ("reported", 3))
    assert hand.engine.learning.lost == {("s1p1h0", 2)}
    assert hand.engine.learning.missing == 1


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ([("scored", SHOTS)], f"a score of shot {SHOTS}, which was not taken in this session"),
        ([("scored", -1)], "a score of shot -1, which was not taken in this session"),
        ([("reported", 2), ("scored", 2)], "a score of shot 2, which was not taken"),
        ([("scored", 2), ("reported", 1)], "reported with 1 shots, and 3 have scores"),
    ],
)
def test_shots_that_cannot_be_are_noted(steps: list[tuple[str, Any]], why: str) -> None:
    hand = told_late(*steps)
    notes = hand.engine.notes
    assert next(n.why for n in notes if n.what == "refused").startswith(why)
    goes_on(hand)


# What people and other programs do meanwhile


@pytest.mark.parametrize("pilot", ["take-all", "coaf"])
def test_what_is_told_late_of_a_grid_that_was_taken_out_brings_nobody_back_there(
    pilot: str,
) -> None:
    hand = Hand(pilot=pilot, grids=("g1", "g2"))
    hand.tell(ev.GridLoaded, grid="g1")
    hand.open("s1")
    hand.tell(ev.GridLoaded, grid="g2")
    hand.open("s2")
    hand.tell(ev.Moved, patch="s1p1", seconds=60.0)
    hand.tell(ev.Exposed, hole="s1p1h0", seconds=9.0)
    assert hand.engine.at is None
    assert hand.states("s1p1h0") == ["taken"]
    hand.tell(ev.HolesAdded, survey=survey("s1", {"s1p9": 1}))
    told = hand.until("expose")
    assert str(told.name).startswith("s2")
    assert known(again(hand.engine)) == known(hand.engine)


def test_a_hole_taken_elsewhere_says_where_the_stage_is() -> None:
    hand = Hand()
    hand.open("s1", "s2")
    hand.tell(ev.Moved, patch="s2p1")
    hand.tell(ev.Exposed, hole="s2p1h0")
    hand.tell(ev.Exposed, hole="s1p1h0")
    assert hand.next().do == "go"
    assert hand.engine.left().at == squares("s1")[0]


def test_a_hole_that_was_taken_before_the_stage_came_says_nothing_of_where_it_is() -> None:
    hand = Hand()
    hand.open("s1")
    before = hand.clock
    hand.clock += 100.0
    hand.tell(ev.Moved, patch="s1p2")
    hand.engine.tell(ev.Exposed(id="late", time=before, hole="s1p1h0"))
    assert hand.next().do == "expose"
    assert hand.engine.at == "s1p2"


@pytest.mark.parametrize("what", ["square", "patch"])
def test_what_is_excluded_stays_so_for_what_is_found_there_later(what: str) -> None:
    hand = Hand()
    hand.tell(ev.AtlasSeen, squares=squares("s1"))
    hole = "s1p1h0"
    if what == "square":
        assert hand.next().do == "open square"
        hand.tell(ev.Overridden, who="Ada", do="exclude", what="square", name="s1")
        hand.tell(ev.SquareOpened, survey=survey("s1"))
        hand.tell(ev.HolesAdded, survey=survey("s1", {"s1p3": 1}))
    else:
        hand.tell(ev.SquareOpened, survey=survey("s1", {"s1p0": 1}))
        hand.tell(ev.Overridden, who="Ada", do="exclude", what="patch", name="s1p0")
        more = {"s1p0": survey("s1", {"s1p0": 2}).patches[0].holes[1:]}
        hand.tell(ev.HolesAdded, survey=_added(more))
        hole = "s1p0h1"
    assert hand.next().do == "stop"
    assert hand.states(hole) == ["excluded"]
    name = "s1" if what == "square" else "s1p0"
    hand.tell(ev.Overridden, who="Ada", do="return", what=what, name=name)
    assert hand.states(hole) == ["free"]
    hand.tell(ev.HolesAdded, survey=survey("s1", {"s1p8": 1}))
    assert hand.states("s1p8h0") == ["free"]


def _added(holes: Mapping[str, Any]) -> Survey:
    ((patch, new),) = holes.items()
    whole = survey("s1", {patch: len(new)})
    patches = (Patch(patch, "s1", tuple(new), 0.0, 0.0),)
    return Survey("s1", patches, {patch: whole.features[patch]})


def test_a_square_that_is_asked_for_does_not_wait_for_the_patch_to_be_done() -> None:
    hand = Hand()
    hand.open("s1")
    hand.tell(ev.AtlasSeen, squares=squares("s1", "s2"))
    hand.obey(hand.until("expose"))
    hand.tell(ev.Overridden, who="Ada", do="force", what="square", name="s2")
    assert hand.next().do == "leave"
    told = hand.next()
    assert (told.do, told.name, told.why) == ("open square", "s2", "Ada asked for it.")


def test_a_square_of_another_grid_that_is_asked_for_waits_and_says_so() -> None:
    hand = Hand(grids=("g1", "g2"))
    hand.tell(ev.GridLoaded, grid="g1")
    hand.tell(ev.AtlasSeen, squares=squares("s1"))
    hand.tell(ev.GridLoaded, grid="g2")
    hand.tell(ev.AtlasSeen, squares=squares("s2"))
    hand.tell(ev.Overridden, who="Ada", do="force", what="square", name="s1")
    assert hand.engine.notes[-1].what == "waits"
    assert hand.next().name == "s2"
    hand.tell(ev.GridLoaded, grid="g1")
    assert (told := hand.next()).name == "s1"
    assert told.why == "Ada asked for it."


def test_a_pause_that_outlasts_the_session_ends_it() -> None:
    hand = Hand(hours=0.5)
    hand.open("s1")
    hand.tell(ev.Paused, who="Ada")
    assert hand.next().do == "wait"
    hand.clock = 0.5 * HOUR + 1.0
    assert hand.next().do == "stop"


@pytest.mark.parametrize(("taken", "state"), [(True, "taken"), (False, "free")])
def test_what_is_settled_already_may_be_settled_again(taken: bool, state: str) -> None:
    hand = Hand()
    hand.open("s1")
    hand.obey(hand.next())
    hole = str(hand.next().name)
    hand.tell(ev.Exposed, hole=hole) if taken else hand.tell(ev.Reconciled, hole=hole, taken=False)
    hand.tell(ev.Reconciled, hole=hole, taken=taken)
    assert hand.states(hole) == [state]


# Plans


def test_steps_of_plans_have_names_of_their_own() -> None:
    """Else what is reported of one would pass for what became of another."""
    hand = Hand()
    hand.open("s1", "s2")
    one, other = (hand.engine.plan(hand.clock, name) for name in ("s1", "s2"))
    names = [step.id for plan in (one, other) for step in plan.steps]
    names.append(hand.next().id)
    assert len(set(names)) == len(names)
    told = {e.instruction.id for e in hand.engine.events if isinstance(e, ev.Instructed)}
    assert not told & set(names[:-1])
    for plan in (one, other):
        step = next(step for step in plan.steps if step.do == "expose")
        hand.tell(ev.Failed, what="exposure", name=step.name, beam="off", instruction=step.id)
        assert hand.states(str(step.name)) == ["free"]


def test_a_plan_leaves_alone_what_is_on_another_grid() -> None:
    hand = Hand(grids=("g1", "g2"))
    hand.tell(ev.GridLoaded, grid="g1")
    hand.open("s1")
    first = hand.engine.plan(hand.clock)
    hand.tell(ev.GridLoaded, grid="g2")
    hand.open("s2")
    second = hand.engine.plan(hand.clock)
    assert first in hand.engine.plans
    assert {hole[:2] for hole in second.holes} == {"s2"}


def test_plans_of_nothing_are_not_worked_on() -> None:
    hand = Hand()
    hand.open("s1")
    hand.tell(ev.Paused, who="Ada")
    for _ in range(3):
        assert hand.engine.plan(hand.clock).holes == ()
    assert hand.engine.plans == ()


# What is decided counts in the unit that it was decided in


def test_a_price_in_another_unit_is_not_kept_for_a_visit() -> None:
    """Decided at so many good micrographs a second, worked on for particles."""
    microscope = Simulator(3, squares=12, pixels=False, delay="none", faults=())
    engine = Engine()
    driver = Driver(microscope, engine)
    timing, columns = microscope.timing, microscope.feature_names
    driver.start(ev.Settings(hours=4.0, timing=timing, columns=columns))
    engine.tell(ev.AtlasSeen(id="atlas", time=0.0, squares=tuple(microscope.squares())))
    while engine.now < 1000.0 or engine.at is None:
        driver.step()
    before = engine.next(engine.now).rate
    engine.tell(ev.TargetChanged(id="aim", time=driver.time, reward="particles/1000"))
    after, usual = engine.next(engine.now).rate, engine.pilot.rate  # type: ignore[attr-defined]
    assert after == pytest.approx(usual, rel=0.5)
    assert not 0.3 < after / before < 3.0, "the units are as different as that"


def test_an_error_of_a_pilot_leaves_all_as_the_events_say() -> None:
    from coaf.cryoem.pilots.baselines import EveryHole

    class Stumbles(EveryHole):
        def moved(self, *_: Any) -> None:
            raise KeyError("no such patch")

    engine = Engine(make=lambda settings: Stumbles())
    hand = Hand(engine)
    hand.open("s1")
    before = known(engine)
    with pytest.raises(KeyError):
        hand.tell(ev.Moved, patch="s1p1")
    assert known(engine) == before


def test_scores_of_a_hole_that_nobody_knows_are_written_down() -> None:
    class Odd(Simulator):
        def collect(self) -> list[Score]:
            return [Score("nowhere", 0, 3.0, None, 0.0, 0.0), *super().collect()]

    session = collect(Odd(3, squares=1, pixels=False), "take-all", hours=0.2)
    refused = [row for row in session.rows if row["event"] == "refused"]
    assert refused
    assert "nowhere" in refused[0]["why"]
