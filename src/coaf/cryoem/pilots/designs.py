"""From the features of a survey to those of a belief, and what to expect of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.nested.nested import Nested
from coaf.bandit.latency import Latency
from coaf.bandit.problem import Round
from coaf.cryoem.pilots.prediction import (
    EFFECTS,
    prediction_belief,
    prediction_features,
    typical_patches,
)
from coaf.cryoem.reward import GoodBelow, Reward

# The log odds of a good hole on half of the population of grids, by ice: coefficients of
# `ice_features` and the intercept, and their spread between grids, for cuts from 3.8 to 6 Å
# (`python benchmarks/grid_priors.py`).
ICE_CENTRE = (-1.0, -2.9, -0.25, 0.0)
ICE_SPREAD = (2.9, 2.4, 1.2, 1.7)


@dataclass(frozen=True, slots=True)
class Design:
    """What a belief is given of a patch's holes, how it begins, and what patches to expect."""

    features: Callable[[FloatArray], FloatArray]
    belief: Callable[[], Nested]
    family: str
    typical: Callable[[Latency, int], list[Round]] = lambda latency, holes: []

    def target(self, reward: float) -> float:
        """The reward as the belief learns it: shares of 1 for a logistic one."""
        return min(max(reward, 0.0), 1.0) if self.family == "logistic" else reward


def design_for(columns: Sequence[str], reward: Reward) -> Design:
    """The design that suits what a survey brings and what is rewarded.

    With a predicted CTF and a cut in Å the prediction is used, else the ice in and around a hole.
    Columns of other names are learned from nothing; without any, squares and patches are all that
    holes differ by.
    """
    names = list(columns)
    if isinstance(reward, GoodBelow) and "prediction" in names:
        at, cut = names.index("prediction"), reward.cut

        def predicted(rows: FloatArray) -> FloatArray:
            return prediction_features(np.maximum(rows[:, at], 0.5), cut)

        typical = partial(typical_patches, cut)
        return Design(predicted, prediction_belief, "logistic", typical)
    if "ice" not in names:
        return _unknown(len(names), reward)
    ice, around = names.index("ice"), names.index("neighbours") if "neighbours" in names else None
    extra = names.index("prediction") if "prediction" in names else None

    def looks(rows: FloatArray) -> FloatArray:
        found = ice_features(rows[:, ice], rows[:, ice if around is None else around])
        if extra is None:
            return found
        return np.column_stack([found, np.log(np.maximum(rows[:, extra], 0.5) / 5.0)])

    if reward.family == "logistic":
        more = () if extra is None else (0.0,)
        centre = (*ICE_CENTRE[:-1], *more, ICE_CENTRE[-1])
        scale = (*ICE_SPREAD[:-1], *(2.5 for _ in more), ICE_SPREAD[-1])
        return Design(
            looks,
            lambda: Nested(len(centre) - 1, centre=centre, scale=scale, effects=EFFECTS),
            "logistic",
        )
    # Nobody knows beforehand how many particles are many: until scores come, all is taken.
    return Design(looks, lambda: Nested(3 if extra is None else 4, family="gaussian"), "gaussian")


def _unknown(columns: int, reward: Reward) -> Design:
    """Of columns that say nothing by their names all is learned, their units as well."""
    family = reward.family

    def shown(rows: FloatArray) -> FloatArray:
        return rows if columns else np.zeros((len(rows), 1))

    return Design(shown, lambda: Nested(max(columns, 1), family=family, effects=EFFECTS), family)


def ice_features(ice: FloatArray, around: FloatArray) -> FloatArray:
    """Ice relative to a usual 0.2 mean free paths: itself, squared, and that of neighbours.

    Too little ice is bad and too much is worse: the square lets a belief find where it is best.
    """
    u, v = np.clip((np.stack([ice, around]) - 0.2) / 0.3, -1.0, 2.0)
    return np.column_stack([u, u * u, v])
