"""The three verbs that every policy has."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from coaf.bandit import index as indices
from coaf.bandit.arrays import BoolArray, FloatArray, floats, guards, number
from coaf.bandit.beliefs.belief import Belief
from coaf.bandit.beliefs.registry import restore_belief
from coaf.bandit.faults import LARGEST, BeliefError, BeliefWarning, is_fault, mend
from coaf.bandit.groups import Groups, check_groups
from coaf.bandit.index import Index, Noise
from coaf.bandit.ledger import Ledger
from coaf.bandit.problem import Decision, Round
from coaf.bandit.select import Selection, best
from coaf.bandit.state import entry, seal, unseal


def _no_noise() -> np.random.Generator:
    raise ValueError("an index that says it is not random asked for random numbers")


class Policy:
    """The three verbs, which never call each other; subclasses say how to price and to choose.

    `decide` is pure, `commit` says that time was spent, and `learn` that scores arrived. Every
    argument is checked before anything changes, so an error leaves the policy as it was.

    A belief that fails does not stop a policy: what it cannot score, or scores with no finite
    number, is estimated at the average reward so far, and a `BeliefWarning` and the decision's
    `fault` say so. What it cannot learn is a `BeliefError`.
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
        self._total, self._count = 0.0, 0  # of the rewards learned

    def _price(self, round: Round | None, name: int | str, faults: list[str]) -> float:
        """What a second is worth in this round, or in the next entry round.

        What goes wrong with the belief is added to `faults`.
        """
        raise NotImplementedError

    def _select(
        self, rate: float, estimates: FloatArray, round: Round, faults: list[str]
    ) -> Selection:
        return best(rate, estimates, round.latency, round.actions, round.groups)

    def _spend(self, decision: Decision, executed: BoolArray, seconds: float | None) -> None:
        """Time was spent."""

    def _estimates(
        self,
        features: FloatArray,
        groups: Groups | None,
        noise: Noise,
        faults: list[str],
    ) -> FloatArray:
        """Finite estimates, whatever the belief does."""
        found: FloatArray | Exception
        try:
            found = self.index.estimates(self.belief, features, noise, groups)
            if found.shape == (len(features),) and guards().all_within(found, LARGEST):
                return found
        except Exception as error:
            if not self.index.needs_belief or not is_fault(error):
                raise
            found = error
        average = self._total / self._count if self._count else 0.0
        estimates, fault = mend(found, len(features), average)
        who = self.belief if self.index.needs_belief else self.index
        faults.append(f"{type(who).__name__} {fault}")
        return estimates

    def _noise(self, name: int | str) -> Noise:
        """The random numbers of a round, from their beginning each time they are asked for."""
        return (lambda: indices.generator(self.seed, name)) if self.index.random else _no_noise

    @property
    def rate(self) -> float:
        """What a second is worth in the next entry round, by the estimates that choose."""
        faults: list[str] = []
        rate = self._price(None, self._ledger.new_id(None), faults)
        if faults:
            warnings.warn(faults[0], BeliefWarning, stacklevel=2)
        return rate

    def decide(self, round: Round) -> Decision:
        """Choose a subset. Pure: the same state and the same round give the same answer."""
        name = self._ledger.new_id(round.key)
        faults: list[str] = []
        rate = self._price(round, name, faults)
        estimates = self._estimates(round.features, round.groups, self._noise(name), faults)
        if round.parts is not None:
            estimates = estimates * round.parts
        choice = self._select(rate, estimates, round, faults)
        estimates.setflags(write=False)
        propensities = None
        if self.index.random and self.draws:
            propensities = self._propensities(round, name, rate, choice.chosen, faults)
            propensities.setflags(write=False)
        if faults:
            warnings.warn(faults[0], BeliefWarning, stacklevel=2)
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
            faults[0] if faults else "",
            choice.option,
        )

    def _propensities(
        self,
        round: Round,
        name: int | str,
        rate: float,
        chosen: BoolArray,
        faults: list[str],
    ) -> FloatArray:
        """Each arm's probability of being chosen, by further draws; the one made counts too."""
        counts = chosen.astype(np.float64)
        rng = indices.generator(self.seed, name, "propensities")
        for _ in range(self.draws):
            estimates = self._estimates(round.features, round.groups, lambda: rng, faults)
            if round.parts is not None:
                estimates = estimates * round.parts
            counts += self._select(rate, estimates, round, faults).chosen
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
            features = decision.round.features.take(numbers, axis=0)
            self._teach(self.belief.learn, features, values, labels)
        self._ledger.learn(decision, numbers)
        self._total += sum(values.tolist(), 0.0)
        self._count += len(values)

    def refit(
        self,
        features: npt.ArrayLike,
        rewards: npt.ArrayLike,
        groups: npt.ArrayLike | None = None,
    ) -> None:
        """Start the belief again from these rows: for corrected scores or a changed target.

        A policy that has no belief (`TakeAll`, the oracle) has nothing to fit, and stays as it is.
        """
        if self.belief is not None:
            X, y = floats("features", features, ndim=2), floats("rewards", rewards, ndim=1)
            labels = None if groups is None else check_groups(groups, len(X))
            self._teach(self.belief.refit, X, y, labels)
            self._total, self._count = sum(y.tolist(), 0.0), len(y)

    def _teach(
        self,
        verb: Callable[[FloatArray, FloatArray, Groups | None], None],
        features: FloatArray,
        rewards: FloatArray,
        groups: Groups | None,
    ) -> None:
        try:
            verb(features, rewards, groups)
        except Exception as error:
            if not is_fault(error):
                raise
            raise BeliefError(
                f"{type(self.belief).__name__}.{verb.__name__} raised {type(error).__name__} "
                f"({error}): the {len(rewards)} rows were not learned, and can be given again"
            ) from error

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
                "rewards": [self._total, self._count],
                **self._settings(),
            },
        )

    @classmethod
    def restore(cls, state: Mapping[str, Any] | str, *, belief: type[Belief] | None = None) -> Self:
        """The policy that `state` (a dictionary or its JSON text) was taken from.

        A belief of your own needs its class as `belief`, unless it is registered.
        """
        state = unseal(cls.kind, state)
        saved = entry(state, "belief")
        policy = cls._build(
            state,
            belief=None if saved is None else restore_belief(saved, belief),
            index=indices.load(state),
            seed=entry(state, "seed"),
            draws=entry(state, "draws"),
        )
        policy._ledger.restore(entry(state, "ledger"))
        policy._total, policy._count = entry(state, "rewards")
        return policy
