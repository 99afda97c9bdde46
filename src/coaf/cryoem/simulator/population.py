"""A population of grids as wide as real ones: what a pilot meets that knows no grid beforehand.

Real grids differ far more than one simulated grid from another: the share of good holes has been
seen from .12 to .60, the correlation of holes within a patch from .05 to .30, patches of one hole
and of forty, and pixels that say much, nothing, or the opposite of what they said last time. What
is fitted is fitted to grids of the "develop" half, and judged on those of the other.
"""

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from coaf.bandit.arrays import number
from coaf.cryoem.simulator.conditions import Conditions

Half = Literal["develop", "judge"]
Relation = Literal["usual", "shifted", "flat", "inverted"]
Effects = Literal["strong", "weak", "none"]

RELATIONS: dict[Relation, float] = {"usual": 0.55, "shifted": 0.2, "flat": 0.15, "inverted": 0.1}
_EFFECTS: dict[Effects, float] = {"strong": 0.45, "weak": 0.35, "none": 0.2}
_SIDES = (
    *((1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (3, 3), (3, 4), (4, 4), (4, 5), (5, 5), (5, 6)),
    *((6, 6), (5, 8)),
)  # holes along a patch


@dataclass(frozen=True, slots=True)
class Member:
    """A grid of the population, and what kind of grid it is.

    Attributes
    ----------
    seed
        For `Simulator`.
    conditions
        Its numbers.
    relation
        What pixels say of quality: the usual, the usual with the scale moved far, nothing, or the
        opposite.
    effects
        Whether holes of a square and of a patch are alike.
    """

    seed: int
    conditions: Conditions
    relation: Relation
    effects: Effects

    @property
    def holes(self) -> int:
        """How many a whole patch has."""
        return int(self.conditions.patch_rows) * int(self.conditions.patch_columns)


def member(index: int, half: Half) -> Member:
    """A grid of one half of the population; the same whenever it is asked.

    Examples
    --------
    >>> one = member(0, "develop")
    >>> one.relation, one.effects, one.holes
    ('inverted', 'weak', 1)
    """
    if half not in get_args(Half):
        raise ValueError(f"half is {half!r}; there are {', '.join(get_args(Half))}")
    index = int(number("index", index, low=0))
    seed = 2 * index + (half == "judge") + 100_000
    rng = np.random.default_rng([seed, 14])
    relation = list(RELATIONS)[rng.choice(len(RELATIONS), p=list(RELATIONS.values()))]
    effects = list(_EFFECTS)[rng.choice(len(_EFFECTS), p=list(_EFFECTS.values()))]
    alike = {"strong": rng.uniform(0.8, 1.3), "weak": rng.uniform(0.3, 0.6), "none": 0.05}[effects]
    slope = {
        "usual": rng.uniform(0.7, 1.2),
        "shifted": rng.uniform(0.7, 1.2),
        "flat": rng.uniform(-0.1, 0.1),
        "inverted": -rng.uniform(0.6, 1.0),
    }[relation]
    moved = rng.choice([-1.0, 1.0]) * rng.uniform(0.4, 0.8) if relation == "shifted" else 0.0
    rows, columns = _SIDES[rng.integers(len(_SIDES))]
    usual = Conditions()
    conditions = usual.scaled(
        square_spread=alike,
        area_drift=alike,
        patch_spread=alike,
        focus=alike,
        crowd_square=alike,
        crowd_patch=alike,
        luck=rng.uniform(0.7, 1.5),
        hole_spread=rng.uniform(0.7, 2.0),
        crowd_hole=rng.uniform(0.6, 1.5),
        sight_hole=np.exp(0.4 * rng.standard_normal()),
        sight_patch=np.exp(0.4 * rng.standard_normal()),
        particles=np.exp(0.8 * rng.standard_normal()),
        floor=rng.uniform(0.85, 1.1),
        thickness=np.exp(rng.uniform(np.log(0.45), np.log(1.2))),
        patch_rows=rows / usual.patch_rows,
        patch_columns=columns / usual.patch_columns,
    )
    conditions = replace(conditions, sight_slope=slope, sight_shift=moved)
    return Member(seed, conditions, relation, effects)
