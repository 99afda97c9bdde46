"""A recorded grid behind the microscope's verbs."""

from dataclasses import replace

import numpy as np
import pytest

from coaf.cryoem.checks.microscope import check_microscope
from coaf.cryoem.microscope import Rehearsal, Score
from coaf.cryoem.recorded.columns import MEASURED
from coaf.cryoem.recorded.microscope import RecordedMicroscope
from coaf.cryoem.recorded.recording import Recording
from coaf.cryoem.recorded.seconds import Seconds
from coaf.cryoem.reward import GoodBelow
from coaf.cryoem.session.collect import collect
from coaf.cryoem.simulator.record import record
from coaf.cryoem.simulator.simulator import Simulator
from cryoem.recorded.recordings import NAN, small


@pytest.fixture(scope="module")
def recording() -> Recording:
    return record(Simulator(4, squares=3, pixels=False, prediction=True, delay="none"))


def bare(recording: Recording) -> Recording:
    """The same, with nothing known before exposure and no positions."""
    n = len(recording.holes)
    nowhere = np.full(n, NAN)
    return replace(recording, described=MEASURED, known=np.zeros((n, 0)), x=nowhere, y=nowhere)


@pytest.mark.parametrize("delay", ["none", 45.0, "measured"])
@pytest.mark.parametrize("shots", [1, 3])
def test_it_keeps_the_contract(delay: float, shots: int) -> None:
    held = record(Simulator(4, squares=3, pixels=False, shots=shots))
    check_microscope(lambda: RecordedMicroscope(held, delay=delay))
    check_microscope(lambda: RecordedMicroscope(bare(held), delay=delay))


def test_holes_of_which_too_little_is_known_are_counted_and_not_offered() -> None:
    """Of the hand-made one, h4 was never exposed, and the ice of h5, alone in s2, is not known."""
    check_microscope(lambda: RecordedMicroscope(small()))
    microscope = RecordedMicroscope(small())
    assert [square.name for square in microscope.squares()] == ["s1"]
    survey = microscope.survey("s1")
    assert [(p.name, [h.name for h in p.holes]) for p in survey.patches] == [
        ("p1", ["h1", "h2"]),
        ("p2", ["h3"]),
    ]
    assert survey.excluded == {"never exposed": 1}
    assert microscope.feature_names == ("ice",)
    assert survey.features["p1"].tolist() == [[20.0], [30.0]]
    assert [(h.x, h.y, h.shots) for h in survey.patches[0].holes] == [(0.0, 0.0, 3), (2.0, 0.0, 2)]
    known = small().known.copy()
    known[2] = NAN
    survey = RecordedMicroscope(replace(small(), known=known)).survey("s1")
    assert survey.excluded == {"never exposed": 1, "features that are no numbers": 1}


def test_shots_take_their_time_and_are_scored_one_by_one() -> None:
    microscope = RecordedMicroscope(small())
    patch = microscope.survey("s1").patches[0]
    assert microscope.clock == 2 * 12.0
    assert microscope.move(patch) == 50.0
    assert microscope.expose(patch.holes[0]) == 6.0 + 2 * 4.0
    assert microscope.expose(patch.holes[1]) == 6.0 + 4.0
    more = {"defocus": -1.5}
    assert microscope.collect() == [
        Score("h1", 0, 3.0, 100.0, 80.0, 80.0, more),
        Score("h1", 1, 5.0, 50.0, 84.0, 84.0, more),
        Score("h1", 2, None, None, 88.0, 88.0, more),
        Score("h2", 0, 3.5, 80.0, 94.0, 94.0, more),
        Score("h2", 1, 3.6, None, 98.0, 98.0, more),
    ]
    assert microscope.timing.hole(3) == 14.0


