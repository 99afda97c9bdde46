import json
import math
import pickle
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.belief import Belief
from coaf.bandit.beliefs.finite import Finite
from coaf.bandit.beliefs.registry import restore_belief
from coaf.bandit.checks.beliefs import check_belief
from coaf.bandit.latency import Additive
from coaf.bandit.policies.coaf import COAF
from coaf.bandit.policies.faults import BeliefError, BeliefWarning
from coaf.bandit.problem import Round
from coaf.bandit.rates.rate import Fixed, RobbinsMonro
from coaf.bandit.theory.bounds import Scale, general_bound, resolution, w_general
from coaf.bandit.theory.eluder import beta_general, eluder_dimension
from coaf.worlds import Types, optimum


def half(X: FloatArray) -> FloatArray:
    return np.full(len(X), 0.5)


def first(X: FloatArray) -> FloatArray:
    return X[:, 0]


def bowl(X: FloatArray) -> FloatArray:
    return np.asarray(1.0 - (X**2).sum(axis=1))


def broken(X: FloatArray) -> FloatArray:
    return np.full(len(X), np.nan)


def flat(X: FloatArray) -> FloatArray:
    return np.zeros((len(X), 1))


@dataclass(frozen=True)
class Wave:
    """A function with a setting, which can be saved."""

    phase: float

    def __call__(self, X: FloatArray) -> FloatArray:
        return np.asarray(0.9 * np.sin(3.0 * X.sum(axis=1) + self.phase))

    def state(self) -> dict[str, Any]:
        return {"phase": self.phase}

    @classmethod
    def restore(cls, state: dict[str, Any]) -> "Wave":
        return cls(state["phase"])


# The contract compares two draws, so its beliefs have many functions, or much noise.
VECTORS = np.random.default_rng(0).uniform(-0.5, 0.5, (60, 3))
BELIEFS: dict[str, Belief] = {
    "parameters": Finite(3, VECTORS),
    "stated": Finite(3, VECTORS, noise=1.0, mean_bound=1.0),
    "bounded": Finite(3, VECTORS, mean_bound=0.3),
    "quiet": Finite(3, VECTORS, noise=0.6, delta=0.3),
    "functions": Finite(3, [half, first, bowl], noise=5.0),
    "objects": Finite(3, [Wave(0.1 * k) for k in range(60)], noise=1.5),
    "cut off": Finite(3, 4.0 * VECTORS, mean_bound=0.7, noise=2.0),
    "one": Finite(1, [half]),
    "certain": Finite(3, VECTORS, scale=0.0),
}


@pytest.mark.parametrize("name", BELIEFS)
def test_contract(name: str) -> None:
    check_belief(BELIEFS[name])


Table = list[list[int]]


@st.composite
def tables(draw: st.DrawFn) -> Table:
    points = draw(st.integers(1, 4))
    row = st.lists(st.integers(-4, 4), min_size=points, max_size=points)
    return draw(st.lists(row, min_size=1, max_size=6))


@settings(max_examples=200, deadline=None)
@given(
    table=tables(),
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(-3, 3)), max_size=8),
    noise=st.sampled_from([0.0, 0.5, 3.0]),
    delta=st.sampled_from([0.01, 0.3, 0.9]),
)
def test_scores_are_the_definition(
    table: Table, rows: list[tuple[int, int]], noise: float, delta: float
) -> None:
    """In whole numbers, whose losses are exact."""
    k, points = len(table), len(table[0])
    rows = [(x % points, y) for x, y in rows]
    belief = Finite(points, table, noise=noise, delta=delta, mean_bound=4.0)
    belief.learn(np.eye(points)[[x for x, _ in rows]], [y for _, y in rows])
    losses = [sum((psi[x] - y) ** 2 for x, y in rows) for psi in table]
    assert belief.losses.tolist() == losses
    least = min(losses)
    fit = losses.index(least)
    if noise == 0.0:
        members = [loss == least for loss in losses]
    else:
        chances = [math.exp(-(loss - least) / (2 * noise**2)) for loss in losses]
        weights = [chance / sum(chances) for chance in chances]
        np.testing.assert_allclose(belief.weights, weights, rtol=1e-12)
        if any(abs(weight - delta / k) < 1e-9 for weight in weights):
            return  # on the very edge rounding may fall either way
        members = [weight > delta / k for weight in weights]
        low, high = (2 * noise**2 * math.log(a / delta) for a in (1, k))
        assert low - 1e-9 <= belief.radius <= high + 1e-9
    assert belief.members.tolist() == members
    assert belief.mean(np.eye(points)).tolist() == table[fit]
    kept = [psi for psi, member in zip(table, members, strict=True) if member]
    most = [max(psi[x] for psi in kept) for x in range(points)]
    assert belief.upper(np.eye(points)).tolist() == most
    rng = np.random.default_rng(0)
    assert all(belief.sample(np.eye(points), rng).tolist() in table for _ in range(9))


