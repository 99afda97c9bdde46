"""Arms near each other: the mode, the curvature and the mean are those of a dense field."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coaf.bandit.arrays import FloatArray, IntArray
from coaf.bandit.beliefs.nested.nested import Nested
from coaf.bandit.checks.beliefs import check_belief

EFFECTS, NEAR = (0.8, 1.2), 0.9


def sigmoid(eta: FloatArray) -> FloatArray:
    return 1.0 / (1.0 + np.exp(-eta))


def rows(rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray, IntArray]:
    """Two places and a feature, rewards, and (square, patch)."""
    X = np.column_stack([rng.integers(0, 4, size=(n, 2)) / 1.5, rng.normal(size=n)])
    return X, (rng.random(n) < 0.3).astype(np.float64), rng.integers(0, 2, size=(n, 2))


def covariance(A: tuple[FloatArray, IntArray], B: tuple[FloatArray, IntArray]) -> FloatArray:
    """Of η a priori, between two sets of arms."""
    (X, g), (Y, h) = A, B
    square = g[:, None, 0] == h[:, 0]
    patch = square & (g[:, None, 1] == h[:, 1])
    apart = np.hypot(X[:, None, 0] - Y[:, 0], X[:, None, 1] - Y[:, 1])
    found = 2.5**2 * (np.outer(X[:, 2], Y[:, 2]) + 1.0)
    found = found + EFFECTS[0] ** 2 * square + patch * (EFFECTS[1] ** 2 + NEAR**2 * np.exp(-apart))
    return np.asarray(found)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.floats(0.2, 1.0))
def test_moments_are_those_of_a_dense_gaussian_process(seed: int, n: int, factor: float) -> None:
    """To 1e-3, with old rows counting less, and the last rows coming one by one."""
    rng = np.random.default_rng(seed)
    X, y, groups = rows(rng, n)
    belief = Nested(3, effects=EFFECTS, near=NEAR, variances="fixed", scale=2.5)
    half = n // 2
    belief.learn(X[:half], y[:half], groups[:half])
    belief.forget(factor)
    for i in range(half, n):
        belief.learn(X[i : i + 1], y[i : i + 1], groups[i : i + 1])
    weights = np.where(np.arange(n) < half, factor, 1.0)
    K = covariance((X, groups), (X, groups)) + 1e-9 * np.eye(n)
    eta = np.zeros(n)
    for _ in range(60):
        p = sigmoid(eta)
        w = weights * p * (1.0 - p)
        eta = K @ np.linalg.solve(np.diag(1.0 / w) + K, eta + weights * (y - p) / w)
    M = np.linalg.inv(np.diag(1.0 / w) + K)
    left = np.diag(K - K @ M @ K)
    response = eta + (weights * (y - p) - 0.5 * w * (1.0 - 2.0 * p) * left) / w
    arms, _, labels = rows(rng, 8)
    cross = covariance((arms, labels), (X, groups))
    mean, cov = belief.moments(arms, labels)
    np.testing.assert_allclose(mean, cross @ M @ response, rtol=1e-3, atol=1e-3)
    prior = covariance((arms, labels), (arms, labels))
    np.testing.assert_allclose(cov, prior - cross @ M @ cross.T, rtol=1e-3, atol=1e-3)
    told = belief.factors(arms, labels)
    np.testing.assert_allclose(told.mean, mean, atol=1e-12)
    np.testing.assert_allclose((told.shared**2).sum(axis=1) + told.own, np.diag(cov), atol=1e-9)


@pytest.mark.parametrize("near", [None, NEAR])
def test_rows_may_come_one_by_one_or_together(near: float | None) -> None:
    """Variances found are the same, and means to 1e-4; patches differ much, and holes in them."""
    for seed in range(4):
        rng = np.random.default_rng([7, seed])
        labels = np.repeat(np.indices((3, 5)).reshape(2, -1).T, 12, axis=0)
        spots = np.tile(np.indices((3, 4)).reshape(2, -1).T / 1.5, (15, 1))
        X = np.column_stack([spots, rng.normal(size=len(labels))])
        eta = X[:, 2] + np.repeat(1.5 * rng.normal(size=15), 12) - 1.0
        y = (rng.random(len(eta)) < sigmoid(eta)).astype(np.float64)
        together, one_by_one = (Nested(3, scale=2.5, near=near) for _ in range(2))
        together.learn(X, y, labels)
        for i in range(len(y)):
            one_by_one.learn(X[i : i + 1], y[i : i + 1], labels[i : i + 1])
        np.testing.assert_array_equal(together.deviations, one_by_one.deviations)
        np.testing.assert_allclose(
            together.mean(X, labels), one_by_one.mean(X, labels), rtol=1e-4, atol=1e-4
        )


def test_evidence_is_that_of_a_dense_gaussian_process() -> None:
    """Laplace's approximation, to 1e-3."""
    rng = np.random.default_rng(3)
    X, y, groups = rows(rng, 30)
    belief = Nested(3, effects=EFFECTS, near=NEAR, variances="fixed", scale=2.5)
    belief.learn(X, y, groups)
    K, eta = covariance((X, groups), (X, groups)) + 1e-9 * np.eye(30), np.zeros(30)
    for _ in range(60):
        p = sigmoid(eta)
        w = p * (1.0 - p)
        a = np.linalg.solve(np.diag(1.0 / w) + K, eta + (y - p) / w)
        eta = K @ a
    gain = float((y * eta - np.logaddexp(0.0, eta)).sum())
    logdet = np.linalg.slogdet(np.eye(30) + K * w)[1]
    assert belief.evidence == pytest.approx(gain - 0.5 * float(a @ eta) - 0.5 * logdet, abs=1e-3)


