"""Plans: lists of holes, decided before any of their scores comes."""

import json
from typing import Any

import pytest

from coaf.cryoem.pilots.baselines import FixedCut
from coaf.cryoem.pilots.microscopist import THUMB
from coaf.cryoem.session import events as ev
from coaf.cryoem.session.engine import Engine
from cryoem.session.hand import Hand, again, known, squares, survey

BOTH = pytest.mark.parametrize("pilot", ["take-all", "coaf"])


def begun(pilot: str = "take-all", **settings: Any) -> Hand:
    hand = Hand(pilot=pilot, **settings)
    hand.open("s1", "s2")
    return hand


@BOTH
def test_a_plan_has_all_holes_of_its_scope_in_order(pilot: str) -> None:
    hand = begun(pilot)
    plan = hand.engine.plan(hand.clock, "s1p2")
    assert sorted(plan.holes) == ["s1p2h0", "s1p2h1"]
    assert [step.do for step in plan.steps] == ["go", "expose", "expose", "leave"]
    assert plan.scope == "s1p2"
    assert {h[:2] for h in hand.engine.plan(hand.clock, "s2").holes} == {"s2"}
    assert len(hand.engine.plan(hand.clock).holes) == 8
    if pilot == "take-all":
        assert plan.holes == ("s1p2h0", "s1p2h1")
    with pytest.raises(ValueError, match="no square 'nowhere'"):
        hand.engine.plan(hand.clock, "nowhere")


@BOTH
def test_planning_changes_nothing_but_the_events_it_tells(pilot: str) -> None:
    hand, other = begun(pilot), begun(pilot)
    for one in (hand, other):
        one.obey(one.next())
        one.obey(one.next())
        one.tell(ev.ScoreCame, hole=one.exposures()[0], values={"ctf": 3.0})
        one.next()  # told, and not reported
    engine = hand.engine
    patch = engine.book.patch("s1p1").patch
    before = str(engine.pilot.estimates(patch).tolist()), json.dumps(engine.pilot.state())
    rest = engine.timing, engine.at, engine.last, json.dumps(engine.guard.state()), engine.notes
    count = len(engine.events)
    plan = engine.plan(hand.clock, "s2")
    assert [event.kind for event in engine.events[count:]] == ["plan given"]
    after = str(engine.pilot.estimates(patch).tolist()), json.dumps(engine.pilot.state())
    assert before == after
    guard = json.dumps(engine.guard.state())
    assert rest == (engine.timing, engine.at, engine.last, guard, engine.notes)
    assert hand.states(hand.exposures()[-1]) == ["told"], "it makes nothing unknown"
    hand.tell(ev.PlanClosed, plan=plan.id)
    other.clock = hand.clock
    ours, theirs = hand.next(), other.next()
    assert (ours.do, ours.name, ours.estimate) == (theirs.do, theirs.name, theirs.estimate)
    assert known(again(engine)) == known(engine)


def test_planned_holes_are_not_told_until_the_plan_is_closed() -> None:
    hand = begun()
    plan = hand.engine.plan(hand.clock)
    assert hand.states(*plan.holes) == ["planned"] * 8
    told = hand.next()
    assert (told.do, told.why) == ("wait", "All that is worth it is planned.")
    for hole in plan.holes[:3]:
        hand.tell(ev.Exposed, hole=hole)
    hand.tell(ev.PlanClosed, plan=plan.id)
    hand.until("stop")
    assert sorted(hand.exposures()) == sorted(plan.holes[3:])


def test_a_plan_that_was_worked_through_is_waited_for_no_more() -> None:
    hand = begun()
    plan = hand.engine.plan(hand.clock)
    for hole in plan.holes:
        hand.tell(ev.Exposed, hole=hole)
    assert hand.next().do == "stop"
    hand.tell(ev.PlanClosed, plan=plan.id)


def test_a_later_plan_takes_the_place_of_those_it_touches() -> None:
    hand = begun()
    first, second = (hand.engine.plan(hand.clock, scope) for scope in ("s1", "s2"))
    hand.tell(ev.Exposed, hole="s1p1h0")
    third = hand.engine.plan(hand.clock, "s1p1")
    assert {plan.id for plan in hand.engine.plans} == {second.id, third.id}
    assert third.holes == ("s1p1h1",)
    assert hand.states("s1p2h0", "s2p1h0") == ["free", "planned"]
    gone = [e.plan for e in hand.engine.events if isinstance(e, ev.PlanSuperseded)]
    assert gone == [first.id]
    hand.tell(ev.PlanClosed, plan=first.id)  # its client need not know
    assert len({first.id, second.id, third.id}) == 3


