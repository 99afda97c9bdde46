"""Rules that people and programs follow, and the limit that nobody passes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coaf.bandit.arrays import FloatArray
from coaf.cryoem.grid import Hole, Patch, Square
from coaf.cryoem.microscope import Survey
from coaf.cryoem.pilot import Left, Open, Pilot, Scored
from coaf.cryoem.pilots.baselines import EveryHole, FixedCut, IntensityWindow, ScoreOrder
from coaf.cryoem.pilots.catalogue import GRID_RULES, OTHERS, PILOTS, clairvoyant, pilot_for, rivals
from coaf.cryoem.pilots.clairvoyant import Clairvoyant
from coaf.cryoem.pilots.cut_and_count import CutAndCount
from coaf.cryoem.pilots.exploring import Exploring
from coaf.cryoem.pilots.microscopist import Microscopist, Thumb
from coaf.cryoem.pilots.square_order import SquareOrder
from coaf.cryoem.reward import GoodBelow
from coaf.cryoem.session.collect import collect
from coaf.cryoem.session.events import Settings
from coaf.cryoem.simulator.simulator import Simulator
from coaf.cryoem.timing import FAST, Timing

LEFT = Left(10_000.0, FAST, squares=tuple(Square(f"t{k}", 0.0, 0.0) for k in range(3)))
BACK = replace(LEFT, squares=(), returning=True)


def patch(name: str, count: int, square: str = "s1") -> Patch:
    holes = tuple(Hole(f"{name}-{k}", float(k), 0.0) for k in range(count))
    return Patch(name, square, holes, 0.0, 0.0)


def survey(square: str, levels: Mapping[str, Sequence[float]]) -> Survey:
    """A square whose patches' holes have one feature each."""
    patches = tuple(patch(f"{square}{name}", len(row), square) for name, row in levels.items())
    rows = (np.array(row, dtype=np.float64)[:, None] for row in levels.values())
    return Survey(square, patches, {p.name: X for p, X in zip(patches, rows, strict=True)})


def opens(patches: Sequence[Patch]) -> tuple[Open, ...]:
    """Patches of which nothing was taken."""
    return tuple(Open(one, tuple(range(len(one.holes)))) for one in patches)


def taken(pilot: Pilot, one: Patch, left: Left = LEFT) -> list[str]:
    """What a pilot takes of a patch, in its order."""
    rest = list(range(len(one.holes)))
    names: list[str] = []
    while rest:
        choice = pilot.hole(Open(one, tuple(rest)), left, inside=bool(names))
        if choice.name is None:
            break
        names.append(choice.name)
        pilot.exposed(choice.name)
        rest.remove(next(i for i in rest if one.holes[i].name == choice.name))
    return names


def test_the_window_is_set_on_the_first_square_and_kept() -> None:
    pilot = IntensityWindow(0, (0.25, 0.75), first=1)
    first = survey("s1", {"a": [0.0, 1.0, 2.0, 3.0, 4.0]})
    other = survey("s2", {"a": [0.0, 0.9, 1.0, 3.0, 3.1, 100.0]})
    pilot.opened(first, FAST)
    pilot.opened(other, FAST)
    assert taken(pilot, first.patches[0]) == ["s1a-1", "s1a-2", "s1a-3"]
    assert taken(pilot, other.patches[0]) == ["s2a-2", "s2a-3"]


def test_a_window_can_be_set_on_several_squares() -> None:
    pilot = IntensityWindow(0, (0.0, 0.5), first=2)
    seen: dict[str, Sequence[float]] = {"s1": [0.0, 2.0, 4.0], "s2": [10.0, 12.0], "s3": [100.0]}
    for square, levels in seen.items():
        pilot.opened(survey(square, {"a": levels}), FAST)
    # The median of 0, 2, 4, 10 and 12; the third square no longer counts, nor does one seen again.
    pilot.opened(survey("s1", {"a": [50.0, 60.0]}), FAST)
    assert pilot.range == (0.0, 4.0)
    with pytest.raises(ValueError, match="first is 0"):
        IntensityWindow(first=0)


def test_an_empty_first_square_sets_no_window() -> None:
    pilot = IntensityWindow(0, (0.25, 0.75))
    pilot.opened(Survey("s0", (), {}), FAST)
    second = survey("s1", {"a": [0.0, 1.0, 2.0, 3.0, 4.0]})
    pilot.opened(second, FAST)
    assert taken(pilot, second.patches[0]) == ["s1a-1", "s1a-2", "s1a-3"]


