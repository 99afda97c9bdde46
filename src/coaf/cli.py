"""The command line. Thin: each command calls the library and prints what it returned."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

import coaf

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Decide, while the clock runs, which options are worth their time.",
)
console = Console()
errors = Console(stderr=True)

reproduce = typer.Typer(
    no_args_is_help=True, help="The paper's experiments: numbers, figures, a report."
)
app.add_typer(reproduce, name="reproduce")

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(coaf.__version__)
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Decide, while the clock runs, which options are worth their time."""


def _needs_experiments() -> None:
    missing = [
        name for name in ("xarray", "matplotlib", "threadpoolctl") if find_spec(name) is None
    ]
    if missing:
        _fail(f"This needs {' and '.join(missing)}: pip install 'coaf[experiments]'")


def _fail(message: str) -> NoReturn:
    errors.print(message, markup=False, highlight=False)
    raise typer.Exit(1)


@contextmanager
def _bars(*, quiet: bool) -> Iterator[Callable[[str, int, int | None], None]]:
    """A bar for each stage. What an earlier run had finished does not count as speed."""
    with Progress(
        TextColumn("{task.description:12}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=errors,
        disable=quiet,
        transient=True,
    ) as bars:
        tasks: dict[str, TaskID] = {}

        def watch(stage: str, done: int, total: int | None) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, completed=done, total=total)
            bars.update(tasks[stage], completed=done, total=total)

        yield watch


@app.command()
def run(
    rounds: Annotated[int, typer.Option(min=1, help="Rounds in each replicate.")] = 2000,
    replicates: Annotated[int, typer.Option(min=1, help="Replicates of the world.")] = 24,
    dim: Annotated[int, typer.Option(min=1, help="Features of an arm.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Of the world.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the figure.")] = Path("out"),
    as_json: JsonFlag = False,
) -> None:
    """Play COAF and its baselines in a synthetic world: a table, and a figure of regret."""
    _needs_experiments()
    from coaf.worlds import demo  # loads numba

    world = demo.world(dim=dim, seed=seed)
    with _bars(quiet=as_json) as watch:

        def progress(done: int, total: int) -> None:
            watch("playing", done, total)

        result = demo.play(world, rounds=rounds, replicates=replicates, progress=progress)
    figures = demo.write_figure(result, out)
    summary = demo.summary(result)
    if as_json:
        typer.echo(json.dumps({**summary, "figures": [str(f) for f in figures]}))
        return
    table = Table(title=f"{replicates} replicates of {rounds} rounds")
    table.add_column("policy")
    for heading in ("reward per second", "share of the optimal rate", "regret"):
        table.add_column(heading, justify="right")
    for name, row in summary["policies"].items():
        error = row["regret_error"]
        table.add_row(
            name,
            f"{row['reward_per_second']:.4f}",
            f"{row['share_of_optimum']:.1%}",
            f"{row['regret']:.1f}" + ("" if error is None else f" ± {error:.1f}"),
        )
    console.print(table)
    console.print(f"The best possible rate is {summary['gamma_star']:.4f} a second.")
    console.print(f"Figure: {figures[0]}", highlight=False)


@app.command()
def bench(
    limit: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="The C yardstick, coaf.c, to run beside."),
    ] = None,
    growth: Annotated[bool, typer.Option(help="Also how it grows with arms and features.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Measure speed beside plain NumPy, and beside the C yardstick and peers where they are."""
    from coaf.worlds import bench as speed  # loads numba

    result: dict[str, Any] = dict(speed.compiled(limit))
    result["live_us_per_round"] = speed.live(speed.preset())
    result["live_default_us_per_round"] = speed.live(coaf.COAF(speed.DIM))
    result["numpy_us_per_round"] = speed.plain_numpy()
    result["peers"] = speed.peers()
    result["import_seconds"] = speed.import_seconds()
    result["mb_for_10000_learners"] = speed.memory()
    if growth:
        result["growth"] = speed.growth()
        result["one_pick_at_1000_features"] = speed.one_pick(1000, count=200)
        result["peers_at_1000_features"] = speed.peers(dim=1000, count=200)
    if as_json:
        typer.echo(json.dumps(result))
        return
    table = Table(title=f"d = {speed.DIM}, {speed.ARMS} arms live, 6 to 20 compiled")
    table.add_column("what")
    table.add_column("measured", justify="right")
    for name, value in result.items():
        if isinstance(value, float):
            table.add_row(name.replace("_", " "), f"{value:.3g}")
    for peer, value in result["peers"].items():
        table.add_row(f"{peer}, us per round of one pick", f"{value:.3g}")
    for row in result.get("growth", []):
        table.add_row(f"live, d = {row['dim']}, n = {row['arms']}, us", f"{row['us']:.4g}")
    for peer, value in result.get("peers_at_1000_features", {}).items():
        table.add_row(f"{peer}, d = 1000, n = 13, us", f"{value:.4g}")
    console.print(table)


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
    _needs_experiments()
    from coaf.worlds.cluster import pool  # loads numba, as does the next
    from coaf.worlds.movielens.reproduce import reproduce as whole

    try:
        with pool(workers=workers, dask=dask) as executor, _bars(quiet=as_json) as watch:
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
        _fail(f"Error: {error}")
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


if __name__ == "__main__":
    app()
