"""Deciding by chance now and then, with probabilities that are known."""

from collections.abc import Mapping
from math import comb
from os import PathLike
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from coaf.bandit import index as indices
from coaf.bandit.actions import Actions, AnySubset, AtMost, Exactly, Grouped, Listed, OneOf
from coaf.bandit.arrays import BoolArray, FloatArray, IntArray, number
from coaf.bandit.beliefs.belief import Belief
from coaf.bandit.groups import Groups, innermost
from coaf.bandit.index import Index
from coaf.bandit.policies.baselines import TakeAll, Threshold
from coaf.bandit.policies.coaf import COAF
from coaf.bandit.policies.policy import Policy, require_policy
from coaf.bandit.policies.report import Report
from coaf.bandit.policies.saved import read
from coaf.bandit.policies.stepwise import Stepwise
from coaf.bandit.problem import Decision, Round
from coaf.bandit.state import entry, kind_of, seal, unseal
from coaf.bandit.subsets import as_mask, as_tuple

_POLICIES: dict[str, type[Policy]] = {p.kind: p for p in (COAF, Stepwise, Threshold, TakeAll)}


class Draw(NamedTuple):
    """What chance may take: so many of `arms`, or one of `subsets`, all equally likely."""

    n: int
    size: int
    arms: IntArray
    subsets: tuple[tuple[int, ...], ...] | None = None

    def take(self, rng: np.random.Generator) -> BoolArray:
        """One subset."""
        if self.subsets is not None:
            return as_mask(self.subsets[int(rng.integers(len(self.subsets)))], self.n)
        chosen = np.zeros(self.n, dtype=np.bool_)
        chosen[rng.choice(self.arms, self.size, replace=False)] = True
        return chosen

    def of_arms(self) -> FloatArray:
        """The probability of each arm."""
        if self.subsets is not None:
            masks = [as_mask(subset, self.n) for subset in self.subsets]
            return np.asarray(np.mean(masks, axis=0), dtype=np.float64)
        chances = np.zeros(self.n)
        if self.size:
            chances[self.arms] = self.size / len(self.arms)
        return chances

    def of_subset(self, chosen: BoolArray) -> float:
        """The probability of this very subset."""
        if self.subsets is not None:
            return float(as_tuple(chosen) in self.subsets) / len(self.subsets)
        inside = int(np.count_nonzero(chosen[self.arms]))
        if inside != self.size or int(np.count_nonzero(chosen)) != self.size:
            return 0.0
        return 1.0 / comb(len(self.arms), self.size)


def chance(actions: Actions, n: int, groups: Groups | None = None) -> Draw:
    """The rule by which a round is decided by chance: a smallest subset that is not empty.

    One arm where any number may be taken (`AnySubset`, `AtMost`, `Grouped`, `OneOf`), k arms for
    `Exactly(k)`, and one of the subsets of `Listed`; each as likely as the others.

    Examples
    --------
    >>> rule = chance(Exactly(2), 5)
    >>> rule.of_arms()
    array([0.4, 0.4, 0.4, 0.4, 0.4])
    >>> rule.of_subset(np.array([True, True, False, False, False]))
    0.1
    """
    actions.check(n, groups)
    everyone = np.arange(n)
    if type(actions) is Listed:
        return Draw(n, 0, everyone, tuple(dict.fromkeys(actions.subsets)))
    if type(actions) is Exactly:
        return Draw(n, actions.count, everyone)
    if type(actions) is AnySubset or type(actions) is OneOf:
        return Draw(n, min(n, 1), everyone)
    if type(actions) is AtMost:
        return Draw(n, min(n, actions.count, 1), everyone)
    if type(actions) is Grouped:
        limits = [actions.limit_of(label) for label in innermost(np.asarray(groups))]
        free = np.array([i for i, limit in enumerate(limits) if limit != 0], dtype=np.int64)
        return Draw(n, min(len(free), 1), free)
    raise ValueError(
        f"there is no rule of chance for {type(actions).__name__} actions: it is for AnySubset, "
        "AtMost, Exactly, OneOf, Grouped and Listed"
    )


def check_share(name: str, share: float) -> float:
    """`share` as a probability."""
    if not 0.0 <= number(name, share) <= 1.0:
        raise ValueError(f"{name} is {share}; it is a probability: from 0 to 1")
    return float(share)


