"""The numbers by which the compiled loop, `replicate.py`, knows indices and rates."""

from typing import NamedTuple

# Indices; the last is `Upper` of a `ScaleFree`.
UPPER, MEANS, THOMPSON, TRUTH, FREE = range(5)
# Rates, and two baselines.
FIXED, ROBBINS_MONRO, RENEWAL, MEMORY, CUT, EVERYTHING, RESTARTING = range(7)


class RateNumbers(NamedTuple):
    """What a rate starts with; those that it has no use for are left as they are."""

    initial: float = 0.0
    xi: float = 1.0
    n_max: float = 0.0  # 0: the most seen
    l_min: float = 0.0  # 0: the least seen
    mean_bound: float = 1.0
    size: float = 0.0


INITIAL, XI, N_MAX, L_MIN, MEAN_BOUND, SIZE = range(len(RateNumbers._fields))
