"""Coverage, cost and play of `Ensemble`: writes docs/beliefs/ensemble_results.md.

Every number on docs/beliefs/ensemble.md comes from this script:
`python benchmarks/beliefs/ensemble.py` (under two minutes on one core).
"""

from collections.abc import Callable
from functools import partial

from regression import DOCS, NOISE, cost, cover, policies, regressors, shares, table

from coaf.bandit.beliefs.belief import Belief
from coaf.bandit.beliefs.ensemble import Ensemble


def coverage() -> str:
    """By the number of copies and the width."""
    lines = []
    for name in ("cubic ridge", "tree, 8 leaves", "5 neighbours"):
        for rows in (50, 200, 1000):
            cells: list[str] = []
            for copies, width in ((10, 1.0), (10, 2.5), (30, 2.5)):
                make = partial(
                    Ensemble,
                    3,
                    regressors()[name],
                    copies=copies,
                    width=width,
                    noise=NOISE,
                    mean_bound=1.0,
                )
                cells += cover(make, rows)
            lines.append([name, str(rows), *cells])
    head = ["regressor", "rows", "10 copies, width 1", "is", "10 copies, 2.5", "is"]
    return table([*head, "30 copies, 2.5", "is"], lines)


def main() -> None:
    found = regressors()
    tree, cubic, near = (found[n] for n in ("tree, 8 leaves", "cubic ridge", "5 neighbours"))
    beliefs: dict[str, Callable[[], Belief]] = {
        "tree": lambda: Ensemble(3, tree, noise=NOISE, mean_bound=1.0),
        "tree, width 1": lambda: Ensemble(3, tree, noise=NOISE, mean_bound=1.0, width=1.0),
        "tree, Thompson": lambda: Ensemble(3, tree, noise=NOISE, mean_bound=1.0),
        "cubic ridge, width 1": lambda: Ensemble(3, cubic, noise=NOISE, mean_bound=1.0, width=1.0),
        "5 neighbours, width 1": lambda: Ensemble(3, near, noise=NOISE, mean_bound=1.0, width=1.0),
    }
    parts = [
        "Share of fresh arms whose true mean is at most `upper`, and how far `upper` is above the "
        "estimate, on average:",
        coverage(),
        "Cost with 10 copies, one thread:",
        cost(
            lambda one: Ensemble(3, one, noise=NOISE, mean_bound=1.0),
            ("tree, 8 leaves", "5 neighbours"),
        ),
        "Reward per second as a share of the optimum Γ*, played by COAF:",
        shares(policies(beliefs), 300, 2),
    ]
    (DOCS / "ensemble_results.md").write_text("\n\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
