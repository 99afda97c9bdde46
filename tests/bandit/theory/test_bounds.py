import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coaf.bandit.arrays import FloatArray
from coaf.bandit.theory import bounds
from coaf.bandit.theory.bounds import Form, Scale

DAY = Scale(86400.0, n_max=20, l_min=12.0, l_max=200.0)


def linear(scale: Scale, form: Form = "repaired") -> float:
    return bounds.linear_bound(scale, xi=0.5, delta=1 / (2 + scale.samples), dim=5, form=form)


def general(scale: Scale, form: Form = "repaired") -> float:
    a = 1 / (2 + scale.samples)
    return bounds.general_bound(
        scale, xi=0.5, delta=a, alpha=a, log_covering=9.0, eluder=7.0, form=form
    )


def oracle(scale: Scale, form: Form = "repaired") -> float:
    return bounds.oracle_bound(scale, form=form)


# --- the formulas, typed once more from the paper --------------------------------------------


def test_printed_formulas_are_the_papers() -> None:
    T, n, low, high, d, lam, delta, xi = 5000.0, 7, 2.0, 9.0, 4, 0.5, 0.05, 0.3
    scale = Scale(T, n_max=n, l_min=low, l_max=high)
    U = T / low * (high * n / low) ** 2 * (1 + high / low) ** 2 * (1 + math.log(T / low))
    root = math.sqrt(lam) + math.sqrt(
        2 * math.log(1 / delta) + d * math.log((d * lam + T * n / low) / (d * lam))
    )
    W = 8 * d * T * root**2 * math.log((d * lam * low + T * n) / (d * lam * low))
    R = math.sqrt(U / xi + (high / low) ** 3 * W / (1 - xi)) + math.sqrt(n / low * W)
    last = n * high / low
    assert bounds.u_term(scale, form="printed") == pytest.approx(U)
    assert bounds.oracle_bound(scale, form="printed") == pytest.approx(math.sqrt(U) + last)
    assert bounds.w_linear(
        scale, delta=delta, dim=d, regularization=lam, form="printed"
    ) == pytest.approx(W)
    assert bounds.linear_bound(
        scale, xi=xi, delta=delta, dim=d, regularization=lam, form="printed"
    ) == pytest.approx(R + last)

    alpha, dims, log_cover = 0.01, 6, 3.0
    tolerance = 8 * (log_cover + math.log(1 / delta)) + 2 * alpha * T * (
        8 + math.sqrt(8 * math.log(4 * T**2 / delta))
    )
    W = T * (4 * dims + 1 + 4 * (tolerance + 4 * n) * dims * (1 + math.log(T * n / low)))
    assert bounds.w_general(
        scale, delta=delta, alpha=alpha, log_covering=log_cover, eluder=dims, form="printed"
    ) == pytest.approx(W)


def test_repaired_linear_bound_is_the_one_in_the_docs() -> None:
    T, n, low, high, d, delta, xi = 5000.0, 7, 2.0, 9.0, 4, 0.001, 0.3
    rounds = T / low + 1
    G = n * (1 + high / low)
    U = rounds * (high / low) ** 2 * G**2 * (1 + math.log(rounds))
    errors = 4 * bounds.beta(rounds * n, delta=delta, dim=d) * n / math.log(1 + n)
    errors *= d * math.log(1 + rounds * n / d)
    expected = math.sqrt(U / xi + rounds * n * (high / low) ** 2 * errors / (1 - xi))
    expected += math.sqrt(rounds * n * errors) + G + delta * rounds * n * high / low
    scale = Scale(T, n_max=n, l_min=low, l_max=high)
    assert bounds.linear_bound(scale, xi=xi, delta=delta, dim=d) == pytest.approx(expected)
    assert bounds.oracle_bound(scale) == pytest.approx(math.sqrt(U) + G)


# --- lm: LCB ----------------------------------------------------------------------------------


def frozen(batches: list[FloatArray], regularization: float) -> tuple[float, float]:
    """Σ min(1, x'V⁻¹x) with V frozen within a round, and ln det V_k / det V_0."""
    V = regularization * np.eye(batches[0].shape[1])
    start, total = np.linalg.slogdet(V)[1], 0.0
    for X in batches:
        widths = np.einsum("ij,ij->i", X, np.linalg.solve(V, X.T).T)
        total += float(np.minimum(1.0, widths).sum())
        V = V + X.T @ X
    return total, float(np.linalg.slogdet(V)[1] - start)


def test_the_printed_lemma_fails_for_twenty_equal_arms() -> None:
    total, log_det = frozen([np.ones((20, 1))], 1.0)
    assert total == 20.0
    assert log_det == pytest.approx(math.log(21))
    assert total > bounds.elliptical_factor(20, form="printed") * log_det
    assert total == pytest.approx(bounds.elliptical_factor(20) * log_det)


