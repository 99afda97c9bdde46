"""Tallies are what the rows say."""

import json
from pathlib import Path

import numpy as np
import pytest

from coaf.cryoem.pilots.catalogue import OTHERS
from coaf.cryoem.reports import session as session_report
from coaf.cryoem.reports.figures import fates, square_drawing
from coaf.cryoem.reports.reproduce import on_grid
from coaf.cryoem.session.collect import collect
from coaf.cryoem.session.session import Session, row_of
from coaf.cryoem.simulator.simulator import Simulator


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


def test_the_report_is_one_file_with_every_decision(session: Session, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures need coaf[experiments]")
    report = session_report.write([session], tmp_path, about="A test grid.")[0]
    page = report.read_text(encoding="utf-8")
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert 'src="http' not in page
    for row in session.rows:
        if row["event"] == "expose":
            assert page.count(f"<td>{row['hole']}</td>") == 1
    assert all(square in page for square in session.surveys)


def test_a_square_is_drawn_with_all_its_holes(session: Session) -> None:
    pytest.importorskip("PIL", reason="pictures need Pillow")
    ends = fates(session)
    assert set(ends) == set(session.shots)
    for name, survey in session.surveys.items():
        drawn = square_drawing(session, name, ends).decode()
        assert drawn.count("<circle") == sum(len(patch.holes) for patch in survey.patches)
