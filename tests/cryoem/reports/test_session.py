"""Tallies are what the rows say, and reports show what was measured."""

import json
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from coaf.cryoem.grid import Hole, Patch
from coaf.cryoem.microscope import Survey
from coaf.cryoem.pilots.catalogue import OTHERS
from coaf.cryoem.recorded.microscope import RecordedMicroscope
from coaf.cryoem.reports import session as session_report
from coaf.cryoem.reports.atlas import atlas_map
from coaf.cryoem.reports.outcomes import Outcomes
from coaf.cryoem.reports.reproduce import on_grid
from coaf.cryoem.reports.square_map import square_map, thumbnail
from coaf.cryoem.reward import parse_reward
from coaf.cryoem.session.collect import collect
from coaf.cryoem.session.session import Session, row_of
from coaf.cryoem.simulator.simulator import Simulator
from cryoem.recorded.recordings import small


@pytest.fixture(scope="module")
def session() -> Session:
    microscope = Simulator(3, squares=4, pixels=False, prediction=True)
    return collect(microscope, "microscopist", hours=1.0, explore=0.05)


def test_the_summary_is_what_the_rows_say(session: Session) -> None:
    exposed = {r["hole"] for r in session.rows if r["event"] == "expose" and r["clock"] <= 3600.0}
    scored = [r for r in session.rows if r["event"] == "score" and r["hole"] in exposed]
    tally = session.summary()
    assert tally["exposed"] == len(exposed) > 0
    assert tally["good"] == sum(row["reward"] or 0.0 for row in scored)
    assert tally["unscored"] == len(exposed) - len(scored) > 0
    assert session.truth is not None
    assert tally["true_good"] == sum(session.truth[str(hole)] for hole in exposed)
    assert tally["true_good"] >= tally["good"]
    assert tally["good_per_hour"] == pytest.approx(tally["true_good"] / tally["hours"])
    assert tally["hours"] <= 1.0
    assert tally["explored"] == sum((r["propensity"] or 1.0) < 1.0 for r in session.exposures())


def test_what_is_over_too_late_does_not_count() -> None:
    session = Session("any", "ctf<3.8", 1.0, shots={"a": 1, "b": 1})
    for clock, hole in ((3599.0, "a"), (3601.0, "b")):
        session.rows.append(row_of(clock, "expose", {"hole": hole, "patch": "p"}))
        session.rows.append(row_of(clock + 40.0, "score", {"hole": hole, "reward": 1.0}))
    tally = session.summary()
    assert (tally["exposed"], tally["good"], tally["unscored"]) == (1, 1.0, 0)
    assert tally["hours"] == 1.0


def test_a_score_without_a_value_is_scored_and_not_good() -> None:
    session = Session("any", "particles/100", 1.0, shots={"a": 1})
    session.rows.append(row_of(10.0, "expose", {"hole": "a", "patch": "p"}))
    session.rows.append(row_of(50.0, "score", {"hole": "a", "reward": None}))
    assert session.scores() == {}
    assert session.summary()["unscored"] == 0


def test_the_curve_rises_to_the_total(session: Session) -> None:
    hours, gained = session.curve()
    assert np.all(np.diff(hours) >= 0.0)
    assert np.all(np.diff(gained) >= 0.0)
    assert gained[-1] == session.summary()["true_good"]
    held = on_grid(session, 31)
    for k, at in enumerate(np.linspace(0.0, 1.0, 31)):
        assert held[k] == gained[hours <= at][-1]


def test_the_table_has_every_rival_on_the_same_grid(session: Session) -> None:
    table = session.table()
    names = [row["policy"] for row in table]
    assert names[0] == "microscopist"
    assert set(names) == set(OTHERS)
    assert len(names) == len(OTHERS)
    best = max(table, key=lambda row: row["good"])
    assert best["policy"] == "clairvoyant"


def test_a_real_microscope_has_no_table() -> None:
    with pytest.raises(ValueError, match="only a session on a simulator"):
        Session("any", "ctf<3.8", 1.0).table()


def test_everything_is_json(session: Session) -> None:
    plain = json.loads(json.dumps(session.plain(), allow_nan=False))
    assert plain["summary"]["exposed"] == session.summary()["exposed"]
    assert len(plain["rows"]) == len(session.rows)


