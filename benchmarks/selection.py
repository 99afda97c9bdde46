"""How long selection takes and how much it proves. Writes docs/selection_results.md.

Every number on that page comes from this script: `python benchmarks/selection.py` (ten minutes).
Times are of the processor, so that other programs do not count.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np

from coaf.bandit.actions import Actions, AnySubset, AtMost, Capped, Exactly, Grouped
from coaf.bandit.arrays import FloatArray
from coaf.bandit.latency import Additive, Latency, Setup, Tour, Tree
from coaf.bandit.select import best, floor

DOCS = Path(__file__).resolve().parent.parent / "docs"
SIZES = (20, 100, 500, 2000)
RATES = (0.0, 0.05, 0.4, -0.05)
CAPS = (0.1, 0.3, 0.8)  # of the time that everything takes
ESTIMATES = ("equal", "nearly equal", "random")

CELLS = [
    *product(("Additive", "Setup", "Tree"), ("any", "at most", "exactly", "groups")),
    ("Tree", "groups across nodes"),
    ("deep Tree", "any"),
    ("deep Tree", "at most"),
    ("Tour", "any"),
    ("Tour", "at most"),
]


def latency_of(kind: str, n: int, rng: np.random.Generator) -> Latency:
    each = rng.uniform(1, 2, n)
    if kind == "Additive":
        return Additive(10.0, each)
    if kind == "Setup":
        return Setup(10.0, 5.0, each)
    if kind == "Tour":
        return Tour(10.0, rng.uniform(0, 10 * n**0.5, (n, 2)), each, np.zeros(2), speed=10.0)
    if kind == "deep Tree":  # each node below the one before, an arm at each
        return Tree(10.0, np.arange(n) - 1, rng.uniform(0, 0.2, n), np.arange(n), each)
    patches = max(2, int(n**0.5))
    squares = max(1, patches // 4)
    parents = np.concatenate([np.full(squares, -1), rng.integers(0, squares, patches)])
    leaf = rng.integers(squares, squares + patches, n)
    return Tree(10.0, parents, rng.uniform(2, 8, squares + patches), leaf, each)


def rounds(kind: str, space: str, n: int) -> Iterator[tuple[bool, tuple[object, ...]]]:
    """The rounds of a cell, and whether they have a cap."""
    for likeness, rate, share in product(ESTIMATES, RATES, (None, *CAPS)):
        rng = np.random.default_rng(0)
        latency = latency_of(kind, n, rng)
        u = rng.uniform(0, 1, n)
        estimates: FloatArray = {
            "equal": np.full(n, 0.87),
            "nearly equal": 0.87 * (1 + 1e-3 * u),
            "random": 2 * u,
        }[likeness]
        groups = np.arange(n) // 5
        if space == "groups" and isinstance(latency, Tree):
            groups = latency.leaf
        spaces: dict[str, Actions] = {
            "any": AnySubset(),
            "at most": AtMost(n // 4),
            "exactly": Exactly(n // 4),
        }
        actions = spaces.get(space, Grouped(2))
        if share is not None:
            least = floor(latency, actions, n, groups)
            # A path through n points of this density is about 0.75 n seconds long.
            most = 10.0 + 2.25 * n
            if not isinstance(latency, Tour):
                most = latency.seconds(np.ones(n, dtype=np.bool_))
            if space == "exactly":
                most = 2 * least
            actions = Capped(least + share * (most - least), actions)
        yield share is not None, (rate, estimates, latency, actions, groups)


def measure(kind: str, space: str, n: int) -> dict[bool, list[tuple[float, bool, float]]]:
    """Seconds, whether proven, and what may be lost relative to the gap; without and with a cap."""
    found: dict[bool, list[tuple[float, bool, float]]] = {False: [], True: []}
    for capped, arguments in rounds(kind, space, n):
        begin = time.process_time()
        choice = best(*arguments)  # type: ignore[arg-type]
        seconds = time.process_time() - begin
        share = choice.lost / abs(choice.gap) if choice.lost > 0 else 0.0
        found[capped].append((seconds, choice.exact, share))
    return found


def entry(found: list[tuple[float, bool, float]]) -> str:
    """The longest time, and where not all is proven, how much is and what the rest may lose."""
    seconds, proven, lost = (np.array(column) for column in zip(*found, strict=True))
    longest = f"{seconds.max():.2f} s" if seconds.max() >= 0.01 else "< 0.01 s"
    if proven.all():
        return longest
    middle = float(np.median(lost[~proven]))
    share = f"{middle:.1%}" if middle >= 0.001 else "< 0.1%"
    return f"{longest}, {proven.mean():.0%} ({share})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--out", type=Path, default=DOCS / "selection_results.md")
    options = parser.parse_args()
    lines = [
        "| latency | actions | cap | " + " | ".join(f"{n} arms" for n in options.sizes) + " |",
        "|---|---|---|" + "---|" * len(options.sizes),
    ]
    for kind, space in CELLS:
        measure(kind, space, 20)  # compiles
        cells = [measure(kind, space, n) for n in options.sizes]
        for capped in (False, True):
            row = " | ".join(entry(found[capped]) for found in cells)
            lines.append(f"| {kind} | {space} | {'yes' if capped else 'no'} | {row} |")
            print(lines[-1], file=sys.stderr, flush=True)
            options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
