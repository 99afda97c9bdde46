"""How regret answers to what one would have to choose, or is given: one thing changed at a time."""

from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from coaf.bandit.beliefs.scale_free import ScaleFree
from coaf.bandit.policies.coaf import COAF
from coaf.bandit.policies.policy import Policy
from coaf.worlds.compare import compare
from coaf.worlds.movielens.experiment import DEFAULT, UCB, as_printed
from coaf.worlds.movielens.films import Films
from coaf.worlds.movielens.world import MovieLens
from coaf.worlds.optimum import optimum
from coaf.worlds.progress import Progress
from coaf.worlds.statistics import mean, share_of_optimum

# What is changed, and to what.
SWEEPS: dict[str, tuple[float, ...]] = {
    "xi": (0.1, 0.25, 0.5, 0.75, 1.0),
    "radius": (0.03, 0.1, 0.3, 1.0, 3.0),
    "regularization": (0.01, 0.1, 1.0, 10.0, 100.0),
    "delta": (1e-6, 1e-4, 1e-3, 1e-2, 0.2),
    "components": (2, 5, 10, 15, 20),
    "survey": (0.1, 0.3, 1.0, 3.0, 10.0),
    "spread": (0.0, 0.5, 1.0, 2.0, 4.0),
}
TITLES = {
    "xi": "step ξ",
    "radius": "radius or width, times the usual",
    "regularization": "ridge λ",
    "delta": "confidence δ",
    "components": "components d",
    "survey": "survey time, times [5, 10]",
    "spread": "noise, times the data's",
}


def nominal(rounds: int) -> dict[str, dict[str, float]]:
    """What each policy has where nothing is changed."""
    both = {"components": 10.0, "survey": 1.0, "spread": 1.0}
    printed = {"xi": 0.5, "radius": 1.0, "regularization": 1.0, "delta": 1.0 / max(rounds, 2)}
    return {UCB: printed | both, DEFAULT: {"radius": 1.0} | both}


def sensitivity(
    films: Films,
    *,
    rounds: int,
    replicates: int,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress | None = None,
    resume: Path | None = None,
) -> list[dict[str, Any]]:
    """Final paired regret for each value of each thing: flat rows, one for a policy and value.

    `value` is what was changed; `regret` its mean over replicates, `low` and `high` the 95 %
    interval; `gamma_star` the best rate of that world and `share` how much of it was reached.
    """
    cases = [(name, value) for name, values in SWEEPS.items() for value in values]
    rows = []
    for number, (name, value) in enumerate(cases):
        world = MovieLens(films, seed=seed, **_world(name, value))
        result = compare(
            _policies(world, name, value, rounds),
            world,
            rounds=rounds,
            replicates=replicates,
            gamma_star=optimum(world, rounds=50_000).rate,
            executor=executor,
            progress=_part(progress, number, len(cases)),
            resume=resume,
        )
        for policy in map(str, result.policy.values):
            regret = mean(result.paired.sel(policy=policy).isel(round=-1).values)
            rows.append(
                {
                    "parameter": name,
                    "value": float(value),
                    "policy": policy,
                    "regret": regret.value,
                    "low": regret.low,
                    "high": regret.high,
                    "gamma_star": float(result.attrs["gamma_star"]),
                    "share": share_of_optimum(result, policy),
                }
            )
    return rows


def _world(name: str, value: float) -> dict[str, Any]:
    if name == "components":
        return {"components": int(value)}
    if name == "survey":
        return {"base": (5.0 * value, 10.0 * value)}
    return {"spread": value} if name == "spread" else {}


def _policies(world: MovieLens, name: str, value: float, rounds: int) -> dict[str, Policy]:
    if name in ("xi", "regularization", "delta"):  # the default has none of these to choose
        return {UCB: as_printed(world, rounds=rounds, **{name: value})}
    if name == "radius":
        printed = as_printed(world, rounds=rounds, scale=value)
        return {UCB: printed, DEFAULT: COAF(belief=ScaleFree(world.dim, width=value))}
    return {UCB: as_printed(world, rounds=rounds), DEFAULT: COAF(world.dim)}


def _part(progress: Progress | None, number: int, count: int) -> Progress | None:
    """Progress of one of `count` equal parts as progress of the whole."""
    if progress is None:
        return None
    return lambda done, total: progress(number * total + done, count * total)
