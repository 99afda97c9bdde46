"""The report of a session: one HTML file that anyone can open."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import groupby
from pathlib import Path

from coaf.cryoem.pilot import guess_of
from coaf.cryoem.reports import figures as draw
from coaf.cryoem.reports.atlas import atlas_map
from coaf.cryoem.reports.look import SCRIPT, STYLE
from coaf.cryoem.reports.outcomes import Outcomes, clock, tally
from coaf.cryoem.reports.square_map import square_map, thumbnail
from coaf.cryoem.session.session import Row, Session
from coaf.cryoem.timing import HOUR
from coaf.cryoem.unit import Unit
from coaf.version import __version__
from coaf.worlds.report import Cell, Page, save

_DECISIONS = ("open", "pass", "skip", "go", "expose", "leave")
_INCIDENTS = ("alarm", "suspicion", "all clear", "call", "upkeep", "refused")


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
    outcomes = Outcomes(session)
    for name, figure in {
        "collected": draw.progress_figure(sessions, unit=outcomes.unit),
        "rate": draw.rate_figure(session, unit=outcomes.unit),
        "exposures": draw.hours_figure(session, outcomes.fates()),
    }.items():
        png, vector = save(figure, out, name)
        files += [png, vector]
        drawn[name] = vector.read_bytes()
    return [_report(sessions, outcomes, drawn, about).write(out / "report.html"), *files]


def _report(
    sessions: Sequence[Session], outcomes: Outcomes, drawn: dict[str, bytes], about: str
) -> Page:
    session, unit = outcomes.session, outcomes.unit
    report = Page(
        f"A session of {session.hours:g} hours: {session.policy}",
        lead=f"{about} {_aim(session, unit)} {_collected(session, unit)}".strip(),
        style=STYLE,
        script=SCRIPT,
    )
    _policies(report, sessions, unit, drawn["collected"])
    report.section("Rate")
    report.figure(
        drawn["rate"],
        caption="What an hour was worth when things were decided: a hole is taken if it is "
        "expected to bring more than its seconds are worth. And what was collected per hour.",
        alt=f"Two lines against time: what an hour was worth, and {draw.axis(unit)} collected "
        "per hour.",
    )
    report.figure(
        drawn["exposures"],
        caption="Exposures per hour, by how they turned out.",
        alt="Stacked bars: good, bad and not scored exposures per hour over the session.",
    )
    if session.engine is not None and (guess := guess_of(session.engine.learning.pilot)):
        report.section("Expected, and learned")
        report.text(guess)
    _incidents(report, session)
    squares = {name: f"q{k}" for k, name in enumerate(session.surveys, start=1)}
    surveyed = (patch for survey in session.surveys.values() for patch in survey.patches)
    every = dict.fromkeys(hole.name for patch in surveyed for hole in patch.holes)
    holes = {name: f"h{k}" for k, name in enumerate(every, start=1)}
    _atlas(report, outcomes, squares)
    _squares(report, outcomes, squares, holes)
    _decisions(report, outcomes, squares | holes)
    report.footer(f"coaf {__version__}. All events are in session.json, beside this page.")
    return report


def _aim(session: Session, unit: Unit) -> str:
    cut = session.reward.removeprefix("ctf<")
    if unit.chance and cut != session.reward and cut.replace(".", "").isdigit():
        return f"Good is a CTF fit better than {cut} Å."
    return f"The reward is {session.reward}."


def _collected(session: Session, unit: Unit) -> str:
    done = session.summary()
    known = f"{unit.count(max(done['good'], 0.0))} are known"
    return (
        f"{done['exposed']:,} holes were exposed in {done['patches_entered']} patches of "
        f"{done['squares']} squares; {known}, and {done['unscored']} were never scored."
    )


def _policies(report: Page, sessions: Sequence[Session], unit: Unit, drawing: bytes) -> None:
    what = draw.axis(unit)
    headings = {
        "policy": "pilot",
        "good": "good" if unit.chance else what,
        "good_per_hour": "good per hour" if unit.chance else "per hour",
        "exposed": "exposed",
        "good_share": "share good",
        "hours": "hours",
        "squares": "squares",
        "patches_entered": "patches entered",
        "patches_skipped": "patches skipped",
        "unscored": "not scored",
    }
    if not unit.chance:
        del headings["good_share"]
    report.section("Pilots")
    report.text(
        "The same grid, collected again from the start by each pilot, with the same luck. Good "
        "ones are counted by the simulator's truth, also where a score never came. The "
        "clairvoyant knows beforehand what each hole will give: a limit, not a rival."
        if len(sessions) > 1
        else "One session; only a simulated grid can be collected again by other pilots."
    )
    rows = []
    for session in sessions:
        line = session.line()
        line |= {name: line[name] * unit.scale for name in ("good", "good_per_hour")}
        rows.append([_round(name, line[name]) for name in headings])
    report.table(list(headings.values()), rows)
    report.figure(
        drawing,
        caption=f"{what.capitalize()} against time.",
        alt=f"A rising line for each pilot: {what} collected against hours.",
    )


def _round(name: str, value: float | str) -> Cell:
    if isinstance(value, str):
        return value
    if name == "good_share":
        return f"{value:.1%}"
    return int(value) if value == int(value) and name != "hours" else round(value, 2)


def _incidents(report: Page, session: Session) -> None:
    rows = [row for row in session.rows if row["event"] in _INCIDENTS]
    done = session.summary()
    report.section("Alarms and maintenance")
    if done["held_back"]:
        report.text(f"{done['held_back']} scores were held back from learning.")
    if not rows:
        report.text("None.")
        return
    report.table(
        ["time", "what", "minutes", "why"],
        [
            [
                clock(row["clock"]),
                row["event"],
                None if row["seconds"] is None else round(row["seconds"] / 60.0, 1),
                row["why"],
            ]
            for row in rows
        ],
    )


def _atlas(report: Page, outcomes: Outcomes, names: Mapping[str, str]) -> None:
    what = draw.axis(outcomes.unit)
    report.section("Atlas")
    report.text(
        f"The squares where they are on the grid. Large: {what} an hour of the time that was spent "
        "there, as far as scores tell. Small: in which order they were opened. A click opens a "
        "square below."
    )
    report.inline(
        _legend(
            "squares",
            {
                "gave": f"gave {what}: the more an hour, the stronger the green",
                "gave-none": "holes taken, nothing good known",
                "untaken": "opened, nothing taken",
                "unopened": "not opened",
            },
        )
    )
    for drawing in atlas_map(outcomes, names):
        report.inline(drawing)


def _squares(
    report: Page, outcomes: Outcomes, names: Mapping[str, str], holes: Mapping[str, str]
) -> None:
    unit, session = outcomes.unit, outcomes.session
    label = "the CTF fit in Å" if outcomes.shows_fits else draw.axis(unit)
    bar = f"at least {unit.count(outcomes.bar)}, the median" if outcomes.bar > 0.0 else ""
    report.section("Squares")
    report.text(
        "Every hole that was found, in the order the squares were opened; a click opens a square. "
        "At the top right of a hole: what was expected of it when it was taken, or when its patch "
        f"was last decided about. In it: what was measured, {label}. Point at a hole or a patch to "
        "read when and why. Patches are outlined, dashed where none of their holes was taken."
    )
    report.inline(
        _legend(
            "holes",
            {
                "good": f"good: {bar}" if bar else "good",
                "bad": "less than that" if bar else "bad",
                "not-scored": "not scored (?)",
                "left": "left",
                "chance": "dashed: taken by chance, to find out",
            },
        )
    )
    parts = ['<div class="gallery">']
    for number, (square, name) in enumerate(names.items(), start=1):
        survey, given = session.surveys[square], outcomes.of_square(square)
        caption = f"<b>{number}. {escape(outcomes.short(square))}</b>"
        caption += f"<span>{escape(tally(given, unit))}</span>"
        if survey.excluded:
            left_out = ", ".join(f"{count} {why}" for why, count in survey.excluded.items())
            caption += f"<span>left out: {escape(left_out)}</span>"
        parts.append(
            f'<details class="opened" id="{name}"><summary>{thumbnail(outcomes, square)}{caption}'
            f'</summary><div class="map">{square_map(outcomes, square, holes)}</div></details>'
        )
    report.inline("\n".join([*parts, "</div>"]))


def _legend(kind: str, words: Mapping[str, str]) -> str:
    lines = (f'<li><i class="{name}"></i>{escape(text)}</li>' for name, text in words.items())
    return f'<ul class="legend {kind}">{"".join(lines)}</ul>'


def _decisions(report: Page, outcomes: Outcomes, names: Mapping[str, str]) -> None:
    report.section("Decisions")
    report.text(
        "Every decision with its reason and what came of it, half an hour a page. Names lead to "
        "the squares above."
    )
    rows = [row for row in outcomes.rows if row["event"] in _DECISIONS]
    titles = ("time", "what", "which", "expected", "what came of it", "why")
    head = "".join(f"<th>{title}</th>" for title in titles)
    for page, group in groupby(rows, key=lambda row: int(row["clock"] // (HOUR / 2))):
        held = list(group)
        body = "\n".join(f"<tr>{''.join(_cells(row, outcomes, names))}</tr>" for row in held)
        report.inline(
            f"<details><summary>{page / 2:g} h to {(page + 1) / 2:g} h: {len(held)} decisions"
            f'</summary><div class="scroll"><table class="decisions"><thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table></div></details>"
        )


def _cells(row: Row, outcomes: Outcomes, names: Mapping[str, str]) -> Iterator[str]:
    which = row["hole"] or row["patch"] or row["square"] or ""
    shown = escape(outcomes.short(which))
    if which in names or row["square"] in names:
        at = names.get(which) or names[str(row["square"])]
        shown = f'<a href="#{at}" title="{escape(which, quote=True)}">{shown}</a>'
    # What a square is worth is no estimate of a hole: the reason tells it.
    expected = outcomes.expected(row["estimate"]) if row["event"] == "expose" else ""
    came, kind = _came(row, outcomes)
    yield f"<td>{clock(row['clock'])}</td><td>{escape(row['event'])}</td><td>{shown}</td>"
    yield f'<td class="number">{escape(expected)}</td>'
    yield f'<td class="came {kind}">{escape(came)}</td><td>{escape(row["why"])}</td>'


def _came(row: Row, outcomes: Outcomes) -> tuple[str, str]:
    """What came of a decision, and how that is to be shown."""
    hole, square = row["hole"], row["square"]
    if row["event"] == "expose" and hole in outcomes.taken:
        return outcomes.came(hole), outcomes.taken[hole].fate.replace(" ", "-")
    if row["event"] == "open" and square in outcomes.session.surveys:
        given = outcomes.of_square(square)
        told = tally(given, outcomes.unit)
        if given.taken:
            told += f": {outcomes.unit.count(max(given.per_hour, 0.0))} an hour"
        return told, ""
    if row["event"] in ("go", "leave") and square in outcomes.session.surveys:
        for patch in outcomes.session.surveys[square].patches:
            if patch.name == row["patch"]:
                return tally(outcomes.of_patch(patch), outcomes.unit), ""
    return "", ""
