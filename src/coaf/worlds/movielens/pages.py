"""The report of the film experiment, and its figures."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from coaf.version import __version__
from coaf.worlds import figures
from coaf.worlds.movielens.experiment import DEFAULT, PAPER, PAPER_CUT, Cuts
from coaf.worlds.movielens.sensitivity import TITLES, nominal
from coaf.worlds.movielens.world import MovieLens
from coaf.worlds.report import Page, save

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure


def write(
    out: Path,
    summary: dict[str, Any],
    result: "xarray.Dataset",
    world: MovieLens,
    cuts: Cuts,
) -> list[Path]:
    """Write the report and, beside it, its figures as PNG and SVG."""
    files, drawings = [], {}
    for name, figure in draw(summary, result, world, cuts).items():
        png, vector = save(figure, out, name)
        files += [png, vector]
        drawings[name] = vector.read_bytes()
    return [_report(summary, drawings).write(out / "report.html"), *files]


def draw(
    summary: dict[str, Any], result: "xarray.Dataset", world: MovieLens, cuts: Cuts
) -> dict[str, "Figure"]:
    """All figures by name."""
    marks = {
        "the paper's threshold, 1.75": PAPER_CUT,
        "the best, $\\Gamma^*$": summary["gamma_star"],
    }
    matters = cuts.first_below(0.95)
    if matters is not None:
        marks[f"{matters:.2f} loses 5 %"] = matters
    return {
        "figure2": figures.bands_figure(result, PAPER),
        "default": figures.bands_figure(result, [*PAPER, DEFAULT]),
        "together": figures.regret_figure(result),
        "thresholds": figures.cuts_figure(cuts.cuts, cuts.shares, world.item_means, marks),
        "sensitivity": figures.sweep_figure(
            summary["sensitivity"], TITLES, reference=nominal(summary["rounds"])
        ),
    }


def _report(summary: dict[str, Any], drawn: dict[str, bytes]) -> Page:
    held = sum(claim["held"] for claim in summary["claims"])
    report = Page(
        "The film experiment: what a second is worth",
        lead=f"Data: {summary['data']}. {summary['replicates']:,} replicates of "
        f"{summary['rounds']:,} rounds, seed {summary['seed']}. "
        f"{held} of {len(summary['claims'])} claims of the paper held.",
    )
    report.section("Claims")
    report.text(
        "What the paper says of this experiment, and whether it held here. Numbers in brackets are "
        "95 % intervals over replicates. Paired regret compares each round with the best choice in "
        "that same round; it has the mean of the paper's form and little of its noise."
    )
    report.table(
        ["claim", "held", "evidence"],
        [[claim["claim"], claim["held"], claim["evidence"]] for claim in summary["claims"]],
    )
    _world(report, summary)
    _regret(report, summary, drawn)
    report.section("Thresholds")
    report.text(
        f"A fixed threshold takes every film whose mean rating is above it. The best one is Γ* = "
        f"{summary['gamma_star']:.4f} itself. {summary['thresholds']['which_matter']}"
    )
    report.figure(
        drawn["thresholds"],
        caption="What each fixed threshold reaches, and where the films lie.",
        alt="Share of the best rate against the threshold, over a histogram of mean ratings.",
    )
    _sensitivity(report, summary, drawn["sensitivity"])
    seconds, before = summary["seconds"], summary["tasks_of_an_earlier_run"]
    rest = f" (and {before} parts in an earlier run, which it went on from)" if before else ""
    report.footer(
        f"coaf {__version__}. Completing the ratings took {seconds['preparing']:.1f} s when "
        f"it was done, playing the five policies {seconds['playing']:.1f} s{rest}, this run up to "
        f"this page {seconds['all']:.1f} s. The traces of every round are in traces.nc, all "
        "numbers in summary.json."
    )
    return report


def _world(report: Page, summary: dict[str, Any]) -> None:
    report.section("World")
    report.text(
        "A round shows some films. Showing them takes time, and so does each film that is taken; a "
        "film taken brings the rating of one random user. The aim is the highest rating per second."
    )
    facts, world = summary["facts"], summary["world"]
    low, high = facts["scale"]
    chosen = facts["completion"][0]
    report.table(
        ["what", "value"],
        [
            ["data", summary["data"]],
            [
                "ratings",
                f"{facts['ratings']:,} by {facts['users']:,} users of {facts['films']:,} films",
            ],
            [
                "films kept",
                f"{facts['kept_films']:,} with at least {facts['least_ratings']} ratings, by "
                f"{facts['kept_users']:,} users; {facts['density']:.1%} of all pairs are rated",
            ],
            [
                "ratings nobody gave",
                f"completed by the Schatten-p norm, p = {chosen['p']:g}, rank {chosen['rank']}",
            ],
            ["reward", f"one independent random user's completed rating, {low:g} to {high:g}"],
            [
                "features",
                f"{world['dim'] - 1} principal components ({world['explained']:.1%} of the "
                "variance) and a constant, scaled to ‖x‖ ≤ 1",
            ],
            [
                "mean reward ψ*",
                f"linear, fitted to the mean ratings; {world['lowest_mean']:.2f} to "
                f"{world['highest_mean']:.2f}",
            ],
            [
                "misfit of ψ*",
                f"{world['misfit_rms']:.4f} root mean square, {world['misfit_largest']:.4f} at "
                f"most; it explains {world['share_explained_by_fit']:.3%} of the variance of means",
            ],
            ["mean_bound", f"{world['mean_bound']:g}, the highest rating"],
            ["norm_bound", f"{world['norm_bound']:.4f}, which is ‖θ*‖"],
            [
                "noise",
                f"{world['noise']:.4f}, the smallest σ for which every film's ratings are "
                f"σ-sub-Gaussian (their standard deviation is {world['standard_deviation']:.4f})",
            ],
            ["films in a round", "uniform on {} to {}, drawn independently".format(*world["arms"])],
            [
                "time",
                "t + {:g} for each film taken, t uniform on [{:g}, {:g}]".format(
                    world["each"], *world["base"]
                ),
            ],
            ["actions", "all subsets"],
            [
                "best rate Γ*",
                f"{summary['gamma_star']:.4f} ± {summary['gamma_star_error']:.4f} (exact root on "
                f"{summary['gamma_star_rounds']:,} rounds); "
                f"{summary['gamma_star_by_approximation']:.4f} by the paper's stochastic "
                f"approximation ({summary['gamma_star_by_approximation_rounds']:,} rounds)",
            ],
        ],
    )
    report.table(
        ["p", "rank", "error, held-out ratings", "error of the film's mean"],
        [[c["p"], c["rank"], c["held_out"], c["film_mean"]] for c in facts["completion"]],
        caption="Does the completion predict ratings that it has not seen? Root mean square "
        "errors; the first is used.",
    )


def _regret(report: Page, summary: dict[str, Any], drawn: dict[str, bytes]) -> None:
    report.section("Regret")
    report.figure(
        drawn["figure2"],
        caption="The paper's Figure 2. Above: regret as the paper has it, T·Γ* − Σμ, whose noise "
        "is that of the rounds drawn. Below: paired regret of the same runs.",
        alt="Eight panels: four policies, two forms of regret, with bands over replicates.",
    )
    report.figure(
        drawn["default"],
        caption="The same four beside the library's default.",
        alt="Ten panels: four policies of the paper and the library's default.",
    )
    report.figure(
        drawn["together"],
        caption="All five on one scale. A policy that learns bends away from slope one.",
        alt="Regret against time on logarithmic axes, five policies.",
    )
    report.table(
        [
            "policy",
            "paired regret",
            "95 % interval",
            "regret",
            "95 % interval",
            "growth",
            "share of Γ*",
            "µs a round",
        ],
        [
            [
                name,
                row["paired"]["value"],
                _interval(row["paired"]),
                row["regret"]["value"],
                _interval(row["regret"]),
                "–" if row["growth"]["value"] is None else f"{row['growth']['value']:.2f}",
                f"{row['share_of_optimum']:.2%}",
                row["microseconds_per_round"],
            ]
            for name, row in summary["policies"].items()
        ],
        caption="At the end of the run. Growth is the power of time with which paired regret "
        "grows, from a quarter of the rounds to all. The last column is compiled, on one core.",
    )


def _interval(estimate: dict[str, float]) -> str:
    return f"{estimate['low']:.4g} to {estimate['high']:.4g}"


def _sensitivity(report: Page, summary: dict[str, Any], drawing: bytes) -> None:
    report.section("Sensitivity")
    report.text(
        "One thing is changed at a time; dotted lines mark what each policy has otherwise. The "
        "first four are choices of the policy, the last three belong to the world. A shorter "
        "survey raises the best rate to where the films lie, and it pays to be choosy."
    )
    report.figure(
        drawing,
        caption="Final paired regret, mean and 95 % interval, each world's Γ* from 50,000 rounds, "
        f"{summary['sensitivity_replicates']} replicates each.",
        alt="Small multiples of regret against seven parameters.",
    )
    report.table(
        ["changed", "to", "policy", "paired regret", "95 % interval", "Γ*", "share of Γ*"],
        [
            [
                TITLES[row["parameter"]],
                f"{row['value']:g}",
                row["policy"],
                row["regret"],
                _interval(row),
                row["gamma_star"],
                f"{row['share']:.2%}",
            ]
            for row in summary["sensitivity"]
        ],
        folded="The same in numbers",
    )
