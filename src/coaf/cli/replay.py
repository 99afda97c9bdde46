"""`coaf replay`."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from coaf.cli.base import JsonFlag, app, needs
from coaf.cli.options import SEEDS, check_pilots, delay, number
from coaf.cli.options import folder as results
from coaf.cli.terminal import say, show
from coaf.cli.work import work

DAY = 86_400


def _file(text: str) -> Any:
    return typer.Option(metavar="FILE", exists=True, dir_okay=False, help=text)


def _seconds(text: str, *, least: str = "low") -> Any:
    told = f"Seconds {text}; those of the recording unless given"
    return number(told, metavar="S", **{least: 0, "high": DAY})


class EnvironmentName(StrEnum):
    """What others have published results in."""

    cryorl = "cryorl"


class Order(StrEnum):
    """How patches come."""

    random = "random"
    recorded = "recorded"
    free = "free"


@app.command()
def replay(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR",
            exists=True,
            file_okay=False,
            help="A recording: holes.csv, shots.csv and recording.toml; or CryoRL's two files.",
        ),
    ] = None,
    holes: Annotated[
        Path | None, _file("CryoRL's holes (name, prediction), where there are more.")
    ] = None,
    truth: Annotated[
        Path | None,
        _file("Their truth (name, x, y, CTFMaxRes, confidence), where there are more."),
    ] = None,
    environment: Annotated[
        EnvironmentName | None,
        typer.Option(
            help="A published setting: cryorl knows all holes ahead, and pilots are free to choose "
            "for 8 hours, with its times and good below 6 angstroms."
        ),
    ] = None,
    good_below: Annotated[
        float | None,
        number(
            "Good is a CTF fit below so many angstroms; 3.8 unless given",
            metavar="X",
            above=0,
            high=1000,
        ),
    ] = None,
    reward: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Any other reward, as 'particles/100' or 'ctf 3..8'."),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Again for each column that pilots see; all unless given."
        ),
    ] = None,
    no_columns: Annotated[
        bool, typer.Option("--no-columns", help="Pilots know nothing of holes beforehand.")
    ] = False,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Again for each: coaf, coaf-tuned, coaf-paper, take-all, window, fixed-cut, "
            "cut-and-count, score-order, microscopist, patch-order.",
        ),
    ] = None,
    order: Annotated[
        Order | None,
        typer.Option(
            help="random: each patch is shown once; recorded: likewise, as they were collected; "
            "free: pilots choose where to go. Random unless given.",
        ),
    ] = None,
    orders: Annotated[int, number("Random orders of the patches", low=1, high=1_000_000)] = 100,
    hours: Annotated[
        float | None,
        number("The time there is; to the end unless given", metavar="HOURS", above=0, high=10_000),
    ] = None,
    seed: Annotated[int, number("Of the orders", low=0, high=SEEDS)] = 0,
    survey: Annotated[float | None, _seconds("to survey a patch", least="above")] = None,
    move: Annotated[float | None, _seconds("to move to it")] = None,
    expose: Annotated[float | None, _seconds("per exposure", least="above")] = None,
    feedback_delay: Annotated[
        str,
        typer.Option(
            metavar="S", callback=delay, help="Seconds until a score arrives, or 'measured'."
        ),
    ] = "0",
    earlier: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="SESSION",
            exists=True,
            help="The folder of an earlier session, or its knowledge.json, for coaf to begin with.",
        ),
    ] = None,
    workers: Annotated[
        int | None, number("Processes; all cores unless given", low=1, high=1000)
    ] = None,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Play on this Dask cluster instead.")
    ] = None,
    out: Annotated[Path | None, results("For a report and a figure of good against time.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Play pilots over a recorded grid, and compare them with what could have been had."""
    if out is not None:
        needs("matplotlib")
    if column and no_columns:
        raise typer.BadParameter("give --column or --no-columns, not both.")
    from coaf.cryoem.recorded.replay import PLAYED  # loads scipy, as does the next
    from coaf.cryoem.recorded.replay import replay as whole

    policies = tuple(policy or ("coaf", "take-all"))
    check_pilots(policies, PLAYED)
    with work(quiet=as_json, out=out) as watch:
        from coaf.cryoem.pilots.knowledge import Knowledge  # loads numba
        from coaf.cryoem.reward import parse_reward

        result = whole(
            folder,
            holes=holes,
            truth=truth,
            environment=None if environment is None else environment.value,
            good_below=good_below,
            reward=None if reward is None else parse_reward(reward),
            columns=[] if no_columns else column or None,
            policies=policies,
            order=None if order is None else order.value,
            orders=orders,
            hours=hours,
            seed=seed,
            survey=survey,
            move=move,
            expose=expose,
            feedback_delay="measured" if feedback_delay == "measured" else float(feedback_delay),
            knowledge=None if earlier is None else Knowledge.load(earlier),
            workers=workers,
            dask=dask,
            out=out,
            progress=lambda done, total: watch("playing", done, total),
        )
    if as_json:
        typer.echo(json.dumps(result))
        return
    data = result["data"]
    headings = ("pilot", "good per hour", "standard error", "good", "exposed", "hours")
    rows = [_row(name, found) for name, found in result["policies"].items()]
    columns = data["yardstick_columns"]
    yardsticks = [_yardstick(n, value, columns.get(n)) for n, value in result["yardsticks"].items()]
    many = f"{data['orders']} orders" if data["order"] == "random" else f"{data['order']} order"
    told = data["reward"]
    wanted = f"good below {told.removeprefix('ctf<')} Å" if reward is None else told
    show(f"{data['name']}: {many}, {wanted}", headings, rows, below=yardsticks)
    if not yardsticks:
        say(
            "No yardstick: who is free to choose, without --hours, may collect the best hole alone."
        )
    if data["not_played"]:
        say(f"{data['not_played']} holes were not played: never exposed, or numbers are missing.")
    if out is not None:
        say(f"Report: {result['files'][0]}")


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


def _yardstick(name: str, value: Any, column: str | None) -> tuple[str, ...]:
    rate = value["good_per_hour"] if isinstance(value, dict) else value
    told = name.replace("_", " ") + (f" ({column})" if column else "")
    return told, f"{rate:.1f}", "", "", "", ""
