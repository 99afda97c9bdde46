"""Which square next: learned from what squares turned out to hold."""

import numpy as np
import pytest

from coaf.cryoem.grid import Square
from coaf.cryoem.pilots.square_choice import SquareChoice


def squares(n: int, seed: int, dim: int = 3) -> list[Square]:
    rng = np.random.default_rng(seed)
    return [Square(f"{seed}-{k}", 0.0, 0.0, features=tuple(rng.normal(size=dim))) for k in range(n)]


def worth(square: Square, noise: float = 0.0) -> float:
    """Only the second feature matters."""
    return max(4.0 + 3.0 * square.features[1] + noise, 0.0)


def test_it_learns_which_feature_matters() -> None:
    """Twelve squares seen: the ranking of twenty others agrees with the truth, and not by luck."""
    rng = np.random.default_rng(0)
    for seed in range(4):
        seen, rest = squares(12, seed), squares(20, seed + 10)
        choice = SquareChoice()
        rows = [(s, worth(s, rng.normal())) for s in seen]
        chosen = choice.choose(rest, rows, rate=0.02, seconds=85.0)
        by_name = {s.name: worth(s) for s in rest}
        truth = [by_name[name] for name, _ in choice.ranking]
        ranks = np.argsort(np.argsort(-np.array(truth)))
        assert np.corrcoef(ranks, np.arange(20))[0, 1] > 0.7
        assert chosen.name == choice.ranking[0][0]
        assert by_name[chosen.name] > np.mean(truth)
        told = [estimate for _, estimate in choice.ranking]
        assert told == sorted(told, reverse=True)
        assert chosen.estimate == told[0]


def test_it_says_why() -> None:
    choice = SquareChoice()
    seen = squares(6, 1)
    best = choice.choose(squares(5, 2), [(s, worth(s)) for s in seen], rate=0.02, seconds=85.0)
    assert best.why.startswith("The best of 5 squares: its patches should bring ")
    assert best.why.endswith("the 85 s of opening it are worth 1.7, as an hour is worth 72.")
    assert best.rate == 0.02
    none = choice.choose(squares(5, 2), [(s, 0.0) for s in seen], rate=5.0, seconds=85.0)
    assert none.name is None
    assert none.why.startswith("No square pays for being opened: the patches of the best should ")
    assert none.why.endswith("opening it are worth 425, as an hour is worth 18,000.")
    assert len(choice.ranking) == 5


def test_the_first_is_bright_and_wide() -> None:
    looks = {
        "dim": (0.2, 0.1, 0.9, 0.1),
        "best": (0.6, 0.1, 0.9, 0.1),
        "torn": (0.6, 0.1, 0.3, 0.1),
    }
    some = [Square(name, 0.0, 0.0, features=features) for name, features in looks.items()]
    first = SquareChoice().choose(some, [], rate=0.0, seconds=85.0)
    assert first.name == "best"
    assert first.why.startswith("The first square: nothing is known yet, so it is the one ")


def test_squares_overrule_what_is_expected_of_bright_ones() -> None:
    """Where the dim squares hold everything, a dozen of them show it."""
    rng = np.random.default_rng(0)
    every = [
        Square(f"{k}", 0.0, 0.0, features=(float(x), 0.1, 0.9, 0.1))
        for k, x in enumerate(rng.uniform(0.2, 0.8, 24))
    ]
    rows = [(s, 20.0 * max(0.5 - s.features[0], 0.0)) for s in every[:12]]
    choice = SquareChoice()
    chosen = choice.choose(every[12:], rows, rate=0.02, seconds=85.0)
    assert chosen.name == min(every[12:], key=lambda s: s.features[0]).name


def test_wide_ones_come_before_narrow_ones_that_are_as_bright() -> None:
    for first in (0, 1):
        areas = (0.3, 0.9) if first else (0.9, 0.3)
        some = [
            Square(f"{area}", 0.0, 0.0, features=(0.5, 0.1, area, 0.1 * k))
            for k, area in enumerate(areas)
        ]
        assert SquareChoice().choose(some, [], rate=0.0, seconds=85.0).name == "0.9"


