"""Comparison plots. They draw on `matplotlib.figure.Figure` alone, so no display is needed."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette, which colour-blind readers can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def regret_figure(result: "xarray.Dataset", *, title: str = "") -> "Figure":
    """Regret against time in both forms: mean over replicates, and the middle 90 %.

    Both axes are logarithmic, so a policy that learns bends below the dotted line of slope one.
    Paired regret is never negative; the paper's form can be, and is drawn where it is positive.
    """
    from matplotlib.figure import Figure  # an extra

    figure = Figure(figsize=(11.0, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharex=True)
    _panel(left, result, "paired", "Paired regret  $\\Sigma\\,[g(\\Gamma^*, A_j) - \\min_A g]$")
    _panel(right, result, "regret", "Regret  $T\\,\\Gamma^* - \\Sigma\\mu$")
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False)
    if title:
        figure.suptitle(title)
    return figure


def _panel(axes: "Axes", result: "xarray.Dataset", form: str, title: str) -> None:
    top = 0.0
    for colour, name in zip(_cycle(result.sizes["policy"]), result.policy.values, strict=True):
        policy = result.sel(policy=name)
        time = policy.seconds.cumsum("round").mean("replicate").values
        curves = policy[form].values
        mean = curves.mean(axis=0)
        low, high = np.quantile(curves, [0.05, 0.95], axis=0)
        shown = mean > 0.0
        floor = np.maximum(low, 0.1 * np.where(shown, mean, np.nan))
        axes.plot(time, np.where(shown, mean, np.nan), color=colour, lw=1.8, label=str(name))
        axes.fill_between(time, floor, high, where=shown, color=colour, alpha=0.15, lw=0)
        top = max(top, float(mean[-1]))
    span = axes.get_xlim()
    axes.set_xscale("log")
    axes.set_yscale("log")
    first, last = max(span[0], 10.0), span[1]
    axes.plot([first, last], [top * first / last, top], ":", color="0.5", lw=1.0, label="slope 1")
    axes.set_xlim(first, last)
    axes.set_title(title, fontsize=11)
    axes.set_xlabel("time (s)")
    axes.grid(True, which="major", color="0.9", lw=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _cycle(count: int) -> list[str]:
    return [COLOURS[i % len(COLOURS)] for i in range(count)]
