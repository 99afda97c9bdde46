"""Where to go next when going there takes time that patches share."""

from itertools import product

import numpy as np
import pytest

from coaf.bandit.rates.price import Setups, Worth, bundled, price
from coaf.cryoem.grid import Square
from coaf.cryoem.pilots.switching import Switching
from coaf.cryoem.timing import FAST, SWITCHES, LearnedTiming, Timing, switches

TIMES = Timing.constant(10.0, 60.0, 60.0, to_square=240.0, to_tile=120.0, to_grid=1000.0)


def square(name: str) -> Square:
    """Named after its grid, tile and own letter: "g1a"."""
    return Square(name, 0.0, 0.0, tile=name[:2], grid=name[0])


def test_what_lies_between_squares() -> None:
    here = square("g1a")
    assert [len(switches(here, square(n))) for n in ("g1a", "g1b", "g2a", "h1a")] == [0, 1, 2, 3]
    assert switches(None, here) == SWITCHES, "from nowhere it is the whole way"
    assert TIMES.switch(here, square("h1a")) == 1360.0
    assert FAST.switch(here, square("h1a")) == 0.0


def test_without_switching_times_the_best_patch_is_the_best() -> None:
    """Wherever it lies; and of equals the first."""
    way = Switching([square("g1b"), square("g1a"), square("g2a")], square("g1a"), FAST)
    assert way.setups == []
    assert way.best(np.array([2.0, 1.0, 2.0]), 0.01) == (0, True)
    assert way.best(np.array([-2.0, -1.0, -1.0]), 0.01) == (1, False)


@pytest.mark.parametrize(
    ("worth", "best", "pays"),
    [
        ([0.5, 0.0, 0.0, 9.0, 9.0], 0, True),  # what pays here comes first
        ([0.0, 1.5, 1.5, 0.0, 0.0], 1, True),  # neither pays its 2.4 alone
        ([0.0, 2.5, 2.3, 0.0, 9.9], 1, True),  # the nearer
        ([0.0, 1.0, 1.0, 0.0, 9.9], 4, True),  # what is near does not pay
        ([0.0, 1.0, 1.0, 0.0, 3.5], 0, False),  # nothing does: 3.6 to the other tile
    ],
)
def test_a_square_is_worth_what_its_patches_are_less_the_way(
    worth: list[float], best: int, pays: bool
) -> None:
    places = [square(name) for name in ("g1a", "g1b", "g1b", "g1a", "g2a")]
    way = Switching(places, square("g1a"), TIMES)
    assert way.seconds.tolist() == [0.0, 240.0, 240.0, 0.0, 360.0]
    values = np.array(worth)
    values[3] = min(values[3], 0.4)
    assert way.best(values, 0.01) == (best, pays)


def test_bundles_are_the_best_of_all_subsets() -> None:
    """By brute force: the worth of a tree at a price is that of its best set of patches."""
    rng = np.random.default_rng(3)
    names = ["g1a", "g1a", "g1b", "g2a", "g2b", "h1a", "h1a"]
    way = Switching([square(name) for name in names], None, TIMES)
    for _ in range(20):
        gain, rate = rng.uniform(0.0, 10.0, 7), float(rng.uniform(0.0, 0.01))

        def leaves(at: float, gain: np.ndarray = gain) -> tuple[np.ndarray, np.ndarray]:
            return gain - 60.0 * at, np.full(7, 60.0)

        tree: Worth = leaves
        for shared in way.setups:
            tree = bundled(tree, shared)
        found = np.maximum(tree(rate)[0], 0.0).sum()
        best = 0.0
        for chosen in product([False, True], repeat=7):
            some = [name for name, taken in zip(names, chosen, strict=True) if taken]
            counts = (
                len(some),
                len(set(some)),
                len({n[:2] for n in some}),
                len({n[0] for n in some}),
            )
            seconds = float(np.dot(counts, (60.0, 240.0, 120.0, 1000.0)))
            best = max(best, float(gain[list(chosen)].sum()) - rate * seconds)
        assert found == pytest.approx(best)


def test_the_price_knows_what_is_shared() -> None:
    """Two patches of 60 s bring 3 each; with the 240 s before them 360 s bring 6."""

    def worth(rate: float) -> tuple[np.ndarray, np.ndarray]:
        return np.full(2, 3.0 - 60.0 * rate), np.full(2, 60.0)

    square_ = bundled(worth, Setups(np.array([0, 0]), np.array([240.0])))
    assert price(seconds=200.0, open=square_) == pytest.approx(6.0 / 360.0)
    assert price(seconds=400.0, open=square_) == 0.0


def test_switches_are_learned_where_they_are_expected() -> None:
    learned = LearnedTiming(TIMES, weight=1.0)
    learned.learn_together(("move", "focus", "to_square"), 600.0)
    assert learned.timing.move == pytest.approx(90.0)
    assert learned.timing.to_square == pytest.approx(360.0)
    again = LearnedTiming.restore(learned.state())
    assert again.timing == learned.timing
