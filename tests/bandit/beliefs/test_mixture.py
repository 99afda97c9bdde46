"""Beliefs that expect different things, weighed by how well they foretold the rows."""

import json

import numpy as np
import pytest

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.mixture import Mixture
from coaf.bandit.beliefs.nested.nested import Nested

GROUPS = np.array([["s", f"p{k // 4}"] for k in range(24)])


def rows(slope: float, seed: int = 0, count: int = 24) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 1))
    chance = 1.0 / (1.0 + np.exp(-slope * X[:, 0]))
    return X, (rng.random(count) < chance).astype(np.float64)


def both() -> Mixture:
    return Mixture([Nested(1, centre=(c, 0.0), scale=0.5) for c in (3.0, -3.0)])


def grid(X: FloatArray, y: FloatArray, centre: tuple[float, float], scale: float) -> float:
    """The log evidence of a logistic model without groups, summed over a fine grid."""
    t = np.linspace(-8.0, 8.0, 641)
    a, b = np.meshgrid(t, t, indexing="ij")
    eta = a[..., None] * X[:, 0] + b[..., None]
    log = (y * eta - np.logaddexp(0.0, eta)).sum(axis=-1)
    log -= 0.5 * ((a - centre[0]) ** 2 + (b - centre[1]) ** 2) / scale**2
    return float(np.log(np.exp(log).sum() * (t[1] - t[0]) ** 2 / (2.0 * np.pi * scale**2)))


@pytest.mark.parametrize("slope", [2.0, 0.0, -2.0])
def test_evidence_is_that_of_a_grid(slope: float) -> None:
    X, y = rows(slope, count=12)
    belief = Nested(1, centre=(1.0, -0.5), scale=1.0, effects=())
    belief.learn(X, y)
    # Laplace's approximation, with three parameters at most, of twelve rows.
    assert belief.evidence == pytest.approx(grid(X, y, (1.0, -0.5), 1.0), abs=0.1)


def test_evidence_of_normal_rewards_is_exact_and_adds_up() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(12, 1)), rng.normal(size=12)
    Z = np.column_stack([X, np.ones(12)])
    S = Z @ np.diag([1.0, 0.49]) @ Z.T + 0.64 * np.eye(12)
    off = y - Z @ [1.0, -0.5]
    whole = -0.5 * (off @ np.linalg.solve(S, off) + np.linalg.slogdet(2.0 * np.pi * S)[1])

    def fresh() -> Nested:
        return Nested(
            1,
            family="gaussian",
            effects=(),
            noise=0.8,
            variances="fixed",
            centre=(1.0, -0.5),
            scale=(1.0, 0.7),
        )

    belief = fresh()
    belief.learn(X, y)
    assert belief.evidence == pytest.approx(whole, rel=1e-9)
    belief = fresh()
    belief.learn(X[:5], y[:5])
    first = belief.evidence
    belief.settle()
    assert belief.evidence == 0.0
    belief.learn(X[5:], y[5:])
    assert first + belief.evidence == pytest.approx(whole, rel=1e-9)


@pytest.mark.parametrize(("slope", "winner"), [(3.0, 0), (-3.0, 1)])
def test_what_foretells_badly_counts_for_nothing(slope: float, winner: int) -> None:
    belief = both()
    assert belief.weights == pytest.approx([0.5, 0.5])
    belief.learn(*rows(slope), GROUPS)
    assert belief.weights[winner] > 0.999
    assert belief.likeliest is belief.beliefs[winner]


def test_it_lies_between_its_beliefs_and_near_the_likelier() -> None:
    belief = Mixture([Nested(1, centre=(c, 0.0), scale=0.5) for c in (3.0, -3.0)], weights=(3, 1))
    x = np.array([[1.0], [0.3]])
    up, down = (one.mean(x) for one in belief.beliefs)
    assert belief.mean(x) == pytest.approx(0.75 * up + 0.25 * down)
    assert (belief.upper(x) >= belief.mean(x)).all()
    drawn = np.mean([belief.sample(x, np.random.default_rng(k)) for k in range(2000)], axis=0)
    assert drawn == pytest.approx(belief.mean(x), abs=0.03)


def test_factors_have_the_moments_of_the_mixture() -> None:
    belief = Mixture([Nested(1, centre=(c, 0.0), scale=0.5) for c in (1.0, -1.0)], weights=(3, 1))
    x, groups = np.array([[1.0], [0.3], [-2.0]]), GROUPS[:3]
    belief.learn(*rows(0.5), GROUPS)
    told = belief.factors(x, groups)
    m, H = told.mean, told.shared
    w = belief.weights
    parts = [one.moments(x, groups) for one in belief.beliefs]
    mean = sum(a * each for a, (each, _) in zip(w, parts, strict=True))
    second = sum(a * (c + np.outer(e, e)) for a, (e, c) in zip(w, parts, strict=True))
    assert m == pytest.approx(mean)
    covariance = H @ H.T
    assert covariance == pytest.approx(second - np.outer(mean, mean))


def test_the_order_of_rows_does_not_matter() -> None:
    X, y = rows(1.0)
    one, other = both(), both()
    one.learn(X, y, GROUPS)
    for k in np.random.default_rng(5).permutation(24):
        other.learn(X[k : k + 1], y[k : k + 1], GROUPS[k : k + 1])
    assert other.weights == pytest.approx(one.weights, abs=0.02)  # variances are found at visits


def test_settled_weights_stay_and_refit_begins_with_them() -> None:
    belief = both()
    belief.learn(*rows(0.6), GROUPS)
    weights = belief.weights.copy()
    assert 0.01 < weights.min() < 0.45
    belief.settle()
    assert belief.weights == pytest.approx(weights)
    belief.learn(*rows(-3.0, seed=1), GROUPS)
    assert belief.weights[1] > weights[1]
    belief.refit(np.zeros((0, 1)), [])
    assert belief.weights == pytest.approx(weights)


def test_a_restored_one_is_the_same() -> None:
    belief = both()
    belief.learn(*rows(0.6), GROUPS)
    belief.leave()
    belief.learn(*rows(0.2, seed=2), GROUPS)
    again = Mixture.restore(json.loads(json.dumps(belief.state())))
    assert again.weights.tolist() == belief.weights.tolist()
    x = np.array([[0.4]])
    assert again.mean(x, GROUPS[:1]).tolist() == belief.mean(x, GROUPS[:1]).tolist()


def test_what_is_refused_changes_nothing() -> None:
    belief = both()
    belief.learn(*rows(0.6), GROUPS)
    before = belief.state()
    with pytest.raises(ValueError, match="between 0 and 1"):
        belief.learn([[0.0]], [2.0])
    assert belief.state() == before


def test_what_cannot_be_mixed() -> None:
    with pytest.raises(ValueError, match="one dimension and family"):
        Mixture([Nested(1, scale=1.0), Nested(2, scale=1.0)])
    with pytest.raises(ValueError, match="one dimension and family"):
        Mixture([])
    with pytest.raises(ValueError, match=r"beliefs\[1\] measures its units"):
        Mixture([Nested(1, scale=1.0), Nested(1)])
    with pytest.raises(ValueError, match="1 weights for 2 beliefs"):
        Mixture([Nested(1, scale=1.0), Nested(1, scale=2.0)], weights=[1.0])
    with pytest.raises(ValueError, match=r"weights\[1\]"):
        Mixture([Nested(1, scale=1.0), Nested(1, scale=2.0)], weights=[1.0, 0.0])
