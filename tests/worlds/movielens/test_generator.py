"""Generated ratings have the shape of MovieLens: counts, shares, and taste that can be learned."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from coaf.bandit.arrays import FloatArray
from coaf.worlds.movielens.generator import STARS, generate
from coaf.worlds.movielens.ratings import CodeArray, Ratings, read
from outside import DATA

MOVIELENS = DATA / "movielens-100k"


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    users=st.integers(1, 60), films=st.integers(1, 60), fill=st.floats(0, 1), seed=st.integers(0, 9)
)
def test_any_size_is_exact(users: int, films: int, fill: float, seed: int) -> None:
    low, high = max(users, films), users * films
    ratings = low + round(fill * (high - low))
    made = generate(users, films, ratings, seed=seed)
    assert made.shape == (users, films)
    assert len(made.values) == ratings
    pairs = made.users.astype(np.int64) * films + made.films
    assert len(np.unique(pairs)) == ratings
    by_user, mean = np.bincount(made.users, minlength=users), ratings // users
    assert by_user.min() >= (20 if mean >= 20 else max(1, mean // 2))
    assert np.bincount(made.films, minlength=films).min() >= 1
    expected = np.array(STARS) / sum(STARS) * ratings
    assert np.abs(np.bincount(made.values.astype(int), minlength=6)[1:] - expected).max() <= 1.0


@pytest.mark.parametrize("size", [(0, 5, 5), (5, 5, 4), (5, 5, 26), (2, 5, 4)])
def test_what_cannot_be_is_refused(size: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="at least one for each user and each film"):
        generate(*size)


def test_a_seed_is_the_whole_story() -> None:
    first, again, other = (generate(120, 80, 3000, seed=seed) for seed in (3, 3, 4))
    assert first.digest == again.digest
    assert first.digest != other.digest
    assert first.source == "generated, not real: 3,000 ratings of 80 films by 120 users, seed 3"


def test_the_full_size_has_the_published_figures_of_1m() -> None:
    """Median, mean and maximum of both counts, films hardly rated at all, and the histogram."""
    made = generate()
    assert made.shape == (6040, 3706)
    assert np.bincount(made.values.astype(int))[1:].tolist() == list(STARS)
    by_user, by_film = np.bincount(made.users), np.bincount(made.films)
    assert by_user.min() == 20
    assert np.median(by_user) == pytest.approx(96, rel=0.1)
    assert by_user.max() == pytest.approx(2314, rel=0.3)
    assert np.median(by_film) == pytest.approx(123.5, rel=0.15)
    assert by_film.max() == pytest.approx(3428, rel=0.15)
    assert (by_film == 1).sum() == pytest.approx(114, rel=0.3)
    assert (by_film < 4).sum() == pytest.approx(245, rel=0.15)
    assert made.frequent(4).shape[1] == pytest.approx(3461, rel=0.01)


def figures(ratings: Ratings) -> dict[str, float]:
    """What a set of ratings looks like: spread of means, fame, and errors of three predictions."""
    films, values = ratings.films, ratings.values
    counts = np.bincount(films)
    means = np.bincount(films, values) / counts
    kind = np.bincount(ratings.users, values) / np.bincount(ratings.users)
    often = counts >= 20
    return {
        "film share": float(np.var(means[films]) / np.var(values)),
        "user share": float(np.var(kind[ratings.users]) / np.var(values)),
        "fame": float(np.corrcoef(np.log(counts[often]), means[often])[0, 1]),
        **errors(ratings),
    }


def errors(ratings: Ratings, factors: int = 8, ridge: float = 8.0) -> dict[str, float]:
    """Held-out root mean square errors: film means, biases, and biases with factors (ALS)."""
    rng = np.random.default_rng(0)
    held = rng.random(len(ratings.values)) < 0.1
    who, what, given_stars = ratings.users[~held], ratings.films[~held], ratings.values[~held]
    (users, films), mean = ratings.shape, given_stars.mean()
    mine, theirs = ratings.users[held], ratings.films[held]

    def error(predicted: FloatArray) -> float:
        return float(np.sqrt(np.mean((predicted - ratings.values[held]) ** 2)))

    def average(codes: CodeArray, values: FloatArray, size: int, shrink: float) -> FloatArray:
        total = np.bincount(codes, values, minlength=size)
        result: FloatArray = total / np.maximum(np.bincount(codes, minlength=size) + shrink, 1e-9)
        return result

    film_means = mean + average(what, given_stars - mean, films, 0.0)
    film, user = np.zeros(films), np.zeros(users)
    for _ in range(8):
        film = average(what, given_stars - mean - user[who], films, 3.0)
        user = average(who, given_stars - mean - film[what], users, 5.0)
    rest = given_stars - mean - film[what] - user[who]
    n = len(rest)
    owners = [
        sparse.csr_array((np.ones(n), (c, np.arange(n))), shape=(s, n))
        for c, s in ((who, users), (what, films))
    ]
    left, right = (rng.normal(0, 0.1, (size, factors)) for size in (users, films))

    def solved(owner: sparse.csr_array, other: FloatArray) -> FloatArray:
        squares = owner @ np.einsum("ni,nj->nij", other, other).reshape(n, -1)
        normal = squares.reshape(-1, factors, factors) + ridge * np.eye(factors)
        target = owner @ (other * rest[:, None])
        result: FloatArray = np.linalg.solve(normal, target[:, :, None])[:, :, 0]
        return result

    for _ in range(10):
        left = solved(owners[0], right[what])
        right = solved(owners[1], left[who])
    biased = mean + film[theirs] + user[mine]
    taste = (left[mine] * right[theirs]).sum(axis=1)
    return {
        "film means": error(film_means[theirs]),
        "biases": error(biased),
        "factors": error(biased + taste),
    }


@pytest.mark.parametrize("seed", [0, 1])
def test_taste_can_be_learned(seed: int) -> None:
    found = errors(generate(users=900, films=400, ratings=100_000, seed=seed))
    assert found["factors"] < 0.98 * found["biases"]
    assert found["biases"] < 0.95 * found["film means"]


def test_the_generator_looks_like_the_100k_set() -> None:
    if not MOVIELENS.is_dir():
        pytest.skip(f"MovieLens 100K is not at {MOVIELENS}; set COAF_DATA to the folder it is in")
    real, made = read(MOVIELENS), generate(users=943, films=1682, ratings=100_000, seed=0)
    assert real.source == "MovieLens 100K, read from u.data"
    assert made.shape == real.shape
    assert len(made.values) == len(real.values)
    quantiles = [0.1, 0.25, 0.5, 0.75, 0.9, 1.0]
    for ours, theirs in ((made.users, real.users), (made.films, real.films)):
        ratio = np.quantile(np.bincount(ours), quantiles) / np.quantile(
            np.bincount(theirs), quantiles
        )
        assert ratio.min() > 1 / 1.4
        assert ratio.max() < 1.4
    single = [int((np.bincount(r.films) == 1).sum()) for r in (made, real)]
    assert single[0] == pytest.approx(single[1], rel=0.4)
    for stars, share in real.histogram().items():
        assert made.histogram()[stars] == pytest.approx(share, abs=0.02)
    found, wanted = figures(made), figures(real)
    tolerance = {"film share": 0.03, "user share": 0.03, "fame": 0.15}
    for name, value in wanted.items():
        assert found[name] == pytest.approx(value, abs=tolerance.get(name, 0.04)), name
