"""COAF as a pilot: what it is told, what it learns of it, and that asking changes nothing."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from coaf.bandit.beliefs.mixture import Mixture
from coaf.bandit.beliefs.nested.nested import Nested
from coaf.cryoem.grid import Hole, Patch, Square
from coaf.cryoem.microscope import Survey
from coaf.cryoem.pilot import Left, Open, Scored
from coaf.cryoem.pilots.coaf import CoafPilot
from coaf.cryoem.pilots.designs import Design
from coaf.cryoem.reward import GoodBelow, Particles
from coaf.cryoem.session.collect import GOOD, collect
from coaf.cryoem.simulator.conditions import Conditions
from coaf.cryoem.simulator.simulator import Simulator
from coaf.cryoem.timing import FAST
from cryoem.driven import drive

MORE = tuple(Square(f"t{k}", 0.0, 0.0, features=(float(k),)) for k in range(5))
PLENTY = Left(seconds=20_000.0, timing=FAST, squares=MORE)
SCARCE = replace(PLENTY, seconds=1500.0)


def simulator(seed: int = 3, **settings: Any) -> Simulator:
    chosen: dict[str, Any] = {"squares": 10, "pixels": False, "delay": "none", "faults": ()}
    return Simulator(seed, **(chosen | settings))


def whole(patch: Patch, **more: Any) -> Open:
    """A patch of which nothing was taken."""
    return Open(patch, tuple(range(len(patch.holes))), **more)


def by_hand(*patches: str, shots: int = 1, holes: int = 6) -> tuple[CoafPilot, list[Patch]]:
    """A pilot that was told of one square with these patches, of good ice."""
    pilot = CoafPilot(FAST, reward=GoodBelow(3.8), columns=("ice", "neighbours"))
    pilot.saw([Square("s", 0.0, 0.0, features=(1.0,)), *MORE])
    made = [
        Patch(
            name, "s", tuple(Hole(f"{name}-{k}", k, 0.0, shots=shots) for k in range(holes)), 0, 0
        )
        for name in patches
    ]
    features = {name: np.full((holes, 2), 0.15) for name in patches}
    pilot.opened(Survey("s", tuple(made), features), FAST)
    return pilot, made


def expose(pilot: CoafPilot, patch: Patch, count: int, left: Left = PLENTY) -> list[str]:
    """A patch is gone to, and its first holes are exposed, whatever the pilot would have done."""
    here = whole(patch)
    pilot.moved(here, left, None)
    names = [hole.name for hole in patch.holes[:count]]
    for name in names:
        pilot.exposed(name)
    pilot.done(Open(patch, here.rest[count:], entered=True), left)
    return names


def tell(pilot: CoafPilot, holes: Iterable[str], reward: float, shot: int = 0) -> None:
    """Scores, one by one."""
    for hole in holes:
        pilot.scored([Scored(hole, shot, reward)])


def learned(pilot: CoafPilot) -> int:
    """How many scores were learned."""
    belief = pilot.policy.belief
    assert isinstance(belief, Nested | Mixture)
    return belief.rows


def answers(pilot: CoafPilot, patches: Sequence[Patch], left: Left) -> list[str]:
    """To all that can be asked, in words: an estimate that is no number equals none."""
    opens = [whole(patch) for patch in patches]
    facing = replace(left, patches=tuple(opens))
    choices = [
        pilot.square(left.squares, facing),
        *(pilot.patch(opens, replace(facing, returning=back)) for back in (False, True)),
        *(pilot.hole(one, facing, inside=False) for one in opens),
    ]
    return [repr(choice) for choice in choices]


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
    """By half and more; each score that came is learned once."""
    microscope = simulator(2, shots=3)
    pilot = CoafPilot(microscope.timing, reward=GOOD, columns=microscope.feature_names)
    session = collect(microscope, pilot, hours=1.0, explore=0.0)
    other = collect(simulator(2, shots=3), "take-all", hours=1.0, explore=0.0)
    ours, all_ = session.summary(), other.summary()
    assert ours["good"] > 1.5 * all_["good"] > 0.0
    assert ours["micrographs"] == 3 * ours["exposed"]
    assert learned(pilot) == sum(row["event"] == "score" for row in session.rows) > 0


def test_to_ask_changes_nothing() -> None:
    """One that was asked at every turn answers as one that was never asked before."""
    quicker = replace(FAST, move=FAST.move - 0.4, expose=FAST.expose - 0.03)
    lefts = [PLENTY, SCARCE, replace(SCARCE, timing=quicker)]
    asked, patches = by_hand("p", "q", "r")
    silent, _ = by_hand("p", "q", "r")
    for k, patch in enumerate(patches):
        for left in lefts:
            before = json.dumps(asked.state())
            first = answers(asked, patches, left)
            assert answers(asked, patches, left) == first
            assert json.dumps(asked.state()) == before
        for pilot in (asked, silent):
            tell(pilot, expose(pilot, patch, 2, lefts[k]), float(k > 0))
    assert answers(asked, patches, lefts[2]) == answers(silent, patches, lefts[2])


def test_it_goes_on_from_its_state() -> None:
    """Told all but the scores, and restored, it answers as the one the state was taken from."""
    told, patches = by_hand("p", "q", "r")
    deaf, _ = by_hand("p", "q", "r")
    for k, patch in enumerate(patches[:2]):
        names = expose(told, patch, 4)
        told.scored([Scored(name, 0, float(k), waited=40.0) for name in names])
        expose(deaf, patch, 4)
    deaf.restore(json.loads(json.dumps(told.state())))
    assert answers(deaf, patches, PLENTY) == answers(told, patches, PLENTY)
    for pilot in (told, deaf):
        pilot.scored([Scored(name, 0, 1.0, waited=8.0) for name in expose(pilot, patches[2], 5)])
    assert answers(deaf, patches, PLENTY) == answers(told, patches, PLENTY)
    assert deaf.policy.lag == told.policy.lag > 0


def test_each_of_several_shots_is_learned() -> None:
    pilot, (patch, *_) = by_hand("p", shots=3)
    before = pilot.estimates(patch)
    assert pilot.hole(whole(patch), PLENTY, inside=False).estimate == pytest.approx(before.max())
    first, second = expose(pilot, patch, 2)
    for count, (hole, shot) in enumerate([(second, 2), (first, 0), (second, 0), (first, 2)], 1):
        pilot.scored([Scored(hole, shot, 1.0)])
        assert learned(pilot) == count
    after = pilot.estimates(patch)
    assert (after > before).all(), "good shots speak for their patch"
    assert (after < 3.0).all()


def test_scores_may_come_in_any_order() -> None:
    """Up to when variances are estimated, which goes by the rows that came first: 0.02."""
    found = []
    for turn in (1, -1):
        pilot, patches = by_hand("p", "q")
        names = [name for patch in patches for name in expose(pilot, patch, 4)]
        for hole in names[::turn]:
            tell(pilot, [hole], float(hole.startswith("q")))
        found.append(np.concatenate([pilot.estimates(patch) for patch in patches]))
    assert found[0] == pytest.approx(found[1], abs=0.02)
    assert found[0][0] < found[0][-1]


def test_a_patch_is_one_example_however_often_it_is_looked_at() -> None:
    pilot, (patch, other) = by_hand("p", "q")
    examples = len(pilot.policy.remembered)
    assert examples == 2
    for left in (PLENTY, replace(PLENTY, seconds=500.0, squares=(), returning=True)):
        pilot.hole(whole(patch), left, inside=False)
        pilot.done(whole(patch), left)
        expose(pilot, other, 2, left)
    assert len(pilot.policy.remembered) == examples
    pilot.opened(Survey("s", (patch,), {"p": np.full((6, 2), 0.2)}), FAST)
    assert len(pilot.policy.remembered) == examples, "nor if its holes have changed"
    assert pilot.squares.patches(7.0) == (7.0 + 2.0) / 2.0, "a square was opened once"


def test_names_of_patches_cannot_make_keys_equal() -> None:
    """The second visit of "p" with four holes left, beside the fourth visit of "p/2"."""
    pilot, patches = by_hand("p", "p/1", "p/2", "p/1/2", "1/p")
    for _ in range(3):
        for patch in patches:
            pilot.moved(whole(patch), PLENTY, None)
            for size in (6, 4, 2):
                here = Open(patch, tuple(range(size)), entered=True)
                inside = pilot.hole(here, PLENTY, inside=True)
                assert pilot.hole(here, PLENTY, inside=True) == inside
            pilot.done(whole(patch), PLENTY)
    for patch in patches:
        tell(pilot, expose(pilot, patch, 5), 0.0)
    assert learned(pilot) == 25


def test_a_visit_keeps_the_price_at_which_it_was_decided() -> None:
    """Until nothing else can be started: then what is left here is free."""
    pilot, (patch, _) = by_hand("p", "q")
    here = replace(whole(patch), entered=True)
    for rate in (1e-6, 10.0):
        pilot.moved(whole(patch), PLENTY, rate)
        choice = pilot.hole(here, PLENTY, inside=True)
        assert choice.rate == rate
        assert (choice.name is None) == (rate == 10.0)
    last = replace(PLENTY, seconds=FAST.enter, squares=())
    assert pilot.hole(here, last, inside=True).name is not None


def test_a_visit_that_nobody_decided_has_the_price_of_now() -> None:
    pilot, (patch, _) = by_hand("p", "q")
    asked = pilot.hole(whole(patch), SCARCE, inside=False)
    pilot.moved(whole(patch), SCARCE, None)
    inside = pilot.hole(replace(whole(patch), entered=True), SCARCE, inside=True)
    assert inside.rate == pytest.approx(asked.rate)
    assert inside.rate > 0.0


def test_scores_of_a_fault_do_not_stay_learned() -> None:
    """It knows what one knows who was never told what was taken meanwhile."""
    fault, plain = (2000.0, 4500.0), GoodBelow(6.0)
    microscope = simulator(3, squares=16, faults=[fault], delay=45.0)
    engine = drive(microscope, "coaf", hours=1.6, reward=plain)
    assert engine.guard.alarms, "the fault was seen"
    pilot = engine.pilot
    assert isinstance(pilot, CoafPilot)
    shots = {hole: engine.guard.quarantined(f"{hole} shot 0") for hole, _ in engine.learning.values}
    assert learned(pilot) == sum(not held for held in shots.values()) > 100
    during = {
        hole for hole in shots if fault[0] <= engine.learning.score((hole, 0)).exposed_at < fault[1]
    }
    assert sum(not shots[hole] for hole in during) <= 0.1 * len(during)


def test_the_waiting_time_is_counted_in_holes() -> None:
    for shots in (1, 3):
        pilot, (patch, *_) = by_hand("p", shots=shots, holes=8)
        names = expose(pilot, patch, 5)
        each = FAST.hole(shots)
        pilot.scored([Scored(names[0], shots - 1, 1.0, waited=2.5 * each)])
        assert pilot.policy.lag == (3 if shots == 1 else 0), "by the first shot of each hole"
        pilot.scored([Scored(names[1], 0, 1.0, waited=2.5 * each)])
        assert pilot.policy.lag == 3, "three more are taken before it comes"


def test_what_is_planned_blindly_counts_on_no_score() -> None:
    """To be free to stop after a score is worth something; who plans a whole list is not."""
    pilot = CoafPilot(FAST, reward=GOOD, columns=("ice", "neighbours"))
    patch = Patch("p", "s", tuple(Hole(f"h{k}", k, 0.0) for k in range(20)), 0, 0)
    pilot.saw([Square("s", 0.0, 0.0)])
    pilot.opened(Survey("s", (patch,), {"p": np.full((20, 2), 0.15)}), FAST)
    here = whole(patch)
    open_ = replace(SCARCE, patches=(here,))
    free, blind = (pilot.patch([here], replace(open_, blindly=b)).estimate for b in (False, True))
    assert blind < free
    assert pilot.policy.lag == 0


def test_a_square_without_patches_is_learned_from() -> None:
    """Bright squares turned out empty; dark ones are opened next."""
    pilot, _ = by_hand("p", holes=20)
    squares = [Square(f"{k}", 0.0, 0.0, features=(-1.0 if k % 2 else 1.0,)) for k in range(12)]
    pilot.saw([Square("s", 0.0, 0.0, features=(-1.0,)), *squares])
    for square in squares[:6:2]:
        pilot.opened(Survey(square.name, (), {}), FAST)
    choice = pilot.square(squares[6:], PLENTY)
    ranked = [name for name, _ in pilot.squares.ranking]
    assert {int(name) % 2 for name in ranked[:3]} == {1}
    assert choice.name is None or int(choice.name) % 2 == 1


def test_the_best_patch_is_looked_at_first() -> None:
    pilot = CoafPilot(FAST, reward=GOOD, columns=("ice", "neighbours"))
    pilot.saw([Square("s", 0.0, 0.0)])
    ice = {"thick": 0.8, "fine": 0.15, "wet": 0.5}
    patches = [
        Patch(name, "s", tuple(Hole(f"{name}{k}", k, 0.0) for k in range(15)), 0.0, 0.0)
        for name in ice
    ]
    features = {name: np.full((15, 2), ice[name]) for name in ice}
    pilot.opened(Survey("s", tuple(patches), features), FAST)
    opens = tuple(whole(patch) for patch in patches)
    choice = pilot.patch(opens, replace(PLENTY, patches=opens))
    assert choice.name == "fine"
    assert "more than its time is worth" in choice.why
    many = tuple(Square(f"{k}", 0.0, 0.0) for k in range(50))
    busy = Left(seconds=2000.0, timing=FAST, squares=many, patches=opens)
    looked = pilot.patch(opens[:1], busy)
    assert "less than its time is worth" in looked.why, "of a new square each has its reason"
    assert pilot.hole(opens[0], busy, inside=False).name is None
    none = pilot.patch(opens[:1], replace(busy, returning=True))
    assert none.name is None
    assert "None of 1 patches pays for its time" in none.why
    end = Left(seconds=5000.0, timing=FAST, patches=opens[:1], returning=True)
    assert pilot.patch(opens[:1], end).name == "thick", "when the grid runs out it returns"


def test_when_no_square_is_left() -> None:
    pilot, _ = by_hand("p")
    choice = pilot.square([], Left(100.0, FAST))
    assert (choice.name, choice.why) == (None, "No square is left to open.")


def test_a_design_may_be_given() -> None:
    """One that looks at the last column alone; what it says of the others does not matter."""
    design = Design(lambda rows: rows[:, -1:], lambda: Nested(1, effects=(0.5, 1.0)), "logistic")
    pilot = CoafPilot(FAST, reward=GOOD, columns=("ice", "luck"), design=design)
    patch = Patch("p", "s", tuple(Hole(f"h{k}", k, 0.0) for k in range(4)), 0.0, 0.0)
    rows = np.array([[9.0, 0.0], [0.1, 0.0], [5.0, 1.0], [0.2, 1.0]])
    pilot.opened(Survey("s", (patch,), {"p": rows}), FAST)
    pilot.scored([Scored("h0", 0, 0.0), Scored("h2", 0, 1.0)])
    found = pilot.estimates(patch)
    assert found[0] == found[1] < found[2] == found[3]


@pytest.mark.parametrize("holes", [1, 2, 3])
@pytest.mark.parametrize("prediction", [True, False])
def test_small_patches_are_not_judged_by_large_ones(holes: int, prediction: bool) -> None:
    """Whatever patches it expects, it collects at least nine tenths of what taking all does."""
    conditions = Conditions(thickness=45.0, patch_rows=1.0, patch_columns=float(holes))
    settings: dict[str, Any] = {"hours": 1.0, "explore": 0.0}
    ours = every = 0.0
    for seed in (3, 4, 5):
        grid = simulator(seed, squares=4, prediction=prediction, conditions=conditions)
        ours += collect(grid, "coaf", **settings).summary()["true_good"]
        every += collect(grid.again(), "take-all", **settings).summary()["true_good"]
    assert ours > 0.9 * every > 10.0


@pytest.mark.parametrize("seed", [3, 4])
def test_without_scores_no_fewer_particles_are_collected_than_by_taking_all(seed: int) -> None:
    """Nobody knows beforehand how many are many, so the simple rule is followed until scores come.

    Up to 3 %: the last patch may be another one.
    """
    silent = Conditions(stray=1.0)  # every score is lost
    settings: dict[str, Any] = {"hours": 1.0, "explore": 0.0, "reward": Particles()}
    grids = (simulator(seed, delay="measured", conditions=silent) for _ in range(2))
    ours, every = (
        collect(grid, policy, **settings).summary()["true_good"]
        for grid, policy in zip(grids, ("coaf", "take-all"), strict=True)
    )
    assert ours > 0.97 * every > 1.0


def cycled(pilot: CoafPilot, patches: Sequence[Patch], *, told: bool) -> None:
    """Patch after patch is taken whole; of a cycle of defoci the last spoils every hole.

    The last patch is taken with that one alone.
    """
    for k, patch in enumerate(patches):
        for i, hole in enumerate(expose(pilot, patch, len(patch.holes))):
            defocus = -0.5 if k == len(patches) - 1 else -2.5 + 0.5 * (i % 5)
            known = {"defocus": defocus} if told else {}
            pilot.scored([Scored(hole, 0, float(defocus < -0.5), circumstances=known)])


def test_what_spoils_shots_is_not_learned_as_ice() -> None:
    """A patch that was taken with too little defocus is as good as others, for who is told."""
    worth = {}
    for told in (True, False):
        pilot, patches = by_hand(*"abcde", holes=10)
        cycled(pilot, patches, told=told)
        worth[told] = [float(pilot.estimates(patch).mean()) for patch in patches]
    assert worth[False][-1] < 0.35
    assert min(worth[False][:-1]) > 0.6
    assert worth[True][-1] > 0.75
    assert min(worth[True][:-1]) > 0.85


@pytest.mark.parametrize("known", [{"defocus": -1.5, "place": 0.0}, {"dose": 40.0}])
def test_what_is_the_same_for_all_shots_changes_nothing(known: dict[str, float]) -> None:
    answered = []
    for circumstances in ({}, known):
        pilot, patches = by_hand("a", "b")
        for k, hole in enumerate(expose(pilot, patches[0], 6)):
            pilot.scored([Scored(hole, 0, float(k % 2), circumstances=circumstances)])
        answered.append(answers(pilot, patches, SCARCE))
        assert isinstance(pilot.policy.belief, Mixture)
    assert answered[0] == answered[1]


def test_who_is_told_of_shots_goes_on_from_its_state() -> None:
    pilot, patches = by_hand(*"abcde", holes=10)
    cycled(pilot, patches[:3], told=True)
    same, _ = by_hand(*"abcde", holes=10)
    same.restore(json.loads(json.dumps(pilot.state())))
    for one in (pilot, same):
        cycled(one, patches[3:], told=True)
    assert answers(same, patches, SCARCE) == answers(pilot, patches, SCARCE)
    assert "judged at usual defocus" in pilot.square(SCARCE.squares, SCARCE).why


def test_a_state_of_before_scores_were_kept_still_loads() -> None:
    pilot, patches = by_hand("a", "b")
    tell(pilot, expose(pilot, patches[0], 3), 1.0)
    state = {name: value for name, value in pilot.state().items() if name != "shots"}
    same, _ = by_hand("a", "b")
    same.restore(state)
    assert learned(same) == 3
    tell(same, ["a-3"], 1.0)
    tell(pilot, ["a-3"], 1.0)
    assert answers(same, patches, SCARCE) == answers(pilot, patches, SCARCE)
