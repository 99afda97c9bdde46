"""CryoRL's environment: all known ahead, free to choose, and a way that is paid again."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coaf.cryoem.pilots.patch_order import PatchOrder
from coaf.cryoem.recorded.build import HoleRow, ShotRow, from_rows
from coaf.cryoem.recorded.columns import MEASURED, Column, RecordingError
from coaf.cryoem.recorded.environment import CRYORL, environment_of
from coaf.cryoem.recorded.folder import write_recording
from coaf.cryoem.recorded.microscope import RecordedMicroscope
from coaf.cryoem.recorded.reading import read_recording
from coaf.cryoem.recorded.recording import Recording
from coaf.cryoem.recorded.replay import play, replay
from coaf.cryoem.recorded.seconds import Seconds
from coaf.cryoem.recorded.yardsticks import free_limit
from coaf.cryoem.reward import GoodBelow
from outside import DATA

GOOD = GoodBelow(6.0)
TIMES = Seconds()._replace(**CRYORL.seconds)
COLUMNS = {"prediction": Column("before", "Å"), "ctf": MEASURED["ctf"]}


def grid(levels: dict[str, float], holes: int = 6, seed: int = 0) -> Recording:
    """Patches "t1s1p1" of a tile and a square, each with predictions and fits about a level."""
    rng = np.random.default_rng(seed)
    rows, shots = [], []
    for patch, level in levels.items():
        for k in range(holes):
            ctf = level * float(np.exp(rng.normal(0.0, 0.1)))
            guess = ctf * float(np.exp(rng.normal(0.0, 0.1)))
            name = f"{patch}h{k}"
            rows.append(HoleRow(name, patch, patch[:4], "g", known=[guess], tile=patch[:2]))
            shots.append(ShotRow(name, 0, values={"ctf": ctf}))
    return from_rows("made", rows, shots, COLUMNS, TIMES)


MADE = grid({"t1s1p1": 9.0, "t1s1p2": 4.0, "t1s2p1": 4.0, "t1s2p2": 9.0, "t2s3p1": 4.2})


def test_the_microscope_charges_cryorls_minutes() -> None:
    microscope = RecordedMicroscope(MADE, ahead=True)
    patches = {p.name: p for s in microscope.squares() for p in microscope.peek(s.name).patches}
    way = ["t1s1p1", "t1s1p2", "t1s2p1", "t2s3p1", "t1s1p1"]
    took = [microscope.move(patches[name]) / 60.0 + 1.0 for name in way]
    assert took == [8.0, 2.0, 6.0, 8.0, 8.0], "with the first exposure; returning is paid again"
    assert microscope.expose(patches["t1s1p1"].holes[0]) == 60.0
    assert microscope.survey("t1s2") is not None
    assert microscope.clock == 60.0 * (sum(took) - len(took) + 1), "opening takes no time"
    assert microscope.timing.square == 0.0
    assert microscope.again().ahead


def test_opening_a_square_has_its_own_way_there() -> None:
    microscope = RecordedMicroscope(MADE)
    survey = microscope.survey("t1s2")
    assert microscope.move(survey.patches[0]) == 60.0
    shown = RecordedMicroscope(MADE)
    for patch in (0, 2, 4):
        assert shown.move(shown.offer(patch).patches[0]) == 60.0


@pytest.mark.parametrize("pilot", ["coaf", "take-all", "patch-order", "fixed-cut"])
def test_sessions_keep_their_time_and_pay_their_way(pilot: str) -> None:
    for hours in (0.1, 0.5, 10.0):
        found = play(MADE, pilot, None, reward=GOOD, hours=hours, ahead=True)
        assert found.seconds <= 3600.0 * hours
        assert found.good <= free_limit(MADE, GOOD, TIMES, hours) + 1e-9
    assert found.exposed == 30, "all is taken where there is time"


def test_the_limit_is_reached_where_all_that_is_good_fits() -> None:
    good = MADE.worth(GOOD).rewards.sum()
    assert free_limit(MADE, GOOD, TIMES, 10.0) == pytest.approx(good)
    few = free_limit(MADE, GOOD, TIMES, 0.5)
    assert 0.0 < few < good


def test_what_is_known_ahead_is_gone_to_by_worth() -> None:
    """The poor square is not opened first because it is listed first."""
    levels = {f"t1s1p{k}": 12.0 for k in range(4)} | {f"t1s2p{k}": 3.5 for k in range(4)}
    held = grid(levels)
    ours = play(held, "coaf", None, reward=GOOD, hours=0.5, ahead=True)
    assert ours.good == ours.exposed > 18
    assert play(held, "take-all", None, reward=GOOD, hours=0.5, ahead=True).good == 0.0
    rule = play(held, lambda _: PatchOrder(0, 6.0), None, reward=GOOD, hours=0.5, ahead=True)
    assert rule.good == rule.exposed > 18


def test_a_square_is_finished_before_the_next() -> None:
    """Both are good: one switch in all shows in the time between exposures."""
    held = grid({f"t1s{s}p{k}": 3.5 for s in (1, 2) for k in range(4)})
    whole = play(held, "coaf", None, reward=GOOD, hours=2.0, ahead=True)
    apart = np.diff([when for when, _ in whole.gains])
    assert whole.exposed == 48
    assert np.count_nonzero(apart > 300.0) == 1


def test_the_preset_sets_what_is_not_given(tmp_path: Path) -> None:
    folder = write_recording(replace(MADE, seconds=Seconds()), tmp_path)
    settings: dict[str, Any] = {"workers": 1, "policies": ["patch-order"]}
    found = replay(folder, environment="cryorl", **settings)
    data = found["data"]
    assert (data["order"], data["hours"], data["reward"]) == ("free", 8.0, "ctf<6")
    assert data["environment"] == "cryorl"
    assert found["yardsticks"]["clairvoyant"] == free_limit(MADE, GOOD, TIMES, 8.0) / 8.0
    other = replay(folder, environment="cryorl", hours=0.5, good_below=4.0, **settings)["data"]
    assert (other["hours"], other["reward"]) == (0.5, "ctf<4")
    with pytest.raises(ValueError, match="pilots are free to choose; order is 'random'"):
        replay(folder, environment="cryorl", order="random", **settings)
    with pytest.raises(ValueError, match="environment is 'mars'; there are cryorl"):
        environment_of("mars")


def test_tiles_and_switches_are_written_and_read(tmp_path: Path) -> None:
    held = read_recording(write_recording(MADE, tmp_path))
    assert (held.tiles, held.seconds) == (MADE.tiles, TIMES)
    assert held.part([4, 0]).tiles == ("t2", "t1")
    with pytest.raises(RecordingError, match="square 't1s1' is in tiles 't1' and 't2'"):
        replace(MADE, tiles=("t1", "t2", "t1", "t1", "t2"))
    with pytest.raises(RecordingError, match="has 1 tiles for 5 patches"):
        replace(MADE, tiles=("t1",))


@pytest.mark.skipif(not DATA.is_dir(), reason="the real data is not here")
def test_the_real_grid() -> None:
    """On the part that we have, ours is beyond 390, and no plan beyond the limit."""
    held = read_recording(DATA / "cryorl-aldolase").playable()
    assert len(set(held.tiles)) == 6
    found = play(held, "coaf", None, reward=GOOD, seconds=TIMES, hours=8.0, ahead=True)
    assert 390 < found.good <= free_limit(held, GOOD, TIMES, 8.0) < 440
