"""What a nested belief expects of its coefficients: a centre, and a scale for each."""

import json
from typing import Any

import numpy as np
import pytest

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.nested.nested import Nested

CENTRE, SCALE = (1.5, -0.5, 0.3), (0.4, 0.8, 1.2)


def rows(n: int, seed: int = 0) -> tuple[FloatArray, FloatArray, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    square = rng.integers(0, 3, n)
    groups = np.column_stack([square, rng.integers(0, 2, n)])
    return X, rng.normal(X @ [1.0, -1.0] + 0.5 * square, 0.5), groups


def test_before_any_row_it_expects_the_centre() -> None:
    X = np.array([[1.0, 0.0], [0.0, 2.0]])
    belief = Nested(2, family="gaussian", centre=CENTRE, scale=SCALE, effects=(0.3, 0.2))
    assert belief.theta == pytest.approx(CENTRE)
    assert belief.mean(X) == pytest.approx([1.8, -0.7])
    H = belief.factors(X).shared
    variance = [0.4**2 + 1.2**2 + 0.13, (2.0 * 0.8) ** 2 + 1.2**2 + 0.13]
    assert (H**2).sum(axis=1) == pytest.approx(variance)
    logistic = Nested(2, centre=CENTRE, scale=SCALE, effects=(0.3, 0.2))
    assert logistic.theta == pytest.approx(CENTRE)
    flat = np.array([1.8, -0.7]) / np.sqrt(1.0 + np.pi / 8.0 * np.array(variance))
    assert logistic.mean(X) == pytest.approx(1.0 / (1.0 + np.exp(-flat)))


def test_gaussian_rows_against_the_dense_formula() -> None:
    """θ and effects as one normal vector, conditioned on the rows by plain linear algebra."""
    X, y, groups = rows(25)
    belief = Nested(
        2,
        family="gaussian",
        variances="fixed",
        noise=0.5,
        effects=(0.6, 0.3),
        centre=CENTRE,
        scale=SCALE,
    )
    belief.learn(X, y, groups)
    new, where = rows(8, seed=1)[::2]
    Z, Q = (np.column_stack([A, np.ones(len(A))]) for A in (X, new))
    prior = np.diag(np.square(SCALE))

    def cov(A: FloatArray, a: Any, B: FloatArray, b: Any) -> FloatArray:
        outer = a[:, :1] == b[:, 0]
        inner = outer & (a[:, 1:] == b[:, 1])
        return np.asarray(A @ prior @ B.T + 0.36 * outer + 0.09 * inner)

    K = cov(Z, groups, Z, groups) + 0.25 * np.eye(len(y))
    cross = cov(Q, where, Z, groups)
    mean = Q @ CENTRE + cross @ np.linalg.solve(K, y - Z @ CENTRE)
    left = cov(Q, where, Q, where) - cross @ np.linalg.solve(K, cross.T)
    assert belief.mean(new, where) == pytest.approx(mean, abs=1e-9)
    m, covariance = belief.moments(new, where)
    assert m == pytest.approx(mean, abs=1e-9)
    assert covariance == pytest.approx(left, abs=1e-9)
    same = np.flatnonzero((where == where[0]).all(axis=1))
    H = belief.factors(new[same], where[same]).shared
    shared = H @ H.T
    assert shared == pytest.approx(left[np.ix_(same, same)], abs=1e-9)


def test_a_centre_is_a_shift() -> None:
    """With estimated variances too: rewards less what is expected, around 0, say the same."""
    X, y, groups = rows(60)
    stated: dict[str, Any] = {"effects": (0.3, 0.3), "noise": 0.5, "scale": SCALE}
    belief = Nested(2, family="gaussian", centre=CENTRE, **stated)
    plain = Nested(2, family="gaussian", **stated)
    belief.learn(X, y, groups)
    plain.learn(X, y - X @ CENTRE[:2] - CENTRE[2], groups)
    assert belief.deviations == pytest.approx(plain.deviations, rel=1e-6)
    new, where = rows(8, seed=1)[::2]
    expected = plain.mean(new, where) + new @ CENTRE[:2] + CENTRE[2]
    assert belief.mean(new, where) == pytest.approx(expected, abs=1e-6)


def test_logistic_rows_against_a_fine_grid() -> None:
    """One coefficient that matters, six rows: the posterior mean to 0.03 of a deviation of 0.6."""
    X = np.array([[1.0], [2.0], [-1.0], [1.5], [0.5], [-2.0]])
    y = np.array([1.0, 0.0, 0.0, 1.0, 1.0, 1.0])
    belief = Nested(1, variances="fixed", effects=(), centre=(1.2, -0.4), scale=(0.8, 1e-3))
    belief.learn(X, y)
    at = np.linspace(-5.0, 7.0, 4001)
    eta = X * at - 0.4
    log = (y[:, None] * eta - np.logaddexp(0.0, eta)).sum(axis=0) - 0.5 * ((at - 1.2) / 0.8) ** 2
    weights = np.exp(log - log.max())
    weights /= weights.sum()
    assert belief.theta[0] == pytest.approx(float(weights @ at), abs=0.03)
    assert belief.theta[1] == pytest.approx(-0.4, abs=1e-3)
    chances = (1.0 / (1.0 + np.exp(-(X * at - 0.4)))) @ weights
    assert belief.mean(X) == pytest.approx(chances, abs=0.01)


def test_rows_overrule_a_wrong_centre() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 1))
    y = (rng.random(600) < 1.0 / (1.0 + np.exp(-(2.0 * X[:, 0] - 1.0)))).astype(np.float64)
    wrong = Nested(1, effects=(), centre=(-2.0, 1.0), scale=1.0)
    none = Nested(1, effects=(), scale=1.0)
    for n in (5, 600):
        for belief in (wrong, none):
            belief.refit(X[:n], y[:n])
        far = abs(wrong.theta - none.theta).max()
        assert far > 0.3 if n == 5 else far < 0.2
    assert wrong.theta == pytest.approx([2.0, -1.0], abs=0.3)


