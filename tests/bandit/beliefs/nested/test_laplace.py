"""The nested belief of rewards 0 or 1: its mode, its curvature, and how often it is right."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coaf.bandit.arrays import FloatArray, IntArray
from coaf.bandit.beliefs.nested.laplace import LogisticTable
from coaf.bandit.beliefs.nested.nested import Nested
from coaf.bandit.checks.beliefs import check_belief
from coaf.bandit.groups import Groups

EFFECTS = (0.8, 1.2)


def sigmoid(eta: FloatArray) -> FloatArray:
    return 1.0 / (1.0 + np.exp(-eta))


def design(X: FloatArray, groups: IntArray, squares: int, patches: int) -> FloatArray:
    """Features, a constant, and indicators of squares 0.. and of patches 0.. in each."""
    n = len(X)
    A = np.zeros((n, X.shape[1] + 1 + squares + squares * patches))
    A[:, : X.shape[1]], A[:, X.shape[1]] = X, 1.0
    first = X.shape[1] + 1
    A[np.arange(n), first + groups[:, 0]] = 1.0
    A[np.arange(n), first + squares + groups[:, 0] * patches + groups[:, 1]] = 1.0
    return A


class Dense:
    """Newton's method on everything at once, for 2 features, 3 squares and 3 patches in each."""

    def __init__(self, A: FloatArray, y: FloatArray, weights: FloatArray) -> None:
        self.prior = np.diag([2.5**-2] * 3 + [EFFECTS[0] ** -2] * 3 + [EFFECTS[1] ** -2] * 9)
        self.mode = np.zeros(A.shape[1])
        for _ in range(50):
            p = sigmoid(A @ self.mode)
            w = weights * p * (1.0 - p)
            self.cov = np.linalg.inv(self.prior + A.T @ (w[:, None] * A))
            pull = A.T @ (weights * (y - p)) - self.prior @ self.mode
            self.mode = self.mode + self.cov @ pull
        variance = np.einsum("ij,jk,ik->i", A, self.cov, A)
        lean = -0.5 * w * (1.0 - 2.0 * p) * variance
        self.mean = self.mode + self.cov @ A.T @ lean
        gain = weights * (y * (A @ self.mode) - np.logaddexp(0.0, A @ self.mode))
        logdet = np.linalg.slogdet(self.prior)[1] + np.linalg.slogdet(self.cov)[1]
        self.evidence = gain.sum() - 0.5 * self.mode @ self.prior @ self.mode + 0.5 * logdet


def rows(rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray, IntArray]:
    y = (rng.random(n) < 0.25).astype(np.float64)
    return rng.normal(size=(n, 2)), y, rng.integers(0, 3, size=(n, 2))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(0, 50), st.floats(0.2, 1.0))
def test_mode_and_curvature_are_those_of_dense_newton(seed: int, n: int, factor: float) -> None:
    """To 1e-7, with old rows counting less and the last to come of groups seen before."""
    rng = np.random.default_rng(seed)
    X, y, groups = rows(rng, n)
    belief = Nested(2, effects=EFFECTS, variances="fixed", scale=2.5)
    half = n // 2
    belief.learn(X[:half], y[:half], groups[:half])
    belief.forget(factor)
    for i in range(half, n):
        belief.learn(X[i : i + 1], y[i : i + 1], groups[i : i + 1])
    weights = np.where(np.arange(n) < half, factor, 1.0)
    dense = Dense(design(X, groups, 3, 3), y, weights)
    arms, _, labels = rows(rng, 9)
    B = design(arms, labels, 3, 3)
    mean, cov = belief.moments(arms, labels)
    np.testing.assert_allclose(mean, B @ dense.mean, atol=1e-7)
    np.testing.assert_allclose(cov, B @ dense.cov @ B.T, atol=1e-7)
    known = belief._known
    assert isinstance(known.table, LogisticTable)
    laplace = known.table.laplace(known.variances, known.tree)
    np.testing.assert_allclose(laplace.theta, dense.mode[:3], atol=1e-7)
    evidence = known.table.weighed(known.variances, known.tree)[1]
    assert evidence == pytest.approx(dense.evidence, abs=1e-6)


def test_the_mean_is_nearer_the_posterior_mean_than_the_mode_is() -> None:
    """One patch of 20 bad holes: against the posterior on a grid, without features or squares."""
    belief = Nested(1, effects=(1.0,), variances="fixed", scale=1.0)
    belief.learn(np.zeros((20, 1)), np.zeros(20), np.zeros(20, dtype=int))
    t = np.linspace(-8.0, 4.0, 4001)  # θ₀ + c ~ N(0, 2), which is all that rows speak of
    density = np.exp(-(t**2) / 4.0 - 20.0 * np.logaddexp(0.0, t))
    truth = float((t * density).sum() / density.sum())
    mode = float(t[density.argmax()])
    mean = float(belief.moments([[0.0]], np.array([0]))[0][0])
    assert abs(mean - truth) < 0.3 * abs(mode - truth)


