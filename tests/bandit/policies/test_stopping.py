"""The value of being free to stop, against every tree of outcomes."""

from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from math import erf, exp, pi, sqrt

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from numpy.polynomial.hermite_e import hermegauss

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.factors import Factors
from coaf.bandit.beliefs.nested.nested import Nested
from coaf.bandit.groups import Groups
from coaf.bandit.policies.stopping import Shared, Stopping, stop_value


@dataclass
class Toy:
    """Arms with given means of η, a given variance that all share, and another of their own."""

    m: FloatArray
    shared: float
    rest: FloatArray
    family: str = "logistic"
    noise: float = 0.5

    @property
    def deviations(self) -> FloatArray:
        return np.array([1.0, self.noise])

    def factors(self, features: object, groups: Groups | None = None) -> Factors:
        return Factors(self.m, np.full((len(self.m), 1), sqrt(self.shared)), self.rest)


@dataclass
class Case:
    """Arms of one round, in the order of taking them."""

    belief: Toy
    each: FloatArray
    parts: FloatArray
    lag: int
    rate: float

    def table(self) -> Stopping:
        n = len(self.each)
        return Stopping(
            self.belief,
            np.zeros((n, 1)),
            None,
            self.each,
            np.array([n]),
            lag=self.lag,
            parts=self.parts,
        )

    def ordered(self) -> "Case":
        """The same with arms as the table takes them."""
        by, toy = self.table().order, self.belief
        belief = Toy(toy.m[by], toy.shared, toy.rest[by], toy.family, toy.noise)
        return Case(belief, self.each[by], self.parts[by], self.lag, self.rate)


def sigmoid(eta: FloatArray) -> FloatArray:
    return np.asarray(1.0 / (1.0 + np.exp(-eta)))


def fine(points: int = 1201) -> tuple[FloatArray, FloatArray]:
    """A standard normal on a fine grid."""
    at = np.linspace(-7.0, 7.0, points)
    weights = np.exp(-0.5 * at * at)
    return at, weights / weights.sum()


def tree(case: Case, p: FloatArray, weights: FloatArray, *, k: int = 0) -> tuple[float, float]:
    """Value and expected seconds by full enumeration: every sequence of rewards has its branch.

    `p[k, q]` is the chance of arm k under the q-th value of what is shared, of weight weights[q]
    given the rewards that are in.
    """
    if k == len(p):
        return 0.0, 0.0
    total = weights.sum()
    if total <= 0.0:
        return 0.0, 0.0
    value = case.parts[k] * float(weights @ p[k]) / total - case.rate * case.each[k]
    seconds = float(case.each[k])
    due = k - case.lag  # the arm whose reward is in before the next decision
    branches = [weights] if due < 0 else [weights * p[due], weights * (1.0 - p[due])]
    for branch in branches:
        more, time = tree(case, p, branch, k=k + 1)
        value += float(branch.sum()) / total * more
        seconds += float(branch.sum()) / total * time
    return (value, seconds) if value > 0.0 else (0.0, 0.0)


def chances(case: Case, nodes: FloatArray) -> FloatArray:
    """p[k, q], with what is an arm's own averaged over as the docstring says."""
    eta = case.belief.m[:, None] + sqrt(case.belief.shared) * nodes
    return sigmoid(eta / np.sqrt(1.0 + pi / 8.0 * case.belief.rest)[:, None])


@st.composite
def cases(draw: st.DrawFn, family: str = "logistic", least: int = 2, most: int = 7) -> Case:
    n = draw(st.integers(least, most))
    some = partial(st.lists, min_size=n, max_size=n)
    low, high = (-30, 30) if family == "logistic" else (-10, 15)
    m = np.array(draw(some(st.integers(low, high)))) / 10.0
    rest = np.full(n, draw(st.integers(0, 20)) / 10.0)
    belief = Toy(m, draw(st.integers(0, 40)) / 10.0, rest, family, draw(st.integers(1, 9)) / 5.0)
    each = np.array(draw(some(st.integers(1, 9)))) * 1.0
    parts = np.array(draw(some(st.integers(1, 3)))) * 1.0
    return Case(belief, each, parts, draw(st.integers(0, 2)), draw(st.integers(0, 40)) / 100.0)


