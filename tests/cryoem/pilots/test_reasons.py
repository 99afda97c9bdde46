"""Reasons are in the words of who sits at the microscope, and say what is not known."""

from dataclasses import replace
from pathlib import Path

import pytest

from coaf.cryoem.pilots import reasons
from coaf.cryoem.pilots.reasons import Facing
from coaf.cryoem.reward import parse_reward
from coaf.cryoem.session.collect import collect
from coaf.cryoem.simulator.simulator import Simulator
from coaf.cryoem.unit import MICROGRAPHS, REWARD, Unit, unit_of

DOCS = Path(__file__).resolve().parents[3] / "docs"
PARTICLES = Unit("particles", 100.0)
NOW = Facing(21, 0.08, rate=122.0 / 3600.0, seconds=6.5, gain=-1.8)
INSIDE = replace(NOW, inside=True, gain=0.4)


def test_a_patch_that_is_skipped() -> None:
    assert reasons.no_hole(MICROGRAPHS, NOW) == (
        "Skip: the best of 21 holes is expected to be good with 8 %; an hour is worth 122 good "
        "micrographs; going there would lose 1.8 of them."
    )
    assert reasons.no_hole(PARTICLES, NOW) == (
        "Skip: the best of 21 holes is expected to give 8 particles; an hour is worth 12,200 "
        "particles; going there would lose 180 of them."
    )
    assert reasons.no_hole(REWARD, NOW).endswith("worth 122 of reward; going there would lose 1.8.")


def test_a_patch_that_is_left() -> None:
    assert reasons.no_hole(MICROGRAPHS, INSIDE) == (
        "Leave: the best of 21 holes left is expected to be good with 8 %, and its 6.5 s are "
        "worth 0.22 good micrographs, as an hour is worth 122."
    )
    assert reasons.no_hole(MICROGRAPHS, replace(INSIDE, holes=0)) == "Leave: no hole is left."
    last = reasons.no_hole(MICROGRAPHS, replace(INSIDE, holes=1))
    assert last.startswith("Leave: the last hole is ")


def test_a_hole_that_is_taken() -> None:
    good = replace(INSIDE, estimate=0.53)
    assert reasons.take_hole(MICROGRAPHS, good) == (
        "Take the best of 21 holes left: it is expected to be good with 53 %, and its 6.5 s are "
        "worth 0.22 good micrographs, as an hour is worth 122."
    )
    entering = reasons.take_hole(MICROGRAPHS, replace(good, inside=False, gain=4.0))
    assert entering == (
        "Go there and take the best of 21 holes: it is expected to be good with 53 %, and the "
        "patch to bring 4 good micrographs more than its time is worth, as an hour is worth 122."
    )
    # What does not pay by itself is taken for what it tells.
    told = reasons.take_hole(MICROGRAPHS, INSIDE)
    assert told.endswith(
        "; but its score tells of the others, and with those it should bring 0.4 more than the "
        "time is worth."
    )
    several = reasons.take_hole(MICROGRAPHS, replace(good, estimate=1.7, shots=4))
    assert "expected to give 1.7 good micrographs of 4, and" in several


def test_the_docs_quote_what_is_said() -> None:
    page = (DOCS / "howto" / "report.md").read_text("utf-8")
    assert f"\n> {reasons.no_hole(MICROGRAPHS, NOW)}\n" in page
    assert f"\n> {reasons.take_hole(MICROGRAPHS, replace(INSIDE, estimate=0.53))}\n" in page


def test_where_time_is_free_no_price_is_told() -> None:
    free = replace(INSIDE, rate=0.0)
    assert reasons.take_hole(MICROGRAPHS, free).endswith("8 %, and the time has no better use.")
    assert reasons.no_hole(PARTICLES, replace(free, estimate=-0.1)).endswith("give nothing.")
    assert "an hour" not in reasons.square(MICROGRAPHS, 4, 6.0, 0.0, 85.0)


@pytest.mark.parametrize("unit", [PARTICLES, REWARD])
def test_before_any_score_nothing_is_estimated(unit: Unit) -> None:
    for now in (
        replace(INSIDE, estimate=0.0, scored=False),
        replace(NOW, estimate=0.7, scored=False, blind=True),
    ):
        assert not now.knows
        for why in (reasons.take_hole(unit, now), reasons.no_hole(unit, now)):
            assert "no score has come yet, so nothing is known of " in why
            assert "expected" not in why
    assert ", they are tried in turn." in reasons.take_hole(
        unit, replace(INSIDE, estimate=0.0, scored=False)
    )
    blind = replace(INSIDE, blind=True)
    assert reasons.take_hole(unit, blind).endswith("of which least is known is tried.")


def test_a_guess_before_any_score_says_so() -> None:
    why = reasons.take_hole(MICROGRAPHS, replace(INSIDE, estimate=0.5, scored=False))
    assert "it is, before any score has come, expected to be good with 50 %" in why


def test_units_follow_rewards() -> None:
    names = {
        "ctf<3.8": "good micrographs",
        "ctf<3.8 * ctf<5": "good micrographs",
        "particles/100": "particles",
        "ctf<3.8 * particles/50": "particles in good micrographs",
        "ctf 3..8": "of reward",
        "0.5 * ctf<3.8 + 0.5 * particles/100": "of reward",
        "particles/100 * particles/100": "of reward",
    }
    for text, name in names.items():
        assert unit_of(parse_reward(text)).name == name
    assert unit_of(parse_reward("ctf<3.8 * particles/50")).scale == 50.0


def test_squares_and_patches() -> None:
    assert "bring 162 particles less than their time" in reasons.no_square(
        PARTICLES, -1.62, 0.01, 85.0
    )
    assert reasons.patch(MICROGRAPHS, 7, 3.14) == (
        "The best of 7 patches: it should bring 3.1 good micrographs more than its time is worth."
    )
    assert reasons.no_patch(MICROGRAPHS, 7, -0.5) == (
        "None of 7 patches pays for its time: the best would bring 0.5 good micrographs less than "
        "that is worth."
    )


@pytest.mark.parametrize("reward", ["ctf<3.8", "particles/100", "ctf 3..8"])
def test_a_session_speaks_of_holes_and_never_of_arms(reward: str) -> None:
    microscope = Simulator(3, squares=4, pixels=False, prediction=True)
    session = collect(microscope, "coaf", hours=0.4, reward=parse_reward(reward), explore=0.05)
    told = [row for row in session.rows if row["event"] in ("expose", "skip", "leave", "open")]
    assert {row["event"] for row in told} >= {"expose", "leave", "open"}
    for row in told:
        assert " arm" not in row["why"]
        assert "a second is worth" not in row["why"]
        assert "estimated at" not in row["why"]
    first = next(row for row in told if row["event"] == "expose")
    assert (first["estimate"] is None) == (reward != "ctf<3.8")
    assert "before any score" in first["why"] or "no score has come yet" in first["why"]
