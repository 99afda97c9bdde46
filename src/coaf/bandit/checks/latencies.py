"""The contract of a latency, for the tests of those who bring one."""

import math
import numbers
from collections.abc import Iterable

import numpy as np

from coaf.bandit.arrays import BoolArray
from coaf.bandit.checks.contract import require, require_parts
from coaf.bandit.latency import Latency, Table


def check_latency(latency: Latency, n: int, *, follow_up: bool = False) -> None:
    """Check a latency for rounds of `n` arms: each alone, none, all and a sample.

    `follow_up=True` is for latencies of follow-up rounds only, which may take no time at all.
    """
    require_parts(latency, "a latency", ("seconds", "check"))
    latency.check(n)
    some = np.random.default_rng(0).random((200, n)) < np.linspace(0.0, 1.0, 200)[:, None]
    subsets: list[BoolArray] = [*some, *np.eye(n, dtype=np.bool_)]
    if isinstance(latency, Table):
        subsets = [np.isin(np.arange(n), subset) for subset in latency.subsets]
    for chosen in subsets:
        seconds_is_a_time(latency, chosen)
    if not follow_up:
        floor_is_positive(latency, subsets)


def seconds_is_a_time(latency: Latency, chosen: BoolArray) -> None:
    seconds, again = latency.seconds(chosen.copy()), latency.seconds(chosen)
    said = f"seconds of arms {np.flatnonzero(chosen).tolist()} is {seconds!r}, which is"
    require(isinstance(seconds, numbers.Real), latency, f"{said} not a number")
    require(math.isfinite(seconds), latency, f"{said} not finite")
    require(seconds >= 0.0, latency, f"{said} negative")
    require(again == seconds, latency, f"{said} not deterministic: asked again it is {again!r}")


def floor_is_positive(latency: Latency, subsets: Iterable[BoolArray]) -> None:
    least = min(latency.seconds(chosen) for chosen in subsets)
    require(least > 0.0, latency, f"the floor of an entry round must be positive, is {least:g} s")