def test_a_cut_takes_what_is_below_it_and_the_rest_when_nothing_else_is_left() -> None:
    pilot = FixedCut(0, 5.0)
    seen = survey("s1", {"a": [4.0, 6.0, 4.9, 5.0]})
    pilot.opened(seen, FAST)
    assert taken(pilot, seen.patches[0]) == ["s1a-0", "s1a-2"]
    assert pilot.square((), LEFT).name is None
    assert len(taken(pilot, seen.patches[0], BACK)) == 4


def test_a_patch_needs_enough_holes_below_the_cut() -> None:
    pilot = CutAndCount(0, 5.0, count=3, share=1.0)
    rows = {"a": [4.0, 9.0, 4.0, 9.0], "b": [4.9, 3.0, 4.0, 9.0], "c": [9.0, 9.0, 9.0, 9.0]}
    seen = survey("s1", rows)
    pilot.opened(seen, FAST)
    few, enough, none = seen.patches
    assert taken(pilot, few) == []
    assert (
        "2 of 4 holes are below 5, and a move is worth 3"
        in pilot.hole(opens([few])[0], LEFT, inside=False).why
    )
    assert taken(pilot, enough) == ["s1b-1", "s1b-2", "s1b-0"], "the best first"
    assert pilot.patch(opens(seen.patches), LEFT).name == "s1b"
    # Having moved it takes all that is below the cut, however few are left of it.
    assert pilot.hole(Open(few, (0, 1)), LEFT, inside=True).name == "s1a-0"
    # Back it goes for what is below the cut first, and for the rest when there is no more of it.
    back = replace(BACK, patches=opens([few, none]))
    assert pilot.patch(back.patches, back).name == "s1a"
    assert taken(pilot, few, back)[:2] == ["s1a-0", "s1a-2"]
    assert taken(pilot, none, back) == []
    assert len(taken(pilot, none, replace(BACK, patches=opens([none])))) == 4


@pytest.mark.parametrize(("sizes", "due"), [([20, 20, 3], 8), ([4, 4, 40], 2), ([1, 1], 1)])
def test_enough_is_less_where_patches_are_small(sizes: list[int], due: int) -> None:
    pilot = CutAndCount(0, 5.0, count=8, share=0.5)
    assert pilot.enough == 8, "until a patch was seen"
    pilot.opened(survey("s1", {f"p{k}": [4.0] * n for k, n in enumerate(sizes)}), FAST)
    assert pilot.enough == due


@pytest.mark.parametrize(
    ("order", "due"),
    [
        ("listed", ["dark", "light", "usual", "wide", "clear"]),
        ("brightest", ["light", "clear", "usual", "wide", "dark"]),
        ("widest", ["wide", "clear", "usual", "light", "dark"]),
        ("usual", ["usual", "clear", "wide", "light", "dark"]),
    ],
)
def test_squares_are_opened_by_what_the_atlas_shows(order: SquareOrder, due: list[str]) -> None:
    looks = {
        "dark": (0.05, 0.1, 0.5),
        "light": (0.9, 0.1, 0.6),
        "usual": (0.55, 0.1, 0.7),
        "wide": (0.4, 0.1, 0.9),
        "clear": (0.6, 0.1, 0.8),
    }
    left = [Square(name, 0.0, 0.0, features=seen) for name, seen in looks.items()]
    pilot = FixedCut(0, order=order)
    pilot.saw(left)
    opened = []
    while left:
        opened.append(str(pilot.square(left, LEFT).name))
        left = [square for square in left if square.name != opened[-1]]
    assert opened == due
    assert pilot.square((), LEFT).name is None


def test_without_an_atlas_squares_are_opened_as_listed() -> None:
    pilot = FixedCut(0, order="brightest")
    assert pilot.square(LEFT.squares, LEFT).name == "t0"
    with pytest.raises(ValueError, match="order is 'largest'; there are listed, brightest"):
        FixedCut(0, order="largest")  # type: ignore[arg-type]


