"""The simulated grid: like the real one on average, the same by seed, and made as it says."""

from functools import partial

import numpy as np
import pytest

from coaf.cryoem.feedback import Feedback
from coaf.cryoem.microscope import upkeep_of
from coaf.cryoem.recorded.seconds import Seconds
from coaf.cryoem.simulator.conditions import (
    Conditions,
    expected_resolution,
    resolution,
    thickness_loss,
)
from coaf.cryoem.simulator.grid import make_grid, make_square
from coaf.cryoem.simulator.record import record
from coaf.cryoem.simulator.simulator import Simulator
from coaf.cryoem.timing import MAINTENANCE, LearnedTiming, Timing
from grid_statistics import between, describe, intraclass, ranking, tabulate

quick = partial(Simulator, pixels=False)

# The real grid's value, and how far the mean of 10 simulated ones may be from it: about three
# standard errors of that mean, and what the calibration leaves.
REAL = {
    "holes in a patch": (20.5, 0.8),
    "… standard deviation": (3.3, 0.6),
    "patches in a square": (173 / 25, 0.8),
    "good, below 3.8 Å": (0.143, 0.03),
    "good, below 4 Å": (0.165, 0.03),
    "good, below 6 Å": (0.377, 0.05),
    "no fit": (0.013, 0.004),
    "patches without a hole below 3.8 Å": (0.46, 0.07),
    "intraclass correlation in patches, 3.8 Å": (0.30, 0.04),
    "intraclass correlation in patches, 6 Å": (0.39, 0.04),
    "sum of squares, 6 Å: square": (0.25, 0.05),
    "… patch in square": (0.17, 0.03),
    "… hole in patch": (0.58, 0.04),
    "prediction: Spearman": (0.73, 0.03),
    "prediction: r within patches": (0.54, 0.03),
    "prediction: r of patch means": (0.87, 0.03),
    "prediction: AUC, 3.8 Å": (0.88, 0.03),
    "share of good with a prediction below 3.8 Å": (0.13, 0.06),
    "good, difference between areas": (0.07, 0.04),
    "particles of a good micrograph": (94.0, 10.0),
}


def test_grids_are_like_the_real_one_on_average_and_differ() -> None:
    every = [describe(tabulate(quick(seed, prediction=True))) for seed in range(10)]
    for name, (real, tolerance) in REAL.items():
        assert np.mean([one[name] for one in every]) == pytest.approx(real, abs=tolerance), name
    assert np.std([one["good, below 3.8 Å"] for one in every]) > 0.01


def test_statistics_against_plain_sums() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 5, 60)
    y = (rng.random(60) < 0.2 + 0.1 * labels).astype(np.float64)
    means = np.array([y[labels == k].mean() for k in labels])
    assert between(y, labels) == pytest.approx(means.var() / y.var())
    pairs = [(a > b) + 0.5 * (a == b) for a in means[y > 0] for b in means[y == 0]]
    assert ranking(y > 0, means) == pytest.approx(np.mean(pairs))
    assert abs(intraclass(rng.random(4000), np.repeat(np.arange(400), 10))) < 0.05


def test_the_same_seed_is_the_same_grid_in_whatever_order_it_is_asked() -> None:
    one, other = quick(7, squares=4, shots=2), quick(7, squares=4, shots=2)
    names = [square.name for square in one.squares()]
    forth = {n: one.peek(n) for n in names}
    back = {n: other.peek(n) for n in reversed(names)}
    for name in names:
        assert forth[name].patches == back[name].patches
        for patch in forth[name].patches:
            same = np.array_equal(forth[name].features[patch.name], back[name].features[patch.name])
            assert same
            for hole in patch.holes[::-1]:
                assert one.truth(hole.name, 1) == other.truth(hole.name, 1)
    assert quick(8, squares=4).squares() != one.squares()


def test_what_is_scored_is_the_truth_of_a_first_visit() -> None:
    simulator = quick(1, squares=2, delay="none", faults=())
    patch = simulator.survey(simulator.squares()[0].name).patches[0]
    simulator.move(patch)
    for hole in patch.holes:
        simulator.expose(hole)
    scores = simulator.collect()
    assert [s.ctf for s in scores] == [simulator.truth(s.hole) for s in scores]
    assert [s.particles for s in scores] == [simulator.particles(s.hole) for s in scores]
    assert len(scores) == len(patch.holes)


def test_quality_is_best_between_thin_and_thick() -> None:
    conditions = Conditions()
    nm = np.array([5.0, 12.0, 30.0, 45.0, 120.0, 300.0])
    ctf = resolution(conditions, thickness_loss(conditions, nm))
    assert (np.diff(ctf[:3]) < 0).all()
    assert ctf[2] == ctf[3] < ctf[4] < ctf[5]


