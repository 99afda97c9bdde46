"""Group labels of arms: one each, or a row of nested ones, outermost first."""

from typing import Any

import numpy as np
import numpy.typing as npt

Groups = npt.NDArray[Any]  # (n,) labels, or (n, levels)
Label = int | str | tuple[int | str, ...]


def check_groups(groups: npt.ArrayLike, n: int) -> Groups:
    """Return `groups` as a read-only array of labels for `n` arms, or say what is wrong.

    Parameters
    ----------
    groups : (n,) or (n, levels)
        Integers or strings: a label for each arm, or a row of them, outermost first (square,
        patch). An inner label means something only within its outer one: patch 2 of square 1 is
        another patch than patch 2 of square 7.
    n
        How many arms there are.

    Examples
    --------
    >>> check_groups([0.5, 1.5], 2)
    Traceback (most recent call last):
    ...
    ValueError: groups must be integers or strings of shape (2,), or (2, levels) with the \
outermost first; got shape (2,) of float64
    """
    labels = np.array(groups)
    fits = labels.ndim in (1, 2) and len(labels) == n and 0 not in labels.shape[1:]
    if not fits or (labels.dtype.kind not in "iuU" and n > 0):
        raise ValueError(
            f"groups must be integers or strings of shape ({n},), or ({n}, levels) with the "
            f"outermost first; got shape {labels.shape} of {labels.dtype}"
        )
    labels.setflags(write=False)
    return labels


def innermost(groups: npt.ArrayLike) -> list[Label]:
    """One label for each arm: two arms share a group if their whole rows of labels are equal.

    Examples
    --------
    >>> innermost([[1, 2], [7, 2]])
    [(1, 2), (7, 2)]
    >>> innermost(["a", "b"])
    ['a', 'b']
    """
    labels = np.asarray(groups)
    return [tuple(row) for row in labels.tolist()] if labels.ndim == 2 else labels.tolist()
