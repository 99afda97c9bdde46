"""From the features of a survey to those of a belief, and what to expect of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil, sqrt

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.mixture import Mixture
from coaf.bandit.beliefs.nested.nested import Nested
from coaf.bandit.latency import Latency
from coaf.bandit.problem import Round
from coaf.cryoem.grid import Patch
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
# What holes near each other share beyond their patch: its deviation to begin with, and over how
# many spacings likeness falls to 1/e. Of one real grid's residuals those of the nearest holes
# correlate .30, and those of holes four spacings away not at all; of another's hardly any do.
NEAR, REACH = 0.7, 1.5
PLACES = 2  # columns of a belief that is given the places of holes
_APART = 1e3  # so far apart are holes of which nobody knows where they are


@dataclass(frozen=True, slots=True)
class Design:
    """What a belief is given of a patch's holes, how it begins, and what patches to expect.

    Attributes
    ----------
    features
        From what a survey found of the holes of a patch to what the belief is given of them.
    belief
        Makes it.
    family
        Of its rewards.
    typical
        Patches of so many holes to expect, and with which latency.
    placed
        Whether the belief is given the places of holes, before their features.
    """

    features: Callable[[FloatArray], FloatArray]
    belief: Callable[[], Nested | Mixture]
    family: str
    typical: Callable[[Latency, int], list[Round]] = lambda latency, holes: []
    placed: bool = False

    @property
    def portable(self) -> bool:
        """Whether what is learned means the same on another grid: it has stated scales."""
        return self.placed and self.family == "logistic"

    def rows(self, patch: Patch, found: FloatArray, *, placed: bool = True) -> FloatArray:
        """What the belief is given of the holes of a patch, of which a survey found this.

        Where it is not known where holes are (`placed`), each shares something with itself alone.
        """
        features = self.features(found)
        if not self.placed:
            return features
        spots = spots_of(patch)
        if not placed:
            spots = _APART * np.outer(np.arange(len(spots)), [1.0, 0.0])
        return np.hstack([spots, features])

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

        def typical(latency: Latency, holes: int) -> list[Round]:
            return typical_patches(cut, latency, block_of(holes))

        belief = partial(prediction_belief, NEAR)
        return Design(predicted, belief, "logistic", typical, placed=True)
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
        return Design(looks, partial(_ice_belief, extra is not None), "logistic", placed=True)
    # Nobody knows beforehand how many particles are many: until scores come, all is taken.
    return Design(looks, _amounts(3 if extra is None else 4), "gaussian", placed=True)


def _ice_belief(predicted: bool) -> Mixture:
    """By ice, and by a prediction of which nothing is expected if there is one."""
    more: tuple[tuple[float, ...], tuple[float, ...]] = ((0.0,), (2.5,)) if predicted else ((), ())
    beliefs = []
    for prior in (ICE_USUAL, ICE_OTHER):
        centre, scale = ((*p[:-1], *m, p[-1]) for p, m in zip(prior, more, strict=True))
        dim = len(centre) + 1  # two places, the features, and no intercept
        beliefs.append(Nested(dim, centre=centre, scale=scale, effects=EFFECTS, near=NEAR))
    return Mixture(beliefs, weights=SHARES)


def _unknown(columns: int, reward: Reward) -> Design:
    """Of columns that say nothing by their names all is learned, their units as well."""
    family = reward.family

    def shown(rows: FloatArray) -> FloatArray:
        return rows if columns else np.zeros((len(rows), 1))

    if family != "logistic":
        return Design(shown, _amounts(max(columns, 1)), family, placed=True)
    if columns:
        return Design(shown, partial(Nested, columns, effects=EFFECTS), family)
    belief = partial(Nested, 3, scale=2.5, effects=EFFECTS, near=NEAR)
    return Design(shown, belief, family, placed=True)


def _amounts(features: int) -> Callable[[], Nested]:
    """Of rewards other than 0 and 1, in whatever unit they are."""
    return partial(Nested, PLACES + features, family="gaussian", near=True)


def block_of(holes: int) -> FloatArray:
    """Where so many holes of a block lie, as `spots_of` has it."""
    side = max(ceil(sqrt(holes)), 1)
    at: FloatArray = np.stack(np.divmod(np.arange(holes), side), axis=1).astype(np.float64)
    at -= at.mean(axis=0)
    return at / REACH


def spots_of(patch: Patch) -> FloatArray:
    """Where the holes of a patch lie (n, 2), in units of how far their likeness reaches.

    Examples
    --------
    >>> from coaf.cryoem.grid import Hole
    >>> holes = tuple(Hole(f"h{i}", 100.0 + 2.5 * i, 7.0) for i in range(3))
    >>> spots_of(Patch("p", "s", holes, 102.5, 7.0)).round(2).tolist()
    [[-0.67, 0.0], [0.0, 0.0], [0.67, 0.0]]
    """
    at: FloatArray = np.array([(hole.x, hole.y) for hole in patch.holes], dtype=np.float64)
    at = at - at.mean(axis=0)
    if len(at) < 2:
        return at
    apart = np.hypot(*(at[:, None] - at).transpose(2, 0, 1))
    np.fill_diagonal(apart, np.inf)
    spacing = float(np.median(apart.min(axis=1)))
    return at / (REACH * spacing) if spacing > 0.0 else at


def ice_features(ice: FloatArray, around: FloatArray) -> FloatArray:
    """Ice relative to a usual 0.2 mean free paths: itself, squared, and that of neighbours.

    Too little ice is bad and too much is worse: the square lets a belief find where it is best.
    """
    u, v = np.clip((np.stack([ice, around]) - 0.2) / 0.3, -1.0, 2.0)
    return np.column_stack([u, u * u, v])