def test_the_expected_resolution_is_a_mean() -> None:
    conditions = Conditions()
    rng = np.random.default_rng(0)
    focus, luck, shot = rng.standard_normal((3, 200_000))
    badness = (
        0.4
        + conditions.focus * np.abs(focus)
        + conditions.luck * luck
        + conditions.shot_luck * shot
    )
    mean = float(resolution(conditions, badness).mean())
    # The half normal of focus is taken as a normal of the same mean and variance.
    assert expected_resolution(conditions, np.array([0.4]))[0] == pytest.approx(mean, rel=0.01)


def test_thick_squares_say_so_in_the_atlas_and_in_the_features_but_not_for_sure() -> None:
    bright, free, share, patches, ice, ctf = [], [], [], [], [], []
    for seed in range(3):
        simulator = quick(seed)
        for square in simulator.squares():
            survey = simulator.peek(square.name)
            true = [simulator.truth(h.name) for p in survey.patches for h in p.holes]
            if not true:
                continue
            bright.append(square.features[0])
            free.append(square.features[2])
            share.append(np.mean([t is not None and t < 6.0 for t in true]))
            patches.append(len(survey.patches))
            rows = np.concatenate([survey.features[p.name] for p in survey.patches])
            ice += rows[:, 0].tolist()
            ctf += [99.0 if t is None else t for t in true]
    assert 0.4 < np.corrcoef(bright, share)[0, 1] < 0.9
    assert np.corrcoef(free, patches)[0, 1] > 0.8
    assert 0.7 < ranking(np.array(ctf) < 6.0, -np.array(ice)) < 0.95


def test_pixels_speak_differently_of_quality_on_each_grid_and_in_each_area() -> None:
    grids = [make_grid(Conditions(), seed, 25) for seed in range(40)]
    gains = np.log([grid.gain for grid in grids])
    assert gains.std() == pytest.approx(Conditions().pixel_gain, rel=0.35)
    assert all(len(np.unique(grid.sight)) == len(np.unique(grid.tile)) > 1 for grid in grids)


def test_shots_of_a_hole_are_alike_and_not_the_same() -> None:
    conditions = Conditions()
    grid = make_grid(conditions, 0, 1)
    luck = make_square(conditions, grid, 0, 0, 2).luck
    expected = conditions.luck**2 / (conditions.luck**2 + conditions.shot_luck**2)
    assert np.corrcoef(luck[:, 0], luck[:, 1])[0, 1] == pytest.approx(expected, abs=0.08)


def test_focus_is_shared_by_a_visit_and_another_visit_has_another() -> None:
    # Nothing but focus varies here, apart from the way the ice is.
    conditions = Conditions(luck=0.0, shot_luck=0.0, shift_loss=0.0, missed=0.0, false=0.0)
    simulator = quick(2, squares=2, conditions=conditions, delay="none", faults=())
    patch = next(p for s in simulator.squares() for p in simulator.survey(s.name).patches)
    blind = quick(2, squares=2, conditions=Conditions(**{**_fields(conditions), "focus": 0.0}))
    half = len(patch.holes) // 2
    errors = []
    for holes in (patch.holes[:half], patch.holes[half:]):
        simulator.move(patch)
        for hole in holes:
            simulator.expose(hole)
        got = {s.hole: s.ctf for s in simulator.collect()}
        bad = [
            (_badness(conditions, ctf), _badness(conditions, blind.truth(name)))
            for name, ctf in got.items()
            if ctf is not None
        ]
        errors.append([a - b for a, b in bad])
    for visit in errors:
        assert np.ptp(visit) < 1e-6
    assert abs(errors[0][0] - errors[1][0]) > 1e-3


def _fields(conditions: Conditions) -> dict[str, float]:
    return {name: getattr(conditions, name) for name in Conditions.__dataclass_fields__}


def _badness(conditions: Conditions, ctf: float | None) -> float:
    assert ctf is not None
    bend = (ctf - conditions.floor) / conditions.scale * conditions.steep
    return float(np.log(np.expm1(bend)) / conditions.steep)


def test_image_shift_costs_quality() -> None:
    near: list[float] = []
    far: list[float] = []
    simulator = quick(3, squares=9, conditions=Conditions().scaled(shift_loss=50.0))
    for square in simulator.squares():
        for patch in simulator.peek(square.name).patches:
            for hole in patch.holes:
                ctf = simulator.truth(hole.name)
                shift = np.hypot(hole.x - patch.x, hole.y - patch.y)
                if ctf is not None:
                    (near if shift < 4.0 else far).append(ctf)
    assert np.mean(far) > np.mean(near) + 1.0


