"""`coaf replay`."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from coaf.cli.base import BAD_INPUT, JsonFlag, app, bars, console, fail


@app.command()
def replay(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR", help="Holds one *_by_hl.txt, the holes, and one CSV, their truth."
        ),
    ] = None,
    holes: Annotated[
        Path | None, typer.Option(help="The holes (name, prediction), where there are more.")
    ] = None,
    truth: Annotated[
        Path | None,
        typer.Option(help="The truth (name, x, y, CTFMaxRes, confidence), where there are more."),
    ] = None,
    good_below: Annotated[float, typer.Option(help="Good is a CTF fit below so many Å.")] = 3.8,
    policy: Annotated[
        list[str] | None, typer.Option(help="Again for each: coaf, take-all, …")
    ] = None,
    orders: Annotated[int, typer.Option(min=1, help="Random orders of the patches.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Of the orders.")] = 0,
    survey: Annotated[float, typer.Option(help="Seconds to survey a patch.")] = 12.09,
    move: Annotated[float, typer.Option(help="Seconds to move to it.")] = 51.99,
    expose: Annotated[float, typer.Option(help="Seconds per exposure.")] = 6.66,
    feedback_delay: Annotated[
        str, typer.Option(help="Seconds until a score arrives, or 'measured'.")
    ] = "0",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; all cores unless given.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Play policies over a recorded grid: one pass over its patches, in many random orders."""
    from coaf.cryoem.replay import replay as whole  # loads numba

    try:
        with bars(quiet=as_json) as watch:
            result = whole(
                folder,
                holes=holes,
                truth=truth,
                good_below=good_below,
                policies=tuple(policy or ("coaf", "take-all")),
                orders=orders,
                seed=seed,
                survey=survey,
                move=move,
                expose=expose,
                feedback_delay=_delay(feedback_delay),
                workers=workers,
                progress=lambda done, total: watch("playing", done, total),
            )
    except BAD_INPUT as error:
        fail(error)
    if as_json:
        typer.echo(json.dumps(result))
        return
    console.print(_table(result, f"{orders} orders, good below {good_below:g} Å"))


def _delay(text: str) -> Any:
    if text == "measured":
        return text
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"feedback-delay is {text!r}; give seconds, or measured") from None


def _table(result: dict[str, Any], title: str) -> Table:
    table = Table(title=title)
    table.add_column("policy")
    for heading in ("good per hour", "standard error", "good", "exposed", "hours"):
        table.add_column(heading, justify="right")
    for name, row in result["policies"].items():
        error = row.get("standard_error")
        table.add_row(
            name,
            f"{row['good_per_hour']:.1f}",
            "–" if error is None else f"{error:.2f}",
            f"{row['good']:.1f}",
            f"{row['exposed']:.1f}",
            f"{row['hours']:.2f}",
        )
    table.add_section()
    for name, value in result["yardsticks"].items():
        rate = value["good_per_hour"] if isinstance(value, dict) else value
        table.add_row(name.replace("_", " "), f"{rate:.1f}", "", "", "", "", style="dim")
    return table
