"""Dinkelbach's method finds the best reward per second there is, by brute force."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coaf.bandit.actions import AtMost
from coaf.bandit.latency import Setup
from coaf.bandit.problem import Round
from coaf.bandit.rates.dinkelbach import STEPS, dinkelbach
from coaf.bandit.rates.memory_root import root

options = st.tuples(st.floats(-1.0, 1.0), st.floats(0.1, 10.0))  # reward, seconds
some_rounds = st.lists(st.lists(options, min_size=1, max_size=4), min_size=1, max_size=4)


@given(some_rounds, st.floats(-3.0, 3.0))
def test_no_choice_brings_more_per_second(
    rounds: list[list[tuple[float, float]]], start: float
) -> None:
    def ratio(rate: float) -> float:
        best = [min(one, key=lambda option: rate * option[1] - option[0]) for one in rounds]
        return sum(reward for reward, _ in best) / sum(seconds for _, seconds in best)

    rates = [
        sum(reward for reward, _ in chosen) / sum(seconds for _, seconds in chosen)
        for chosen in product(*rounds)
    ]
    assert dinkelbach(ratio, start) == pytest.approx(max(rates), rel=1e-9, abs=1e-12)


def test_what_goes_in_circles_ends() -> None:
    asked: list[float] = []

    def ratio(rate: float) -> float:
        asked.append(rate)
        return -rate

    assert abs(dinkelbach(ratio, 1.0)) == 1.0
    assert len(asked) == STEPS


@pytest.mark.parametrize("seed", range(4))
def test_the_compiled_one_agrees(seed: int) -> None:
    """Where as many arms may be taken as there are, every subset is allowed."""
    rng = np.random.default_rng(seed)
    plain, limited = [], []
    for n in (1, 3, 6, 4):
        latency = Setup(rng.uniform(1.0, 5.0), rng.uniform(0.0, 3.0), rng.uniform(0.1, 2.0, n))
        X = rng.uniform(-0.5, 1.0, (n, 1))
        plain.append(Round(X, latency))
        limited.append(Round(X, latency, AtMost(n)))
    one, other = (root(rounds, lambda X, groups: X[:, 0], 0.3) for rounds in (plain, limited))
    assert one == pytest.approx(other, rel=1e-12)
