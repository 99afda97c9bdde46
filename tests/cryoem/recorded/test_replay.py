"""Policies over a recorded grid: what is counted, and that nothing but the orders is random."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coaf.bandit.beliefs.mixture import Mixture
from coaf.bandit.latency import Setup
from coaf.bandit.policies.policy import Policy
from coaf.bandit.problem import Round
from coaf.cryoem.pilot import Pilot
from coaf.cryoem.pilots.catalogue import pilot_for
from coaf.cryoem.pilots.coaf import CoafPilot
from coaf.cryoem.pilots.paper import paper_policy, printed_features
from coaf.cryoem.recorded.build import HoleRow, ShotRow, from_rows
from coaf.cryoem.recorded.columns import MEASURED, Column, RecordingError
from coaf.cryoem.recorded.folder import write_recording
from coaf.cryoem.recorded.reading import read_recording
from coaf.cryoem.recorded.recording import Recording
from coaf.cryoem.recorded.replay import (
    PLAYED,
    Pass,
    orders_of,
    play,
    play_orders,
    recorded_order,
    replay,
    summarise,
)
from coaf.cryoem.recorded.seconds import Seconds
from coaf.cryoem.reports.replay import curve
from coaf.cryoem.reward import GoodBelow, Particles, parse_reward
from coaf.cryoem.session.events import Settings
from coaf.cryoem.simulator.record import record
from coaf.cryoem.simulator.simulator import Simulator
from cryoem.recorded.recordings import NAN, small
from outside import DATA

GOOD = GoodBelow(3.8)
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
    seconds = Seconds(10.0, 50.0, 6.0)
    found = play(recording, "take-all", range(12), reward=GoodBelow(4.0), seconds=seconds)
    n = len(recording.holes)
    good = int((recording.shots.values["ctf"] < 4.0).sum())  # NaN is not
    assert found[:2] == (good, n)
    assert found.seconds == pytest.approx(12 * 60.0 + 6.0 * n)
    assert summarise([found])["good_per_hour"] == pytest.approx(good / found.seconds * 3600.0)


def by_hand(recording: Recording, policy: Policy, order: list[int]) -> Pass:
    """Whole subsets of patches by a policy that is told every score at once."""
    worth, told = recording.worth(GOOD).rewards, recording.column("prediction")
    seconds, gains, clock = recording.seconds, [], 0.0
    for patch in order:
        rows = np.arange(recording.starts[patch], recording.starts[patch + 1])
        features = printed_features(told[rows, None], columns=("prediction",))
        decision = policy.decide(Round(features, Setup(*seconds[:3])))
        clock += seconds.survey
        taken = decision.arms[np.argsort(-decision.estimates[decision.arms], kind="stable")]
        clock += seconds.move if len(taken) else 0.0
        for arm in taken.tolist():
            clock += seconds.expose
            gains.append((clock, float(worth[rows[arm]])))
        policy.commit(decision)
        policy.learn(decision, taken, worth[rows[taken]])
    return Pass(sum(gain for _, gain in gains), len(gains), clock, tuple(gains))


@pytest.mark.parametrize(("name", "scale"), [("coaf-paper", 1.0), ("coaf-tuned", 0.1)])
def test_the_paper_s_policy_is_played_as_by_hand(
    recording: Recording, name: str, scale: float
) -> None:
    for number in range(3):
        order = orders_of(recording, "random", 0, number)
        assert order is not None
        found = play(recording, name, order, reward=GOOD)
        due = by_hand(recording, paper_policy(scale=scale), order)
        assert found[:2] == due[:2]
        assert found.seconds == pytest.approx(due.seconds)
        assert np.array(found.gains) == pytest.approx(np.array(due.gains))


def test_yardsticks_go_by_the_best_of_the_columns_that_pilots_see(tmp_path: Path) -> None:
    """Whatever it is called; and there are none where pilots see none."""
    known = {"good": [1.0, 0.0, 1.0, 0.0], "noise": [1.0, 1.0, 0.0, 0.0]}
    rows = [
        HoleRow(f"h{k}", f"p{k // 2}", "s", "g", known=[known[c][k] for c in known])
        for k in range(4)
    ]
    shots = [ShotRow(f"h{k}", 0, values={"ctf": 3.0 if k % 2 == 0 else 9.0}) for k in range(4)]
    described = {**{c: Column("before") for c in known}, "ctf": MEASURED["ctf"]}
    made = from_rows("two columns", rows, shots, described, Seconds())
    folder = write_recording(made, tmp_path / "made")

    def yardsticks(columns: list[str] | None) -> tuple[dict[str, float], dict[str, str]]:
        found = replay(folder, policies=["take-all"], orders=1, workers=1, columns=columns)
        return found["yardsticks"], found["data"]["yardstick_columns"]

    (both, by), (noise, other), (none, nothing) = map(yardsticks, (None, ["noise"], []))
    assert by == {"calibrated": "good", "best_fixed_cut": "good"}
    assert other == {"calibrated": "noise", "best_fixed_cut": "noise"}
    assert both["best_fixed_cut"] == pytest.approx(both["clairvoyant"])
    assert noise["best_fixed_cut"] < both["best_fixed_cut"]
    assert (set(none), nothing) == ({"clairvoyant"}, {})


def test_what_is_printed(folder: Path, recording: Recording) -> None:
    seen: list[tuple[int, int]] = []
    names = ["coaf", "coaf-paper", "coaf-tuned", "take-all", "fixed-cut", "score-order"]
    found = replay(
        folder, policies=names, orders=3, workers=1, progress=lambda *at: seen.append(at)
    )
    assert seen == [(k + 1, 18) for k in range(18)]
    assert list(found["policies"]) == names
    for told in found["policies"].values():
        assert {"good_per_hour", "good", "exposed", "hours"} <= set(told)
        assert 0 <= told["good"] <= told["exposed"] <= len(recording.holes)
        assert told["good_per_hour"] <= found["yardsticks"]["clairvoyant"] + 1e-9
    take_all = found["policies"]["take-all"]
    assert take_all["standard_error"] == pytest.approx(0.0, abs=1e-12), "whatever the order"
    assert set(found["yardsticks"]) == {"clairvoyant", "calibrated", "best_fixed_cut"}
    assert found["yardsticks"]["best_fixed_cut"] >= take_all["good_per_hour"] - 1e-9
    assert (found["data"]["holes"], found["data"]["patches"]) == (len(recording.holes), 12)
    assert (found["data"]["squares"], found["data"]["without_fit"]) == (3, 1)
    assert (found["data"]["reward"], found["data"]["not_played"]) == ("ctf<3.8", 0)
    assert json.loads(json.dumps(found)) == found


def test_numbers_do_not_depend_on_workers(folder: Path) -> None:
    settings: dict[str, Any] = {"orders": 4, "seed": 3, "feedback_delay": "measured"}
    one = replay(folder, workers=1, **settings)
    assert replay(folder, workers=3, **settings) == one
    other = replay(folder, workers=1, **(settings | {"seed": 4}))
    assert other["policies"]["coaf"] != one["policies"]["coaf"]


def test_numbers_do_not_depend_on_a_cluster(folder: Path) -> None:
    distributed = pytest.importorskip("distributed")
    settings: dict[str, Any] = {"orders": 3, "feedback_delay": "measured"}
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", processes=True
    ) as started:
        there = replay(folder, dask=started.scheduler_address, **settings)
    assert there == replay(folder, workers=1, **settings)
    with pytest.raises(ValueError, match="a number of workers or a Dask cluster, not both"):
        replay(folder, workers=2, dask="tcp://127.0.0.1:9")


def test_more_orders_begin_with_the_same(recording: Recording) -> None:
    few = play_orders(recording, "coaf", range(2), seed=0, reward=GOOD)
    more = play_orders(recording, "coaf", range(3), seed=0, reward=GOOD)
    assert more[:2] == few
    assert play_orders(recording, "coaf", [2], seed=0, reward=GOOD) == more[2:]


def test_no_delay_is_none(recording: Recording) -> None:
    for name in ("coaf", "coaf-tuned"):
        passes = [
            play_orders(recording, name, range(2), seed=0, reward=GoodBelow(4.5), delay=delay)
            for delay in ("none", 0.0, 1e9)
        ]
        assert passes[0] == passes[1]
        assert passes[0] != passes[2], f"{name} learns from scores"


@pytest.mark.parametrize(("delay", "lag"), [(0.0, 0), (45.0, 1), (91.0, 1), (92.0, 2)])
def test_a_score_not_in_at_the_next_hole_is_late(
    recording: Recording, delay: float, lag: int
) -> None:
    """Holes take 91 s here: half of that is one hole too late, not none."""
    made: list[Pilot] = []

    def make(settings: Settings) -> Pilot:
        made.append(pilot_for(replace(settings, pilot="coaf")))
        return made[-1]

    slow, bare = Seconds(10.0, 95.0, 91.0), recording.seen_by([])
    play(bare, make, range(12), reward=GoodBelow(6.0), seconds=slow, delay=delay)
    (pilot,) = made
    assert isinstance(pilot, CoafPilot)
    assert pilot.policy.lag == lag


def test_the_time_there_is_is_kept(recording: Recording) -> None:
    """In any order: what is begun ends in time, as times are constant here."""
    for order in (list(range(12)), None):
        whole = play(recording, "take-all", order, reward=GOOD)
        some = play(recording, "take-all", order, reward=GOOD, hours=0.2)
        assert some.seconds <= 720.0 < whole.seconds
        assert 0 < some.exposed < whole.exposed == len(recording.holes)
        assert some.gains == whole.gains[: some.exposed], "the beginning of the same"


def test_free_pilots_open_squares_and_return(recording: Recording) -> None:
    """Taking all costs the same in any order; who is free may take the best first."""
    shown = play(recording, "take-all", list(range(12)), reward=GOOD)
    free = play(recording, "take-all", None, reward=GOOD)
    assert free[:2] == shown[:2]
    assert free.seconds == pytest.approx(shown.seconds)
    found = {
        order: play_orders(recording, "coaf", range(1), seed=0, order=order, reward=GOOD, hours=1.0)
        for order in ("free", "recorded")
    }
    assert all(one.seconds <= 3600.0 for passes in found.values() for one in passes)
    assert found["free"][0] != found["recorded"][0]


def test_the_recorded_order_is_that_of_first_shots() -> None:
    held = small()
    assert recorded_order(held) == [0, 1, 2]
    late = np.array([500.0, 504.0, 508.0, 520.0, 524.0, 90.0, 300.0])
    assert recorded_order(replace(held, shots=replace(held.shots, when=late))) == [1, 2, 0]
    some = late.copy()
    some[[0, 1, 3, 6]] = np.nan
    assert recorded_order(replace(held, shots=replace(held.shots, when=some))) == [1, 0, 2]
    none = np.full(7, np.nan)
    assert recorded_order(replace(held, shots=replace(held.shots, when=none))) == [0, 1, 2]


def test_kinds_of_orders(folder: Path, recording: Recording) -> None:
    assert orders_of(recording, "free", 0, 5) is None
    assert orders_of(recording, "recorded", 0, 5) == list(range(12))
    random = [orders_of(recording, "random", 0, k) for k in range(3)]
    assert all(sorted(order or ()) == list(range(12)) for order in random)
    assert len({tuple(order or ()) for order in random}) == 3
    for order in ("recorded", "free"):
        found = replay(folder, order=order, orders=50, workers=1, policies=["coaf"])
        assert found["data"]["orders"] == 1, "nothing is drawn"
        assert (found["data"]["order"], found["data"]["hours"]) == (order, None)
        assert found["policies"]["coaf"]["standard_error"] is None
        assert json.loads(json.dumps(found)) == found
    drawn = replay(folder, order="recorded", orders=2, workers=1, feedback_delay="measured")
    assert drawn["data"]["orders"] == 2, "scores come at random"


def test_columns_may_be_chosen(folder: Path, recording: Recording) -> None:
    settings: dict[str, Any] = {"orders": 2, "workers": 1}
    seen = replay(folder, columns=["prediction"], **settings)
    assert seen == replay(folder, **settings)
    blind = replay(folder, columns=[], **settings)
    assert blind["data"]["columns"] == []
    assert set(blind["yardsticks"]) == {"clairvoyant"}
    assert blind["policies"]["take-all"] == seen["policies"]["take-all"]
    assert blind["policies"]["coaf"] != seen["policies"]["coaf"]
    assert 0.0 < blind["policies"]["coaf"]["good"] <= recording.worth(GOOD).rewards.sum()
    with pytest.raises(RecordingError, match="has no column 'fog' known before exposure"):
        replay(folder, columns=["fog"], **settings)
    with pytest.raises(ValueError, match="pilot fixed-cut goes by 'prediction'"):
        replay(folder, columns=[], policies=["fixed-cut"], **settings)


def test_any_recording_can_be_played(tmp_path: Path) -> None:
    """Holes of three shots, some column of the simulator's, and particles."""
    held = record(Simulator(4, squares=3, pixels=False, shots=3))
    folder = write_recording(held, tmp_path)
    told = ("fixed-cut", "cut-and-count", "score-order", "patch-order")  # need a prediction
    names = [name for name in PLAYED if name not in told]
    settings: dict[str, Any] = {"orders": 1, "workers": 1, "reward": Particles(failed="bad")}
    found = replay(folder, policies=names, columns=["ice", "edge"], **settings)
    assert found["data"]["columns"] == ["ice", "edge"]
    worth = held.worth(Particles(failed="bad")).rewards
    everything = found["policies"]["take-all"]
    assert everything["good"] == pytest.approx(worth.sum())
    assert everything["exposed"] == len(held.holes)
    times, patches = held.seconds, len(held.patches)
    whole = patches * (times.survey + times.move) + len(held.holes) * times.hole(3)
    assert everything["hours"] == pytest.approx(whole / 3600.0)
    assert all(told["standard_error"] is None for told in found["policies"].values())
    other = replay(folder, policies=["coaf"], columns=["edge"], **settings)
    assert 0.0 < other["policies"]["coaf"]["good"] <= worth.sum()


