"""One patch of holes: decide, spend the time, learn as the scores come in."""

import coaf

policy = coaf.COAF(dim=3, seed=0)
holes = [[0.2, 0.9, 0.1], [0.5, 0.1, 0.3], [0.7, 0.7, 0.1]]
patch = coaf.Round(
    features=holes, latency=coaf.Setup(base=12.1, setup=52.0, each=6.7), key="patch-1"
)

decision = policy.decide(patch)
print(decision.why)
policy.commit(decision, seconds=81.0)  # it took a little longer than planned
policy.learn(decision, arms=[0, 2], rewards=[1.0, 0.0])  # two scores are in
print(f"a second is worth {policy.rate:.4f}")

# While there, the rest of the patch is decided again with what was learned: a follow-up.
rest = coaf.Round(
    features=[[0.4, 0.8, 0.2]], latency=coaf.Additive(base=0.0, each=6.7), follows=decision.id
)
print(policy.decide(rest).why)

policy.learn(decision, arms=[1], rewards=[0.0])  # the third score came late
