"""`coaf run`."""

import json
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coaf.cli.base import JsonFlag, app, needs
from coaf.cli.options import SEEDS, check_pilots, folder, number
from coaf.cli.terminal import errors, say, show
from coaf.cli.work import work
from coaf.cryoem.session.events import CASSETTE

if TYPE_CHECKING:
    from coaf.cryoem.unit import Unit


class RegimeName(StrEnum):
    """Times of the simulated microscope."""

    fast = "fast"
    slow = "slow"


@app.command()
def run(
    seed: Annotated[int, number("Of the grid: another is another grid", low=0, high=SEEDS)] = 0,
    hours: Annotated[
        float, number("The time there is", metavar="HOURS", above=0, high=10_000)
    ] = 3.0,
    regime: Annotated[
        RegimeName, typer.Option(help="fast: the paper's times; slow: those of a recorded grid.")
    ] = RegimeName.fast,
    squares: Annotated[int, number("Squares of the grid", low=1, high=10_000)] = 32,
    policy: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What decides: coaf, coaf-tuned, coaf-paper, take-all, window, fixed-cut, "
            "cut-and-count, score-order, microscopist, patch-order, clairvoyant; for "
            "cassettes also screen-all, equal-time, in-turn.",
        ),
    ] = "coaf",
    good_below: Annotated[
        float, number("Good is a CTF fit below so many angstroms", metavar="X", above=0, high=1000)
    ] = 3.8,
    reward: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Any other reward, as 'particles' or 'ctf 3..8'."),
    ] = None,
    grids: Annotated[
        int,
        number(
            "Grids of a cassette, from a population; no square is drawn then", low=1, high=CASSETTE
        ),
    ] = 1,
    earlier: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="SESSION",
            exists=True,
            help="The folder of an earlier session, or its knowledge.json, to begin with.",
        ),
    ] = None,
    explore: Annotated[
        float,
        number(
            "Of what would be skipped, so much is taken to find out",
            metavar="SHARE",
            low=0,
            high=1,
        ),
    ] = 0.02,
    seeds: Annotated[
        int,
        number("So many grids, from --seed on; squares are not drawn then", low=1, high=100_000),
    ] = 1,
    workers: Annotated[
        int | None, number("Processes for many grids; all cores unless given", low=1, high=1000)
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Play many grids on this Dask cluster instead."),
    ] = None,
    out: Annotated[Path, folder("For report, figures, events and recording.")] = Path("out"),
    as_json: JsonFlag = False,
) -> None:
    """Collect from a simulated grid: a session, the other pilots beside it, and a report.

    With --seeds, from many grids: what each pilot collects on average, and by how much one leads.
    """
    needs("matplotlib")
    if seeds > 1 and (grids > 1 or earlier is not None):
        raise typer.BadParameter("--seeds plays single grids from nothing: no --grids, no --from.")
    from coaf.cryoem.pilots.catalogue import GRID_RULES, PILOTS  # loads scipy

    check_pilots([policy], PILOTS)
    if policy in GRID_RULES and grids == 1:
        raise typer.BadParameter(f"{policy} is a rule for cassettes: give --grids, too.")
    if seeds > 1:
        same: dict[str, Any] = {"hours": hours, "regime": regime.value, "squares": squares}
        same |= {"policy": policy, "explore": explore, "workers": workers, "dask": dask}
        _many(range(seed, seed + seeds), _text(good_below, reward), same, out, as_json)
        return
    if workers is not None or dask is not None:
        raise typer.BadParameter("--workers and --dask are for many grids: give --seeds, too.")
    with work(quiet=as_json, out=out) as watch:
        from coaf.cryoem.pilots.knowledge import Knowledge  # loads numba, as do the next
        from coaf.cryoem.reports.cassette import run_cassette, visits
        from coaf.cryoem.reports.run import run as whole
        from coaf.cryoem.reward import parse_reward
        from coaf.cryoem.unit import unit_of

        worth = parse_reward(_text(good_below, reward))
        play = whole if grids == 1 else partial(run_cassette, grids=grids)
        sessions, files = play(
            seed=seed,
            hours=hours,
            regime=regime.value,
            squares=squares,
            policy=policy,
            reward=worth,
            explore=explore,
            knowledge=None if earlier is None else Knowledge.load(earlier),
            out=out,
            watch=watch,
        )
    lines = [session.line() for session in sessions]
    if as_json:
        summary: dict[str, Any] = {"session": sessions[0].summary()}
        summary |= {"policies": {x["policy"]: x for x in lines}}
        summary |= {"grids": visits(sessions[0])} if grids > 1 else {}
        typer.echo(json.dumps({**summary, "files": [str(path) for path in files]}))
        return
    unit = unit_of(worth)
    where = f"grid {seed}" if grids == 1 else f"{grids} grids of cassette {seed}"
    title = f"{unit.heading} in {hours:g} hours on {where}, {_for(good_below, reward)}"
    each = "share" if unit.short == "good" else "per shot"
    headings = ("pilot", unit.short, "hours", unit.per_hour, "exposed", each, "squares", "patches")
    show(title, headings, [_row(line, unit) for line in lines])
    lost = sessions[0].summary()["unscored"]
    if lost:
        say(f"Of the micrographs of {policy}, {lost} had no score when the time was over.")
    calls = [str(row["why"]) for row in sessions[0].rows if row["event"] == "call"]
    for message in (*(alarm.message for alarm in sessions[0].alarms), *calls):
        say(message, to=errors)
    if grids > 1:
        for session in sessions:
            loaded = ", ".join(f"{name} at {hour:.1f} h" for name, hour in visits(session))
            say(f"{session.policy}: {loaded}.")
    say(f"{'Report' if grids == 1 else 'Events'}: {files[0]}")