def test_several_shots_are_learned_one_by_one() -> None:
    """By hand: h1 has three shots, h2 two, h3 one; the others are not played."""
    made: list[Pilot] = []

    def make(settings: Settings) -> Pilot:
        made.append(pilot_for(replace(settings, pilot="coaf")))
        return made[-1]

    held = small().playable()
    found = play(held, "take-all", [0, 1], reward=GOOD)
    assert found[:2] == (3.0, 3)
    assert found.gains == ((76.0, 1.0), (86.0, 2.0), (154.0, 0.0))
    play(held, make, [0, 1], reward=GOOD)
    assert isinstance(made[0], CoafPilot)
    assert isinstance(made[0].policy.belief, Mixture)
    assert made[0].policy.belief.rows == 5, "all shots of the first patch"


def alike(seed: int) -> Recording:
    """Eight patches of twelve holes with five shots each: holes differ much, patches do not."""
    rng = np.random.default_rng(seed)
    holes, shots = [], []
    for k in range(96):
        holes.append(HoleRow(f"h{k}", f"p{k // 12}", "s", "g", NAN, NAN, []))
        own = 100.0 + 50.0 * rng.standard_normal()
        for number in range(5):
            found = {"particles": max(own + 15.0 * rng.standard_normal(), 0.0)}
            shots.append(ShotRow(f"h{k}", number, 10.0 * (5 * k + number), found))
    seconds = Seconds(survey=12.0, move=52.0, expose=4.0, shot=4.0)
    return from_rows("alike", holes, shots, {"particles": MEASURED["particles"]}, seconds)


