"""The guard: faults, declines and silence are seen, bad places are not taken for them."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from coaf.cryoem.reward import parse_reward
from coaf.cryoem.session import events as ev
from coaf.cryoem.session.collect import collect
from coaf.cryoem.session.guard import ALARM, Alarm, Guard
from coaf.cryoem.simulator.simulator import Simulator

PATCH = 10  # shots
SQUARE = 6  # patches


class Stream:
    """Shots every ten seconds, scored half a minute later, and what the guard said."""

    def __init__(self, guard: Guard | None = None) -> None:
        self.guard = guard or Guard()
        self.said: list[Alarm] = []
        self.count = 0

    def shoot(self, values: dict[str, float | None] | None, place: str = "") -> None:
        i, time = self.count, 10.0 * self.count
        patch = place or f"patch {i // PATCH}"
        square = f"square {i // (PATCH * SQUARE)}"
        self.said += self.guard.exposed(f"{i}", time=time, square=square, patch=patch)
        if values is not None:
            self.said += self.guard.scored(f"{i}", time=time + 30.0, values=values)
        self.count += 1

    def fits(self, values: Sequence[float | None], place: str = "") -> None:
        for value in values:
            self.shoot({"ctf": value}, place)

    def begun(self, kind: str) -> list[Alarm]:
        return [alarm for alarm in self.said if alarm.kind == kind and alarm.until is None]


def ice(rng: np.random.Generator, shots: int, *, bad: Sequence[int] = ()) -> list[float | None]:
    """Fits whose squares and patches are alike; squares in `bad` are three times as bad."""
    fits: list[float | None] = []
    for i in range(shots):
        if i % (PATCH * SQUARE) == 0:
            square = 0.15 * rng.standard_normal()
        if i % PATCH == 0:
            patch = 0.15 * rng.standard_normal()
        worse = np.log(3.0) if i // (PATCH * SQUARE) in bad else 0.0
        fits.append(float(4.5 * np.exp(square + patch + worse + 0.2 * rng.standard_normal())))
    return fits


def broken(rng: np.random.Generator, shots: int) -> list[float | None]:
    return [float(20.0 * np.exp(0.15 * rng.standard_normal())) for _ in range(shots)]


# Faults


@pytest.mark.parametrize(("before", "soon"), [(125, 11), (155, 17)])
def test_a_fault_inside_a_patch_is_seen_soon(before: int, soon: int) -> None:
    """In 20 sessions within 80 scores, in so many of them within 20; and it is known since when."""
    within = []
    for seed in range(20):
        rng = np.random.default_rng([1, seed, before])
        stream = Stream()
        stream.fits(ice(rng, before))
        assert not stream.begun("fault")
        stream.fits(broken(rng, 20))
        within.append(len(stream.begun("fault")))
        stream.fits(broken(rng, 60))
        (fault,) = stream.begun("fault")
        assert abs(fault.since - before) <= 1
        assert fault.evidence >= ALARM
        assert "this is not the ice" in fault.message
        assert stream.guard.quarantined(f"{before + 3}")
        assert not stream.guard.quarantined(f"{before - 3}")
    assert sum(within) >= soon


def test_fits_that_just_fail_are_a_fault() -> None:
    for seed in range(10):
        rng = np.random.default_rng([2, seed])
        stream = Stream()
        stream.fits(ice(rng, 135))
        stream.fits([None] * 12)
        (fault,) = stream.begun("fault")
        assert abs(fault.since - 135) <= 1


def test_single_fits_that_fail_are_none() -> None:
    rng = np.random.default_rng(3)
    stream = Stream()
    fits = ice(rng, 900)
    stream.fits([None if rng.random() < 0.05 else fit for fit in fits])
    assert not stream.begun("fault")


def test_ice_alone_is_no_fault() -> None:
    """No alarm in 20 sessions of 15 squares, one of which is three times as bad."""
    for seed in range(20):
        stream = Stream()
        stream.fits(ice(np.random.default_rng([4, seed]), 900, bad=[1 + seed % 13]))
        assert not stream.guard.alarms


def test_a_bad_square_is_suspected_until_good_scores_come_from_elsewhere() -> None:
    rng = np.random.default_rng(5)
    stream = Stream()
    stream.fits(ice(rng, 120))
    stream.fits(broken(rng, 40))  # a new square begins at shot 120
    (suspicion,) = stream.begun("suspicion")
    assert suspicion.since == 120
    assert stream.guard.suspicion == suspicion
    assert stream.guard.check[0] in suspicion.message
    assert not stream.guard.alarms
    stream.fits([4.0, 4.5], place=stream.guard.check[0])
    assert stream.guard.suspicion is None
    assert stream.said[-1].until is not None
    assert not stream.guard.alarms


def test_bad_scores_from_a_place_known_to_be_good_are_a_fault() -> None:
    """The onset is that of the square, so all of it is held back."""
    rng = np.random.default_rng(5)
    stream = Stream()
    stream.fits(ice(rng, 120))
    stream.fits(broken(rng, 20))
    assert not stream.guard.alarms
    good = stream.guard.check[0]
    square = f"square {int(good.split()[1]) // SQUARE}"
    for name in ("check 1", "check 2", "check 3"):
        time = 10.0 * stream.count
        stream.said += stream.guard.exposed(name, time=time, square=square, patch=good)
        stream.said += stream.guard.scored(name, time=time + 30.0, values={"ctf": 21.0})
    (fault,) = stream.begun("fault")
    assert fault.since == 120
    assert stream.guard.suspicion is None
    assert stream.guard.check == ()


def test_a_check_is_two_shots() -> None:
    rng = np.random.default_rng(5)
    stream = Stream()
    stream.fits(ice(rng, 120))
    stream.fits(broken(rng, 20))
    place = stream.guard.check[0]
    stream.shoot(None, place)
    assert place in stream.guard.check
    stream.shoot(None, place)
    assert stream.guard.check == ()
    assert stream.guard.suspicion is not None


def test_the_first_scores_of_a_session_are_compared_with_nothing() -> None:
    stream = Stream()
    stream.fits(broken(np.random.default_rng(6), 55))
    assert not stream.guard.alarms


def test_it_recovers_when_good_scores_return_and_finds_the_next_fault() -> None:
    rng = np.random.default_rng(7)
    stream = Stream()
    stream.fits(ice(rng, 135))
    stream.fits(broken(rng, 60))
    assert stream.guard.fault is not None
    stream.fits(ice(rng, 90))
    assert stream.guard.fault is None
    (fault,) = stream.guard.alarms
    assert fault.until is not None
    assert abs(fault.since - 135) <= 1
    assert abs(fault.until - 195) <= 2
    assert stream.guard.quarantined("190")
    assert not stream.guard.quarantined("200")
    stream.fits(broken(rng, 20))
    assert [alarm.kind for alarm in stream.begun("fault")] == ["fault", "fault"]
    assert abs(stream.guard.alarms[-1].since - 285) <= 1


def test_one_good_score_does_not_end_a_fault() -> None:
    rng = np.random.default_rng(8)
    stream = Stream()
    stream.fits(ice(rng, 135))
    stream.fits([*broken(rng, 20), 3.5, *broken(rng, 20), 3.5, *broken(rng, 20)])
    assert stream.guard.fault is not None


def test_who_has_looked_ends_it() -> None:
    rng = np.random.default_rng(9)
    stream = Stream()
    assert stream.guard.acknowledge() == ()
    stream.fits(ice(rng, 135))
    stream.fits(broken(rng, 20))
    (ended,) = stream.guard.acknowledge()
    assert ended.until == 155
    assert stream.guard.fault is None
    stream.fits(ice(rng, 90))
    assert len(stream.begun("fault")) == 1


def test_late_scores_are_told_apart_by_when_the_shot_was_taken() -> None:
    """Scores come 40 shots late; a good one of before the fault does not end it."""
    rng = np.random.default_rng(10)
    fits = [*ice(rng, 135), *broken(rng, 60)]
    guard = Guard()
    said: list[Alarm] = []
    for i in range(195 + 40):
        if i < 195:
            place = {"square": f"{i // 60}", "patch": f"{i // PATCH}"}
            said += guard.exposed(f"{i}", time=10.0 * i, **place)
        if i >= 40 and i != 90:
            said += guard.scored(f"{i - 40}", time=10.0 * i, values={"ctf": fits[i - 40]})
    (fault,) = [alarm for alarm in said if alarm.kind == "fault"]
    assert abs(fault.since - 135) <= 1
    guard.scored("50", time=2400.0, values={"ctf": 3.5})
    assert guard.fault is not None


@pytest.mark.parametrize("name", ["motion", "drift"])
def test_other_values_tell_of_faults_too_in_any_unit(name: str) -> None:
    rng = np.random.default_rng(11)
    stream = Stream()
    for i in range(200):
        jump = 8.0 if i >= 155 else 1.0
        value = 300.0 * jump * float(np.exp(0.2 * rng.standard_normal()))
        stream.shoot({"ctf": 4.0 + 0.5 * float(rng.random()), name: value})
    (fault,) = stream.begun("fault")
    assert abs(fault.since - 155) <= 1


@pytest.mark.parametrize("beside", [{}, {"ctf": 4.0}])
def test_counts_tell_of_faults_where_no_fit_does(beside: dict[str, float | None]) -> None:
    """Few particles, or none; where fits are known, they say it better."""
    rng = np.random.default_rng(13)
    for few in (30.0, 0.0):
        stream = Stream()
        for i in range(200):
            mean = few if i >= 155 else 300.0
            stream.shoot({"particles": float(rng.poisson(mean)), **beside})
        found = stream.begun("fault")
        assert len(found) == (not beside)
        assert all(abs(fault.since - 155) <= 1 for fault in found)


def test_counts_of_thin_and_crowded_places_are_no_fault() -> None:
    """No alarm in 20 sessions whose patches differ as counts do, with empty holes in between."""
    for seed in range(20):
        rng, stream = np.random.default_rng([14, seed]), Stream()
        for i in range(600):
            if i % PATCH == 0:
                mean = 200.0 * np.exp(0.4 * rng.standard_normal())
            count = 0.0 if rng.random() < 0.05 else mean * np.exp(0.3 * rng.standard_normal())
            stream.shoot({"particles": float(round(count))})
        assert not stream.guard.alarms


def test_scores_without_what_it_knows_say_nothing() -> None:
    stream = Stream()
    for i in range(300):
        stream.shoot({"beauty": 100.0 if i < 150 else 0.0, "particles": None})
    assert stream.said == []


# Decline


def piled(rng: np.random.Generator, shots: int) -> list[float]:
    """Half of the fits at the best there is, 3.2 Å, and the others anywhere above."""
    floor = 3.2 + 0.08 * rng.standard_normal(shots)
    other = 3.2 + rng.exponential(3.0, shots)
    return [float(fit) for fit in np.where(rng.random(shots) < 0.5, floor, other)]


def test_a_slow_decline_is_seen_within_ninety_minutes() -> None:
    """1 Å an hour, shots every ten seconds; none is seen before, in 10 sessions."""
    for seed in range(10):
        rng = np.random.default_rng([12, seed])
        stream = Stream()
        for i, fit in enumerate(piled(rng, 720 + 540)):
            stream.fits([fit + max(i - 720, 0) * 10.0 / 3600.0])
        (alarm,) = stream.begun("decline")
        assert alarm.since >= 720 - 120
        assert "Å an hour" in alarm.message
        assert not stream.guard.quarantined("1100"), "what is worse is still worth learning"
        stream.fits(piled(rng, 60))
        assert stream.guard.alarms[-1].until is not None


def test_fewer_good_holes_are_no_decline() -> None:
    """The best are as good as ever, and become rare: that is the ice."""
    for seed in range(10):
        rng = np.random.default_rng([13, seed])
        stream = Stream()
        for i in range(1400):
            best = rng.random() < 0.6 * np.exp(-i / 400.0)
            fit = 3.2 + (0.08 * rng.standard_normal() if best else rng.exponential(3.0))
            stream.fits([float(fit)])
        assert not stream.begun("decline")


def slow(
    guard: Guard, fits: Sequence[float], *, first: int = 0, place: str = "", patch: int = 12
) -> list[Alarm]:
    """Shots every 90 seconds, scored at once."""
    said: list[Alarm] = []
    for i, fit in enumerate(fits, start=first):
        where = {"square": f"square {i // 60}", "patch": place or f"patch {i // patch}"}
        said += guard.exposed(f"{i}", time=90.0 * i, **where)
        said += guard.scored(f"{i}", time=90.0 * i + 1.0, values={"ctf": fit})
    return said


def declining(rng: np.random.Generator) -> tuple[Guard, int, list[Alarm]]:
    """A guard in a slow session, at the moment at which it suspects a decline of 1 Å an hour."""
    guard, fits = Guard(), piled(rng, 400)
    for i in range(400):
        worse = max(i - 200, 0) * 90.0 / 3600.0
        said = slow(guard, [fits[i] + worse], first=i)
        if said:
            return guard, i + 1, said
    raise AssertionError("it was never suspected")


def test_a_decline_is_suspected_before_it_is_an_alarm() -> None:
    guard, now, (suspicion,) = declining(np.random.default_rng(17))
    assert 200 < now < 200 + 60
    assert suspicion.kind == "suspicion"
    assert "may have become worse" in suspicion.message
    assert guard.alarms == []
    assert guard.check == suspicion.check
    early = {f"patch {k}" for k in range(200 // 12 + 1)}
    assert set(suspicion.check[:3]) <= early, "what was measured before it is compared with"


def test_fits_where_they_were_good_decide_about_a_decline() -> None:
    """As much worse there as the best are: an alarm soon. As good as ever: it was the places."""
    seen = 0
    for seed in range(5):
        for worse in (True, False):
            rng = np.random.default_rng([18, seed])
            guard, now, _ = declining(rng)
            good = guard.check[0]
            for i in range(now, now + 24):
                moved = (i - 200) * 90.0 / 3600.0 if worse else 0.0
                fit = 3.2 if i < now + 2 else piled(rng, 1)[0]
                slow(guard, [fit + moved], first=i, place=good if i < now + 2 else "")
                if i == now + 1:
                    assert guard.check == (), "two are enough for now"
            assert worse or not guard.alarms
            seen += [alarm.kind for alarm in guard.alarms] == ["decline"]
    assert seen >= 4


def test_holes_that_were_left_are_no_evidence_of_a_fault() -> None:
    """They may have been left as they are bad; so a check of a decline raises none."""
    guard, now, _ = declining(np.random.default_rng(19))
    before = guard.state()["evidence"]["ctf"]
    slow(guard, [12.0, 14.0], first=now, place=guard.check[0])
    assert guard.state()["evidence"]["ctf"] == before
    assert guard.alarms == []


def test_the_best_of_a_narrow_choice_are_no_pile_that_moves() -> None:
    """Fits of a pilot that takes nothing but the best all lie within less than an ångström."""
    for seed in range(10):
        rng = np.random.default_rng([20, seed])
        said = slow(Guard(), rng.uniform(3.15, 3.8, 400).tolist())
        assert [alarm.kind for alarm in said if alarm.kind == "decline"] == []


# Silence


def test_silence_is_minutes_without_a_score_that_is_due() -> None:
    """Scores take 30 s here, so they are overdue after four times that and two minutes."""
    stream = Stream()
    stream.fits(ice(np.random.default_rng(14), 100))
    for _ in range(60):
        stream.shoot(None)
    (silent,) = stream.begun("silent")
    assert silent.since == 100
    begun = next(i for i in range(100, 160) if 10.0 * i >= silent.evidence + 1000.0)
    assert 120 <= begun <= 132
    assert not stream.guard.quarantined("120"), "nothing is known against it"
    (ended,) = stream.guard.scored("110", time=1700.0, values={"ctf": 4.0})
    assert (ended.kind, ended.until) == ("silent", 160)


def test_silence_needs_shots_that_wait_but_no_further_ones() -> None:
    stream = Stream()
    stream.fits(ice(np.random.default_rng(15), 100))
    assert stream.guard.passed(1e6) == (), "all have a score"
    for _ in range(5):
        stream.shoot(None)
    assert stream.guard.passed(1060.0) == ()
    (silent,) = stream.guard.passed(1400.0)
    assert silent.kind == "silent"
    assert stream.guard.passed(1500.0) == (), "once"


def test_slow_processing_is_no_silence_once_it_is_known() -> None:
    guard = Guard()
    said: list[Alarm] = []
    for i in range(300):
        said += guard.exposed(f"{i}", time=60.0 * i, square="s", patch=f"{i // 20}")
        if i >= 25:
            said += guard.scored(f"{i - 25}", time=60.0 * i + 1.0, values={"ctf": 4.0})
    assert said == []


def test_single_scores_that_are_lost_are_no_silence() -> None:
    stream = Stream()
    for i in range(400):
        stream.shoot(None if i % 10 < 3 else {"ctf": 4.0})
    assert stream.said == []


def test_who_does_not_listen_hears_no_silence() -> None:
    stream = Stream(Guard(listen=False))
    for _ in range(400):
        stream.shoot(None)
    assert stream.said == []


# The rest


def test_told_again_it_thinks_the_same() -> None:
    rng = np.random.default_rng(16)
    fits = [*ice(rng, 135), *broken(rng, 30), *ice(rng, 60), *([None] * 20)]
    one, other = Stream(), Stream()
    one.fits(fits)
    other.fits(fits)
    assert len(one.guard.alarms) == 2
    assert json.dumps(one.guard.state()) == json.dumps(other.guard.state())


def test_wrong_input_is_named() -> None:
    guard = Guard()
    known: dict[str, Any] = {"time": 0.0, "square": "s", "patch": "p"}
    guard.exposed("a", **known)
    guard.scored("a", time=1.0, values={"ctf": 4.0})
    with pytest.raises(ValueError, match="shot 'a' was exposed already"):
        guard.exposed("a", **known)
    with pytest.raises(ValueError, match="shot 'a' was scored already"):
        guard.scored("a", time=2.0, values={"ctf": 4.0})
    with pytest.raises(ValueError, match="shot 'b' was never exposed"):
        guard.scored("b", time=2.0, values={"ctf": 4.0})


# In a session


@pytest.mark.parametrize("reward", ["ctf<3.8", "ctf 3..8", "particles/100"])
def test_a_fault_is_seen_whatever_is_wanted(reward: str) -> None:
    """By a pilot that estimates nothing; within ten minutes."""
    microscope = Simulator(5, squares=12, pixels=False, faults=[(4000.0, 6400.0)], delay=45.0)
    session = collect(microscope, "take-all", hours=2.5, reward=parse_reward(reward))
    (alarm,) = [row["clock"] for row in session.rows if row["event"] == "alarm"]
    assert 4000.0 < alarm < 4600.0


def test_the_engine_goes_where_the_ice_is_known_to_be_good() -> None:
    """When scores are suspect it takes two shots there, and calls a person as they are bad."""
    microscope = Simulator(
        5, regime="slow", squares=12, pixels=False, faults=[(14000.0, 17600.0)], delay=45.0
    )
    session = collect(microscope, "microscopist", hours=6.0, explore=0.0)
    assert session.engine is not None
    told = [e.instruction for e in session.engine.events if isinstance(e, ev.Instructed)]
    checks = [one for one in told if "known to be good" in one.why]
    assert [one.do for one in checks][-4:] == ["leave", "go", "expose", "expose"]
    rows = {row["event"]: row["clock"] for row in reversed(session.rows)}
    assert 14000.0 < rows["suspicion"] < rows["alarm"] < 15200.0
    assert 17600.0 < rows["all clear"] < 18800.0
