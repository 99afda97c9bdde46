"""What a shot is taken under, which is not the ice: defocus, its place in the pattern and so on.

A score carries them by these names (`Score.more`, and `values` of the event `ScoreCame`), or the
exposure does for all shots of its hole (`known` of `Exposed`); a recording has a column for each.
"""

from collections.abc import Mapping
from math import isfinite
from typing import NamedTuple


class Circumstance(NamedTuple):
    """The unit of a number, and what it means."""

    unit: str
    meaning: str


CIRCUMSTANCES = {
    "defocus": Circumstance("µm", "target or measured, with one sign in all of a session"),
    "place": Circumstance("", "which place of the pattern of shots in a hole: an index"),
    "shift": Circumstance("µm", "how far image shift reached from where the stage was"),
    "order": Circumstance("", "which of the hole's shots it was, in time, from 0"),
    "tilt": Circumstance("°", "of the stage"),
}


def circumstances_of(values: Mapping[str, float | None]) -> dict[str, float]:
    """The circumstances among what is known of a shot; what is no number is not known.

    Examples
    --------
    >>> circumstances_of({"ctf": 3.4, "place": 2.0, "defocus": -1.5, "tilt": None})
    {'defocus': -1.5, 'place': 2.0}
    """
    found = {name: values.get(name) for name in CIRCUMSTANCES}
    return {name: float(v) for name, v in found.items() if v is not None and isfinite(v)}
