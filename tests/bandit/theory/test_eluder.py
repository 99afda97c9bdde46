import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coaf.bandit.arrays import FloatArray
from coaf.bandit.theory.eluder import (
    beta_general,
    covering_finite,
    covering_linear,
    eluder_dimension,
    eluder_linear,
)

Table = list[list[int]]


@st.composite
def tables(draw: st.DrawFn, functions: int = 4, points: int = 4) -> Table:
    wide = draw(st.integers(1, points))
    row = st.lists(st.integers(0, 3), min_size=wide, max_size=wide)
    return draw(st.lists(row, min_size=1, max_size=functions))


def independent(table: Table, past: tuple[int, ...], x: int, square: Fraction) -> bool:
    """The paper's definition, word for word, at ε'² = square."""
    for one, two in itertools.permutations(table, 2):
        near = sum((one[k] - two[k]) ** 2 for k in past) <= square
        if near and one[x] > two[x] and (one[x] - two[x]) ** 2 > square:
            return True
    return False


def brute_force(table: Table, epsilon: Fraction) -> int:
    """Every sequence, points repeating too, at an ε'² in every gap between the whole numbers."""
    wide = len(table[0])
    # Squared differences and their sums are whole, so ε'² matters through its floor alone.
    squares = {epsilon**2 + Fraction(1, 100)} | {Fraction(2 * k + 1, 2) for k in range(10)}
    squares |= {Fraction(k) for k in range(10)}
    longest = 0
    for square in (s for s in squares if s > epsilon**2):
        sequences: list[tuple[int, ...]] = [()]
        while sequences:
            longest = max(longest, len(sequences[0]))
            sequences = [
                (*past, x)
                for past in sequences
                for x in range(wide)
                if independent(table, past, x, square)
            ]
    return longest


@settings(deadline=None, max_examples=150)
@given(tables(), st.sampled_from([Fraction(k, 2) for k in range(7)]))
def test_the_search_agrees_with_brute_force(table: Table, epsilon: Fraction) -> None:
    assert eluder_dimension(table, epsilon=float(epsilon)) == brute_force(table, epsilon)


@given(tables(functions=6, points=6))
def test_no_point_is_independent_of_predecessors_that_hold_it(table: Table) -> None:
    for x, square in itertools.product(range(len(table[0])), (Fraction(1, 2), Fraction(4))):
        assert not independent(table, (x,), x, square)


@given(tables(functions=5, points=6))
def test_the_dimension_falls_with_epsilon_and_with_the_class(table: Table) -> None:
    dims = [eluder_dimension(table, epsilon=e) for e in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)]
    assert dims == sorted(dims, reverse=True)
    assert dims[-1] == 0
    assert eluder_dimension(table[1:] or table, epsilon=0.5) <= dims[1] <= len(table[0])


@given(tables(), st.integers(1, 9))
def test_the_dimension_scales_with_the_unit_of_reward(table: Table, tenths: int) -> None:
    # 0.1·k is not exact in binary: ties must survive it.
    scaled = np.array(table) * (0.1 * tenths)
    assert eluder_dimension(scaled, epsilon=0.1 * tenths) == eluder_dimension(table, epsilon=1.0)


@pytest.mark.parametrize("k", [1, 2, 3, 5, 8])
def test_indicators(k: int) -> None:
    assert eluder_dimension(np.eye(k), epsilon=0.3) == k - 1
    assert eluder_dimension(np.vstack([np.eye(k), np.zeros(k)]), epsilon=0.3) == k
    assert eluder_dimension(np.eye(k), epsilon=1.0) == 0


def test_a_single_function_has_nothing_to_learn() -> None:
    assert eluder_dimension([[0.3, -0.2, 0.9]], epsilon=0.0) == 0
    assert eluder_dimension([[0.3, 0.1], [0.3, 0.1]], epsilon=0.0) == 0


def test_a_larger_epsilon_prime_can_be_the_better_one() -> None:
    # Below 1 every unit difference already counts as far, and the longest sequence has 2 points.
    table = [[3, 3, 1], [1, 2, 2], [1, 0, 3]]
    assert eluder_dimension(table, epsilon=0.5) == 3 == brute_force(table, Fraction(1, 2))
    apart = Fraction(3, 4)
    longest = max(
        len(order)
        for size in (2, 3)
        for order in itertools.permutations(range(3), size)
        if all(independent(table, order[:k], x, apart) for k, x in enumerate(order))
    )
    assert longest == 2


def circle(count: int) -> FloatArray:
    angle = 2 * np.pi * np.arange(count) / count
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0])
def test_linear_functions_on_the_circle_stay_below_the_linear_bound(epsilon: float) -> None:
    values = circle(9) @ circle(12).T
    exact = eluder_dimension(values, epsilon=epsilon)
    assert 2 <= exact <= eluder_linear(2, epsilon=epsilon)


