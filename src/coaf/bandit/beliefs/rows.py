"""What every belief checks of the rows it is given; `check_groups` is in `coaf.bandit.groups`."""

from typing import Any

import numpy as np

from coaf.bandit.arrays import FLOAT64, FloatArray, floats, locked, number


def check_dim(dim: Any) -> int:
    """`dim` as a number of features, 1 or more.

    Examples
    --------
    >>> check_dim([[1, 2]])
    Traceback (most recent call last):
    ...
    ValueError: dim is [[1, 2]]; it must be a positive integer: the number of features
    """
    try:
        count = int(dim)
    except (TypeError, ValueError, OverflowError):
        count = 0
    if count < 1 or count != dim:
        raise ValueError(f"dim is {dim!r}; it must be a positive integer: the number of features")
    return count


def shaped(features: Any, dim: int) -> FloatArray:
    """`features` as a read-only array (n, dim), entries unseen: compiled code looks at each."""
    X = features if type(features) is np.ndarray and features.dtype is FLOAT64 else None
    if X is None or not X.flags.c_contiguous or X.ndim != 2:
        X = floats("features", features, ndim=2)
    if X.shape[1] != dim:
        raise ValueError(f"features have {X.shape[1]} columns, but this belief has dim={dim}")
    return locked(X)


def check_features(features: Any, dim: int, *, bound: float | None = None) -> FloatArray:
    """`features` as a finite array (n, dim), with norms of at most `bound`.

    It is a copy, and cannot be written to.

    Examples
    --------
    >>> check_features([[0.6, 0.0], [0.8, 0.8]], 2, bound=1.0)
    Traceback (most recent call last):
    ...
    ValueError: features[1] has norm 1.13137, beyond feature_bound=1: scale the features or raise \
the bound
    """
    X = floats("features", shaped(features, dim), ndim=2)
    if bound is not None and len(X):
        squares = np.einsum("ij,ij->i", X, X)
        row = int(squares.argmax())
        if squares[row] > limit_of(bound) ** 2:
            raise beyond(X, row, bound)
    return X


def limit_of(bound: float) -> float:
    """The bound with its slack, as features scaled to it are rounded."""
    return bound * (1.0 + 1e-9)


def beyond(X: FloatArray, row: int, bound: float) -> ValueError:
    """The error for a row that is too long."""
    return ValueError(
        f"features[{row}] has norm {np.linalg.norm(X[row]):.6g}, beyond "
        f"feature_bound={bound:g}: scale the features or raise the bound"
    )


def check_rewards(rewards: Any, n: int) -> FloatArray:
    """`rewards` as a finite array (n,).

    Examples
    --------
    >>> check_rewards([1.0, 0.0], 3)
    Traceback (most recent call last):
    ...
    ValueError: rewards has shape (2,) for 3 rows of features
    """
    shape = np.shape(rewards)
    if shape != (n,):
        raise ValueError(f"rewards has shape {shape} for {n} rows of features")
    return floats("rewards", rewards, ndim=1)


def check_factor(factor: Any) -> float:
    """What `forget` was given, as a number in (0, 1].

    Examples
    --------
    >>> check_factor(1.5)
    Traceback (most recent call last):
    ...
    ValueError: factor is 1.5; it must be at most 1, which forgets nothing
    """
    value = number("factor", factor, above=0.0)
    if value > 1.0:
        raise ValueError(f"factor is {value}; it must be at most 1, which forgets nothing")
    return value


LONGEST = 1e3  # the norm beyond which a row drowns a prior of unit scale in rounding


def check_scale(X: FloatArray) -> None:
    """For beliefs whose coefficients have a prior of unit scale."""
    if np.vdot(X, X) > LONGEST**2:  # the quickest test; some row may be too long
        norms = np.linalg.norm(X, axis=1)
        if norms.max() > LONGEST:
            row = int(norms.argmax())
            raise ValueError(
                f"features[{row}] has norm {norms[row]:.6g}, beyond {LONGEST:g}: scale the "
                "features, so that most are within ±1"
            )