def test_plans_expire_and_a_late_report_still_counts() -> None:
    hand = begun(plan_hours=1.0)
    plan = hand.engine.plan(hand.clock, "s1")
    hand.clock += 3599.0
    hand.tell(ev.TimePassed)
    assert hand.states("s1p1h0") == ["planned"]
    hand.clock += 2.0
    hand.tell(ev.Exposed, hole="s1p1h1")
    assert hand.states("s1p1h0", "s1p1h1") == ["free", "taken"]
    assert hand.engine.plans == ()
    hand.tell(ev.ScoreCame, hole="s1p1h1", values={"ctf": 3.0})
    assert hand.engine.learning.values
    hand.tell(ev.PlanClosed, plan=plan.id)
    assert known(again(hand.engine)) == known(hand.engine)


def test_a_plan_for_a_place_that_is_not_there_changes_nothing() -> None:
    hand = begun(plan_hours=1.0)
    hand.engine.plan(hand.clock, "s1")
    before = known(hand.engine)
    with pytest.raises(ValueError, match="nowhere"):
        hand.engine.plan(hand.clock + 4000.0, "nowhere")
    assert known(hand.engine) == before == known(again(hand.engine))


def test_a_plan_that_is_worked_through_does_not_expire() -> None:
    """Whatever is reported of any of its holes says that somebody is at it."""
    hand = begun(plan_hours=1.0)
    hand.engine.plan(hand.clock, "s1")
    hand.clock += 3000.0
    hand.tell(ev.Exposed, hole="s1p1h1")
    hand.clock += 3000.0
    hand.tell(ev.Failed, what="exposure", name="s1p1h0", beam="off")
    hand.clock += 3590.0
    hand.tell(ev.TimePassed)
    assert hand.states("s1p2h0", "s1p2h1") == ["planned"] * 2
    hand.clock += 20.0
    hand.tell(ev.TimePassed)
    assert hand.states("s1p2h0", "s1p2h1") == ["free"] * 2


# Advice


def test_advice_is_a_plan_whose_holes_are_advised() -> None:
    hand, other = begun(), begun()
    advice, plan = hand.engine.plan(5.0, advice=True), other.engine.plan(5.0)
    assert (advice.advice, plan.advice) == (True, False)
    assert advice.holes == plan.holes
    assert hand.states(*advice.holes) == ["advised"] * 8
    assert hand.next().do == "wait"
    assert hand.states(*advice.holes) == ["advised"] * 8, "nothing becomes unknown"
    assert known(again(hand.engine)) == known(hand.engine)


@pytest.mark.parametrize("end", ["closed", "superseded", "expired"])
def test_advice_that_nobody_followed_is_in_play_again(end: str) -> None:
    hand = begun(plan_hours=1.0)
    advice = hand.engine.plan(hand.clock, "s1", advice=True)
    hand.tell(ev.Exposed, hole="s1p1h1")
    if end == "closed":
        hand.tell(ev.PlanClosed, plan=advice.id)
    elif end == "superseded":
        hand.engine.plan(hand.clock, "s1p1")
    else:
        hand.clock += 3700.0
        hand.tell(ev.TimePassed)
    assert hand.states("s1p1h1", "s1p2h0") == ["taken", "free"]
    hand.tell(ev.Exposed, hole="s1p2h0")
    assert hand.states("s1p2h0") == ["taken"], "a late report counts"


@pytest.mark.parametrize("way", ["score", "reconciled", "excluded", "forced"])
def test_what_is_advised_is_settled_as_what_is_planned(way: str) -> None:
    hand = begun()
    hand.engine.plan(hand.clock, advice=True)
    hole: dict[str, Any] = {"what": "hole", "name": "s1p1h0"}
    match way:
        case "score":
            hand.tell(ev.ScoreCame, hole="s1p1h0", values={"ctf": 3.0})
        case "reconciled":
            hand.tell(ev.Reconciled, hole="s1p1h0", taken=True)
        case "excluded":
            hand.tell(ev.Overridden, who="Ada", do="exclude", **hole)
        case "forced":
            hand.tell(ev.Overridden, who="Ada", do="force", **hole)
    became = {"excluded": "excluded", "forced": "free"}.get(way, "taken")
    assert hand.states("s1p1h0", "s1p1h1") == [became, "advised"]
    if way == "forced":
        assert (hand.next().name, hand.engine.book.forced()) == ("s1p1", "s1p1h0")


