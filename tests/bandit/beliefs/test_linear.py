"""The linear belief against plain NumPy and against another library."""

import json
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.linear import Linear

# Rewards beyond what was stated are meant.
pytestmark = pytest.mark.filterwarnings("ignore::coaf.AssumptionWarning")

DIMS = [1, 3, 8, 10, 64, 65, 70]  # above 64 features rows wait before they are folded in


def table(n: int, dim: int, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, dim))
    X /= 1.0 + np.linalg.norm(X, axis=1, keepdims=True)
    return X, rng.normal(size=n)


def ridge(X: FloatArray, y: FloatArray, lam: float = 1.0) -> tuple[FloatArray, FloatArray]:
    V = lam * np.eye(X.shape[1]) + X.T @ X
    return V, np.asarray(np.linalg.solve(V, X.T @ y), dtype=np.float64)


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("rows", [0, 1, 7, 31, 32, 33, 64, 65, 200])
def test_ridge_with_any_number_of_rows_at_once(dim: int, rows: int) -> None:
    """θ̄ and V to 1e-10."""
    X, y = table(rows, dim, seed=rows)
    belief = Linear(dim, regularization=0.5)
    belief.learn(X, y)
    V, theta = ridge(X, y, 0.5)
    np.testing.assert_allclose(belief.theta, theta, atol=1e-10)
    np.testing.assert_allclose(belief.precision, V, atol=1e-10)
    np.testing.assert_allclose(belief.mean(X), X @ theta, atol=1e-10)
    assert belief.rows == rows


@pytest.mark.parametrize("dim", DIMS)
def test_pieces_order_and_refit_make_no_difference(dim: int) -> None:
    """At once, row by row, in uneven pieces, backwards and refitted: estimates to 1e-9."""
    X, y = table(150, dim)
    probe, _ = table(9, dim, seed=1)
    at_once, single, pieces, backwards, refitted = (Linear(dim, noise=0.2) for _ in range(5))
    at_once.learn(X, y)
    for x, reward in zip(X, y, strict=True):
        single.learn(x[None, :], [reward])
    for part in np.split(np.arange(150), [3, 3, 40, 41, 120]):
        pieces.learn(X[part], y[part])
    backwards.learn(X[::-1], y[::-1])
    refitted.learn(-X, 3.0 * y)
    refitted.refit(X, y)
    for other in (single, pieces, backwards, refitted):
        assert other.rows == 150
        assert other.radius == pytest.approx(at_once.radius, rel=1e-10)
        np.testing.assert_allclose(other.mean(probe), at_once.mean(probe), atol=1e-9)
        np.testing.assert_allclose(other.upper(probe), at_once.upper(probe), atol=1e-9)
        a, b = (one.sample(probe, np.random.default_rng(0)) for one in (other, at_once))
        np.testing.assert_allclose(a, b, atol=1e-9)
    assert refitted.state() == at_once.state()


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("rows", [5, 40, 500])
def test_the_inverse_kept_is_the_inverse(dim: int, rows: int) -> None:
    """V·V⁻¹ = I to 1e-10, with V⁻¹ read off the widths of the ellipsoid."""
    X, y = table(rows, dim)
    belief = Linear(dim, within="ellipsoid", mean_bound=1e9)
    for part in np.array_split(np.arange(rows), 4):
        belief.learn(X[part], y[part])

    def square(x: FloatArray) -> FloatArray:
        width = (belief.upper(x) - belief.mean(x)) / belief.radius
        return np.asarray(width**2)

    units = np.eye(dim)
    diagonal = square(units)
    inverse = np.empty((dim, dim))
    for i in range(dim):  # x = (e_i + e_k)/2 gives (P_ii + 2 P_ik + P_kk)/4
        inverse[i] = (4.0 * square((units + units[i]) / 2.0) - diagonal - diagonal[i]) / 2.0
    np.testing.assert_allclose(belief.precision @ inverse, units, atol=1e-10)


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("rows", [0, 1, 50, 5000])
def test_the_radius(dim: int, rows: int) -> None:
    """Both forms re-derived with every constant of the paper made another number; to 1e-10."""
    lam, sigma, m, L, delta, scale = 0.7, 0.4, 2.0, 3.0, 0.01, 0.5
    X, y = table(rows, dim)
    X = L * X
    common: dict[str, Any] = {
        "regularization": lam,
        "noise": sigma,
        "norm_bound": m,
        "feature_bound": L,
        "delta": delta,
        "scale": scale,
    }
    tight, printed = Linear(dim, **common), Linear(dim, radius="printed", **common)
    for belief in (tight, printed):
        belief.learn(X, y)
    _, logdet = np.linalg.slogdet(ridge(X, y, lam)[0] / lam)
    volume = dim * np.log((dim * lam + rows * L**2) / (dim * lam))
    for belief, term in ((tight, logdet), (printed, volume)):
        expected = scale * (m * np.sqrt(lam) + sigma * np.sqrt(2.0 * np.log(1.0 / delta) + term))
        assert belief.radius == pytest.approx(expected, rel=1e-10)
    assert tight.radius <= printed.radius


