"""The exact maximum over the confidence set, against closed forms and independent solvers."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize, minimize_scalar

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.linear import Linear

# Rewards beyond what was stated are meant.
pytestmark = pytest.mark.filterwarnings("ignore::coaf.AssumptionWarning")


def rows(n: int, dim: int, seed: int) -> FloatArray:
    X = np.random.default_rng(seed).normal(size=(n, dim))
    return np.asarray(X / (1.0 + np.linalg.norm(X, axis=1, keepdims=True)))


@dataclass(frozen=True)
class Case:
    """A belief about a θ of norm `length`, under the bound `m`, with radius `r` if given."""

    dim: int
    n: int
    length: float
    m: float
    seed: int
    r: float | None = None
    more: tuple[tuple[str, Any], ...] = ()

    def belief(self) -> Linear:
        theta = np.random.default_rng(self.seed).normal(size=self.dim)
        X = rows(self.n, self.dim, self.seed + 1)
        y = X @ theta * self.length / np.linalg.norm(theta)
        bounds = {"norm_bound": self.m, "mean_bound": 1e6, **dict(self.more)}
        full = Linear(self.dim, **bounds)
        full.learn(X, y)
        if self.r is None:
            return full
        belief = Linear(self.dim, scale=self.r / full.radius, **bounds)
        belief.learn(X, y)
        return belief


def distance(belief: Linear, theta: FloatArray) -> float:
    step = theta - belief.theta
    return float(np.sqrt(step @ belief.precision @ step))


def nearest(belief: Linear) -> FloatArray:
    """The point of the ball nearest to θ̄ in the norm of V."""
    V, center, m = belief.precision, belief.theta, belief.norm_bound
    if np.linalg.norm(center) <= m:
        return center

    def point(nu: float) -> FloatArray:
        return np.asarray(np.linalg.solve(V + nu * np.eye(len(V)), V @ center))

    nu = brentq(lambda nu: np.linalg.norm(point(nu)) - m, 0.0, 1e12, xtol=1e-14, rtol=1e-14)
    return point(nu)


def by_slsqp(belief: Linear, x: FloatArray) -> float:
    V, center, r, m = belief.precision, belief.theta, belief.radius, belief.norm_bound
    inside = [
        {
            "type": "ineq",
            "fun": lambda t: r**2 - (t - center) @ V @ (t - center),
            "jac": lambda t: -2.0 * V @ (t - center),
        },
        {"type": "ineq", "fun": lambda t: m**2 - t @ t, "jac": lambda t: -2.0 * t},
    ]
    found = minimize(
        lambda t: -x @ t,
        nearest(belief),
        jac=lambda t: -x,
        constraints=inside,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return float(x @ found.x)


def by_dual(belief: Linear, x: FloatArray) -> float:
    """The least, over mixtures ν of the two constraints, of the maximum over their ellipsoid."""
    V, center, r, m = belief.precision, belief.theta, belief.radius, belief.norm_bound

    def bound(log_nu: float) -> float:
        nu = np.exp(log_nu)
        A = V + nu * np.eye(len(V))
        middle = np.linalg.solve(A, V @ center)
        room = r**2 + nu * m**2 - center @ V @ center + middle @ A @ middle
        return float(x @ middle + np.sqrt(max(room, 0.0) * (x @ np.linalg.solve(A, x))))

    grid = np.linspace(-25.0, 25.0, 201)
    start = grid[np.argmin([bound(g) for g in grid])]
    fine = minimize_scalar(
        bound, bounds=(start - 0.5, start + 0.5), method="bounded", options={"xatol": 1e-10}
    )
    return min(bound(start), float(fine.fun), m * float(np.linalg.norm(x)))


MEETING = [
    Case(2, 6, 0.9, 1.0, seed=1),  # mostly the ball
    Case(2, 60, 0.9, 1.0, seed=2, r=1.0),
    Case(3, 200, 0.95, 1.0, seed=3, r=0.8),  # θ̄ near the sphere
    Case(4, 300, 1.5, 1.0, seed=4, r=4.0),  # θ̄ outside the ball
    Case(5, 100, 3.0, 0.7, seed=5, r=9.0),
    Case(8, 400, 1.2, 1.0, seed=6, r=2.0),
    Case(3, 80, 2.0, 2.0, seed=7, r=1.5, more=(("regularization", 0.01),)),
    Case(1, 10, 2.0, 1.0, seed=8, r=2.0),
]


@pytest.mark.parametrize("case", MEETING, ids=lambda case: f"dim {case.dim}, seed {case.seed}")
def test_ball_and_ellipsoid_against_slsqp(case: Case) -> None:
    """12 arms each: to 1e-6, and never below what a point of the set attains."""
    belief = case.belief()
    assert distance(belief, nearest(belief)) < belief.radius
    probe = rows(12, case.dim, seed=99)
    for x, value in zip(probe, belief.upper(probe), strict=True):
        attained = by_slsqp(belief, x)
        assert value == pytest.approx(attained, abs=1e-6)
        assert value >= attained - 1e-9
        assert value == pytest.approx(by_dual(belief, x), abs=1e-8)


def test_with_many_features_and_rows_waiting() -> None:
    for case in (
        Case(70, 20, 4.0, 0.5, seed=1, r=1.5),
        Case(70, 300, 1.5, 1.0, seed=2, r=2.5),
        Case(66, 65, 3.0, 1.0, seed=3, r=2.0),
    ):
        belief = case.belief()
        probe = rows(4, case.dim, seed=5)
        exact = [by_dual(belief, x) for x in probe]
        np.testing.assert_allclose(belief.upper(probe), exact, atol=1e-8)


seeds = st.integers(0, 2**32 - 2)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    seed=seeds,
    dim=st.integers(1, 6),
    n=st.integers(0, 80),
    length=st.floats(0.0, 4.0),
    m=st.floats(0.1, 3.0),
    reach=st.floats(1.01, 6.0),
)
def test_any_meeting_sets_against_the_dual(
    seed: int, dim: int, n: int, length: float, m: float, reach: float
) -> None:
    case = Case(dim, n, length, m, seed)
    apart = distance(case.belief(), nearest(case.belief()))
    case = replace(case, r=reach * apart if apart > 1e-3 else reach)
    belief, probe = case.belief(), rows(3, dim, seed + 1)
    for x, value in zip(probe, belief.upper(probe), strict=True):
        assert value == pytest.approx(by_dual(belief, x), abs=1e-6)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    seed=seeds,
    dim=st.integers(1, 6),
    n=st.integers(0, 80),
    length=st.floats(0.0, 4.0),
    m=st.floats(0.1, 3.0),
    r=st.floats(1e-6, 20.0),
    cap=st.floats(0.05, 3.0),
    printed=st.booleans(),
)
def test_never_above_the_bounds_nor_the_ellipsoid(
    seed: int,
    dim: int,
    n: int,
    length: float,
    m: float,
    r: float,
    cap: float,
    printed: bool,
) -> None:
    more = (("mean_bound", cap), ("radius", "printed" if printed else "determinant"))
    belief = Case(dim, n, length, m, seed, r, more).belief()
    plain = Case(dim, n, length, m, seed, r, (*more, ("within", "ellipsoid"))).belief()
    probe = rows(5, dim, seed + 1)
    value = belief.upper(probe)
    assert np.isfinite(value).all()
    assert (value <= cap).all()
    assert (value <= m * np.linalg.norm(probe, axis=1) * (1.0 + 1e-9)).all()
    if distance(belief, nearest(belief)) < belief.radius * (1.0 - 1e-9):
        assert (value <= plain.upper(probe) + 1e-12).all()
        inside = probe @ nearest(belief)  # a point of the set
        assert (value >= np.minimum(inside, cap) - 1e-9).all()


@pytest.mark.parametrize("dim", [1, 4, 70])
@pytest.mark.parametrize("cap", [0.3, 1e6])
def test_the_ellipsoid_alone_has_a_closed_form(dim: int, cap: float) -> None:
    """min(θ̄·x + r ‖x‖_{V⁻¹}, mean_bound), to 1e-11."""
    more = (("within", "ellipsoid"), ("mean_bound", cap))
    belief = Case(dim, 50, 2.0, 1.0, seed=1, more=more).belief()
    probe = rows(20, dim, seed=2)
    width = np.sqrt(np.einsum("ij,ij->i", probe, np.linalg.solve(belief.precision, probe.T).T))
    expected = np.minimum(probe @ belief.theta + belief.radius * width, cap)
    np.testing.assert_allclose(belief.upper(probe), expected, atol=1e-11)


APART = [
    Case(2, 100, 3.0, 1.0, seed=1, r=0.5),
    Case(5, 400, 2.0, 0.4, seed=2, r=0.1),
    Case(1, 50, 2.0, 1.0, seed=3, r=0.0),
    Case(70, 500, 4.0, 0.3, seed=4, r=0.3),
]


@pytest.mark.parametrize("case", APART, ids=lambda case: f"dim {case.dim}")
def test_sets_that_do_not_meet(case: Case) -> None:
    """Each arm gets its mean under the point of the ball nearest to θ̄ in the norm of V."""
    belief = case.belief()
    assert distance(belief, nearest(belief)) > belief.radius
    probe = rows(10, case.dim, seed=6)
    np.testing.assert_allclose(belief.upper(probe), probe @ nearest(belief), atol=1e-9)


@pytest.mark.parametrize("case", APART[:2], ids=lambda case: f"dim {case.dim}")
def test_nothing_jumps_where_the_sets_touch(case: Case) -> None:
    """A lens of relative depth ε reaches O(√ε) far, so the maximum tends to the touching point."""
    touching = case.belief()
    r = distance(touching, nearest(touching))
    probe = rows(10, case.dim, seed=6)
    limit = probe @ nearest(touching)
    reach = 2.0 * r / np.sqrt(np.linalg.eigvalsh(touching.precision)[0])
    for epsilon in (1e-2, 1e-4, 1e-6, 1e-8, 1e-10):
        above = replace(case, r=r * (1.0 + epsilon)).belief().upper(probe)
        below = replace(case, r=r * (1.0 - epsilon)).belief().upper(probe)
        np.testing.assert_allclose(below, limit, atol=1e-8)
        assert (above >= limit - 1e-8).all()
        assert (above <= limit + reach * np.sqrt(epsilon) + 1e-8).all()


def test_a_ball_inside_the_ellipsoid() -> None:
    """Knowing nothing, the best θ is m x/‖x‖."""
    for dim in (1, 5, 70):
        belief = Linear(dim, norm_bound=0.5)
        probe = rows(9, dim, seed=dim)
        expected = 0.5 * np.linalg.norm(probe, axis=1)
        np.testing.assert_allclose(belief.upper(probe), expected, rtol=1e-12)


@pytest.mark.parametrize("case", [*MEETING, *APART], ids=lambda case: f"{case.dim}, {case.seed}")
def test_an_arm_without_features_is_worth_nothing(case: Case) -> None:
    belief = case.belief()
    probe = np.zeros((3, case.dim))
    probe[1, 0] = 1.0
    assert belief.upper(probe)[[0, 2]].tolist() == [0.0, 0.0]


def test_more_confidence_is_a_larger_maximum() -> None:
    """Nested sets: the maximum grows with the radius (to 1e-9)."""
    probe = rows(10, 4, seed=3)
    last = np.full(10, -np.inf)
    for r in np.geomspace(3.2, 40.0, 30):
        belief = Case(4, 300, 1.5, 1.0, seed=4, r=float(r)).belief()
        assert distance(belief, nearest(belief)) < belief.radius
        value = belief.upper(probe)
        assert (value >= last - 1e-9).all()
        last = value


def test_certain_beliefs_score_their_mean() -> None:
    belief = Case(3, 50, 0.5, 1.0, seed=1, r=0.0).belief()
    probe = rows(6, 3, seed=2)
    np.testing.assert_allclose(belief.upper(probe), belief.mean(probe), atol=1e-12)
