"""Which belief suits the rewards at hand? A cross-validated comparison, then a session with it."""

import numpy as np

import coaf

rng = np.random.default_rng(0)
holes = rng.uniform(-0.7, 0.7, size=(400, 3))
chance = 1.0 / (1.0 + np.exp(5.0 - 14.0 * holes[:, 0]))  # good ice is rare, and easily told
good = (rng.random(400) < chance).astype(float)

choice = coaf.choose_belief(holes, good)
print(choice)

assert choice.belief is not None
choice.belief.learn(holes, good)
choice.belief.settle()  # the labelled holes are what this session starts from
policy = coaf.COAF(belief=choice.belief)
patch = coaf.Round(holes[:8], latency=coaf.Setup(base=12.1, setup=52.0, each=6.7), key="patch-1")
print(policy.decide(patch).why)