def test_a_square_of_which_less_is_known_looks_like_the_average() -> None:
    """Someone went to one that the atlas does not show; others are better, and worse."""
    known = squares(4, 5)
    some = [*known[:2], Square("nowhere", 0.0, 0.0), *known[2:]]
    choice = SquareChoice()
    choice.choose(some, [(Square("seen", 0.0, 0.0), 3.0)], rate=0.02, seconds=85.0)
    order = [name for name, _ in choice.ranking]
    assert set(order) == {square.name for square in some}
    alone = SquareChoice()
    alone.choose(known, [(Square("seen", 0.0, 0.0), 3.0)], rate=0.02, seconds=85.0)
    assert [name for name in order if name != "nowhere"] == [name for name, _ in alone.ranking]


def test_without_features_all_are_alike() -> None:
    choice = SquareChoice()
    some = squares(3, 4, dim=0)
    chosen = choice.choose(some, [(s, 5.0) for s in squares(4, 5, dim=0)], rate=0.01, seconds=85.0)
    assert chosen.name == some[0].name
    assert len({round(estimate, 9) for _, estimate in choice.ranking}) == 1
    assert choice.ranking[0][1] == pytest.approx(5.0, abs=3.0)


def test_what_is_expected_counts_less_with_each_square() -> None:
    """Without features: noise of 1.5, and an average of 1 that may be off by 2, in costs."""
    cost = 0.85
    for n in (1, 2, 4):
        choice = SquareChoice()
        rows = [(s, 5.0) for s in squares(n, 11, dim=0)]
        choice.choose(squares(2, 12, dim=0), rows, rate=0.01, seconds=85.0)
        told, prior = n / 1.5**2, 1.0 / 2.0**2
        mean = (5.0 * told + cost * prior) / (told + prior)
        assert choice.ranking[0][1] == pytest.approx(mean)


def test_features_change_what_is_expected_by_as_much_as_they_may() -> None:
    """Of a feature that is 1 or -1: noise of 1.5, an average of 1 ± 2, and a slope of 0 ± 0.8."""
    cost, rows = 0.85, np.array([[1.0, 1.0], [-1.0, 1.0]])
    seen = [Square(f"s{k}", 0.0, 0.0, features=(x,)) for k, x in enumerate(rows[:, 0])]
    rest = [Square(f"r{k}", 0.0, 0.0, features=(x,)) for k, x in enumerate(rows[:, 0])]
    choice, worths = SquareChoice(), np.array([5.0, 1.0])
    choice.choose(rest, list(zip(seen, worths, strict=True)), rate=0.01, seconds=85.0)
    prior = np.diag([1.0 / 0.8**2, 1.0 / 2.0**2])
    known = rows.T @ worths / 1.5**2 + prior @ [0.0, cost]
    told = rows @ np.linalg.solve(prior + rows.T @ rows / 1.5**2, known)
    assert dict(choice.ranking) == pytest.approx({"r0": told[0], "r1": told[1]})


def test_the_scale_of_a_feature_does_not_matter() -> None:
    seen, rest = squares(8, 9), squares(6, 10)
    orders = []
    for scale in (1.0, 1e4):
        choice = SquareChoice()
        wide = [
            [Square(s.name, 0.0, 0.0, features=tuple(scale * f for f in s.features)) for s in some]
            for some in (seen, rest)
        ]
        rows = [(w, worth(s)) for w, s in zip(wide[0], seen, strict=True)]
        choice.choose(wide[1], rows, rate=0.01, seconds=85.0)
        orders.append([name for name, _ in choice.ranking])
    assert orders[0] == orders[1]


def test_how_many_patches_a_square_has() -> None:
    choice = SquareChoice()
    assert choice.patches(7.0) == 7.0
    choice.opened("a", 3)
    choice.opened("b", 0)
    assert choice.patches(7.0) == pytest.approx(10.0 / 3.0)
