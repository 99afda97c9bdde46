"""A feature map in front of any belief."""

import json
import pickle
from copy import deepcopy
from typing import Any, Self

import numpy as np
import pytest

import coaf
from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.belief import Belief
from coaf.bandit.beliefs.kernel.kernel import Kernel
from coaf.bandit.beliefs.linear import Linear
from coaf.bandit.beliefs.mapped import Mapped
from coaf.bandit.beliefs.registry import register
from coaf.bandit.checks import check_belief, check_policy
from coaf.bandit.groups import Groups

RBFSampler = pytest.importorskip("sklearn.kernel_approximation").RBFSampler
Nystroem = pytest.importorskip("sklearn.kernel_approximation").Nystroem
ColumnTransformer = pytest.importorskip("sklearn.compose").ColumnTransformer
SimpleImputer = pytest.importorskip("sklearn.impute").SimpleImputer
make_pipeline = pytest.importorskip("sklearn.pipeline").make_pipeline
preprocessing = pytest.importorskip("sklearn.preprocessing")
StandardScaler, OneHotEncoder = preprocessing.StandardScaler, preprocessing.OneHotEncoder
PolynomialFeatures = preprocessing.PolynomialFeatures
FunctionTransformer = preprocessing.FunctionTransformer
SplineTransformer = preprocessing.SplineTransformer

RNG = np.random.default_rng(0)
SEEN = RNG.normal(5.0, 3.0, (60, 2))
ARMS = RNG.normal(5.0, 3.0, (15, 2))


def squares(features: FloatArray) -> FloatArray:
    """Each feature and its square."""
    return np.hstack([features, features**2])


def roots(features: FloatArray) -> FloatArray:
    """Not for negative numbers."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sqrt(features))


class Jitter:
    """One that forgot its random_state."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {}

    def fit(self, X: FloatArray, y: None = None) -> Self:
        self.shift_ = np.random.default_rng().normal()
        return self

    def transform(self, X: FloatArray) -> FloatArray:
        return X + self.shift_


@register("test: labels")
class Labels(Linear):
    """Remembers the groups that it was shown."""

    seen: Any = None

    def mean(self, features: Any, groups: Groups | None = None) -> FloatArray:
        self.seen = groups
        return super().mean(features, groups)


def quadratic() -> Any:
    return make_pipeline(StandardScaler(), PolynomialFeatures(2))


def beliefs() -> dict[str, Belief]:
    return {
        "quadratic": Mapped.fitted(quadratic(), SEEN, Linear.tuned),
        "random": Mapped.fitted(RBFSampler(n_components=8), SEEN, lambda D: Kernel(D, points=9)),
        "function": Mapped(squares, Linear(4, feature_bound=2.0), dim=2),
        "mapped twice": Mapped(
            squares, Mapped(np.tanh, Linear(4, feature_bound=3.0), dim=4), dim=2
        ),
    }


@pytest.mark.parametrize("name", beliefs())
def test_it_keeps_the_contract(name: str) -> None:
    check_belief(beliefs()[name], features=ARMS[:6])


def test_it_is_the_belief_of_mapped_features() -> None:
    belief, y = Mapped.fitted(quadratic(), SEEN, Linear), ARMS[:, 0]
    belief.learn(ARMS, y)
    fitted = quadratic().fit(SEEN)
    scale = 1.0 / np.linalg.norm(fitted.transform(SEEN), axis=1).max()
    np.testing.assert_allclose(np.linalg.norm(belief.map(SEEN), axis=1).max(), 1.0)
    Z, plain = fitted.transform(ARMS) * scale, Linear(6)
    Z /= np.maximum(1.0, np.linalg.norm(Z, axis=1))[:, None]
    plain.learn(Z, y)
    np.testing.assert_allclose(belief.mean(ARMS), plain.mean(Z), rtol=1e-10)
    np.testing.assert_allclose(belief.upper(ARMS), plain.upper(Z), rtol=1e-10)
    draws = belief.sample(ARMS, np.random.default_rng(1)), plain.sample(Z, np.random.default_rng(1))
    np.testing.assert_allclose(*draws, rtol=1e-9)


def test_rows_beyond_the_examples_are_shortened_to_the_bound() -> None:
    belief = Mapped.fitted(quadratic(), SEEN, lambda D: Linear(D, feature_bound=2.0))
    far = belief.map([[500.0, -900.0], [5.0, 5.0]])
    np.testing.assert_allclose(np.linalg.norm(far[0]), 2.0)
    assert np.linalg.norm(far[1]) < 1.0
    assert np.isfinite(belief.upper([[500.0, -900.0]])).all()
    fixed = Mapped(squares, Linear(4), examples=SEEN, scale=0.5)
    np.testing.assert_allclose(fixed.map([[0.1, 0.2]]), [[0.05, 0.1, 0.005, 0.02]])


def test_a_belief_without_a_bound_sees_the_map_as_it_is() -> None:
    belief = Mapped.fitted(StandardScaler(), SEEN, Kernel)
    np.testing.assert_allclose(belief.map(ARMS), (ARMS - SEEN.mean(axis=0)) / SEEN.std(axis=0))


