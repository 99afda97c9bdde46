"""The guard: few false alarms although patches share their fate, faults found, and recovery."""

import json
from collections.abc import Iterator

import numpy as np
import pytest

from coaf.bandit.arrays import BoolArray
from coaf.cryoem.session.guard import Alarm, Guard

NORMAL = np.random.default_rng(0).standard_normal(300)


def logistic(eta: float) -> float:
    return float(1.0 / (1.0 + np.exp(-eta)))


def patches(
    rng: np.random.Generator, count: int, *, share: float, spread: float, holes: int = 10
) -> Iterator[tuple[float, BoolArray]]:
    """Patches whose holes share an effect that nobody sees, and the chance without knowing it."""
    draws = spread * NORMAL
    for _ in range(count):
        seen = np.log(share / (1.0 - share)) + 0.7 * rng.standard_normal()
        chance = float(np.mean(1.0 / (1.0 + np.exp(-seen - draws))))
        effect = spread * rng.standard_normal()
        yield chance, rng.random(holes) < logistic(seen + effect)


def watch(guard: Guard, run: Iterator[tuple[float, BoolArray]], name: str) -> list[Alarm]:
    """Scores at once."""
    changed: list[Alarm] = []
    for j, (chance, good) in enumerate(run):
        for i, one in enumerate(good.tolist()):
            shot = f"{name} {j} {i}"
            changed += guard.exposed(shot, patch=f"{name} {j}", chance=chance)
            changed += guard.scored(shot, good=one)
    return changed


def broken(run: Iterator[tuple[float, BoolArray]]) -> Iterator[tuple[float, BoolArray]]:
    return ((chance, np.zeros_like(good)) for chance, good in run)


@pytest.mark.parametrize("spread", [0.0, 1.2, 2.5])
@pytest.mark.parametrize("share", [0.15, 0.5])
def test_false_alarms_are_as_rare_as_stated(share: float, spread: float) -> None:
    """Ville: in 400 scores at level 1e-3 at most 40 % of sessions; patches are alike or not.

    The bound is for predictions that are too high by the margin that is allowed; here they are
    right, so alarms must be rarer than a tenth of the bound: 60 sessions, at most 2 alarms.
    """
    alarms = 0
    for session in range(60):
        guard = Guard(level=1e-3)
        rng = np.random.default_rng([session, int(10 * spread)])
        alarms += bool(watch(guard, patches(rng, 40, share=share, spread=spread), "p"))
    assert alarms <= 2


def test_the_bound_holds_where_it_is_tight() -> None:
    """Chances all 0.6 of those predicted, every patch one hole: within n·level and noise.

    200 sessions of 200 scores at level 1e-3: the bound is 20 %, its binomial standard error 3 %.
    """
    alarms = 0
    for session in range(200):
        rng = np.random.default_rng([7, session])
        guard = Guard(level=1e-3)
        alarms += bool(watch(guard, ((0.5, rng.random(1) < 0.3) for _ in range(200)), "p"))
    assert alarms / 200 <= 0.2 + 3 * 0.03


def test_one_bad_patch_or_two_are_ice() -> None:
    guard = Guard()
    for name in ("a", "b"):
        assert not watch(guard, iter([(0.8, np.zeros(40, dtype=np.bool_))]), name)


