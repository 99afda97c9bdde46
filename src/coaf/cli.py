"""The command line. Thin: each command calls the library and prints what it returned."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
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
    missing = [name for name in ("xarray", "matplotlib") if find_spec(name) is None]
    if missing:
        errors.print(f"This needs {' and '.join(missing)}: pip install 'coaf\\[experiments]'")
        raise typer.Exit(1)
    from coaf.worlds import demo  # loads numba

    world = demo.world(dim=dim, seed=seed)
    with Progress(
        TextColumn("playing"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=errors,
        disable=as_json,
        transient=True,
    ) as bar:
        task = bar.add_task("playing", total=None)

        def progress(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

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


if __name__ == "__main__":
    app()