@settings(deadline=None, max_examples=300)
@given(
    st.integers(1, 4),
    st.lists(st.integers(1, 12), min_size=1, max_size=8),
    st.floats(-3.0, 1.5),
    st.sampled_from([0.0, 0.1, 3.0]),
    st.integers(0, 10**6),
)
def test_the_repaired_lemma_holds_for_batches(
    dim: int, sizes: list[int], exponent: float, spread: float, seed: int
) -> None:
    # spread 0 repeats one arm within the round, the worst case; 3 is close to independent arms.
    rng = np.random.default_rng(seed)
    batches = []
    for size in sizes:
        X = rng.normal(size=(1, dim)) + spread * rng.normal(size=(size, dim))
        batches.append(X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), rng.uniform(0, 2)))
    total, log_det = frozen(batches, 10.0**exponent)
    n_max = max(sizes)
    sharp, simple = bounds.elliptical_factor(n_max), n_max / math.log(2)
    assert total <= sharp * log_det * (1 + 1e-9) <= simple * log_det * (1 + 2e-9)


def test_the_determinant_identity_needs_the_matrix_updated_arm_by_arm() -> None:
    X = np.random.default_rng(0).normal(size=(6, 3)) / 3
    _, log_det = frozen([X], 1.0)
    V, one_by_one, at_once = np.eye(3), 0.0, 0.0
    for x in X:
        one_by_one += math.log1p(float(x @ np.linalg.solve(V, x)))
        at_once += math.log1p(float(x @ x))
        V = V + np.outer(x, x)
    assert one_by_one == pytest.approx(log_det)
    assert at_once > log_det + 0.1


# --- the chain of lm: COAF --------------------------------------------------------------------


@settings(deadline=None)
@given(st.integers(1, 25), st.floats(0.05, 0.95), st.floats(-1, 1), st.integers(0, 10**6))
def test_steps_one_to_three_hold_on_every_path(
    rounds: int, xi: float, place: float, seed: int
) -> None:
    # Deterministic, so for any rate in the interval, not only the optimal one.
    rng = np.random.default_rng(seed)
    n, low, high = 5, 0.02, 0.3  # a unit of time in which |A| ≤ l_max is plainly false
    scale = Scale(1.0, n_max=n, l_min=low, l_max=high)
    target = place * scale.rate_bound
    rate = rng.uniform(-1, 1) * scale.rate_bound
    elapsed = distance = noise = errors = 0.0
    for _ in range(rounds):
        actions = rng.random((6, n)) < rng.random()
        seconds = rng.uniform(low, high, 6)
        mu = rng.uniform(-1, 1, n)
        optimistic = mu + rng.random(n) * rng.random() * (1 - mu)
        hats, gaps = seconds * rate - actions @ optimistic, seconds * target - actions @ mu
        taken = int(hats.argmin())
        error = (optimistic - mu)[actions[taken]]
        excess = gaps[taken] - gaps.min()
        assert excess <= high * abs(rate - target) + error.sum() + 1e-9
        assert excess <= high * scale.rate_bound + 1e-9
        assert np.abs([hats.min(), gaps.min()]).max() <= scale.gap_bound
        distance += seconds.min() * (rate - target) ** 2
        noise += (target - rate) * gaps.min()
        errors += float((error**2).sum())
        elapsed += seconds.min()
        rate = float(np.clip(rate - hats[taken] / (xi * elapsed), -n / low, n / low))
    budget = scale.gap_bound**2 / (xi * low) * (1 + math.log(rounds))
    assert distance <= budget + n / ((1 - xi) * low) * errors + 2 * noise + 1e-6 * budget


def test_the_number_of_arms_is_not_bounded_by_the_latency() -> None:
    errors, minutes = np.ones(4), 0.5
    assert errors.sum() ** 2 > minutes * (errors**2).sum()
    assert errors.sum() ** 2 <= 4 * (errors**2).sum()


@pytest.mark.parametrize("horizon", [1.0, 4.0, 7.0])
def test_the_smallest_gaps_cancel_at_k_plus_one_and_not_at_k(horizon: float) -> None:
    # One arm of mean 1, latency 1 or 3: the optimal rate is 1/2 and the gap -1/2 or 1/2.
    done = after = 0.0
    depth = int(horizon) + 1
    for latencies in itertools.product((1.0, 3.0), repeat=depth):
        ends = np.cumsum(latencies)
        gaps = np.array(latencies) / 2 - 1
        k = int((ends <= horizon).sum())
        done += gaps[:k].sum() / 2**depth
        after += gaps[: k + 1].sum() / 2**depth
    assert after == 0.0
    assert done < -0.1


# --- how the bounds behave --------------------------------------------------------------------

bound = pytest.mark.parametrize("of", [oracle, linear, general])


def stretched(scale: Scale, unit: float) -> Scale:
    return replace(
        scale, horizon=scale.horizon * unit, l_min=scale.l_min * unit, l_max=scale.l_max * unit
    )


@bound
@pytest.mark.parametrize("unit", [1 / 3600, 1 / 60, 1000.0])
def test_repaired_bounds_do_not_know_the_unit_of_time(
    of: Callable[[Scale], float], unit: float
) -> None:
    assert of(stretched(DAY, unit)) == pytest.approx(of(DAY), rel=1e-12)


