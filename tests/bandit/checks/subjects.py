"""Every implementation that the contract suites run on, and minimal ones a user might bring."""

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

from coaf.bandit.actions import (
    Actions,
    AnySubset,
    AtMost,
    Capped,
    Exactly,
    Grouped,
    Listed,
    OneOf,
)
from coaf.bandit.arrays import BoolArray, FloatArray
from coaf.bandit.beliefs import (
    Beside,
    Drift,
    Ensemble,
    Finite,
    Kernel,
    Linear,
    Logistic,
    Mapped,
    Mixture,
    Nested,
    Poisson,
    Regression,
    ScaleFree,
)
from coaf.bandit.beliefs.belief import Belief
from coaf.bandit.groups import Groups, check_groups, innermost
from coaf.bandit.index import Index, Mean, Noise, Ones, Thompson, Truth, Upper
from coaf.bandit.latency import Additive, ByCount, Latency, Setup, Table, Tour, Tree
from coaf.bandit.policies.baselines import TakeAll, Threshold
from coaf.bandit.policies.coaf import COAF
from coaf.bandit.policies.explore import Explore
from coaf.bandit.policies.policy import Policy
from coaf.bandit.policies.stepwise import Stepwise
from coaf.bandit.problem import Decision, Round
from coaf.bandit.rates.budget import Budget
from coaf.bandit.rates.memory_root import MemoryRoot
from coaf.bandit.rates.rate import Fixed, Rate, Renewal, RobbinsMonro, Scoring, Visit
from coaf.bandit.rates.restarting import Restarting
from coaf.bandit.select import best

FUNCTIONS = np.random.default_rng(0).uniform(-0.5, 0.5, (60, 3))
TREE = DecisionTreeRegressor(min_samples_leaf=4)

POLICIES: dict[str, Callable[[], Policy]] = {
    "coaf": lambda: COAF(dim=3),
    "paper": lambda: COAF.paper(dim=3),
    "paper, ellipsoid": lambda: COAF.paper(dim=3, within="ellipsoid", n_max=6, l_min=2.0),
    "paper, Thompson": lambda: COAF.paper(dim=3, index="thompson", seed=3),
    "robbins-monro, tuned": lambda: COAF(dim=3, rate=RobbinsMonro(xi=1.0, initial=0.1)),
    "memory root": lambda: COAF(dim=3, rate=MemoryRoot(size=3)),
    "memory root, Thompson": lambda: COAF(
        dim=3, index=Thompson(), rate=MemoryRoot(size=3), draws=10
    ),
    "budget": lambda: COAF(dim=3, rate=Budget(400.0, rounds=40, size=3)),
    "budget, Thompson": lambda: COAF(dim=3, index=Thompson(), rate=Budget(400.0, size=3), draws=10),
    "fixed": lambda: COAF(dim=3, rate=Fixed(0.2)),
    "mean": lambda: COAF(dim=3, index=Mean()),
    "wide": lambda: COAF.paper(dim=70),
    "logistic": lambda: COAF(belief=Logistic(3)),
    "logistic, Thompson": lambda: COAF(belief=Logistic(3), index=Thompson(), draws=10),
    "nested": lambda: COAF(belief=Nested(3), rate=MemoryRoot(size=3)),
    "stepwise": lambda: Stepwise(Nested(3), size=3),
    "stepwise, mixture": lambda: Stepwise(
        Mixture([Nested(3, scale=s) for s in (0.5, 3.0)]), size=3
    ),
    "stepwise, normal rewards": lambda: Stepwise(Nested(3, family="gaussian"), size=3, lag=2),
    "kernel": lambda: COAF(belief=Kernel(3), index=Thompson(), draws=3),
    "drifting": lambda: COAF(belief=Drift(Linear.tuned(3), half_life=20)),
    "regression": lambda: COAF(belief=Regression(3, Ridge(), copies=2)),
    "regression, stated": lambda: COAF(
        belief=Regression(3, Ridge(), noise=1.0, mean_bound=1.0, copies=2)
    ),
    "ensemble": lambda: COAF(belief=Ensemble(3, Ridge(), copies=2)),
    "ensemble, stated": lambda: COAF(
        belief=Ensemble(3, Ridge(), noise=1.0, mean_bound=1.0, copies=2)
    ),
    "finite": lambda: COAF(belief=Finite(3, FUNCTIONS)),
    "finite, stated": lambda: COAF(belief=Finite(3, FUNCTIONS, noise=1.0, mean_bound=1.0)),
    "scale-free, bounded": lambda: COAF(belief=ScaleFree(3, mean_bound=2.0)),
    "mapped": lambda: COAF(belief=Mapped(np.tanh, ScaleFree(3), dim=3)),
    "explore": lambda: Explore(COAF(dim=3), 0.2),
    "threshold": lambda: Threshold(0.35, dim=3),
    "threshold of unknown dim": lambda: Threshold(0.35),
    "threshold, Thompson": lambda: Threshold(0.35, dim=3, index=Thompson(), draws=10),
    "take all": TakeAll,
}


