"""A recorded grid behind the microscope's verbs."""

from pathlib import Path

import numpy as np
import pytest

from coaf.cryoem.checks.microscope import check_microscope
from coaf.cryoem.recorded.microscope import RecordedMicroscope
from coaf.cryoem.recorded.recording import Recording, Times, read_recording
from coaf.cryoem.session.collect import collect
from coaf.cryoem.simulator.record import record
from coaf.cryoem.simulator.simulator import Simulator


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    folder: Path = tmp_path_factory.mktemp("grid")
    record(Simulator(4, squares=3, pixels=False, prediction=True, delay="none"), folder)
    return read_recording(folder)


@pytest.mark.parametrize("delay", ["none", 45.0, "measured"])
def test_it_keeps_the_contract(recording: Recording, delay: float) -> None:
    check_microscope(lambda: RecordedMicroscope(recording, delay=delay))


def test_scores_are_those_recorded(recording: Recording) -> None:
    microscope = RecordedMicroscope(recording, times=Times(10.0, 95.0, 91.0))
    survey = microscope.survey(microscope.squares()[0].name)
    assert microscope.clock == pytest.approx(10.0 * len(survey.patches))
    patch = survey.patches[0]
    microscope.move(patch)
    for hole in patch.holes:
        microscope.expose(hole)
    assert microscope.clock == pytest.approx(
        10.0 * len(survey.patches) + 95.0 + 91.0 * len(patch.holes)
    )
    scores = {score.hole: score.ctf for score in microscope.collect()}
    truth = dict(zip(recording.names, recording.ctf.tolist(), strict=True))
    assert set(scores) == {hole.name for hole in patch.holes}
    for name, ctf in scores.items():
        assert ctf is None if np.isnan(truth[name]) else ctf == truth[name]


def test_a_session_runs_on_it(recording: Recording) -> None:
    """Every good hole that a session counts is one of the recording."""
    session = collect(RecordedMicroscope(recording), "coaf", hours=0.5, explore=0.0)
    told = session.summary()
    assert told["hours"] <= 0.5
    assert 0 < told["good"] <= recording.good(3.8).sum()