def test_printed_bounds_with_estimates_change_with_the_unit_of_time() -> None:
    minutes = stretched(DAY, 1 / 60)
    assert oracle(minutes, "printed") == pytest.approx(oracle(DAY, "printed"), rel=1e-12)
    assert linear(minutes, "printed") < 0.6 * linear(DAY, "printed")
    assert general(minutes, "printed") < 0.6 * general(DAY, "printed")


@given(st.floats(0.01, 100))
def test_repaired_bounds_scale_with_the_unit_of_reward(unit: float) -> None:
    scaled = replace(DAY, mean_bound=unit, noise=unit)
    pairs = [
        (
            bounds.linear_bound(scale, xi=0.5, delta=1e-5, dim=3, norm_bound=u),
            bounds.general_bound(
                scale, xi=0.5, delta=1e-5, alpha=0.1 * u, log_covering=4.0, eluder=5.0
            ),
        )
        for scale, u in ((scaled, unit), (DAY, 1.0))
    ]
    assert oracle(scaled) == pytest.approx(unit * oracle(DAY))
    assert pairs[0] == pytest.approx([unit * value for value in pairs[1]])
    assert bounds.resolution(scaled) == pytest.approx(unit * bounds.resolution(DAY))


@bound
@given(st.floats(1.0, 1e9), st.floats(1.001, 100), st.integers(1, 50))
def test_bounds_grow_with_the_horizon_and_the_arms(
    of: Callable[[Scale], float], horizon: float, factor: float, n: int
) -> None:
    scale = Scale(horizon, n_max=n, l_min=1.0, l_max=3.0)
    assert of(scale) < of(replace(scale, horizon=horizon * factor))
    assert of(scale) < of(replace(scale, n_max=n + 1))


@bound
def test_bounds_grow_like_the_root_of_the_horizon(of: Callable[[Scale], float]) -> None:
    for horizon in (1e6, 1e9, 1e12):
        shorter, longer = (replace(DAY, horizon=horizon * k) for k in (1.0, 100.0))
        logs = math.log(longer.samples) / math.log(shorter.samples)
        # Between √T and √T·ln²T: β brings one logarithm and the determinant another.
        assert 10 < of(longer) / of(shorter) < 10 * logs**2


def test_known_failure_is_paid_for() -> None:
    assert bounds.failure_term(DAY, probability=0.0) == 0.0
    assert bounds.failure_term(DAY, probability=2.0) == bounds.failure_term(DAY, probability=1.0)
    # At a fixed δ the expected regret may be linear in T, and the bound says so.
    long = replace(DAY, horizon=1e15)
    at_fixed = bounds.linear_bound(long, xi=0.5, delta=0.1, dim=3)
    assert at_fixed > 0.99 * bounds.failure_term(long, probability=0.1)
    assert linear(long) < 1e-3 * at_fixed


def test_a_horizon_shorter_than_a_round() -> None:
    brief = replace(DAY, horizon=1.0)
    with pytest.raises(ValueError, match=r"^horizon is 1.0; below l_min/e"):
        oracle(brief, "printed")
    assert oracle(brief) >= brief.horizon * brief.rate_bound


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: Scale(0.0, n_max=1, l_min=1.0, l_max=1.0), "horizon"),
        (lambda: Scale(1.0, n_max=0, l_min=1.0, l_max=1.0), "n_max"),
        (lambda: Scale(1.0, n_max=1.5, l_min=1.0, l_max=1.0), "n_max"),  # type: ignore[arg-type]
        (lambda: Scale(1.0, n_max=1, l_min=0.0, l_max=1.0), "l_min"),
        (lambda: Scale(1.0, n_max=1, l_min=2.0, l_max=1.0), "l_max"),
        (lambda: Scale(1.0, n_max=1, l_min=1.0, l_max=1.0, mean_bound=0.0), "mean_bound"),
        (lambda: bounds.oracle_bound(DAY, form="fixed"), "form"),  # type: ignore[arg-type]
        (lambda: bounds.linear_bound(DAY, xi=1.0, delta=0.1, dim=2), "xi"),
        (lambda: bounds.linear_bound(DAY, xi=0.5, delta=0.61, dim=2), "delta"),
        (lambda: bounds.linear_bound(DAY, xi=0.5, delta=0.1, dim=0), "dim"),
        (lambda: bounds.beta(1.0, delta=0.1, dim=2, regularization=0.0), "regularization"),
        (lambda: bounds.beta(1.0, delta=1.0, dim=2), "delta"),
        (
            lambda: bounds.w_general(DAY, delta=0.1, alpha=0.1, log_covering=1.0, eluder=-1.0),
            "eluder",
        ),
    ],
)
def test_errors_name_the_argument(call: Callable[[], object], name: str) -> None:
    with pytest.raises(ValueError, match=rf"^{name} is"):
        call()