def test_plans_saved_before_there_was_advice_are_none() -> None:
    hand = begun()
    hand.engine.plan(hand.clock)
    saved = [ev.to_json(event) for event in hand.engine.events]
    del saved[-1]["plan"]["advice"]
    restored = Engine.replay([ev.from_json(event) for event in saved])
    assert known(restored) == known(hand.engine)


def test_a_planned_hole_that_fails_is_in_play_again_so_often() -> None:
    hand = begun(tries=2)
    for _ in range(2):
        assert "s1p1h0" in hand.engine.plan(hand.clock, "s1p1").holes
        hand.tell(ev.Failed, what="exposure", name="s1p1h0", beam="off")
    assert hand.states("s1p1h0") == ["failed"]
    assert "s1p1h0" not in hand.engine.plan(hand.clock, "s1p1").holes


def test_excluded_and_unknown_holes_are_in_no_plan_and_forced_ones_are() -> None:
    hand = begun()
    hand.obey(hand.next())
    lost = hand.next().name
    hand.next()
    hand.tell(ev.Overridden, who="Ada", do="exclude", what="hole", name="s2p2h0")
    hand.tell(ev.Overridden, who="Ada", do="force", what="hole", name="s1p2h1")
    holes = hand.engine.plan(hand.clock).holes
    assert not {lost, "s2p2h0"} & set(holes)
    assert holes[0] == "s1p2h1"


def test_what_a_rule_does_not_want_is_in_no_plan() -> None:
    """Also where another patch of the scope has nothing left."""
    hand = Hand(Engine(make=lambda _: FixedCut(0, cut=3.5)))
    hand.tell(ev.AtlasSeen, squares=squares("s1"))
    hand.tell(ev.SquareOpened, survey=survey("s1", {"a": 3, "b": 1}))
    hand.tell(ev.Exposed, hole="bh0")
    assert hand.engine.plan(hand.clock, "s1").holes == ("ah0",)


def test_one_square_that_is_left_does_not_end_the_plan() -> None:
    """A microscopist leaves a square that was bad, and goes on with the next."""
    hand = Hand(pilot="microscopist", columns=("ice",))
    hand.tell(ev.AtlasSeen, squares=squares("s1", "s2"))
    hand.tell(ev.SquareOpened, survey=survey("s1", {"a": THUMB.tries + 4, "b": 8}))
    hand.tell(ev.SquareOpened, survey=survey("s2", {"c": 8}))
    for k in range(THUMB.tries):
        hand.tell(ev.Exposed, hole=f"ah{k}")
        hand.tell(ev.ScoreCame, hole=f"ah{k}", values={"ctf": 30.0})
    holes = hand.engine.plan(hand.clock).holes
    assert holes
    assert {hole[0] for hole in holes} == {"c"}


def test_a_plan_keeps_to_the_time_that_is_left() -> None:
    hand = begun(hours=0.05)  # 180 s: one patch
    assert len(hand.engine.plan(hand.clock).holes) < 8
    hand.tell(ev.Paused, who="Ada")
    assert hand.engine.plan(hand.clock).holes == ()


def test_the_guard_watches_what_was_planned() -> None:
    """Planned holes, good and then without a fit: a fault, though nobody asked what to do."""
    hand = Hand(pilot="coaf", reward="ctf<9.0")
    for name in ("s1", "s2", "s3"):
        hand.tell(ev.SquareOpened, survey=survey(name, {f"{name}{p}": 4 for p in "abcdefgh"}))
    plan = hand.engine.plan(hand.clock)
    assert len(plan.holes) > 50
    for k, hole in enumerate(plan.holes):
        hand.tell(ev.Exposed, hole=hole)
        hand.tell(ev.ScoreCame, hole=hole, values={"ctf": 4.0 + k % 3 if k < 30 else None})
    assert hand.engine.guard.fault is not None
    told = hand.next()
    assert (told.do, "this is not the ice" in told.why) == ("alarm", True)
    assert hand.next().do != "alarm"
    hand.tell(ev.FaultAcknowledged, who="Ada")
    assert hand.engine.guard.fault is None
