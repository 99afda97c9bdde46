"""Which grid of a cassette is loaded: by COAF, and by the rules it is compared with."""

import json
from dataclasses import replace
from math import inf

import pytest

from coaf.cryoem.grid import Square
from coaf.cryoem.pilot import Left, Other
from coaf.cryoem.pilots.cassette import CassettePilot
from coaf.cryoem.pilots.catalogue import GRID_RULES
from coaf.cryoem.pilots.grid_choice import GridChoice
from coaf.cryoem.pilots.grid_order import InTurn, ScreenAll, Standing
from coaf.cryoem.reports.cassette import cassette_of, visits
from coaf.cryoem.session import events as ev
from coaf.cryoem.session.collect import collect
from coaf.cryoem.session.engine import Engine
from coaf.cryoem.timing import FAST, HOUR
from cryoem.session.hand import Hand, squares

TIMING = replace(FAST, load=240.0, atlas=600.0)
SQUARES = (Square("s", 0.0, 0.0),)
NEW = Other("new")


def standing(an_hour: float, *, looked: int = 20, left: float = 200.0) -> Standing:
    """A grid whose patches take five minutes each."""
    worked = 300.0 * looked
    rate = an_hour / HOUR
    return Standing(
        rate, looked // 7, looked, left, worked, 10 * looked, 10 * looked, rate * worked
    )


def choose(hours: float, others: dict[str, Standing], here: Standing, *new: Other) -> str | None:
    held = [Other(name, seen=True, squares=SQUARES) for name in others]
    left = Left(hours * HOUR, TIMING)
    return GridChoice().choose("here", {"here": here, **others}, [*held, *new], left).name


def test_a_new_grid_is_screened_while_there_is_time_to_use_it() -> None:
    assert choose(12.0, {}, standing(100.0), NEW) == "new"
    assert choose(0.5, {}, standing(100.0), NEW) is None


def test_where_grids_are_alike_screening_ends() -> None:
    alike = {f"g{k}": standing(100.0 + k) for k in range(6)}
    assert choose(3.0, alike, standing(107.0), NEW) is None
    unlike = {f"g{k}": standing(4.0 * 3.0**k) for k in range(4)}
    assert choose(12.0, unlike, standing(50.0), NEW) is not None


def test_the_better_grid_is_come_back_to_unless_it_is_too_late() -> None:
    assert choose(6.0, {"good": standing(200.0)}, standing(50.0)) == "good"
    assert choose(0.05, {"good": standing(200.0)}, standing(50.0)) is None
    assert choose(0.4, {"good": standing(110.0)}, standing(100.0)) is None


def test_a_grid_that_runs_out_is_worth_what_it_holds() -> None:
    """An hour of 200 is less than six of 100, but comes first if both fit."""
    short = {"good": standing(200.0, left=0.0)}
    assert choose(6.0, short, standing(100.0)) is None
    assert choose(6.0, {}, standing(100.0, left=0.0), NEW) == "new"


def test_a_first_look_is_finished() -> None:
    assert choose(6.0, {"good": standing(500.0)}, standing(5.0, looked=2)) is None


def test_without_scores_and_without_end_it_still_decides() -> None:
    assert choose(6.0, {"other": standing(0.0)}, standing(0.0), NEW) is None
    assert choose(inf, {"good": standing(300.0)}, standing(3.0)) in ("good", None)
    left = Left(inf, TIMING, idle=True)
    held = [Other("good", seen=True, squares=SQUARES)]
    known = {"good": standing(3.0), "here": standing(9.0, left=0.0)}
    assert GridChoice().choose("here", known, held, left).name == "good"


def test_a_second_is_worth_what_others_give_once_this_grid_is_done() -> None:
    rule, left = GridChoice(), Left(12.0 * HOUR, TIMING)
    others = {"good": standing(60.0, left=500.0)}
    worth = rule.elsewhere(standing(100.0, left=20.0), others, left)
    assert worth * HOUR == pytest.approx(60.0, rel=0.1)
    assert rule.elsewhere(standing(100.0, left=500.0), others, left) == 0.0
    assert rule.elsewhere(standing(100.0, looked=1, left=20.0), others, left) == 0.0


