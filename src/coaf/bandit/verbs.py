"""The three verbs that every policy has."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from coaf.bandit import index as indices
from coaf.bandit.arrays import BoolArray, FloatArray, floats, number
from coaf.bandit.beliefs.belief import Belief
from coaf.bandit.beliefs.linear import Linear
from coaf.bandit.index import Index
from coaf.bandit.ledger import Ledger
from coaf.bandit.problem import Decision, Round
from coaf.bandit.select import Selection, best
from coaf.bandit.state import entry, seal, unseal

_BELIEFS: dict[str, Any] = {"linear": Linear}


def _no_noise() -> np.random.Generator:
    raise RuntimeError("an index that says it is not random asked for random numbers")


class Policy:
    """The three verbs, which never call each other; subclasses say how to price and to choose.

    `decide` is pure, `commit` says that time was spent, and `learn` that scores arrived. Every
    argument is checked before anything changes, so an error leaves the policy as it was.
    """

    kind = ""

    def __init__(
        self, *, belief: Belief | None, index: Index, seed: int = 0, draws: int = 200
    ) -> None:
        self.belief = belief
        self.index = index
        self.seed = int(seed)
        self.draws = int(number("draws", draws, low=0))
        self._ledger = Ledger()

    def _price(self, round: Round | None, name: int | str) -> float:
        """What a second is worth in this round, or in the next entry round."""
        raise NotImplementedError

    def _select(self, rate: float, estimates: FloatArray, round: Round) -> Selection:
        return best(rate, estimates, round.latency, round.actions, round.groups)

    def _spend(self, decision: Decision, executed: BoolArray, seconds: float | None) -> None:
        """Time was spent."""

    def _estimates(self, features: FloatArray, name: int | str) -> FloatArray:
        if not self.index.random:
            return self.index.estimates(self.belief, features, _no_noise)
        return self.index.estimates(
            self.belief, features, lambda: indices.generator(self.seed, name)
        )

    @property
    def rate(self) -> float:
        """What a second is worth in the next entry round, by the estimates that choose."""
        return self._price(None, self._ledger.new_id(None))

    def decide(self, round: Round) -> Decision:
        """Choose a subset. Pure: the same state and the same round give the same answer."""
        name = self._ledger.new_id(round.key)
        rate = self._price(round, name)
        estimates = self._estimates(round.features, name)
        choice = self._select(rate, estimates, round)
        estimates.setflags(write=False)
        propensities = None
        if self.index.random and self.draws:
            propensities = self._propensities(round, name, rate, choice.chosen)
            propensities.setflags(write=False)
        return Decision(
            round,
            name,
            choice.chosen,
            choice.seconds,
            choice.reward,
            choice.gap,
            estimates,
            rate,
            choice.exact,
            propensities,
        )

    def _propensities(
        self,
        round: Round,
        name: int | str,
        rate: float,
        chosen: BoolArray,
    ) -> FloatArray:
        """Each arm's probability of being chosen, by further draws; the one made counts too."""
        counts = chosen.astype(np.float64)
        rng = indices.generator(self.seed, name, "propensities")
        for _ in range(self.draws):
            estimates = self.index.estimates(self.belief, round.features, lambda: rng)
            counts += self._select(rate, estimates, round).chosen
        return counts / (self.draws + 1)

    def commit(
        self,
        decision: Decision,
        executed: npt.ArrayLike | None = None,
        seconds: float | None = None,
    ) -> None:
        """Time was spent, perhaps on another subset, perhaps longer than planned: the rate moves.

        Parameters
        ----------
        decision
            What was decided.
        executed : (n,)
            The arms taken in fact, if not those chosen.
        seconds
            The time it took in fact, if measured.
        """
        done = self._ledger.check_commit(decision, executed)
        if seconds is not None:
            seconds = number("seconds", seconds, low=0.0)
            if decision.round.follows is None and not seconds >= 1e-9 * decision.round.floor:
                raise ValueError(
                    f"seconds is {seconds}, but an entry round takes time: at least "
                    f"{decision.round.floor:g} s by its latency"
                )
        self._spend(decision, done, seconds)
        self._ledger.commit(decision, done)

    def learn(self, decision: Decision, arms: npt.ArrayLike, rewards: npt.ArrayLike) -> None:
        """Scores arrived for some of the executed arms: now or an hour later, in any order."""
        numbers, values = self._ledger.check_learn(decision, arms, rewards)
        if len(values) == 0:
            return
        if self.belief is not None:
            groups = decision.round.groups
            labels = None if groups is None else groups[numbers]
            self.belief.learn(decision.round.features.take(numbers, axis=0), values, labels)
        self._ledger.learn(decision, numbers)

    def refit(
        self,
        features: npt.ArrayLike,
        rewards: npt.ArrayLike,
        groups: npt.NDArray[Any] | None = None,
    ) -> None:
        """Start the belief again from these rows: for corrected scores or a changed target.

        A policy that has no belief (`TakeAll`, the oracle) has nothing to fit, and stays as it is.
        """
        if self.belief is not None:
            X, y = floats("features", features, ndim=2), floats("rewards", rewards, ndim=1)
            self.belief.refit(X, y, groups)

    def _settings(self) -> dict[str, Any]:
        """What a subclass adds to the state."""
        return {}

    @classmethod
    def _build(cls, state: Mapping[str, Any], **shared: Any) -> Self:
        """The subclass's part of `restore`."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """Everything, as JSON; what `restore` makes of it takes the same next decision."""
        return seal(
            self.kind,
            {
                **indices.save(self.index),
                "belief": None if self.belief is None else self.belief.state(),
                "seed": self.seed,
                "draws": self.draws,
                "ledger": self._ledger.state(),
                **self._settings(),
            },
        )

    @classmethod
    def restore(cls, state: Mapping[str, Any] | str, *, belief: type[Belief] | None = None) -> Self:
        """The policy that `state` (a dictionary or its JSON text) was taken from.

        A belief of your own needs its class as `belief`.
        """
        state = unseal(cls.kind, state)
        saved = entry(state, "belief")
        kind = belief
        if saved is not None and kind is None:
            kind = _BELIEFS.get(saved.get("coaf"))
            if kind is None:
                raise ValueError(
                    f"state names an unknown belief {saved.get('coaf')!r}: "
                    "pass its class as belief, as in COAF.restore(state, belief=MyBelief)"
                )
        policy = cls._build(
            state,
            belief=None if saved is None or kind is None else kind.restore(saved),
            index=indices.load(state),
            seed=entry(state, "seed"),
            draws=entry(state, "draws"),
        )
        policy._ledger.restore(entry(state, "ledger"))
        return policy
