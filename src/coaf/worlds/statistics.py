"""What a comparison says, with intervals: growth of regret, and differences between policies.

Replicates are independent, so all intervals come from leaving each out in turn (the jackknife) and
Student's t: for a mean that is the usual interval, which holds with few replicates, too.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from coaf.bandit.arrays import FloatArray

if TYPE_CHECKING:
    import xarray


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number and its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def known(self) -> bool:
        """Whether there is an interval at all."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    def plain(self) -> dict[str, float | None]:
        """As JSON, which knows no infinity."""
        named = {"value": self.value, "low": self.low, "high": self.high}
        return {name: x if math.isfinite(x) else None for name, x in named.items()}

    def __str__(self) -> str:
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"


def growth(result: "xarray.Dataset", policy: str) -> Estimate:
    """The power of time with which mean paired regret grows, from a quarter of the rounds to all.

    1 is linear; a policy that learns has less. Where regret is 0 at a quarter of the rounds, in
    all replicates or in all but one, there is nothing to grow from: the value is not a number.
    """
    quarter = max(result.sizes["round"] // 4, 1) - 1
    one = result.sel(policy=policy)
    ends = one.paired.isel(round=[quarter, -1]).values
    times = one.seconds.cumsum("round").isel(round=[quarter, -1]).values
    if np.count_nonzero(ends[:, 0] > 0.0) < min(2, len(ends)):
        return Estimate(math.nan, -math.inf, math.inf)

    def power(means: FloatArray) -> FloatArray:
        early, late, start, end = np.moveaxis(means, -1, 0)
        return np.asarray(np.log(late / early) / np.log(end / start))

    return _interval(np.hstack([ends, times]), power)


def mean(values: FloatArray) -> Estimate:
    """The mean over replicates."""
    return _interval(values[:, None], lambda means: means[..., 0])


def difference(result: "xarray.Dataset", form: str, first: str, second: str) -> Estimate:
    """How much more regret `first` ends with than `second`, over the same replicates."""
    last = result[form].isel(round=-1)
    return mean((last.sel(policy=first) - last.sel(policy=second)).values)


def share_of_optimum(result: "xarray.Dataset", policy: str) -> float:
    """The reward per second reached, as a share of the best possible in the same rounds."""
    one = result.sel(policy=policy)
    possible = float(result.attrs["gamma_star"] * one.seconds.sum("round").mean())
    return 1.0 - float(one.paired.isel(round=-1).mean()) / possible


def _interval(values: FloatArray, statistic: Callable[[FloatArray], FloatArray]) -> Estimate:
    """A smooth function of the means over replicates, (replicates, k), and its interval."""
    from scipy.special import stdtrit  # slow to load

    n, whole = len(values), values.sum(axis=0)
    value = float(statistic(whole / n))
    if n < 2:
        return Estimate(value, -math.inf, math.inf)
    without = statistic((whole - values) / (n - 1))
    error = math.sqrt((n - 1) / n * float(np.square(without - without.mean()).sum()))
    reach = float(stdtrit(n - 1, 0.975)) * error
    return Estimate(value, value - reach, value + reach)
