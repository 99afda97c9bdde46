"""What was expected before any score, and what scores made of it, in words."""

from collections.abc import Sequence

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.mixture import Mixture
from coaf.bandit.beliefs.nested.nested import Nested
from coaf.cryoem.pilots.knowledge import Knowledge
from coaf.cryoem.unit import percent

KINDS = ("what is seen of holes means what it usually does", "it means something else, or nothing")


def guessed(belief: Nested | Mixture | None, earlier: Sequence[Knowledge]) -> str:
    """Of a belief that begins with these earlier grids, and then as grids usually are, or else.

    Examples
    --------
    >>> two = [Nested(1, scale=1.0), Nested(1, scale=3.0)]
    >>> print(guessed(Mixture(two, weights=[0.6, 0.4]), ()))
    Before any score, trust was given so: 60 % to grids where what is seen of holes means what it \
usually does, 40 % to grids where it means something else, or nothing. No score has come.
    """
    rows = 0 if belief is None else belief.rows
    told = f"{rows:,} score{'s' if rows != 1 else ''}"
    if not isinstance(belief, Mixture):
        since = f"so far from {told}" if rows else "and no score has come"
        return f"Nothing was expected of what is seen of holes: it is learned, {since}."
    before, now = _added(belief.trusted, earlier), _added(belief.weights, earlier)
    kinds = [f"grids where {kind}" for kind in KINDS]
    if earlier:
        kinds.insert(0, f"grids like the earlier {'one' if len(earlier) == 1 else 'ones'}")
    given = [f"{percent(w)} to {kind}" for w, kind in zip(before, kinds, strict=True)]
    since = (
        f"After {told} it is {' and '.join(map(percent, now))}." if rows else "No score has come."
    )
    return f"Before any score, trust was given so: {', '.join(given)}. {since}"


def _added(weights: FloatArray, earlier: Sequence[Knowledge]) -> list[float]:
    """Those of earlier grids together, then those of each kind."""
    count = len(earlier)
    return [*([float(weights[:count].sum())] if count else []), *weights[count:].tolist()]