@settings(max_examples=60, deadline=None)
@given(cases())
def test_coins_against_every_sequence_of_rewards(case: Case) -> None:
    """The same 15 nodes for what is shared: equal to rounding."""
    nodes, weights = hermegauss(15)
    own = case.ordered()
    expected = tree(own, chances(own, nodes), weights / weights.sum())
    values, seconds = case.table().worth(case.rate)
    assert values[0] == pytest.approx(expected[0], abs=1e-10)
    if values[0] > 1e-9:  # where going on or not is all the same, both times are right
        assert seconds[0] == pytest.approx(expected[1], abs=1e-6)


@settings(max_examples=30, deadline=None)
@given(cases(most=6))
def test_coins_against_a_fine_grid(case: Case) -> None:
    """1201 points for what is shared: 15 nodes cost less than 0.002 of a reward for each."""
    own = case.ordered()
    at, weights = fine()
    expected = tree(own, chances(own, at), weights)[0]
    found = case.table().worth(case.rate)[0][0]
    assert found == pytest.approx(expected, abs=0.002 * case.parts.sum())


@settings(max_examples=30, deadline=None)
@given(cases(most=5))
def test_what_is_an_arms_own_is_averaged_over(case: Case) -> None:
    """Against the average over it, by a fine grid: MacKay's formula is off by less than 0.02."""
    own = case.ordered()
    at, weights = fine(201)
    eta = own.belief.m[:, None] + sqrt(own.belief.shared) * at
    apart = np.sqrt(own.belief.rest)[:, None, None] * at
    p = sigmoid(eta[:, :, None] + apart) @ weights
    expected = tree(own, p, weights)[0]
    found = case.table().worth(case.rate)[0][0]
    assert found == pytest.approx(expected, abs=0.02 * case.parts.sum())


@settings(max_examples=40, deadline=None)
@given(cases(), st.lists(st.integers(0, 20), min_size=7, max_size=7))
def test_arms_with_more_of_their_own_blur_the_count(case: Case, rest: list[int]) -> None:
    """Then the number of successes does not say quite all: it costs less than 0.01 for each arm."""
    case.belief.rest = np.array(rest[: len(case.each)]) / 10.0
    nodes, weights = hermegauss(15)
    own = case.ordered()
    expected = tree(own, chances(own, nodes), weights / weights.sum())[0]
    found = case.table().worth(case.rate)[0][0]
    assert found == pytest.approx(expected, abs=0.01 * case.parts.sum())


