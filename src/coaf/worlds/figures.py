"""Comparison plots. They draw on `matplotlib.figure.Figure` alone, so no display is needed."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.extras import require_extra

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette, which colour-blind readers can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

FORMS = {
    "regret": "Regret  $T\\,\\Gamma^* - \\Sigma\\mu$",
    "paired": "Paired regret  $\\Sigma\\,[g(\\Gamma^*, A_j) - \\min_A g]$",
}


def _figure(**settings: Any) -> "Figure":
    require_extra("matplotlib", "a figure")
    from matplotlib.figure import Figure  # an extra

    return Figure(**settings)


def regret_figure(result: "xarray.Dataset", *, title: str = "") -> "Figure":
    """Regret against time in both forms: mean over replicates, and the middle 90 %.

    Both axes are logarithmic, so a policy that learns bends below the dotted line of slope one.
    Paired regret is never negative; the paper's form can be, and is drawn where it is positive.
    """
    figure = _figure(figsize=(11.0, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharex=True)
    _panel(left, result, "paired", FORMS["paired"])
    _panel(right, result, "regret", FORMS["regret"])
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False)
    if title:
        figure.suptitle(title)
    return figure


def _panel(axes: "Axes", result: "xarray.Dataset", form: str, title: str) -> None:
    top = 0.0
    for name, colour in _colours(result).items():
        policy = result.sel(policy=name)
        count = policy.sizes["round"]
        dots = np.unique(np.geomspace(1, count, 400).astype(int)) - 1  # as many as can be seen
        time = policy.seconds.cumsum("round").mean("replicate").values[dots]
        curves = policy[form].values[:, dots]
        mean = curves.mean(axis=0)
        low, high = np.quantile(curves, [0.05, 0.95], axis=0)
        shown = mean > 0.0
        floor = np.maximum(low, 0.1 * np.where(shown, mean, np.nan))
        axes.plot(time, np.where(shown, mean, np.nan), color=colour, lw=1.8, label=name)
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
    _plain(axes)


def bands_figure(result: "xarray.Dataset", policies: Sequence[str]) -> "Figure":
    """A column for each policy, a row for each form of regret: mean, and quantiles of replicates.

    The middle 90 % is dark; the 5 % below and the 5 % above are light. Each panel has its own
    scale, as the curves differ by orders of magnitude.
    """
    count = len(policies)
    figure = _figure(figsize=(3.1 * count + 0.4, 5.6), layout="constrained")
    grid = figure.subplots(2, count, squeeze=False, sharex=True)
    colours = _colours(result)
    for row, form in zip(grid, FORMS, strict=True):
        for axes, name in zip(row, policies, strict=True):
            _bands(axes, result[form].sel(policy=name).values, colours[name])
            if form == "regret":
                axes.set_title(name, fontsize=11)
            else:
                axes.set_xlabel("round")
        row[0].set_ylabel(FORMS[form], fontsize=10)
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _bands(axes: "Axes", curves: FloatArray, colour: str) -> None:
    rounds = np.arange(1, curves.shape[1] + 1)
    shown = np.unique(np.linspace(0, len(rounds) - 1, 400).astype(int))  # as many as can be seen
    low, five, high, top = np.quantile(curves[:, shown], [0.0, 0.05, 0.95, 1.0], axis=0)
    x, mean = rounds[shown], curves[:, shown].mean(axis=0)
    outer = "lowest and highest 5 %"
    axes.fill_between(x, low, five, color=colour, alpha=0.12, lw=0, label=outer)
    axes.fill_between(x, high, top, color=colour, alpha=0.12, lw=0)
    axes.fill_between(x, five, high, color=colour, alpha=0.32, lw=0, label="middle 90 %")
    axes.plot(x, mean, color=colour, lw=1.8, label="mean")
    _plain(axes)


def sweep_figure(
    rows: Sequence[Mapping[str, Any]],
    titles: Mapping[str, str],
    *,
    reference: Mapping[str, Mapping[str, float]],
) -> "Figure":
    """Small multiples: final paired regret against each thing that was changed.

    `rows` are flat, as `parameter, value, policy, regret, low, high`; `reference` is, for
    each policy, the value that each parameter has otherwise.
    """
    columns = 4
    names = list(dict.fromkeys(row["parameter"] for row in rows))
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    height = -(-len(names) // columns)
    figure = _figure(figsize=(12.4, 3.0 * height), layout="constrained")
    panels = list(figure.subplots(height, columns, sharey=True, squeeze=False).flat)
    for axes, parameter in zip(panels, names, strict=False):
        for colour, policy in zip(COLOURS, policies, strict=False):
            own = [r for r in rows if r["parameter"] == parameter and r["policy"] == policy]
            if own:
                x, y, low, high = (
                    np.array([r[key] for r in own]) for key in ("value", "regret", "low", "high")
                )
                errors = np.maximum([y - low, high - y], 0.0)
                axes.errorbar(
                    x, y, errors, fmt="o-", color=colour, ms=4, lw=1.5, capsize=2, label=policy
                )
                usual = reference.get(policy, {}).get(parameter)
                if usual is not None:
                    axes.axvline(usual, color=colour, lw=1.0, ls=":", zorder=0)
        _spread(axes, [r["value"] for r in rows if r["parameter"] == parameter])
        axes.set_yscale("symlog", linthresh=0.1)  # regret can be none at all
        axes.set_xlabel(titles.get(parameter, parameter))
        _plain(axes)
    panels[0].set_ylim(bottom=0.0)
    for axes in panels[len(names) :]:
        axes.axis("off")
    for axes in panels[::columns]:
        axes.set_ylabel("paired regret")
    # A policy need not be in every panel.
    seen = [axes.get_legend_handles_labels() for axes in panels]
    legend = {
        label: handle
        for handles, labels in seen
        for handle, label in zip(handles, labels, strict=True)
    }
    figure.legend(
        legend.values(), legend.keys(), loc="outside lower center", ncols=len(legend), frameon=False
    )
    return figure


def _spread(axes: "Axes", values: Sequence[float]) -> None:
    """A logarithmic axis where values span more than a decade; 0 gets a place of its own."""
    positive = [v for v in values if v > 0.0]
    if max(positive) / min(positive) < 20.0 and len(positive) == len(values):
        return
    if len(positive) < len(values):
        axes.set_xscale("symlog", linthresh=min(positive))
    else:
        axes.set_xscale("log")


def cuts_figure(
    cuts: FloatArray, shares: FloatArray, means: FloatArray, marks: Mapping[str, float]
) -> "Figure":
    """The share of the best rate that each fixed threshold reaches, over where the arms lie."""
    figure = _figure(figsize=(10.6, 4.6), layout="constrained")
    top, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    top.plot(cuts, 100.0 * shares, color=COLOURS[0], lw=1.8)
    top.set_ylabel("share of $\\Gamma^*$ reached (%)")
    below.hist(means, bins=60, color="0.7")
    below.set_ylabel("films")
    below.set_xlabel("fixed threshold, and mean rating of the films")
    for colour, (label, mark) in zip(COLOURS[1:], marks.items(), strict=False):
        for axes in (top, below):
            axes.axvline(mark, color=colour, lw=1.2, ls="--", label=label)
    top.legend(frameon=False, loc="upper right")
    for axes in (top, below):
        _plain(axes)
    return figure


def _plain(axes: "Axes") -> None:
    axes.grid(True, which="major", color="0.9", lw=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _colours(result: "xarray.Dataset") -> dict[str, str]:
    """A policy has the same colour in every figure of a result."""
    return {str(name): COLOURS[i % len(COLOURS)] for i, name in enumerate(result.policy.values)}
