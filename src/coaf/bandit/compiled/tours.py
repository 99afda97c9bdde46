"""The Held-Karp recursion, compiled. Import this on first use: it loads numba."""

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.compiled.simd import compiled


@compiled
def shortest_lengths(first: FloatArray, between: FloatArray) -> FloatArray:
    """Length of the shortest open path from the start through every subset of the points.

    Parameters
    ----------
    first : (n,)
        Distance from the start to each point.
    between : (n, n)
        Distances between the points.

    Returns
    -------
    (2**n,)
        Entry s is the length for the points whose bits are set in s.
    """
    n = len(first)
    lengths = np.zeros(1 << n)
    # ending[s, j]: the shortest path through s that ends at point j of s.
    ending = np.full((1 << n, n), np.inf)
    for s in range(1, 1 << n):
        shortest = np.inf
        for j in range(n):
            if (s >> j) & 1:
                rest = s ^ (1 << j)
                length = first[j] if rest == 0 else np.inf
                for k in range(n):
                    if (rest >> k) & 1:
                        length = min(length, ending[rest, k] + between[k, j])
                ending[s, j] = length
                shortest = min(shortest, length)
        lengths[s] = shortest
    return lengths
