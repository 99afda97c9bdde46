"""What a nested belief expects of its coefficients before any row."""

from collections.abc import Sequence

import numpy as np

from coaf.bandit.arrays import FloatArray, number


def coefficient_prior(
    dim: int, scale: float | Sequence[float], centre: Sequence[float] | None
) -> tuple[float | tuple[float, ...], tuple[float, ...] | None, FloatArray]:
    """The checked scale and centre, and the prior as if it were rows (dim + 2, dim + 2).

    With v = (θ, −1), vᵀ·ridge·v is Σ ((θ_k − centre_k)/scale_k)².

    Examples
    --------
    >>> scale, centre, ridge = coefficient_prior(1, (2.0, 1.0), (3.0, -1.0))
    >>> v = np.array([5.0, 0.0, -1.0])
    >>> float(v @ ridge @ v)
    2.0
    """
    count = dim + 1
    checked: float | tuple[float, ...]
    if isinstance(scale, Sequence):
        checked = tuple(number(f"scale[{i}]", s, above=0.0) for i, s in enumerate(scale))
        deviations = checked
    else:
        checked = number("scale", scale, above=0.0)
        deviations = (checked,) * count
    expected = None if centre is None else tuple(number("centre", c) for c in centre)
    for name, values in (("scale", deviations), ("centre", expected)):
        if values is not None and len(values) != count:
            raise ValueError(
                f"{name} has {len(values)} entries for {dim} features and an intercept: "
                f"give {count}"
            )
    weights = np.array(deviations) ** -2.0
    ridge = np.diag([*weights, 0.0])
    if expected is not None:
        pull = weights * np.array(expected)
        ridge[:-1, -1] = ridge[-1, :-1] = pull
        ridge[-1, -1] = float(pull @ np.array(expected))
    return checked, expected, ridge