def test_in_a_fault_every_score_is_bad_and_after_it_they_are_not() -> None:
    sick = quick(0, squares=3, delay="none", faults=[(0.0, 6 * 3600.0)])
    well = quick(0, squares=3, delay="none", faults=())
    scores = []
    for simulator in (sick, well):
        for square in simulator.squares():
            for patch in simulator.survey(square.name).patches:
                simulator.move(patch)
                for hole in patch.holes:
                    simulator.expose(hole)
        scores.append([s.ctf for s in simulator.collect() if s.ctf is not None])
    assert min(scores[0]) > 8.0
    assert min(scores[1]) < 4.0


def test_a_share_of_grids_has_a_fault_by_itself() -> None:
    with_fault = sum(bool(quick(seed, squares=1).faults) for seed in range(200))
    assert with_fault / 200 == pytest.approx(Conditions().fault_share, abs=0.06)


@pytest.mark.parametrize(
    ("regime", "hole", "patch"),
    [("fast", (6.66, 0.4), (58.65, 5.0)), ("slow", (87.0, 2.0), (250, 30))],
)
def test_times_have_the_measured_means(
    regime: str, hole: tuple[float, float], patch: tuple[float, float]
) -> None:
    inner, outer = [], []
    for seed in range(8):
        simulator = quick(seed, regime=regime, squares=6)  # type: ignore[arg-type]
        for square in simulator.squares():
            for one in simulator.survey(square.name).patches:
                before = upkeep_of(simulator)
                way = simulator.move(one) - (upkeep_of(simulator) - before)
                first, *rest = (simulator.expose(h) for h in one.holes)
                outer.append(way + first)
                inner += rest
    assert np.mean(inner) == pytest.approx(hole[0], abs=hole[1])
    assert np.mean(outer) == pytest.approx(patch[0], abs=patch[1])


def test_a_way_takes_as_long_whatever_was_done_before() -> None:
    one, other = quick(3, squares=4), quick(3, squares=4)
    ways: dict[str, list[float]] = {}
    for simulator, step in ((one, 1), (other, -1)):
        for square in simulator.squares()[::step]:
            for patch in simulator.survey(square.name).patches[::step]:
                before = upkeep_of(simulator)
                took = simulator.move(patch) - (upkeep_of(simulator) - before)
                ways.setdefault(patch.name, []).append(took)
    assert all(a == pytest.approx(b) for a, b in ways.values())
    assert len({round(a, 6) for a, _ in ways.values()}) == len(ways)


def test_maintenance_spends_time_and_trains_nothing() -> None:
    simulator = quick(0, regime="slow", squares=6)
    learned = LearnedTiming(simulator.timing)
    for square in simulator.squares():
        for patch in simulator.survey(square.name).patches:
            simulator.move(patch)
            simulator.wait(1800.0)
    for level, seconds in simulator.log:
        learned.learn(level, seconds)
    spent = sum(seconds for level, seconds in simulator.log if level in MAINTENANCE)
    assert spent == pytest.approx(upkeep_of(simulator))
    assert spent > 1000.0
    found = Timing.from_log(simulator.log, prior=simulator.timing)
    assert found.maintenance == sum(level in MAINTENANCE for level, _ in simulator.log)
    for timing in (found.timing, learned.timing):
        # One way in eight loses focus for minutes, which is the focus's and not maintenance.
        assert timing.move == pytest.approx(simulator.timing.move, rel=0.05)


def test_the_hole_finders_mistakes_reach_the_survey() -> None:
    careless = Conditions(missed=0.2, false=0.1, no_fit=0.0, empty=0.0)
    clean = Conditions(missed=0.0, false=0.0, no_fit=0.0, empty=0.0)
    holes, failed = {}, {}
    for conditions in (careless, clean):
        simulator = quick(5, squares=6, conditions=conditions)
        true = [
            simulator.truth(hole.name)
            for square in simulator.squares()
            for patch in simulator.peek(square.name).patches
            for hole in patch.holes
        ]
        holes[conditions], failed[conditions] = len(true), true.count(None)
    assert holes[careless] / holes[clean] == pytest.approx(0.8, abs=0.04)
    assert failed[careless] / holes[careless] == pytest.approx(0.1, abs=0.04)
    assert failed[clean] < 0.01 * holes[clean]


