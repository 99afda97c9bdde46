"""Two policies over the same replicates of a world, and what they lose against the best."""

import coaf

world = coaf.worlds.Synthetic(dim=5, arms=(6, 20), base=(5.0, 10.0), seed=1)
best = coaf.worlds.optimum(world, rounds=20_000)
result = coaf.compare(
    {"coaf": coaf.COAF(dim=5), "as printed": coaf.COAF.paper(dim=5, within="ellipsoid")},
    world,
    rounds=500,
    replicates=8,
    gamma_star=best.rate,
)
print(f"the best possible rate is {best.rate:.4f} ± {best.standard_error:.4f} a second")
for name in result.policy.values:
    print(f"{name}: regret {float(result.paired.sel(policy=name).isel(round=-1).mean()):.1f}")
