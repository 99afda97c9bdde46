"""A latency of one's own: two detectors work in parallel, so the slower half counts."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import coaf
from coaf.bandit.checks import check_latency


@dataclass(frozen=True)
class TwoDetectors:
    """Arms with even numbers go to one detector, the others to the other."""

    base: float
    each: float

    def seconds(self, chosen: npt.NDArray[np.bool_]) -> float:
        """The time until the busier detector is done."""
        return self.base + self.each * max(int(chosen[::2].sum()), int(chosen[1::2].sum()))

    def check(self, n: int) -> None:
        """Any number of arms will do."""


latency = TwoDetectors(base=5.0, each=2.0)
check_latency(latency, n=6)
policy = coaf.COAF(dim=2)
decision = policy.decide(coaf.Round(features=np.eye(2)[[0, 1, 0, 1, 0, 1]], latency=latency))
print(decision.why, "exact:", decision.exact)