def test_equal_shares_and_one_after_another() -> None:
    new = [Other("b"), Other("c")]
    shares, turns = InTurn(9.0 * HOUR, 3), InTurn(inf, 3)
    for hours, idle, share, turn in (
        (7.0, False, None, None),
        (6.0, False, "b", None),
        (7.0, True, "b", "b"),
    ):
        left = Left(hours * HOUR, TIMING, idle=idle)
        assert shares.choose("a", {}, new, left).name == share
        assert turns.choose("a", {}, new, left).name == turn


def test_screening_all_takes_a_square_of_each_and_then_the_best() -> None:
    rule, left = ScreenAll(), Left(9.0 * HOUR, TIMING)
    fresh = standing(0.0, looked=0)
    assert rule.choose("a", {"a": fresh}, [NEW], left).name is None
    first = standing(50.0, looked=7)
    assert rule.choose("a", {"a": first}, [NEW], replace(left, ahead=True)).name is None
    assert rule.choose("a", {"a": first}, [NEW], left).name == "new"
    better = Other("b", seen=True, squares=SQUARES)
    known = {"a": first, "b": standing(80.0, looked=7)}
    assert rule.choose("a", known, [better], left).name == "b"
    known["a"] = standing(50.0, looked=14)  # chosen, and worked on
    assert rule.choose("a", known, [better], left).name is None
    known["a"] = standing(50.0, looked=14, left=0.0)
    assert rule.choose("a", known, [better], left).name == "b"


def test_a_session_of_a_cassette_screens_carries_over_and_replays() -> None:
    cassette = cassette_of(1, "develop", grids=3, squares=2, regime="slow")
    session = collect(cassette, "coaf", hours=5.0, explore=0.0)
    engine = session.engine
    assert engine is not None
    names = [name for name, _ in visits(session)]
    assert names[0] == "grid 1"
    assert len(set(names)) > 1
    pilot = engine.pilot
    assert isinstance(pilot, CassettePilot)
    assert any(tally.pilot.earlier for tally in pilot.grids.values())
    assert session.summary()["exposed"] > 0
    again = Engine.restore(json.dumps(engine.state()))
    assert again.next(engine.now) == engine.next(engine.now)
    part = Engine.replay(engine.events, json.loads(json.dumps(engine.snapshot())))
    assert part.pilot.knowledge() == engine.pilot.knowledge()


def test_a_session_of_a_cassette_is_compared_with_how_people_load() -> None:
    session = collect(cassette_of(1, "develop", grids=2, squares=1), "take-all", hours=0.6)
    policies = [line["policy"] for line in session.table()]
    assert policies == ["take-all", "coaf", *GRID_RULES]
    with pytest.raises(ValueError, match="not for a cassette"):
        collect(cassette_of(1, "develop", grids=2, squares=1), "clairvoyant", hours=0.1)


def test_who_comes_back_goes_on_with_the_square_that_was_left() -> None:
    hand = Hand(grids=("A", "B"), pilot="take-all")
    hand.obey(hand.next())
    hand.tell(ev.AtlasSeen, squares=squares("a1"))
    hand.obey(hand.until("open square"))
    hand.tell(ev.GridLoaded, grid="B", seconds=200.0)
    assert hand.engine.situation.ahead() == []
    hand.tell(ev.AtlasSeen, squares=squares("b1"), seconds=500.0)
    assert hand.engine.timing.load > 0.0
    assert hand.engine.timing.atlas > 0.0
    hand.tell(ev.GridLoaded, grid="A", seconds=200.0)
    assert [one.patch.name for one in hand.engine.situation.ahead()] == ["a1p1", "a1p2"]
