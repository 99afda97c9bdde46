"""`coaf replay`."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from coaf.cli.base import JsonFlag, app
from coaf.cli.options import SEEDS, delay, number
from coaf.cli.terminal import show
from coaf.cli.work import work

DAY = 86_400


def _file(text: str) -> Any:
    return typer.Option(metavar="FILE", exists=True, dir_okay=False, help=text)


@app.command()
def replay(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR",
            exists=True,
            file_okay=False,
            help="A recording: recording.toml, holes.csv and shots.csv; or CryoRL's files, one "
            "*_by_hl.txt, the holes, and one CSV, their truth.",
        ),
    ] = None,
    holes: Annotated[
        Path | None, _file("CryoRL's holes (name, prediction), where there are more.")
    ] = None,
    truth: Annotated[
        Path | None,
        _file("CryoRL's truth (name, x, y, CTFMaxRes, confidence), where there are more."),
    ] = None,
    good_below: Annotated[
        float, number("Good is a CTF fit below so many angstroms", metavar="X", above=0, high=1000)
    ] = 3.8,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Again for each: coaf, coaf-paper, coaf-tuned, take-all."
        ),
    ] = None,
    orders: Annotated[int, number("Random orders of the patches", low=1, high=1_000_000)] = 100,
    seed: Annotated[int, number("Of the orders", low=0, high=SEEDS)] = 0,
    survey: Annotated[
        float, number("Seconds to survey a patch", metavar="S", above=0, high=DAY)
    ] = 12.09,
    move: Annotated[float, number("Seconds to move to it", metavar="S", low=0, high=DAY)] = 51.99,
    expose: Annotated[float, number("Seconds per exposure", metavar="S", above=0, high=DAY)] = 6.66,
    feedback_delay: Annotated[
        str,
        typer.Option(
            metavar="S", callback=delay, help="Seconds until a score arrives, or 'measured'."
        ),
    ] = "0",
    workers: Annotated[
        int | None, number("Processes; all cores unless given", low=1, high=1000)
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Play policies over a recorded grid: one pass over its patches, in many random orders."""
    with work(quiet=as_json) as watch:
        from coaf.cryoem.recorded.replay import replay as whole  # loads numba

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
            feedback_delay="measured" if feedback_delay == "measured" else float(feedback_delay),
            workers=workers,
            progress=lambda done, total: watch("playing", done, total),
        )
    if as_json:
        typer.echo(json.dumps(result))
        return
    headings = ("policy", "good per hour", "standard error", "good", "exposed", "hours")
    rows = [_row(name, found) for name, found in result["policies"].items()]
    yardsticks = [_yardstick(name, value) for name, value in result["yardsticks"].items()]
    show(f"{orders} orders, good below {good_below:g} Å", headings, rows, below=yardsticks)


def _row(name: str, found: dict[str, Any]) -> tuple[str, ...]:
    error = found.get("standard_error")
    return (
        name,
        f"{found['good_per_hour']:.1f}",
        "–" if error is None else f"{error:.2f}",
        f"{found['good']:.1f}",
        f"{found['exposed']:.1f}",
        f"{found['hours']:.2f}",
    )


def _yardstick(name: str, value: Any) -> tuple[str, ...]:
    rate = value["good_per_hour"] if isinstance(value, dict) else value
    return name.replace("_", " "), f"{rate:.1f}", "", "", "", ""
