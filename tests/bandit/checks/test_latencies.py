"""Every latency keeps the contract that `check_latency` ships to users."""

import pytest

from bandit.checks.subjects import LATENCIES, Square
from coaf.bandit.checks import check_latency
from coaf.bandit.latency import Additive, Latency


@pytest.mark.parametrize("latency", LATENCIES.values(), ids=LATENCIES)
def test_ours(latency: Latency) -> None:
    check_latency(latency, 4)


@pytest.mark.parametrize("n", [0, 1, 3, 30])
def test_a_users(n: int) -> None:
    check_latency(Square(), n)


def test_a_follow_up_may_be_free() -> None:
    check_latency(Additive(base=0.0, each=1.0), 3, follow_up=True)
