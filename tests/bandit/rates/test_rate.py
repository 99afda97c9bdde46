"""The rates against the paper's Algorithm 1 and against formulas worked out by hand."""

import itertools
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

from coaf.bandit.actions import AtMost, Exactly
from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.linear import Linear
from coaf.bandit.index import Mean, Truth
from coaf.bandit.latency import Additive, ByCount, Setup
from coaf.bandit.policies.coaf import COAF
from coaf.bandit.policies.faults import AssumptionWarning
from coaf.bandit.problem import Round
from coaf.bandit.rates.memory_root import MemoryRoot
from coaf.bandit.rates.rate import Fixed, Rate, Renewal, RobbinsMonro
from coaf.bandit.rates.restarting import Restarting
from coaf.bandit.select import best

DIM = 4


def world(rounds: int, seed: int) -> list[tuple[Round, FloatArray]]:
    """Rounds of 2 to 9 arms of dimension 4, and noisy rewards of all of them."""
    rng = np.random.default_rng(seed)
    theta = np.array([0.6, 0.3, -0.5, 0.2])
    found = []
    for _ in range(rounds):
        X = rng.normal(size=(int(rng.integers(2, 10)), DIM))
        X /= 1.0 + np.linalg.norm(X, axis=1, keepdims=True)
        patch = Round(X, Additive(base=rng.uniform(2.0, 6.0), each=rng.uniform(0.2, 1.0, len(X))))
        found.append((patch, X @ theta + 0.1 * rng.normal(size=len(X))))
    return found


def algorithm_1(
    rounds: list[tuple[Round, FloatArray]], xi: float, delta: float, bounds: list[float]
) -> list[tuple[FloatArray, float]]:
    """`alg: COAF` with β(n, δ) as printed, the plain ellipsoid, estimates capped at 1."""
    V, b, n, gamma, elapsed, steps = np.eye(DIM), np.zeros(DIM), 0, 0.0, 0.0, []
    for (patch, y), bound in zip(rounds, bounds, strict=True):
        assert isinstance(patch.latency, Additive)
        X, base, each = patch.features, patch.latency.base, np.asarray(patch.latency.each)
        root_beta = 1.0 + np.sqrt(2.0 * np.log(1.0 / delta) + DIM * np.log((DIM + n) / DIM))
        width = np.sqrt(np.einsum("ij,ij->i", X, np.linalg.solve(V, X.T).T))
        mu = np.minimum(X @ np.linalg.solve(V, b) + root_beta * width, 1.0)
        A = mu > gamma * each
        steps.append((A, gamma))
        elapsed += base
        gamma -= ((base + each[A].sum()) * gamma - mu[A].sum()) / (xi * elapsed)
        gamma = min(max(gamma, -bound), bound)
        V, b, n = V + X[A].T @ X[A], b + X[A].T @ y[A], n + int(A.sum())
    return steps


def played(policy: COAF, rounds: list[tuple[Round, FloatArray]]) -> list[tuple[Any, float]]:
    steps = []
    for patch, y in rounds:
        decision = policy.decide(patch)
        steps.append((decision.chosen, decision.rate))
        policy.commit(decision)
        arms = np.flatnonzero(decision.chosen)
        policy.learn(decision, arms, y[arms])
    return steps


