"""What was stated of rewards, and whether they keep to it."""

import math
import warnings
from typing import Protocol

from coaf.bandit.arrays import FloatArray
from coaf.bandit.policies.faults import AssumptionWarning

SURE = 4.0  # standard deviations beyond which chance is no excuse
ENOUGH = 16  # rows


class Warned(Protocol):
    """A belief that remembers what it has warned of."""

    _warned: set[str]


class CountsBeyond(Warned, Protocol):
    """One that also counts rewards of arms estimated at its bound, and by how much they exceed."""

    _beyond: tuple[float, float]


def compare(
    belief: CountsBeyond, means: FloatArray, rewards: FloatArray, bound: float, noise: float
) -> None:
    """Rows were learned whose means would be these without the bound."""
    at, (excess, count) = means >= bound, belief._beyond
    belief._beyond = (excess + float((rewards[at] - bound).sum()), count + float(at.sum()))
    check_mean_bound(belief, bound, *belief._beyond, noise)


def contradict(belief: Warned, argument: str, seen: str, effect: str) -> None:
    """Warn once that what was stated as `argument` does not fit what was seen."""
    if argument not in belief._warned:
        belief._warned.add(argument)
        warnings.warn(
            f"{type(belief).__name__}({argument}={getattr(belief, argument):g}): {seen}. {effect}",
            AssumptionWarning,
            stacklevel=5,
        )


def check_mean_bound(
    belief: Warned,
    bound: float,
    excess: float,
    count: float,
    noise: float,
    *,
    instead: str = "use ScaleFree, which needs none",
) -> None:
    """`count` rewards of arms estimated at the bound exceed it by `excess` in all."""
    if count >= ENOUGH and excess > SURE * noise * math.sqrt(count):
        contradict(
            belief,
            "mean_bound",
            f"{count:.0f} rewards of arms estimated at it average {bound + excess / count:.4g}",
            "Estimates are cut there, so that such arms are not told apart: raise it, or "
            f"{instead}",
        )


def check_noise(
    belief: Warned,
    noise: float,
    loss: float,
    rows: float,
    *,
    instead: str = "use ScaleFree, which learns it",
) -> None:
    """Rewards are `loss` in squares from their estimates, over so many rows."""
    if rows >= ENOUGH and loss > 4.0 * noise**2 * rows:
        contradict(
            belief,
            "noise",
            f"{rows:.0f} rewards are {math.sqrt(loss / rows):.4g} from their estimates, by root "
            "mean square",
            "The confidence set is too small, so that good arms may be given up: raise it, or "
            f"{instead}",
        )


def check_norm_bound(belief: Warned, bound: float, norm: float, doubt: float) -> None:
    """Coefficients were found to have this norm, give or take a standard deviation of `doubt`."""
    if norm - SURE * doubt > bound:
        contradict(
            belief,
            "norm_bound",
            f"the coefficients found have norm {norm:.4g}",
            "The confidence set is not where they are: raise it, or use ScaleFree",
        )