@pytest.mark.parametrize("family", ["gaussian", "logistic"])
def test_saved_settled_and_fitted_again(family: Any) -> None:
    X, y, groups = rows(20)
    if family == "logistic":
        y = (y > 0.0).astype(np.float64)
    belief = Nested(2, family=family, centre=CENTRE, scale=SCALE)
    belief.learn(X[:9], y[:9], groups[:9])
    again = Nested.restore(json.loads(json.dumps(belief.state())))
    assert (again.centre, again.scale) == (CENTRE, SCALE)
    for one in (belief, again):
        one.learn(X[9:], y[9:], groups[9:])
    assert (again.mean(X, groups) == belief.mean(X, groups)).all()
    fresh = Nested(2, family=family, centre=CENTRE, scale=SCALE)
    fresh.refit(X, y, groups)
    assert belief.mean(X, groups) == pytest.approx(fresh.mean(X, groups), abs=1e-4)
    kept = belief.mean(X, groups)
    belief.settle()
    assert belief.mean(X, groups) == pytest.approx(kept, abs=1e-9)
    fresh.refit(np.zeros((0, 2)), [])
    assert fresh.theta == pytest.approx(CENTRE)


def test_a_state_without_a_centre_expects_zeros() -> None:
    belief = Nested(1, scale=0.7)
    belief.learn([[1.0], [0.5]], [1.0, 0.0])
    state = {name: value for name, value in belief.state().items() if name != "centre"}
    assert Nested.restore(state).mean([[1.0]]) == pytest.approx(belief.mean([[1.0]]))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"centre": (1.0,)}, "centre has 1 entries for 2 features and an intercept: give 3"),
        ({"scale": (1.0, 2.0)}, "scale has 2 entries for 2 features and an intercept: give 3"),
        ({"scale": (1.0, 0.0, 1.0)}, r"scale\[1\] is 0\.0; it must be greater than 0"),
        ({"scale": -1.0}, r"scale is -1\.0"),
        ({"centre": (0.0, float("nan"), 0.0)}, "centre is nan"),
    ],
)
def test_what_cannot_be_expected(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Nested(2, **wrong)
