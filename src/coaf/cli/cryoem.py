"""`coaf reproduce cryoem`."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from coaf.cli.base import BAD_INPUT, JsonFlag, bars, console, fail, needs, reproduce


@reproduce.command()
def cryoem(
    seeds: Annotated[int, typer.Option(min=2, help="How many grids.")] = 20,
    hours: Annotated[float, typer.Option(help="Of each session.")] = 3.0,
    seed: Annotated[int, typer.Option(min=0, help="Of the first grid.")] = 0,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; all cores unless given.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for report and figure.")] = Path("out/cryoem"),
    as_json: JsonFlag = False,
) -> None:
    """Reproduce the cryo-EM experiments: COAF against the microscopist, with both rewards."""
    needs("matplotlib")
    from coaf.cryoem.reproduce import reproduce as whole  # loads numba, as does the next
    from coaf.cryoem.reproduce import shown

    try:
        with bars(quiet=as_json) as watch:
            summary = whole(
                out=out, seeds=seeds, hours=hours, seed=seed, workers=workers, watch=watch
            )
    except BAD_INPUT as error:
        fail(error)
    if as_json:
        typer.echo(json.dumps(summary))
        return
    console.print(f"Data: {summary['data']}", markup=False, highlight=False)
    for result in summary["experiments"].values():
        table = Table(title=f"{result['counted']} in {hours:g} hours")
        table.add_column("policy")
        for heading in ("collected", "95 % interval", "per hour", "holes exposed"):
            table.add_column(heading, justify="right")
        for name, row in result["policies"].items():
            held = row["collected"]
            table.add_row(
                name,
                shown(held["value"]),
                f"{shown(held['low'])} to {shown(held['high'])}",
                shown(row["per_hour"]),
                f"{row['exposed']:.0f}",
            )
        console.print(table)
    for claim in summary["claims"]:
        console.print(f"{'held    ' if claim['held'] else 'NOT held'}  {claim['claim']}")
    console.print(f"Report: {out / 'report.html'}", highlight=False)
