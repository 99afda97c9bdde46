"""`coaf bench`."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

import coaf
from coaf.cli.base import JsonFlag, app, console


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
