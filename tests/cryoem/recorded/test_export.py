"""A session as a recording: it can be written, read and replayed, and says what happened."""

from pathlib import Path

import pytest

from coaf.cryoem.recorded.export import recording_of
from coaf.cryoem.recorded.folder import write_recording
from coaf.cryoem.recorded.reading import read_recording
from coaf.cryoem.recorded.replay import replay
from coaf.cryoem.reward import GoodBelow
from coaf.cryoem.session import events as ev
from coaf.cryoem.session.collect import collect
from coaf.cryoem.session.engine import Engine
from coaf.cryoem.session.session import Session
from coaf.cryoem.simulator.simulator import Simulator


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