# Policies to which the order of rewards matters: they follow one after another, or forget, or
# measure and resample rows by their place.
ORDERED = ("logistic", "logistic, Thompson", "drifting", "regression", "ensemble")


def first_feature(features: FloatArray) -> FloatArray:
    return features[:, 0]


ORACLES: dict[str, Callable[[], Policy]] = {
    "oracle": lambda: COAF(index=Truth(first_feature)),
    "oracle, paper": lambda: COAF(index=Truth(first_feature), rate=RobbinsMonro(xi=1.0)),
    "oracle threshold": lambda: Threshold(0.1, index=Truth(first_feature)),
}

BELIEFS: dict[str, Callable[[], Belief]] = {
    f"dim {dim}, {radius}, {within}": (
        lambda dim=dim, radius=radius, within=within: Linear(dim, radius=radius, within=within)
    )
    for dim in (1, 10, 70)
    for radius in ("determinant", "printed")
    for within in ("ball", "ellipsoid")
} | {
    "tuned": lambda: Linear.tuned(10),
    "other bounds": lambda: Linear(
        4, noise=0.5, norm_bound=3.0, feature_bound=2.0, mean_bound=5.0, regularization=0.3
    ),
    "certain": lambda: Linear(3, scale=0.0),
    "scale-free": lambda: ScaleFree(3),
    "scale-free, bounded": lambda: ScaleFree(3, mean_bound=2.0),
    "finite": lambda: Finite(3, FUNCTIONS),
    "finite, stated": lambda: Finite(3, FUNCTIONS, noise=1.0, mean_bound=1.0),
    "finite, the paper's set": lambda: Finite(3, FUNCTIONS, within="paper"),
    "finite, the paper's set, stated": lambda: Finite(
        3, FUNCTIONS, noise=1.0, mean_bound=1.0, within="paper"
    ),
    "drift, half-life": lambda: Drift(Linear(3), half_life=50),
    "drift, window": lambda: Drift(Linear(3), window=10),
    "drift, half-life, no units": lambda: Drift(ScaleFree(3), half_life=50),
    "drift, window, no units": lambda: Drift(Regression(3, Ridge(), copies=2), window=10),
    "kernel": lambda: Kernel(3),
    "kernel, few points": lambda: Kernel(2, points=7, kind="matern"),
    "kernel, features and place": lambda: Kernel(4, space=(2, 3), space_length=0.3),
    "mapped": lambda: Mapped(np.tanh, Linear(3, feature_bound=2.0), dim=3),
    "mapped, no units": lambda: Mapped(np.tanh, ScaleFree(3), dim=3),
    "nested": lambda: Nested(2),
    "mixture": lambda: Mixture(
        [Nested(2, centre=(c, 0.0, 0.0), scale=0.7) for c in (2.0, -2.0)], weights=(0.7, 0.3)
    ),
    "mixture, gaussian": lambda: Mixture(
        [Nested(3, family="gaussian", scale=s, noise=0.5, effects=(0.3,)) for s in (0.1, 2.0)]
    ),
    "beside": lambda: Beside(Nested(2).widened(2), (0.0, 0.3)),
    "beside, mixture": lambda: Beside(
        Mixture([Nested(2, scale=s) for s in (0.5, 3.0)]).widened(3), (0.1, 0.0, -1.0)
    ),
    "nested, fixed": lambda: Nested(5, variances="fixed"),
    "nested, gaussian": lambda: Nested(3, family="gaussian"),
    "nested, no groups": lambda: Nested(3, effects=()),
    "logistic": lambda: Logistic(3),
    "logistic, no intercept": lambda: Logistic(3, intercept=False),
    "poisson": lambda: Poisson(10),
    "regression, ridge": lambda: Regression(3, Ridge(), copies=2),
    "regression, stated": lambda: Regression(3, Ridge(), noise=1.0, mean_bound=1.0, copies=2),
    "regression, tree": lambda: Regression(2, TREE, copies=2),
    "ensemble": lambda: Ensemble(2, TREE, copies=3),
    "ensemble, stated": lambda: Ensemble(2, TREE, noise=1.0, mean_bound=1.0, copies=3),
}

