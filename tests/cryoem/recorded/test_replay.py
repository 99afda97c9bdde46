"""Policies over a recorded grid: what is counted, and that nothing but the orders is random."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coaf.bandit.policies.stepwise import Stepwise
from coaf.cryoem.pilots.prediction import prediction_belief, prediction_features
from coaf.cryoem.recorded.columns import RecordingError
from coaf.cryoem.recorded.reading import read_recording
from coaf.cryoem.recorded.recording import Recording
from coaf.cryoem.recorded.replay import PLAYERS, Pass, Player, play, play_orders, replay, summarise
from coaf.cryoem.recorded.seconds import Seconds
from outside import DATA

ALDOLASE = DATA / "cryorl-aldolase"


def write(folder: Path, patches: int = 12, seed: int = 0) -> Path:
    """A grid whose patches differ, with predictions that mean something; one hole has no fit."""
    rng = np.random.default_rng(seed)
    listed, truth = [], []
    for patch in range(patches):
        level = rng.normal(1.8, 0.35)
        for hole in range(6 + patch % 3):
            name = f"g_00001gr_{patch // 4 + 1:05d}sq_v01_{patch + 1:05d}hl_v01_{hole + 1:05d}en-a"
            ctf = float(np.exp(level + rng.normal(0.0, 0.25)))
            listed.append(f"{name} {ctf * np.exp(rng.normal(0.0, 0.15)):.2f}")
            truth.append(f"{name},0,0,{ctf:.3f},0.9")
    truth[5] = truth[5].rsplit(",", 2)[0] + ",100000,0"
    (folder / "a_by_hl.txt").write_text("\n".join(listed))
    (folder / "truth.csv").write_text("\n".join(truth))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("grid"))


@pytest.fixture(scope="module")
def recording(folder: Path) -> Recording:
    return read_recording(folder)


@pytest.fixture(scope="module")
def real() -> Recording:
    if not ALDOLASE.is_dir():
        pytest.skip(f"no recorded grid at {ALDOLASE}; set COAF_DATA to the folder it is in")
    return read_recording(ALDOLASE)


def test_taking_all_is_the_ratio_by_hand(recording: Recording) -> None:
    times = Seconds(10.0, 50.0, 6.0)
    found = play(recording, PLAYERS["take-all"], range(12), cut=4.0, times=times)
    n = len(recording.holes)
    good = int((recording.shots.values["ctf"] < 4.0).sum())  # NaN is not
    assert found[:2] == (good, n)
    assert found.seconds == pytest.approx(12 * 60.0 + 6.0 * n)
    assert summarise([found])["good_per_hour"] == pytest.approx(good / found.seconds * 3600.0)


def test_what_is_printed(folder: Path, recording: Recording) -> None:
    seen: list[tuple[int, int]] = []
    found = replay(
        folder, policies=list(PLAYERS), orders=3, workers=1, progress=lambda *at: seen.append(at)
    )
    assert seen == [(k + 1, 12) for k in range(12)]
    assert list(found["policies"]) == list(PLAYERS)
    for told in found["policies"].values():
        assert {"good_per_hour", "good", "exposed", "hours"} <= set(told)
        assert 0 <= told["good"] <= told["exposed"] <= len(recording.holes)
        assert told["good_per_hour"] <= found["yardsticks"]["clairvoyant"] + 1e-9
    take_all = found["policies"]["take-all"]
    assert take_all["standard_error"] == pytest.approx(0.0, abs=1e-12), "whatever the order"
    assert {"clairvoyant", "best_fixed_cut"} <= set(found["yardsticks"])
    assert found["yardsticks"]["best_fixed_cut"] >= take_all["good_per_hour"] - 1e-9
    assert (found["data"]["holes"], found["data"]["patches"]) == (len(recording.holes), 12)
    assert (found["data"]["squares"], found["data"]["without_fit"]) == (3, 1)
    assert json.loads(json.dumps(found)) == found


def test_numbers_do_not_depend_on_workers(folder: Path) -> None:
    settings: dict[str, Any] = {"orders": 4, "seed": 3, "feedback_delay": "measured"}
    one = replay(folder, workers=1, **settings)
    assert replay(folder, workers=3, **settings) == one
    other = replay(folder, workers=1, **(settings | {"seed": 4}))
    assert other["policies"]["coaf"] != one["policies"]["coaf"]


def test_more_orders_begin_with_the_same(recording: Recording) -> None:
    few = play_orders(recording, "coaf", range(2), seed=0, cut=3.8)
    more = play_orders(recording, "coaf", range(3), seed=0, cut=3.8)
    assert more[:2] == few
    assert play_orders(recording, "coaf", [2], seed=0, cut=3.8) == more[2:]


def test_no_delay_is_none(recording: Recording) -> None:
    for name in ("coaf", "coaf-tuned"):
        passes = [
            play_orders(recording, name, range(2), seed=0, cut=4.5, delay=delay)
            for delay in ("none", 0.0, 1e9)
        ]
        assert passes[0] == passes[1]
        assert passes[0] != passes[2], f"{name} learns from scores"


@pytest.mark.parametrize(("delay", "lag"), [(0.0, 0), (45.0, 1), (91.0, 1), (92.0, 2)])
def test_a_score_not_in_at_the_next_hole_is_late(
    recording: Recording, delay: float, lag: int
) -> None:
    """Holes take 91 s here: half of that is one hole too late, not none."""
    made: list[Stepwise] = []

    def make(cut: float, times: Seconds) -> Stepwise:
        made.append(Stepwise(prediction_belief()))
        return made[0]

    player = Player(prediction_features, make)
    play(recording, player, range(4), cut=6.0, times=Seconds(10.0, 95.0, 91.0), delay=delay)
    assert made[0].lag == lag


def test_means_over_orders() -> None:
    told = summarise([Pass(2.0, 5, 1800.0), Pass(6.0, 7, 3600.0)])
    assert told["good_per_hour"] == pytest.approx(5.0), "the mean of 4 and 6, not 8 in 1.5 h"
    assert told["standard_error"] == pytest.approx(1.0)
    assert (told["good"], told["exposed"], told["hours"]) == (4.0, 6.0, 0.75)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"policies": ["best"]}, "there is no policy 'best'; there are coaf, "),
        ({"orders": 0}, "orders is 0"),
        ({"good_below": 0.0}, "good_below is 0"),
        ({"good_below": float("nan")}, "good_below is nan"),
        ({"survey": 0.0}, "survey is 0"),
        ({"move": -1.0}, "move is -1"),
        ({"expose": -6.0}, "expose is -6"),
        ({"feedback_delay": -1.0}, "feedback_delay is -1"),
    ],
)
def test_what_cannot_be_asked(folder: Path, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replay(folder, **wrong)


def test_no_grid_there(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="is not a folder"):
        replay(tmp_path / "nowhere")


def test_the_real_grid(real: Recording) -> None:
    """Take-all, the best cut and the limit as known to 0.1; COAF over six orders beats any cut."""
    assert (len(real.holes), len(real.patches)) == (1197, 60)
    found = replay(ALDOLASE, policies=["take-all", "coaf"], orders=6, workers=1)
    assert found["policies"]["take-all"]["good_per_hour"] == pytest.approx(69.5, abs=0.1)
    assert found["yardsticks"]["best_fixed_cut"] == pytest.approx(136.4, abs=0.1)
    assert found["yardsticks"]["clairvoyant"] == pytest.approx(243.3, abs=0.1)
    assert found["policies"]["coaf"]["good_per_hour"] > found["yardsticks"]["best_fixed_cut"]
