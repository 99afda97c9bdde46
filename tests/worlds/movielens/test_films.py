"""Films as arms: components, noise, and preparation that is kept."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coaf.worlds.movielens import films as module
from coaf.worlds.movielens.films import Films, prepare, principal, sub_gaussian_scale
from coaf.worlds.movielens.ratings import Ratings


def test_principal_components_are_those_of_the_covariance() -> None:
    table = np.random.default_rng(0).normal(size=(40, 25)).astype(np.float32)
    components, explained = principal(table, 5)
    centred = table - table.mean(axis=0)
    u, s, _ = np.linalg.svd(centred.astype(float), full_matrices=False)
    assert np.allclose(np.abs(components), np.abs(u[:, :5] * s[:5]), atol=1e-3)
    assert np.allclose(explained, s[:5] ** 2 / (s**2).sum(), atol=1e-4)
    assert (components[np.abs(components).argmax(axis=0), range(5)] > 0.0).all()


@given(st.lists(st.floats(1.0, 5.0), min_size=2, max_size=30))
def test_the_noise_lies_between_deviation_and_half_the_range(values: list[float]) -> None:
    row = np.array([values], dtype=np.float32)
    scale = sub_gaussian_scale(row)
    assert float(row.astype(float).std()) - 1e-6 <= scale
    assert scale <= 0.5 * (float(row.max()) - float(row.min())) + 1e-6


@pytest.mark.parametrize("often", [1, 50, 900])
def test_the_noise_is_that_of_a_fine_search(often: int) -> None:
    row = np.array([4.0] * often + [4.5] * 4)
    tilts = np.concatenate([sign * np.geomspace(1e-2, 200.0, 4000) for sign in (-1.0, 1.0)])
    grown = np.log(np.exp(tilts[:, None] * (row - row.mean())).mean(axis=1))
    fine = float(np.sqrt((2.0 * grown / tilts**2).max()))
    assert sub_gaussian_scale(row[None].astype(np.float32)) == pytest.approx(fine, rel=2e-3)


def test_a_rare_rating_is_noisier_than_its_deviation() -> None:
    row = np.array([[1.0] * 50 + [5.0]], dtype=np.float32)
    assert sub_gaussian_scale(row) > 1.5 * float(row.std())


def test_given_ratings_stay_and_others_are_within_the_scale(ratings: Ratings, films: Films) -> None:
    kept = ratings.frequent(films.facts["least_ratings"])
    assert (films.completed[kept.films, kept.users] == kept.values).all()
    low, high = films.scale
    assert films.completed.min() >= low
    assert films.completed.max() <= high
    assert films.facts["kept_films"] == len(films.completed)


def same(a: Films, b: Films) -> bool:
    arrays = ("completed", "components", "explained")
    equal = all(np.array_equal(getattr(a, n), getattr(b, n)) for n in arrays)
    return equal and a.facts == b.facts and a.digest == b.digest


def test_preparation_is_kept(
    ratings: Ratings, films: Films, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert same(prepare(ratings, cache=tmp_path), films)
    with monkeypatch.context() as without:
        without.setattr(module, "complete", None)
        assert same(prepare(ratings, cache=tmp_path), films)
        with pytest.raises(TypeError):  # another rule is another preparation
            prepare(ratings, cache=tmp_path, least=5)


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 torn", b"not an archive"])
def test_a_damaged_cache_is_prepared_again(
    damage: bytes, ratings: Ratings, films: Films, tmp_path: Path
) -> None:
    prepare(ratings, cache=tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_bytes(damage)
    assert same(prepare(ratings, cache=tmp_path), films)
    assert path.stat().st_size > 1000


def test_a_cache_that_cannot_be_written_is_no_loss(
    ratings: Ratings, films: Films, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    assert same(prepare(ratings, cache=blocked / os.curdir), films)


def test_ratings_that_never_differ() -> None:
    users, films = (grid.ravel() for grid in np.mgrid[:40, :40])
    same_for_all = Ratings.of(users, films, np.full(1600, 4.0), source="all four")
    with pytest.raises(ValueError, match="every rating is 4"):
        prepare(same_for_all)


def test_too_few_films() -> None:
    few = Ratings.of([1, 1, 2, 2], [1, 2, 1, 2], [3.0, 4.0, 5.0, 1.0], source="four ratings")
    with pytest.raises(ValueError, match="four ratings: 2 films with at least 2 ratings"):
        prepare(few, least=2)


def test_the_real_films(real_films: Films) -> None:
    assert real_films.facts["kept_films"] == 1413
    assert real_films.completed.shape == (1413, 943)
