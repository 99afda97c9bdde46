"""Algorithm 1 in sessions: the paper's two features, its estimates, and what it does when back."""

from functools import partial

import numpy as np
import pytest

from coaf.bandit.policies.coaf import COAF
from coaf.cryoem.grid import Hole, Patch
from coaf.cryoem.microscope import Survey
from coaf.cryoem.pilot import Left, Open, Scored
from coaf.cryoem.pilots.paper import WholePatch, paper_pilot, paper_policy, printed_features
from coaf.cryoem.reward import Combined, GoodBelow, Graded, Particles, Reward
from coaf.cryoem.session.collect import collect
from coaf.cryoem.simulator.simulator import Simulator
from coaf.cryoem.timing import FAST

BOTH = ("ice", "prediction")
LEFT = Left(10_000.0, FAST)


def survey(name: str, ice: list[float], told: list[float]) -> Survey:
    holes = tuple(Hole(f"{name}-{k}", float(k), 0.0) for k in range(len(ice)))
    patch = Patch(name, "s", holes, 0.0, 0.0)
    return Survey("s", (patch,), {name: np.column_stack([ice, told])})


def test_the_two_features_are_mean_pixel_value_and_score() -> None:
    mean = np.array([1.0, 0.5, 0.2])
    rows = np.column_stack([np.zeros(3), -np.log(mean), [3.0, 6.0, 30.0]])
    found = printed_features(rows, columns=("edge", *BOTH))
    assert found * np.sqrt(2.0) == pytest.approx(np.column_stack([mean, [1.0, 0.5, 0.1]]))
    # Whatever a survey says, the norm is at most 1, as the paper assumes.
    wild = np.array([[-3.0, 0.01], [50.0, 1e9], [0.0, 3.0]])
    assert np.linalg.norm(printed_features(wild, columns=BOTH), axis=1).max() <= 1.0 + 1e-12


def test_a_prediction_alone_is_used_as_before() -> None:
    found = printed_features(np.array([[5.0], [20.0]]), columns=("prediction",))
    u = np.array([-0.5, 1.0])
    assert found * np.sqrt(3.0) == pytest.approx(np.column_stack([np.ones(2), u, u * u]))
    assert (printed_features(np.ones((2, 1)), columns=("ice",))[:, 1:] == 0.0).all()


@pytest.mark.parametrize(
    ("reward", "bound"),
    [
        (GoodBelow(3.8), 1.0),
        (Graded(), 1.0),
        (Particles(100.0), 1.5),
        (Particles(50.0), 3.0),
        (Combined((GoodBelow(3.8), Particles(100.0))), 1.5),
        (GoodBelow(2.0), 1.0),  # which nothing reaches
    ],
)
def test_rewards_are_in_the_paper_s_unit(reward: Reward, bound: float) -> None:
    belief = paper_pilot(BOTH, reward).policy.belief
    assert belief is not None
    state = belief.state()
    assert (state["norm_bound"], state["noise"], state["mean_bound"]) == (bound, bound, bound)
    assert (state["scale"], state["within"]) == (1.0, "ball")


def test_in_another_unit_it_decides_the_same() -> None:
    shown = survey("a", [0.1, 0.4, 0.8], [3.5, 6.0, 12.0])
    chosen = []
    for bound in (1.0, 2.5):
        policy = paper_policy(scale=1.0, columns=BOTH, bound=bound)
        pilot = WholePatch(policy, partial(printed_features, columns=BOTH))
        pilot.opened(shown, FAST)
        here = Open(shown.patches[0], (0, 1, 2))
        for k in range(40):
            pilot.scored([Scored(f"a-{k % 3}", 0, bound * (k % 3 == 0))])
            pilot.done(here, LEFT)
        decision = pilot.decide(here, LEFT)
        chosen.append((decision.estimates / bound, decision.rate / bound, decision.chosen))
    assert chosen[0][0] == pytest.approx(chosen[1][0])
    assert chosen[0][1] == pytest.approx(chosen[1][1])
    assert chosen[0][1] > 0.0
    assert (chosen[0][2] == chosen[1][2]).all()


def test_it_is_optimistic_and_says_what_it_expects() -> None:
    shown = survey("a", [0.1, 0.4, 0.8], [3.5, 6.0, 12.0])
    pilot = paper_pilot(BOTH, GoodBelow())
    pilot.opened(shown, FAST)
    pilot.scored([Scored(f"a-{k}", 0, 1.0 - k / 2) for k in range(3)])
    here = Open(shown.patches[0], (0, 1, 2))
    hopes, means = pilot.decide(here, LEFT).estimates, pilot.estimates(here.patch)
    assert (hopes > means).all()
    assert pilot.hole(here, LEFT, inside=False).estimate == pytest.approx(means[np.argmax(hopes)])


def test_back_it_goes_where_something_is_chosen_and_takes_the_rest_only_when_idle() -> None:
    good, bad = survey("good", [0.1] * 8, [3.2] * 8), survey("bad", [1.5] * 8, [15.0] * 8)
    pilot = WholePatch(
        COAF.paper(2, scale=0.01, norm_bound=2.0, mean_bound=1.0),
        partial(printed_features, columns=BOTH),
    )
    for shown in (bad, good):
        pilot.opened(shown, FAST)
    every = range(8)
    for _ in range(30):
        pilot.scored([Scored(f"good-{k}", 0, 1.0) for k in every])
        pilot.scored([Scored(f"bad-{k}", 0, 0.0) for k in every])
    poor, rich = (Open(shown.patches[0], tuple(every)) for shown in (bad, good))
    for _ in range(60):  # until it knows what a second is worth
        pilot.moved(rich, LEFT, None)
        for k in every:
            pilot.exposed(f"good-{k}")
        pilot.done(rich, LEFT)
    assert pilot.hole(poor, LEFT, inside=False).name is None
    back = Left(10_000.0, FAST, patches=(poor, rich), returning=True)
    assert pilot.patch([poor, rich], back).name == "good"
    assert pilot.hole(poor, back, inside=False).name is None, "the other is worth it"
    alone = Left(10_000.0, FAST, patches=(poor,), returning=True)
    assert pilot.patch([poor], alone).name == "bad"
    assert pilot.hole(poor, alone, inside=False).why == "All that was left, as time remains."


def test_a_session_uses_its_time_and_warns_of_nothing(recwarn: pytest.WarningsRecorder) -> None:
    simulator = Simulator(1001, squares=3, pixels=False, prediction=True, faults=())
    found = collect(simulator, "coaf-paper", hours=1.2, explore=0.0).line()
    every = sum(
        len(patch.holes) for s in simulator.squares() for patch in simulator.peek(s.name).patches
    )
    assert found["squares"] == 3
    assert found["hours"] > 1.1 or found["exposed"] == every
    assert not recwarn.list