def test_the_papers_radius_with_the_papers_ones() -> None:
    """√β(n, δ) = √λ + √(2 ln 1/δ + d ln((dλ + n)/(dλ))) at d = 10, n = 30, λ = 1, δ = 0.001."""
    X, y = table(30, 10)
    belief = Linear(10, delta=0.001, radius="printed")
    belief.learn(X, y)
    assert belief.radius == pytest.approx(1.0 + np.sqrt(2 * np.log(1e3) + 10 * np.log(4.0)))


unit_rows = st.integers(0, 2**32 - 1)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(unit_rows, st.integers(1, 12), st.integers(0, 90), st.floats(0.01, 10.0))
def test_determinant_is_never_larger_than_printed(
    seed: int, dim: int, rows: int, lam: float
) -> None:
    X, y = table(rows, dim, seed)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)  # the longest allowed
    tight = Linear(dim, regularization=lam)
    printed = Linear(dim, regularization=lam, radius="printed")
    tight.learn(X, y)
    printed.learn(X, y)
    assert tight.radius <= printed.radius * (1.0 + 1e-12)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    unit_rows,
    st.sampled_from([1, 2, 5, 66]),
    st.lists(st.integers(0, 40), max_size=6),
    st.floats(0.01, 10.0),
)
def test_any_sequence_of_batches_is_one_regression(
    seed: int, dim: int, batches: list[int], lam: float
) -> None:
    X, y = table(sum(batches), dim, seed)
    belief = Linear(dim, regularization=lam)
    for part in np.split(np.arange(len(X)), np.cumsum(batches[:-1])) if batches else []:
        belief.learn(X[part], y[part])
    V, theta = ridge(X, y, lam)
    np.testing.assert_allclose(belief.theta, theta, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(belief.precision, V, rtol=1e-12, atol=1e-12)


def test_repeated_and_extreme_rows() -> None:
    """The same direction a thousand times leaves the others alone."""
    belief = Linear(3)
    belief.learn(np.tile([1.0, 0.0, 0.0], (1000, 1)), np.ones(1000))
    np.testing.assert_allclose(belief.theta, [1000 / 1001, 0.0, 0.0], rtol=1e-12)
    np.testing.assert_allclose(belief.precision, np.diag([1001.0, 1.0, 1.0]), rtol=1e-12)
    belief.learn(np.zeros((50, 3)), np.ones(50))  # says nothing, and counts
    np.testing.assert_allclose(belief.theta, [1000 / 1001, 0.0, 0.0], rtol=1e-12)
    assert belief.rows == 1050


class TestThompson:
    def belief(self, dim: int = 4) -> Linear:
        belief = Linear(dim, noise=0.5, delta=0.1)
        X, y = table(25, dim)
        belief.learn(X, 0.3 * y)
        return belief

    def test_draws_have_mean_theta_and_covariance_beta_over_v(self) -> None:
        """40 000 draws. Whitened, their covariance is I to 4·√(2/40000), their mean 0 to 4/200."""
        belief, rng = self.belief(), np.random.default_rng(0)
        draws = np.array([belief.draw(rng) for _ in range(40_000)]) - belief.theta
        white = draws @ np.linalg.cholesky(belief.precision) / belief.radius
        assert np.abs(white.mean(axis=0)).max() <= 4.0 / np.sqrt(40_000)
        error = np.cov(white, rowvar=False) - np.eye(4)
        assert np.abs(error).max() <= 4.0 * np.sqrt(2.0 / 40_000)

    def test_a_sample_is_one_joint_draw(self) -> None:
        belief = self.belief()
        X, _ = table(30, 4, seed=2)
        draw = belief.draw(np.random.default_rng(3))
        values = belief.sample(X, np.random.default_rng(3))
        np.testing.assert_allclose(values, X @ draw, rtol=1e-14, atol=1e-15)

    @pytest.mark.parametrize("dim", DIMS)
    def test_a_draw_is_the_noise_pulled_back(self, dim: int) -> None:
        """‖θ − θ̄‖_V = √β ‖z‖ for the normal z that was drawn, to 1e-10."""
        belief = self.belief(dim)
        z = np.random.default_rng(5).standard_normal(dim)
        step = belief.draw(np.random.default_rng(5)) - belief.theta
        length = np.sqrt(step @ belief.precision @ step)
        assert length == pytest.approx(belief.radius * np.linalg.norm(z), rel=1e-10)


@pytest.mark.parametrize("dim", [1, 5, 30, 70])
def test_ridge_ucb_equals_contextualbandits(dim: int) -> None:
    """Its `alpha` multiplies √(xᵀ V⁻¹ x), as our radius does; to 1e-12."""
    peer = pytest.importorskip(
        "contextualbandits.linreg", reason="contextualbandits judges ridge UCB scores"
    )
    X, y = table(120, dim)
    probe, _ = table(20, dim, seed=3)
    belief = Linear(dim, regularization=0.8, within="ellipsoid", mean_bound=1e9)
    belief.learn(X, y)
    other = peer.LinearRegression(lambda_=0.8, fit_intercept=False, use_float=False)
    other.fit(X, y)
    theirs = other.predict_ucb(probe, alpha=float(belief.radius))
    np.testing.assert_allclose(belief.upper(probe), theirs, rtol=0, atol=1e-12)


def drift(rows: int, dim: int) -> None:
    """Learn `rows` in uneven batches; θ̄, V, widths and log det as if factored afresh."""
    rng = np.random.default_rng(dim)
    theta, V, b = rng.normal(size=dim) / dim, np.eye(dim) * 0.1, np.zeros(dim)
    belief = Linear(dim, regularization=0.1, within="ellipsoid", mean_bound=1e9)
    done = 0
    while done < rows:
        n = min(int(rng.integers(1, 60)) if done % 2 else 5000, rows - done)
        X = rng.normal(size=(n, dim)) * np.geomspace(1.0, 1e-3, dim)
        X /= 1.0 + np.linalg.norm(X, axis=1, keepdims=True)
        y = X @ theta + rng.normal(size=n)
        belief.learn(X, y)
        V, b, done = V + X.T @ X, b + X.T @ y, done + n
    probe, _ = table(50, dim, seed=9)
    width = np.sqrt(np.einsum("ij,ij->i", probe, np.linalg.solve(V, probe.T).T))
    _, logdet = np.linalg.slogdet(V / 0.1)
    radius = np.sqrt(0.1) + np.sqrt(2.0 * np.log(20.0) + logdet)
    assert belief.rows == rows
    assert belief.radius == pytest.approx(radius, rel=1e-9)
    np.testing.assert_allclose(belief.precision, V, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(belief.theta, np.linalg.solve(V, b), rtol=1e-7, atol=1e-9)
    ours = belief.upper(probe) - belief.mean(probe)
    np.testing.assert_allclose(ours, radius * width, rtol=1e-8)


@pytest.mark.parametrize("dim", [10, 70])
def test_rounding_does_not_build_up(dim: int) -> None:
    drift(100_000, dim)


@pytest.mark.soak
@pytest.mark.parametrize("dim", [3, 10, 64, 70])
def test_rounding_does_not_build_up_in_a_million_rows(dim: int) -> None:
    drift(1_000_000, dim)


@pytest.mark.parametrize(
    ("arguments", "mistake"),
    [
        ({"dim": 0}, "dim is 0; it must be a positive integer"),
        ({"dim": 2.5}, "dim is 2.5; it must be a positive integer"),
        ({"regularization": 0.0}, "regularization is 0.0; it must be greater than 0"),
        ({"noise": -0.1}, "noise is -0.1; it must be at least 0"),
        ({"norm_bound": 0.0}, "norm_bound is 0.0"),
        ({"feature_bound": float("inf")}, "feature_bound is inf; it must be a finite number"),
        ({"mean_bound": -1.0}, "mean_bound is -1.0"),
        ({"delta": 0.0}, "delta is 0.0; it must be greater than 0"),
        ({"delta": 1.0}, "delta is 1.0; it must be less than 1"),
        ({"scale": -1.0}, "scale is -1.0; it must be at least 0"),
        ({"radius": "square"}, 'radius is \'square\'; it must be "determinant" or "printed"'),
        ({"within": "cube"}, 'within is \'cube\'; it must be "ball" or "ellipsoid"'),
    ],
)
def test_settings_that_make_no_sense(arguments: dict[str, Any], mistake: str) -> None:
    with pytest.raises(ValueError, match=mistake):
        Linear(**{"dim": 2, **arguments})


def test_rows_that_cannot_be_learned_change_nothing() -> None:
    belief = Linear(3, feature_bound=2.0)
    X, y = table(6, 3)
    belief.learn(X, y)
    before = json.dumps(belief.state())
    far, unknown = X.copy(), X.copy()
    far[4] = [2.0, 2.0, 1.0]
    unknown[2, 1] = np.nan
    missing = y.copy()
    missing[3] = np.nan
    for features, rewards, mistake in (
        (X[:, :2], y, "features have 2 columns, but this belief has dim=3"),
        (X[0], y, r"features must have 2 dimension\(s\), got shape \(3,\)"),
        (far, y, r"features\[4\] has norm 3, beyond feature_bound=2: scale the features"),
        (unknown, y, r"features\[2\] has norm nan"),
        (X, y[1:], r"rewards has shape \(5,\) for 6 rows"),
        (X, y[:, None], r"rewards has shape \(6, 1\) for 6 rows"),
        (X, missing, r"rewards\[3\] is nan; every entry must be finite"),
    ):
        for act in (belief.learn, belief.refit):
            with pytest.raises(ValueError, match=mistake):
                act(features, rewards)
    assert json.dumps(belief.state()) == before


@pytest.mark.parametrize("score", ["mean", "upper", "sample"])
def test_arms_that_cannot_be_scored(score: str) -> None:
    belief = Linear(2)
    more = {"rng": np.random.default_rng(0)} if score == "sample" else {}
    for features, mistake in (
        ([[0.1]], "features have 1 columns, but this belief has dim=2"),
        ([0.1, 0.2], r"features must have 2 dimension\(s\)"),
        ([[0.1, 0.2], [0.0, 1.1]], r"features\[1\] has norm 1.1, beyond feature_bound=1"),
        (np.array([[0.1, np.nan]]), r"features\[0"),
    ):
        with pytest.raises(ValueError, match=mistake):
            getattr(belief, score)(features, **more)


def test_lists_slices_and_other_orders_are_rows_too() -> None:
    X, y = table(40, 6)
    plain, other = Linear(3), Linear(3)
    plain.learn(np.ascontiguousarray(X[:, ::2]), y)
    other.learn(np.asfortranarray(X[:, ::2]), y.tolist())
    assert plain.state() == other.state()
    ours, theirs = plain.upper(X[:, ::2]), other.upper(X[:, ::2].tolist())
    np.testing.assert_array_equal(ours, theirs)


def test_a_pickled_belief_is_the_belief() -> None:
    X, y = table(100, 70)
    belief = Linear(70)
    belief.learn(X[:80], y[:80])
    copy = pickle.loads(pickle.dumps(belief))
    for one in (belief, copy):
        one.learn(X[80:], y[80:])
    assert copy.state() == belief.state()


def test_theta_is_a_copy() -> None:
    belief = Linear(2)
    belief.theta[:] = 9.0
    belief.precision[:] = 9.0
    np.testing.assert_array_equal(belief.theta, np.zeros(2))
    np.testing.assert_array_equal(belief.precision, np.eye(2))


@pytest.mark.parametrize("dim", [10, 70, 600])
def test_what_was_scored_before_makes_no_difference_to_what_is_learned(dim: int) -> None:
    rng = np.random.default_rng(dim)
    X = rng.standard_normal((6, 9, dim)) / (2.0 * np.sqrt(dim))
    y = rng.standard_normal((6, 9))
    plain, scored, disturbed = Linear(dim), Linear(dim), Linear(dim)
    for features, rewards in zip(X, y, strict=True):
        for taken in ([1, 4, 7], [3], [8, 2]):  # in order, alone, and out of order
            plain.learn(features[taken], rewards[taken])
            scored.upper(features)
            scored.learn(features[taken], rewards[taken])
            disturbed.upper(features)
            Linear(dim).upper(features[:2])  # another learner uses the same scratch
            disturbed.learn(features[taken], rewards[taken])
    assert plain.state() == scored.state() == disturbed.state()
