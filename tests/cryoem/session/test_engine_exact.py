"""All that a session knows is the fold of its events, to the last bit."""

import json
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from coaf.cryoem.session import events as ev
from coaf.cryoem.session.collect import Driver
from coaf.cryoem.session.engine import Engine
from coaf.cryoem.session.instructions import Instruction
from coaf.cryoem.simulator.simulator import Simulator
from cryoem.session.hand import Hand, again, known, squares, survey

STEPS = 150
PILOTS = ("take-all", "coaf", "coaf-paper", "microscopist", "exploring")
# Between these the instrument is at fault, and all is bad: the guard notices, and tells again.
FAULT = (600.0, 2500.0)
CLOSE = 1e-4  # what beliefs find by iteration depends a little on from where


def saved(value: Any) -> Any:
    return json.loads(json.dumps(value, allow_nan=False))


@cache
def session(name: str) -> tuple[Engine, tuple[Any, ...]]:
    """A short session, and snapshots on the way."""
    simulator = Simulator(
        3, squares=3, pixels=False, prediction=True, faults=[FAULT], delay=40.0, shots=1
    )
    engine = Engine()
    driver = Driver(simulator, engine)
    driver.start(
        ev.Settings(
            pilot="coaf" if name == "exploring" else name,
            reward="ctf<8",
            hours=0.6 if name == "exploring" else 2.0,
            explore=0.9 if name == "exploring" else 0.0,
            columns=simulator.feature_names,
            timing=simulator.timing,
        )
    )
    engine.tell(ev.AtlasSeen(id="atlas", time=0.0, squares=tuple(simulator.squares())))
    snapshots = []
    for step in range(STEPS):
        if driver.over:
            break
        driver.step()
        if step in (30, 50) and engine.learning.values:
            shot = list(engine.learning.values)[-step // 10]
            engine.tell(
                ev.ScoreCorrected(
                    id=f"correction {step}",
                    time=driver.time,
                    hole=shot[0],
                    shot=shot[1],
                    values={"ctf": 3.1},
                )
            )
        if step in (40, 70):
            engine.plan(driver.time, next(iter(engine.book.patches)))
        if step in (30, 55, 71):
            snapshots.append(saved(engine.snapshot()))
    return engine, tuple(snapshots)


def ask(engine: Engine) -> Instruction:
    """The next instruction of a copy, so that the engine stays as it is."""
    return deepcopy(engine).next(engine.now)


@pytest.mark.parametrize("name", PILOTS)
def test_told_everything_again_it_is_the_same(name: str) -> None:
    engine, _ = session(name)
    whole = again(engine)
    assert known(whole) == known(engine)
    assert whole.next(engine.now) == ask(engine)


@pytest.mark.parametrize("name", PILOTS)
def test_a_snapshot_and_the_rest_are_the_whole(name: str) -> None:
    engine, snapshots = session(name)
    assert len(snapshots) == 3
    for snapshot in snapshots:
        part = again(engine, snapshot)
        assert known(part) == known(engine)
        assert part.next(engine.now) == ask(engine)


@pytest.mark.parametrize("name", PILOTS)
def test_every_instruction_is_what_one_would_say_who_was_told_what_was_before(name: str) -> None:
    """From a snapshot on: the rest is asked for, not told, and is the same."""
    engine, snapshots = session(name)
    for snapshot in snapshots[1:]:
        at = snapshot["events"]
        part = Engine.replay(engine.events[:at], snapshot)
        for event in engine.events[at : at + 15]:
            if isinstance(event, ev.Instructed):
                assert part.next(event.time) == event.instruction
            else:
                part.tell(event)


@pytest.mark.parametrize("name", ["take-all", "coaf"])
def test_state_is_all_of_it(name: str) -> None:
    engine, _ = session(name)
    whole = Engine.restore(json.dumps(engine.state(), allow_nan=False))
    assert known(whole) == known(engine)
    assert whole.last == engine.last


def test_the_sessions_have_what_is_to_be_tested() -> None:
    """A fault that was noticed, a correction, and exploring."""
    engines = {name: session(name)[0] for name in PILOTS}
    faults = [e for e in engines.values() if any(a.kind == "fault" for a in e.guard.alarms)]
    assert faults
    assert any(note.what == "held back" for engine in faults for note in engine.notes)
    told = [e.instruction for e in engines["exploring"].events if isinstance(e, ev.Instructed)]
    assert any(one.propensity < 1.0 for one in told)
    kinds = {event.kind for engine in engines.values() for event in engine.events}
    assert {"corrected", "plan given", "instructed", "scored", "exposed"} <= kinds


def test_a_snapshot_of_more_than_was_told_is_refused() -> None:
    engine, snapshots = session("coaf")
    with pytest.raises(ValueError, match="the snapshot is of"):
        Engine.replay(engine.events[:3], snapshots[2])


# What is known now, as if it had been known from the start


def check_alike(one: Engine, other: Engine) -> None:
    """Told in different ways, they know and say the same."""
    ours, theirs = one.next(one.now), other.next(one.now)
    assert (ours.do, ours.name, ours.level) == (theirs.do, theirs.name, theirs.level)
    numbers = [(one.estimate or 0.0, one.rate) for one in (ours, theirs)]
    assert numbers[0] == pytest.approx(numbers[1], rel=CLOSE, abs=CLOSE)
    assert json.dumps(one.guard.state()) == json.dumps(other.guard.state())
    for patch in one.book.patches.values():
        np.testing.assert_allclose(
            one.pilot.estimates(patch.patch),
            other.pilot.estimates(patch.patch),
            rtol=CLOSE,
            atol=CLOSE,
        )


def given(events: Iterable[ev.Event], values: dict[tuple[str, int], Any]) -> list[ev.Event]:
    """The events with these scores from the start."""
    return [
        replace(event, values=values[event.hole, event.shot])
        if isinstance(event, ev.ScoreCame) and (event.hole, event.shot) in values
        else event
        for event in events
    ]


@pytest.mark.parametrize("name", PILOTS)
@pytest.mark.parametrize("many", [3, 1000])
def test_corrected_scores_are_as_if_they_had_come_so(name: str, many: int) -> None:
    engine, _ = session(name)
    scored = [e for e in engine.events if isinstance(e, ev.ScoreCame)]
    rng = np.random.default_rng(many)
    chosen = rng.permutation(len(scored))[:many]
    values = {
        (scored[k].hole, scored[k].shot): {"ctf": float(rng.choice([3.0, 20.0]))} for k in chosen
    }
    corrections = [
        ev.ScoreCorrected(id=f"c{k}", time=engine.now, hole=hole, shot=shot, values=value)
        for k, ((hole, shot), value) in enumerate(values.items())
    ]
    check_alike(
        Engine.replay([*engine.events, *corrections]),
        Engine.replay([*given(engine.events, values), *corrections]),
    )


@pytest.mark.parametrize("name", PILOTS)
@pytest.mark.parametrize("reward", ["ctf<4.5", "particles/100"])
def test_a_changed_target_is_as_if_it_had_been_the_first(name: str, reward: str) -> None:
    engine, _ = session(name)
    change = ev.TargetChanged(id="aim", time=engine.now, reward=reward)
    first = engine.events[0]
    assert isinstance(first, ev.Started)
    aimed = replace(first, settings=replace(first.settings, reward=reward))
    check_alike(
        Engine.replay([*engine.events, change]),
        Engine.replay([aimed, *engine.events[1:], change]),
    )


@pytest.mark.parametrize("reward", ["ctf<6.0", "ctf 3..8", "particles/100"])
def test_a_session_is_saved_and_restored_after_its_target_changed(reward: str) -> None:
    """Another reward may need other columns, and another belief."""
    engine, _ = session("coaf")
    told = again(engine)
    told.tell(ev.TargetChanged(id="aim", time=told.now, reward=reward))
    told.next(told.now)
    whole = Engine.restore(json.dumps(told.state(), allow_nan=False))
    assert known(whole) == known(told)
    assert whole.next(told.now) == told.next(told.now)


@pytest.mark.parametrize("pilot", ["take-all", "microscopist", "coaf"])
def test_scores_that_led_to_a_check_may_turn_out_to_have_been_good(pilot: str) -> None:
    """Sent to a patch known to be good as scores were suspect, it goes on as if they never were."""
    checked = 0
    for seed in range(3):
        rng = np.random.default_rng([8, seed])
        hand = Hand(pilot=pilot, reward="ctf<8", hours=30.0, explore=0.2)
        hand.tell(ev.AtlasSeen, squares=squares(*"abcdef"))
        bad: dict[tuple[str, int], Any] = {}
        for _ in range(400):
            told = hand.next()
            if told.do == "stop" or (told.check and bad):
                break
            if told.do == "open square":
                sizes = {f"{told.name}{k}": 5 for k in range(4)}
                hand.tell(ev.SquareOpened, survey=survey(str(told.name), sizes))
            else:
                hand.obey(told)
            if told.do == "expose":
                broken = 40 < len(hand.engine.learning.values) < 60
                values = {"ctf": float(rng.uniform(12, 17) if broken else rng.uniform(3, 4.5))}
                hand.tell(ev.ScoreCame, hole=told.name, values=values)
                if broken:
                    bad[str(told.name), 0] = {"ctf": 3.3}
        if not told.check:
            continue
        checked += 1
        corrections = [
            ev.ScoreCorrected(id=f"c{k}", time=hand.clock, hole=hole, shot=shot, values=value)
            for k, ((hole, shot), value) in enumerate(bad.items())
        ]
        check_alike(
            Engine.replay([*hand.engine.events, *corrections]),
            Engine.replay([*given(hand.engine.events, bad), *corrections]),
        )
    assert checked


def test_past_instructions_stay_as_given() -> None:
    engine, _ = session("coaf")
    told = again(engine)
    told.tell(ev.TargetChanged(id="aim", time=told.now, reward="ctf<4"))
    told.next(told.now)
    before = [ev.to_json(event) for event in engine.events]
    assert [ev.to_json(event) for event in told.events[: len(before)]] == before


def test_an_alarm_that_was_explained_away_does_not_hide_the_next() -> None:
    """Corrected scores take back a fault that was told; scores as bad again are another."""
    engine, _ = session("coaf")
    alarms = [
        event
        for event in engine.events
        if isinstance(event, ev.Instructed) and event.instruction.do == "alarm"
    ]
    assert alarms
    told = again(engine)
    fine = [e for e in told.events if isinstance(e, ev.ScoreCame)]
    for k, event in enumerate(fine):
        told.tell(
            ev.ScoreCorrected(
                id=f"fine {k}",
                time=told.now,
                hole=event.hole,
                shot=event.shot,
                values={"ctf": 3.0 + 6.0 * (k % 3 == 0)},
            )
        )
    told.next(told.now)
    assert told.guard.fault is None
    for k, event in enumerate(fine):
        told.tell(
            ev.ScoreCorrected(
                id=f"bad {k}",
                time=told.now,
                hole=event.hole,
                shot=event.shot,
                values={"ctf": 3.0 if k < 25 else None},
            )
        )
    assert told.next(told.now).do == "alarm"
