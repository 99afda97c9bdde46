"""The rate that begins anew: a running ratio until conditions change."""

import numpy as np
import pytest

import coaf
from coaf.bandit.problem import Round
from coaf.bandit.rates.rate import Renewal, Visit
from coaf.bandit.rates.restarting import CHANGE, Restarting


def visit(reward: float, seconds: float, *, blind: bool = False) -> Visit:
    return Visit("x", 0.0, seconds, reward, seconds, reward, 0.0, 0.0, blind)


PATCH = Round([[0.0]], coaf.Additive(1.0, 1.0))


def nothing(features: object, groups: object) -> np.ndarray:
    raise AssertionError("the running ratio needs no estimates of today")


def live(rate: Restarting | Renewal, rewards: np.ndarray, seconds: np.ndarray) -> list[float]:
    """What a second is worth after each visit."""
    values = []
    for r, t in zip(rewards.tolist(), seconds.tolist(), strict=True):
        rate.enter(visit(r, t), PATCH)
        values.append(rate.value(nothing))
    return values


def test_while_nothing_changes_it_is_the_running_ratio() -> None:
    """Over 20,000 visits with independent noise, to the bit: chance is no alarm."""
    rng = np.random.default_rng(0)
    rewards, seconds = rng.gamma(2.0, 1.0, 20_000), rng.uniform(5.0, 15.0, 20_000)
    assert live(Restarting(), rewards, seconds) == live(Renewal(), rewards, seconds)


@pytest.mark.parametrize("factor", [0.2, 0.5, 2.0, 5.0])
def test_a_change_of_times_is_noticed_within_sixty_visits(factor: float) -> None:
    """By then the ratio is that of visits since the change, to a quarter."""
    rng = np.random.default_rng(1)
    rewards, seconds = rng.gamma(4.0, 1.0, 2000), rng.uniform(8.0, 12.0, 2000)
    seconds[1500:] *= factor
    values = live(Restarting(), rewards, seconds)
    assert values[1499] == pytest.approx(0.4, rel=0.05)
    assert values[1560] == pytest.approx(0.4 / factor, rel=0.25)
    slow = live(Renewal(), rewards, seconds)
    assert abs(slow[1560] - 0.4 / factor) > 3.0 * abs(values[1560] - 0.4 / factor)


def test_runs_of_good_and_poor_rounds_soon_ring_no_more() -> None:
    """Forty visits in a row bring 1 or 7: from visit 2,000 on, the ratio is mostly that of all."""
    rng = np.random.default_rng(6)
    runs = rng.integers(0, 2, 250).repeat(40)
    rewards, seconds = rng.gamma(4.0, (1.0 + 6.0 * runs) / 4.0), np.full(10_000, 10.0)
    values = np.array(live(Restarting(), rewards, seconds))[2000:]
    assert np.median(np.abs(values / 0.4 - 1.0)) < 0.2


def test_changes_that_come_again_are_noticed_again() -> None:
    """Every 1,500 visits: each time the ratio is within a third of the new one after 60 visits."""
    rng = np.random.default_rng(7)
    rewards, seconds = rng.gamma(4.0, 1.0, 12_000), rng.uniform(8.0, 12.0, 12_000)
    dear = np.arange(12_000) // 1500 % 2 == 1
    seconds[dear] *= 5.0
    values = live(Restarting(), rewards, seconds)
    for change in range(1500, 12_000, 1500):
        right = 0.08 if dear[change] else 0.4
        assert values[change + 60] == pytest.approx(right, rel=1 / 3)


def test_when_nothing_pays_any_more_the_rate_falls_to_a_tenth_within_a_few_rounds() -> None:
    """At five times the price of a second no arm is worth its time: visits bring 0."""
    rng = np.random.default_rng(2)
    rewards, seconds = rng.gamma(4.0, 1.0, 1000), rng.uniform(8.0, 12.0, 1000)
    rewards[990:], seconds[990:] = 0.0, 25.0
    values = live(Restarting(), rewards, seconds)
    assert values[989] > 0.35
    assert min(values[990 : 990 + int(CHANGE)]) < 0.04


def test_a_follow_up_takes_the_step_again() -> None:
    rng = np.random.default_rng(3)
    whole, parts = Restarting(), Restarting()
    for j in range(300):
        reward, seconds = float(rng.gamma(2.0)), float(rng.uniform(5.0, 9.0)) * (1 + 3 * (j > 200))
        whole.enter(visit(reward, seconds), PATCH)
        parts.enter(visit(0.3 * reward, 0.5 * seconds), PATCH)
        parts.update(visit(reward, seconds))
        assert whole.state() == parts.state()


def test_blind_visits_do_not_count() -> None:
    rate = Restarting(initial=0.3)
    rate.enter(visit(7.0, 2.0, blind=True), PATCH)
    assert rate.value(nothing) == 0.3
    rate.enter(visit(1.0, 2.0), PATCH)
    rate.enter(visit(7.0, 2.0, blind=True), PATCH)
    assert rate.value(nothing) == 0.5


def test_saved_and_restored() -> None:
    rng = np.random.default_rng(4)
    rate = Restarting()
    live(rate, rng.gamma(2.0, 1.0, 50), rng.uniform(5.0, 15.0, 50))
    again = Restarting.restore(rate.state())
    more = rng.gamma(2.0, 9.0, 50), rng.uniform(5.0, 15.0, 50)
    assert live(rate, *more) == live(again, *more)


def test_any_unit_gives_the_same_restarts() -> None:
    rng = np.random.default_rng(5)
    rewards, seconds = rng.gamma(2.0, 1.0, 400), rng.uniform(5.0, 15.0, 400)
    seconds[300:] *= 4.0
    plain = np.array(live(Restarting(), rewards, seconds))
    scaled = np.array(live(Restarting(), 8.0 * rewards, seconds / 1024.0))
    np.testing.assert_array_equal(8.0 * 1024.0 * plain, scaled)