def test_functions_and_parameters_are_one_belief() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.uniform(-0.5, 0.5, (30, 3)), rng.normal(size=30)
    named, numbers = Finite(3, [first]), Finite(3, [[1.0, 0.0, 0.0]])
    for belief in (named, numbers):
        belief.learn(X, y)
    np.testing.assert_allclose(named.losses, numbers.losses, rtol=1e-12)
    np.testing.assert_allclose(named.upper(X), numbers.upper(X), atol=1e-15)


def test_learning_in_pieces_gives_the_same_bits() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.uniform(-0.5, 0.5, (40, 3)), rng.normal(size=40)
    at_once, pieces = Finite(3, [bowl, first, half]), Finite(3, [bowl, first, half])
    at_once.learn(X, y)
    for start in range(0, 40, 7):
        pieces.learn(X[start : start + 7], y[start : start + 7])
    assert at_once.state() == pieces.state()


def test_ties_take_the_first_whatever_the_order_of_rows() -> None:
    # Both lose 0.1² + 0.2² + 0.7², added up in two orders.
    table = np.array([[0.1, 0.2, 0.7], [0.7, 0.1, 0.2], [0.9, 0.9, 0.9]])
    belief = Finite(3, table)
    belief.learn(np.eye(3), np.zeros(3))
    assert belief.best == 0
    assert Finite(3, table).best == 0


def random_run(seed: int, delta: float) -> tuple[bool, float]:
    """Whether the truth stayed in the set at every row, and how far its members are from it."""
    rng = np.random.default_rng([4, seed])
    table = rng.uniform(-1.0, 1.0, (10, 4)) * rng.choice([0.1, 1.0])  # close together, or not
    belief = Finite(4, table, noise=0.5, delta=delta)
    stayed, counts, furthest = True, np.zeros(4), 0.0
    for _ in range(40):
        # Chosen by the belief itself: rows need not be independent of each other.
        x = int(np.argmax(belief.upper(np.eye(4)) + rng.gumbel(size=4)))
        belief.learn(np.eye(4)[[x]], [table[0, x] + 0.5 * rng.standard_normal()])
        counts[x] += 1.0
        members = belief.members
        stayed = stayed and bool(members[0])
        distances = (table - table[0]) ** 2 @ counts
        furthest = max(furthest, float(distances[members].max()))
    return stayed, furthest


def test_coverage_and_the_distance_that_the_theorem_needs() -> None:
    delta, runs = 0.2, 250
    distance = 12.0 * 0.5**2 * math.log(10 / delta)
    found = [random_run(seed, delta) for seed in range(runs)]
    lost = sum(not stayed for stayed, _ in found) / runs
    assert 0.0 < lost <= delta  # some are lost: the set is not vacuous
    assert sum(furthest > distance for _, furthest in found) / runs <= delta
    # That distance is within what th: cmbub2 allows two members of the paper's set.
    tolerance = beta_general(40, delta=delta, alpha=0.0, log_covering=math.log(10), noise=0.5)
    assert distance <= 4.0 * tolerance


