"""Driving a microscope to the end: what is told when, what is never begun, what is outlived."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from coaf.cryoem.grid import Hole, Patch, Square
from coaf.cryoem.microscope import NotExposedError, Score, Survey, upkeep_of
from coaf.cryoem.pilot import Choice, Left, Open, Scored
from coaf.cryoem.pilots.baselines import EveryHole, Rule
from coaf.cryoem.pilots.catalogue import PILOTS
from coaf.cryoem.pilots.exploring import Exploring
from coaf.cryoem.reward import GoodBelow, Particles
from coaf.cryoem.session import events as ev
from coaf.cryoem.session.collect import GOOD, collect
from coaf.cryoem.session.engine import Engine
from coaf.cryoem.session.situation import FAILING
from coaf.cryoem.simulator.cassette import Cassette
from coaf.cryoem.simulator.simulator import Simulator
from coaf.cryoem.timing import FAST
from cryoem.driven import drive, instructed


def grid(**settings: Any) -> Simulator:
    chosen: dict[str, Any] = {"squares": 4, "pixels": False, "delay": "none", "faults": ()}
    return Simulator(3, **(chosen | settings))


class Diary(EveryHole):
    """Takes all, and writes down what it is told and when."""

    def __init__(self, microscope: Simulator) -> None:
        super().__init__()
        self.microscope = microscope
        self.exposures: dict[str, float] = {}
        self.scores: list[tuple[str, float, float]] = []
        self.lefts: list[Left] = []

    def __deepcopy__(self, memo: object) -> "Diary":
        return Diary(self.microscope)

    def hole(self, here: Open, left: Left, *, inside: bool) -> Choice:
        patch = here.patch
        assert patch.name in self.features, "a square is told before its patches are asked about"
        assert not {patch.holes[i].name for i in here.rest} & set(self.exposures)
        self.lefts.append(left)
        return super().hole(here, left, inside=inside)

    def exposed(self, hole: str) -> None:
        self.exposures[hole] = self.microscope.clock

    def scored(self, scores: Sequence[Scored]) -> None:
        for one in scores:
            self.scores.append((one.hole, self.microscope.clock, one.waited))


def test_scores_are_told_once_and_not_before_they_arrive() -> None:
    microscope = grid(delay=45.0)
    pilot = Diary(microscope)
    session = collect(microscope, pilot, hours=1.0, explore=0.0)
    assert len(pilot.scores) > 100
    assert len({hole for hole, _, _ in pilot.scores}) == len(pilot.scores)
    for hole, told, waited in pilot.scores:
        assert told >= pilot.exposures[hole] + 45.0
        assert waited == pytest.approx(told - pilot.exposures[hole])
    assert set(session.scores()) == {hole for hole, _, _ in pilot.scores}


def test_after_the_end_nothing_waits() -> None:
    """The clock stands still; what has no score by then is counted."""
    microscope = grid(delay=300.0)
    session = collect(microscope, "take-all", hours=1.0, explore=0.0)
    last = [row for row in session.rows if row["event"] in ("open", "expose")][-1]
    assert microscope.clock == last["clock"]
    assert session.rows[-1]["event"] == "end"
    assert session.rows[-1]["clock"] == microscope.clock
    told = session.summary()
    late = [row for row in session.exposures() if row["clock"] + 300.0 > microscope.clock]
    assert told["unscored"] == len(late) == told["exposed"] - len(session.scores()) > 0
    assert told["true_good"] >= told["good"]


@pytest.mark.parametrize("pilot", [name for name in PILOTS if name != "clairvoyant"])
def test_nothing_is_begun_that_cannot_end_in_time(pilot: str) -> None:
    """As far as is known when it is begun: what it should take is less than what is left."""
    microscope = grid(prediction=True, shots=2)
    engine = drive(microscope, pilot, hours=0.7)
    timing = microscope.timing
    begun = Counter(one.do for _, one in instructed(engine))
    assert min(begun["open square"], begun["go"]) > 0
    assert begun["expose"] > 20
    for time, one in instructed(engine):
        more = {"go": 0.8 * timing.hole(2), "open square": 0.8 * timing.enter}.get(one.do, 0.0)
        if one.do in ("open square", "go", "expose"):
            assert time + one.seconds + more <= 0.7 * 3600.0
    # The last exposure may be slow; but not another one is begun after it.
    assert microscope.clock <= 0.7 * 3600.0 + 60.0


def test_what_is_left_only_shrinks() -> None:
    microscope = grid()
    pilot = Diary(microscope)
    collect(microscope, pilot, hours=0.7, explore=0.0)
    seconds = [left.seconds for left in pilot.lefts]
    assert seconds == sorted(seconds, reverse=True)
    assert all(left.timing.square > 0.0 for left in pilot.lefts)


def begun(hours: float, *, shots: int = 1, pilot: str = "take-all") -> tuple[Engine, Survey]:
    """An engine that was told of a square with one patch of three holes, at 0 s."""
    holes = tuple(Hole(f"h{k}", float(k), 0.0, shots=shots) for k in range(3))
    survey = Survey("s", (Patch("p", "s", holes, 0.0, 0.0),), {"p": np.zeros((3, 0))})
    engine = Engine()
    engine.tell(ev.Started(id="1", time=0.0, settings=ev.Settings(pilot=pilot, hours=hours)))
    return engine, survey


@pytest.mark.parametrize("shots", [1, 3])
def test_a_patch_is_gone_to_if_there_is_just_time(shots: int) -> None:
    needed = FAST.enter + FAST.hole(shots)
    for spare, do in ((1e-6, "go"), (-0.1, "leave")):
        engine, survey = begun((needed + spare) / 3600.0, shots=shots)
        engine.tell(ev.PatchOffered(id="2", time=0.0, survey=survey))
        assert engine.next(0.0).do == do
    assert engine.last is not None
    assert engine.last.why == f"It would take {needed:.0f} s, and {needed - 0.1:.0f} s are left."
    for spare, do in ((0.1, "expose"), (-0.1, "leave")):
        engine, survey = begun((needed + spare) / 3600.0, shots=shots)
        engine.tell(ev.PatchOffered(id="2", time=0.0, survey=survey))
        engine.tell(ev.Moved(id="3", time=FAST.enter, patch="p", seconds=FAST.enter))
        assert engine.next(FAST.enter).do == do


def test_times_are_shared_between_the_steps_of_opening_and_entering() -> None:
    """A first measurement counts one against five: twice the usual makes all of its steps 7/6."""
    engine, survey = begun(1.0, shots=3)
    engine.tell(ev.SquareOpened(id="2", time=170.0, survey=survey, seconds=2.0 * FAST.square))
    engine.tell(ev.Moved(id="3", time=300.0, patch="p", seconds=2.0 * FAST.enter))
    learned = engine.timing
    for level in ("stage", "height", "image", "move", "focus"):
        assert getattr(learned, level) == pytest.approx(7.0 / 6.0 * getattr(FAST, level))
    assert learned.expose == FAST.expose, "a move says nothing of an exposure"
    seconds = 2.0 * FAST.expose + 2.0 * FAST.shot
    engine.tell(ev.Exposed(id="4", time=320.0, hole="h0", seconds=seconds))
    assert engine.timing.expose == pytest.approx(7.0 / 6.0 * FAST.expose), "of a single shot"
    assert engine.timing.shot == FAST.shot


def test_times_are_learned_from_a_whole_session() -> None:
    """Of holes of three shots, too: to 20 % for exposures, 40 % for entries, which vary more."""
    microscope = grid(shots=3)
    engine, usual = drive(microscope, "take-all", hours=1.0), microscope.timing
    assert engine.timing != usual
    assert engine.timing.expose == pytest.approx(usual.expose, rel=0.2)
    assert engine.timing.enter == pytest.approx(usual.enter, rel=0.4)


def test_a_score_is_learned_once() -> None:
    engine, survey = begun(1.0, shots=2)
    engine.tell(ev.SquareOpened(id="2", time=85.0, survey=survey))
    engine.tell(ev.Exposed(id="3", time=150.0, hole="h0"))

    def refused(shot: int, ctf: float, hole: str = "h0") -> list[str]:
        notes, count = len(engine.notes), len(engine.events)
        told = ev.ScoreCame(
            id=f"score {count}", time=160.0, hole=hole, shot=shot, values={"ctf": ctf}
        )
        engine.tell(told)
        return [note.why for note in engine.notes[notes:]]

    assert refused(1, 3.0) == []
    assert refused(1, 3.0) == [], "the same again says nothing new"
    assert refused(1, 9.0) == ["a second score of shot 1; if it is right, correct the first"]
    assert refused(2, 3.0) == ["a score of shot 2, which was not taken in this session"]
    assert refused(7, 3.0, "h1") == [], "of what nobody reported there may be more shots"
    assert list(engine.learning.values) == [("h0", 1), ("h1", 7)]
    with pytest.raises(ValueError, match="there is no hole 'elsewhere'"):
        refused(0, 3.0, "elsewhere")


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


class Fickle(Late):
    """Wants to go everywhere, and once it is there wants nothing."""

    def hole(self, here: Open, left: Left, *, inside: bool) -> Choice:
        return Choice(None if inside else here.patch.holes[here.rest[0]].name, "no")


def test_nobody_returns_for_ever_to_take_nothing() -> None:
    engine = drive(grid(squares=2), lambda settings: Fickle(), hours=20.0)
    gone = Counter(one.name for _, one in instructed(engine) if one.do == "go")
    assert set(gone) == set(engine.book.patches)
    assert max(gone.values()) <= 2, "when its square was opened, and when nothing else was left"


@pytest.mark.parametrize(
    "policy", ["coaf", "coaf-paper", "take-all", "cut-and-count", "microscopist"]
)
def test_with_much_time_nothing_is_left_on_a_small_grid(policy: str) -> None:
    """Each patch is gone to a few times at most, and never in vain."""
    engine = drive(grid(squares=2, prediction=True), policy, hours=10.0)
    assert not any(engine.book.open(name).rest for name in engine.book.patches)
    told = [one for _, one in instructed(engine) if one.do in ("go", "expose", "leave")]
    gone = Counter(one.name for one in told if one.do == "go")
    assert max(gone.values()) <= 4
    for one, then in pairwise(told):
        assert one.do != "go" or then.do == "expose"


class Never(Late):
    """Wants nothing at all."""

    def hole(self, here: Open, left: Left, *, inside: bool) -> Choice:
        return Choice(None, "no")


def test_a_pilot_that_wants_nothing_ends() -> None:
    session = collect(grid(), Never(), hours=1.0, explore=0.0)
    assert session.summary()["exposed"] == 0
    assert session.summary()["squares"] == 4, "a microscope that stands idle collects nothing"
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


def test_what_luck_left_says_with_which_probability() -> None:
    share = 0.25
    engine = drive(grid(), lambda settings: Exploring(Never(), share, 3), hours=1.0)
    told = [one for _, one in instructed(engine)]
    first: dict[str, float] = {}
    for one in told:
        if one.do in ("go", "leave") and one.level == "patch":
            first.setdefault(str(one.name), one.propensity)
    left = {one.name for one in told if one.do == "leave"} - {
        one.name for one in told if one.do == "go"
    }
    assert {first[str(name)] for name in left} == {1.0 - share}


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
        self.learned: list[Scored] = []

    def hole(self, here: Open, left: Left, *, inside: bool) -> Choice:
        holes = here.patch.holes
        good = [i for i in here.rest if self._truth(holes[i].name) > 0.0]
        if not good:
            return Choice(None, "none is good")
        return Choice(holes[good[0]].name, "good", estimate=0.9)

    def _truth(self, hole: str) -> float:
        return self.simulator.first_visit(self.reward, hole)

    def scored(self, scores: Sequence[Scored]) -> None:
        self.learned += scores


def test_a_fault_is_raised_and_nothing_of_it_stays_learned() -> None:
    """The pilot knows what one knows who was told all but the scores that are held back."""
    fault = (3000.0, 7000.0)
    plain = GoodBelow(6.0)
    microscope = grid(squares=16, faults=[fault], delay=45.0)
    made: list[Sure] = []

    def make(settings: ev.Settings) -> Sure:
        made.append(Sure(microscope.again(), plain))
        return made[-1]

    engine = drive(microscope, make, hours=4.0, reward=plain)
    kinds = [(alarm.kind, alarm.until is None) for alarm in engine.guard.alarms]
    assert kinds == [("fault", False)]
    assert len(made) > 1, "what was learned before the alarm is taken back"
    values = engine.learning.values
    came = [e for e in engine.events if isinstance(e, ev.ScoreCame) and (e.hole, 0) in values]
    free = [e for e in came if not engine.guard.quarantined(f"{e.hole} shot 0")]
    when = {e.hole: e.time for e in engine.events if isinstance(e, ev.Exposed)}
    due = [
        Scored(e.hole, 0, float((e.values["ctf"] or 99.0) < 6.0), e.time - when[e.hole])
        for e in free
    ]
    assert made[-1].learned == due
    during = {hole for hole, time in when.items() if fault[0] <= time < fault[1]}
    learned = {one.hole for one in made[-1].learned}
    assert len(during & learned) <= 0.05 * len(during)
    after = {hole for hole, time in when.items() if time > fault[1] + 600.0}
    assert len(after & learned) >= 0.8 * len(after), "learning goes on"
    told = [note.what for note in engine.notes]
    assert told.index("alarm") < told.index("held back") < told.index("all clear")
    assert [one.do for _, one in instructed(engine)].count("alarm") == 1, "a person is called"


def test_the_rows_tell_of_a_fault() -> None:
    fault, plain = (3000.0, 7000.0), GoodBelow(6.0)
    microscope = grid(squares=16, faults=[fault], delay=45.0)
    session = collect(microscope, Sure(microscope.again(), plain), hours=4.0, reward=plain)
    assert [alarm.kind for alarm in session.alarms] == ["fault"]
    told = session.summary()
    assert told["alarms"] == 1
    assert told["held_back"] > 0
    events = [row["event"] for row in session.rows]
    assert events.index("alarm") < events.index("all clear")


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


class Wrong(EveryHole):
    def hole(self, here: Open, left: Left, *, inside: bool) -> Choice:
        return Choice("elsewhere")


class WrongPatch(EveryHole):
    def patch(self, patches: Sequence[Open], left: Left) -> Choice:
        return Choice("elsewhere")


class WrongSquare(EveryHole):
    def square(self, squares: Sequence[Square], left: Left) -> Choice:
        return Choice("elsewhere")


def test_what_was_not_offered_is_refused() -> None:
    with pytest.raises(ValueError, match="hole 'elsewhere', which it was not offered"):
        collect(grid(), Wrong(), explore=0.0)
    with pytest.raises(ValueError, match="patch 'elsewhere', which it was not offered"):
        collect(grid(), WrongPatch(), explore=0.0)
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


class Interrupted(Simulator):
    """Is refilled in the middle of every tenth exposure, for ten minutes."""

    taken, refills = 0, 0.0

    @property
    def upkeep(self) -> dict[str, float]:
        return super().upkeep | {"refill": self.refills}

    def expose(self, hole: Hole) -> float:
        seconds, self.taken = super().expose(hole), self.taken + 1
        if self.taken % 10:
            return seconds
        self.wait(600.0)
        self.refills += 600.0
        return seconds + 600.0


@pytest.mark.parametrize("kind", [Simulator, Interrupted])
def test_maintenance_is_not_taken_for_a_slow_stage(kind: type[Simulator]) -> None:
    """Wherever it comes: the times that are learned are those of a session without any."""
    microscope = kind(3, squares=12, pixels=False, delay="none", faults=())
    session = collect(microscope, "take-all", hours=8.0, explore=0.0)
    kept = [row["seconds"] or 0.0 for row in session.rows if row["event"] == "upkeep"]
    assert sum(kept) == pytest.approx(upkeep_of(microscope))
    slowest = max(row["seconds"] or 0.0 for row in session.exposures())
    assert max(kept) > 500.0 > slowest
    engine = drive(microscope.again(), "take-all", hours=8.0)
    upkeep = [e.seconds for e in engine.events if isinstance(e, ev.Upkeep)]
    assert upkeep == pytest.approx(kept)
    took = [e.seconds for e in engine.events if isinstance(e, ev.Moved | ev.Exposed)]
    assert max(took) < 500.0
    assert engine.timing.expose == pytest.approx(FAST.expose, rel=0.2)


def test_holes_have_estimates_when_their_square_is_open() -> None:
    session = collect(grid(prediction=True), "score-order", hours=0.5)
    holes = [h for s in session.surveys.values() for p in s.patches for h in p.holes]
    assert isinstance(holes[0], Hole)
    assert {hole.name for hole in holes} == set(session.estimates)


class Stuttering(Simulator):
    """Scores every shot twice, has a survey that fails, and a feature that is no number."""

    def collect(self) -> list[Score]:
        twice = [(score, replace(score, ctf=2.5)) for score in super().collect()]
        return [score for pair in twice for score in pair]

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
    assert told["unscored"] == 0
    assert told["refused"] == told["exposed"], "of each score, the second"
    failed = [row["why"] for row in session.rows if row["event"] == "failed"]
    assert failed == ["The square failed: the image is black"] * 2
    opened = [row["why"] for row in session.rows if row["event"] == "open"]
    assert len(opened) == 2
    assert any("features that are no numbers: 1" in why for why in opened)


class Odd(Simulator):
    """Raises what nobody expects, scores in words, and an atlas with features that are none."""

    def squares(self) -> list[Square]:
        first, *rest = super().squares()
        return [replace(first, features=(np.nan, *first.features[1:])), *rest]

    def move(self, patch: Patch) -> float:
        seconds = super().move(patch)
        if patch.name.endswith("3hl"):
            raise TypeError("unsupported operand")
        return seconds

    def collect(self) -> list[Score]:
        words: Any = "thick"
        return [
            replace(score, more={"ice": words}) if score.hole.endswith("1en") else score
            for score in super().collect()
        ]


@pytest.mark.parametrize("policy", ["coaf", "take-all", "window"])
def test_a_session_outlives_what_nobody_expects(policy: str) -> None:
    microscope = Odd(2, squares=3, pixels=False, prediction=True, faults=(), delay="none")
    session = collect(microscope, policy, hours=2.0, explore=0.0)
    told = session.summary()
    assert told["hours"] > 0.5
    failed = {row["why"] for row in session.rows if row["event"] == "failed"}
    assert any("unsupported operand" in why for why in failed)
    refused = [row for row in session.rows if row["event"] == "refused"]
    assert refused
    assert all("'ice'] is 'thick'; it must be a number" in row["why"] for row in refused)
    assert told["unscored"] == len(refused)


def test_grids_whose_squares_have_the_same_names_do_not_end_the_session() -> None:
    """The atlas of the second cannot be told from the first: a person is called."""

    class Namesakes(Cassette):
        def squares(self) -> list[Square]:
            return [replace(one, name=f"square {k}") for k, one in enumerate(super().squares())]

        def survey(self, square: str) -> Survey:
            name = super().squares()[int(square.split()[1])].name
            shown = super().survey(name)
            patches = tuple(replace(patch, square=square) for patch in shown.patches)
            return replace(shown, square=square, patches=patches)

        def move(self, patch: Patch) -> float:
            name = super().squares()[int(patch.square.split()[1])].name
            return super().move(replace(patch, square=name))

    simulators = [Simulator(seed, squares=2, pixels=False, faults=()) for seed in (3, 4)]
    session = collect(Namesakes(simulators), "take-all", hours=6.0, explore=0.0)
    failed = [row["why"] for row in session.rows if row["event"] == "failed"]
    assert any("need names that tell them apart" in why for why in failed)
    assert [row["why"] for row in session.rows if row["event"] == "call"] == [FAILING]
    assert session.summary()["alarms"] == 1
    assert session.summary()["exposed"] > 0


class Shaky(Simulator):
    """Its stage and its shutter fail now and then, some patches and holes always."""

    tried: Counter[str]

    def _fails(self, name: str) -> bool:
        """Of a hundred names ten fail once and ten always; which is drawn from the name."""
        self.tried[name] += 1
        luck = sum(map(ord, name)) % 10
        return luck == 0 or (luck == 1 and self.tried[name] == 1)

    def move(self, patch: Patch) -> float:
        seconds = super().move(patch)
        if self._fails(patch.name):
            raise OSError("the stage does not answer")
        return seconds

    def expose(self, hole: Hole) -> float:
        if self._fails(hole.name):
            raise NotExposedError("the column valve is closed")
        return super().expose(hole)


class Vague(Shaky):
    """Nobody knows whether what failed was exposed."""

    def expose(self, hole: Hole) -> float:
        try:
            return super().expose(hole)
        except NotExposedError as error:
            raise OSError(str(error)) from None


@pytest.mark.parametrize("policy", ["take-all", "coaf", "microscopist"])
@pytest.mark.parametrize("kind", [Shaky, Vague])
def test_a_session_outlives_what_fails(kind: type[Shaky], policy: str) -> None:
    """What failed before the beam was on is tried once more; what may have been taken, never."""
    microscope = kind(2, squares=2, pixels=False, prediction=True, faults=(), delay="none")
    microscope.tried = Counter()
    session = collect(microscope, policy, hours=4.0, explore=0.0)
    told = session.summary()
    failed = [row for row in session.rows if row["event"] == "failed"]
    assert told["failed"] == len(failed) > 10
    assert told["exposed"] > 50
    assert told["unscored"] == 0
    again = 1 if kind is Vague else 4  # twice, and twice again if nothing else worked either
    patches = {p.name for s in session.surveys.values() for p in s.patches}
    tries = {name: n for name, n in microscope.tried.items() if name not in patches}
    assert max(tries.values()) == again
    taken = [row["hole"] for row in session.exposures()]
    assert len(set(taken)) == len(taken)
    moves = Counter(row["patch"] for row in failed if row["patch"])
    assert moves
    assert max(moves.values()) <= 2, "a patch that cannot be reached is given up"
    clock = [row["clock"] for row in session.rows]
    assert all(a <= b for a, b in pairwise(clock))


class Dead(Simulator):
    """Nothing moves any more."""

    def move(self, patch: Patch) -> float:
        self.wait(10.0)
        raise OSError("the stage does not answer")


def test_a_microscope_that_fails_always_is_told_to_a_person_and_spared() -> None:
    microscope = Dead(6, squares=1, pixels=False)
    engine = drive(microscope, "take-all", hours=1.0)
    told = [one.do for _, one in instructed(engine)]
    assert told.count("alarm") == 1
    first = told.index("alarm")
    assert told[:first].count("go") == 3
    assert told.count("go") > 5
    assert ("go", "go") not in set(pairwise(told[first:])), "tries are spaced"
    assert told[-1] == "stop"


class Flaky(Simulator):
    """Every verb that is not shaky fails now and then, in any of the ways that things fail."""

    called: Counter[str]
    ways = (OSError("no route to host"), LookupError("no such frame"), RuntimeError("busy"))

    def _now_and_then(self, what: str) -> None:
        count = self.called[what] = self.called[what] + 1
        if count % 3 == 1:
            raise self.ways[count // 3 % 3]

    def squares(self) -> list[Square]:
        self._now_and_then("squares")
        return super().squares()

    def survey(self, square: str) -> Survey:
        self.called["survey"] += 1
        if self.called["survey"] == 1:
            raise KeyError(square)
        return super().survey(square)

    def collect(self) -> list[Score]:
        self._now_and_then("collect")
        return super().collect()

    def wait(self, seconds: float) -> None:
        self._now_and_then("wait")
        super().wait(seconds)


def test_a_session_outlives_whatever_verb_fails() -> None:
    microscope = Flaky(2, squares=3, pixels=False, prediction=True, faults=(), delay="none")
    microscope.called = Counter()
    session = collect(microscope, "coaf", hours=2.0, explore=0.0)
    told = session.summary()
    assert told["exposed"] > 50
    assert told["unscored"] <= 1, "what was not told is told the next time"
    why = Counter(row["why"].split(":")[0] for row in session.rows if row["event"] == "failed")
    assert {"The scores failed", "The square failed"} <= set(why)
    assert all(row["event"] != "alarm" for row in session.rows), "one failure calls nobody"


def test_an_atlas_that_fails_is_shown_when_that_works_again() -> None:
    microscope = Flaky(2, squares=3, pixels=False, prediction=True, faults=(), delay="none")
    microscope.called = Counter()
    engine = drive(microscope, "take-all", hours=1.0)
    kinds = [event.kind for event in engine.events]
    failed = [event.what for event in engine.events if isinstance(event, ev.Failed)]
    assert failed[0] == "atlas"
    assert kinds.index("failed") < kinds.index("atlas seen") < kinds.index("exposed")
    assert "wait" in failed
    told = [one for _, one in instructed(engine)]
    assert told[0].why == "The atlas could not be shown; it is tried again."


class Deaf(Simulator):
    """Scores can never be asked for."""

    def collect(self) -> list[Score]:
        raise ConnectionError("the server is down")


def test_scores_that_cannot_be_asked_for_are_missed_as_silence() -> None:
    """The microscope works, so nobody is called for it; that no score comes is another matter."""
    engine = drive(Deaf(2, squares=6, pixels=False), "take-all", hours=2.0)
    assert [alarm.kind for alarm in engine.guard.alarms] == ["silent"]
    assert [one.do for _, one in instructed(engine)].count("alarm") == 1
    assert len([event for event in engine.events if isinstance(event, ev.Exposed)]) > 300


class Blind(Simulator):
    """No atlas, ever; and the clock goes on."""

    def squares(self) -> list[Square]:
        raise OSError("the camera is warm")


def test_without_an_atlas_a_person_is_called_and_the_session_waits_to_its_end() -> None:
    engine = drive(Blind(2, squares=6, pixels=False), "take-all", hours=0.5)
    told = [one.do for _, one in instructed(engine)]
    assert Counter(told).keys() == {"wait", "alarm", "stop"}
    assert told.count("alarm") == 1
    assert engine.now >= 0.5 * 3600.0 - 200.0


def test_a_reward_may_be_written_as_on_the_command_line() -> None:
    told, written = (
        collect(grid(), "take-all", hours=0.3, reward=reward, explore=0.0)
        for reward in (Particles(100.0), "particles/100")
    )
    assert told.rows == written.rows
    assert told.summary() == written.summary()
    with pytest.raises(ValueError, match="reward"):
        collect(grid(), "take-all", hours=0.3, reward="beauty")


def test_another_target_counts_after_collecting_too() -> None:
    """With a pilot that was named; one that was made for a reward goes with it."""
    session = collect(grid(), "coaf", hours=0.3, reward=Particles())
    engine = session.engine
    assert engine is not None
    shot, values = next(iter(engine.learning.values.items()))
    assert engine.learning.worth(shot) == Particles()(engine.learning.score(shot))
    cut = float(values["ctf"] or 9.0) + 0.1
    engine.tell(ev.TargetChanged(id="aim", time=engine.now, reward=f"ctf<{cut}"))
    assert engine.learning.worth(shot) == 1.0
    with pytest.raises(ValueError, match="cannot read the reward 'beauty'"):
        engine.tell(ev.TargetChanged(id="another", time=engine.now, reward="beauty"))
    own = collect(grid(), EveryHole(), hours=0.1).engine
    assert own is not None
    with pytest.raises(ValueError, match="this pilot was made for ctf"):
        own.tell(ev.TargetChanged(id="aim", time=own.now, reward="particles"))