def walk(case: Case) -> float:
    """Normal rewards by dynamic programming on a grid 25 times as fine, 8 deviations wide."""
    toy, n = case.belief, len(case.each)
    if toy.shared == 0.0:
        gains = case.parts * toy.m - case.rate * case.each
        return max(0.0, float(np.cumsum(gains).max()))
    noise = toy.rest + toy.noise**2 / case.parts
    left = [toy.shared]
    for k in range(n):
        left.append(1.0 / (1.0 / left[-1] + 1.0 / noise[k]))
    at = np.linspace(-8.0, 8.0, 1601) * sqrt(toy.shared)
    nodes, weights = hermegauss(41)
    value = np.zeros(len(at))
    for k in reversed(range(n)):
        step = sqrt(max(left[max(k - case.lag, 0)] - left[max(k + 1 - case.lag, 0)], 0.0))
        ahead = np.interp(at[:, None] + step * nodes, at, value) @ (weights / weights.sum())
        gain = case.parts[k] * (toy.m[k] + at) - case.rate * case.each[k]
        value = np.maximum(gain + ahead, 0.0)
    return float(value[len(at) // 2])


@settings(max_examples=30, deadline=None)
@given(cases("gaussian"))
def test_normal_rewards_against_a_fine_grid(case: Case) -> None:
    """Within 0.01 of the deviation of what is shared, for each reward."""
    found = case.table().worth(case.rate)[0][0]
    slack = 0.01 * sqrt(case.belief.shared) * case.parts.sum()
    assert found == pytest.approx(walk(case.ordered()), abs=slack + 1e-9)


@settings(max_examples=60, deadline=None)
@given(cases("gaussian", least=1, most=1), st.integers(-10, 15), st.integers(1, 9))
def test_two_normal_rewards_by_the_formula(case: Case, other: int, cost: int) -> None:
    """g₁ + E max(0, g₂ + step·Z) is g₁ + g₂Φ(g₂/step) + step·φ(g₂/step)."""
    toy = case.belief
    assume(toy.shared > 0.0)
    m, each = np.append(toy.m, other / 10.0), np.append(case.each, float(cost))
    two = Toy(m, toy.shared, np.repeat(toy.rest, 2), "gaussian", toy.noise)
    both = Case(two, each, np.ones(2), 0, case.rate)
    own = both.ordered()
    first, second = own.belief.m - case.rate * own.each
    step = toy.shared / sqrt(toy.shared + toy.rest[0] + toy.noise**2)
    z = second / step
    ahead = second * 0.5 * (1.0 + erf(z / sqrt(2.0))) + step * exp(-0.5 * z * z) / sqrt(2.0 * pi)
    expected = max(0.0, first + ahead)
    slack = 0.01 * sqrt(toy.shared)
    assert both.table().worth(case.rate)[0][0] == pytest.approx(expected, abs=slack)


_either = st.one_of(cases(), cases("gaussian"))


@settings(max_examples=60, deadline=None)
@given(_either, st.integers(0, 60), st.integers(0, 60))
@example(
    Case(Toy(np.array([-1.0, 0.5]), 1.0, np.zeros(2), "gaussian"), np.ones(2), np.ones(2), 0, 0.0),
    0,
    9,
)
def test_it_falls_with_the_rate_by_the_seconds(case: Case, one: int, other: int) -> None:
    """−seconds is a slope of a convex value, at both ends of any stretch: also at rate 0."""
    low, high = sorted((one / 100.0, other / 100.0))
    table = case.table()
    (at_low,), (slow,) = table.worth(low)
    (at_high,), (quick,) = table.worth(high)
    assert -1e-9 <= at_high <= at_low + 1e-9
    assert 0.0 <= quick <= slow + 1e-9 <= case.each.sum() + 2e-9
    fall = at_low - at_high
    assert quick * (high - low) - 1e-9 <= fall <= slow * (high - low) + 1e-9


@settings(max_examples=60, deadline=None)
@given(cases())
def test_freedom_is_worth_something(case: Case) -> None:
    """At least any number of arms fixed beforehand; and more where rewards speak of the rest."""
    own = case.ordered()
    nodes, weights = hermegauss(15)
    means = chances(own, nodes) @ (weights / weights.sum())
    fixed = np.cumsum(own.parts * means - case.rate * own.each)
    found = case.table().worth(case.rate)[0][0]
    assert found >= max(0.0, fixed.max()) - 1e-10
    # Best per second first: another subset could win only by the error of MacKay's formula.
    every = np.maximum(own.parts * means - case.rate * own.each, 0.0).sum()
    assert found >= every - 0.02 * case.parts.sum()
    later = Case(case.belief, case.each, case.parts, case.lag + 1, case.rate)
    assert found >= later.table().worth(case.rate)[0][0] - 1e-10


def test_rounds_in_one_table_are_as_alone() -> None:
    """Rounds of 3, 0, 1 and 5 arms, the last with nothing in it: none leaks into another."""
    rng = np.random.default_rng(0)
    for family in ("logistic", "gaussian"):
        belief = Nested(2, family=family, variances="fixed")
        belief.learn(rng.normal(size=(6, 2)), rng.integers(0, 2, 6), np.array([["a", "1"]] * 6))
        counts = np.array([3, 0, 1, 5, 0])
        X, each = rng.normal(size=(9, 2)), rng.uniform(1.0, 9.0, 9)
        labels = np.array([["a", "1"]] * 3 + [["a", "2"]] + [["b", "3"]] * 5)
        together = Stopping(belief, X, labels, each, counts, lag=1)
        values, seconds = together.worth(0.05)
        assert values[1] == values[4] == seconds[1] == seconds[4] == 0.0
        for j, (first, last) in {0: (0, 3), 2: (3, 4), 3: (4, 9)}.items():
            rows = slice(first, last)
            alone = Stopping(
                belief, X[rows], labels[rows], each[rows], np.array([last - first]), lag=1
            )
            assert alone.order.tolist() == together.order[rows].tolist()
            assert alone.worth(0.05)[0][0] == pytest.approx(values[j], abs=1e-12)
            assert alone.worth(0.05)[1][0] == pytest.approx(seconds[j], abs=1e-9)
            assert together.means[rows] == pytest.approx(belief.mean(X[rows], labels[rows]))
        assert values.max() > 0.0


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(("logistic", "gaussian")), st.data(), st.integers(0, 60))
def test_what_is_not_hopeful_does_not_pay(family: str, data: st.DataObject, seconds: int) -> None:
    """To know what arms share is worth at least as much as to learn it, to the grid's 1e-3."""
    case = data.draw(cases(family))
    table = case.table()
    setup = np.array([seconds / 4.0])
    value = table.worth(case.rate)[0][0]
    if not table.hopeful(case.rate, setup)[0]:
        assert value <= case.rate * setup[0] + (1e-12 if family == "logistic" else 5e-3)
    of_none = table.of(np.zeros(1, dtype=np.bool_))
    assert of_none.worth(case.rate)[0].shape == (0,)


def test_most_that_was_left_for_good_reasons_is_not_hopeful() -> None:
    each, one = np.full(5, 10.0), np.array([5])
    bad = Stopping(Toy(np.full(5, -3.0), 0.3, np.zeros(5)), np.zeros((5, 1)), None, each, one)
    good = Stopping(Toy(np.full(5, 0.0), 0.3, np.zeros(5)), np.zeros((5, 1)), None, each, one)
    way = np.array([50.0])
    assert not bad.hopeful(0.02, way)[0]
    assert good.hopeful(0.02, way)[0]


def sequential(
    belief: Nested,
    X: FloatArray,
    each: FloatArray,
    rate: float,
    group: list[str],
    *,
    any_order: bool,
) -> float:
    """True sequential Bayes under the belief itself: after each reward it learns, and all arms
    left are scored anew. The next arm is the best one of all, or the first.
    """
    if len(X) == 0:
        return 0.0
    means = belief.mean(X, np.array([group] * len(X)))
    best = 0.0
    for arm in range(len(X)) if any_order else [0]:
        keep = np.arange(len(X)) != arm
        value = means[arm] - rate * each[arm]
        for reward, chance in ((1.0, means[arm]), (0.0, 1.0 - means[arm])):
            then = deepcopy(belief)
            then.learn(X[arm : arm + 1], [reward], np.array([group]))
            more = sequential(then, X[keep], each[keep], rate, group, any_order=any_order)
            value += chance * more
        best = max(best, value)
    return best


@pytest.mark.parametrize(
    ("rate", "spread", "seen"),
    [(0.02, 0.0, True), (0.05, 0.0, False), (0.05, 0.4, True), (0.06, 0.4, False)],
)
def test_against_learning_one_reward_at_a_time(rate: float, spread: float, seen: bool) -> None:
    """Within 0.03 for four arms, also of who may take them in any order: Laplace beside nodes."""
    belief = Nested(1, variances="fixed", effects=(0.5, 1.5), centre=(1.0, -0.6), scale=0.3)
    group = ["a", "p"]
    if seen:
        belief.learn([[0.0], [0.5]], [1.0, 0.0], np.array([group, ["a", "q"]]))
    X = spread * np.array([[0.5], [1.0], [-1.0], [0.0]])
    each = np.full(4, 8.0)
    order = np.argsort(-belief.mean(X, np.array([group] * 4)), kind="stable")
    found = stop_value(belief, X, each.tolist(), rate, groups=np.array([group] * 4))
    fixed = sequential(belief, X[order], each[order], rate, group, any_order=False)
    free = sequential(belief, X, each, rate, group, any_order=True)
    assert found == pytest.approx(fixed, abs=0.03)
    assert found == pytest.approx(free, abs=0.03)


@pytest.mark.parametrize("family", ["logistic", "gaussian"])
def test_one_arm_is_worth_its_mean_beyond_its_time(family: str) -> None:
    belief = Nested(1, family=family, centre=(0.0, 0.5))  # type: ignore[arg-type]
    mean = float(belief.mean([[1.0]])[0])
    assert stop_value(belief, [[1.0]], 4.0, 0.05) == pytest.approx(mean - 0.2)
    assert stop_value(belief, [[1.0]], 4.0, 0.5) == 0.0


def test_nested_knows_what_is_shared() -> None:
    assert isinstance(Nested(1), Shared)
    assert not isinstance(object(), Shared)
