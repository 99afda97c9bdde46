"""Baselines: a fixed cut, and taking everything."""

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from typing import Any, Self

from coaf.bandit.arrays import FloatArray, number
from coaf.bandit.beliefs.belief import Belief
from coaf.bandit.beliefs.linear import Linear
from coaf.bandit.beliefs.scale_free import ScaleFree
from coaf.bandit.index import Index, Ones, Upper
from coaf.bandit.policies.policy import Policy
from coaf.bandit.problem import Decision, Round, require_round
from coaf.bandit.select import Selection
from coaf.bandit.state import entry

_FRESH: dict[Callable[[int], Belief], str] = {ScaleFree: "scale-free", Linear.tuned: "linear"}


def _unpriced(choice: Selection, estimates: FloatArray) -> Selection:
    """The same choice with its gap when a second is worth nothing, as baselines have it."""
    reward = float(estimates[choice.chosen].sum())
    return Selection(choice.chosen, choice.seconds, reward, -reward, choice.exact, lost=choice.lost)


class Threshold(Policy):
    """Take every arm whose estimate exceeds a fixed cut, whatever the time.

    Parameters
    ----------
    cut
        The least estimate that is taken, in the unit of rewards.
    dim, belief, index, shared
        As for `COAF`. With no dim or belief, the first round says how many features there are.

    Examples
    --------
    >>> from coaf.bandit.latency import Additive
    >>> from coaf.bandit.index import Truth
    >>> policy = Threshold(0.35, index=Truth(lambda features: features[:, 0]))
    >>> policy.decide(Round([[0.3], [0.4]], Additive(base=5.0, each=1.0))).chosen
    array([False,  True])
    """

    kind = "threshold"

    def __init__(
        self,
        cut: float,
        *,
        dim: int | None = None,
        belief: Belief | None = None,
        index: Index | None = None,
        **shared: Any,
    ) -> None:
        index = Upper() if index is None else index
        self.cut = number("cut", cut)
        self.rule = f"those whose estimate is above the cut of {self.cut:g}"
        super().__init__(belief=belief, index=index, **shared)
        self.fresh: Callable[[int], Belief] = ScaleFree
        if belief is None and index.needs_belief and dim is not None:
            self.belief = self.fresh(dim)

    def decide(self, round: Round) -> Decision:
        """Choose what exceeds the cut."""
        if self.belief is None and self.index.needs_belief:
            require_round(round)
            informed = copy(self)  # deciding must not change this policy, not even by a prior
            informed.belief = self.fresh(round.features.shape[1])
            return informed.decide(round)
        return super().decide(round)

    def _begin(self, dim: int) -> None:
        if self.belief is None and self.index.needs_belief:
            self.belief = self.fresh(dim)

    def _price(self, round: Round | None, name: int | str, faults: list[str]) -> float:
        return 0.0

    def _select(
        self,
        rate: float,
        estimates: FloatArray,
        round: Round,
        faults: list[str],
        work: int,
    ) -> Selection:
        # At rate 0 the gap is −Σ (μ_i − cut), whatever the latency and the actions are.
        shifted = estimates - self.cut
        choice = round.best(0.0, shifted, work=work)
        return _unpriced(choice, estimates)

    def _described(self) -> Iterator[str]:
        yield f"cut {self.cut:g}"
        yield from super()._described()

    def _settings(self) -> dict[str, Any]:
        return {"cut": self.cut, "fresh": _FRESH[self.fresh]}

    @classmethod
    def _build(cls, state: Mapping[str, Any], **shared: Any) -> Self:
        policy = cls(entry(state, "cut"), **shared)
        # A state of 0.1.0 that had learned nothing yet goes on with what was its default.
        makers = {name: make for make, name in _FRESH.items()}
        if entry(state, "fresh") not in makers:
            raise ValueError(f"state names an unknown belief {state['fresh']!r}")
        policy.fresh = makers[state["fresh"]]
        return policy


class TakeAll(Policy):
    """Take as many arms as are allowed, and learn nothing.

    Examples
    --------
    >>> from coaf.bandit.latency import Additive
    >>> TakeAll().decide(Round([[0.3], [0.4]], Additive(base=5.0, each=1.0))).chosen
    array([ True,  True])
    """

    kind = "take-all"
    rule = "all that is allowed"

    def __init__(self, **shared: Any) -> None:
        shared.setdefault("belief", None)
        shared.setdefault("index", Ones())
        super().__init__(**shared)

    def _price(self, round: Round | None, name: int | str, faults: list[str]) -> float:
        return 0.0

    @classmethod
    def _build(cls, state: Mapping[str, Any], **shared: Any) -> Self:
        return cls(**shared)
