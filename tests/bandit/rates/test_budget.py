"""The price of a second when time or rounds run out, against brute force and by hand."""

import json
from functools import partial
from itertools import product
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coaf.bandit.actions import AtMost, Capped
from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.nested.nested import Nested
from coaf.bandit.groups import Groups
from coaf.bandit.index import Truth
from coaf.bandit.latency import Additive, Setup
from coaf.bandit.policies.coaf import COAF
from coaf.bandit.policies.stepwise import Stepwise
from coaf.bandit.problem import Decision, Round
from coaf.bandit.rates.budget import Budget
from coaf.bandit.rates.memory_root import MemoryRoot
from coaf.bandit.rates.price import Worth, break_even, price, worth_of


def truth(features: FloatArray) -> FloatArray:
    return features[:, 0]


def score(features: FloatArray, groups: Groups | None) -> FloatArray:
    return features[:, 0]


def patch(*means: float, **more: Any) -> Round:
    return Round(np.array(means)[:, None], Setup(base=12.0, setup=52.0, each=6.7), **more)


def rounds(count: int, seed: int) -> list[Round]:
    rng = np.random.default_rng(seed)
    return [patch(*rng.uniform(0.0, 0.9, rng.integers(1, 12))) for _ in range(count)]


def options(round: Round, cap: float) -> tuple[FloatArray, FloatArray]:
    """Reward and seconds of every subset that fits."""
    masks = [np.array(m, dtype=np.bool_) for m in product([False, True], repeat=round.n)]
    masks = [m for m in masks if round.actions.allows(m)]
    both = np.array([(round.features[m, 0].sum(), round.latency.seconds(m)) for m in masks])
    fit = both[:, 1] <= cap
    return both[fit, 0], both[fit, 1]


