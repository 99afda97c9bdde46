"""The demonstration that `coaf run` plays: COAF and its baselines in a synthetic world."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.baselines import TakeAll, Threshold
from coaf.bandit.index import Truth
from coaf.bandit.policy import COAF
from coaf.bandit.rate import RobbinsMonro
from coaf.bandit.verbs import Policy
from coaf.worlds.compare import Progress, compare
from coaf.worlds.figures import regret_figure
from coaf.worlds.optimum import optimum
from coaf.worlds.report import save
from coaf.worlds.synthetic import Synthetic

if TYPE_CHECKING:
    import xarray


def world(*, dim: int = 10, seed: int = 0) -> Synthetic:
    """Six to twenty arms, five to ten seconds to see them, and one for each that is taken."""
    return Synthetic(dim=dim, arms=(6, 20), base=(5.0, 10.0), seed=seed)


def policies(world: Synthetic, gamma_star: float) -> dict[str, Policy]:
    """COAF, the paper's variants, and what one would do without it."""
    truth = Truth(world.means)
    return {
        "oracle (true means)": COAF(index=truth, rate=RobbinsMonro(xi=1.0)),
        "COAF": COAF(world.dim),
        "COAF as printed": COAF.paper(world.dim),
        "COAF as printed, Thompson": COAF.paper(world.dim, index="thompson"),
        "fixed cut, twice the best": Threshold(2.0 * gamma_star, index=truth),
        "take all": TakeAll(),
    }


def play(
    world: Synthetic, *, rounds: int, replicates: int, progress: Progress | None = None
) -> "xarray.Dataset":
    """Compare them."""
    best = optimum(world)
    result = compare(
        policies(world, best.rate),
        world,
        rounds=rounds,
        replicates=replicates,
        gamma_star=best.rate,
        progress=progress,
    )
    result.attrs["gamma_star_error"] = best.standard_error
    return result


def summary(result: "xarray.Dataset") -> dict[str, Any]:
    """Reward per second, share of the optimal rate and paired regret of each policy."""
    rows = {}
    for name in result.policy.values:
        policy = result.sel(policy=name)
        rates = policy["mean"].sum("round") / policy.seconds.sum("round")
        regret = policy.paired.isel(round=-1).values
        rows[str(name)] = {
            "reward_per_second": float(rates.mean()),
            "share_of_optimum": float(rates.mean()) / result.attrs["gamma_star"],
            "regret": float(regret.mean()),
            "regret_error": _error(regret),
        }
    return {"gamma_star": result.attrs["gamma_star"], "policies": rows}


def _error(values: FloatArray) -> float | None:
    """The standard error of a mean, which a single value does not have."""
    return None if len(values) < 2 else float(values.std(ddof=1) / np.sqrt(len(values)))


def write_figure(result: "xarray.Dataset", folder: Path) -> list[Path]:
    """The regret figure as PNG and SVG."""
    figure = regret_figure(result, title="COAF and its baselines in a synthetic world")
    return save(figure, folder, "regret")