@pytest.mark.parametrize("xi", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("given", [True, False])
def test_algorithm_1_as_printed(xi: float, given: bool) -> None:
    """300 rounds: the same subsets, and rates to 1e-9."""
    rounds = world(300, seed=1)
    most = np.maximum.accumulate([float(patch.n) for patch, _ in rounds])
    least = np.minimum.accumulate([patch.floor for patch, _ in rounds])
    bounds = [9 / 2.0] * 300 if given else (most / least).tolist()
    extremes: dict[str, Any] = {"n_max": 9, "l_min": 2.0} if given else {}
    policy = COAF.paper(DIM, xi=xi, delta=0.01, within="ellipsoid", **extremes)
    ours, theirs = played(policy, rounds), algorithm_1(rounds, xi, 0.01, bounds)
    for (chosen, rate), (A, gamma) in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(chosen, A)
        assert rate == pytest.approx(gamma, rel=1e-9, abs=1e-12)
    took = np.concatenate([chosen for chosen, _ in ours])
    assert 0.05 < took.mean() < 0.95  # both choices were made
    assert ours[0][1] == 0.0  # Γ₁


def truth(features: FloatArray) -> FloatArray:
    return features[:, 0]


def oracle(rate: Rate) -> COAF:
    return COAF(index=Truth(truth), rate=rate)


def arms(*means: float, base: float = 4.0, each: float = 1.0, **more: Any) -> Round:
    return Round(np.array(means)[:, None], Additive(base, each), **more)


def test_one_step_by_hand() -> None:
    """Γ₁ = 0.1: arms above 0.1 cost 4 + 2·1 s and bring 1.2, so g = 6·0.1 − 1.2 = −0.6."""
    policy = oracle(RobbinsMonro(xi=0.5, initial=0.1))
    assert policy.rate == 0.1
    decision = policy.decide(arms(0.8, 0.4, 0.05))
    assert decision.chosen.tolist() == [True, True, False]
    policy.commit(decision)
    assert policy.rate == pytest.approx(0.1 + 0.6 / (0.5 * 4.0), abs=1e-15)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_projection(sign: float) -> None:
    """±n_max·mean_bound/l_min; by default the extremes seen, the current round included."""
    forced = arms(*[sign] * 3, base=0.5, each=0.0, actions=Exactly(3))
    given = oracle(RobbinsMonro(xi=0.001, n_max=8, l_min=0.25, mean_bound=2.0))
    running = oracle(RobbinsMonro(xi=0.001, mean_bound=2.0))
    for policy, bound in ((given, 8 * 2.0 / 0.25), (running, 3 * 2.0 / 0.5)):
        policy.commit(policy.decide(forced))
        assert policy.rate == sign * bound
    # 12 − (0.1·12 − 1)/(0.001·0.6) is about −321, and a round may now be as short as 0.1 s.
    running.commit(running.decide(arms(sign, base=0.1, each=0.0, actions=Exactly(1))))
    assert running.rate == pytest.approx(-sign * 3 * 2.0 / 0.1, rel=1e-15)


def test_a_first_rate_out_of_range_is_brought_back() -> None:
    """A rate of −1000 makes every second welcome; the step leads far above, to the bound 2·1/4."""
    policy = oracle(RobbinsMonro(xi=1.0, initial=-1000.0, mean_bound=1.0))
    decision = policy.decide(arms(-0.5, -0.5))
    assert decision.chosen.all()  # 6 s at −1000 each beat 4 s
    policy.commit(decision)
    gap = 6.0 * -1000.0 + 1.0
    stepped = -1000.0 - gap / 4.0
    assert policy.rate == min(max(stepped, -0.5), 0.5) == 0.5


@pytest.mark.parametrize(
    ("settings", "mistake"),
    [
        ({"xi": 0.0}, "xi is 0.0; it must be greater than 0"),
        ({"xi": 1.5}, "xi is 1.5; it must be at most 1"),
        ({"n_max": 0}, "n_max is 0.0; it must be at least 1"),
        ({"l_min": 0.0}, "l_min is 0.0; it must be greater than 0"),
        ({"mean_bound": -1.0}, "mean_bound is -1.0"),
        ({"initial": float("nan")}, "initial is nan; it must be a finite number"),
    ],
)
def test_robbins_monro_refuses_settings_that_make_no_sense(
    settings: dict[str, Any], mistake: str
) -> None:
    with pytest.raises(ValueError, match=mistake):
        RobbinsMonro(**settings)


def test_robbins_monro_steps_by_its_own_gap_whatever_was_executed() -> None:
    overruled, obeyed = oracle(RobbinsMonro(initial=0.1)), oracle(RobbinsMonro(initial=0.1))
    first = overruled.decide(arms(0.8, 0.4, 0.05))
    overruled.commit(first, executed=[False, False, True], seconds=99.0)
    obeyed.commit(first)
    for policy in (overruled, obeyed):
        policy.commit(policy.decide(arms(0.3)))
    assert overruled.rate == pytest.approx(obeyed.rate, rel=1e-14)


def test_renewal_counts_what_was_executed_and_the_measured_seconds() -> None:
    policy = oracle(Renewal())
    assert policy.rate == 0.0
    first = policy.decide(arms(0.8, 0.4, 0.05))
    assert first.chosen.all()
    policy.commit(first, executed=[False, True, True])  # 0.45 in 4 + 2 s, as modelled
    assert policy.rate == pytest.approx(0.45 / 6.0, rel=1e-15)
    second = policy.decide(arms(0.5, 0.01))
    assert second.chosen.tolist() == [True, False]
    policy.commit(second, seconds=11.0)  # 0.5 in 11 s, as measured
    assert policy.rate == pytest.approx(0.95 / 17.0, rel=1e-15)
    policy.commit(policy.decide(arms(0.5, 0.01)), executed=[True, True], seconds=3.0)
    assert policy.rate == pytest.approx(1.46 / 20.0, rel=1e-15)


def test_restarting_counts_its_own_choice_and_how_much_longer_things_took() -> None:
    policy = oracle(Restarting())
    assert policy.rate == 0.0
    first = policy.decide(arms(0.8, 0.4, 0.05))
    assert first.chosen.all()
    policy.commit(first, executed=[False, True, True])  # chosen: 1.25 in 4 + 3 s
    assert policy.rate == pytest.approx(1.25 / 7.0, rel=1e-15)
    second = policy.decide(arms(0.5, 0.01))
    assert second.chosen.tolist() == [True, False]
    policy.commit(second, seconds=11.0)  # 0.5 in 11 s, as measured
    assert policy.rate == pytest.approx(1.75 / 18.0, rel=1e-15)
    third = policy.decide(arms(0.5, 0.01))
    assert third.chosen.tolist() == [True, False]
    policy.commit(third, executed=[True, True], seconds=9.0)  # 3 s longer than 4 + 2 s
    assert policy.rate == pytest.approx(2.25 / 26.0, rel=1e-15)


@pytest.mark.parametrize("make", [Restarting, RobbinsMonro, MemoryRoot])
def test_a_log_of_somebody_elses_choices_teaches_the_right_price(make: Callable[[], Rate]) -> None:
    """The logger took each arm with probability a half, and made less than 0.8 of Γ*.

    After 3,000 rounds every rate is within 5 % of Γ*, by Dinkelbach on these rounds.
    """
    rng = np.random.default_rng(5)
    rounds = [arms(*rng.uniform(-0.3, 1.0, 5), base=1.0) for _ in range(3000)]
    best_rate, logged_rate = 0.0, 0.0
    for _ in range(20):
        found = [best(best_rate, r.features[:, 0], r.latency, r.actions) for r in rounds]
        best_rate = sum(f.reward for f in found) / sum(f.seconds for f in found)
    policy, reward, seconds = oracle(make()), 0.0, 0.0
    for r in rounds:
        logged = rng.random(5) < 0.5
        reward += float(r.features[logged, 0].sum())
        seconds += r.latency.seconds(logged)
        policy.commit(policy.decide(r), executed=logged)
    logged_rate = reward / seconds
    assert logged_rate < 0.8 * best_rate
    assert policy.rate == pytest.approx(best_rate, rel=0.05)


def test_renewal_says_once_that_it_learns_the_price_of_whoever_wrote_the_log() -> None:
    policy = oracle(Renewal())
    for _ in range(40):  # an operator who corrects every third choice is none
        for executed in (None, None, [False, False]):
            policy.commit(policy.decide(arms(0.5, 0.4)), executed=executed)
    rate = Renewal()
    policy = oracle(rate)
    for _ in range(19):
        policy.commit(policy.decide(arms(0.5, 0.4)), executed=[False, False])
    policy = oracle(Renewal.restore(json.loads(json.dumps(rate.state()))))
    with pytest.warns(AssumptionWarning, match="20 of 20 visits something else was executed"):
        policy.commit(policy.decide(arms(0.5, 0.4)), executed=[False, False])
    for _ in range(50):
        policy.commit(policy.decide(arms(0.5, 0.4)), executed=[False, False])


def test_renewal_before_any_time() -> None:
    policy = oracle(Renewal(initial=0.7))
    assert policy.rate == 0.7


def test_renewal_is_stochastic_approximation_with_gain_one_over_elapsed_time() -> None:
    """Γ ← Γ − g(Γ, A_j)/Σ l_i(A_i), to 1e-12 over 300 rounds with a learning belief."""
    policy = COAF(belief=Linear.tuned(DIM), rate=Renewal())
    gamma, elapsed, reward = 0.0, 0.0, 0.0
    for patch, y in world(300, seed=2):
        decision = policy.decide(patch)
        assert decision.rate == pytest.approx(gamma, rel=1e-12, abs=1e-12)
        elapsed += decision.seconds
        reward += float(decision.estimates[decision.chosen].sum())
        gamma -= decision.gap / elapsed
        policy.commit(decision)
        policy.learn(decision, np.flatnonzero(decision.chosen), y[decision.chosen])
        assert policy.rate == pytest.approx(reward / elapsed, rel=1e-12)


def total_gap(rate: float, rounds: list[Round], score: Any) -> float:
    """Σ min g, each by trying every subset."""
    total = 0.0
    for patch in rounds:
        mu = score(patch.features)
        every = (np.array(row) for row in itertools.product((False, True), repeat=patch.n))
        total += min(
            patch.latency.seconds(A) * rate - mu[A].sum() for A in every if patch.actions.allows(A)
        )
    return total


def general(seed: int, kind: str) -> Round:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    X = rng.normal(size=(n, DIM))
    X /= 1.0 + np.linalg.norm(X, axis=1, keepdims=True)
    if kind == "threshold":
        setup = Setup(rng.uniform(2, 6), rng.uniform(0, 3), rng.uniform(0.1, 1.0, n))
        return Round(X, setup if seed % 2 else Additive(rng.uniform(2, 6), 0.5))
    by_count = np.concatenate([[0.0], np.cumsum(rng.uniform(0.1, 1.0, n))])
    return Round(X, ByCount(rng.uniform(2, 6), by_count), actions=AtMost(2))


@pytest.mark.parametrize("kind", ["threshold", "by count"])
def test_memory_root_is_the_root_over_the_remembered_rounds(kind: str) -> None:
    """Against brentq on Σ min g by brute force, rescored with today's belief, to 1e-9."""
    rng = np.random.default_rng(7)
    policy = COAF(belief=Linear(DIM, noise=0.3), index=Mean(), rate=MemoryRoot(size=5, initial=0.3))
    assert policy.rate == 0.3
    remembered: list[Round] = []
    for j in range(14):
        decision = policy.decide(general(j, kind))
        policy.commit(decision, executed=np.ones(decision.round.n, dtype=bool))
        policy.learn(decision, np.arange(decision.round.n), rng.uniform(0, 1, decision.round.n))
        remembered = [*remembered, decision.round][-5:]
        assert policy.belief is not None
        exact = brentq(
            total_gap, -5.0, 5.0, args=(remembered, policy.belief.mean), xtol=1e-13, rtol=1e-13
        )
        assert policy.rate == pytest.approx(exact, rel=1e-9, abs=1e-11)
    assert len(policy.state()["rate"]["rounds"]) == 5


@pytest.mark.parametrize("initial", [-50.0, 0.0, 0.1, 50.0])
def test_memory_root_from_any_start(initial: float) -> None:
    """Both arms in 6 s; nothing; and one arm, since one must be taken, in 5 s."""
    for patch, exact in (
        (arms(0.5, 0.25), 0.75 / 6.0),
        (arms(-0.5, -0.25), 0.0),
        (arms(-0.5, -0.25, actions=Exactly(1)), -0.25 / 5.0),
    ):
        policy = oracle(MemoryRoot(initial=initial))
        policy.commit(policy.decide(patch))
        assert policy.rate == pytest.approx(exact, rel=1e-12, abs=1e-15)


def test_memory_root_ignores_what_was_executed() -> None:
    policy, other = oracle(MemoryRoot()), oracle(MemoryRoot())
    policy.commit(policy.decide(arms(0.5, 0.4)))
    other.commit(other.decide(arms(0.5, 0.4)), executed=[False, False], seconds=100.0)
    assert policy.rate == other.rate


def test_fixed_stays() -> None:
    policy = COAF(dim=DIM, rate=Fixed(0.25))
    played(policy, world(5, seed=3))
    assert policy.rate == 0.25


@pytest.mark.parametrize(
    "rate", [Fixed(0.2), Renewal(initial=0.1), RobbinsMonro(n_max=20), MemoryRoot(size=2)]
)
def test_rates_survive_json(rate: Any) -> None:
    policy = COAF(dim=DIM, rate=rate)
    played(policy, world(4, seed=4))
    saved = json.loads(json.dumps(rate.state()))
    assert type(rate).restore(saved).state() == rate.state()
    for name in saved.keys() - {"rate"}:
        rest = {key: value for key, value in saved.items() if key != name}
        with pytest.raises(ValueError, match=f"state has no entry '{name}'"):
            type(rate).restore(rest)


def test_the_rate_shown_is_the_rate_used_next() -> None:
    policy = COAF.paper(DIM)
    for patch, _ in world(20, seed=5):
        shown = policy.rate
        decision = policy.decide(patch)
        assert decision.rate == shown
        again = best(shown, decision.estimates, patch.latency, patch.actions)
        np.testing.assert_array_equal(again.chosen, decision.chosen)
        policy.commit(decision)