@pytest.mark.parametrize(("share", "within"), [(0.15, 300), (0.35, 130), (0.6, 80)])
def test_a_fault_is_found_within_a_stated_number_of_shots(share: float, within: int) -> None:
    """In all of 20 sessions, and the shots in doubt begin at most 60 before the fault."""
    for session in range(20):
        rng = np.random.default_rng([3, session])
        guard = Guard()
        assert not watch(guard, patches(rng, 30, share=share, spread=1.2), "well")
        changed = watch(guard, broken(patches(rng, within // 10, share=share, spread=1.2)), "bad")
        assert [alarm.kind for alarm in changed] == ["fault"]
        assert 300 - 60 <= changed[0].since <= 300 + 20
        assert changed[0].evidence >= 1.0 / guard.level
        assert "this is not the ice" in changed[0].message
        assert guard.quarantined("bad 5 0")
        assert not guard.quarantined("well 0 0")


def test_it_recovers_when_good_scores_return_and_finds_the_next_fault() -> None:
    rng = np.random.default_rng(5)
    guard = Guard()
    watch(guard, patches(rng, 20, share=0.5, spread=1.0), "one")
    watch(guard, broken(patches(rng, 12, share=0.5, spread=1.0)), "two")
    assert guard.fault is not None
    (ended,) = watch(guard, patches(rng, 20, share=0.5, spread=1.0), "three")
    assert guard.fault is None
    assert ended.until is not None
    assert 320 <= ended.until <= 340  # the fault was of shots 200 to 319
    assert guard.quarantined("two 11 9")
    assert not guard.quarantined("three 5 0")
    (again,) = watch(guard, broken(patches(rng, 12, share=0.5, spread=1.0)), "four")
    assert again.kind == "fault"
    assert again.since >= 500
    assert [alarm.until is None for alarm in guard.alarms] == [False, True]


def test_late_scores_are_told_apart_by_when_the_shot_was_taken() -> None:
    """Scores come 40 shots late; a good one of before the fault does not end it."""
    guard = Guard()
    rng = np.random.default_rng(6)
    good = np.concatenate([rng.random(100) < 0.7, np.zeros(120, dtype=np.bool_)])
    changed: list[Alarm] = []
    for i in range(260):
        if i < 220:
            guard.exposed(f"{i}", patch=f"{i // 5}", chance=0.7)
        if i >= 40 and i != 90:
            changed += guard.scored(f"{i - 40}", good=bool(good[i - 40]))
    (fault,) = changed
    assert 95 <= fault.since <= 101
    guard.scored("50", good=True)
    assert guard.fault is not None


def test_silence_is_an_alarm_that_a_score_ends() -> None:
    guard = Guard(silent=5)
    changed: list[Alarm] = []
    for i in range(8):
        changed += guard.exposed(f"{i}", patch="p", chance=0.5)
        if i == 0:
            guard.scored("0", good=True)
    assert [(a.kind, a.since, a.until, a.evidence) for a in changed] == [("silent", 1, None, 5.0)]
    (ended,) = guard.scored("7", good=True)
    assert (ended.kind, ended.until) == ("silent", 8)
    assert not guard.quarantined("3")  # nothing is known against it
    assert guard.fault is None


def test_a_result_without_a_value_is_not_silence() -> None:
    guard = Guard(silent=5)
    for i in range(20):
        assert guard.exposed(f"{i}", patch="p", chance=0.5) == ()
        assert guard.scored(f"{i}", good=None) == ()


def test_scores_of_which_nothing_was_expected_are_no_evidence() -> None:
    guard = Guard()
    for i in range(12_000):
        guard.exposed(f"{i}", patch=f"{i // 20}", chance=0.1)
        assert guard.scored(f"{i}", good=False) == ()


def test_one_patch_that_turns_bad_is_not_a_fault() -> None:
    guard = Guard()
    for i in range(300):
        guard.exposed(f"{i}", patch="p", chance=0.9)
        assert guard.scored(f"{i}", good=i < 20) == ()


def test_a_missing_score_says_nothing() -> None:
    guard = Guard(silent=1000)
    for i in range(500):
        guard.exposed(f"{i}", patch=f"{i}", chance=0.9)
        assert guard.scored(f"{i}", good=None) == ()


def test_state_goes_on_where_it_stopped() -> None:
    whole, part = Guard(), Guard()
    for i in range(150):
        for guard in (whole, part):
            guard.exposed(f"{i}", patch=f"{i // 7}", chance=0.55)
        assert whole.scored(f"{i}", good=i < 20) == part.scored(f"{i}", good=i < 20)
        if i % 10 == 0:
            part = Guard.restore(json.loads(json.dumps(part.state())))
    assert whole.alarms == part.alarms
    assert whole.alarms
    assert json.dumps(whole.state()) == json.dumps(part.state())


def test_wrong_input_is_named() -> None:
    guard = Guard()
    guard.exposed("a", patch="p", chance=0.5)
    guard.scored("a", good=True)
    with pytest.raises(ValueError, match="shot 'a' was exposed already"):
        guard.exposed("a", patch="p", chance=0.5)
    with pytest.raises(ValueError, match="shot 'a' was scored already"):
        guard.scored("a", good=True)
    with pytest.raises(ValueError, match="shot 'b' was never exposed"):
        guard.scored("b", good=True)
    with pytest.raises(ValueError, match="it must be from 0 to 1"):
        guard.exposed("b", patch="p", chance=1.5)
    with pytest.raises(ValueError, match=r"level is 2\.0; it is a chance per score"):
        Guard(level=2.0)
