"""Deciding by chance: the rule, its probabilities, and what they are good for."""

import itertools
from typing import Any

import numpy as np
import pytest

import coaf
from coaf.bandit.actions import Actions
from coaf.bandit.checks.policies import check_policy
from coaf.bandit.policies.explore import chance
from coaf.bandit.policies.policy import Policy

GROUPS = np.array(["a", "a", "b", "c", "c"])
ACTIONS: dict[str, Actions] = {
    "any": coaf.AnySubset(),
    "at most": coaf.AtMost(3),
    "at most none": coaf.AtMost(0),
    "exactly": coaf.Exactly(2),
    "exactly none": coaf.Exactly(0),
    "one of": coaf.OneOf(),
    "grouped": coaf.Grouped({"a": 1, "b": 0}),
    "grouped, none": coaf.Grouped(0),
    "listed": coaf.Listed([(0, 1), (1, 2, 3), (), (0, 1)]),
}


@pytest.mark.parametrize("name", ACTIONS)
def test_the_probabilities_are_those_of_the_draw(name: str) -> None:
    """All subsets: they add up to 1, agree with those of arms, and with 20,000 draws (5 sd)."""
    actions, draws = ACTIONS[name], 20_000
    rule = chance(actions, 5, GROUPS)
    every = [np.array(bits) for bits in itertools.product((False, True), repeat=5)]
    chances = np.array([rule.of_subset(chosen) for chosen in every])
    assert chances.sum() == pytest.approx(1.0)
    assert all(actions.allows(c, GROUPS) for c, p in zip(every, chances, strict=True) if p > 0.0)
    np.testing.assert_allclose(np.array(every).T @ chances, rule.of_arms(), atol=1e-12)
    rng = np.random.default_rng(0)
    drawn = np.array([rule.take(rng) for _ in range(draws)])
    spread = 5.0 * np.sqrt(chances * (1.0 - chances) / draws)
    seen = np.array([(drawn == chosen).all(axis=1).mean() for chosen in every])
    assert (np.abs(seen - chances) <= spread).all()


def test_a_round_without_arms() -> None:
    assert chance(coaf.AnySubset(), 0).take(np.random.default_rng(0)).shape == (0,)


@pytest.mark.parametrize("actions", [coaf.Capped(9.0), "mine"])
def test_other_actions_are_refused(actions: Any) -> None:
    class Mine(coaf.AnySubset):
        pass

    with pytest.raises(ValueError, match="there is no rule of chance for"):
        chance(Mine() if actions == "mine" else actions, 3)


def rounds(count: int, actions: Actions = coaf.AnySubset()) -> list[coaf.Round]:  # noqa: B008
    return [
        coaf.Round(
            np.random.default_rng(j).uniform(-0.7, 0.7, size=(5, 2)),
            coaf.Setup(4.0, 2.0, 1.0),
            actions,
            key=str(j),
        )
        for j in range(count)
    ]


def taught() -> coaf.COAF:
    policy = coaf.COAF(2)
    X = np.random.default_rng(1).uniform(-0.7, 0.7, size=(60, 2))
    policy.refit(X, 0.1 + X @ [0.5, -0.3])
    for one in rounds(1):
        policy.commit(policy.decide(one))
    return policy


class TestExplore:
    def test_it_keeps_the_contract_of_policies(self) -> None:
        for inner in (coaf.COAF(3), coaf.Threshold(0.2, dim=3), coaf.TakeAll()):
            check_policy(coaf.Explore(inner, 0.3, seed=2))

    def test_its_share_is_decided_by_chance_and_the_rest_by_the_policy(self) -> None:
        policy, share = taught(), 0.25
        explore = coaf.Explore(policy, share, seed=3)
        explored = 0
        for one in rounds(400)[1:]:
            decision, own = explore.decide(one), policy.decide(one)
            if decision.instead is not None:
                explored += 1
                assert decision.chosen.sum() == 1
                assert decision.why.startswith("Take 1 of 5, by chance, to find out; else: Take")
            else:
                np.testing.assert_array_equal(decision.chosen, own.chosen)
            assert decision.propensities is not None
            expected = (1.0 - share) * own.chosen + share / 5.0
            np.testing.assert_allclose(decision.propensities, expected)
            same = np.array_equal(decision.chosen, own.chosen)
            single = decision.chosen.sum() == 1
            assert decision.propensity == pytest.approx((1.0 - share) * same + share / 5.0 * single)
        assert abs(explored - 399 * share) < 5.0 * np.sqrt(399 * share * (1.0 - share))

    def test_inverse_weights_are_unbiased(self) -> None:
        """The average of every arm's reward, estimated from what was taken: 5 standard errors."""
        explore, means, errors = coaf.Explore(taught(), 0.5, seed=4), [], []
        for one in rounds(2000)[1:]:
            decision = explore.decide(one)
            assert decision.propensities is not None
            y = 0.1 + one.features @ [0.5, -0.3]
            weighted = np.where(decision.chosen, y / decision.propensities, 0.0)
            errors.append(float((weighted - y).mean()))
            means.append(y.mean())
        spread = np.std(errors) / np.sqrt(len(errors))
        assert abs(np.mean(errors)) < 5.0 * spread

    def test_chance_is_what_was_executed_and_no_sample_of_the_bellman_equation(self) -> None:
        chosen = coaf.COAF(belief=coaf.Linear(2), rate=coaf.RobbinsMonro())
        lucky = coaf.Explore(
            coaf.COAF(belief=coaf.Linear(2), rate=coaf.RobbinsMonro()), 1.0, seed=5
        )
        for one in rounds(20):
            decision = lucky.decide(one)
            lucky.commit(decision)
            chosen.commit(chosen.decide(one))
            assert lucky.rate == chosen.rate
            arm = np.flatnonzero(decision.chosen)
            lucky.learn(decision, arm, [0.5])
            chosen.belief.learn(one.features[arm], np.array([0.5]))  # type: ignore[union-attr]

    def test_follow_ups_are_the_policys_own(self) -> None:
        explore = coaf.Explore(coaf.COAF(belief=coaf.Linear(2)), 1.0)
        entry = explore.decide(rounds(1)[0])
        assert entry.instead is not None
        explore.commit(entry)
        rest = coaf.Round(np.eye(2), coaf.Additive(0.0, 0.1), follows=entry, key="rest")
        assert explore.decide(rest).instead is None

    def test_a_random_policy_has_no_propensity_of_subsets(self) -> None:
        for draws in (0, 30):
            inner = coaf.COAF(belief=coaf.Linear(2), index=coaf.Thompson(), draws=draws)
            decision = coaf.Explore(inner, 0.2).decide(rounds(1)[0])
            assert decision.propensity is None
            assert (decision.propensities is None) == (draws == 0)

    def test_in_a_comparison(self) -> None:
        world = coaf.worlds.Synthetic(3, seed=1)
        policies: dict[str, Policy] = {"explore": coaf.Explore(coaf.COAF(3), 0.1)}
        result = coaf.compare(policies, world, rounds=30, replicates=2)
        assert bool(np.isfinite(result.paired).all())

    @pytest.mark.parametrize("share", [-0.1, 1.1, np.nan])
    def test_a_share_is_a_probability(self, share: float) -> None:
        with pytest.raises(ValueError, match="share is"):
            coaf.Explore(coaf.COAF(2), share)