def test_draws_follow_the_weights() -> None:
    belief = Finite(1, [[0.0], [0.5], [1.0]], noise=1.0)
    belief.learn(np.ones((4, 1)), np.full(4, 0.6))
    rng = np.random.default_rng(0)
    draws = np.bincount([belief.draw(rng) for _ in range(20_000)], minlength=3) / 20_000
    np.testing.assert_allclose(draws, belief.weights, atol=0.012)  # 3 standard errors, and a bit


def test_the_regret_stays_below_its_bound() -> None:
    """`th: cmbub2` with everything in it exact: the class, its size and its eluder dimension.

    The bound is so loose that only the last line can tell a policy that earns from one that does
    not: this holds the functions together, and is no evidence for the theorem.
    """
    table = np.array(
        [[0.8, 0.2, 0.1, 0.3], [0.2, 0.8, 0.1, 0.3], [0.1, 0.2, 0.9, -0.4], [0.5, 0.5, 0.5, 0.5]]
    )
    world = Types(table[0], arms=(1, 3), base=2.0, each=1.0, noise=0.5)
    size = {"n_max": 3, "l_min": 2.0, "l_max": 5.0}
    rounds, delta = 250, 1e-3
    star = optimum(world, rounds=100_000).rate
    horizons = np.geomspace(5.0, 2.0 * rounds, 20)
    earned, errors = np.zeros(20), 0.0
    for replicate in range(6):
        belief = Finite(4, table, noise=0.5, delta=delta)
        policy = COAF(belief=belief, rate=RobbinsMonro(xi=0.5, n_max=3, l_min=2.0))
        clock, total, ends, totals = 0.0, 0.0, [], [0.0]
        for scene in world.scenes(rounds, replicate):
            decision = policy.decide(scene.round)
            policy.commit(decision)
            arms = np.flatnonzero(decision.chosen)
            policy.learn(decision, arms, scene.rewards[arms])
            clock, total = clock + decision.seconds, total + float(scene.means[arms].sum())
            errors += float(((decision.estimates - scene.means)[arms] ** 2).sum()) / 6
            ends.append(clock)
            totals.append(total)
        earned += np.array(totals)[np.searchsorted(ends, horizons, side="right")] / 6
    for horizon, reward in zip(horizons.tolist(), earned.tolist(), strict=True):
        scale = Scale(horizon, noise=0.5, **size)  # type: ignore[arg-type]
        eluder = eluder_dimension(table, epsilon=resolution(scale))
        how: dict[str, Any] = {"delta": delta, "alpha": 0.0, "log_covering": math.log(4)}
        assert horizon * star - reward <= general_bound(scale, xi=0.5, eluder=eluder, **how)
    squares = w_general(scale, eluder=eluder, **how) / scale.counted("repaired").horizon
    assert errors <= squares
    assert earned[-1] >= 0.9 * horizons[-1] * star  # the bound alone would allow to earn nothing


@pytest.mark.parametrize(("scale", "held"), [(1.0, True), (4.0, False)])
def test_members_are_near_the_truth(scale: float, held: bool) -> None:
    """Within 12σ² ln(k/δ), which `th: cmbub2` rests on; a set four times too wide is caught."""
    sigma, delta, far = 0.5, 0.05, 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        theta = rng.uniform(-0.7, 0.7, size=(24, 2))
        X = rng.uniform(-0.7, 0.7, size=(200, 2))
        belief = Finite(2, theta, noise=sigma, delta=delta, scale=scale)
        belief.learn(X, X @ theta[0] + sigma * rng.standard_normal(200))
        apart = ((theta - theta[0]) @ X.T) ** 2
        far += bool(
            apart.sum(axis=1)[belief.members].max() > 12.0 * sigma**2 * math.log(24 / delta)
        )
    assert (far <= 60 * 2 * delta) == held