def test_score_order_takes_the_best_first_and_leaves_for_better() -> None:
    pilot = ScoreOrder(0, scale=1.0, switch=2)
    seen = survey("s1", {"a": [3.0, 8.0, 8.0, 8.0], "b": [3.0, 3.0, 3.0, 3.0]})
    pilot.opened(seen, FAST)
    both = opens(seen.patches)
    assert pilot.patch(both, LEFT).name == "s1b"
    # From the poorer patch it goes to the better one after the single good hole, not before.
    assert taken(pilot, seen.patches[0], replace(LEFT, patches=both)) == ["s1a-0"]
    # Of the better one it leaves nothing: what is left elsewhere is no better by a switch.
    assert len(taken(pilot, seen.patches[1], replace(LEFT, patches=both))) == 4
    # Nor does it leave for patches of squares that it has left.
    pilot.opened(survey("s2", {"a": [8.0]}), FAST)
    assert len(taken(pilot, seen.patches[0], replace(LEFT, patches=both))) == 4


def test_score_order_leaves_a_square_that_falls_behind_the_others() -> None:
    pilot = ScoreOrder(0, scale=1.0, switch=2)
    pilot.opened(survey("s1", {"a": [3.0, 3.0, 9.0, 9.0, 9.0, 9.0]}), FAST)
    poor = survey("s2", {"a": [12.0] * 4})
    pilot.opened(poor, FAST)
    assert pilot.patch(opens(poor.patches), LEFT).name is None
    assert pilot.patch(opens(poor.patches), replace(LEFT, squares=())).name == "s2a"


def person() -> tuple[Microscopist, Survey]:
    thumb = Thumb(tries=3, keep=0.5, run=2, enough=3, margin=0.0, window=(0.0, 1.0))
    pilot = Microscopist(0, thumb)
    seen = survey("s1", {"a": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "b": [1.0, 2.0, 9.0]})
    pilot.opened(seen, FAST)
    return pilot, seen


def tell(pilot: Pilot, hole: str, reward: float) -> None:
    pilot.scored([Scored(hole, 0, reward)])


def test_the_microscopist_leaves_a_patch_after_a_run_of_bad_ones() -> None:
    pilot, seen = person()
    here = Open(seen.patches[0], (3,))
    tell(pilot, "s1a-0", 0.0)
    assert pilot.hole(here, LEFT, inside=True).name is not None
    tell(pilot, "s1a-1", 0.0)
    assert "none good" in pilot.hole(here, LEFT, inside=True).why


def test_the_microscopist_judges_a_square_when_enough_is_seen() -> None:
    pilot, seen = person()
    other = opens(seen.patches[1:])
    tell(pilot, "s1a-0", 1.0)
    tell(pilot, "s1a-1", 0.0)
    assert pilot.patch(other, LEFT).name == "s1b"
    tell(pilot, "s1a-2", 0.0)
    assert "33%" in pilot.patch(other, LEFT).why
    assert pilot.patch(other, BACK).name == "s1b", "when returning anything is better than nothing"


def test_the_microscopist_looks_for_more_of_what_was_good() -> None:
    pilot, _ = person()
    for name in ("s1a-1", "s1a-2", "s1a-3"):
        pilot.sum = pilot.count = 0  # or the third would be no better than the mean
        tell(pilot, name, 1.0)
    assert pilot.wanted(np.array([[1.0], [3.0], [9.0]])).tolist() == [False, True, False]


def test_open_squares_come_first() -> None:
    pilot, _ = person()
    narrow, wide = (
        Square(name, 0.0, 0.0, features=(0.7, 0.1, area, 0.1))
        for name, area in (("narrow", 0.1), ("wide", 0.95))
    )
    assert pilot.square([narrow, wide], LEFT).name == "wide"
    assert pilot.square([narrow], LEFT).name == "narrow"


def brute(surveys: Sequence[Survey], worth: dict[str, float], t: Timing, seconds: float) -> float:
    """The most that any set of holes brings in the time."""
    holes = [(s.square, p.name, h) for s in surveys for p in s.patches for h in p.holes]
    best = 0.0
    for chosen in product((False, True), repeat=len(holes)):
        kept = [hole for hole, take in zip(holes, chosen, strict=True) if take]
        time = sum(t.hole(h.shots) for _, _, h in kept)
        time += t.square * len({s for s, _, _ in kept}) + t.enter * len({p for _, p, _ in kept})
        if time <= seconds + 1e-9:
            best = max(best, sum(worth[h.name] for _, _, h in kept))
    return best


TIMES = Timing(stage=3.0, height=0.0, image=0.0, move=2.0, focus=0.0, expose=1.0)


def small(values: FloatArray) -> tuple[list[Survey], dict[str, float]]:
    """Two squares of two patches of two holes."""
    surveys = [survey(s, {"a": [0.0, 0.0], "b": [0.0, 0.0]}) for s in ("s1", "s2")]
    names = [h.name for s in surveys for p in s.patches for h in p.holes]
    return surveys, dict(zip(names, values.tolist(), strict=True))


