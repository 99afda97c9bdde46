"""The nested belief against a dense regression with a column for every group."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.nested.nested import Nested
from coaf.bandit.checks.beliefs import check_belief
from coaf.bandit.groups import Groups

Batch = tuple[FloatArray, FloatArray, Groups | None]
seeds = st.integers(0, 2**32 - 1)


def nodes(path: tuple[int, ...], levels: int, row: str) -> list[tuple[Any, ...]]:
    """The groups of a row, outermost first; where labels are missing, groups of its own."""
    found: list[tuple[Any, ...]] = []
    for level in range(levels):
        known = len(path) - (levels - 1 - level)
        if not path:
            found.append((row, level))
        elif known < 1:
            found.append(("above", level, len(path), path[:1]))
        else:
            found.append(("group", level, len(path), path[:known]))
    return found


class Dense:
    """Bayesian regression on features, a constant, and an indicator of every group."""

    def __init__(self, belief: Nested, batches: list[Batch], arms: list[Batch]) -> None:
        self.levels, self.dim = len(belief.effects or ()), belief.dim
        tau, self.noise = belief.deviations[:-1], belief.deviations[-1]
        names: dict[tuple[Any, ...], int] = {}
        placed: list[tuple[list[FloatArray], list[list[int]]]] = []
        for what, tables in (("row", batches), ("arm", arms)):
            rows: list[FloatArray] = []
            columns: list[list[int]] = []
            for X, _, groups in tables:
                for i, x in enumerate(X):
                    path = () if groups is None else np.atleast_1d(groups[i]).tolist()
                    # Rows without labels have groups of their own; arms scored together share.
                    alone = f"{what} {len(rows)}" if what == "row" else what
                    found = nodes(tuple(path), self.levels, alone)
                    columns.append([names.setdefault(name, len(names)) for name in found])
                    rows.append(x)
            placed.append((rows, columns))
        level_of = {i: name[1] for name, i in names.items()}
        assert isinstance(belief.scale, float)
        self.prior = np.array(
            [belief.scale**2] * (self.dim + 1) + [tau[level_of[i]] ** 2 for i in range(len(names))]
        )
        self.A, self.B = (self.design(*table) for table in placed)
        self.y = np.concatenate([y for _, y, _ in batches]) if batches else np.empty(0)
        precision = np.diag(1.0 / self.prior) + self.A.T @ self.A / self.noise**2
        self.cov = np.linalg.inv(precision)
        self.mean = self.cov @ self.A.T @ self.y / self.noise**2

    def design(self, rows: list[FloatArray], columns: list[list[int]]) -> FloatArray:
        A = np.zeros((len(rows), len(self.prior)))
        for i, (x, own) in enumerate(zip(rows, columns, strict=True)):
            A[i, : self.dim], A[i, self.dim] = x, 1.0
            for j in own:
                A[i, self.dim + 1 + j] += 1.0
        return A

    def moments(self) -> tuple[FloatArray, FloatArray]:
        return self.B @ self.mean, self.B @ self.cov @ self.B.T

    def evidence(self) -> float:
        K = (self.A * self.prior) @ self.A.T + self.noise**2 * np.eye(len(self.y))
        logdet = np.linalg.slogdet(2.0 * np.pi * K)[1]
        return float(-0.5 * (logdet + self.y @ np.linalg.solve(K, self.y)))


def batch(rng: np.random.Generator, n: int, dim: int, depth: int) -> Batch:
    X, y = rng.normal(size=(n, dim)), rng.normal(size=n)
    groups = rng.integers(0, 3, size=(n, depth)) if depth else None
    return X, y, groups[:, 0] if depth == 1 and groups is not None else groups


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seeds,
    st.integers(1, 4),
    st.lists(st.floats(0.05, 3.0), max_size=3),
    st.floats(0.1, 2.0),
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 4)), max_size=5),
    st.integers(0, 4),
)
def test_posterior_is_that_of_the_dense_regression(
    seed: int,
    dim: int,
    effects: list[float],
    noise: float,
    batches: list[tuple[int, int]],
    depth: int,
) -> None:
    """Means, joint covariance and evidence to 1e-8; labels of any depth, seen and never seen."""
    rng = np.random.default_rng(seed)
    belief = Nested(
        dim, family="gaussian", effects=effects, noise=noise, variances="fixed", scale=2.5
    )
    learned = [batch(rng, n, dim, levels) for n, levels in batches]
    for X, y, groups in learned:
        belief.learn(X, y, groups)
    X, y, groups = batch(rng, 7, dim, depth)
    if groups is not None:
        groups = groups + rng.integers(0, 2, size=groups.shape)  # 3 was never seen
    dense = Dense(belief, learned, [(X, y, groups)])
    mean, cov = belief.moments(X, groups)
    expected, spread = dense.moments()
    np.testing.assert_allclose(mean, expected, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(cov, spread, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(belief.mean(X, groups), expected, rtol=1e-8, atol=1e-8)
    width = np.sqrt(np.diag(spread))
    upper = expected + 1.645 * width
    np.testing.assert_allclose(belief.upper(X, groups), upper, rtol=1e-8, atol=1e-8)
    known = belief._known
    found = known.table.weighed(known.variances, known.tree)[1]
    assert found == pytest.approx(dense.evidence(), rel=1e-8, abs=1e-8)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(seeds, st.integers(2, 40))
def test_neither_order_nor_pieces_matter(seed: int, n: int) -> None:
    """Late scores for a patch left behind count as if they had come in time."""
    rng = np.random.default_rng(seed)
    X, y, groups = batch(rng, n, 2, 2)
    assert groups is not None
    stated: dict[str, Any] = {"effects": (0.3, 0.3), "noise": 0.5, "scale": 2.5}
    at_once, late = (Nested(2, family="gaussian", variances="fixed", **stated) for _ in range(2))
    at_once.learn(X, y, groups)
    for i in rng.permutation(n):
        late.learn(X[i : i + 1], y[i : i + 1], groups[i : i + 1])
    np.testing.assert_allclose(at_once.theta, late.theta, atol=1e-9)
    for a, b in zip(at_once.moments(X, groups), late.moments(X, groups), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)


def test_estimated_variances_do_not_depend_on_pieces() -> None:
    rng = np.random.default_rng(1)
    X, y, groups = batch(rng, 70, 2, 2)
    assert groups is not None
    at_once, pieces = Nested(2, family="gaussian"), Nested(2, family="gaussian")
    at_once.learn(X, y, groups)
    for i in range(0, 70, 7):
        pieces.learn(X[i : i + 7], y[i : i + 7], groups[i : i + 7])
    np.testing.assert_array_equal(at_once.deviations, pieces.deviations)


def world(
    rng: np.random.Generator, squares: int, patches: int, holes: int, tau: tuple[float, float]
) -> tuple[FloatArray, FloatArray, Groups]:
    """Features, η and labels of all holes, with θ = (1, −1) and intercept 0.5."""
    labels = np.indices((squares, patches, holes)).reshape(3, -1).T[:, :2]
    X = rng.normal(size=(len(labels), 2))
    b, c = tau[0] * rng.normal(size=squares), tau[1] * rng.normal(size=(squares, patches))
    eta = X @ [1.0, -1.0] + 0.5 + b[labels[:, 0]] + c[labels[:, 0], labels[:, 1]]
    return X, eta, labels


def test_variances_are_found() -> None:
    """Standard deviations within 20 % with 40 squares of 8 patches of 10 holes."""
    rng = np.random.default_rng(3)
    X, eta, labels = world(rng, 40, 8, 10, (0.4, 0.8))
    belief = Nested(2, family="gaussian")
    belief.learn(X, eta + 0.2 * rng.normal(size=len(eta)), labels)
    np.testing.assert_allclose(belief.deviations, [0.4, 0.8, 0.2], rtol=0.2)


@pytest.mark.parametrize("shift", [0.0, 50.0])
def test_few_groups_give_no_extreme_variances(shift: float) -> None:
    rng = np.random.default_rng(0)
    belief = Nested(2, family="gaussian")
    X = rng.normal(size=(12, 2))
    belief.learn(X, np.full(12, shift), np.zeros((12, 2), dtype=int))
    assert (belief.deviations > 1e-3).all()
    assert (belief.deviations < 100.0).all()


def test_gaussian_intervals_cover() -> None:
    """90 % intervals cover 85 to 95 % of mean rewards, over 20 worlds; variances estimated."""
    inside = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, eta, labels = world(rng, 10, 8, 12, (0.4, 0.6))
        known = (np.arange(len(eta)) % 12 < 4) & (labels[:, 0] < 9) & (labels[:, 1] < 7)
        belief = Nested(2, family="gaussian")
        y = eta + 0.5 * rng.normal(size=len(eta))
        belief.learn(X[known], y[known], labels[known])
        low, high = belief.interval(X[~known], labels[~known])
        inside.append(np.mean((low <= eta[~known]) & (eta[~known] <= high)))
    assert 0.85 <= np.mean(inside) <= 0.95


@pytest.mark.parametrize("family", ["gaussian", "logistic"])
def test_samples_have_the_moments(family: Any) -> None:
    """η over 4,000 draws within five standard errors of its mean and covariance."""
    rng = np.random.default_rng(5)
    belief = Nested(2, family=family, variances="fixed")
    X, _, groups = batch(rng, 30, 2, 2)
    belief.learn(X, rng.integers(0, 2, 30), groups)
    arms, labels = rng.normal(size=(6, 2)), [[0, 0], [0, 0], [0, 1], [1, 7], [9, 9], [9, 8]]
    mean, cov = belief.moments(arms, np.array(labels))
    draws = np.array([belief.sample(arms, rng, np.array(labels)) for _ in range(4000)])
    if family == "logistic":
        draws = np.log(draws / (1.0 - draws))
    scale = np.sqrt(np.diag(cov))
    assert (np.abs(draws.mean(axis=0) - mean) < 5.0 * scale / np.sqrt(4000)).all()
    error = np.abs(np.cov(draws.T) - cov) / np.outer(scale, scale)
    assert (error < 5.0 * np.sqrt(2.0 / 4000)).all()


def test_a_draw_of_an_arm_does_not_depend_on_arms_after_it() -> None:
    belief = Nested(2, variances="fixed")
    X, _, groups = batch(np.random.default_rng(0), 8, 2, 2)
    assert groups is not None
    full, part = (belief.sample(X[:n], np.random.default_rng(7), groups[:n]) for n in (len(X), 3))
    np.testing.assert_allclose(full[:3], part, rtol=1e-12)


CHECKED: dict[str, dict[str, Any]] = {
    "gaussian": {"dim": 3, "family": "gaussian"},
    "gaussian, fixed": {"dim": 15, "family": "gaussian", "variances": "fixed"},
    "gaussian, no groups": {"dim": 2, "family": "gaussian", "effects": ()},
    "gaussian, three levels": {
        "dim": 2,
        "family": "gaussian",
        "effects": (0.2, 0.3, 0.4),
        "variances": "fixed",
    },
}


@pytest.mark.parametrize("name", CHECKED)
def test_contract(name: str) -> None:
    check_belief(Nested(**CHECKED[name]))
