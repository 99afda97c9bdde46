"""The default needs no units: of rewards, of times, of features."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

import coaf
from coaf.bandit.arrays import FloatArray
from coaf.bandit.policies.policy import Policy
from coaf.bandit.problem import Decision


@dataclass(frozen=True)
class Story:
    """Rounds of features, times and rewards that come late by so many rounds."""

    features: list[FloatArray]
    base: FloatArray
    each: list[FloatArray]
    rewards: list[FloatArray]
    setup: float = 3.0
    late: int = 0

    @property
    def dim(self) -> int:
        return int(self.features[0].shape[1])

    def rewarded(self, c: float) -> "Story":
        return replace(self, rewards=[c * y for y in self.rewards])

    def timed(self, c: float) -> "Story":
        each = [c * one for one in self.each]
        return replace(self, base=c * self.base, each=each, setup=c * self.setup)

    def column(self, i: int, c: float) -> "Story":
        scale = np.where(np.arange(self.dim) == i, c, 1.0)
        return replace(self, features=[X * scale for X in self.features])

    def shifted(self, i: int, c: float) -> "Story":
        shift = np.where(np.arange(self.dim) == i, c, 0.0)
        return replace(self, features=[X + shift for X in self.features])


def story(seed: int, rounds: int = 150, *, dim: int = 4, low: int = 2, high: int = 8) -> Story:
    rng = np.random.default_rng(seed)
    counts = rng.integers(low, high + 1, rounds).tolist()
    theta = rng.normal(size=dim)
    features = [rng.normal(size=(n, dim)) for n in counts]
    return Story(
        features,
        rng.uniform(4.0, 9.0, rounds),
        [rng.uniform(0.5, 2.0, n) for n in counts],
        [0.3 + X @ theta * 0.4 + 0.5 * rng.normal(size=len(X)) for X in features],
    )


def zero_at_first(seed: int) -> Story:
    """The second feature appears after 60 rounds."""
    one = story(seed)
    features = [X * [1.0, j >= 60, 1.0, 1.0] for j, X in enumerate(one.features)]
    return replace(one, features=features)


def with_constant(seed: int) -> Story:
    one = story(seed)
    return replace(one, features=[X * [1, 0, 1, 1] + [0, 0.7, 0, 0] for X in one.features])


def with_sum(seed: int) -> Story:
    one = story(seed, dim=3)
    return replace(one, features=[np.column_stack([X, X.sum(axis=1)]) for X in one.features])


def no_rewards_at_first(seed: int) -> Story:
    one = story(seed)
    return replace(one, rewards=[y * (j >= 40) for j, y in enumerate(one.rewards)])


def successes(seed: int) -> Story:
    one = story(seed)
    return replace(one, rewards=[(y > 1.0).astype(np.float64) for y in one.rewards])


def with_outliers(seed: int) -> Story:
    one = story(seed)
    rewards = [y * np.where(j in (20, 70), 1e5, 1.0) for j, y in enumerate(one.rewards)]
    return replace(one, rewards=rewards)


STORIES: dict[str, Callable[[int], Story]] = {
    "plain": story,
    "200 rounds late": lambda seed: replace(story(seed, 300), late=200),
    "no reward at first": no_rewards_at_first,
    "a feature appears": zero_at_first,
    "a constant feature": with_constant,
    "a sum of others": with_sum,
    "more features than rows": lambda seed: story(seed, 12, dim=30, high=3),
    "successes": successes,
    "outliers": with_outliers,
}

POLICIES: dict[str, Callable[[int], Policy]] = {
    "default": coaf.COAF,
    "thompson": lambda dim: coaf.COAF(dim, index=coaf.Thompson(), seed=2),
    "mean": lambda dim: coaf.COAF(dim, index=coaf.Mean()),
    "renewal": lambda dim: coaf.COAF(dim, rate=coaf.Renewal()),
    "robbins-monro": lambda dim: coaf.COAF(dim, rate=coaf.RobbinsMonro()),
    "memory": lambda dim: coaf.COAF(dim, rate=coaf.MemoryRoot(size=5)),
}


def decisions(policy: Policy, told: Story) -> Iterator[Decision]:
    """What the policy decides as it lives through the story."""
    waiting: list[tuple[Decision, FloatArray]] = []
    for j, X in enumerate(told.features):
        latency = coaf.Setup(float(told.base[j]), told.setup, told.each[j])
        decision = policy.decide(coaf.Round(X, latency, key=str(j)))
        yield decision
        policy.commit(decision)
        waiting.append((decision, told.rewards[j]))
        if len(waiting) > told.late:
            old, rewards = waiting.pop(0)
            arms = np.flatnonzero(old.chosen)
            policy.learn(old, arms, rewards[arms])


def variants(told: Story, c: float) -> Iterator[tuple[str, Story]]:
    yield "rewards", told.rewarded(c)
    yield "seconds", told.timed(c)
    for i in range(min(told.dim, 4)):
        yield f"feature {i}", told.column(i, c)


@pytest.mark.filterwarnings("ignore::coaf.AssumptionWarning")
@pytest.mark.parametrize("kind", STORIES)
@pytest.mark.parametrize("c", [2.0**-20, 0.5, 2.0**17])
def test_powers_of_two_change_no_bit(kind: str, c: float) -> None:
    told = STORIES[kind](1)
    for name, make in POLICIES.items():
        reference = list(decisions(make(told.dim), told))
        for what, other in variants(told, c):
            unit = c if what == "rewards" else 1.0
            for ours, theirs in zip(reference, decisions(make(told.dim), other), strict=True):
                assert np.array_equal(ours.chosen, theirs.chosen), (name, what, ours.id)
                if not ours.blind:
                    same = np.array_equal(unit * ours.estimates, theirs.estimates)
                    assert same, (name, what, ours.id)


def undecided(decision: Decision) -> bool:
    """Whether the best two subsets' gaps differ by less than 1e-9 of the larger term."""
    latency = decision.round.latency
    assert isinstance(latency, coaf.Setup)
    prices = decision.rate * np.asarray(latency.each)
    gains = decision.estimates - prices
    terms = max(np.abs(decision.estimates).max(), np.abs(prices).max())
    entering = np.maximum(gains, 0.0).sum() - decision.rate * latency.setup
    return bool(min(np.abs(gains).min(), abs(entering)) < 1e-9 * terms)