class Explore(Policy):
    """A policy that decides an entry round by chance, with probability `share`, to find out.

    What is never tried is never known, and what a policy chose for a reason says little about what
    it left: with a small share of chance, and its probabilities on record, other policies can be
    judged on the same data afterwards. Follow-ups are the policy's own.

    Parameters
    ----------
    policy
        Whose decisions the others are. Its verbs are called through this one.
    share
        The probability that a round is decided by chance.
    seed
        Luck is drawn from (seed, round id) alone; that of the policy unless given.

    Notes
    -----
    Chance takes a smallest subset that is not empty: see `chance`. `decision.propensities` holds
    each arm's probability, and `decision.propensity` that of the subset, both given all before;
    where the policy is random itself the latter is None, and the former need its `draws`.

    Examples
    --------
    >>> from coaf.bandit.latency import Additive
    >>> policy = Explore(COAF(dim=1), 0.1)
    >>> decision = policy.decide(Round([[0.2], [0.3], [0.4], [0.5]], Additive(5.0, 1.0)))
    >>> decision.chosen, decision.propensities, decision.propensity
    (array([ True,  True,  True,  True]), array([0.925, 0.925, 0.925, 0.925]), 0.9)
    """

    kind = "explore"

    def __init__(self, policy: Policy, share: float, *, seed: int | None = None) -> None:
        require_policy("policy", policy)
        self.policy, self.share = policy, check_share("share", share)
        self._luck = policy.seed if seed is None else int(seed)

    @property
    def belief(self) -> Belief | None:
        """That of the policy."""
        return self.policy.belief

    @belief.setter
    def belief(self, belief: Belief | None) -> None:
        self.policy.belief = belief

    @property
    def index(self) -> Index:  # type: ignore[override]
        """That of the policy."""
        return self.policy.index

    @property
    def seed(self) -> int:
        """Of the luck; setting it sets that of the policy, too."""
        return self._luck

    @seed.setter
    def seed(self, seed: int) -> None:
        self._luck = self.policy.seed = seed

    @property
    def blind(self) -> bool:
        """That of the policy."""
        return self.policy.blind

    @property
    def rate(self) -> float:
        """That of the policy."""
        return self.policy.rate

    def decide(self, round: Round) -> Decision:
        """What the policy decides, or chance."""
        own = self.policy.decide(round)
        if round.follows is not None:
            return own
        rule = chance(round.actions, round.n, round.groups)
        rng = indices.generator(self._luck, own.id, "explore")
        explores = rng.random() < self.share
        chosen = rule.take(rng) if explores else own.chosen
        certain = own.propensity == 1.0
        arms = own.chosen.astype(np.float64) if certain else own.propensities
        if arms is not None:
            arms = (1.0 - self.share) * arms + self.share * rule.of_arms()
            arms.setflags(write=False)
        subset = None
        if certain:
            same = float(np.array_equal(chosen, own.chosen))
            subset = (1.0 - self.share) * same + self.share * rule.of_subset(chosen)
        if not explores:
            return own._replace(propensities=arms, propensity=subset)
        chosen.setflags(write=False)
        seconds, reward = float(round.latency.seconds(chosen)), float(own.estimates[chosen].sum())
        return own._replace(
            chosen=chosen,
            seconds=seconds,
            reward=reward,
            gap=seconds * own.rate - reward,
            propensities=arms,
            option=None,
            propensity=subset,
            instead=own,
        )

    def commit(
        self,
        decision: Decision,
        executed: npt.ArrayLike | None = None,
        seconds: float | None = None,
    ) -> None:
        """As the policy does; chance counts as what was executed."""
        self.policy.commit(decision, executed, seconds)

    def learn(self, decision: Decision, arms: npt.ArrayLike, rewards: npt.ArrayLike) -> None:
        """As the policy does."""
        self.policy.learn(decision, arms, rewards)

    def absorb(
        self,
        features: npt.ArrayLike,
        rewards: npt.ArrayLike,
        groups: npt.ArrayLike | None = None,
    ) -> None:
        """As the policy does."""
        self.policy.absorb(features, rewards, groups)

    def abandon(self, decision: Decision, arms: npt.ArrayLike | None = None) -> None:
        """As the policy does."""
        self.policy.abandon(decision, arms)

    def correct(
        self,
        decision: Decision,
        arms: npt.ArrayLike,
        rewards: npt.ArrayLike,
        *,
        previous: npt.ArrayLike | None = None,
    ) -> None:
        """As the policy does."""
        self.policy.correct(decision, arms, rewards, previous=previous)

    def report(self) -> Report:
        """That of the policy."""
        return self.policy.report()

    def pending(self) -> list[dict[str, Any]]:
        """That of the policy."""
        return self.policy.pending()

    @property
    def commits(self) -> int:
        """That of the policy."""
        return self.policy.commits

    @property
    def given_up(self) -> int:
        """That of the policy."""
        return self.policy.given_up

    def refit(
        self,
        features: npt.ArrayLike,
        rewards: npt.ArrayLike,
        groups: npt.ArrayLike | None = None,
    ) -> None:
        """As the policy does."""
        self.policy.refit(features, rewards, groups)

    def __repr__(self) -> str:
        return f"<Explore: {self.share:g} of {self.policy!r}>"

    def state(self) -> dict[str, Any]:
        """Everything, as JSON."""
        return seal(
            self.kind, {"policy": self.policy.state(), "share": self.share, "seed": self._luck}
        )

    @classmethod
    def restore(cls, state: Mapping[str, Any] | str, *, belief: type[Belief] | None = None) -> Self:
        """The policy that `state` was taken from."""
        state = unseal(cls.kind, state)
        policy = restore_policy(entry(state, "policy"), belief=belief)
        return cls(policy, entry(state, "share"), seed=entry(state, "seed"))


def restore_policy(state: Mapping[str, Any] | str, *, belief: type[Belief] | None = None) -> Policy:
    """The policy, of whatever kind, that `state` was taken from."""
    kind, state = kind_of(state, "policy")
    kinds = _POLICIES | {Explore.kind: Explore}
    if kind not in kinds:
        raise ValueError(f"state names an unknown policy {kind!r}")
    return kinds[kind].restore(state, belief=belief)


def load(path: str | PathLike[str], *, belief: type[Belief] | None = None) -> Policy:
    """The policy that was saved in a file by its `save`.

    A belief of your own needs its class as `belief`, unless it is registered.
    """
    try:
        return restore_policy(read(path), belief=belief)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