# What `check_belief` is told of those beliefs that its defaults do not suit.
CHECKED: dict[str, dict[str, Any]] = {
    name: {"exact_online": False} for name in ("logistic", "logistic, no intercept", "poisson")
}

LATENCIES: dict[str, Latency] = {
    "additive": Additive(base=5.0, each=1.0),
    "additive, each its own": Additive(base=5.0, each=[1.0, 2.0, 0.0, 4.0]),
    "setup": Setup(base=12.0, setup=52.0, each=6.7),
    "setup, each its own": Setup(base=12.0, setup=52.0, each=[1.0, 2.0, 0.0, 4.0]),
    "by count": ByCount(base=1.0, by_count=[0.0, 4.0, 4.0, 8.0, 8.0]),
    "tree": Tree(
        base=1.0, parents=[-1, 0, 0], costs=[30.0, 5.0, 5.0], leaf=[1, 1, 2, -1], each=1.0
    ),
    "tour": Tour(
        base=1.0, points=[[3.0, 4.0], [0.0, 1.0], [2.0, 2.0], [1.0, 0.0]], each=0.5, start=[0, 0]
    ),
    "table": Table(subsets=[(), (0,), (0, 1), (0, 1, 2, 3)], times=[1.0, 3.0, 3.5, 4.0]),
}


ACTIONS: dict[str, Actions] = {
    "any subset": AnySubset(),
    "at most": AtMost(2),
    "none at all": AtMost(0),
    "exactly": Exactly(3),
    "one of": OneOf(),
    "grouped": Grouped(1),
    "grouped, by name": Grouped({"a": 1, "c": 0}),
    "listed": Listed([(), (0, 1), (2,), (1, 3, 4)]),
    "capped": Capped(3.0, AtMost(4)),
    "capped twice": Capped(3.0, Capped(2.6)),
}

INDICES: dict[str, Callable[[], Index]] = {
    "upper": Upper,
    "mean": Mean,
    "thompson": Thompson,
    "truth": lambda: Truth(first_feature),
    "ones": Ones,
}

RATES: dict[str, Callable[[], Rate]] = {
    "fixed": lambda: Fixed(0.2),
    "robbins-monro": RobbinsMonro,
    "robbins-monro, the paper's": lambda: RobbinsMonro(
        xi=1.0, initial=0.1, n_max=9, l_min=1.0, mean_bound=1.0
    ),
    "renewal": lambda: Renewal(initial=0.3),
    "restarting": Restarting,
    "memory root": lambda: MemoryRoot(size=3, initial=0.1),
    "budget": lambda: Budget(40.0, rounds=9, size=3),
    "budget, rounds without end": lambda: Budget(40.0),
}


class Square:
    """A latency as short as the protocol allows: waiting grows with the square of the count."""

    def seconds(self, chosen: BoolArray) -> float:
        return 2.0 + float(chosen.sum()) ** 2

    def check(self, n: int) -> None:
        pass


