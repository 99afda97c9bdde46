"""How rich a class of mean rewards is: covering numbers and the eluder dimension.

A finite class is a table of values, one row a function and one column a point (a feature vector).
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from coaf.bandit.arrays import FloatArray, floats, number

# Squared differences nearer than this, relatively, are ties: 0.3 - 0.2 and 0.2 - 0.1 are one value.
_TIE = 1e-9


def covering_linear(
    dim: int, *, alpha: float, norm_bound: float = 1.0, feature_bound: float = 1.0
) -> float:
    """The logarithm of an upper bound on the sup-norm covering number of linear functions.

    Two functions with ‖θ‖ ≤ S on ‖x‖ ≤ L are L‖θ − θ'‖ apart, and a ball of radius S needs at
    most (1 + 2SL/α)^d balls of radius α/L.

    Examples
    --------
    >>> covering_linear(3, alpha=2.0) == 3 * math.log(2)
    True
    """
    number("dim", dim, low=1.0)
    number("alpha", alpha, above=0.0)
    size = number("norm_bound", norm_bound, low=0.0) * number(
        "feature_bound", feature_bound, low=0.0
    )
    return dim * math.log1p(2.0 * size / alpha)


def covering_finite(values: Any, *, alpha: float) -> float:
    """The logarithm of the size of a sup-norm cover of radius `alpha` of a finite class.

    The cover is greedy: it holds functions of the class only, each new one covering the most that
    are still bare. Its size bounds the covering number from above, which is all that β̃ needs, and
    is at most the number of distinct functions.

    Examples
    --------
    >>> covering_finite([[0.0, 0.0], [0.1, 0.0], [1.0, 1.0]], alpha=0.1) == math.log(2)
    True
    """
    number("alpha", alpha, low=0.0)
    table = np.unique(_table(values), axis=0)
    # A hair of slack, so that a function at exactly alpha is covered in spite of rounding.
    reach = alpha + _TIE * float(np.abs(table).max())
    near = np.array([np.abs(table - row).max(axis=1) <= reach for row in table])
    size = 0
    while near.any():
        best = int(near.sum(axis=1).argmax())
        near[:, near[best].copy()] = False
        size += 1
    return math.log(size)


def beta_general(
    n: float,
    *,
    delta: float,
    alpha: float,
    log_covering: float,
    noise: float = 1.0,
    mean_bound: float = 1.0,
) -> float:
    """The tolerance β̃(n, F, δ, α) of a general class after `n` rewards (`lemma: eluder`).

    Parameters
    ----------
    n
        Rewards seen, not rounds.
    alpha, log_covering
        The class has a sup-norm cover of radius `alpha` and size exp(`log_covering`). A finite
        class may have alpha = 0 and the logarithm of its size.

    Examples
    --------
    >>> beta_general(1000, delta=0.1, alpha=0.0, log_covering=math.log(50)) == 8 * math.log(500)
    True
    """
    number("n", n, low=0.0)
    number("alpha", alpha, low=0.0)
    number("log_covering", log_covering, low=0.0)
    if not 0.0 < number("delta", delta) < 1.0:
        raise ValueError(f"delta is {delta}; it must be in (0, 1)")
    # Before any reward there is nothing to discretise; below one, ln 4n²/δ could be negative.
    tail = math.log(4.0 * max(n, 1.0) ** 2 / delta)
    rounding = 2.0 * alpha * n * (8.0 * mean_bound + noise * math.sqrt(8.0 * tail))
    return 8.0 * noise**2 * (log_covering + math.log(1.0 / delta)) + rounding


def eluder_linear(
    dim: int, *, epsilon: float, norm_bound: float = 1.0, feature_bound: float = 1.0
) -> float:
    """The upper bound of Russo and Van Roy (2013, Proposition 6) for linear functions.

    It is 3d·e/(e − 1)·ln(3 + 3(2SL/ε)²) + 1 for ‖θ‖ ≤ S and ‖x‖ ≤ L.

    Examples
    --------
    >>> round(eluder_linear(2, epsilon=0.1), 1)
    68.3
    """
    number("dim", dim, low=1.0)
    number("epsilon", epsilon, above=0.0)
    size = number("norm_bound", norm_bound, low=0.0) * number(
        "feature_bound", feature_bound, low=0.0
    )
    scaled = 3.0 + 3.0 * (2.0 * size / epsilon) ** 2
    return 3.0 * dim * math.e / (math.e - 1.0) * math.log(scaled) + 1.0


def eluder_dimension(values: Any, *, epsilon: float, limit: int = 200_000) -> int:
    """The ε-eluder dimension of a finite class, exactly, by search.

    Parameters
    ----------
    values
        The table of values, (functions, points).
    epsilon
        The resolution; the dimension does not grow with it.
    limit
        The most sets of points to look at before giving up with an error. The search is exponential
        in the number of points.

    Notes
    -----
    Three facts make the definition finite. A point never repeats: two functions within ε' on its
    predecessors are within ε' on it. Whether a point is independent depends on the *set* of its
    predecessors. And of the ε' > ε only those just below an attained difference b matter: raising
    ε' to the smallest difference that a sequence's witnesses use keeps every witness. So x is
    independent of B at b when some pair of functions has Σ_B (ψ − ψ')² < b² ≤ (ψ − ψ')²(x).

    Examples
    --------
    >>> eluder_dimension(np.eye(4), epsilon=0.5)  # the last point is known from the others
    3
    >>> eluder_dimension(np.vstack([np.eye(4), np.zeros(4)]), epsilon=0.5)
    4
    """
    number("epsilon", epsilon, low=0.0)
    # Points that no function tells apart depend on each other; equal functions witness nothing.
    table = np.unique(np.unique(_table(values), axis=0), axis=1)
    first, second = np.triu_indices(len(table), k=1)
    squares = np.unique((table[first] - table[second]) ** 2, axis=0)
    longest, budget = 0, limit
    for level in _levels(squares, epsilon):
        longest, budget = _longest(squares, level, longest, budget)
        if budget < 0:
            raise ValueError(
                f"values has {table.shape[1]} distinct points: the search passed limit={limit}; "
                "give fewer points, a larger limit, or use eluder_linear"
            )
    return longest


def _table(values: Any) -> FloatArray:
    table = floats("values", values, ndim=2)
    if table.size == 0:
        raise ValueError(f"values must hold a function and a point, got shape {table.shape}")
    return table


def _levels(squares: FloatArray, epsilon: float) -> Iterator[float]:
    """The distinct squared differences above ε², ties merged, greatest first."""
    previous = math.inf
    for level in np.unique(squares)[::-1].tolist():
        if level <= epsilon**2 * (1.0 + _TIE) or level == 0.0:
            return
        if level < previous * (1.0 - _TIE):
            previous = level
            # The merged values count as one, so every one of them is a witness.
            yield level * (1.0 - _TIE)


def _longest(squares: FloatArray, level: float, longest: int, budget: int) -> tuple[int, int]:
    """The longest sequence at `level`, if it beats `longest`, and what is left of the budget."""
    far = squares >= level
    useful = far.any(axis=1)
    squares, far = squares[useful], far[useful]
    points = [int(sum(1 << int(x) for x in np.flatnonzero(row))) for row in far]
    seen = {0}
    # A state is the set taken so far and each pair's squared distance on it.
    stack = [(0, np.zeros(len(squares)))]
    while stack:
        taken, sums = stack.pop()
        budget -= 1
        if budget < 0:
            break
        alive = np.flatnonzero(sums < level)
        free = 0
        for pair in alive:
            free |= points[pair]
        longest = max(longest, taken.bit_count())
        # Dependence only grows, and a witness is spent at its point: both cap what can follow.
        if taken.bit_count() + min(free.bit_count(), len(alive)) <= longest:
            continue
        for x in range(squares.shape[1]):
            grown = taken | 1 << x
            if free >> x & 1 and grown not in seen:
                seen.add(grown)
                stack.append((grown, sums + squares[:, x]))
    return longest, budget
