"""`coaf bench`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

import coaf
from coaf.cli.base import JsonFlag, app
from coaf.cli.terminal import show
from coaf.cli.work import work


@app.command()
def bench(
    limit: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="The C yardstick, coaf.c, to run beside.",
        ),
    ] = None,
    growth: Annotated[bool, typer.Option(help="Also how it grows with arms and features.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Measure speed beside plain NumPy, and beside the C yardstick and peers where they are."""
    result: dict[str, Any] = {}
    with work(quiet=as_json) as watch:
        from coaf.worlds import bench as speed  # loads numba

        measures: list[Callable[[], dict[str, Any]]] = [
            lambda: dict(speed.compiled(limit)),
            lambda: {"live_us_per_round": speed.live(speed.preset())},
            lambda: {"live_default_us_per_round": speed.live(coaf.COAF(speed.DIM))},
            lambda: {"numpy_us_per_round": speed.plain_numpy()},
            lambda: {"peers": speed.peers()},
            lambda: {"import_seconds": speed.import_seconds()},
            lambda: {"mb_for_10000_learners": speed.memory()},
        ]
        if growth:
            measures += [
                lambda: {"growth": speed.growth()},
                lambda: {"one_pick_at_1000_features": speed.one_pick(1000, count=200)},
                lambda: {"peers_at_1000_features": speed.peers(dim=1000, count=200)},
            ]
        for done, measure in enumerate(measures):
            watch("measuring", done, len(measures))
            result |= measure()
    if as_json:
        typer.echo(json.dumps(result))
        return
    rows = [
        (name.replace("_", " "), f"{value:.3g}")
        for name, value in result.items()
        if isinstance(value, float)
    ]
    for peer, value in result["peers"].items():
        rows.append((f"{peer}, us per round of one pick", f"{value:.3g}"))
    for row in result.get("growth", []):
        rows.append((f"live, d = {row['dim']}, n = {row['arms']}, us", f"{row['us']:.4g}"))
    for peer, value in result.get("peers_at_1000_features", {}).items():
        rows.append((f"{peer}, d = 1000, n = 13, us", f"{value:.4g}"))
    title = f"d = {speed.DIM}, {speed.ARMS} arms live, 6 to 20 compiled"
    show(title, ("what", "measured"), rows)