def test_shots_of_one_hole_do_not_pass_for_many_holes() -> None:
    """Nothing is to be known of patches, so taking all is best; leaving early costs a little."""
    reward = parse_reward("particles/100")
    shares = []
    for seed in range(4):
        recording = alike(seed)
        ours, everything = (
            play_orders(recording, name, [0], seed=seed, reward=reward)[0]
            for name in ("coaf", "take-all")
        )
        assert ours.exposed >= 24
        shares.append((ours.good / ours.seconds) / (everything.good / everything.seconds))
    assert np.mean(shares) > 0.95


def test_the_curve_is_the_mean_over_passes() -> None:
    passes = [
        Pass(3.0, 2, 100.0, ((10.0, 1.0), (50.0, 2.0))),
        Pass(1.0, 1, 40.0, ((30.0, 1.0),)),
    ]
    times = np.array([0.0, 10.0, 29.0, 30.0, 49.0, 50.0, 500.0])
    assert curve(passes, times).tolist() == [0.0, 0.5, 0.5, 1.0, 1.0, 2.0, 2.0]
    assert curve([Pass(0.0, 0, 10.0)], times).tolist() == [0.0] * 7


def test_one_order_has_no_error() -> None:
    assert summarise([Pass(2.0, 5, 1800.0)])["standard_error"] is None


