"""What things took, by when shots were taken; and a real session."""

from dataclasses import replace

import numpy as np
import pytest

from coaf.cryoem.checks.microscope import check_microscope
from coaf.cryoem.recorded.columns import RecordingError
from coaf.cryoem.recorded.folder import write_recording
from coaf.cryoem.recorded.microscope import RecordedMicroscope
from coaf.cryoem.recorded.pace import measured_seconds
from coaf.cryoem.recorded.reading import read_recording
from coaf.cryoem.recorded.recording import Recording
from coaf.cryoem.recorded.seconds import Seconds
from coaf.cryoem.recorded.yardsticks import best_fixed_cut, clairvoyant_rate
from coaf.cryoem.reward import GoodBelow, Particles
from coaf.cryoem.session.collect import collect
from cryoem.recorded.recordings import NAN, same, small
from krios import EXPOSURES, read_krios


def test_gaps_between_shots_by_hand() -> None:
    """Shots at 10, 14, 18; 25, 29; then 90 in the next patch and 300 in the next square."""
    survey = (210.0 - 61.0) * 2 / 3  # of two squares with three patches
    assert measured_seconds(small())[:4] == pytest.approx((survey, 61.0 - 7.0, 7.0, 4.0))


def test_what_times_do_not_show_stays() -> None:
    one = small().part([0])
    assert measured_seconds(one) == Seconds(12.0, 50.0, 7.0, 4.0)
    shots = replace(one.shots, when=np.full(5, NAN))
    assert measured_seconds(replace(one, shots=shots)) == one.seconds
    together = replace(one.shots, when=np.zeros(5))
    assert measured_seconds(replace(one, shots=together)) == one.seconds
    apart = replace(small(), grids=("g", "g", "h"))
    assert measured_seconds(apart).survey == 12.0, "to another grid is not to another square"


@pytest.fixture(scope="module")
def krios() -> Recording:
    if not EXPOSURES.is_file():
        pytest.skip(f"no session at {EXPOSURES}; set COAF_DATA to the folder it is in")
    return read_krios()


def test_a_real_session_is_a_recording(
    krios: Recording, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert (len(krios.shots), len(krios.holes), len(krios.patches)) == (2380, 342, 15)
    assert len(set(krios.squares)) == 3
    assert np.bincount(krios.counts)[7] == 334
    assert krios.worth(GoodBelow(3.8)).rewards.sum() / 2380 == pytest.approx(0.595, abs=5e-4)
    assert krios.worth(GoodBelow(5.0)).rewards.sum() / 2380 == pytest.approx(0.842, abs=5e-4)
    fine = krios.shots.values["ctf"] < 5.0
    shares = [fine[krios.shots.values["place"] == k].mean() for k in range(7)]
    assert sorted(shares)[0] == pytest.approx(0.60, abs=0.01), "the centre of the hole"
    assert sorted(shares)[1] > 0.85
    little = krios.shots.values["defocus"] == -0.5
    assert fine[little].mean() < 0.65
    assert fine[~little].mean() > 0.9
    folder = write_recording(krios, tmp_path_factory.mktemp("krios"))
    assert same(read_recording(folder), krios)


def test_the_pace_of_a_real_session(krios: Recording) -> None:
    """4 s from shot to shot and hole to hole; 51 to 61 s to a cluster, 120 s to a square."""
    assert krios.seconds == pytest.approx(Seconds(survey=12.4, move=53.5, expose=4.0, shot=4.0))
    session = collect(RecordedMicroscope(krios), "take-all", hours=10.0, explore=0.0).summary()
    assert session["micrographs"] == 2380
    paused = krios.shots.when.max() / 3600.0 - session["hours"]
    assert 0.0 < paused < 0.3, "by the medians it is quicker than it was, by its pauses"


def test_a_real_session_can_be_driven_over(krios: Recording) -> None:
    check_microscope(lambda: RecordedMicroscope(krios, delay=45.0))
    limit = clairvoyant_rate(krios, GoodBelow(3.8))
    session = collect(RecordedMicroscope(krios), "take-all", hours=10.0, explore=0.0).summary()
    assert session["good_per_hour"] < 3600.0 * limit
    assert clairvoyant_rate(krios, Particles()) > 0.0
    with pytest.raises(RecordingError, match=r"no column 'prediction' .*there are: none"):
        best_fixed_cut(krios, GoodBelow(3.8), "prediction")
