"""COAF (`alg: COAF`): take what is worth its time."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import BoolArray, FloatArray
from coaf.bandit.beliefs.belief import Belief
from coaf.bandit.beliefs.linear import Linear
from coaf.bandit.beliefs.scale_free import ScaleFree
from coaf.bandit.groups import Groups
from coaf.bandit.index import Index, Thompson, Upper
from coaf.bandit.policies.policy import Policy
from coaf.bandit.problem import Decision, Round
from coaf.bandit.rates.budget import Budget
from coaf.bandit.rates.memory_root import MemoryRoot
from coaf.bandit.rates.rate import Fixed, Rate, Renewal, RobbinsMonro, Visit
from coaf.bandit.rates.restarting import Restarting
from coaf.bandit.state import entry

_RATES: dict[str, Any] = {
    "fixed": Fixed,
    "renewal": Renewal,
    "robbins-monro": RobbinsMonro,
    "memory-root": MemoryRoot,
    "budget": Budget,
    "restarting": Restarting,
}


class COAF(Policy):
    """Contextual online arm filtering: take what is worth its time, and learn both.

    Parameters
    ----------
    dim
        Number of features, of any scale; enough for the measured-best default, `ScaleFree(dim)`
        with `Upper` and `Restarting`. It needs to be told nothing of rewards and times, either.
    belief
        What is known of the mean reward.
    index
        How the belief becomes estimates: `Upper`, `Thompson`, `Mean` or `Truth`.
    rate
        What a second is worth: `Restarting`, `Renewal`, `MemoryRoot`, `RobbinsMonro`, `Budget` or
        `Fixed`.
    seed
        For random indices. Noise is drawn from (seed, round id) alone.
    shared
        `draws`, `reward_range`, `keep_rows`, `expire_commits`, `expire_seconds` and `work`, which
        every policy has: see `Policy`.

    Attributes
    ----------
    pricing
        How it is learned what a second is worth: the `rate` that was given.

    Examples
    --------
    >>> from coaf.bandit.latency import Setup
    >>> policy = COAF(dim=2, seed=0)
    >>> microscope = Setup(base=12.0, setup=52.0, each=6.7)
    >>> decision = policy.decide(Round(features=[[0.6, 0.8], [1.0, 0.0]], latency=microscope))
    >>> decision.chosen
    array([ True,  True])
    >>> policy.commit(decision)
    >>> policy.learn(decision, arms=[0, 1], rewards=[1.0, 0.0])
    """

    kind = "coaf"

    def __init__(
        self,
        dim: int | None = None,
        *,
        belief: Belief | None = None,
        index: Index | None = None,
        rate: Rate | None = None,
        seed: int = 0,
        **shared: Any,
    ) -> None:
        index = Upper() if index is None else index
        if isinstance(index, type) or not hasattr(index, "needs_belief"):
            raise TypeError(f"index is {index!r}; it must be an index, as Upper() or Thompson()")
        if belief is None and index.needs_belief and dim is not None:
            belief = ScaleFree(dim)
        if belief is None and index.needs_belief:
            raise ValueError("give dim, the number of features, or a belief")
        super().__init__(belief=belief, index=index, seed=seed, **shared)
        if belief is not None and dim is not None and belief.dim != dim:
            raise ValueError(f"belief has dim={belief.dim}, but dim={dim} was given")
        self.pricing: Rate = Restarting() if rate is None else rate
        if isinstance(rate, type) or not hasattr(self.pricing, "enter"):
            raise TypeError(f"rate is {rate!r}; it must be a rate, as Renewal() or Fixed(0.1)")
        self._visit: Visit | None = None

    @classmethod
    def paper(
        cls,
        dim: int,
        *,
        xi: float = 0.5,
        delta: float = 0.001,
        regularization: float = 1.0,
        noise: float = 1.0,
        norm_bound: float = 1.0,
        feature_bound: float = 1.0,
        mean_bound: float | None = None,
        n_max: int | None = None,
        l_min: float | None = None,
        scale: float = 1.0,
        index: Literal["upper", "thompson"] = "upper",
        within: Literal["ball", "ellipsoid"] = "ball",
        seed: int = 0,
    ) -> Self:
        """Algorithm 1 as printed: the paper's β(n, δ), ellipsoid and ball, Robbins-Monro.

        The paper suggests δ = 1/T. `index="thompson"` is its COAF-TS; `within="ellipsoid"` drops
        the ball from the confidence set and leaves the cap at the mean bound; a `scale` other than
        1 multiplies the radius √β, as one does who tunes it.
        """
        belief = Linear(
            dim,
            regularization=regularization,
            noise=noise,
            norm_bound=norm_bound,
            feature_bound=feature_bound,
            mean_bound=mean_bound,
            delta=delta,
            radius="printed",
            scale=scale,
            within=within,
        )
        rate = RobbinsMonro(xi=xi, n_max=n_max, l_min=l_min, mean_bound=belief.mean_bound)
        if index not in ("upper", "thompson"):
            raise ValueError(f'index is {index!r}; it must be "upper" or "thompson"')
        return cls(
            belief=belief,
            index=Upper() if index == "upper" else Thompson(),
            rate=rate,
            seed=seed,
        )

    def _entered(self, round: Round) -> Visit:
        visit = self._visit
        if visit is None or visit.id != round.follows:
            at = "nothing was entered yet" if visit is None else f"the last entered is {visit.id!r}"
            raise ValueError(f"round.follows is {round.follows!r}, but {at}")
        return visit

    def _price(self, round: Round | None, name: int | str, faults: list[str]) -> float:
        if round is not None and round.follows is not None:
            return self._entered(round).rate
        blind = self.blind

        def score(features: FloatArray, groups: Groups | None) -> FloatArray:
            if blind:
                return np.zeros(len(features))
            return self._estimates(features, groups, self._noise(name), faults)

        return self.pricing.value(score)

    def _spend(self, decision: Decision, executed: BoolArray, seconds: float | None) -> float:
        if decision.round.follows is None:
            visit, before = Visit.enter(decision, executed, seconds), 0.0
            self._visit = visit
            self.pricing.enter(visit, decision.round)
        else:
            visit = self._entered(decision.round)
            before = visit.spent_seconds
            visit.add(decision, executed, seconds)
            self.pricing.update(visit)
        return visit.spent_seconds - before

    def commit(
        self,
        decision: Decision,
        executed: npt.ArrayLike | None = None,
        seconds: float | None = None,
    ) -> None:
        super().commit(decision, executed, seconds)
        if type(self.pricing) is Renewal:
            self.pricing.warn_of_logs()  # last, as a warning may be raised

    def _described(self) -> Iterator[str]:
        yield from super()._described()
        yield type(self.pricing).__name__

    def _settings(self) -> dict[str, Any]:
        return {
            "rate": self.pricing.state(),
            "visit": None if self._visit is None else asdict(self._visit),
        }

    @classmethod
    def _build(cls, state: Mapping[str, Any], **shared: Any) -> Self:
        rate, visit = entry(state, "rate"), entry(state, "visit")
        if entry(rate, "rate") not in _RATES:
            raise ValueError(f"state names an unknown rate {rate['rate']!r}")
        policy = cls(rate=_RATES[rate["rate"]].restore(rate), **shared)
        if visit is not None:
            policy._visit = Visit(**{f.name: entry(visit, f.name) for f in fields(Visit)})
        return policy
