"""What a comparison found: labelled arrays that print as a table and plot in one line."""

from math import nan, sqrt
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
import xarray

from coaf.bandit.arrays import FloatArray
from coaf.worlds.figures import regret_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_AXES = ("policy", "replicate", "round")


class Comparison(xarray.Dataset):  # type: ignore[no-untyped-call]
    r"""An `xarray.Dataset` over policy x replicate x round, which prints as a table.

    It has `seconds`, `mean` (true mean reward), `rate`, and the two cumulative regrets `regret`
    (T·Γ* − Σμ) and `paired` (Σ g(Γ*, A_j) − min_A g(Γ*, A)). What is selected from it, or computed
    with it, prints as xarray has it.

    In the table, *reward a second* is the true mean reward over the time, *of best* is what paired
    regret leaves of the best rate, 1 − paired/(time·Γ*), without the luck of the rounds drawn, and
    ± is a standard error over replicates.

    Examples
    --------
    >>> from coaf.bandit.policies.baselines import TakeAll
    >>> from coaf.worlds.compare import compare
    >>> from coaf.worlds.synthetic import Synthetic
    >>> compare({"all": TakeAll()}, Synthetic(dim=3), rounds=500, replicates=2)
    2 replicates of 500 rounds; the best possible is 0.2489 a second
    policy  reward a second  of best  paired regret
    all     0.0030 ± 0.0011  0.3 %    2,561.2 ± 8.0
    """

    __slots__ = ()

    def rows(self) -> list[dict[str, float | str]]:
        """A flat row for each policy.

        Columns: `policy`, `rate` (true mean reward over time), `share` (of what the time is worth
        at Γ*, less the luck of the rounds drawn), `paired` (regret at the end), and the standard
        errors `rate_error` and `paired_error` over replicates.
        """
        found: list[dict[str, float | str]] = []
        for name in self.policy.values.tolist():
            one = self.sel(policy=name)
            seconds = one["seconds"].sum("round").values
            rates, paired = one["mean"].sum("round").values / seconds, one["paired"].values[:, -1]
            worth = abs(float(self.attrs["gamma_star"])) * float(seconds.sum())
            found.append(
                {
                    "policy": str(name),
                    "rate": float(rates.mean()),
                    "rate_error": _error(rates),
                    "share": 1.0 - float(paired.sum()) / worth if worth > 0.0 else nan,
                    "paired": float(paired.mean()),
                    "paired_error": _error(paired),
                }
            )
        return found

    def figure(self, path: str | PathLike[str] | None = None, *, title: str = "") -> "Figure":
        """Regret against time in both forms; written to `path`, if given, by its suffix.

        Lines are means over replicates, bands their middle 90 %. Both axes are logarithmic, so a
        policy that learns bends below the dotted line of slope one.
        """
        figure = regret_figure(self, title=title)
        if path is not None:
            figure.savefig(path)
        return figure

    def __repr__(self) -> str:
        """The table."""
        whole = set(_AXES) == set(self.sizes) and {"mean", "paired"} <= set(self.data_vars)
        if not whole or "gamma_star" not in self.attrs:
            return super().__repr__()
        # No letter that outputs of Windows cannot show.
        lines = [("policy", "reward a second", "of best", "paired regret")]
        for row in self.rows():
            lines.append(
                (
                    str(row["policy"]),
                    _with_error(row["rate"], row["rate_error"]),
                    f"{100.0 * float(row['share']):.1f} %",
                    _with_error(row["paired"], row["paired_error"]),
                )
            )
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        head = (
            f"{self.sizes['replicate']:,} replicates of {self.sizes['round']:,} rounds; the best "
            f"possible is {self.attrs['gamma_star']:.4g} a second"
        )
        table = ("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
        return "\n".join((head, *table))

    __str__ = __repr__

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(repr(self))}</pre>"


def _error(values: FloatArray) -> float:
    return float(np.std(values, ddof=1)) / sqrt(len(values)) if len(values) > 1 else nan


def _with_error(value: float | str, error: float | str) -> str:
    """A number with its standard error, if there is one, to two digits of it."""
    value, error = float(value), float(error)
    if not error > 0.0:
        return f"{value:.4g}"
    digits = max(0, 1 - int(np.floor(np.log10(error))))
    return f"{value:,.{digits}f} ± {error:,.{digits}f}"
