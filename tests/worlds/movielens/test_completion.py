"""Matrix completion: the proximal step, where it comes to rest, and what it predicts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coaf.bandit.arrays import FloatArray
from coaf.worlds.movielens import completion
from coaf.worlds.movielens.completion import complete, shrink
from coaf.worlds.movielens.ratings import Ratings


def penalty_weight(threshold: float, p: float) -> float:
    """The λ for which σ = threshold is where 0 and something positive are equally good."""
    low, high, weight = 0.0, threshold ** (2.0 - p), 0.0
    grid = np.linspace(1e-6, 1.0, 20_001) * threshold
    for _ in range(80):
        weight = 0.5 * (low + high)
        best = float((0.5 * (grid - threshold) ** 2 + weight * grid**p).min())
        low, high = (weight, high) if best < 0.5 * threshold**2 else (low, weight)
    return weight


@pytest.mark.parametrize("p", [0.3, 0.5, 0.9])
@given(threshold=st.floats(0.1, 10.0), times=st.floats(0.05, 5.0))
def test_shrinking_is_the_best_there_is(p: float, threshold: float, times: float) -> None:
    sigma = threshold * times
    if 0.98 < times < 1.02:
        return  # at the threshold itself two answers are equally good
    found = float(shrink(np.array([sigma]), threshold, p)[0])
    weight = penalty_weight(threshold, p)

    def objective(s: FloatArray | float) -> FloatArray:
        return np.asarray(0.5 * (s - sigma) ** 2 + weight * np.asarray(s) ** p)

    brute = objective(np.linspace(0.0, 1.2 * sigma, 20_001)).min()
    assert objective(found) <= brute + 1e-3 * threshold**2
    assert (found == 0.0) == (times < 1.0)


def test_at_p_one_it_is_the_soft_threshold() -> None:
    assert shrink(np.array([3.0, 1.0, 0.5]), 1.0, 1.0).tolist() == [2.0, 0.0, 0.0]


def low_rank(users: int, films: int, seed: int) -> tuple[Ratings, FloatArray]:
    """Half of a matrix of rank two, and all of it."""
    rng = np.random.default_rng(seed)
    left, right = rng.normal(size=(users, 2)), rng.normal(size=(films, 2))
    whole = np.clip(3.0 + 0.5 * left @ right.T, 1.0, 5.0)
    u, f = np.nonzero(rng.random(whole.shape) < 0.5)
    ratings = Ratings.of(u, f, whole[u, f], source="a matrix of rank two")
    assert ratings.shape == whole.shape
    return ratings, whole


@pytest.mark.parametrize("p", [1.0, 0.5])
def test_a_matrix_of_low_rank_is_recovered(p: float) -> None:
    ratings, whole = low_rank(120, 80, seed=1)
    (found,) = complete(ratings, powers=(p,))
    error = np.sqrt(np.mean((found.predict(1.0, 5.0).T - whole) ** 2))
    assert error < 0.25 * whole.std()
    assert found.held_out < 0.3 * found.film_mean


@pytest.mark.parametrize("p", [1.0, 0.5])
def test_the_objective_never_rises_and_comes_to_rest(p: float, ratings: Ratings) -> None:
    known = completion._Known(ratings, np.ones(len(ratings.values), dtype=np.bool_))
    rng = np.random.default_rng(0)
    factors = completion._start(known, min(ratings.shape), rng)  # no singular value is left out
    threshold = 0.4 * factors.largest
    weight = threshold if p == 1.0 else penalty_weight(threshold, p)
    before = np.inf
    for _ in range(150):
        factors = completion._descend(known, factors, threshold, p, 1)
        misfit = known.target - known.at(factors)
        value = 0.5 * float(misfit @ misfit) + weight * float((factors.singular**p).sum())
        assert value <= before * (1.0 + 1e-5)
        before = value
    # At rest: filling the gaps with X and shrinking gives X again.
    X = (factors.left * factors.singular) @ factors.right.T
    filled = X.copy()
    filled[known.u, known.f] = known.target
    u, s, vt = np.linalg.svd(filled, full_matrices=False)
    again = (u * shrink(s, threshold, p)) @ vt
    assert np.abs(again - X).max() < 0.02 * np.abs(X).max()


def test_held_out_ratings_are_predicted_better_than_by_film_means(ratings: Ratings) -> None:
    for found in complete(ratings):
        assert found.held_out < found.film_mean


def test_real_ratings_are_predicted_better_than_by_film_means(real: Ratings) -> None:
    found = complete(real.frequent(4))
    assert {c.p for c in found} == {1.0, 0.5}
    for c in found:
        assert c.held_out < 0.93 * c.film_mean


def test_what_cannot_be() -> None:
    ratings, _ = low_rank(30, 25, seed=0)
    for p in (0.0, -1.0, 1.5, float("nan")):
        with pytest.raises(ValueError, match="0 < p <= 1"):
            complete(ratings, powers=(p,))
