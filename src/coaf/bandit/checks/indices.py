"""The contract of an index, for the tests of those who bring one."""

from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import FloatArray, locked
from coaf.bandit.beliefs.belief import Belief
from coaf.bandit.beliefs.scale_free import ScaleFree
from coaf.bandit.checks.contract import (
    as_json,
    close,
    coins,
    require,
    require_parts,
    some_features,
)
from coaf.bandit.groups import Groups, check_groups
from coaf.bandit.index import Index, Noise


@dataclass(frozen=True)
class Asked:
    """What an index is asked with; `belief` is None for one that needs none."""

    belief: Belief | None
    X: FloatArray
    groups: Groups | None = None

    def part(self, rows: slice) -> "Asked":
        groups = None if self.groups is None else self.groups[rows]
        return Asked(self.belief, locked(self.X[rows]), groups)


def check_index(
    index: Index,
    belief: Belief | None = None,
    *,
    features: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
) -> None:
    """Check an index: on arms together and alone, with and without groups.

    Parameters
    ----------
    index
        It is copied, never changed.
    belief
        What it is asked with, if it needs a belief; `ScaleFree(3)` that learned a few rows unless
        given.
    features, groups : (n, dim), (n,) or (n, levels)
        Arms to score. Unless given: arms in the ball of the belief's `feature_bound` (1 if it has
        none); and groups of one level.
    """
    require_parts(index, "an index", ("random", "needs_belief", "estimates"))
    for name in ("random", "needs_belief"):
        value = getattr(index, name)
        require(isinstance(value, bool), index, f"{name} is {value!r}; it must be True or False")
    if belief is None:
        belief = ScaleFree(3)
        X = some_features(belief)
        belief.learn(X, coins(len(X)))
    arms = some_features(belief) if features is None else np.array(features, dtype=np.float64)
    labels = np.arange(len(arms)) % 3 if groups is None else groups
    known = deepcopy(belief) if index.needs_belief else None
    plain = Asked(known, locked(arms))
    for asked in (plain, Asked(known, plain.X, check_groups(labels, len(arms)))):
        for check in (
            estimates_are_numbers,
            estimating_is_pure,
            luck_comes_from_rng,
            arms_are_estimated_apart,
        ):
            check(deepcopy(index), asked)


def _estimates(index: Index, asked: Asked, seed: int = 0) -> FloatArray:
    """As a policy asks: the random numbers of a round begin anew each time they are asked for."""

    def noise() -> np.random.Generator:
        require(
            index.random,
            index,
            "asked for random numbers, but says that it is not random: let `random` be True",
        )
        return np.random.default_rng(seed)

    rng: Noise = noise
    return index.estimates(asked.belief, asked.X, rng, asked.groups)


def estimates_are_numbers(index: Index, asked: Asked) -> None:
    for few in (asked, asked.part(slice(1)), asked.part(slice(0))):
        n, found = len(few.X), _estimates(index, few)
        shape = np.shape(found)
        require(shape == (n,), index, f"estimates of {n} arms have shape {shape}, not {(n,)}")
        require(np.isfinite(found).all(), index, "estimates must be finite numbers")


def estimating_is_pure(index: Index, asked: Asked) -> None:
    before = None if asked.belief is None else as_json(asked.belief)
    first, again = _estimates(index, asked), _estimates(index, asked)
    same = np.array_equal(first, again)
    require(
        same,
        index,
        "answers otherwise when asked again with the same random numbers: draw from rng() alone, "
        "and keep nothing",
    )
    after = None if asked.belief is None else as_json(asked.belief)
    require(before == after, index, "changed the belief: only `learn` of a policy may")


def luck_comes_from_rng(index: Index, asked: Asked) -> None:
    if not index.random:
        return
    belief = asked.belief
    certain = belief is not None and close(
        belief.upper(asked.X, asked.groups), belief.mean(asked.X, asked.groups)
    )
    # Several seeds: a belief over a few functions may well draw the same one twice.
    first, *others = (_estimates(index, asked, seed) for seed in range(8))
    lucky = any(not np.array_equal(first, other) for other in others)
    require(
        certain or lucky,
        index,
        "says that it is random, but other random numbers give the same: let `random` be False",
    )


def arms_are_estimated_apart(index: Index, asked: Asked) -> None:
    together, half = _estimates(index, asked), slice(len(asked.X) // 2)
    same = close(_estimates(index, asked.part(half)), together[half])
    require(
        same,
        index,
        "the estimate of an arm depends on the arms asked about with it: rates ask about many "
        "rounds in one call",
    )
