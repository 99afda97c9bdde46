"""A session as a recording: it can be written, read and replayed, and says what happened."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coaf.cryoem.grid import Hole, Patch, Square
from coaf.cryoem.microscope import NotExposedError, Score, Survey
from coaf.cryoem.recorded.build import build_recording
from coaf.cryoem.recorded.columns import RecordingError
from coaf.cryoem.recorded.export import recording_of
from coaf.cryoem.recorded.folder import write_recording
from coaf.cryoem.recorded.microscope import RecordedMicroscope
from coaf.cryoem.recorded.reading import read_recording
from coaf.cryoem.recorded.replay import replay
from coaf.cryoem.recorded.seconds import Seconds
from coaf.cryoem.reward import GoodBelow
from coaf.cryoem.session import events as ev
from coaf.cryoem.session.collect import collect
from coaf.cryoem.session.engine import Engine
from coaf.cryoem.session.session import Session
from coaf.cryoem.simulator.simulator import Simulator
from coaf.cryoem.timing import FAST, HOUR
from cryoem.recorded.recordings import same, small


@pytest.fixture(scope="module")
def session() -> Session:
    simulator = Simulator(
        3, squares=3, shots=2, pixels=False, prediction=True, delay="none", faults=()
    )
    return collect(simulator, "take-all", hours=0.5, explore=0.0)


def engine_of(session: Session) -> Engine:
    assert session.engine is not None
    return session.engine


def test_it_holds_all_holes_and_the_shots_that_were_scored(session: Session) -> None:
    recording = recording_of(engine_of(session), "an afternoon")
    seen = {h.name for s in session.surveys.values() for p in s.patches for h in p.holes}
    assert set(recording.holes) == seen
    tally = session.summary()
    assert len(recording.shots) == tally["micrographs"] - tally["unscored"] > 0
    assert recording.columns == engine_of(session).settings.columns  # type: ignore[union-attr]
    worth = dict(zip(recording.holes, recording.worth(GoodBelow(3.8)).rewards, strict=True))
    assert session.scores() == pytest.approx({name: worth[name] for name in session.scores()})


def test_it_is_written_read_and_replayed(session: Session, tmp_path: Path) -> None:
    recording = recording_of(engine_of(session), "an afternoon")
    folder = write_recording(recording, tmp_path / "recording")
    assert read_recording(folder).worth(GoodBelow(6.0)) is not None
    found = replay(folder, policies=["take-all"], orders=1, workers=1)
    taken = {row["hole"] for row in session.exposures()}
    assert found["policies"]["take-all"]["exposed"] == len(taken)
    assert found["data"]["not_played"] == len(recording.holes) - len(taken)


def test_scores_are_those_known_last_and_what_was_known_of_a_shot_is_kept() -> None:
    simulator = Simulator(3, squares=1, pixels=False, prediction=True, faults=())
    survey = simulator.peek(simulator.squares()[0].name)
    hole = survey.patches[0].holes[0].name
    engine = Engine()
    for event in (
        ev.Started(
            id="0",
            time=0.0,
            settings=ev.Settings(pilot="take-all", columns=simulator.feature_names),
        ),
        ev.SquareOpened(id="1", time=80.0, survey=survey),
        ev.Exposed(id="2", time=150.0, hole=hole, seconds=6.0, known={"defocus": -1.5}),
        ev.ScoreCame(id="3", time=200.0, hole=hole, values={"ctf": 9.0, "ice_thickness": 31.0}),
        ev.ScoreCorrected(id="4", time=300.0, hole=hole, values={"ctf": 3.1}),
    ):
        engine.tell(event)
    recording = recording_of(engine, "one shot")
    assert len(recording.shots) == 1
    values = {name: float(column[0]) for name, column in recording.shots.values.items()}
    assert (values["ctf"], values["defocus"]) == (3.1, -1.5)
    assert float(recording.shots.when[0]) == 150.0
    assert recording.described["defocus"].role == "shot"


class Failing(Simulator):
    """Fails now and then, and scores what cannot be."""

    def expose(self, hole: Hole) -> float:
        if hole.name.endswith("3en"):
            raise NotExposedError("the valve is closed")
        if hole.name.endswith("5en"):
            raise OSError("no answer")
        return super().expose(hole)

    def collect(self) -> list[Score]:
        return [
            replace(score, ctf=-1.0, more={"when": 3.0}) if score.hole.endswith("7en") else score
            for score in super().collect()
        ]


def flown(policy: str, microscope: Simulator | RecordedMicroscope) -> Engine:
    return engine_of(collect(microscope, policy, hours=0.5))


def by_hand(**settings: Any) -> Engine:
    """Two grids with tiles of the same name, features that nobody named, and a score of each."""
    engine = Engine()
    known = ev.Settings(pilot="take-all", grids=("A", "B"), **settings)
    told: list[tuple[type[ev.Event], dict[str, Any]]] = [(ev.Started, {"settings": known})]
    for grid, width in (("A", 2), ("B", 1)):
        hole, patch, square = (f"{grid}{level}" for level in "hps")
        found = Patch(patch, square, (Hole(hole, 0.0, 0.0),), 0.0, 0.0)
        told += [
            (ev.GridLoaded, {"grid": grid}),
            (ev.AtlasSeen, {"squares": (Square(square, 0.0, 0.0, tile="t"),)}),
            (ev.SquareOpened, {"survey": Survey(square, (found,), {patch: np.ones((1, width))})}),
            (ev.Exposed, {"hole": hole, "known": {"ctf": 9.0, "prediction": 3.0}}),
            (ev.ScoreCame, {"hole": hole, "values": {"ctf": 3.0, "grid": 7.0}}),
        ]
    for k, (kind, values) in enumerate(told):
        engine.tell(kind(id=str(k), time=float(k), **values))
    return engine


GRID: dict[str, Any] = {"squares": 3, "pixels": False, "faults": (), "delay": "none"}
SESSIONS: dict[str, Callable[[], Engine]] = {
    "features": lambda: flown("coaf", Simulator(3, prediction=True, **GRID)),
    "several shots": lambda: flown("take-all", Simulator(3, shots=3, **GRID)),
    "failures": lambda: flown("take-all", Failing(3, prediction=True, **GRID)),
    "no columns": lambda: flown("take-all", RecordedMicroscope(small().seen_by(()))),
    "known ahead": lambda: flown("take-all", RecordedMicroscope(small(), ahead=True)),
    "two grids, features without names": by_hand,
}


@pytest.mark.parametrize("name", SESSIONS)
def test_every_session_can_be_exported_and_replayed(name: str, tmp_path: Path) -> None:
    engine = SESSIONS[name]()
    recording = recording_of(engine, name)
    assert set(recording.holes) == set(engine.book.holes)
    folder = write_recording(recording, tmp_path / "recording")
    assert same(read_recording(folder), recording)
    found = replay(folder, policies=["take-all"], orders=1, workers=1)
    scored = recording.playable().holes
    assert found["policies"]["take-all"]["exposed"] == len(scored) > 0
    free = replay(folder, policies=["take-all"], order="free", workers=1)
    assert free["policies"]["take-all"]["exposed"] == len(scored)
    assert free["yardsticks"] == {}, "nothing bounds a rate where time has no end"


def test_tiles_grids_and_what_nobody_named_are_in_it() -> None:
    recording = recording_of(by_hand(), "two grids")
    assert recording.grids == ("A", "B")
    assert recording.tiles == ("A/t", "B/t"), "tiles of two grids are two"
    assert recording.columns == ("feature 1", "feature 2")
    assert np.isnan(recording.known[1]).tolist() == [False, True]
    assert recording.shots.values["ctf"].tolist() == [3.0, 3.0], "what was measured counts"
    assert recording.described["prediction"].role == "shot"
    assert recording.shots.values["grid of the shot"].tolist() == [7.0, 7.0]


def test_the_time_of_switching_is_kept() -> None:
    timing = replace(FAST, to_square=20.0, to_tile=30.0, to_grid=HOUR)
    assert recording_of(by_hand(timing=timing), "switching").seconds[4:] == (20.0, 30.0, HOUR)
    assert Seconds.of(replace(FAST, stage=0.0, height=0.0, image=0.0)).checked().survey == 0.001


def test_features_that_do_not_fit_the_columns_named_are_refused() -> None:
    found = Survey(
        "s", (Patch("p", "s", (Hole("h", 0.0, 0.0),), 0.0, 0.0),), {"p": np.ones((1, 2))}
    )
    with pytest.raises(RecordingError, match="'p' have 2 features, and 1 columns are named: ice"):
        build_recording("r", [found], [], columns=["ice"], seconds=Seconds())


def test_before_it_started_there_is_nothing_to_record() -> None:
    with pytest.raises(ValueError, match="not started"):
        recording_of(Engine(), "nothing")


def test_names_that_a_file_cannot_hold_are_changed(tmp_path: Path) -> None:
    """Columns called as something else, names with line ends and blanks; deleted holes are none."""
    engine = Engine()
    settings = ev.Settings(pilot="take-all", columns=("x", "ctf", "ice\n"))
    holes = tuple(Hole(name, float(k), 0.0) for k, name in enumerate(["a ", "a", "b\n", "c"]))
    square = Survey("s\t1", (Patch("p ", "s\t1", holes, 0.0, 0.0),), {"p ": np.eye(4, 3)})
    told: list[tuple[type[ev.Event], dict[str, Any]]] = [
        (ev.Started, {"settings": settings}),
        (ev.SquareOpened, {"survey": square}),
        *((ev.Exposed, {"hole": hole.name}) for hole in holes[:3]),
        *(
            (ev.ScoreCame, {"hole": hole.name, "values": {"ctf": 3.0 + k, "a\nb": 1.0}})
            for k, hole in enumerate(holes[:3])
        ),
        (ev.HolesDeleted, {"holes": ("c",)}),
    ]
    for k, (kind, values) in enumerate(told):
        engine.tell(kind(id=str(k), time=float(k), **values))
    recording = recording_of(engine, "odd names")
    assert recording.holes == ("a", "a'", "b")
    assert recording.columns == ("x'", "ctf'", "ice")
    assert set(recording.shots.values) == {"ctf", "a b"}
    assert recording.known.tolist() == np.eye(3).tolist()
    assert same(read_recording(write_recording(recording, tmp_path / "recording")), recording)
