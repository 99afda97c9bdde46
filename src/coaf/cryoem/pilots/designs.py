"""From the features of a survey to those of a belief, and what to expect of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.mixture import Mixture
from coaf.bandit.beliefs.nested.nested import Nested
from coaf.bandit.latency import Latency
from coaf.bandit.problem import Round
from coaf.cryoem.pilots.prediction import (
    SHARES,
    prediction_belief,
    prediction_features,
    typical_patches,
)
from coaf.cryoem.reward import GoodBelow, Reward

# The log odds of a good hole on half of the population of grids, by ice: coefficients of
# `ice_features` and the intercept, and their spread between grids, for cuts from 3.8 to 6 Å;
# where pixels say what they usually do, and elsewhere (`python benchmarks/grid_priors.py`).
ICE_USUAL = ((-2.3, -2.6, -0.25, 0.4), (1.7, 2.2, 1.1, 1.3))
ICE_OTHER = ((0.1, -3.1, -0.2, -0.4), (3.3, 2.6, 1.2, 1.9))
EFFECTS = (0.55, 0.75)  # deviations of squares and patches


@dataclass(frozen=True, slots=True)
class Design:
    """What a belief is given of a patch's holes, how it begins, and what patches to expect."""

    features: Callable[[FloatArray], FloatArray]
    belief: Callable[[], Nested | Mixture]
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
        return Design(looks, partial(_ice_belief, extra is not None), "logistic")
    # Nobody knows beforehand how many particles are many: until scores come, all is taken.
    return Design(looks, lambda: Nested(3 if extra is None else 4, family="gaussian"), "gaussian")


def _ice_belief(predicted: bool) -> Mixture:
    """By ice, and by a prediction of which nothing is expected if there is one."""
    more: tuple[tuple[float, ...], tuple[float, ...]] = ((0.0,), (2.5,)) if predicted else ((), ())
    beliefs = []
    for prior in (ICE_USUAL, ICE_OTHER):
        centre, scale = ((*p[:-1], *m, p[-1]) for p, m in zip(prior, more, strict=True))
        beliefs.append(Nested(len(centre) - 1, centre=centre, scale=scale, effects=EFFECTS))
    return Mixture(beliefs, weights=SHARES)


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
