"""`coaf reproduce movielens`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from coaf.cli.base import JsonFlag, needs, reproduce
from coaf.cli.options import SEEDS, folder, number
from coaf.cli.terminal import errors, say, show
from coaf.cli.work import work


@reproduce.command()
def movielens(
    data: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="Ratings: a file, folder or zip (ratings.dat, u.data, ratings.csv), or 1m, 100k, "
            "latest-small (downloaded once), or generated. Without it: 1m where the network "
            "allows, else generated.",
        ),
    ] = None,
    replicates: Annotated[int, number("Replicates of each policy", low=2, high=1_000_000)] = 200,
    rounds: Annotated[int, number("Rounds in each replicate", low=4, high=1_000_000)] = 2000,
    workers: Annotated[
        int | None, number("Threads to play in; all cores unless given", low=1, high=1000)
    ] = None,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Play on this Dask cluster instead.")
    ] = None,
    seed: Annotated[int, number("Of the replicates", low=0, high=SEEDS)] = 0,
    out: Annotated[Path, folder("For report, figures and traces.")] = Path("out/movielens"),
    as_json: JsonFlag = False,
) -> None:
    """Reproduce the film experiment: regret of four policies and ours, claims, sensitivity.

    A run that was interrupted goes on where it was when it is called again.
    """
    needs("xarray", "matplotlib")
    with work(quiet=as_json, out=out, resume=out / "unfinished") as watch:
        from coaf.worlds.cluster import pool  # loads numba, as does the next
        from coaf.worlds.movielens.reproduce import reproduce as whole

        with pool(workers=workers, dask=dask) as executor:
            summary = whole(
                data,
                out=out,
                rounds=rounds,
                replicates=replicates,
                seed=seed,
                executor=executor,
                watch=watch,
                note=lambda text: say(text, to=errors),
            )
    if as_json:
        typer.echo(json.dumps(summary))
        return
    say(f"Data: {summary['data']}")
    say(f"The best possible rate is {summary['gamma_star']:.4f} a second.")
    rows = []
    for name, row in summary["policies"].items():
        regret, growth = row["paired"], row["growth"]
        rows.append(
            (
                name,
                f"{regret['value']:.4g}",
                f"{regret['low']:.4g} to {regret['high']:.4g}",
                "–" if growth["value"] is None else f"{growth['value']:.2f}",
                f"{row['share_of_optimum']:.2%}",
            )
        )
    headings = ("policy", "paired regret", "95 % interval", "growth", "share of Γ*")
    show(f"{replicates} replicates of {rounds} rounds", headings, rows)
    for claim in summary["claims"]:
        say(f"{'held    ' if claim['held'] else 'NOT held'}  {claim['claim']}")
    say(f"Report: {out / 'report.html'}")