@pytest.mark.filterwarnings("ignore::coaf.AssumptionWarning")
@pytest.mark.parametrize("kind", STORIES)
@pytest.mark.parametrize("c", [1e-6, 0.3, 1e6])
def test_other_factors_change_no_decision_that_is_clear(kind: str, c: float) -> None:
    told = STORIES[kind](2)
    reference = list(decisions(coaf.COAF(told.dim), told))
    for what, other in variants(told, c):
        followed = 0
        for ours, theirs in zip(reference, decisions(coaf.COAF(told.dim), other), strict=True):
            if undecided(ours):
                break
            assert np.array_equal(ours.chosen, theirs.chosen), (what, ours.id)
            followed += 1
        assert followed > 0.8 * len(reference), what


@pytest.mark.filterwarnings("ignore::coaf.AssumptionWarning")
@pytest.mark.parametrize("kind", STORIES)
@pytest.mark.parametrize("shift", [-3.0, 1e3, 1e6])
def test_a_shift_of_a_feature_changes_estimates_by_its_rounding_alone(
    kind: str, shift: float
) -> None:
    """Features are near 1: a shift of s leaves them s·2⁻⁵³ of rounding. A thousand of it."""
    told = STORIES[kind](3)
    reference = list(decisions(coaf.COAF(told.dim), told))
    for i in range(min(told.dim, 4)):
        other = told.shifted(i, shift)
        for ours, theirs in zip(reference, decisions(coaf.COAF(told.dim), other), strict=True):
            if undecided(ours):
                break
            assert np.array_equal(ours.chosen, theirs.chosen), (i, ours.id)
            size = np.abs(ours.estimates).max()
            assert np.abs(ours.estimates - theirs.estimates).max() <= 1e3 * 2**-53 * (
                1.0 + abs(shift)
            ) * max(size, 1.0)


def test_until_a_reward_other_than_0_is_in_all_is_taken_and_nothing_enters_the_rate() -> None:
    told = no_rewards_at_first(4)
    policy = coaf.COAF(told.dim)
    for j, decision in enumerate(decisions(policy, told)):
        if decision.blind:
            assert decision.chosen.all()
            assert policy.rate == 0.0
            assert "nothing is known yet of how large rewards are" in decision.why
        else:
            assert j == 41
            break


def test_where_not_all_may_be_taken_the_least_known_come_first() -> None:
    policy, eye = coaf.COAF(3), np.eye(3)
    taken = []
    for j in range(6):
        decision = policy.decide(coaf.Round(eye, coaf.Additive(1.0, 1.0), coaf.OneOf(), key=str(j)))
        taken.append(int(decision.chosen.argmax()))
        policy.commit(decision)
        policy.learn(decision, [taken[-1]], [0.0])
    assert sorted(taken[:3]) == [0, 1, 2]
    assert sorted(taken[3:]) == [0, 1, 2]
