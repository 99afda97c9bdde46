"""A feature map in front of any belief."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import FloatArray, floats, number
from coaf.bandit.beliefs.belief import Belief, Bounded, FeaturesBounded, LearnsSize
from coaf.bandit.beliefs.estimators import decode_estimator, encode_estimator
from coaf.bandit.beliefs.registry import is_registered, register, restore_belief
from coaf.bandit.beliefs.rows import check_features
from coaf.bandit.groups import Groups
from coaf.bandit.shown import Shown, shown
from coaf.bandit.state import entry, pack, seal, unpack, unseal
from coaf.bandit.threads import on_one_thread

_PROBED = 8  # examples whose features are saved, to notice a map that came out differently


def _like_sklearn(transformer: Any) -> bool:
    return not isinstance(transformer, type) and all(
        hasattr(transformer, name) for name in ("fit", "transform", "get_params")
    )


def _fitted(transformer: Any, examples: FloatArray | None, seed: int) -> Any:
    """A copy fitted to the examples, or the function itself."""
    if not _like_sklearn(transformer):
        if not callable(transformer) or isinstance(transformer, type):
            raise ValueError(
                f"transformer is {transformer!r}; it must be a function of features, or have fit, "
                "transform and get_params as scikit-learn's do"
            )
        return transformer
    if examples is None:
        raise ValueError("give examples, the rows that the transformer is fitted to")
    recipe = encode_estimator(transformer, "transformer")
    fitted, again = (decode_estimator(recipe, seed).fit(examples) for _ in range(2))
    if not np.array_equal(_transformed(fitted, examples), _transformed(again, examples)):
        raise ValueError(
            "the transformer, fitted twice to the same examples, maps them differently, so it "
            "could not be restored: give it a random_state"
        )
    return fitted


def _transformed(transformer: Any, X: FloatArray) -> FloatArray:
    """Its output as an array, dense and finite.

    The features themselves were checked, so what goes wrong here is the map's own fault, and no
    mistake of the caller's: a policy goes on without it.
    """
    try:
        mapped = transformer.transform(X) if _like_sklearn(transformer) else transformer(X)
        dense = mapped.toarray() if hasattr(mapped, "toarray") else mapped
        return floats("transformed features", dense, ndim=2)
    except ValueError as error:
        raise RuntimeError(f"the feature map failed: {error}") from error


@register("mapped")
@on_one_thread("__init__", "map")
class Mapped(Shown):
    """A belief that sees φ(x) in place of x: polynomials, random features, anything of the kind.

    Parameters
    ----------
    transformer
        A transformer or pipeline like scikit-learn's, or an importable function, from features
        (n, dim) to (n, D), row by row. A transformer is copied and fitted to `examples`, whether
        or not it was fitted before; what has a random_state that is None gets `seed`.
    belief
        What is known of the mean reward as a function of φ(x); its dim is D. It is copied.
    examples : (m, dim)
        Rows that the transformer is fitted to. They are saved, so a few hundred are better than
        all there are. Functions do without.
    dim
        Number of features, for a function without examples.
    scale
        A factor on φ(x). Unless given, what brings the longest example to the `feature_bound` of
        the belief, and 1 if it has none, or there are no examples.
    seed
        For transformers that are random.

    Notes
    -----
    Where the belief has a `feature_bound`, rows that are longer, once scaled, are shortened to it:
    far outside the examples the map saturates, rather than stop a session. ‖θ‖ ≤ norm_bound of a
    linear belief then speaks of the scaled features, and mostly needs to be larger than 1.

    A fitted transformer is no JSON. The state is its class, parameters, seed and examples, and it
    is fitted again when restored. A few mapped rows are saved as well, and must come out the same:
    another release of scikit-learn might map features differently from those that were learned.
    Restoring imports what the state names, so restore only states that you trust.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import PolynomialFeatures, StandardScaler
    >>> from coaf.bandit.beliefs.linear import Linear
    >>> seen = np.random.default_rng(0).uniform(0.0, 50.0, (100, 2))
    >>> quadratic = make_pipeline(StandardScaler(), PolynomialFeatures(2))
    >>> belief = Mapped.fitted(quadratic, seen, Linear.tuned)
    >>> belief.dim, belief.belief.dim
    (2, 6)
    """

    def __init__(
        self,
        transformer: Any,
        belief: Belief,
        *,
        examples: npt.ArrayLike | None = None,
        dim: int | None = None,
        scale: float | None = None,
        seed: int = 0,
    ) -> None:
        if not is_registered(belief):
            raise ValueError(
                f"belief is {shown(belief)}, which could not be restored: decorate its "
                'class with register("its kind") of coaf.bandit.beliefs.registry'
            )
        self.seed, self.belief = int(seed), deepcopy(belief)
        self.examples = None if examples is None else floats("examples", examples, ndim=2)
        columns = dim if self.examples is None else self.examples.shape[1]
        if columns is None:
            raise ValueError("give examples, or dim, the number of features, for a function")
        if dim not in (None, columns):
            raise ValueError(f"dim is {dim}, but examples have {columns} columns")
        self.dim = int(number("dim", columns, low=1))
        self.transformer = _fitted(transformer, self.examples, self.seed)
        self._recipe = encode_estimator(transformer, "transformer")
        stated = self.belief
        bound = stated.feature_bound if isinstance(stated, FeaturesBounded) else None
        self._bound = None if bound is None else float(bound)
        self.scale = 1.0 if scale is None else number("scale", scale, above=0.0)
        if self.examples is not None:
            mapped = self._raw(self.examples)
            longest = float(np.linalg.norm(mapped, axis=1).max(initial=0.0))
            if scale is None and self._bound is not None and longest > 0.0:
                self.scale = self._bound / longest

    @classmethod
    def fitted(
        cls,
        transformer: Any,
        examples: npt.ArrayLike,
        make: Callable[[int], Belief],
        *,
        scale: float | None = None,
        seed: int = 0,
    ) -> Self:
        """The map fitted to examples, before the belief `make(D)`; D is found from them.

        `Linear.tuned` is such a `make`, and so is `lambda D: Linear(D, norm_bound=3.0)`.
        """
        X = floats("examples", examples, ndim=2)
        mapped = _transformed(_fitted(transformer, X, seed), X[:1])
        return cls(transformer, make(mapped.shape[1]), examples=X, scale=scale, seed=seed)

    def _raw(self, X: FloatArray) -> FloatArray:
        if not len(X):  # which transformers refuse
            return np.zeros((0, self.belief.dim))
        mapped = _transformed(self.transformer, X)
        if mapped.shape != (len(X), self.belief.dim):
            raise ValueError(
                f"the transformer gave shape {mapped.shape} for {len(X)} rows, but the belief "
                f"behind it has dim={self.belief.dim}"
            )
        return mapped

    def map(self, features: npt.ArrayLike) -> FloatArray:
        """What the belief is shown for these features."""
        Z = self._raw(check_features(features, self.dim)) * self.scale
        if self._bound is not None and len(Z):
            Z *= np.minimum(1.0, self._bound / np.maximum(np.linalg.norm(Z, axis=1), 1e-300))[
                :, None
            ]
        return Z

    @property
    def reward_size(self) -> float:
        """The belief's `reward_size`; infinite where it is stated."""
        return self.belief.reward_size if isinstance(self.belief, LearnsSize) else np.inf

    @property
    def mean_bound(self) -> float | None:
        """The belief's `mean_bound`, if it has one."""
        return self.belief.mean_bound if isinstance(self.belief, Bounded) else None

    def mean(self, features: npt.ArrayLike, groups: Groups | None = None) -> FloatArray:
        """The belief's estimate for each mapped arm."""
        return self.belief.mean(self.map(features), groups)

    def upper(self, features: npt.ArrayLike, groups: Groups | None = None) -> FloatArray:
        """The largest mean reward that the belief allows each mapped arm."""
        return self.belief.upper(self.map(features), groups)

    def sample(
        self, features: npt.ArrayLike, rng: np.random.Generator, groups: Groups | None = None
    ) -> FloatArray:
        """One joint draw."""
        return self.belief.sample(self.map(features), rng, groups)

    def learn(
        self, features: npt.ArrayLike, rewards: npt.ArrayLike, groups: Groups | None = None
    ) -> None:
        """Add any number of rows."""
        self.belief.learn(self.map(features), np.asarray(rewards, dtype=np.float64), groups)

    def refit(
        self, features: npt.ArrayLike, rewards: npt.ArrayLike, groups: Groups | None = None
    ) -> None:
        """Start again from the belief's prior with these rows; the map stays."""
        self.belief.refit(self.map(features), np.asarray(rewards, dtype=np.float64), groups)

    def forget(self, factor: float) -> None:
        """Let what was learned count `factor` of what it did."""
        self.belief.forget(factor)

    def settle(self) -> None:
        """Let what is known now be the prior."""
        self.belief.settle()

    def _probe(self) -> FloatArray:
        rows = np.zeros((0, self.dim)) if self.examples is None else self.examples[:_PROBED]
        return self._raw(rows)

    def state(self) -> dict[str, Any]:
        """How to make the map, its examples, and the belief's state, as JSON."""
        return seal(
            "mapped",
            {
                "dim": self.dim,
                "scale": self.scale,
                "seed": self.seed,
                "transformer": self._recipe,
                "examples": None if self.examples is None else pack(self.examples),
                "probe": pack(self._probe()),
                "belief": self.belief.state(),
            },
        )

    @classmethod
    def restore(cls, state: Mapping[str, Any] | str) -> Self:
        """The belief that `state` was taken from; the transformer is fitted again."""
        state = unseal("mapped", state)
        recipe, seed = entry(state, "transformer"), entry(state, "seed")
        examples = None if entry(state, "examples") is None else unpack(state, "examples")
        belief = cls(
            decode_estimator(recipe, seed),
            restore_belief(entry(state, "belief")),
            examples=examples,
            dim=entry(state, "dim"),
            scale=entry(state, "scale"),
            seed=seed,
        )
        belief._recipe = recipe
        saved, now = unpack(state, "probe"), belief._probe()
        if saved.shape != now.shape or not np.allclose(saved, now, rtol=1e-9, atol=1e-12):
            raise ValueError(
                "the transformer, fitted again, maps its examples to other features than those "
                "that were learned: was the state saved with another release of scikit-learn?"
            )
        return belief
