"""`coaf run`."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from coaf.cli.base import BAD_INPUT, JsonFlag, app, bars, console, errors, fail, needs


class Regime(StrEnum):
    """Times of the simulated microscope."""

    fast = "fast"
    slow = "slow"


@app.command()
def run(
    seed: Annotated[int, typer.Option(min=0, help="Of the grid: another is another grid.")] = 0,
    hours: Annotated[float, typer.Option(help="The time there is.")] = 3.0,
    regime: Annotated[
        Regime, typer.Option(help="fast: the paper's times; slow: those of a recorded grid.")
    ] = Regime.fast,
    squares: Annotated[int, typer.Option(min=1, help="Squares of the grid.")] = 32,
    policy: Annotated[
        str,
        typer.Option(
            help="What decides: coaf, take-all, window, fixed-cut, score-order, microscopist, "
            "clairvoyant."
        ),
    ] = "coaf",
    good_below: Annotated[float, typer.Option(help="Good is a CTF fit below so many Å.")] = 3.8,
    explore: Annotated[
        float, typer.Option(help="Share of what would be skipped that is taken to find out.")
    ] = 0.02,
    out: Annotated[Path, typer.Option(help="Folder for report, figures and events.")] = Path("out"),
    as_json: JsonFlag = False,
) -> None:
    """Collect from a simulated grid: a session, the other policies beside it, and a report."""
    needs("matplotlib")
    from coaf.cryoem.reward import GoodBelow
    from coaf.cryoem.run import run as whole  # loads numba

    try:
        with bars(quiet=as_json) as watch:
            sessions, files = whole(
                seed=seed,
                hours=hours,
                regime=regime.value,
                squares=squares,
                policy=policy,
                reward=GoodBelow(good_below),
                explore=explore,
                out=out,
                watch=watch,
            )
    except BAD_INPUT as error:
        fail(error)
    lines = [session.line() for session in sessions]
    if as_json:
        summary = {"session": sessions[0].summary(), "policies": {x["policy"]: x for x in lines}}
        typer.echo(json.dumps({**summary, "files": [str(path) for path in files]}))
        return
    console.print(_table(lines, f"{hours:g} hours on grid {seed}, good below {good_below:g} Å"))
    lost = sessions[0].summary()["unscored"]
    text = f"Of the micrographs of {policy}, {lost} had no score an hour after the end."
    console.print(text, highlight=False)
    for alarm in sessions[0].alarms:
        errors.print(alarm.message, markup=False, highlight=False)
    console.print(f"Report: {files[0]}", highlight=False)


def _table(lines: list[dict[str, Any]], title: str) -> Table:
    table = Table(title=title)
    table.add_column("policy", no_wrap=True)
    headings = ("good", "hours", "per hour", "exposed", "share", "squares", "patches")
    for heading in headings:
        table.add_column(heading, justify="right")
    for line in lines:
        table.add_row(
            line["policy"],
            f"{line['good']:.0f}",
            f"{line['hours']:.2f}",
            f"{line['good_per_hour']:.1f}",
            f"{line['exposed']}",
            f"{line['good_share']:.1%}",
            f"{line['squares']}",
            f"{line['patches_entered']}",
        )
    return table
