"""The film experiment for the docs: writes docs/movielens_results.md and docs/figures/.

`python benchmarks/movielens.py --data PATH`, a few minutes on two cores. Every number on that page
comes from this script.
"""

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Any

from coaf.worlds.movielens.reproduce import reproduce

DOCS = Path(__file__).resolve().parent.parent / "docs"


def page(summary: dict[str, Any]) -> str:
    """The results as Markdown."""
    world, facts, seconds = summary["world"], summary["facts"], summary["seconds"]
    lines = [
        f"Data: {summary['data']}. {summary['replicates']} replicates of {summary['rounds']} "
        f"rounds, seed {summary['seed']}. {facts['kept_films']:,} films, "
        f"{facts['kept_users']:,} users; noise {world['noise']:.3f}, "
        f"‖θ*‖ = {world['norm_bound']:.3f}, misfit of ψ* {world['misfit_rms']:.4f}; "
        f"Γ* = {summary['gamma_star']:.4f} ± {summary['gamma_star_error']:.4f}.",
        "",
        "| claim | held | evidence |",
        "|---|---|---|",
        *(
            f"| {c['claim']} | {'yes' if c['held'] else 'no'} | {c['evidence']} |"
            for c in summary["claims"]
        ),
        "",
        "| policy | paired regret | regret | growth | share of Γ* | µs a round |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in summary["policies"].items():
        paired, regret = row["paired"], row["regret"]
        lines.append(
            f"| {name} | {paired['value']:.4g} ({paired['low']:.4g} to {paired['high']:.4g}) "
            f"| {regret['value']:.4g} ({regret['low']:.4g} to {regret['high']:.4g}) "
            f"| {row['growth']['value'] or 0.0:.2f} | {row['share_of_optimum']:.2%} "
            f"| {row['microseconds_per_round']:.2f} |"
        )
    lines += [
        "",
        "| completion | rank | error, held-out ratings | error of the film's mean |",
        "|---|---|---|---|",
        *(
            f"| p = {c['p']:g} | {c['rank']} | {c['held_out']:.4f} | {c['film_mean']:.4f} |"
            for c in facts["completion"]
        ),
        "",
        f"Completing the ratings took {seconds['preparing']:.1f} s, the five policies "
        f"{seconds['playing']:.1f} s, everything {seconds['all']:.1f} s.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="as for coaf reproduce movielens")
    parser.add_argument("--replicates", type=int, default=500)
    options = parser.parse_args()
    figures = DOCS / "figures"
    figures.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        summary = reproduce(options.data, out=Path(folder), replicates=options.replicates)
        for file in summary["files"]:
            if file.endswith(".png"):
                shutil.copy(file, figures / f"movielens-{Path(file).name}")
    (DOCS / "movielens_results.md").write_text(page(summary), encoding="utf-8")


if __name__ == "__main__":
    main()