@given(st.floats(1e-3, 1e6))
def test_the_linear_bound_dominates_the_inequality_it_solves(ratio: float) -> None:
    # Its proof stops at the greatest B with (3/2)^B ≤ αB + 1, where α = (2SL/ε)².
    alpha = (2 * ratio) ** 2
    bound = (eluder_linear(1, epsilon=1.0, norm_bound=ratio) - 1.0) * (1 + 1e-12)
    assert bound * math.log(1.5) > math.log1p(alpha * bound)


@settings(deadline=None, max_examples=150)
@given(
    st.integers(1, 5),
    st.integers(1, 5),
    st.lists(st.integers(1, 4), min_size=1, max_size=6),
    st.floats(0, 3),
    st.integers(0, 10**6),
)
def test_widths_of_a_finite_class_over_batches(
    functions: int, points: int, sizes: list[int], tolerance: float, seed: int
) -> None:
    # crl: CBRO_sw with its factor 4 restored; every width is frozen at the start of the round.
    rng = np.random.default_rng(seed)
    table = rng.uniform(-1, 1, (functions, points))
    total, seen = 0.0, np.array([], dtype=np.int64)
    for size in sizes:
        off = table[:, seen] - table[rng.integers(functions), seen]
        members = table[(off**2).sum(axis=1) <= tolerance]
        arms = rng.integers(points, size=size)
        total += float((np.ptp(members[:, arms], axis=0) ** 2).sum())
        seen = np.append(seen, arms)
    dims = eluder_dimension(table, epsilon=1 / len(seen))
    widths = 4 * (tolerance + 4 * max(sizes)) * dims * (1 + math.log(len(seen)))
    assert total <= 4 * dims + 1 + widths


def test_too_large_a_class_is_refused_not_guessed() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"30 distinct points.*limit=50"):
        eluder_dimension(rng.normal(size=(20, 30)), epsilon=0.1, limit=50)


@settings(deadline=None)
@given(st.integers(1, 12), st.integers(1, 4), st.floats(0.0, 2.0), st.integers(0, 99))
def test_a_cover_is_no_larger_than_the_class_and_no_smaller_than_a_packing(
    functions: int, points: int, alpha: float, seed: int
) -> None:
    table = np.random.default_rng(seed).uniform(-1, 1, (functions, points))
    size = round(math.exp(covering_finite(table, alpha=alpha)))
    apart = np.abs(table[:, None] - table[None]).max(axis=2)
    packing: list[int] = []
    for k in range(functions):
        # No two functions more than 2·alpha apart can share a centre.
        if all(apart[k, other] > 2 * alpha + 1e-6 for other in packing):
            packing.append(k)
    least = next(
        count
        for count in range(1, functions + 1)
        if any(
            (apart[list(centres)].min(axis=0) <= alpha + 1e-6).all()
            for centres in itertools.combinations(range(functions), count)
        )
    )
    assert len(packing) <= least <= size <= functions


def test_covering_limits() -> None:
    assert covering_finite([[0.0], [0.0], [1.0]], alpha=0.0) == math.log(2)
    assert covering_finite([[0.0], [0.5], [1.0]], alpha=0.5) == 0.0
    assert covering_linear(2, alpha=0.5, norm_bound=2, feature_bound=3) == 2 * math.log1p(24)


def test_linear_cover_counts_enough_balls() -> None:
    # A grid of spacing α covers [-1, 1] with radius α/2: d = 1 has a known answer to stay above.
    for alpha in (0.01, 0.1, 0.7):
        assert covering_linear(1, alpha=alpha) >= math.log(math.ceil(1 / alpha))


def test_tolerance_as_in_the_paper() -> None:
    n, delta, alpha, size = 40, 0.1, 0.01, 7
    printed = 8 * math.log(size / delta) + 2 * alpha * n * (
        8 + math.sqrt(8 * math.log(4 * n**2 / delta))
    )
    assert beta_general(n, delta=delta, alpha=alpha, log_covering=math.log(size)) == pytest.approx(
        printed
    )
    assert beta_general(0, delta=0.1, alpha=0.5, log_covering=0.0) == 8 * math.log(10)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: eluder_dimension([[0.0, 1.0]], epsilon=-1.0), "epsilon"),
        (lambda: eluder_dimension([0.0, 1.0], epsilon=0.1), "values"),
        (lambda: eluder_dimension(np.zeros((0, 3)), epsilon=0.1), "values"),
        (lambda: eluder_linear(0, epsilon=0.1), "dim"),
        (lambda: eluder_linear(2, epsilon=0.0), "epsilon"),
        (lambda: covering_linear(2, alpha=0.0), "alpha"),
        (lambda: covering_finite([[0.0]], alpha=-0.1), "alpha"),
        (lambda: beta_general(1, delta=1.0, alpha=0.1, log_covering=0.0), "delta"),
        (lambda: beta_general(1, delta=0.1, alpha=0.1, log_covering=-1.0), "log_covering"),
    ],
)
def test_errors_name_the_argument(call: Callable[[], float], name: str) -> None:
    with pytest.raises(ValueError, match=rf"^{name}\b"):
        call()
