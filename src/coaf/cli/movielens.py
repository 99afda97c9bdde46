"""`coaf reproduce movielens`."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from coaf.cli.base import JsonFlag, bars, console, errors, fail, needs, reproduce


@reproduce.command()
def movielens(
    data: Annotated[
        str | None,
        typer.Option(
            help="Ratings: a file, folder or zip (ratings.dat, u.data, ratings.csv), or 1m, 100k, "
            "latest-small (downloaded once), or generated. Without it: 1m where the network "
            "allows, else generated."
        ),
    ] = None,
    replicates: Annotated[int, typer.Option(min=2, help="Replicates of each policy.")] = 200,
    rounds: Annotated[int, typer.Option(min=4, help="Rounds in each replicate.")] = 2000,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Threads to play in; all cores unless given.")
    ] = None,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Play on this Dask cluster instead.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the replicates.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for report, figures and traces.")] = Path(
        "out/movielens"
    ),
    as_json: JsonFlag = False,
) -> None:
    """Reproduce the film experiment: regret of four policies and ours, claims, sensitivity.

    A run that was interrupted goes on where it was when it is called again.
    """
    needs("xarray", "matplotlib")
    from coaf.worlds.cluster import pool  # loads numba, as does the next
    from coaf.worlds.movielens.reproduce import reproduce as whole

    try:
        with pool(workers=workers, dask=dask) as executor, bars(quiet=as_json) as watch:
            summary = whole(
                data,
                out=out,
                rounds=rounds,
                replicates=replicates,
                seed=seed,
                executor=executor,
                watch=watch,
                note=lambda text: errors.print(text, markup=False, highlight=False),
            )
    except (OSError, ValueError, ModuleNotFoundError) as error:
        fail(error)
    if as_json:
        typer.echo(json.dumps(summary))
        return
    console.print(f"Data: {summary['data']}", markup=False, highlight=False)
    console.print(f"The best possible rate is {summary['gamma_star']:.4f} a second.")
    table = Table(title=f"{replicates} replicates of {rounds} rounds")
    table.add_column("policy")
    for heading in ("paired regret", "95 % interval", "growth", "share of Γ*"):
        table.add_column(heading, justify="right")
    for name, row in summary["policies"].items():
        regret, growth = row["paired"], row["growth"]
        table.add_row(
            name,
            f"{regret['value']:.4g}",
            f"{regret['low']:.4g} to {regret['high']:.4g}",
            "–" if growth["value"] is None else f"{growth['value']:.2f}",
            f"{row['share_of_optimum']:.2%}",
        )
    console.print(table)
    for claim in summary["claims"]:
        console.print(f"{'held    ' if claim['held'] else 'NOT held'}  {claim['claim']}")
    console.print(f"Report: {out / 'report.html'}", highlight=False)
