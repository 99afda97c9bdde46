"""Indices: what each asks the belief, and where the random numbers come from."""

import numpy as np
import pytest

from coaf.bandit.beliefs.linear import Linear
from coaf.bandit.index import Mean, Ones, Thompson, Truth, Upper, generator, load, save
from coaf.bandit.latency import Additive
from coaf.bandit.policies.coaf import COAF
from coaf.bandit.problem import Round
from coaf.bandit.rates.rate import Fixed

X = np.random.default_rng(0).uniform(-0.4, 0.4, (6, 3))


def belief() -> Linear:
    known = Linear(3, noise=0.3)
    known.learn(X, X[:, 0])
    return known


def test_what_each_index_asks() -> None:
    known = belief()

    def rng() -> np.random.Generator:
        return np.random.default_rng(8)

    for index, expected in (
        (Upper(), known.upper(X)),
        (Mean(), known.mean(X)),
        (Thompson(), known.sample(X, rng())),
        (Truth(lambda features: features[:, 1]), X[:, 1]),
        (Ones(), np.ones(6)),
    ):
        np.testing.assert_array_equal(index.estimates(known, X, rng), expected)


def test_draws_depend_on_seed_and_name_alone() -> None:
    def draw(*arguments: object) -> list[float]:
        return list(generator(*arguments).standard_normal(3))  # type: ignore[arg-type]

    assert draw(1, 7) == draw(1, 7)
    others = [draw(1, 7), draw(2, 7), draw(1, 8), draw(1, "7"), draw(1, 7, "propensities")]
    others += [draw(17, ""), draw(1, "7/"), draw(-1, 7)]
    assert len({values[0] for values in others}) == len(others)


def policy(seed: int) -> COAF:
    return COAF(belief=belief(), index=Thompson(), rate=Fixed(0.1), seed=seed, draws=0)


def test_the_same_seed_and_round_id_give_the_same_draw() -> None:
    def estimates(seed: int, key: str | None) -> list[float]:
        return list(policy(seed).decide(Round(X, Additive(1.0, 1.0), key=key)).estimates)

    assert estimates(0, "a") == estimates(0, "a")
    seen = [estimates(0, "a"), estimates(1, "a"), estimates(0, "b"), estimates(0, None)]
    assert len({values[0] for values in seen}) == 4


def test_numbered_rounds_draw_anew_after_each_commit() -> None:
    one = policy(0)
    patch = Round(X, Additive(1.0, 1.0))
    first = one.decide(patch)
    one.commit(first)
    second = one.decide(patch)
    assert (first.estimates != second.estimates).all()


def test_draws_are_of_the_right_spread() -> None:
    """Z = (x·θ − x·θ̄)/(√β ‖x‖_{V⁻¹}) over 4000 round ids is standard normal, to 4 errors."""
    known, x = belief(), X[:1]
    one = COAF(belief=known, index=Thompson(), rate=Fixed(0.1), draws=0)
    latency = Additive(1.0, 1.0)
    values = np.array([one.decide(Round(x, latency, key=str(j))).estimates[0] for j in range(4000)])
    width = np.sqrt(x[0] @ np.linalg.solve(known.precision, x[0]))
    z = (values - known.mean(x)[0]) / (known.radius * width)
    assert abs(z.mean()) <= 4.0 / np.sqrt(4000)
    assert abs(z.var() - 1.0) <= 4.0 * np.sqrt(2.0 / 4000)


def test_the_oracle_must_answer_for_every_arm() -> None:
    patch = Round(X, Additive(1.0, 1.0))
    with pytest.raises(ValueError, match=r"means\(features\) gave 2 for 6 arms"):
        COAF(index=Truth(lambda features: features[:2, 0])).decide(patch)
    with pytest.raises(ValueError, match=r"means\(features\)\[0\] is nan"):
        COAF(index=Truth(lambda features: np.full(6, np.nan))).decide(patch)
    with pytest.raises(ValueError, match=r"means\(features\) must have 1 dimension"):
        COAF(index=Truth(lambda features: features)).decide(patch)


@pytest.mark.parametrize("index", [Upper(), Mean(), Thompson(), Ones()])
def test_indices_are_saved_by_name(index: Upper | Mean | Thompson | Ones) -> None:
    assert type(load(save(index))) is type(index)


def test_indices_that_cannot_be_saved_or_loaded() -> None:
    with pytest.raises(ValueError, match="a policy with index Truth cannot be saved"):
        save(Truth(lambda features: features[:, 0]))
    with pytest.raises(ValueError, match="state names an unknown index 'lower'"):
        load({"index": "lower"})
    with pytest.raises(ValueError, match="state has no entry 'index'"):
        load({})
