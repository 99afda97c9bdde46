"""The model of a recording: what it says of holes and shots, and what it refuses."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coaf.cryoem.microscope import Score
from coaf.cryoem.recorded.build import build_recording
from coaf.cryoem.recorded.columns import MEASURED, Column, RecordingError
from coaf.cryoem.recorded.recording import Recording
from coaf.cryoem.recorded.seconds import Seconds
from coaf.cryoem.reward import GoodBelow, Particles
from coaf.cryoem.simulator.record import record
from coaf.cryoem.simulator.simulator import Simulator
from cryoem.recorded.recordings import recordings, same, small


def test_what_is_known_of_holes() -> None:
    held = small()
    assert held.columns == ("ice",)
    assert held.column("ice").tolist()[:4] == [20.0, 30.0, 25.0, 90.0]
    assert held.patch.tolist() == [0, 0, 1, 1, 2]
    assert held.counts.tolist() == [3, 2, 1, 0, 1]
    assert held.failed == 1
    with pytest.raises(RecordingError, match=r"has no column 'ctf' known before .*there are: ice"):
        held.column("ctf")


def test_scores_of_a_hole_are_its_shots_in_order() -> None:
    held = small()
    assert held.scores(1) == [
        Score("h2", 1, 3.5, 80.0, 25.0, 25.0, {"defocus": -1.5}),
        Score("h2", 3, 3.6, None, 29.0, 29.0, {"defocus": -1.5}),
    ]
    assert held.scores(0)[2].ctf is None
    assert held.scores(3) == []


def test_worth_sums_shots_and_counts_what_has_no_value() -> None:
    held = small()
    assert held.worth(GoodBelow(3.8)).rewards.tolist() == [1.0, 2.0, 0.0, 0.0, 0.0]
    assert held.worth(GoodBelow(3.8)).missing == 0
    assert held.worth(GoodBelow(3.8, failed="missing")).missing == 1
    picked = held.worth(Particles(scale=1.0))
    assert picked.rewards.tolist() == [150.0, 80.0, 10.0, 0.0, 20.0]
    assert picked.missing == 2


def test_some_patches_are_a_recording_of_their_own() -> None:
    part = small().part([2, 0])
    assert part.holes == ("h5", "h1", "h2")
    assert part.starts.tolist() == [0, 1, 3]
    assert (part.patches, part.squares) == (("p3", "p1"), ("s2", "s1"))
    assert part.shots.hole.tolist() == [0, 1, 1, 1, 2, 2]
    assert part.shots.when.tolist() == [300.0, 10.0, 14.0, 18.0, 25.0, 29.0]
    with pytest.raises(RecordingError, match="hole 'h1' is there more than once"):
        small().part([0, 0])


def test_policies_can_be_tried_on_holes_that_were_seen_whole_and_exposed() -> None:
    held = small()
    assert held.playable().holes == ("h1", "h2", "h3")  # h4 has no shots, and h5 no ice
    assert held.playable().patches == ("p1", "p2")
    whole = held.part([0])
    assert whole.playable() is whole
    with pytest.raises(RecordingError, match=r"no hole of recording 'small' has both .*\(ice\)"):
        held.part([2]).playable()


@settings(max_examples=60, deadline=None)
@given(recordings(), st.randoms(use_true_random=False))
def test_patches_can_be_taken_apart_and_put_together(held: Recording, luck: Any) -> None:
    order = list(range(len(held.patches)))
    luck.shuffle(order)
    mixed = held.part(order)
    assert mixed.patches == tuple(held.patches[p] for p in order)
    assert same(mixed.part([order.index(p) for p in range(len(order))]), held)
    for i, hole in enumerate(mixed.holes):
        assert repr(mixed.scores(i)) == repr(held.scores(held.holes.index(hole)))  # NaN == NaN


@pytest.mark.parametrize("ctf", [100_000.0, 1e6, np.inf, np.nan])
def test_a_fit_that_failed_is_none_however_it_is_told(ctf: float) -> None:
    values = {**small().shots.values, "ctf": np.full(7, ctf)}
    held = replace(small(), **shots_with(values=values))
    assert held.failed == 7
    assert held.scores(2)[0].ctf is None


def test_it_says_what_it_is() -> None:
    assert repr(small()) == "Recording('small': 7 shots of 5 holes in 3 patches)"


def test_nothing_can_be_written_to() -> None:
    held = small()
    for array in (held.starts, held.x, held.known, held.shots.hole, held.shots.values["ctf"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def shots_with(**values: Any) -> dict[str, Any]:
    return {"shots": replace(small().shots, **values)}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"name": ""}, "the name of the recording is called ''; a name is text on one line"),
        ({"holes": ()}, "recording 'small' has no holes"),
        ({"holes": ("h1", "h1", "h3", "h4", "h5")}, "hole 'h1' is there more than once"),
        ({"holes": ("h1 ", "h2", "h3", "h4", "h5")}, "a hole is called 'h1 '; .*without spaces"),
        ({"holes": ("h\n1", "h2", "h3", "h4", "h5")}, r"a hole is called 'h\\n1'"),
        ({"starts": [0, 2, 5]}, "starts for .3, 3, 3, 2. patches"),
        ({"starts": [0, 2, 2, 5]}, "starts of recording 'small' must rise from 0 to its 5"),
        ({"starts": [0, 2, 4, 6]}, "must rise from 0 to its 5 holes"),
        ({"squares": ("s1", "s1")}, "one entry a patch"),
        ({"grids": ("g", "G", "g")}, "square 's1' is in grids 'g' and 'G'; it lies in one"),
        ({"x": np.zeros(4)}, r"x of recording 'small' has shape \(4,\); it must be \(5,\)"),
        ({"known": np.full((5, 1), np.inf)}, "known of .* has infinite entries; NaN stands for"),
        ({"described": {**MEASURED, "hole": Column("shot")}}, "'hole' needs no description"),
        ({"described": {"ctf": Column("shot")}}, "'ctf' is 'shot'; it must be measured"),
        ({"described": {"a": Column("after")}}, "'a' is 'after'; there are before, shot, meas"),  # type: ignore[arg-type]
        ({"described": MEASURED, "known": np.zeros((5, 0))}, "described are .*'ctf', 'particles'"),
        ({"seconds": Seconds(survey=0.0)}, "seconds of recording 'small': survey is 0.0"),
        ({"provenance": {"by": "\ud800"}}, "provenance 'by' is no text that a file can hold"),
        (shots_with(hole=np.array([0, 0, 0, 1, 1, 2, 5])), "must each name one of its holes"),
        (shots_with(hole=np.array([1, 0, 0, 1, 1, 2, 4])), "must stand hole after hole"),
        (shots_with(number=np.array([0, 1, 1, 1, 3, 0, 0])), "by number from 0 on"),
        (shots_with(when=np.full(7, -1.0)), "when of recording 'small' is -1; give seconds since"),
        (shots_with(when=np.zeros(6)), r"when has shape \(6,\); it must be \(7,\)"),
    ],
)
def test_what_cannot_be(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(RecordingError, match=message):
        replace(small(), **wrong)


@pytest.mark.parametrize(("column", "value"), [("ctf", 0.0), ("particles", -1.0)])
def test_measurements_that_cannot_be(column: str, value: float) -> None:
    values = {**small().shots.values, column: np.full(7, value)}
    with pytest.raises(RecordingError, match=f"{column} of recording 'small' is {value:g}; "):
        replace(small(), **shots_with(values=values))


def test_a_session_becomes_a_recording() -> None:
    """Holes surveyed and not exposed are there, without shots; what came last counts."""
    microscope = Simulator(3, squares=2, pixels=False, delay="none", shots=2)
    surveys = [microscope.survey(square.name) for square in microscope.squares()]
    patch = surveys[0].patches[0]
    microscope.move(patch)
    for hole in patch.holes[:3]:
        microscope.expose(hole)
    scores = microscope.collect()
    scores[0] = replace(scores[0], more={"thickness": 31.0})
    corrected = replace(scores[1], ctf=100000.0)
    recording = build_recording(
        "today",
        [*surveys, surveys[0]],
        [*scores, corrected],
        columns=microscope.feature_names,
        seconds=Seconds(),
        described={"thickness": Column("measured", "nm")},
        grids={surveys[1].square: "other"},
    )
    every = [hole for survey in surveys for p in survey.patches for hole in p.holes]
    assert recording.holes == tuple(hole.name for hole in every)
    assert recording.counts.sum() == len(scores) == 6
    assert set(recording.grids) == {"today", "other"}
    assert recording.described["thickness"] == Column("measured", "nm")
    assert recording.described["ice"] == Column("before")
    assert recording.columns == microscope.feature_names
    told = recording.scores(recording.holes.index(scores[0].hole))
    assert told[0].more == {"thickness": 31.0}
    assert told[0].exposed_at == scores[0].exposed_at
    assert (told[0].ctf, told[1].ctf) == (scores[0].ctf, None)
    stray = replace(scores[0], hole="elsewhere")
    with pytest.raises(RecordingError, match="a shot is of hole 'elsewhere', which is not among"):
        build_recording("x", surveys, [stray], columns=recording.columns, seconds=Seconds())


def test_only_chosen_columns_are_seen() -> None:
    """What is measured stays; holes that lack a number only in another column can be played."""
    held = record(Simulator(4, squares=2, pixels=False, prediction=True))
    seen = held.seen_by(["prediction", "ice"])
    assert seen.columns == ("ice", "prediction"), "in the order of the recording"
    for name in seen.columns:
        assert seen.column(name).tolist() == held.column(name).tolist()
    good = GoodBelow(3.8)
    assert seen.worth(good).rewards.tolist() == held.worth(good).rewards.tolist()
    bare = small().seen_by([])
    assert (bare.columns, bare.known.shape) == ((), (5, 0))
    assert bare.playable().holes == ("h1", "h2", "h3", "h5")
    assert small().playable().holes == ("h1", "h2", "h3")
    assert same(small().seen_by(["ice"]), small())
    with pytest.raises(RecordingError, match=r"has no column 'ctf' known before"):
        small().seen_by(["ice", "ctf"])
