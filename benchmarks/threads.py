"""One thread of linear algebra or as many as there are cores, while other programs keep them busy.

Writes docs/threads_results.md.
"""

import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

import coaf
from coaf.bandit.beliefs.belief import Belief
from coaf.bandit.threads import OneThread, one_thread

ROOT = Path(__file__).resolve().parent.parent
ARMS = 13
# What is measured, for how many rounds, and how often in turn.
BELIEFS: dict[str, tuple[Callable[[], Belief], int, int]] = {
    "`Logistic(32)`": (lambda: coaf.Logistic(32), 150, 5),
    "`Kernel(32)`": (lambda: coaf.Kernel(32, length_scale=4.0), 60, 3),
    "`Nested(32)`": (lambda: coaf.Nested(32, variances="fixed"), 60, 5),
    "`Regression(4, HistGradientBoostingRegressor())`": (
        lambda: coaf.Regression(4, HistGradientBoostingRegressor(), copies=2),
        40,
        1,
    ),
}


@contextmanager
def busy(cores: int) -> Iterator[None]:
    """Other programs that never rest, one for each core."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(cores)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@contextmanager
def without_limits() -> Iterator[None]:
    with (
        patch.object(OneThread, "__enter__", lambda _: None),
        patch.object(OneThread, "__exit__", lambda *_: None),
    ):
        yield


def milliseconds(make: Callable[[], Belief], rounds: int) -> tuple[float, float]:
    """The mean of a decision, and of a whole round: decide, commit, learn."""
    belief, rng = make(), np.random.default_rng(0)
    policy = coaf.COAF(belief=belief)
    deciding = total = 0.0
    for j in range(rounds):
        features = rng.normal(size=(ARMS, belief.dim)) / np.sqrt(belief.dim)
        groups = [["square", f"patch {j}"]] * ARMS
        shown = coaf.Round(features, coaf.Setup(12.0, 52.0, 6.7), groups=groups)
        start = time.perf_counter()
        decision = policy.decide(shown)
        deciding += time.perf_counter() - start
        policy.commit(decision)
        arms = np.flatnonzero(decision.chosen)
        policy.learn(decision, arms, (features[arms, 0] > 0.0).astype(float))
        total += time.perf_counter() - start
    return 1e3 * deciding / rounds, 1e3 * total / rounds


def entry_microseconds(count: int = 5000) -> float:
    start = time.perf_counter()
    for _ in range(count):
        with one_thread:
            pass
    return 1e6 * (time.perf_counter() - start) / count


def page() -> str:
    coaf.warm()
    cores = os.cpu_count() or 1
    lines = [
        f"{cores} cores of {platform.machine()}, each kept busy by another program; {ARMS} arms a "
        "round. Milliseconds, on average:",
        "",
        f"| belief | decide, {cores} threads | one thread | round, {cores} threads | one thread |",
        "|---|---|---|---|---|",
    ]
    with busy(cores):
        for name, (make, rounds, turns) in BELIEFS.items():
            limited, free = [], []
            for _ in range(turns):
                limited.append(milliseconds(make, rounds))
                with without_limits():
                    free.append(milliseconds(make, rounds))
            pairs = zip(np.mean(free, axis=0), np.mean(limited, axis=0), strict=True)
            numbers = [f"{x:.0f}" if x >= 100.0 else f"{x:.2g}" for pair in pairs for x in pair]
            lines.append(f"| {name} | {' | '.join(numbers)} |")
    lines += ["", "One run, which varies by factors with whatever else the machine does."]
    lines += [f"Limiting and restoring takes {entry_microseconds():.0f} µs a call."]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    text = page()
    (ROOT / "docs" / "threads_results.md").write_text(text)
    print(text)
