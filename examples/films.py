"""Films as arms: ratings completed, films with features, and two policies that choose."""

import tempfile
from pathlib import Path

import coaf
from coaf.worlds import movielens

# `movielens.obtain("100k")` would download the real ratings; these are made up, and few.
ratings = movielens.generate(users=200, films=120, ratings=6000, seed=0)
with tempfile.TemporaryDirectory() as cache:
    films = movielens.prepare(ratings, cache=Path(cache))

world = movielens.MovieLens(films, base=(0.5, 1.0))  # quick to look at: it pays to be choosy
best = coaf.worlds.optimum(world, rounds=20_000)
result = coaf.compare(
    {
        "coaf": coaf.COAF(dim=world.dim),
        "take all": coaf.TakeAll(),
    },
    world,
    rounds=500,
    replicates=8,
    gamma_star=best.rate,
)
print(f"data: {films.source}")
print(f"a second is worth at most {best.rate:.2f} rating points")
for name in result.policy.values:
    print(f"{name}: regret {float(result.paired.sel(policy=name).isel(round=-1).mean()):.1f}")