def test_rows_without_groups_are_flattened() -> None:
    """They have effects of their own, which pull average rewards towards one half."""
    rng = np.random.default_rng(0)
    X = np.zeros((4000, 1))
    eta = -2.0 + 1.5 * rng.normal(size=4000)
    belief = Nested(1, effects=(1.5,), variances="fixed")
    belief.learn(X, (rng.random(4000) < sigmoid(eta)).astype(np.float64))
    assert belief.theta[-1] == pytest.approx(-2.0, abs=0.15)
    assert belief.mean([[0.0]])[0] == pytest.approx(sigmoid(eta).mean(), abs=0.02)


def test_a_patch_shrinks_to_its_square_and_the_square_to_the_grid() -> None:
    belief = Nested(1, effects=(1.0, 1.0), variances="fixed")
    labels = np.array([[0, 0]] * 30 + [[1, 0]] * 30)
    belief.learn(np.zeros((60, 1)), [0.0] * 30 + [1.0] * 30, labels)
    arms = np.array([[0, 0], [0, 1], [2, 0], [1, 1], [1, 0]])
    means = belief.mean(np.zeros((5, 1)), arms)
    assert (np.diff(means) > 0.03).all()
    assert means[2] == pytest.approx(0.5, abs=0.02)
    spread = np.diag(belief.moments(np.zeros((5, 1)), arms)[1])
    assert spread[0] < spread[1] < spread[2]


def test_one_hopeless_feature_does_not_run_away() -> None:
    """Separable rows: the prior keeps the mode finite, and Newton's method finds it."""
    belief = Nested(1)
    x = np.linspace(-1.0, 1.0, 200)[:, None]
    belief.learn(1e3 * x, (x[:, 0] > 0).astype(np.float64), np.arange(200) % 5)
    assert np.isfinite(belief.theta).all()
    assert belief.mean([[1e3]])[0] > 0.99


def cryo(
    rng: np.random.Generator, *, patches: int = 60, holes: int = 20
) -> tuple[FloatArray, FloatArray, Groups]:
    """Features, probabilities and labels: rate 0.15, ICC 0.3, 8 patches to a square."""
    patch = np.repeat(np.arange(patches), holes)
    square = patch // 8
    X = rng.normal(size=(len(patch), 4))
    X /= 1.0 + np.linalg.norm(X, axis=1, keepdims=True)
    b, c = 0.69 * rng.normal(size=patches), 0.97 * rng.normal(size=patches)
    eta = X @ rng.normal(size=4) - 2.35 + b[square] + c[patch]
    return X, sigmoid(eta), np.column_stack([square, patch])


def test_intervals_cover_in_a_microscopes_world() -> None:
    """90 % intervals cover 85 to 95 % of the probabilities of holes not yet seen, over 24 worlds.

    Half of the holes of each patch are learned, and the mean is right to 0.01 on average.
    """
    inside, off = [], []
    for seed in range(24):
        rng = np.random.default_rng(seed)
        X, p, labels = cryo(rng)
        y = (rng.random(len(p)) < p).astype(np.float64)
        known = np.arange(len(p)) % 20 < 10
        belief = Nested(4)
        belief.learn(X[known], y[known], labels[known])
        low, high = belief.interval(X[~known], labels[~known])
        inside.append(np.mean((low <= p[~known]) & (p[~known] <= high)))
        off.append(np.mean(belief.mean(X[~known], labels[~known]) - p[~known]))
    assert 0.85 <= np.mean(inside) <= 0.95
    assert abs(np.mean(off)) < 0.01


def test_estimated_variances_do_not_depend_on_pieces() -> None:
    rng = np.random.default_rng(0)
    X, p, labels = cryo(rng, patches=8, holes=10)
    y = (rng.random(len(p)) < p).astype(np.float64)
    at_once, pieces = Nested(4), Nested(4)
    at_once.learn(X, y, labels)
    for i in range(0, len(y), 16):
        pieces.learn(X[i : i + 16], y[i : i + 16], labels[i : i + 16])
    np.testing.assert_array_equal(at_once.deviations, pieces.deviations)
    np.testing.assert_allclose(at_once.upper(X, labels), pieces.upper(X, labels), atol=1e-8)


def test_a_settled_session_costs_no_rows() -> None:
    rng = np.random.default_rng(0)
    X, p, labels = cryo(rng, patches=16)
    y = (rng.random(len(p)) < p).astype(np.float64)
    belief = Nested(4)
    belief.learn(X, y, labels)
    before = belief.mean(X, labels)
    belief.settle()
    np.testing.assert_allclose(belief.mean(X, labels), before, atol=1e-9)
    assert belief._known.table.state()["y"]["shape"] == [0]
    belief.learn(X[:40], y[:40], labels[:40])
    assert belief._known.table.state()["y"]["shape"] == [40]


CHECKED: dict[str, dict[str, Any]] = {
    "logistic": {"dim": 1, "effects": (1.0,)},
    "logistic, fixed": {"dim": 5, "variances": "fixed"},
    "logistic, no groups": {"dim": 3, "effects": ()},
}


@pytest.mark.parametrize("name", CHECKED)
def test_contract(name: str) -> None:
    check_belief(Nested(**CHECKED[name]))


def test_contract_with_squares_and_patches() -> None:
    rng = np.random.default_rng(0)
    X, y, groups = rows(rng, 14)
    check_belief(Nested(2), features=X, rewards=y, groups=groups)
