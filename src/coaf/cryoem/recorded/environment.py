"""Settings that others have published results in, by name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Environment(NamedTuple):
    """All holes are known from the start, and who plays is free to choose.

    Attributes
    ----------
    seconds
        What things take: entries of `Seconds`.
    hours
        The time there is.
    good_below
        Good is a CTF fit below so many Å.
    """

    seconds: Mapping[str, float]
    hours: float
    good_below: float


# CryoRL (Fan et al., 2022): an exposure takes 1 minute, 2 as the first of a patch, 6 of a square,
# 8 of a tile, which they call a grid.
CRYORL = Environment(
    MappingProxyType({"move": 60, "expose": 60, "shot": 60, "to_square": 240, "to_tile": 120}),
    hours=8.0,
    good_below=6.0,
)
ENVIRONMENTS = {"cryorl": CRYORL}


def environment_of(name: str | None) -> Environment | None:
    """The environment of that name; None for none."""
    if name is not None and name not in ENVIRONMENTS:
        raise ValueError(f"environment is {name!r}; there are {', '.join(ENVIRONMENTS)}")
    return None if name is None else ENVIRONMENTS[name]
