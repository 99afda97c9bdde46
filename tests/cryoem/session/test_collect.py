"""The loop between microscope and pilot: what is told when, and what is never begun."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from coaf.cryoem.grid import Hole, Patch, Square
from coaf.cryoem.microscope import Score, Survey
from coaf.cryoem.pilot import Choice, Left
from coaf.cryoem.pilots.baselines import Rule, TakeAll
from coaf.cryoem.pilots.exploring import Exploring
from coaf.cryoem.reward import GoodBelow, Particles
from coaf.cryoem.session.collect import GOOD, collect
from coaf.cryoem.simulator.simulator import Simulator


def grid(**settings: Any) -> Simulator:
    chosen: dict[str, Any] = {"squares": 4, "pixels": False, "delay": "none", "faults": ()}
    return Simulator(3, **(chosen | settings))


class Diary(TakeAll):
    """Takes all, and writes down what it is told and when."""

    def __init__(self, microscope: Simulator) -> None:
        super().__init__()
        self.microscope = microscope
        self.exposures: dict[str, float] = {}
        self.scores: list[tuple[str, float, float]] = []
        self.lefts: list[Left] = []

    def hole(self, patch: Patch, rest: Sequence[int], left: Left) -> Choice:
        assert patch.name in self.features, "a square is told before its patches are asked about"
        assert not {patch.holes[i].name for i in rest} & set(self.exposures)
        self.lefts.append(left)
        return super().hole(patch, rest, left)

    def exposed(self, hole: str, seconds: float) -> None:
        self.exposures[hole] = self.microscope.clock

    def scored(self, hole: str, shot: int, reward: float) -> None:
        self.scores.append((hole, self.microscope.clock, reward))


def test_scores_are_told_once_and_not_before_they_arrive() -> None:
    microscope = grid(delay=45.0)
    pilot = Diary(microscope)
    session = collect(microscope, pilot, hours=1.0, explore=0.0)
    assert len(pilot.scores) > 100
    assert len({hole for hole, _, _ in pilot.scores}) == len(pilot.scores)
    for hole, told, _ in pilot.scores:
        assert told >= pilot.exposures[hole] + 45.0
    # What arrives after the end counts, and is not learned.
    assert len(session.scores()) == len(pilot.exposures) > len(pilot.scores)


def test_nothing_is_begun_that_cannot_end_in_time() -> None:
    microscope = grid()
    pilot = Diary(microscope)
    collect(microscope, pilot, hours=0.7, explore=0.0)
    timing = microscope.timing
    assert min(left.seconds for left in pilot.lefts) >= 0.8 * timing.expose
    seconds = [left.seconds for left in pilot.lefts]
    assert seconds == sorted(seconds, reverse=True)
    # The last exposure may be slow; but not another one is begun after it.
    assert microscope.clock - 3600.0 <= 0.7 * 3600.0 + 60.0


def test_a_day_is_the_same_again() -> None:
    first = collect(grid(), "microscopist", hours=1.0, explore=0.1)
    assert collect(grid(), "microscopist", hours=1.0, explore=0.1).rows == first.rows


class Late(Rule):
    """Wants nothing until no square is left, then all."""

    def wanted(self, features: Any) -> Any:
        return np.zeros(len(features), dtype=np.bool_)


def test_skipped_patches_are_returned_to_when_no_square_is_left() -> None:
    session = collect(grid(squares=2), Late(), hours=1.0, explore=0.0)
    events = [row["event"] for row in session.rows]
    last_open = max(i for i, event in enumerate(events) if event == "open")
    first_expose = events.index("expose")
    assert events.count("open") == 2
    assert last_open < first_expose
    skipped = {row["patch"] for row in session.rows if row["event"] == "skip"}
    assert {row["patch"] for row in session.exposures()} <= skipped


class Never(Late):
    """Wants nothing at all."""

    def hole(self, patch: Patch, rest: Sequence[int], left: Left) -> Choice:
        return Choice(None, "no")


def test_a_pilot_that_wants_nothing_ends() -> None:
    session = collect(grid(), Never(), hours=1.0, explore=0.0)
    assert session.summary()["exposed"] == 0
    assert session.summary()["good_per_hour"] == 0.0


def test_exploring_takes_its_share_and_says_so() -> None:
    share = 0.1
    session = collect(grid(squares=16), Never(), hours=20.0, explore=share)
    holes = {p.name: len(p.holes) for s in session.surveys.values() for p in s.patches}
    entered = session.exposures()
    # One hole of each patch entered by luck; binomial, five standard deviations.
    assert len(entered) == len({row["patch"] for row in entered})
    expected = share * len(holes)
    assert abs(len(entered) - expected) < 5.0 * np.sqrt(expected)
    for row in entered:
        assert row["propensity"] == pytest.approx(share / holes[str(row["patch"])])
        assert "To find out" in row["why"]


class Half(Rule):
    """Wants the holes in even places of a patch."""

    def wanted(self, features: Any) -> Any:
        return np.arange(len(features)) % 2 == 0


def test_a_hole_left_behind_is_explored_by_the_name_of_its_patch_alone() -> None:
    share = 0.2
    # Squares enough that neither session comes to take all that is left.
    sessions = [
        collect(grid(squares=12), Half(), hours=h, explore=share, seed=5) for h in (1.0, 2.0)
    ]
    short, long = ({r["hole"]: r["propensity"] for r in s.exposures()} for s in sessions)
    assert short.items() <= long.items()  # more time changes nothing of what was before
    left = explored = 0
    for survey in sessions[0].surveys.values():
        for patch in survey.patches:
            odd = [hole.name for hole in patch.holes[1::2]]
            lucky = [name for name in odd if name in long]
            if patch.holes[0].name in long and odd:
                left, explored = left + 1, explored + len(lucky)
            chances = [long[name] for name in lucky]
            assert chances == pytest.approx([share / len(odd)] * len(lucky))
            assert all(long.get(hole.name, 1.0) == 1.0 for hole in patch.holes[::2])
    # At most one a patch; binomial, five standard deviations.
    assert abs(explored - share * left) < 5.0 * np.sqrt(share * (1.0 - share) * left)


def test_exploring_nothing_is_the_pilot_itself() -> None:
    bare = collect(grid(), Half(), hours=1.0, explore=0.0)
    wrapped = collect(grid(), Exploring(Half(), 0.0), hours=1.0, explore=0.0)
    assert bare.rows == wrapped.rows
    with pytest.raises(ValueError, match=r"explore is 1\.5"):
        Exploring(Half(), 1.5)


class Sure(Rule):
    """Takes what is good in truth and expects it; keeps what it learned."""

    def __init__(self, simulator: Simulator, reward: GoodBelow) -> None:
        super().__init__()
        self.simulator, self.reward = simulator, reward
        self.learned: dict[str, float] = {}
        self.forgot: list[str] = []

    def hole(self, patch: Patch, rest: Sequence[int], left: Left) -> Choice:
        good = [i for i in rest if self._truth(patch.holes[i].name) > 0.0]
        if not good:
            return Choice(None, "none is good")
        return Choice(patch.holes[good[0]].name, "good", estimate=0.9)

    def _truth(self, hole: str) -> float:
        return self.simulator.first_visit(self.reward, hole)

    def scored(self, hole: str, shot: int, reward: float) -> None:
        self.learned[hole] = reward

    def unlearn(self, holes: Sequence[str]) -> None:
        self.forgot += holes
        for hole in holes:
            del self.learned[hole]


def test_a_fault_is_raised_and_nothing_of_it_stays_learned() -> None:
    fault = (3000.0, 7000.0)
    plain = GoodBelow(6.0)
    microscope = grid(squares=16, faults=[fault], delay=45.0)
    pilot = Sure(microscope.again(), plain)
    session = collect(microscope, pilot, hours=4.0, reward=plain, explore=0.01)
    kinds = [(alarm.kind, alarm.until is None) for alarm in session.alarms]
    assert kinds == [("fault", False)]
    during = {row["hole"] for row in session.exposures() if fault[0] <= row["clock"] < fault[1]}
    assert pilot.forgot, "what was learned before the alarm is taken back"
    assert len(during & set(pilot.learned)) <= 0.05 * len(during)
    after = {row["hole"] for row in session.exposures() if row["clock"] > fault[1] + 600.0}
    assert len(after & set(pilot.learned)) >= 0.8 * len(after), "learning goes on"
    assert session.summary()["held_back"] > 0
    assert any(row["event"] == "all clear" for row in session.rows)


def test_without_a_fault_there_is_no_alarm() -> None:
    microscope = grid(squares=16)
    session = collect(microscope, Sure(microscope.again(), GOOD), hours=3.0, explore=0.0)
    assert session.alarms == []
    assert session.summary()["held_back"] == 0


class Broken(Simulator):
    """Writes a resolution below 0 now and then."""

    def collect(self) -> list[Score]:
        return [
            replace(score, ctf=-1.0) if score.hole.endswith("7en") else score
            for score in super().collect()
        ]


def test_a_score_that_cannot_be_is_counted_and_not_learned() -> None:
    microscope = Broken(3, squares=2, pixels=False, delay="none", faults=())
    pilot = Diary(microscope)
    session = collect(microscope, pilot, hours=0.5, explore=0.0)
    refused = session.summary()["refused"]
    assert refused == sum(hole.endswith("7en") for hole in pilot.exposures) > 0
    assert not any(hole.endswith("7en") for hole, _, _ in pilot.scores)


class Wrong(TakeAll):
    def hole(self, patch: Patch, rest: Sequence[int], left: Left) -> Choice:
        return Choice("elsewhere")


class WrongSquare(TakeAll):
    def square(self, squares: Sequence[Square], left: Left) -> Choice:
        return Choice("elsewhere")


def test_what_was_not_offered_is_refused() -> None:
    with pytest.raises(ValueError, match="hole 'elsewhere', which it was not offered"):
        collect(grid(), Wrong(), explore=0.0)
    with pytest.raises(ValueError, match="square 'elsewhere', which it was not offered"):
        collect(grid(), WrongSquare(), explore=0.0)
    with pytest.raises(ValueError, match="policy is 'best'; there are coaf"):
        collect(grid(), "best")
    with pytest.raises(ValueError, match="hours"):
        collect(grid(), "take-all", hours=0.0)


class Empty(Simulator):
    """A grid whose squares show no holes."""

    def survey(self, square: str) -> Survey:
        super().survey(square)
        return Survey(square, (), {})


def test_squares_without_holes_are_passed_through() -> None:
    session = collect(Empty(3, squares=3, pixels=False), "take-all", hours=1.0)
    opened = [row for row in session.rows if row["event"] == "open"]
    assert len(opened) == 3
    assert all("No patch was found" in row["why"] for row in opened)
    assert session.summary()["exposed"] == 0


def test_several_shots_are_each_scored_and_their_sum_counts() -> None:
    microscope = grid(shots=3)
    session = collect(microscope, "take-all", hours=0.5, reward=Particles(), explore=0.0)
    tally = session.summary()
    assert tally["micrographs"] == 3 * tally["exposed"]
    assert session.truth is not None
    for hole, got in session.scores().items():
        assert got == pytest.approx(session.truth[hole])


def test_maintenance_is_not_taken_for_a_slow_stage() -> None:
    class Clocked(Diary):
        slowest = 0.0

        def exposed(self, hole: str, seconds: float) -> None:
            super().exposed(hole, seconds)
            self.slowest = max(self.slowest, seconds)

    microscope = grid(squares=12)
    pilot = Clocked(microscope)
    session = collect(microscope, pilot, hours=8.0, explore=0.0)
    kept = [row["seconds"] or 0.0 for row in session.rows if row["event"] == "upkeep"]
    assert sum(kept) == pytest.approx(microscope.upkeep)
    assert max(kept) > 500.0 > pilot.slowest


def test_holes_have_estimates_when_their_square_is_open() -> None:
    session = collect(grid(prediction=True), "score-order", hours=0.5)
    holes = [h for s in session.surveys.values() for p in s.patches for h in p.holes]
    assert isinstance(holes[0], Hole)
    assert {hole.name for hole in holes} == set(session.estimates)


class Stuttering(Simulator):
    """Tells every score twice, has a survey that fails, and a feature that is no number."""

    def collect(self) -> list[Score]:
        return [score for score in super().collect() for _ in range(2)]

    def survey(self, square: str) -> Survey:
        survey = super().survey(square)
        at = [s.name for s in self.squares()].index(square)
        if at == 0:
            raise ValueError("the image is black")
        features = {name: rows.copy() for name, rows in survey.features.items()}
        for rows in list(features.values())[:1]:
            rows[0, 0] = np.nan
        return replace(survey, features=features)


def test_a_session_outlives_bad_input() -> None:
    """A second score, a square that cannot be surveyed and a hole without features are counted."""
    microscope = Stuttering(2, squares=3, pixels=False, prediction=True, faults=(), delay="none")
    session = collect(microscope, "coaf", hours=1.0, explore=0.0)
    told = session.summary()
    assert told["exposed"] > 0
    assert told["refused"] == told["exposed"], "of each score, the second"
    opened = [row["why"] for row in session.rows if row["event"] == "open"]
    assert any("the image is black" in why for why in opened)
    assert any("features that are no numbers: 1" in why for why in opened)
