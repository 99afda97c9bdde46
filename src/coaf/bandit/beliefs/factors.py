"""What arms share: the form in which beliefs tell it to who takes arms one by one."""

from typing import NamedTuple

from coaf.bandit.arrays import FloatArray


class Factors(NamedTuple):
    """η = mean + shared·ε + own for each arm, with ε standard normal.

    Attributes
    ----------
    mean : (n,)
        Of η.
    shared : (n, r)
        ε is the same for all arms of one innermost group.
    own : (n,)
        The variance of what is an arm's own.
    """

    mean: FloatArray
    shared: FloatArray
    own: FloatArray
