"""The whole film experiment: from ratings to a report, every number of which is this run's."""

import json
import shutil
import time
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coaf.worlds.movielens import experiment, pages
from coaf.worlds.movielens.films import prepare
from coaf.worlds.movielens.sensitivity import sensitivity
from coaf.worlds.movielens.source import obtain
from coaf.worlds.movielens.world import MovieLens
from coaf.worlds.optimum import optimum, optimum_by_approximation
from coaf.worlds.progress import Tell
from coaf.worlds.statistics import growth, mean, share_of_optimum

if TYPE_CHECKING:
    import xarray


def reproduce(
    data: str | Path | None,
    *,
    out: Path,
    rounds: int = 2000,
    replicates: int = 200,
    seed: int = 0,
    executor: Executor | None = None,
    watch: Tell | None = None,
    note: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Play the experiment and write report, figures and traces into `out`.

    Finished parts are kept in `out/unfinished` until all is done, so that an interrupted run goes
    on from there. The sensitivity page has a tenth of the replicates, at least 4 and at most 20.
    `watch` is told of progress, `note` of what one should know at once.
    """
    if replicates < 2:
        raise ValueError(f"replicates is {replicates}; intervals need at least 2")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"cannot write into {out}, the folder for results: {error}") from error
    earlier: list[int] = []

    def stage(name: str) -> Callable[[int, int | None], None]:
        def tell(done: int, total: int | None) -> None:
            if name == "playing" and not earlier:
                earlier.append(done)  # what an earlier run had finished
            if watch is not None:
                watch(name, done, total)

        return tell

    began = time.perf_counter()
    ratings = obtain(data, progress=stage("downloading"), note=note)
    films = prepare(ratings, progress=stage("preparing"))
    world = MovieLens(films, seed=seed)
    best = optimum(world)
    unfinished = out / "unfinished" / f"{films.digest[:16]}-{seed}-{rounds}"
    shared: dict[str, Any] = {
        "rounds": rounds,
        "executor": executor,
        "resume": unfinished,
    }
    start = time.perf_counter()
    result = experiment.play(
        world, best, replicates=replicates, progress=stage("playing"), **shared
    )
    played = time.perf_counter() - start
    cuts = experiment.fixed_cuts(world, best)
    fewer = max(4, min(replicates // 10, 20))
    rows = sensitivity(
        films,
        replicates=fewer,
        seed=seed,
        progress=stage("sensitivity"),
        **shared,
    )
    result.attrs |= {"source": films.source, "seed": seed, "gamma_star_error": best.standard_error}
    by_steps = optimum_by_approximation(world, rounds=20_000)
    timing = experiment.microseconds(world, rounds=rounds)
    summary = {
        "data": films.source,
        "gamma_star": best.rate,
        "gamma_star_error": best.standard_error,
        "gamma_star_rounds": best.rounds,
        "gamma_star_by_approximation": by_steps.rate,
        "gamma_star_by_approximation_rounds": by_steps.rounds,
        "claims": [asdict(claim) for claim in experiment.claims(result, cuts)],
        "policies": {name: _row(result, name, timing[name]) for name in timing},
        "thresholds": {
            "reached_by_1.75": cuts.share(experiment.PAPER_CUT),
            "which_matter": experiment.matters(cuts),
        },
        "world": _world(world),
        "facts": films.facts,
        "rounds": rounds,
        "replicates": replicates,
        "seed": seed,
        "tasks_of_an_earlier_run": earlier[0],
        "sensitivity": rows,
        "sensitivity_replicates": fewer,
        "seconds": {
            "preparing": films.seconds,
            "playing": played,
            "all": time.perf_counter() - began,
        },
    }
    files = pages.write(out, summary, result, world, cuts)
    files.append(_write_traces(result, out / "traces.nc"))
    summary["files"] = [str(path) for path in files]
    (out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    shutil.rmtree(unfinished, ignore_errors=True)
    with suppress(OSError):  # another run of this folder may be unfinished yet
        unfinished.parent.rmdir()
    return summary


def _row(result: "xarray.Dataset", name: str, microseconds: float) -> dict[str, Any]:
    last = result.sel(policy=name).isel(round=-1)
    return {
        "regret": mean(last.regret.values).plain(),
        "paired": mean(last.paired.values).plain(),
        "growth": growth(result, name).plain(),
        "share_of_optimum": share_of_optimum(result, name),
        "microseconds_per_round": microseconds,
    }


def _world(world: MovieLens) -> dict[str, Any]:
    """What the policies face, in numbers."""
    means, ratings = world.item_means, world.means_of_ratings
    spread = world.films.completed.std(axis=1, dtype=np.float64)
    return {
        "dim": world.dim,
        "explained": float(world.films.explained[: world.dim - 1].sum()),
        "arms": list(world.arms),
        "base": list(world.base),
        "each": world.each,
        "noise": world.noise,
        "standard_deviation": float(np.sqrt(np.mean(spread**2))),
        "norm_bound": world.norm_bound,
        "mean_bound": world.mean_bound,
        "lowest_mean": float(means.min()),
        "highest_mean": float(means.max()),
        "misfit_rms": float(np.sqrt(np.mean(world.misfit**2))),
        "misfit_largest": float(np.abs(world.misfit).max()),
        "share_explained_by_fit": float(1.0 - world.misfit.var() / ratings.var()),
    }


def _write_traces(result: "xarray.Dataset", path: Path) -> Path:
    """Every round of every replicate as netCDF, which SciPy writes and anything reads."""
    result.astype(np.float32).to_netcdf(path, engine="scipy")
    return path
