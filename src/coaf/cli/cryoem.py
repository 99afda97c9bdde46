"""`coaf reproduce cryoem`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from coaf.cli.base import JsonFlag, needs, reproduce
from coaf.cli.options import SEEDS, folder, number
from coaf.cli.terminal import say, show
from coaf.cli.work import work


@reproduce.command()
def cryoem(
    seeds: Annotated[int, number("How many grids", low=2, high=100_000)] = 30,
    hours: Annotated[float, number("Of each session", metavar="HOURS", above=0, high=10_000)] = 3.0,
    seed: Annotated[int, number("Of the first grid", low=0, high=SEEDS)] = 0,
    workers: Annotated[
        int | None, number("Processes; all cores unless given", low=1, high=1000)
    ] = None,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Play on this Dask cluster instead.")
    ] = None,
    out: Annotated[Path, folder("For report and figure.")] = Path("out/cryoem"),
    as_json: JsonFlag = False,
) -> None:
    """Reproduce the cryo-EM experiments: COAF as printed, and ours, against the microscopist.

    A run that was interrupted goes on where it was when it is called again.
    """
    needs("matplotlib")
    with work(quiet=as_json, out=out, resume=out / "unfinished") as watch:
        from coaf.cryoem.reports.reproduce import (
            reproduce as whole,  # loads numba, as does the next
        )
        from coaf.cryoem.reports.words import shown

        summary = whole(
            out=out,
            seeds=seeds,
            hours=hours,
            seed=seed,
            workers=workers,
            dask=dask,
            watch=watch,
        )
    if as_json:
        typer.echo(json.dumps(summary))
        return
    say(f"Data: {summary['data']}")
    headings = ("pilot", "collected", "95 % interval", "per hour", "holes exposed")
    for result in summary["experiments"].values():
        rows = []
        for name, row in result["policies"].items():
            value, low, high = (shown(row["collected"][key]) for key in ("value", "low", "high"))
            hourly, exposed = shown(row["per_hour"]), f"{row['exposed']:.0f}"
            rows.append((name, value, f"{low} to {high}", hourly, exposed))
        show(f"{result['counted']} in {hours:g} hours", headings, rows)
    for claim in summary["claims"]:
        say(f"{'held    ' if claim['held'] else 'NOT held'}  {claim['claim']}")
    say(f"Report: {out / 'report.html'}")
