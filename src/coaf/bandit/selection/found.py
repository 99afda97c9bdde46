"""What a method of selection returns."""

from typing import NamedTuple

from coaf.bandit.arrays import BoolArray

# One unit is one partial subset looked at, or what takes about as long.
WORK = 10_000_000


class Found(NamedTuple):
    """A subset, by how much the smallest gap may be smaller, and whether it is proven smallest."""

    chosen: BoolArray
    lost: float = 0.0
    exact: bool = True
