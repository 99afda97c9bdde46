"""The report of the cryo-EM experiments, and its figure."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coaf.cryoem.reports.reproduce import EXPERIMENTS, POINTS, POLICIES, SQUARES, Curves, shown
from coaf.version import __version__
from coaf.worlds.figures import COLOURS
from coaf.worlds.report import Page, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write(out: Path, summary: dict[str, Any], found: dict[str, list[Curves]]) -> list[Path]:
    """Write the report and, beside it, its figure as PNG and SVG."""
    png, vector = save(figure3(found, summary["hours"]), out, "figure3")
    report = _report(summary, vector.read_bytes()).write(out / "report.html")
    return [report, png, vector]


def figure3(found: dict[str, list[Curves]], hours: float) -> "Figure":
    """Collected against time: mean over grids, and the middle 90 %."""
    from matplotlib.figure import Figure  # an extra

    figure = Figure(figsize=(11.0, 4.6), layout="constrained")
    panels = figure.subplots(1, len(found))
    times = np.linspace(0.0, hours, POINTS)
    for axes, (name, curves) in zip(panels, found.items(), strict=True):
        for k, (policy, colour) in enumerate(zip(POLICIES, COLOURS, strict=False)):
            held = np.array([one.collected[k] for one in curves])
            low, high = np.quantile(held, [0.05, 0.95], axis=0)
            axes.fill_between(times, low, high, color=colour, alpha=0.15, lw=0)
            axes.plot(times, held.mean(axis=0), color=colour, lw=1.8, label=policy)
        axes.set_title(EXPERIMENTS[name].title, fontsize=11)
        axes.set_xlabel("time (h)")
        axes.set_ylabel(EXPERIMENTS[name].what)
        axes.set_xlim(0.0, hours)
        axes.set_ylim(bottom=0.0)
        axes.grid(True, which="major", color="0.9", lw=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def _report(summary: dict[str, Any], drawing: bytes) -> Page:
    held = sum(claim["held"] for claim in summary["claims"])
    report = Page(
        "Cryo-EM data collection: COAF against the microscopist",
        lead=f"{summary['data']}, {summary['hours']:g} hours each. {held} of "
        f"{len(summary['claims'])} claims of the paper held.",
    )
    report.section("Claims")
    report.text(
        "Numbers in brackets are 95 % intervals over grids, of the difference on the same grid. "
        "The paper also says that the structures are better; that is not tried here."
    )
    report.table(
        ["claim", "held", "evidence"],
        [[claim["claim"], claim["held"], claim["evidence"]] for claim in summary["claims"]],
    )
    report.section("Collected against time")
    report.figure(
        drawing,
        caption="The paper's Figure 3: means over grids, and the middle 90 %.",
        alt="Two panels: good micrographs and particles against time, three policies with bands.",
    )
    for name, result in summary["experiments"].items():
        report.table(
            ["policy", "collected", "95 % interval", "per hour", "holes exposed", "lead of COAF"],
            [
                [
                    policy,
                    shown(row["collected"]["value"]),
                    f"{shown(row['collected']['low'])} to {shown(row['collected']['high'])}",
                    shown(row["per_hour"]),
                    round(row["exposed"]),
                    _lead(result["lead"].get(policy)),
                ]
                for policy, row in result["policies"].items()
            ],
            caption=f"{EXPERIMENTS[name].title}: {EXPERIMENTS[name].what} in "
            f"{summary['hours']:g} hours, means over {summary['seeds']} grids.",
        )
        report.table(
            ["seed", *POLICIES],
            [
                [str(summary["seed"] + k), *(round(row[policy]) for policy in POLICIES)]
                for k, row in enumerate(result["grids"])
            ],
            folded=f"{EXPERIMENTS[name].title}, grid by grid",
        )
    _setting(report, summary)
    return report


def _lead(lead: dict[str, float] | None) -> str:
    if lead is None:
        return "–"
    return f"{shown(lead['value'])} [{shown(lead['low'])}, {shown(lead['high'])}]"


def _setting(report: Page, summary: dict[str, Any]) -> None:
    report.section("Setting")
    report.table(
        ["what", "value"],
        [
            ["grids", f"simulated, {SQUARES} squares each, as docs/simulator.md describes"],
            ["times", "the paper's means: survey 12.09 s a patch, move 51.99 s, expose 6.66 s"],
            ["features", "those of pixels, without drawing, and a trained network's prediction"],
            ["scores", "the measured queue: late by about 45 s, some hours late, some never"],
            ["counted", "by the simulator's truth, also where no score came"],
            [
                "microscopist",
                "the rules of thumb of coaf.cryoem.pilots.microscopist, fixed on grids with seeds "
                "from 1000 for the 0/1 reward alone, so that for particles taking all may be the "
                "stronger rival; the paper's were people",
            ],
            ["COAF", "learns from nothing on each grid, explores nothing beyond its own optimism"],
        ],
    )
    report.footer(
        f"coaf {__version__}. Played in {summary['seconds']:.0f} s. All numbers are in "
        "summary.json."
    )