def test_a_recording_holds_what_the_simulator_would_give() -> None:
    simulator = quick(4, squares=5, prediction=True, shots=2)
    recording = record(simulator)
    surveys = [simulator.peek(square.name) for square in simulator.squares()]
    patches = [patch for survey in surveys for patch in survey.patches]
    assert recording.patches == tuple(patch.name for patch in patches)
    assert recording.squares == tuple(patch.square for patch in patches)
    assert recording.holes == tuple(hole.name for patch in patches for hole in patch.holes)
    assert recording.columns == simulator.feature_names
    shown = [survey.features[patch.name] for survey in surveys for patch in survey.patches]
    assert np.array_equal(recording.known, np.concatenate(shown))
    for i, hole in enumerate(hole for patch in patches for hole in patch.holes):
        assert (recording.x[i], recording.y[i]) == (hole.x, hole.y)
        told = [(score.ctf, score.particles) for score in recording.scores(i)]
        assert told == [
            (simulator.truth(hole.name, k), simulator.particles(hole.name, k)) for k in (0, 1)
        ]
    assert recording.seconds == Seconds(12.09, 51.99, 6.66, 4.0)


def test_bad_settings_are_named() -> None:
    for wrong, message in (
        ({"regime": "warp"}, "regime is 'warp'; there are fast, slow"),
        ({"foil": "lead"}, "foil is 'lead'"),
        ({"shots": 0}, "shots"),
        ({"squares": 0}, "squares"),
        ({"delay": "later"}, "delay"),
        ({"seed": -1}, "seed"),
    ):
        with pytest.raises(ValueError, match=message):
            quick(**wrong)
    with pytest.raises(ValueError, match="thin"):
        Conditions(thin=50.0, thick=40.0)
    with pytest.raises(ValueError, match="a share is at most 1"):
        Conditions(missed=1.5)
    with pytest.raises(ValueError, match="luck"):
        Conditions(luck=-0.1)
    with pytest.raises(ValueError, match="no 'lukc'"):
        Conditions().scaled(lukc=1.3)


def test_every_number_of_the_world_matters() -> None:
    # What is rare must be made frequent, for a short session to meet it; this grid has a fault.
    conditions = Conditions(thickness=50.0, defocus_steps=2.0, sight_shift=0.1)
    factors = dict.fromkeys(Conditions.__dataclass_fields__, 8.0) | {"thin": 1.3, "usable": 1.3}
    factors["fault_share"] = 0.0
    factors |= dict.fromkeys(("outage_every", "lapse_every"), 0.02)
    untouched = []
    plain = _session(conditions)
    for name, factor in factors.items():
        if _session(conditions.scaled(**{name: factor})) == plain:
            untouched.append(name)
    assert not untouched, ", ".join(untouched)


def _session(conditions: Conditions) -> tuple[object, ...]:
    """Two squares of a grid with a fault, taken whole and slowly."""
    simulator = Simulator(
        12, squares=2, pixels=False, prediction=True, shots=2, conditions=conditions
    )
    seen: list[object] = [simulator.squares(), simulator.faults]
    for square in simulator.squares():
        survey = simulator.survey(square.name)
        for patch in survey.patches[:3]:
            seen += [simulator.move(patch), survey.features[patch.name].tobytes()]
            for hole in patch.holes:
                simulator.expose(hole)
                simulator.wait(1200.0)
    simulator.wait(1e7)
    return (*seen, tuple(simulator.collect()), simulator.clock)


def test_scores_come_through_the_queue() -> None:
    simulator = quick(6, squares=4)
    patch = next(p for s in simulator.squares() for p in simulator.survey(s.name).patches)
    simulator.move(patch)
    queue = Feedback("measured", seed=6)
    for hole in patch.holes:
        simulator.expose(hole)
    simulator.wait(1e6)
    scores = simulator.collect()
    assert simulator.feedback.lost + len(scores) == len(patch.holes)
    assert queue.seed == simulator.feedback.seed
    assert all(score.arrived_at > score.exposed_at for score in scores)


def test_conditions_were_called_a_world() -> None:
    """What was written for `World` still runs, and is told the name of today."""
    import coaf.cryoem

    with pytest.warns(DeprecationWarning, match="is coaf.cryoem.Conditions"):
        former = coaf.cryoem.World
    assert former is Conditions
    with pytest.warns(DeprecationWarning, match=r"is Simulator\(conditions=...\)"):
        simulator = quick(1, squares=2, world=former(luck=0.2))
    assert simulator.conditions == Conditions(luck=0.2)
    with pytest.raises(AttributeError, match="has no attribute 'Wrold'"):
        coaf.cryoem.Wrold  # noqa: B018