_means = st.lists(st.integers(0, 20).map(lambda i: i / 20.0), min_size=1, max_size=4)
_round = st.builds(
    lambda means, base, setup, each, most: Round(
        np.array(means)[:, None], Setup(base / 2.0, setup, each), AtMost(most)
    ),
    _means,
    st.integers(1, 20),
    st.integers(0, 30),
    st.integers(1, 9),
    st.integers(1, 4),
)
_some = st.lists(_round, min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(_some, _some, st.integers(20, 400), st.integers(0, 9))
def test_no_other_price_has_a_smaller_dual(
    known: list[Round], typical: list[Round], seconds: int, left: int
) -> None:
    """D over a fine grid of prices, from every subset of every round."""
    cap = float(seconds)
    tables = [[options(r, cap) for r in some] for some in (known, typical)]

    def dual(rates: FloatArray) -> FloatArray:
        worth = [[(v - rates[:, None] * t).max(axis=1) for v, t in some] for some in tables]
        gain = np.maximum(worth[0], 0.0).sum(axis=0)
        total = rates * seconds + gain + left * np.maximum(np.mean(worth[1], axis=0), 0.0)
        return np.asarray(total)

    asked = partial(
        price,
        seconds=cap,
        open=worth_of(known, np.concatenate([r.features[:, 0] for r in known]), cap),
        typical=worth_of(typical, np.concatenate([r.features[:, 0] for r in typical]), cap),
        rounds=left,
    )
    found = asked()
    assert found >= 0.0
    assert dual(np.array([found]))[0] <= dual(np.linspace(0.0, 2.0, 4001)).min() + 1e-9
    # From above: the best of the prices that are wanted. Of two that are equally good, either.
    for most in (0.001, 0.02, 0.1, 1.0):
        limited = asked(most=most)
        assert 0.0 <= limited <= most
        assert dual(np.array([limited]))[0] <= dual(np.linspace(0.0, most, 4001)).min() + 1e-9


@settings(max_examples=60, deadline=None)
@given(_round, st.integers(20, 60), st.floats(0.0, 0.5))
def test_worth_against_every_subset(round: Round, seconds: int, rate: float) -> None:
    rewards, times = options(round, float(seconds))
    values, spent = worth_of([round], round.features[:, 0], float(seconds))(rate)
    assert values[0] == pytest.approx(float((rewards - rate * times).max()), abs=1e-9)
    assert spent[0] <= seconds * (1.0 + 1e-9)


def test_smooth_values_as_of_a_dynamic_programme() -> None:
    """v(λ) = e^{−λ} takes e^{−λ} seconds: N prospects fill T seconds at λ = log(N/T)."""

    def worth(rate: float) -> tuple[FloatArray, FloatArray]:
        value = np.full(10, np.exp(-rate))
        return value, value

    assert price(seconds=2.5, open=worth) == pytest.approx(np.log(4.0), rel=1e-6)
    assert price(seconds=12.0, open=worth) == 0.0


@pytest.mark.parametrize("seed", range(5))
def test_without_an_end_it_is_the_infinite_horizon(seed: int) -> None:
    """Many rounds, or no end of them: `MemoryRoot` to one part in 10^8."""
    remembered = rounds(20, seed)
    usual = MemoryRoot()
    usual.rounds.extend(remembered)
    expected = usual.value(score)
    for count in (None, 1e6):
        rate = Budget(50_000.0, rounds=count)
        rate.remembered.extend(remembered)
        assert rate.value(score) == pytest.approx(expected, rel=1e-8)
    worth: Worth = worth_of(remembered, np.concatenate([r.features[:, 0] for r in remembered]), inf)
    assert break_even(worth) == pytest.approx(expected, rel=1e-12)


def test_the_price_falls_with_time_and_rises_with_rounds() -> None:
    prices = np.zeros((6, 6))
    for (i, seconds), (j, count) in product(
        enumerate(np.geomspace(1e3, 3e4, 6)), enumerate([0, 5, 20, 50, 200, 1000])
    ):
        rate = Budget(float(seconds), rounds=count)
        rate.remembered.extend(rounds(20, seed=1))
        rate.remain(again=rounds(10, seed=2))
        prices[i, j] = rate.value(score)
    assert (np.diff(prices, axis=0) <= 1e-9).all()
    assert (np.diff(prices, axis=1) >= -1e-9).all()
    assert prices[-1, 0] == 0.0  # everything that is left can be done
    assert prices[0, 0] > 0.0


def test_the_last_round_uses_the_time_that_has_no_other_use() -> None:
    """A poor last round, with time for three of its arms, is not left at the usual price."""
    last = patch(0.05, 0.2, 0.1, 0.15, key="last", actions=Capped(90.0))
    policy = COAF(index=Truth(truth), rate=(rate := Budget(90.0)))
    rate.remembered.extend(rounds(20, seed=3))
    assert not policy.decide(last).chosen.any()
    rate.remain(rounds=0, here=last)
    decision = policy.decide(last)
    assert decision.chosen.tolist() == [False, True, True, True]
    assert decision.seconds <= 90.0


def test_skipped_rounds_return_when_new_ones_run_out() -> None:
    """Two equal rounds are left and time for one and a half: one is taken, then part of one."""
    left = [patch(*[0.3] * 8, key=f"{i}") for i in range(2)]
    policy = COAF(index=Truth(truth), rate=(rate := Budget(170.0)))
    rate.remain(rounds=0, again=left)
    first = policy.decide(left[0])
    assert first.chosen.all()
    policy.commit(first)
    assert rate.again == [left[1]]
    assert rate.seconds == pytest.approx(170.0 - first.seconds)
    second = patch(*[0.3] * 8, key="1", actions=Capped(rate.seconds))
    rest = policy.decide(second)
    assert rest.seconds <= rate.seconds
    assert not rate.remembered  # returning says nothing of new rounds


def play(policy: COAF, rate: Budget, seconds: float, count: int) -> float:
    """Play capped rounds until not even looking at one can finish; the time that was used."""
    used = 0.0
    for j, r in enumerate(rounds(count, seed=4)):
        if r.floor > rate.seconds:
            break
        here = Round(r.features, r.latency, Capped(rate.seconds), key=f"{j}")
        rate.remain(rounds=count - j - 1, here=here)
        decision = policy.decide(here)
        policy.commit(decision)
        used += decision.seconds
        assert rate.seconds == pytest.approx(seconds - used)
    return used


@pytest.mark.parametrize("seconds", [5.0, 100.0, 777.0, 5000.0])
def test_nothing_is_started_that_cannot_finish(seconds: float) -> None:
    policy = COAF(index=Truth(truth), rate=(rate := Budget(seconds, rounds=30)))
    assert play(policy, rate, seconds, 30) <= seconds


def test_it_counts_by_itself_and_is_corrected_by_the_clock() -> None:
    policy = COAF(index=Truth(truth), rate=(rate := Budget(1000.0, rounds=5)))
    entry = policy.decide(patch(0.5, 0.4))
    policy.commit(entry, seconds=100.0)
    assert (rate.seconds, rate.rounds) == (900.0, 4.0)
    rest = policy.decide(Round([[0.4]], Additive(0.0, 6.7), follows=entry))
    policy.commit(rest, seconds=10.0)
    assert (rate.seconds, rate.rounds) == (890.0, 4.0)
    rate.remain(seconds=500.0)
    more = policy.decide(Round([[0.4]], Additive(0.0, 6.7), follows=entry))
    policy.commit(more, seconds=20.0)
    assert rate.seconds == 480.0
    policy.commit(policy.decide(patch(0.5)), seconds=1000.0)
    assert (rate.seconds, rate.rounds) == (0.0, 3.0)


def test_after_the_end_the_usual_price_holds() -> None:
    usual = MemoryRoot()
    usual.rounds.extend(rounds(20, seed=5))
    rate = Budget(1.0, rounds=3)
    rate.remembered.extend(usual.rounds)
    assert rate.value(score) == pytest.approx(usual.value(score), rel=1e-8)
    assert Budget(0.0).value(score) == 0.0


def test_state_goes_on_where_it_stopped() -> None:
    policy = COAF(index=Truth(truth), rate=(rate := Budget(900.0, rounds=9, size=4)))
    for r in rounds(6, seed=6):
        policy.commit(policy.decide(r))
    rate.remain(seconds=rate.seconds, again=[patch(0.3, 0.4, key="a")], here=patch(0.5, key="b"))
    again = Budget.restore(json.loads(json.dumps(rate.state())))
    assert again.value(score) == rate.value(score) > 0.0
    assert again.state() == rate.state()
    assert Budget.restore(Budget(5.0).state()).rounds == inf


def test_wrong_input_is_named() -> None:
    with pytest.raises(ValueError, match=r"seconds is -1\.0; it must be at least 0"):
        Budget(-1.0)
    with pytest.raises(ValueError, match=r"rounds is -2\.0"):
        Budget(1.0, rounds=-2)
    with pytest.raises(ValueError, match="seconds is nan"):
        Budget(1.0).remain(seconds=float("nan"))


def one_by_one() -> Stepwise:
    return Stepwise(Nested(1, variances="fixed", effects=(0.5, 1.5), centre=(4.0, -2.0)))


def named(name: str, x: float) -> Round:
    groups = [["s", name]] * 8
    return Round(np.full((8, 1), x), Setup(12.0, 52.0, 6.7), groups=groups, key=name)


def hole_by_hole(*, told: float | None) -> tuple[Decision, Decision]:
    """Enter a patch and fail there; then decide about the rest, told the time left or not."""
    policy = one_by_one()
    policy.meet([named(f"{k}", 0.6) for k in range(4)])
    others = [named(f"other {k}", 0.6) for k in range(4)]
    policy.remain(seconds=200.0, rounds=0, again=others)
    entry = policy.decide(named("here", 0.5))
    policy.commit(entry)
    policy.learn(entry, np.flatnonzero(entry.chosen), [0.0])
    if told is not None:
        policy.remain(seconds=told, rounds=0, again=others)
    left = Round(
        np.full((7, 1), -0.5), Additive(0.0, 6.7), groups=[["s", "here"]] * 7, follows=entry
    )
    return entry, policy.decide(left)


def test_near_the_end_a_visit_goes_on_where_nothing_else_can_be_started() -> None:
    """The way elsewhere takes 58.7 s with the first hole: with 45 s a second has no price."""
    entry, rest = hole_by_hole(told=None)
    assert entry.chosen.any()
    assert rest.rate == entry.rate > 0.0
    assert not rest.chosen.any()
    _, rest = hole_by_hole(told=190.0)
    assert rest.rate > 0.0
    assert not rest.chosen.any(), "there is time for something better"
    _, rest = hole_by_hole(told=45.0)
    assert rest.rate < 0.01 * entry.rate
    assert rest.chosen.any()


@pytest.mark.parametrize("seconds", [60.0, 150.0, 400.0, 2000.0])
def test_hole_by_hole_the_price_never_rises_above_the_usual(seconds: float) -> None:
    policy = one_by_one()
    policy.meet([named(f"{k}", 0.3) for k in range(4)])
    usual = policy.rate
    policy.remain(seconds=seconds, rounds=50, again=[named(f"good {k}", 0.9) for k in range(4)])
    assert 0.0 < policy.rate <= usual
