"""A policy written to a file and read again takes the same next decision."""

import json
import tempfile
from pathlib import Path

import numpy as np

import coaf

world = coaf.worlds.Synthetic(dim=4, seed=3)
policy = coaf.COAF.paper(dim=4, index="thompson", seed=7)
for _ in coaf.play(policy, world, rounds=50):
    pass

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "policy.json"
    path.write_text(json.dumps(policy.state()))
    restored = coaf.COAF.restore(path.read_text())

scene = next(world.scenes(rounds=1, replicate=1))
before, after = policy.decide(scene.round), restored.decide(scene.round)
assert np.array_equal(before.chosen, after.chosen)
assert np.array_equal(before.estimates, after.estimates)
print("the restored policy decides the same:", after.why)
