"""Settings of a kernel belief from labelled examples."""

import json
from typing import Any

import numpy as np
import pytest

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.kernel.kernel import Kernel
from coaf.bandit.beliefs.kernel.likelihood import MOST, _Search, likeliest


def rows(seed: int, n: int, dim: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, dim))
    return X, np.sin(3.0 * X[:, 0]) + 0.3 * rng.standard_normal(n)


@pytest.mark.parametrize("kind", ["rbf", "matern"])
@pytest.mark.parametrize("space", [(), (1,), (0, 2)])
def test_the_gradient_of_the_likelihood(kind: Any, space: tuple[int, ...]) -> None:
    from scipy.optimize import check_grad

    search = _Search(*rows(9, 30, 3), space, kind, True)
    for at in search.starts():
        assert check_grad(lambda p: search(p)[0], lambda p: search(p)[1], at) < 1e-4


@pytest.mark.parametrize("kind", ["rbf", "matern"])
def test_settings_are_found_from_examples(kind: Any) -> None:
    """400 examples of a known process: within a factor of 2, the noise within a fifth."""
    truth = Kernel(
        3, length_scale=0.6, signal=0.7, noise=0.2, prior_mean=0.5, kind=kind, space=(1, 2),
        space_length=30.0, space_signal=0.4,
    )  # fmt: skip
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.uniform(-3.0, 3.0, 400), rng.uniform(0.0, 300.0, (400, 2))])
    f = truth._memory.basis.covariance.draw(rng)(X) + 0.5
    found = likeliest(X, f + 0.2 * rng.standard_normal(400), space=(1, 2), kind=kind)
    for name, value in [("signal", 0.7), ("space_signal", 0.4), ("space_length", 30.0)]:
        assert 0.5 < found[name] / value < 2.0, name
    assert 0.3 < found["length_scale"][0] < 1.2
    assert 0.16 < found["noise"] < 0.24
    belief = Kernel(3, **found)
    assert belief.rows == 0.0


def test_a_fitted_belief_starts_from_its_examples() -> None:
    X, y = rows(10, MOST + 100, 2)
    belief = Kernel.fitted(X, y, per_feature=True, points=80, mean_bound=1.0)
    assert belief.rows == len(y)
    assert belief.length_scale is not None
    assert belief.length_scale[1] > 5.0 * belief.length_scale[0], "the second feature is no use"
    Z = rows(11, 200, 2)[0]
    assert np.abs(belief.mean(Z) - np.sin(3.0 * Z[:, 0])).mean() < 0.07
    before = belief.mean(Z)
    belief.learn(*rows(12, 20, 2))
    belief.refit(np.zeros((0, 2)), np.zeros(0))
    np.testing.assert_array_equal(belief.mean(Z), before)


def test_settings_are_found_again_to_the_bit() -> None:
    X, y = rows(10, 60, 2)
    one, other = (Kernel.fitted(X, y, kind="matern") for _ in range(2))
    assert json.dumps(one.state()) == json.dumps(other.state())


def test_examples_that_say_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 3, and not all equal"):
        likeliest(np.ones((5, 2)), np.ones(5))
