"""Dinkelbach's method: the rate at which rounds break even."""

from collections.abc import Callable

TOLERANCE = 1e-12  # relative change of the rate at which it is found
STEPS = 100  # more than it ever takes, unless rounding or unfinished searches go in circles


def dinkelbach(ratio: Callable[[float], float], rate: float) -> float:
    """The fixed point of `ratio`, the reward per second of what is best at a rate.

    At each rate take the best subsets; the ratio of their reward to their time is the next rate. It
    rises to the root of Σ_j min_A g(Γ, A, l_j, μ_j) in a handful of steps (`th: MBSP_ub`).
    `compiled/threshold.py` has the same in compiled code.

    Parameters
    ----------
    ratio
        From a rate to the reward per second of the best choices at that rate.
    rate
        Where to begin.

    Examples
    --------
    One round brings 2 in 10 s, another 1 in 90 s or nothing in 10 s:

    >>> dinkelbach(lambda rate: 3.0 / 100.0 if 1.0 > 80.0 * rate else 2.0 / 20.0, 0.0)
    0.1
    """
    for _ in range(STEPS):
        previous, rate = rate, ratio(rate)
        if abs(rate - previous) <= TOLERANCE * max(abs(rate), abs(previous)):
            break
    return rate