def _text(good_below: float, reward: str | None) -> str:
    """The reward as it is written."""
    return f"ctf<{good_below!r}" if reward is None else reward


def _for(good_below: float, reward: str | None) -> str:
    """The reward as it is said."""
    return f"good below {good_below:g} Å" if reward is None else f"reward {reward}"


def _many(seeds: range, reward: str, same: dict[str, Any], out: Path, as_json: bool) -> None:
    with work(quiet=as_json, out=out) as watch:
        from coaf.cryoem.reports.grids import run_grids  # loads numba, as do the next
        from coaf.cryoem.reports.words import shown
        from coaf.cryoem.reward import parse_reward
        from coaf.cryoem.unit import unit_of

        worth = parse_reward(reward)
        summary = run_grids(seeds=seeds, reward=worth, out=out, watch=watch, **same)
    if as_json:
        typer.echo(json.dumps(summary))
        return
    rows = []
    for name, found in summary["policies"].items():
        lead, good = found["lead"], shown(found["good"]["value"])
        told = "" if lead is None else _interval(*(lead[key] for key in ("value", "low", "high")))
        rows.append((name, good, shown(found["good_per_hour"]), f"{found['exposed']:.0f}", told))
    unit = unit_of(worth)
    title = f"{unit.heading} in {summary['hours']:g} hours on {summary['grids']} grids, {worth}"
    show(title, ("pilot", unit.short, unit.per_hour, "exposed", "lead of the first (95 %)"), rows)
    say(f"Report: {summary['files'][0]}")


def _interval(value: float, low: float, high: float) -> str:
    return f"{value:+,.0f} ({low:+,.0f} to {high:+,.0f})"


def _row(line: dict[str, Any], unit: "Unit") -> tuple[str, ...]:
    share = line["good_share"]
    return (
        line["policy"],
        f"{unit.scale * line['good']:,.0f}",
        f"{line['hours']:.2f}",
        f"{unit.scale * line['good_per_hour']:,.1f}",
        f"{line['exposed']}",
        f"{share:.1%}" if unit.short == "good" else f"{unit.scale * share:.3g}",
        f"{line['squares']}",
        f"{line['patches_entered']}",
    )