def test_draws_have_the_moments() -> None:
    rng = np.random.default_rng(1)
    X, y, groups = rows(rng, 25)
    belief = Nested(3, effects=EFFECTS, near=NEAR, variances="fixed", scale=2.5)
    belief.learn(X, y, groups)
    arms, _, labels = rows(rng, 4)
    arms[1], labels[1] = arms[0] + [0.1, 0.0, 0.0], labels[0]
    drawn = np.array([belief.sample(arms, rng, labels) for _ in range(6000)])
    eta = np.log(drawn / (1.0 - drawn))
    mean, cov = belief.moments(arms, labels)
    np.testing.assert_allclose(eta.mean(axis=0), mean, atol=0.1)
    np.testing.assert_allclose(np.cov(eta.T), cov, rtol=0.1, atol=0.2)


def test_a_good_hole_speaks_for_its_neighbours() -> None:
    """More than for holes far away in the patch, and these more than for other patches."""
    belief = Nested(3, near=1.0, scale=2.5, variances="fixed")
    belief.learn(np.zeros((2, 3)), [1.0, 1.0], np.zeros((2, 2), dtype=np.int64))
    near, far, other = belief.mean(
        [[0.5, 0.0, 0.0], [4.0, 0.0, 0.0], [0.5, 0.0, 0.0]], np.array([[0, 0], [0, 0], [0, 1]])
    )
    assert near > far + 0.02
    assert far > other + 0.02


def test_likeness_is_found_in_the_rows() -> None:
    """A field of deviation 1.5 is found as more than 0.5, one of none as less than 0.3.

    With a single reward for each place Laplace's approximation has it too small.
    """
    rng = np.random.default_rng(0)
    spots = np.array([[i, j] for i in range(6) for j in range(6)]) / 1.5
    apart = np.hypot(*(spots[:, None] - spots).transpose(2, 0, 1))
    root = np.linalg.cholesky(np.exp(-apart) + 1e-9 * np.eye(36))
    found = []
    for deviation in (0.0, 1.5):
        belief = Nested(3, near=0.5, effects=(0.5, 0.5), scale=2.5)
        for patch in range(20):
            eta = deviation * (root @ rng.standard_normal(36)) + 0.5 * rng.standard_normal()
            y = (rng.random(36) < sigmoid(eta)).astype(np.float64)
            X = np.column_stack([spots, np.zeros(36)])
            belief.learn(X, y, np.array([[patch // 4, patch]] * 36))
        found.append(belief.deviations[-1])
    assert found[0] < 0.3
    assert found[1] > 0.5


def test_a_restored_belief_goes_on_to_the_bit() -> None:
    rng = np.random.default_rng(5)
    X, y, groups = rows(rng, 60)
    belief = Nested(3, near=NEAR, scale=2.5)
    for i in range(0, 40, 4):
        belief.learn(X[i : i + 4], y[i : i + 4], groups[i : i + 4])
    again = Nested.restore(json.loads(json.dumps(belief.state())))
    for one in (belief, again):
        for i in range(40, 60):
            one.learn(X[i : i + 1], y[i : i + 1], groups[i : i + 1])
    np.testing.assert_array_equal(belief.mean(X, groups), again.mean(X, groups))


def test_a_settled_session_keeps_what_it_says_of_groups() -> None:
    rng = np.random.default_rng(5)
    X, y, groups = rows(rng, 60)
    belief = Nested(3, near=NEAR, scale=2.5)
    belief.learn(X, y, groups)
    far = X + np.array([50.0, 0.0, 0.0])
    before = belief.mean(far, groups)
    belief.settle()
    np.testing.assert_allclose(belief.mean(far, groups), before, atol=1e-9)


def test_contract() -> None:
    rng = np.random.default_rng(0)
    X, y, groups = rows(rng, 14)
    check_belief(Nested(3, near=0.7, scale=2.5), features=X, rewards=y, groups=groups)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [({}, "near needs a stated scale"), ({"effects": (), "scale": 2.5}, "near needs groups")],
)
def test_what_knows_no_places_says_so(wrong: dict[str, object], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        Nested(3, near=0.5, **wrong)  # type: ignore[arg-type]


def test_places_alone_are_no_features() -> None:
    with pytest.raises(ValueError, match="the first two columns are places"):
        Nested(2, near=0.5, scale=2.5)
