"""The report of a session: one HTML file that anyone can open."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from coaf.cryoem.reports import figures as draw
from coaf.cryoem.session.session import Row, Session
from coaf.cryoem.timing import HOUR
from coaf.version import __version__
from coaf.worlds.report import Cell, Page, save

_DECISIONS = ("open", "pass", "skip", "expose", "leave")
_INCIDENTS = ("alarm", "suspicion", "all clear", "upkeep", "refused")
_HEADINGS = {
    "policy": "policy",
    "good": "good",
    "good_per_hour": "good per hour",
    "exposed": "exposed",
    "good_share": "share good",
    "hours": "hours",
    "squares": "squares",
    "patches_entered": "patches entered",
    "patches_skipped": "patches skipped",
    "unscored": "not scored",
}


def write(sessions: Sequence[Session], out: Path, *, about: str = "") -> list[Path]:
    """Write the report of the first session, beside the others, and its figures as files.

    Parameters
    ----------
    sessions
        The first is what the report is about; the others are of the same grid.
    out
        The folder.
    about
        A sentence on what was collected from.
    """
    session, files, drawn = sessions[0], [], {}
    for name, figure in {
        "collected": draw.progress_figure(sessions),
        "rate": draw.rate_figure(session),
        "exposures": draw.hours_figure(session),
    }.items():
        png, vector = save(figure, out, name)
        files += [png, vector]
        drawn[name] = vector.read_bytes()
    return [_report(sessions, drawn, about).write(out / "report.html"), *files]


def _report(sessions: Sequence[Session], drawn: dict[str, bytes], about: str) -> Page:
    session = sessions[0]
    tally = session.summary()
    report = Page(
        f"A session of {session.hours:g} hours: {session.policy}",
        lead=f"{about} Good is {session.reward}. {tally['exposed']:,} holes were exposed in "
        f"{tally['patches_entered']} patches of {tally['squares']} squares; "
        f"{tally['good']:.0f} good ones are known, and {tally['unscored']} were never scored.",
    )
    _policies(report, sessions, drawn["collected"])
    report.section("Rate")
    report.figure(
        drawn["rate"],
        caption="What an hour was worth when things were decided: a hole is taken if it is "
        "expected to bring more than its seconds are worth. And what was collected per hour.",
        alt="Two lines against time: the price of an hour, and the reward collected per hour.",
    )
    report.figure(
        drawn["exposures"],
        caption="Exposures per hour, by how they turned out.",
        alt="Stacked bars: good, bad and not scored exposures per hour over the session.",
    )
    _incidents(report, session)
    _squares(report, session)
    _decisions(report, session)
    report.footer(f"coaf {__version__}. All events are in session.json, beside this page.")
    return report


def _policies(report: Page, sessions: Sequence[Session], drawing: bytes) -> None:
    report.section("Policies")
    report.text(
        "The same grid, collected again from the start by each policy, with the same luck. Good "
        "ones are counted by the simulator's truth, also where a score never came. The "
        "clairvoyant knows beforehand what each hole will give: a limit, not a rival."
        if len(sessions) > 1
        else "One session; only a simulated grid can be collected again by other policies."
    )
    lines = [session.line() for session in sessions]
    rows: list[list[Cell]] = [[_round(name, line[name]) for name in _HEADINGS] for line in lines]
    report.table(list(_HEADINGS.values()), rows)
    report.figure(
        drawing,
        caption="Good micrographs against time.",
        alt="A rising line for each policy: good micrographs collected against hours.",
    )


def _round(name: str, value: float | str) -> Cell:
    if isinstance(value, str):
        return value
    if name == "good_share":
        return f"{value:.1%}"
    return int(value) if value == int(value) and name != "hours" else round(value, 2)


def _incidents(report: Page, session: Session) -> None:
    rows = [row for row in session.rows if row["event"] in _INCIDENTS]
    tally = session.summary()
    report.section("Alarms and maintenance")
    if tally["held_back"]:
        report.text(f"{tally['held_back']} scores were held back from learning.")
    if not rows:
        report.text("None.")
        return
    report.table(
        ["time", "what", "minutes", "why"],
        [
            [
                _clock(row),
                row["event"],
                None if row["seconds"] is None else round(row["seconds"] / 60.0, 1),
                row["why"],
            ]
            for row in rows
        ],
    )


def _squares(report: Page, session: Session) -> None:
    report.section("Squares")
    report.text(
        "Every hole that was found, in the order the squares were opened. At its top right corner: "
        "the reward expected of it when its patch was last decided about. Green: taken and good. "
        "Orange: taken and bad. Yellow: taken and not scored. Thin blue: left. Dashed: taken to "
        "find out."
    )
    ends = draw.fates(session)
    for name, survey in session.surveys.items():
        holes = [hole.name for patch in survey.patches for hole in patch.holes]
        fates = [ends.get(hole, "left") for hole in holes]
        taken = len(holes) - fates.count("left")
        caption = f"{name}: {taken} of {len(holes)} holes taken, {fates.count('good')} good."
        if survey.excluded:
            caption += " Left out: " + ", ".join(f"{n} {r}" for r, n in survey.excluded.items())
        report.figure(
            draw.square_drawing(session, name, ends),
            caption=caption,
            alt=f"Square {name} with its holes ringed and their estimates written beside them.",
        )


def _decisions(report: Page, session: Session) -> None:
    report.section("Decisions")
    report.text("Every decision and its reason, half an hour a page.")
    rows = [row for row in session.rows if row["event"] in _DECISIONS]
    for page, group in groupby(rows, key=lambda row: int(row["clock"] // (HOUR / 2))):
        held = list(group)
        report.table(
            ["time", "what", "which", "estimate", "an hour is worth", "probability", "why"],
            [
                [
                    _clock(row),
                    row["event"],
                    row["hole"] or row["patch"] or row["square"] or "",
                    None if row["estimate"] is None else round(row["estimate"], 3),
                    None if row["rate"] is None else round(row["rate"] * HOUR, 1),
                    row["propensity"],
                    row["why"],
                ]
                for row in held
            ],
            folded=f"{page / 2:g} h to {(page + 1) / 2:g} h: {len(held)} decisions",
        )


def _clock(row: Row) -> str:
    minutes, seconds = divmod(int(row["clock"]), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"