def test_seconds_may_be_others_than_those_recorded(recording: Recording) -> None:
    microscope = RecordedMicroscope(recording, seconds=Seconds(10.0, 95.0, 91.0))
    survey = microscope.survey(microscope.squares()[0].name)
    assert microscope.clock == pytest.approx(10.0 * len(survey.patches))
    assert microscope.move(survey.patches[0]) == 95.0
    assert microscope.expose(survey.patches[0].holes[0]) == pytest.approx(91.0)
    with pytest.raises(ValueError, match="survey is 0"):
        RecordedMicroscope(recording, seconds=Seconds(0.0))


def test_without_positions_holes_stand_apart(recording: Recording) -> None:
    microscope = RecordedMicroscope(bare(recording))
    squares = microscope.squares()
    surveys = [microscope.survey(square.name) for square in squares]
    assert not any(survey.placed for survey in surveys)
    assert not microscope.offer(0).placed
    assert RecordedMicroscope(recording).peek(squares[0].name).placed
    holes = [hole for survey in surveys for patch in survey.patches for hole in patch.holes]
    assert len({(hole.x, hole.y) for hole in holes}) == len(holes) == len(recording.holes)
    assert len({(square.x, square.y) for square in squares}) == len(squares)
    assert microscope.feature_names == ()
    assert all(rows.shape[1] == 0 for survey in surveys for rows in survey.features.values())


def test_a_session_runs_on_it(recording: Recording) -> None:
    """Every good hole that a session counts is one of the recording."""
    session = collect(RecordedMicroscope(recording), "coaf", hours=0.5, explore=0.0)
    told = session.summary()
    assert told["hours"] <= 0.5
    assert 0 < told["good"] <= recording.worth(GoodBelow(3.8)).rewards.sum()


def test_taking_all_needs_no_columns(recording: Recording) -> None:
    session = collect(RecordedMicroscope(bare(recording)), "take-all", hours=100.0, explore=0.0)
    told = session.summary()
    assert told["exposed"] == len(recording.holes)
    assert told["good"] == recording.worth(GoodBelow(3.8)).rewards.sum()


def test_it_can_be_played_again(recording: Recording) -> None:
    """A session on it is compared with others, of which none is better than the clairvoyant."""
    microscope = RecordedMicroscope(recording, delay=45.0)
    assert isinstance(microscope, Rehearsal)
    session = collect(microscope, "coaf", hours=1.0, explore=0.0)
    assert microscope.clock > 0.0
    again = microscope.again()
    assert (again.clock, again.collect(), again.worth(GoodBelow(3.8))) == (0.0, [], {})
    assert collect(again, "coaf", hours=1.0, explore=0.0).rows == session.rows
    good = {row["policy"]: row["good"] for row in session.table()}
    assert {"coaf", "take-all", "fixed-cut"} <= set(good)
    assert max(good.values()) == good["clairvoyant"]
    told = session.summary()
    assert told["true_good"] >= told["good"]
    assert told["unscored"] > 0, "those of the last 45 s"


def test_what_holes_are_worth_is_the_sum_of_their_shots() -> None:
    microscope, good = RecordedMicroscope(small()), GoodBelow(3.8)
    assert [microscope.first_visit(good, hole) for hole in ("h1", "h2", "h3")] == [1.0, 2.0, 0.0]
    assert microscope.peek("s1").patches == microscope.survey("s1").patches
    assert microscope.worth(good) == {}
    patch = microscope.peek("s1").patches[0]
    microscope.move(patch)
    microscope.expose(patch.holes[1])
    assert microscope.worth(good) == {"h2": 2.0}


def test_a_single_patch_may_be_shown() -> None:
    """For its own survey; the others of its square stay closed."""
    microscope = RecordedMicroscope(small())
    survey = microscope.offer(1)
    assert microscope.clock == 12.0
    assert [(p.name, [h.name for h in p.holes]) for p in survey.patches] == [("p2", ["h3"])]
    assert survey.features["p2"].tolist() == [[25.0]]
    assert microscope.move(survey.patches[0]) == 50.0
    assert microscope.expose(survey.patches[0].holes[0]) == 6.0
    with pytest.raises(ValueError, match="square 's1' is not open; survey it before"):
        microscope.move(microscope.peek("s1").patches[0])
