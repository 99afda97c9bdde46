"""COAF as a pilot: what it is told, what it learns of it, and what it never begins."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from coaf.cryoem.grid import Hole, Patch, Square
from coaf.cryoem.microscope import Survey
from coaf.cryoem.pilot import Choice, Left
from coaf.cryoem.pilots.coaf import CoafPilot
from coaf.cryoem.reward import GoodBelow
from coaf.cryoem.session.collect import GOOD, collect
from coaf.cryoem.simulator.simulator import Simulator
from coaf.cryoem.timing import FAST

PLENTY = Left(seconds=20_000.0, squares=5)


def simulator(seed: int = 3, **settings: Any) -> Simulator:
    chosen: dict[str, Any] = {"squares": 10, "pixels": False, "delay": "none", "faults": ()}
    return Simulator(seed, **(chosen | settings))


def pilot_for(microscope: Simulator) -> CoafPilot:
    return CoafPilot(microscope.timing, reward=GOOD, columns=microscope.feature_names)


def by_hand(*patches: str, shots: int = 1, holes: int = 6) -> tuple[CoafPilot, list[Patch]]:
    """A pilot that has opened one square with these patches, of good ice."""
    pilot = CoafPilot(FAST, reward=GoodBelow(3.8), columns=("ice", "neighbours"))
    pilot.square([Square("s", 0.0, 0.0, features=(1.0,))], PLENTY)
    made = [
        Patch(
            name, "s", tuple(Hole(f"{name}-{k}", k, 0.0, shots=shots) for k in range(holes)), 0, 0
        )
        for name in patches
    ]
    pilot.opened(
        Survey("s", tuple(made), {name: np.full((holes, 2), 0.15) for name in patches}), 85
    )
    return pilot, made


def expose(pilot: CoafPilot, patch: Patch, count: int, left: Left = PLENTY) -> list[str]:
    """The first holes of a patch are exposed, whatever the pilot would have done."""
    rest, names = list(range(len(patch.holes))), []
    for k in range(count):
        pilot.hole(patch, tuple(rest), left)
        hole = patch.holes[rest.pop(0)]
        pilot.exposed(hole.name, FAST.hole(hole.shots) + (FAST.enter if k == 0 else 0.0))
        names.append(hole.name)
    return names


def test_it_beats_taking_all_over_two_grids() -> None:
    """In sum by half and more. Not on every grid: an hour that begins with bad ice may be lost."""
    won = [
        sum(
            collect(simulator(seed), policy, hours=1.0, explore=0.0).summary()["good"]
            for seed in (1, 2)
        )
        for policy in ("coaf", "take-all")
    ]
    assert won[0] > 1.5 * won[1] > 0.0


def test_it_beats_taking_all_with_several_shots() -> None:
    """By half and more; each score that came is learned once, and times are of single shots."""
    microscope = simulator(2, shots=3)
    pilot = pilot_for(microscope)
    session = collect(microscope, pilot, hours=1.0, explore=0.0)
    other = collect(simulator(2, shots=3), "take-all", hours=1.0, explore=0.0)
    ours, all_ = session.summary(), other.summary()
    assert ours["good"] > 1.5 * all_["good"] > 0.0
    assert ours["micrographs"] == 3 * ours["exposed"]
    # What arrives after the last decision is not learned any more.
    told = sum(row["event"] == "score" for row in session.rows)
    assert ours["micrographs"] - 3 <= pilot.policy.belief.rows <= told  # type: ignore[union-attr]
    usual = microscope.timing
    assert pilot.times.timing.expose == pytest.approx(usual.expose, rel=0.2)
    assert pilot.times.timing.enter == pytest.approx(usual.enter, rel=0.4)


class Watched(CoafPilot):
    """Notes what was left when a hole was chosen, and how long that should take."""

    begun: list[tuple[float, float]]

    def hole(self, patch: Patch, rest: Sequence[int], left: Left) -> Choice:
        first = self._at != patch.name or self._entry is None
        choice = super().hole(patch, rest, left)
        if choice.name is not None:
            timing = self.times.timing
            needed = timing.hole(patch.holes[0].shots) + (timing.enter if first else 0.0)
            self.begun.append((needed, left.seconds))
        return choice


def test_nothing_is_begun_that_cannot_finish() -> None:
    microscope = simulator(4, squares=3)
    pilot = Watched(microscope.timing, reward=GOOD, columns=microscope.feature_names)
    pilot.begun = []
    collect(microscope, pilot, hours=0.5, explore=0.0)
    assert len(pilot.begun) > 50
    assert all(needed <= left for needed, left in pilot.begun)
    direct, (patch, *_) = by_hand("p")
    short = Left(seconds=FAST.enter + FAST.expose - 0.1, squares=0)
    choice = direct.hole(patch, range(6), short)
    assert choice.name is None
    assert choice.why == "It would take 59 s, and 59 s are left."
    direct.left(patch)
    assert direct.hole(patch, range(6), Left(FAST.enter + FAST.expose, 0)).name is not None


def test_times_are_shared_between_the_steps_of_opening_and_entering() -> None:
    """A first measurement counts one against five: twice the usual makes all of its steps 7/6."""
    pilot, (patch,) = by_hand("p")  # opened in 85 s
    opened = 1.0 + (85.0 / FAST.square - 1.0) / 6.0
    pilot.hole(patch, range(6), PLENTY)
    pilot.exposed("p-0", 2.0 * FAST.enter + FAST.hole())
    learned = pilot.times.timing
    for level in ("stage", "height", "image"):
        assert getattr(learned, level) == pytest.approx(opened * getattr(FAST, level))
    for level in ("move", "focus"):
        assert getattr(learned, level) == pytest.approx(7.0 / 6.0 * getattr(FAST, level))
    assert learned.expose == FAST.expose, "of an entry nothing is known of the exposure alone"


def test_each_of_several_shots_is_learned_once() -> None:
    pilot, (patch, *_) = by_hand("p", shots=3)
    before = pilot.estimates(patch)
    assert pilot.hole(patch, range(6), PLENTY).estimate == pytest.approx(before.max())
    pilot.left(patch)
    first, second = expose(pilot, patch, 2)
    belief = pilot.policy.belief
    assert belief is not None
    for count, (hole, shot) in enumerate([(second, 2), (first, 0), (second, 0), (first, 2)], 1):
        pilot.scored(hole, shot, 1.0)
        assert belief.rows == count  # type: ignore[attr-defined]
        with pytest.raises(ValueError, match=rf"shot {shot} of hole '{hole}' is in already"):
            pilot.scored(hole, shot, 1.0)
        assert belief.rows == count  # type: ignore[attr-defined]
    after = pilot.estimates(patch)
    assert (after > before).all(), "good shots speak for their patch"
    assert (after < 3.0).all()
    with pytest.raises(ValueError, match="'elsewhere' has a score, but was never exposed"):
        pilot.scored("elsewhere", 0, 1.0)


def test_scores_may_come_in_any_order() -> None:
    """Up to when variances are estimated, which goes by the rows that came first: 0.02."""
    found = []
    for turn in (1, -1):
        pilot, patches = by_hand("p", "q")
        names = []
        for patch in patches:
            names += expose(pilot, patch, 4)
            pilot.left(patch)
        for hole in names[::turn]:
            pilot.scored(hole, 0, float(hole.startswith("q")))
        found.append(np.concatenate([pilot.estimates(patch) for patch in patches]))
    assert found[0] == pytest.approx(found[1], abs=0.02)
    assert found[0][0] < found[0][-1]


def test_what_is_left_without_an_exposure_was_skipped() -> None:
    """A skip is committed; and a patch is one example, however often it is looked at."""
    pilot, (patch, other) = by_hand("p", "q")
    examples, commits = len(pilot.policy.remembered), pilot.policy.commits
    pilot.hole(patch, range(6), PLENTY)
    pilot.left(patch)
    assert pilot.policy.commits == commits + 1
    expose(pilot, other, 2)
    pilot.left(other)
    for left in (PLENTY, Left(500.0, 0)):
        pilot.hole(patch, range(6), left)
        pilot.left(patch)
        pilot.hole(other, range(2, 6), left)
        pilot.left(other)
    pilot.left(other)  # nothing is open: nothing is committed
    assert pilot.policy.commits == commits + 7
    assert len(pilot.policy.remembered) == examples
    with pytest.raises(ValueError, match="no decision is open for it"):
        pilot.exposed("p-5", 6.0)


def test_names_of_patches_cannot_make_keys_equal() -> None:
    """The second visit of "p" with four holes left, beside the fourth visit of "p/2"."""
    pilot, patches = by_hand("p", "p/1", "p/2", "p/1/2", "1/p")
    for _ in range(3):
        for patch in patches:
            for size in (6, 4, 2):
                pilot.hole(patch, range(size), PLENTY)
            pilot.left(patch)
    for patch in patches:
        names = expose(pilot, patch, 5)
        pilot.left(patch)
        for hole in names:
            pilot.scored(hole, 0, 0.0)


def test_what_was_taken_back_may_be_told_again() -> None:
    pilot, (patch, other) = by_hand("p", "q", shots=2)
    bad = expose(pilot, patch, 3)
    pilot.left(patch)
    good = expose(pilot, other, 3)
    for hole in good:
        pilot.scored(hole, 0, 1.0)
    clean = pilot.estimates(patch)
    for hole in bad:
        pilot.scored(hole, 0, 0.0)
    told = pilot.estimates(patch)
    assert (told < clean).all()
    pilot.unlearn(bad)
    assert pilot.estimates(patch) == pytest.approx(clean, abs=1e-3)
    for hole in bad:
        pilot.scored(hole, 0, 0.0)
        with pytest.raises(ValueError, match="is in already"):
            pilot.scored(hole, 0, 0.0)
        pilot.scored(hole, 1, 0.0)
    assert (pilot.estimates(patch) < told).all()
    pilot.unlearn([*bad, *good])
    assert pilot.estimates(patch) == pytest.approx(by_hand("p", shots=2)[0].estimates(patch))


def test_scores_of_a_fault_do_not_stay_learned() -> None:
    fault, plain = (2000.0, 4500.0), GoodBelow(6.0)
    microscope = simulator(3, squares=16, faults=[fault], delay=45.0)
    pilot = CoafPilot(microscope.timing, reward=plain, columns=microscope.feature_names)
    session = collect(microscope, pilot, hours=1.6, reward=plain, explore=0.0)
    assert session.alarms, "the fault was seen"
    during = [r["hole"] for r in session.exposures() if fault[0] <= r["clock"] < fault[1]]
    learned = set(pilot._rows)
    assert len(learned & set(during)) <= 0.1 * len(during)
    assert len(learned) > 100


def test_the_waiting_time_is_counted_in_holes() -> None:
    for shots in (1, 3):
        pilot, (patch, *_) = by_hand("p", shots=shots, holes=8)
        names = expose(pilot, patch, 5)
        pilot.scored(names[1], 0, 1.0)
        assert pilot.policy.lag == 3, "three more were taken before it came"


def test_a_square_without_patches_is_learned_from() -> None:
    """Bright squares turned out empty; dark ones are opened next."""
    pilot, _ = by_hand("p", holes=20)
    squares = [Square(f"{k}", 0.0, 0.0, features=(-1.0 if k % 2 else 1.0,)) for k in range(12)]
    pilot._atlas["s"] = Square("s", 0.0, 0.0, features=(-1.0,))
    pilot.square(squares, PLENTY)
    for square in squares[:6:2]:
        pilot.opened(Survey(square.name, (), {}), 85.0)
    choice = pilot.square(squares[6:], PLENTY)
    ranked = [name for name, _ in pilot.squares.ranking]
    assert {int(name) % 2 for name in ranked[:3]} == {1}
    assert choice.name is None or int(choice.name) % 2 == 1


def test_the_best_patch_is_looked_at_first() -> None:
    pilot = CoafPilot(FAST, reward=GOOD, columns=("ice", "neighbours"))
    pilot.square([Square("s", 0.0, 0.0)], PLENTY)
    ice = {"thick": 0.8, "fine": 0.15, "wet": 0.5}
    patches = [
        Patch(name, "s", tuple(Hole(f"{name}{k}", k, 0.0) for k in range(15)), 0.0, 0.0)
        for name in ice
    ]
    features = {name: np.full((15, 2), ice[name]) for name in ice}
    pilot.opened(Survey("s", tuple(patches), features), 85.0)
    pilot.hole(patches[1], range(15), PLENTY)
    pilot.left(patches[1])
    choice = pilot.patch(patches, PLENTY)
    assert choice.name == "fine"
    assert "more than its time is worth" in choice.why
    busy = Left(seconds=2000.0, squares=50)
    looked = pilot.patch(patches[:1], busy)
    assert "less than its time is worth" in looked.why, "of a new square each has its reason"
    assert pilot.hole(patches[0], range(15), busy).name is None
    pilot.left(patches[0])
    pilot.square([], busy)  # from here on, patches are returned to
    none = pilot.patch(patches[:1], busy)
    assert none.name is None
    assert "None of 1 patches pays for its time" in none.why
    last = pilot.patch(patches[:1], Left(seconds=5000.0, squares=0))
    assert last.name == "thick", "when the grid runs out, what was skipped returns"


def test_when_no_square_is_left() -> None:
    pilot, _ = by_hand("p")
    choice = pilot.square([], Left(100.0, 0))
    assert (choice.name, choice.why) == (None, "No square is left to open.")
