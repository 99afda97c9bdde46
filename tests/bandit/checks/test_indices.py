"""Every index keeps the contract that `check_index` ships to users."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bandit.checks.subjects import INDICES, Average, Doubtful
from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs import Linear, Nested
from coaf.bandit.beliefs.belief import Belief
from coaf.bandit.checks import ContractError, check_index
from coaf.bandit.groups import Groups
from coaf.bandit.index import Index, Noise, Thompson, Upper


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("belief", [None, Linear(2), Nested(3), Linear(3, scale=0.0)])
def test_ours(name: str, belief: Belief | None) -> None:
    check_index(INDICES[name](), belief)


def test_a_users() -> None:
    check_index(Doubtful())
    check_index(Doubtful(), Average())


class Broken:
    """One that draws, with a mistake."""

    random = True
    needs_belief = True

    def __init__(self, how: Callable[[Belief, FloatArray, Noise], Any], **said: Any) -> None:
        self.how = how
        vars(self).update(said)

    def estimates(
        self,
        belief: Belief | None,
        features: FloatArray,
        rng: Noise,
        groups: Groups | None = None,
    ) -> FloatArray:
        assert belief is not None
        found: FloatArray = self.how(belief, features, rng)
        return found


def teaches(belief: Belief, features: FloatArray, rng: Noise) -> FloatArray:
    belief.learn(features, np.ones(len(features)))
    return np.zeros(len(features))


def relative(belief: Belief, features: FloatArray, rng: Noise) -> FloatArray:
    means = belief.mean(features)
    return np.asarray(means - means.sum())


calls = itertools.count()


@pytest.mark.parametrize(
    ("index", "mistake"),
    [
        (Upper, "Upper is a class, not an index: give Upper"),
        (object(), "object: lacks random, needs_belief, estimates"),
        (Broken(lambda b, X, rng: 0.0, random=1), "random is 1; it must be True or False"),
        (Broken(lambda b, X, rng: 0.5), r"estimates of 40 arms have shape \(\), not \(40,\)"),
        (
            Broken(lambda b, X, rng: np.full(len(X), np.inf)),
            "estimates must be finite numbers",
        ),
        (
            Broken(lambda b, X, rng: b.sample(X, rng()), random=False),
            "asked for random numbers, but says that it is not random",
        ),
        (
            Broken(lambda b, X, rng: np.full(len(X), float(next(calls)))),
            "answers otherwise when asked again with the same random numbers",
        ),
        (Broken(teaches), "changed the belief: only `learn` of a policy may"),
        (
            Broken(lambda b, X, rng: b.mean(X)),
            "says that it is random, but other random numbers give the same",
        ),
        (
            Broken(relative, random=False),
            "the estimate of an arm depends on the arms asked about with it",
        ),
    ],
)
def test_mistakes_are_named(index: Index, mistake: str) -> None:
    with pytest.raises(ContractError, match=mistake):
        check_index(index)


def test_a_belief_that_is_certain_leaves_nothing_to_draw() -> None:
    check_index(Thompson(), Linear(3, scale=0.0))
