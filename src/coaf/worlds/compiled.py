"""Which policies the compiled loop can play, and playing them."""

from dataclasses import dataclass
from math import inf

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.linear import Linear
from coaf.bandit.beliefs.rows import limit_of
from coaf.bandit.beliefs.scale_free import ScaleFree
from coaf.bandit.index import Mean, Thompson, Truth, Upper, normals
from coaf.bandit.policies.baselines import TakeAll, Threshold
from coaf.bandit.policies.coaf import COAF
from coaf.bandit.policies.policy import Policy
from coaf.bandit.rates.memory_root import MemoryRoot
from coaf.bandit.rates.rate import Fixed, Renewal, RobbinsMonro
from coaf.bandit.rates.restarting import Restarting
from coaf.worlds import codes
from coaf.worlds.batch import Batch
from coaf.worlds.codes import RateNumbers
from coaf.worlds.world import BulkWorld, World

_INDICES = {
    Upper: codes.UPPER,
    Mean: codes.MEANS,
    Thompson: codes.THOMPSON,
    Truth: codes.TRUTH,
}


@dataclass(frozen=True, slots=True)
class Coded:
    """A policy as numbers for the compiled loop (see `codes.py`)."""

    index: int
    kind: int
    numbers: RateNumbers


def coded(policy: Policy, world: World) -> Coded | None:
    """How to play `policy` in compiled code, or None where only Python can."""
    if not isinstance(world, BulkWorld) or type(policy) not in (COAF, Threshold, TakeAll):
        return None
    index = _INDICES.get(type(policy.index))
    if type(policy) is TakeAll:
        return Coded(codes.TRUTH, codes.EVERYTHING, RateNumbers())
    if index is None or policy.commits or policy.reward_range is not None:
        return None
    if isinstance(policy.index, Truth) and policy.index.means != world.means:
        return None
    if index != codes.TRUTH and type(policy.belief) is not Linear:
        kind = type(policy.belief)
        if isinstance(policy, Threshold) and policy.belief is None:
            kind = type(policy.fresh(world.dim))
        if kind is not ScaleFree or type(policy.index) is not Upper:
            return None
        index = codes.FREE
    if type(policy) is Threshold:
        return Coded(index, codes.CUT, RateNumbers(policy.cut))
    assert isinstance(policy, COAF)
    rate = policy.pricing
    if type(rate) is Fixed:
        return Coded(index, codes.FIXED, RateNumbers(rate.rate))
    if type(rate) is RobbinsMonro and rate.elapsed_floor == 0.0:
        numbers = RateNumbers(
            rate.rate,
            xi=rate.xi,
            n_max=rate.n_max or 0.0,
            l_min=rate.l_min or 0.0,
            mean_bound=inf if rate.mean_bound is None else rate.mean_bound,
        )
        return Coded(index, codes.ROBBINS_MONRO, numbers)
    if type(rate) is Renewal and rate.seconds == 0.0:
        return Coded(index, codes.RENEWAL, RateNumbers(rate.initial))
    if type(rate) is Restarting and rate.seconds == 0.0:
        return Coded(index, codes.RESTARTING, RateNumbers(rate.initial))
    if type(rate) is MemoryRoot and not rate.rounds:
        return Coded(index, codes.MEMORY, RateNumbers(rate.initial, size=float(rate.size)))
    return None


def play_compiled(policy: Policy, how: Coded, batch: Batch) -> FloatArray:
    """Play a batch; returns rate, seconds and true mean reward of every round, (rounds, 3)."""
    from coaf.bandit.compiled import workspace  # loads numba
    from coaf.worlds import replicate

    belief, rounds, d = policy.belief, len(batch), batch.dim
    if how.index == codes.TRUTH or not isinstance(belief, Linear | ScaleFree):
        belief = ScaleFree(d)  # that of a threshold without one, or not used
    if isinstance(belief, Linear):
        limit = limit_of(belief.feature_bound)
        bad = replicate.first_beyond(batch.features, batch.counts, d, limit)
        if bad >= 0:
            raise ValueError(
                f"round {bad} has features beyond feature_bound={belief.feature_bound:g}: scale "
                "the features or raise the bound"
            )
    noise = np.zeros((1, d))
    if how.index == codes.THOMPSON:
        noise = normals(policy.seed, rounds, d)
    trace = np.empty((rounds, 3))
    replicate.run(
        belief.learner(),
        workspace.arena(d + isinstance(belief, ScaleFree), batch.costs.shape[1]),
        how.index,
        how.kind,
        np.array(how.numbers),
        noise,
        d,
        batch.features,
        batch.counts,
        batch.base,
        batch.setup,
        batch.costs,
        batch.means,
        batch.rewards,
        trace,
    )
    if how.kind == codes.CUT:
        trace[:, 0] = 0.0  # a cut is no price of time: the live policy says 0, too
    return trace
