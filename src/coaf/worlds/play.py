"""Playing a policy in a world, round by round."""

from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from coaf.bandit.arrays import FloatArray, IntArray
from coaf.bandit.policies.policy import Policy, require_policy
from coaf.bandit.problem import Decision
from coaf.worlds.world import World, require_world


def play(
    policy: Policy, world: World, *, rounds: int = 2000, replicate: int = 0, late: int = 0
) -> Iterator[dict[str, Any]]:
    """Play `policy`: a flat row for each round, as it goes. The policy learns as it goes.

    Rewards come at once, or so many rounds `late`: decide, commit, learn. Columns: `round`, `arms`
    (how many there were), `taken`, `rate` (what a second was worth), `seconds`, `reward` (as it
    will be seen), `mean` (in truth).

    Examples
    --------
    >>> from coaf.bandit.policies.coaf import COAF
    >>> from coaf.worlds.synthetic import Synthetic
    >>> rows = list(play(COAF(dim=3), Synthetic(dim=3), rounds=5))
    >>> len(rows), sorted(rows[0])
    (5, ['arms', 'mean', 'rate', 'reward', 'round', 'seconds', 'taken'])
    """
    require_policy("policy", policy)
    require_world(world)
    return _rows(policy, world, rounds, replicate, late)


def _rows(
    policy: Policy, world: World, rounds: int, replicate: int, late: int
) -> Iterator[dict[str, Any]]:
    waiting: deque[tuple[Decision, IntArray, FloatArray]] = deque()
    for j, scene in enumerate(world.scenes(rounds, replicate)):
        decision = policy.decide(scene.round)
        policy.commit(decision)
        arms = np.flatnonzero(decision.chosen)
        waiting.append((decision, arms, scene.rewards[arms]))
        if len(waiting) > late:
            policy.learn(*waiting.popleft())
        yield {
            "round": j,
            "arms": scene.round.n,
            "taken": len(arms),
            "rate": decision.rate,
            "seconds": decision.seconds,
            "reward": float(scene.rewards[arms].sum()),
            "mean": float(scene.means[arms].sum()),
        }