class Reader(HTMLParser):
    """Checks that what is opened is closed; collects addresses, identifiers, titles and text."""

    void = frozenset({"meta", "img", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.names: list[str] = []
        self.words: dict[str, list[str]] = {}
        self.tags: dict[str, int] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] = self.tags.get(tag, 0) + 1
        if tag not in self.void:
            self.open.append(tag)
        self.addresses += [v or "" for k, v in attrs if k in ("src", "href", "xlink:href")]
        self.names += [v or "" for k, v in attrs if k == "id"]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.void:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.setdefault(self.open[-1] if self.open else "", []).append(data)


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    return reader


def written(session: Session, out: Path) -> str:
    pytest.importorskip("matplotlib", reason="figures need coaf[experiments]")
    report = session_report.write([session], out, about="A test grid.")[0]
    return report.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def coaf_session() -> Session:
    microscope = Simulator(3, squares=3, prediction=True)
    return collect(microscope, "coaf", hours=0.4, explore=0.05)


def test_the_report_asks_for_nothing_and_links_lead_somewhere(
    session: Session, coaf_session: Session, tmp_path: Path
) -> None:
    for number, one in enumerate((session, coaf_session)):
        page = written(one, tmp_path / str(number))
        reader = read(page)
        assert len(set(reader.names)) == len(reader.names)
        for address in reader.addresses:
            assert address.startswith("data:") or address[1:] in reader.names
        for outside in ("http://", "https://", "@import", "url(", "fetch("):
            assert outside not in page


def test_every_decision_has_its_reason_and_what_came_of_it(
    coaf_session: Session, tmp_path: Path
) -> None:
    page = written(coaf_session, tmp_path)
    outcomes = Outcomes(coaf_session)
    for row in coaf_session.rows:
        if row["event"] == "expose":
            hole = str(row["hole"])
            assert page.count(f'title="{hole}"') == 1
            line = page[page.index(f'title="{hole}"') :].split("</tr>")[0]
            assert f">{outcomes.came(hole)}</td>" in line
            assert escape(row["why"]) in line
    for word in (" arm ", "a second is worth", "estimated at"):
        assert word not in page


def test_measured_values_stand_on_holes(coaf_session: Session, tmp_path: Path) -> None:
    page, engine = written(coaf_session, tmp_path), coaf_session.engine
    outcomes = Outcomes(coaf_session)
    assert engine is not None
    titles = {text.splitlines()[0]: text for text in read(page).words["title"] if "\n" in text}
    scored = 0
    for hole, one in outcomes.taken.items():
        title = titles[outcomes.short(hole)]
        assert one.row["why"] in title
        if (hole, 0) not in engine.learning.values:
            assert "measured: not scored" in title
            continue
        scored += 1
        values = engine.learning.values[hole, 0]
        fit = values["ctf"]
        assert outcomes.label(hole) == (f"{fit:.1f}" if fit else "–")
        told = f"{fit:.1f} Å" if fit else "no fit"
        assert f"measured: {told}, " in title
        if values["particles"] is not None:
            assert f", {values['particles']:.0f} particles, {one.fate}\n" in title
        assert (one.fate == "good") == (fit is not None and fit < 3.8)
        assert f"expected when decided: {outcomes.expected(one.row['estimate'])}" in title
    assert scored > 50


@pytest.mark.parametrize("reward", ["particles/100", "ctf 3..8"])
def test_other_rewards_are_counted_in_their_own_units(reward: str, tmp_path: Path) -> None:
    microscope = Simulator(3, squares=3, pixels=False, prediction=True)
    session = collect(microscope, "coaf", hours=0.3, reward=parse_reward(reward))
    page, outcomes = written(session, tmp_path), Outcomes(session)
    assert "good micrographs" not in page
    if reward == "particles/100":
        hole, score = next(iter(session.scores().items()))
        assert outcomes.came(hole).endswith(f"{100.0 * score:.0f} particles")
        assert "particles an hour" in page
        halves = [one.fate for one in outcomes.taken.values() if one.score is not None]
        assert halves.count("good") >= halves.count("bad") > 0


def test_the_atlas_shows_every_square_and_what_it_gave(session: Session) -> None:
    outcomes = Outcomes(session)
    names = {name: f"q{k}" for k, name in enumerate(session.surveys)}
    (drawn,) = atlas_map(outcomes, names)
    assert read(drawn).tags["rect"] == len(outcomes.squares) == 4
    assert drawn.count("<a ") == len(session.surveys)
    assert drawn.count("unopened") == 4 - len(session.surveys)
    for name in session.surveys:
        given = outcomes.of_square(name)
        rows = [row for row in session.rows if row["square"] == name]
        taken = {row["hole"] for row in rows if row["event"] == "expose"}
        assert given.taken == len(taken)
        assert given.brought == sum(session.scores().get(str(hole), 0.0) for hole in taken)
        assert given.seconds == pytest.approx(
            sum(row["seconds"] or 0.0 for row in rows if row["event"] in ("open", "expose"))
        )
    assert sum(outcomes.of_square(name).brought for name in session.surveys) == sum(
        session.scores().values()
    )


def test_a_square_is_drawn_with_all_its_holes_and_patches(
    session: Session, coaf_session: Session
) -> None:
    pytest.importorskip("PIL", reason="pictures need Pillow")
    for one in (session, coaf_session):
        outcomes = Outcomes(one)
        assert set(outcomes.fates()) == set(one.shots)
        for name, survey in one.surveys.items():
            holes = [hole.name for patch in survey.patches for hole in patch.holes]
            drawn = square_map(outcomes, name, {hole: hole for hole in holes})
            assert drawn.count("<circle") == len(holes)
            assert drawn.count("<path") == len(survey.patches)
            assert ("data:image/jpeg" in drawn) == (survey.image is not None)
            taken = sum(hole in outcomes.taken for hole in holes)
            assert thumbnail(outcomes, name).count("<circle") == taken


def test_what_others_named_is_escaped(tmp_path: Path) -> None:
    """Names and reasons come from elsewhere: neither may become a part of the page."""
    bad = '<script>alert("&amp;")</script>'
    patch = Patch(f"p{bad}", f"s{bad}", (Hole(f"h{bad}", 1.0, 2.0), Hole("other", 3.0, 2.0)), 0, 0)
    survey = Survey(f"s{bad}", (patch,), {}, excluded={bad: 1})
    session = Session(bad, bad, 1.0, surveys={survey.square: survey}, shots={f"h{bad}": 1})
    known = {"square": f"s{bad}", "patch": patch.name, "why": bad, "seconds": 10.0}
    session.rows += [
        row_of(10.0, "open", known),
        row_of(20.0, "expose", known | {"hole": f"h{bad}", "estimate": 0.3}),
        row_of(30.0, "leave", known),
        row_of(40.0, "alarm", {"why": bad}),
    ]
    page = written(session, tmp_path)
    assert page.count("<script>") == 1
    assert "alert(&quot;&amp;amp;" in page
    titles = read(page).words["title"]
    assert any(bad in title for title in titles)


def test_recordings_without_images_have_a_report(tmp_path: Path) -> None:
    session = collect(RecordedMicroscope(small()), "coaf", hours=0.5)
    page, outcomes = written(session, tmp_path), Outcomes(session)
    assert outcomes.came("h1").startswith("3.0, 5.0, none Å, 100, 50, none particles")
    assert outcomes.label("h1") == "3.0"
    for hole in session.shots:
        assert f'title="{hole}"' in page


def test_a_session_of_which_only_rows_were_kept_has_a_report(tmp_path: Path) -> None:
    microscope = Simulator(3, squares=2, pixels=False, prediction=True)
    whole = collect(microscope, "coaf", hours=0.2)
    kept = replace(whole, engine=None, truth=None, others=None)
    page, outcomes = written(kept, tmp_path), Outcomes(kept)
    assert set(outcomes.squares) == set(kept.surveys)
    assert {outcomes.label(hole) for hole in kept.shots} <= {"0", "1", "?"}
    assert all(escape(row["why"]) in page for row in kept.rows if row["event"] == "expose")


def test_a_session_in_which_nothing_happened_has_a_report(tmp_path: Path) -> None:
    assert "0 holes were exposed" in written(Session("any", "ctf<3.8", 1.0), tmp_path)