def test_means_over_orders() -> None:
    told = summarise([Pass(2.0, 5, 1800.0), Pass(6.0, 7, 3600.0)])
    assert told["good_per_hour"] == pytest.approx(5.0), "the mean of 4 and 6, not 8 in 1.5 h"
    assert told["standard_error"] == pytest.approx(1.0)
    assert (told["good"], told["exposed"], told["hours"]) == (4.0, 6.0, 0.75)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"policies": ["best"]}, "there is no pilot 'best'; there are coaf, "),
        ({"orders": 0}, "orders is 0"),
        ({"good_below": 0.0}, "good_below is 0"),
        ({"good_below": float("nan")}, "good_below is nan"),
        ({"survey": 0.0}, "survey is 0"),
        ({"move": -1.0}, "move is -1"),
        ({"expose": -6.0}, "expose is -6"),
        ({"feedback_delay": -1.0}, "feedback_delay is -1"),
        ({"order": "best"}, "order is 'best'; there are random, recorded, free"),
        ({"hours": 0.0}, "hours is 0"),
        ({"policies": ["clairvoyant"]}, "there is no pilot 'clairvoyant'"),
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


def test_a_report_is_written(folder: Path, tmp_path: Path) -> None:
    found = replay(folder, policies=["take-all"], orders=2, workers=1, out=tmp_path / "report")
    page, *figures = map(Path, found["files"])
    assert "Good against time" in page.read_text(encoding="utf-8")
    assert all(path.stat().st_size > 1000 for path in figures)