values = st.lists(st.integers(0, 4), min_size=8, max_size=8).map(
    lambda v: np.array(v, dtype=np.float64)
)


@given(values, st.floats(1.0, 25.0))
def test_no_plan_passes_the_limit(v: FloatArray, seconds: float) -> None:
    surveys, worth = small(v)
    limit = Clairvoyant(worth, surveys, TIMES, seconds).limit
    assert limit >= brute(surveys, worth, TIMES, seconds) - 1e-6


@given(values, st.floats(0.05, 1.0))
def test_the_plan_at_a_price_is_the_best_for_its_time(v: FloatArray, price: float) -> None:
    surveys, worth = small(v + np.linspace(0.0, 0.01, 8))  # no ties
    pilot = Clairvoyant(worth, surveys, TIMES, 1000.0)
    plans = [pilot._square(one, price) for one in surveys]
    seconds = sum(s for _, s in plans)
    gained = sum(value for value, _ in plans) + price * seconds
    assert gained == pytest.approx(brute(surveys, worth, TIMES, seconds), abs=1e-6)


@pytest.fixture(scope="module")
def simulator() -> Simulator:
    return Simulator(5, squares=10, pixels=False, prediction=True, faults=(), delay="none")


@pytest.mark.parametrize("name", [name for name in OTHERS if name != "clairvoyant"])
def test_knowing_all_beats_every_rule(simulator: Simulator, name: str) -> None:
    hours = 1.5
    scores = [
        collect(simulator.again(), policy, hours=hours, explore=0.0).line()
        for policy in (name, "clairvoyant")
    ]
    assert scores[0]["good"] < scores[1]["good"]
    for row in scores:
        assert row["hours"] <= hours


def test_the_clairvoyant_nearly_reaches_its_limit(simulator: Simulator) -> None:
    pilot = clairvoyant(simulator, hours=0.6, reward=GoodBelow())
    assert pilot.price > 0.0, "time is scarce here"
    session = collect(simulator.again(), pilot, hours=0.6, explore=0.0)
    # Times spread around what is expected, so it can be a little above as well; and half a square
    # is worth less than half.
    assert session.line()["good"] == pytest.approx(pilot.limit, rel=0.15)


def test_pilots_are_found_by_name(simulator: Simulator) -> None:
    columns = simulator.feature_names
    made = {
        name: pilot_for(Settings(pilot=name, columns=columns))
        for name in PILOTS
        if name not in ("clairvoyant", *GRID_RULES)
    }
    assert len({type(pilot) for pilot in made.values()}) == len(made) - 1, "two are of the paper"
    assert isinstance(made["take-all"], EveryHole)
    assert rivals(columns) == list(OTHERS)
    curious = pilot_for(Settings(pilot="take-all", explore=0.1, seed=7))
    assert isinstance(curious, Exploring)
    assert (curious.share, curious.seed) == (0.1, 7)


@pytest.mark.parametrize(
    ("columns", "due"), [(("ice", "prediction"), 1), (("edge", "ice"), 1), (("prediction",), 0)]
)
def test_the_microscopist_looks_at_predictions_where_there_are_any(
    columns: tuple[str, ...], due: int
) -> None:
    pilot = pilot_for(Settings(pilot="microscopist", columns=columns))
    assert isinstance(pilot, Microscopist)
    assert pilot.column == due
    assert "microscopist" in rivals(columns)
    assert "microscopist" not in rivals(("edge",))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("microscopist", "pilot microscopist goes by 'prediction' or 'ice'"),
        ("fixed-cut", "pilot fixed-cut goes by 'prediction', and the features are: ice, edge"),
        ("best", "policy is 'best'; there are coaf, "),
        ("clairvoyant", "the clairvoyant goes by the truth, which settings do not hold"),
    ],
)
def test_what_there_is_no_pilot_for(name: str, message: str) -> None:
    columns = ("edge",) if name == "microscopist" else ("ice", "edge")
    with pytest.raises(ValueError, match=message):
        pilot_for(Settings(pilot=name, columns=columns))
    assert "fixed-cut" not in rivals(("ice", "edge"))
    assert "window" not in rivals(("prediction",))


def test_a_window_is_two_quantiles_in_order() -> None:
    with pytest.raises(ValueError, match="two quantiles"):
        IntensityWindow(0, (0.9, 0.1))