def test_saved_functions_are_those_imported() -> None:
    functions: list[Any] = [half, Wave(0.25)]
    belief = Finite(3, functions)
    state = json.loads(json.dumps(belief.state()))
    assert state["functions"][0] == f"{__name__}:half"
    restored = restore_belief(state)
    assert isinstance(restored, Finite)
    assert restored.functions == functions
    for copy in (pickle.loads(pickle.dumps(belief)), deepcopy(belief)):
        assert copy.functions == belief.functions


def test_what_cannot_be_saved_is_named() -> None:
    def inside(X: FloatArray) -> FloatArray:
        return half(X)

    world = Types([0.1, 0.9])
    for function in (lambda X: X[:, 0], inside, partial(half), world.means):
        with pytest.raises(ValueError, match=r"functions\[1\] cannot be saved"):
            Finite(2, [half, function]).state()


def test_damaged_state_is_named() -> None:
    state = Finite(3, [half, first]).state()
    for name in (f"{__name__}:gone", "no_such_module:f", "nonsense"):
        with pytest.raises(ValueError, match="cannot be imported"):
            Finite.restore({**state, "functions": [name]})
    with pytest.raises(ValueError, match="'prior' has shape"):
        Finite.restore({**state, "prior": Finite(3, [half]).state()["prior"]})


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ([], "at least one"),
        (half, "must be a list"),
        ([half, 3.0], r"functions\[1\] is 3.0"),
        ([[1.0, 2.0]], "2 columns for dim=3"),
        ([[1.0, 2.0, math.nan]], r"functions\[0, 2\] is nan"),
        ([1.0, 2.0], "2 dimension"),
    ],
)
def test_what_is_no_class_is_refused(functions: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Finite(3, functions)


def test_settings_are_checked() -> None:
    numbers: list[dict[str, Any]] = [
        {"noise": -1.0},
        {"mean_bound": 0.0},
        {"delta": 1.0},
        {"scale": math.inf},
        {"within": "ball"},
    ]
    for wrong in numbers:
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Finite(3, [half], **wrong)
    with pytest.raises(ValueError, match="dim is 0"):
        Finite(0, [half])


def test_rewards_whose_squares_overflow_are_refused() -> None:
    belief = Finite(3, [half])
    belief.learn(np.zeros((1, 3)), [1.2e154])
    before = belief.state()
    with pytest.raises(ValueError, match=r"rewards\[1\] is 1.2e\+154"):
        belief.learn(np.zeros((2, 3)), [1.0, 1.2e154])
    assert belief.state() == before


@pytest.mark.parametrize(("function", "message"), [(broken, "gave nan"), (flat, "gave shape")])
def test_a_broken_function_does_not_stop_a_policy(function: Any, message: str) -> None:
    policy = COAF(belief=Finite(3, [half, function]), rate=Fixed(-1.0))
    with pytest.warns(BeliefWarning, match=rf"functions\[1\] {message}"):
        decision = policy.decide(Round(np.zeros((2, 3)), Additive(base=1.0, each=1.0)))
    policy.commit(decision)
    with pytest.raises(BeliefError, match=message):
        policy.learn(decision, [0], [1.0])


@given(st.integers(0, 2**32 - 1))
def test_the_papers_set_is_a_ball_around_the_best_fit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    theta = rng.uniform(-0.5, 0.5, size=(12, 2))
    X, y = rng.uniform(-0.7, 0.7, size=(30, 2)), rng.uniform(-0.5, 0.5, size=30)
    belief = Finite(2, theta, noise=0.2, within="paper")
    belief.learn(X[:11], y[:11])
    belief.learn(X[11:], y[11:])
    values = theta @ X.T
    best = int(((values - y) ** 2).sum(axis=1).argmin())
    far = ((values - values[best]) ** 2).sum(axis=1)
    tolerance = 8.0 * 0.2**2 * np.log(12 / 0.05)
    assert belief.radius == pytest.approx(tolerance)
    assert belief.members.tolist() == (far <= tolerance).tolist()
    arms = rng.uniform(-0.7, 0.7, size=(5, 2))
    assert belief.upper(arms) == pytest.approx((theta[far <= tolerance] @ arms.T).max(axis=0))