class Neighbours:
    """Actions as short as the protocol allows: no two arms that follow each other."""

    def allows(self, chosen: BoolArray, groups: Groups | None = None) -> bool:
        return not (chosen[1:] & chosen[:-1]).any()

    def check(self, n: int, groups: Groups | None = None) -> None:
        pass


class Doubtful:
    """An index as short as the protocol allows: half-way between mean and draw."""

    random = True
    needs_belief = True

    def estimates(
        self,
        belief: Belief | None,
        features: FloatArray,
        rng: Noise,
        groups: Groups | None = None,
    ) -> FloatArray:
        assert belief is not None
        drawn = belief.sample(features, rng(), groups)
        return np.asarray(0.5 * (belief.mean(features, groups) + drawn))


class Halfway:
    """A rate as short as the protocol allows: half-way to what the last visit brought a second."""

    def __init__(self) -> None:
        self.rate = self.before = 0.0

    def step(self, visit: Visit) -> float:
        return 0.5 * (self.before + visit.spent_reward / visit.spent_seconds)

    def value(self, score: Scoring) -> float:
        return self.rate

    def enter(self, visit: Visit, round: Round) -> None:
        self.before = self.rate
        self.update(visit)

    def update(self, visit: Visit) -> None:
        if not visit.blind:
            self.rate = self.step(visit)

    def state(self) -> dict[str, Any]:
        return {"rate": "halfway", "value": self.rate, "before": self.before}

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> Self:
        rate = cls()
        rate.rate, rate.before = state["value"], state["before"]
        return rate


class Average:
    """A belief as short as the protocol allows: every arm is worth the average reward so far."""

    dim = 2

    def __init__(self) -> None:
        self.total, self.count = 0.0, 0.0
        self.prior = (0.0, 0.0)

    def _check(self, features: FloatArray) -> None:
        if np.shape(features)[1:] != (self.dim,):
            raise ValueError(f"features must have {self.dim} columns")

    def mean(self, features: FloatArray, groups: Groups | None = None) -> FloatArray:
        self._check(features)
        return np.full(len(features), self.total / (1.0 + self.count))

    def _width(self) -> float:
        return float((1.0 + self.count) ** -0.5)

    def upper(self, features: FloatArray, groups: Groups | None = None) -> FloatArray:
        return self.mean(features) + self._width()

    def sample(
        self, features: FloatArray, rng: np.random.Generator, groups: Groups | None = None
    ) -> FloatArray:
        return self.mean(features) + self._width() * rng.standard_normal()

    def learn(
        self, features: FloatArray, rewards: FloatArray, groups: Groups | None = None
    ) -> None:
        self._check(features)
        if len(rewards) != len(features) or not np.isfinite(rewards).all():
            raise ValueError("rewards must be one finite number per row")
        self.total += float(np.sum(rewards))
        self.count += len(rewards)

    def refit(
        self, features: FloatArray, rewards: FloatArray, groups: Groups | None = None
    ) -> None:
        self.total, self.count = self.prior
        self.learn(features, rewards, groups)

    def forget(self, factor: float) -> None:
        if not 0.0 < factor <= 1.0:
            raise ValueError(f"factor is {factor}; it must be in (0, 1]")
        total, count = self.prior
        self.total = total + factor * (self.total - total)
        self.count = count + factor * (self.count - count)

    def settle(self) -> None:
        self.prior = (self.total, self.count)

    def state(self) -> dict[str, Any]:
        return {"total": self.total, "count": self.count, "prior": list(self.prior)}

    @classmethod
    def restore(cls, state: Mapping[str, Any] | str) -> Self:
        assert not isinstance(state, str)
        belief = cls()
        belief.total, belief.count = state["total"], state["count"]
        total, count = state["prior"]
        belief.prior = (total, count)
        return belief


