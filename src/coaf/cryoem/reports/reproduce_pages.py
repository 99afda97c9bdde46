"""The report of the cryo-EM experiments, and its figure."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coaf.cryoem.reports.patch_figure import DecidedPatch, figure3a
from coaf.cryoem.reports.reproduce import (
    COMPARED,
    EXPERIMENTS,
    OURS,
    POINTS,
    SQUARES,
    Curves,
)
from coaf.cryoem.reports.words import shown
from coaf.cryoem.timing import FAST
from coaf.version import __version__
from coaf.worlds.figures import COLOURS
from coaf.worlds.report import Page, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write(
    out: Path, summary: dict[str, Any], found: dict[str, list[Curves]], patch: DecidedPatch
) -> list[Path]:
    """Write the report and, beside it, its figures as PNG and SVG."""
    drawn = {
        "figure3a": save(figure3a(patch), out, "figure3a"),
        "figure3": save(figure3(found, summary["hours"]), out, "figure3"),
    }
    vectors = {name: vector.read_bytes() for name, (_, vector) in drawn.items()}
    report = _report(summary, vectors, patch).write(out / "report.html")
    return [report, *(file for files in drawn.values() for file in files)]


def figure3(found: dict[str, list[Curves]], hours: float) -> "Figure":
    """Collected against time: mean over grids, and the middle 90 %."""
    from matplotlib.figure import Figure  # an extra

    figure = Figure(figsize=(11.0, 4.6), layout="constrained")
    panels = figure.subplots(1, len(found))
    times = np.linspace(0.0, hours, POINTS)
    for axes, (name, curves) in zip(panels, found.items(), strict=True):
        for k, (policy, colour) in enumerate(zip(COMPARED, COLOURS, strict=False)):
            held = np.array([one.collected[k] for one in curves])
            low, high = np.quantile(held, [0.05, 0.95], axis=0)
            axes.fill_between(times, low, high, color=colour, alpha=0.15, lw=0)
            axes.plot(times, held.mean(axis=0), color=colour, lw=1.8, label=policy)
        axes.set_title(EXPERIMENTS[name].title, fontsize=11)
        axes.set_xlabel("time (h)")
        axes.set_ylabel(EXPERIMENTS[name].unit.heading)
        axes.set_xlim(0.0, hours)
        axes.set_ylim(bottom=0.0)
        axes.grid(True, which="major", color="0.9", lw=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def _report(summary: dict[str, Any], drawn: dict[str, bytes], patch: DecidedPatch) -> Page:
    report = Page(
        "Cryo-EM data collection: COAF against the microscopist",
        lead=f"{summary['data']}, {summary['hours']:g} hours each. Of what the paper claims, "
        f"{_held(summary, 'coaf-paper')} for its algorithm as printed, and "
        f"{_held(summary, 'coaf')} for coaf's own.",
    )
    report.section("Claims")
    report.text(
        "The paper says that COAF collects more than people do; taking all is what COAF must beat "
        "to be worth anything. A claim has held if the 95 % interval of the difference, over grids "
        "and on the same grid, lies above 0. The paper also says that the structures are better; "
        "that is not tried here."
    )
    report.table(
        ["claim", "held", "evidence"],
        [[claim["claim"], claim["held"], claim["evidence"]] for claim in summary["claims"]],
    )
    report.section("What is decided")
    decision = patch.decision
    report.figure(
        drawn["figure3a"],
        caption="The paper's Figure 3a: a patch as the simulator draws it, and what the algorithm "
        f"as printed does there after {min(summary['hours'], 3.0):g} hours. At the top right of "
        "each hole: its optimistic estimate. Thick rings are chosen, "
        f"{int(decision.chosen.sum())} of {len(decision.chosen)}, as a second is worth "
        f"{decision.rate:.4f}.",
        alt="A drawn patch of holes with rings, and a number at the top right of each.",
    )
    report.section("Collected against time")
    report.figure(
        drawn["figure3"],
        caption="The paper's Figures 3b and 3c: means over grids, and the middle 90 %.",
        alt="Two panels: good micrographs and particles against time, pilots with bands.",
    )
    for name, result in summary["experiments"].items():
        experiment = EXPERIMENTS[name]
        report.table(
            [
                *("pilot", "collected", "95 % interval", experiment.unit.per_hour),
                *("holes exposed", *(f"lead of {ours}" for ours in OURS)),
            ],
            [
                [
                    policy,
                    shown(row["collected"]["value"]),
                    f"{shown(row['collected']['low'])} to {shown(row['collected']['high'])}",
                    shown(row["per_hour"]),
                    round(row["exposed"]),
                    *(_lead(result["lead"][ours].get(policy)) for ours in OURS),
                ]
                for policy, row in result["policies"].items()
            ],
            caption=f"{experiment.title}: {experiment.unit.heading} in {summary['hours']:g} "
            f"hours, means over {summary['seeds']} grids. Leads are paired by grid, with 95 % "
            "intervals.",
        )
        report.table(
            ["seed", *COMPARED],
            [
                [str(summary["seed"] + k), *(round(row[policy]) for policy in COMPARED)]
                for k, row in enumerate(result["grids"])
            ],
            folded=f"{EXPERIMENTS[name].title}, grid by grid",
        )
    _setting(report, summary)
    return report


def _held(summary: dict[str, Any], policy: str) -> str:
    claims = [claim["held"] for claim in summary["claims"] if claim["policy"] == policy]
    return f"{sum(claims)} of {len(claims)} held"


def _lead(lead: dict[str, float] | None) -> str:
    if lead is None:
        return "–"
    return f"{shown(lead['value'])} [{shown(lead['low'])}, {shown(lead['high'])}]"


def _setting(report: Page, summary: dict[str, Any]) -> None:
    times = summary["times"]
    share = times["square"] / max(times["patches"], 1.0)
    report.section("Setting")
    report.table(
        ["what", "value"],
        [
            ["grids", f"simulated, {SQUARES} squares each, as docs/simulator.md describes"],
            [
                "times",
                "drawn for each, with a tail, around the paper's means (survey 12.09 s a patch, "
                "move 51.99 s, expose 6.66 s). Their means here: "
                f"{times['square']:.1f} s to open a square, {FAST.patches:g} times "
                f"{FAST.survey:g} s being planned; as squares had {times['patches']:.1f} patches, "
                f"that is {share:.2f} s a patch; move {times['move']:.2f} s, expose "
                f"{times['expose']:.2f} s; maintenance comes on top",
            ],
            ["features", "those of pixels, without drawing, and a trained network's prediction"],
            ["scores", "the measured queue: late by about 45 s, some hours late, some never"],
            ["counted", "by the simulator's truth, also where no score came"],
            [
                "coaf-paper",
                "Algorithm 1 as printed over whole patches: the mean pixel value and the network's "
                "score, the printed radius, Robbins-Monro; squares in the order of the rules",
            ],
            ["coaf", "the default of `coaf run`; it explores nothing beyond its own optimism"],
            [
                "microscopist",
                "the rules of thumb of coaf.cryoem.pilots.microscopist, fixed on other grids for "
                "the 0/1 reward alone; the paper's were people",
            ],
            [
                "cut-and-count",
                "holes predicted below a cut, of patches with enough of them; fixed likewise",
            ],
        ],
    )
    report.footer(
        f"coaf {__version__}. Played in {summary['seconds']:.0f} s. All numbers are in "
        "summary.json."
    )
