"""`coaf run`."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from coaf.cli.base import JsonFlag, app, needs
from coaf.cli.options import SEEDS, folder, number
from coaf.cli.terminal import errors, say, show
from coaf.cli.work import work


class RegimeName(StrEnum):
    """Times of the simulated microscope."""

    fast = "fast"
    slow = "slow"


@app.command()
def run(
    seed: Annotated[int, number("Of the grid: another is another grid", low=0, high=SEEDS)] = 0,
    hours: Annotated[
        float, number("The time there is", metavar="HOURS", above=0, high=10_000)
    ] = 3.0,
    regime: Annotated[
        RegimeName, typer.Option(help="fast: the paper's times; slow: those of a recorded grid.")
    ] = RegimeName.fast,
    squares: Annotated[int, number("Squares of the grid", low=1, high=10_000)] = 32,
    policy: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What decides: coaf, coaf-paper, coaf-tuned, take-all, window, fixed-cut, "
            "score-order, microscopist, clairvoyant.",
        ),
    ] = "coaf",
    good_below: Annotated[
        float, number("Good is a CTF fit below so many angstroms", metavar="X", above=0, high=1000)
    ] = 3.8,
    explore: Annotated[
        float,
        number(
            "Of what would be skipped, so much is taken to find out",
            metavar="SHARE",
            low=0,
            high=1,
        ),
    ] = 0.02,
    seeds: Annotated[
        int,
        number("So many grids, from --seed on; squares are not drawn then", low=1, high=100_000),
    ] = 1,
    workers: Annotated[
        int | None, number("Processes for many grids; all cores unless given", low=1, high=1000)
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Play many grids on this Dask cluster instead."),
    ] = None,
    out: Annotated[Path, folder("For report, figures, events and recording.")] = Path("out"),
    as_json: JsonFlag = False,
) -> None:
    """Collect from a simulated grid: a session, the other pilots beside it, and a report.

    With --seeds, from many grids: what each pilot collects on average, and by how much one leads.
    """
    needs("matplotlib")
    if seeds > 1:
        same: dict[str, Any] = {"hours": hours, "regime": regime.value, "squares": squares}
        same |= {"policy": policy, "explore": explore, "workers": workers, "dask": dask}
        _many(range(seed, seed + seeds), good_below, same, out, as_json)
        return
    with work(quiet=as_json, out=out) as watch:
        from coaf.cryoem.reports.run import run as whole  # loads numba
        from coaf.cryoem.reward import GoodBelow

        sessions, files = whole(
            seed=seed,
            hours=hours,
            regime=regime.value,
            squares=squares,
            policy=policy,
            reward=GoodBelow(good_below),
            explore=explore,
            out=out,
            watch=watch,
        )
    lines = [session.line() for session in sessions]
    if as_json:
        summary = {"session": sessions[0].summary(), "policies": {x["policy"]: x for x in lines}}
        typer.echo(json.dumps({**summary, "files": [str(path) for path in files]}))
        return
    title = f"{hours:g} hours on grid {seed}, good below {good_below:g} Å"
    headings = ("policy", "good", "hours", "per hour", "exposed", "share", "squares", "patches")
    show(title, headings, [_row(line) for line in lines])
    lost = sessions[0].summary()["unscored"]
    say(f"Of the micrographs of {policy}, {lost} had no score when the time was over.")
    for alarm in sessions[0].alarms:
        say(alarm.message, to=errors)
    say(f"Report: {files[0]}")


def _many(seeds: range, good_below: float, same: dict[str, Any], out: Path, as_json: bool) -> None:
    with work(quiet=as_json, out=out) as watch:
        from coaf.cryoem.reports.grids import run_grids  # loads numba, as does the next
        from coaf.cryoem.reward import GoodBelow

        reward = GoodBelow(good_below)
        summary = run_grids(seeds=seeds, reward=reward, out=out, watch=watch, **same)
    if as_json:
        typer.echo(json.dumps(summary))
        return
    rows = []
    for name, found in summary["policies"].items():
        lead = found["lead"]
        told = (
            "" if lead is None else f"{lead['value']:+.0f} ({lead['low']:+.0f} {lead['high']:+.0f})"
        )
        good = f"{found['good']['value']:.0f}"
        rows.append((name, good, f"{found['good_per_hour']:.1f}", f"{found['exposed']:.0f}", told))
    title = f"{summary['hours']:g} hours on {summary['grids']} grids, good below {good_below:g} Å"
    show(title, ("policy", "good", "per hour", "exposed", "lead of the first (95 %)"), rows)
    say(f"Report: {summary['files'][0]}")


def _row(line: dict[str, Any]) -> tuple[str, ...]:
    return (
        line["policy"],
        f"{line['good']:.0f}",
        f"{line['hours']:.2f}",
        f"{line['good_per_hour']:.1f}",
        f"{line['exposed']}",
        f"{line['good_share']:.1%}",
        f"{line['squares']}",
        f"{line['patches_entered']}",
    )
