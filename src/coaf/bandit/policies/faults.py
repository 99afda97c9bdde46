"""What a policy does where its belief fails."""

import numpy as np

from coaf.bandit.arrays import LARGEST, FloatArray


class BeliefWarning(UserWarning):
    """A belief failed to score arms; the average reward so far stood in for its estimates."""


class AssumptionWarning(UserWarning):
    """Something that was stated, or that usually holds, does not fit what was seen."""


class RepeatedError(ValueError):
    """What was told was told before, or was given up: it may be a message that came twice."""


class BeliefError(RuntimeError):
    """A belief failed to learn; the policy is as it was, and the rows can be given again."""


def is_fault(error: Exception) -> bool:
    """Whether a belief failed, rather than refused what it was given.

    A ValueError says that the caller is wrong. NumPy's failure to solve an equation is one by
    name, but it is the belief that got into that state.
    """
    return not isinstance(error, ValueError) or isinstance(error, np.linalg.LinAlgError)


def mend(found: FloatArray | Exception, n: int, average: float) -> tuple[FloatArray, str]:
    """Estimates for `n` arms with `average` where `found` has none, and what was wrong with it.

    Examples
    --------
    >>> mend(np.array([0.1, np.nan]), 2, 0.5)
    (array([0.1, 0.5]), 'estimates arm 1 at nan: 0.5, the average reward so far, stands in for 1 \
of 2 estimates.')
    """
    estimates, count = np.full(n, average), n
    if isinstance(found, Exception):
        what = f"raised {type(found).__name__} ({found})"
    elif found.shape != (n,):
        what = f"gave estimates of shape {found.shape} for {n} arms"
    else:
        bad = ~(np.abs(found) <= LARGEST)
        estimates[~bad], count = found[~bad], int(bad.sum())
        what = f"estimates arm {int(bad.argmax())} at {found[bad.argmax()]:g}"
    return estimates, (
        f"{what}: {average:.3g}, the average reward so far, stands in for {count} of {n} estimates."
    )
