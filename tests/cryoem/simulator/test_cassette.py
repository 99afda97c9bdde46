"""Several simulated grids in one microscope."""

import pytest

from coaf.cryoem.microscope import Autoloader, Rehearsal, upkeep_of
from coaf.cryoem.session.collect import GOOD
from coaf.cryoem.simulator.cassette import ATLAS, LOAD, Cassette
from coaf.cryoem.simulator.simulator import Simulator


def cassette(*seeds: int, **more: float) -> Cassette:
    made = [Simulator(seed, squares=2, pixels=False, delay=30.0) for seed in seeds or (3, 4)]
    return Cassette(made, **more)


def test_it_loads_and_can_be_played_again() -> None:
    assert isinstance(cassette(), Autoloader)
    assert isinstance(cassette(), Rehearsal)


def test_loading_takes_its_time_and_the_first_atlas_more() -> None:
    one = cassette()
    for name, seconds in (("grid 1", LOAD + ATLAS), ("grid 2", LOAD + ATLAS), ("grid 1", LOAD)):
        before = one.clock
        assert one.load(name) == LOAD
        names = {square.name for square in one.squares()}
        assert {square.grid for square in one.squares()} == {name}
        assert one.clock - before == seconds
    assert (one.timing.load, one.timing.atlas) == (LOAD, ATLAS)
    one.load("grid 2")
    assert not names & {square.name for square in one.squares()}


def test_only_what_is_loaded_can_be_worked_on() -> None:
    one = cassette()
    with pytest.raises(ValueError, match="no grid is loaded"):
        one.squares()
    with pytest.raises(KeyError, match="it has grid 1, grid 2"):
        one.load("grid 3")
    one.load("grid 1")
    square = one.squares()[0].name
    patch = one.survey(square).patches[0]
    one.load("grid 2")
    for go in (lambda: one.survey(square), lambda: one.move(patch)):
        with pytest.raises(ValueError, match="is not on grid 2, which is loaded"):
            go()
    with pytest.raises(ValueError, match="is not on grid 2"):
        one.expose(patch.holes[0])


def test_scores_of_a_grid_that_was_taken_out_still_come() -> None:
    one = cassette()
    one.load("grid 1")
    patch = one.survey(one.squares()[0].name).patches[0]
    one.move(patch)
    one.expose(patch.holes[0])
    one.load("grid 2")
    assert [score.hole for score in one.collect()] == [patch.holes[0].name]
    assert set(one.worth(GOOD)) == {patch.holes[0].name}
    again = one.again()
    assert again.clock == 0.0
    assert again.peek(patch.square).patches[0] == patch
    assert again.first_visit(GOOD, patch.holes[0].name) == one.worth(GOOD)[patch.holes[0].name]


def test_grids_are_worked_on_by_one_clock_and_one_instrument() -> None:
    one = cassette()
    one.load("grid 1")
    first = one.survey(one.squares()[0].name).patches[0]
    seconds = one.clock + one.move(first)
    assert one.clock == pytest.approx(seconds)
    one.load("grid 2")
    one.wait(9 * 3600.0)  # the dewar is due, once
    one.survey(one.squares()[0].name)
    kept = one.upkeep
    assert upkeep_of(one) > 0.0
    one.load("grid 1")
    one.move(first)
    assert one.upkeep == kept


def test_grids_must_differ_and_bring_the_same() -> None:
    with pytest.raises(ValueError, match="seed '3' is there more than once"):
        cassette(3, 3)
    with pytest.raises(ValueError, match="grids with the same features"):
        Cassette([Simulator(3, pixels=False), Simulator(4, pixels=False, prediction=True)])