class PerGroup(Average):
    """One that reads groups: each innermost one has an average of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: dict[str, Average] = {}

    def _of(self, label: str) -> Average:
        return self.groups.get(label, Average())

    def _labels(self, n: int, groups: Groups | None) -> list[str]:
        return [""] * n if groups is None else list(map(repr, innermost(check_groups(groups, n))))

    def mean(self, features: FloatArray, groups: Groups | None = None) -> FloatArray:
        self._check(features)
        one, labels = features[:1], self._labels(len(features), groups)
        return np.array([self._of(label).mean(one)[0] for label in labels])

    def upper(self, features: FloatArray, groups: Groups | None = None) -> FloatArray:
        self._check(features)
        one, labels = features[:1], self._labels(len(features), groups)
        return np.array([self._of(label).upper(one)[0] for label in labels])

    def sample(
        self, features: FloatArray, rng: np.random.Generator, groups: Groups | None = None
    ) -> FloatArray:
        mean = self.mean(features, groups)
        return mean + rng.standard_normal() * (self.upper(features, groups) - mean)

    def learn(
        self, features: FloatArray, rewards: FloatArray, groups: Groups | None = None
    ) -> None:
        super().learn(features, rewards, groups)
        for label, x, y in zip(self._labels(len(features), groups), features, rewards, strict=True):
            self.groups.setdefault(label, Average()).learn(x[None], np.array([y]))

    def refit(
        self, features: FloatArray, rewards: FloatArray, groups: Groups | None = None
    ) -> None:
        for one in self.groups.values():
            one.refit(features[:0], rewards[:0])
        super().refit(features, rewards, groups)

    def forget(self, factor: float) -> None:
        super().forget(factor)
        for one in self.groups.values():
            one.forget(factor)

    def settle(self) -> None:
        super().settle()
        for one in self.groups.values():
            one.settle()

    def state(self) -> dict[str, Any]:
        groups = {label: one.state() for label, one in self.groups.items()}
        return super().state() | {"groups": groups}

    @classmethod
    def restore(cls, state: Mapping[str, Any] | str) -> Self:
        assert not isinstance(state, str)
        belief = super().restore(state)
        for label, one in state["groups"].items():
            belief.groups[label] = Average.restore(one)
        return belief


class Greedy:
    """A policy written from nothing but the three verbs: the average reward, at a fixed rate."""

    def __init__(self) -> None:
        self.total, self.count = 0.0, 1
        self.commits: dict[str, list[bool]] = {}
        self.learned: dict[str, list[int]] = {}

    def decide(self, round: Round) -> Decision:
        estimates = np.full(round.n, self.total / self.count)
        rate = 0.1
        choice = best(rate, estimates, round.latency, round.actions, round.groups)
        assert round.key is not None
        return Decision(
            round=round,
            id=round.key,
            chosen=choice.chosen,
            seconds=choice.seconds,
            reward=choice.reward,
            gap=choice.gap,
            estimates=estimates,
            rate=rate,
        )

    def commit(
        self,
        decision: Decision,
        executed: npt.ArrayLike | None = None,
        seconds: float | None = None,
    ) -> None:
        if decision.id in self.commits:
            raise ValueError("committed already")
        done = decision.chosen if executed is None else np.asarray(executed)
        self.commits[str(decision.id)] = done.tolist()

    def learn(self, decision: Decision, arms: npt.ArrayLike, rewards: npt.ArrayLike) -> None:
        numbers, values = np.asarray(arms).tolist(), np.asarray(rewards, dtype=float)
        known = self.learned.get(str(decision.id), [])
        if len(numbers) != len(values) or not np.isfinite(values).all():
            raise ValueError("rewards must be one finite number per arm")
        if any(arm in known or not 0 <= arm < decision.round.n for arm in numbers):
            raise ValueError("arms must be new arms of the round")
        self.learned[str(decision.id)] = sorted(known + numbers)
        self.total += float(values.sum())
        self.count += len(values)

    def state(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def restore(cls, state: Mapping[str, Any] | str) -> Self:
        assert not isinstance(state, str)
        policy = cls()
        vars(policy).update(state)
        return policy