def test_a_sparse_map_will_do() -> None:
    words = np.array([[0.0], [1.0], [2.0]])
    belief = Mapped.fitted(OneHotEncoder(handle_unknown="ignore"), words, Linear.tuned)
    belief.learn([[1.0]] * 20, [0.8] * 20)
    np.testing.assert_allclose(belief.mean([[1.0], [2.0], [7.0]]).round(2), [0.8, 0.0, 0.0])


def test_settings_of_all_kinds_are_restored() -> None:
    """Nested estimators, functions, classes, slices, dictionaries, arrays, and NaN."""
    both = ColumnTransformer(
        [
            ("log", FunctionTransformer(np.log1p), [0]),
            ("hat", SplineTransformer(knots=np.array([[0.0], [9.0], [20.0]])), slice(1, 2)),
            ("word", OneHotEncoder(handle_unknown="ignore"), np.array([1])),
            ("fill", SimpleImputer(missing_values=np.nan), [0, 1]),
        ],
        transformer_weights={"log": 2.0},
    )
    seen = np.abs(SEEN).round()
    belief = Mapped.fitted(both, seen, Linear.tuned)
    restored = Mapped.restore(json.dumps(belief.state()))
    np.testing.assert_array_equal(restored.map(seen), belief.map(seen))
    assert np.ptp(belief.map(seen), axis=0).max() > 0.0


def test_groups_reach_the_belief() -> None:
    belief = Mapped(squares, Labels(4, feature_bound=1e4), dim=2)
    groups = np.array([[1, 2]] * len(ARMS))
    belief.mean(ARMS, groups)
    assert isinstance(belief.belief, Labels)
    assert belief.belief.seen is groups


def test_a_restored_map_is_the_same_map() -> None:
    transformer = make_pipeline(StandardScaler(), Nystroem(n_components=12, gamma=0.3))
    belief = Mapped.fitted(transformer, SEEN, Linear.tuned, seed=5)
    belief.learn(ARMS, ARMS[:, 0])
    for other in (
        Mapped.restore(json.dumps(belief.state())),
        pickle.loads(pickle.dumps(belief)),
        deepcopy(belief),
    ):
        np.testing.assert_array_equal(other.map(ARMS), belief.map(ARMS))
        np.testing.assert_array_equal(other.upper(ARMS), belief.upper(ARMS))
        assert json.dumps(other.state()) == json.dumps(belief.state())
    assert not np.array_equal(
        Mapped.fitted(transformer, SEEN, Linear.tuned, seed=6).map(ARMS), belief.map(ARMS)
    )


def test_a_map_that_comes_out_differently_is_refused() -> None:
    state, other = (Mapped.fitted(quadratic(), X, Linear.tuned).state() for X in (SEEN, ARMS))
    assert Mapped.restore(state).dim == 2
    with pytest.raises(ValueError, match="maps its examples to other features"):
        Mapped.restore({**state, "examples": other["examples"]})


def test_fitting_leaves_the_transformer_alone() -> None:
    transformer = quadratic()
    Mapped.fitted(transformer, SEEN, Linear)
    assert not hasattr(transformer[0], "mean_")


def test_a_policy_with_it_is_saved_and_restored() -> None:
    check_policy(coaf.COAF(belief=beliefs()["function"]))


def test_what_cannot_be_saved_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="cannot be imported by name"):
        Mapped(lambda X: X, Linear(2), dim=2)
    inner = make_pipeline(FunctionTransformer(lambda X: X))
    with pytest.raises(ValueError, match=r"transformer.steps\[0\]\[1\].func is .* by name"):
        Mapped(inner, Linear(2), examples=SEEN)
    with pytest.raises(ValueError, match=r"random_state is .* cannot be saved"):
        Mapped(RBFSampler(random_state=np.random.RandomState(0)), Linear(2), examples=SEEN)
    with pytest.raises(ValueError, match="it must be a function of features, or have fit"):
        Mapped(StandardScaler, Linear(2), examples=SEEN)
    with pytest.raises(ValueError, match="give it a random_state"):
        Mapped(Jitter(), Linear(2), examples=SEEN)

    class Own(Linear):
        pass

    with pytest.raises(ValueError, match="belief is an Own, which could not be restored"):
        Mapped(squares, Own(4), dim=2)
    lost = Mapped(squares, Linear(4), dim=2).state()
    lost["transformer"] = {"name": "nowhere:squares"}
    with pytest.raises(ValueError, match="'nowhere:squares', which is not here"):
        Mapped.restore(lost)


def test_what_does_not_fit_together_is_refused() -> None:
    with pytest.raises(ValueError, match="give examples, the rows that the transformer"):
        Mapped(quadratic(), Linear(6), dim=2)
    with pytest.raises(ValueError, match="give examples, or dim"):
        Mapped(squares, Linear(4))
    with pytest.raises(ValueError, match="dim is 3, but examples have 2 columns"):
        Mapped(squares, Linear(4), examples=SEEN, dim=3)
    with pytest.raises(ValueError, match=r"gave shape \(60, 6\) .* has dim=5"):
        Mapped(quadratic(), Linear(5), examples=SEEN)
    belief = Mapped(roots, Linear(2), dim=2)
    before = json.dumps(belief.state())
    with pytest.raises(RuntimeError, match=r"map failed: transformed features\[1, 0\] is nan"):
        belief.learn([[0.1, 0.1], [-1.0, 0.1]], [0.0, 1.0])
    assert json.dumps(belief.state()) == before
