"""What an earlier grid taught is kept, begun with, and given up where it is wrong."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from coaf.cryoem.pilots.coaf import CoafPilot
from coaf.cryoem.pilots.designs import design_for
from coaf.cryoem.pilots.knowledge import FILE, SHARE, Knowledge, informed
from coaf.cryoem.reward import GoodBelow, Particles
from coaf.cryoem.session import events as ev
from coaf.cryoem.session.collect import collect
from coaf.cryoem.session.engine import Engine
from coaf.cryoem.session.session import Session
from coaf.cryoem.simulator.simulator import Simulator
from coaf.cryoem.timing import FAST
from cryoem.session.hand import Hand

COLUMNS = ("prediction",)
TOLD = Knowledge(
    reward="ctf<3.8",
    columns=COLUMNS,
    centre=(-4.0, -6.0, 0.5),
    spread=(0.5, 0.5, 0.4),
    effects=(0.4, 0.8),
    near=0.6,
    scores=200,
)


@cache
def session() -> Session:
    return collect(Simulator(3, squares=3, pixels=False, prediction=True), "coaf", hours=0.5)


def test_a_session_says_what_it_learned_and_a_file_keeps_it(tmp_path: Path) -> None:
    found = session().knowledge
    assert found is not None
    assert found.scores == sum(row["event"] == "score" for row in session().rows)
    assert found.reward == "ctf<3.8"
    assert len(found.centre) == 3
    for path in (found.save(tmp_path / FILE), tmp_path):
        assert Knowledge.load(path) == found


def test_what_teaches_nothing_hands_on_nothing() -> None:
    simulator = Simulator(3, squares=2, pixels=False, prediction=True)
    assert collect(simulator, "take-all", hours=0.2).knowledge is None
    assert CoafPilot(FAST, reward=GoodBelow(3.8), columns=COLUMNS).knowledge() is None
    assert CoafPilot(FAST, reward=Particles(), columns=COLUMNS).knowledge() is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"spread": (0.5,)}, "3 coefficients, 1 spreads"),
        ({"spread": (0.5, 0.0, 0.4)}, "spread.1."),
        ({"near": -1.0}, "near"),
        ({"centre": (0.0, float("nan"), 0.0)}, "centre.1."),
    ],
)
def test_what_cannot_be_knowledge_is_refused(change: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        replace(TOLD, **change)  # type: ignore[arg-type]


def test_a_file_that_holds_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no knowledge"):
        Knowledge.load(tmp_path)
    (tmp_path / FILE).write_text('{"coaf": "policy"}')
    with pytest.raises(ValueError, match=f"{FILE} is not what a session has learned"):
        Knowledge.load(tmp_path)


def test_a_session_begins_with_it_and_replays_to_the_same() -> None:
    known = session().knowledge
    simulator = Simulator(5, squares=3, pixels=False, prediction=True)
    second = collect(simulator, "coaf", hours=0.5, explore=0.0, knowledge=known)
    engine = second.engine
    assert engine is not None
    assert isinstance(engine.pilot, CoafPilot)
    assert engine.pilot.earlier == (known,)
    again = Engine.restore(json.dumps(engine.state()))
    assert again.next(engine.now) == engine.next(engine.now)


def test_an_old_state_begins_with_nothing() -> None:
    pilot = CoafPilot(FAST, reward=GoodBelow(3.8), columns=COLUMNS, earlier=[TOLD])
    state = pilot.state()
    del state["earlier"]
    pilot.restore(state)
    assert pilot.earlier == ()


def test_settings_without_it_are_read() -> None:
    told = ev.to_json(ev.Started(id="s", time=0.0, settings=ev.Settings(columns=COLUMNS)))
    for name in ("knowledge", "grids"):
        del told["settings"][name]
    event = ev.from_json(told)
    assert isinstance(event, ev.Started)
    assert event.settings.knowledge is None


def test_it_does_not_suit_another_reward_or_other_columns() -> None:
    with pytest.raises(ValueError, match="does not suit a session for ctf<6 by columns prediction"):
        Hand(pilot="coaf", reward="ctf<6", knowledge=TOLD)
    with pytest.raises(ValueError, match="by columns ice"):
        Hand(pilot="coaf", columns=("ice",), knowledge=TOLD)


def test_a_session_that_is_given_another_target_goes_on_without_it() -> None:
    hand = Hand(pilot="coaf", knowledge=TOLD)
    hand.open("s1")
    hand.tell(ev.TargetChanged, reward="ctf<6")
    assert hand.next().do == "go"
    assert isinstance(hand.engine.pilot, CoafPilot)
    assert hand.engine.pilot.earlier == ()


def test_scores_tell_whether_an_earlier_grid_is_like_this_one() -> None:
    """Where predictions mean the opposite now, what the other grid taught soon counts nothing."""
    own = design_for(COLUMNS, GoodBelow(3.8)).belief()
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.normal(size=(300, 2)), rng.normal(0.0, 0.3, (300, 2))])
    groups = np.repeat(np.arange(30), 10)
    labels = np.column_stack([groups // 5, groups])
    for slope, kept in ((-1.0, True), (1.0, False)):
        eta = slope * (X[:, 2:] @ [4.0, 6.0]) + 0.5
        y = (rng.random(300) < 1.0 / (1.0 + np.exp(-eta))).astype(np.float64)
        belief = informed(own, [TOLD])
        assert belief.weights[0] == pytest.approx(SHARE)
        belief.learn(X, y, labels)
        assert bool(belief.weights[0] > 0.5) is kept
        assert kept or belief.weights[0] < 0.01
