"""Late, partial and wrong feedback: what is accepted, and that refusing changes nothing."""

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest

from coaf.bandit.beliefs import Linear, Logistic, ScaleFree
from coaf.bandit.latency import Additive, Table
from coaf.bandit.policies.baselines import TakeAll
from coaf.bandit.policies.coaf import COAF
from coaf.bandit.problem import Decision, Round

ALL = np.ones(4, dtype=bool)


def patch(seed: int = 0, key: str | None = None) -> Round:
    features = np.random.default_rng(seed).uniform(0.1, 0.5, (4, 2))
    return Round(features, Additive(base=5.0, each=[0.0, 0.1, 0.2, 0.3]), key=key)


def text(policy: COAF) -> str:
    return json.dumps(policy.state())


def taken(policy: COAF, key: str | None = None) -> Decision:
    decision = policy.decide(patch(key=key))
    assert decision.chosen.all()
    return decision


@pytest.mark.parametrize("key", [None, "patch 7"])
@pytest.mark.parametrize(
    ("arms", "rewards", "mistake"),
    [
        ([0, 4], [1.0, 1.0], r"arms\[1\] is 4; the round has arms 0 to 3"),
        ([-1], [1.0], r"arms\[0\] is -1; the round has arms 0 to 3"),
        ([1, 2], [1.0, 1.0], r"arms\[1\] is 2, which was not executed"),
        ([1, 0, 1], [1.0, 1.0, 1.0], r"arms\[2\] is 1, whose reward is in already"),
        ([3], [1.0], r"arms\[0\] is 3, whose reward is in already"),
        ([0, 1], [1.0], r"rewards .*for 2 arms"),
        ([], [1.0], r"rewards .*for 0 arms"),
        ([0, 1], [1.0, math.nan], r"rewards\[1\] is nan; .* must be a finite number"),
        ([0], [math.inf], r"rewards\[0\] is inf"),
        ([0.5], [1.0], "arms must be a list of arm numbers"),
        ([True, False, False, False], [1.0] * 4, r"rewards has shape \(4,\) for 1 arms"),
        ([True, False], [1.0], "arms must be a list of arm numbers"),
        ([[0]], [[1.0]], "arms must be a list|rewards must have 1"),
        (0, 1.0, "arms must be a list|rewards must have 1"),
        ([0], ["good"], "rewards must be an array of numbers"),
    ],
)
def test_wrong_rewards_are_refused_and_change_nothing(
    key: str | None, arms: Any, rewards: Any, mistake: str
) -> None:
    policy = COAF(dim=2)
    decision = taken(policy, key)
    policy.commit(decision, executed=[True, True, False, True])
    policy.learn(decision, [3], [0.5])
    before = text(policy)
    with pytest.raises(ValueError, match=mistake):
        policy.learn(decision, arms, rewards)
    assert text(policy) == before


@pytest.mark.parametrize(
    ("arguments", "mistake"),
    [
        ({"executed": [True]}, "executed must be a boolean mask over 4 arms or their"),
        ({"executed": [0, 1, 2, 4]}, r"executed\[3\] is 4; the round has arms 0 to 3"),
        ({"seconds": -1.0}, "seconds is -1.0; it must be at least 0"),
        ({"seconds": math.nan}, "seconds is nan; it must be a finite number"),
        ({"seconds": "long"}, "seconds must be a number, got 'long'"),
    ],
)
def test_wrong_commits_are_refused_and_change_nothing(
    arguments: dict[str, Any], mistake: str
) -> None:
    policy = COAF(dim=2)
    first = taken(policy)
    policy.commit(first)
    decision, before = taken(policy), text(policy)
    with pytest.raises(ValueError, match=mistake):
        policy.commit(decision, **arguments)
    assert text(policy) == before


def test_executed_that_the_latency_does_not_know_changes_nothing() -> None:
    policy = COAF(dim=2)
    table = Table([(), (0,), (0, 1)], [1.0, 2.0, 2.5])
    rounds = [Round(np.full((2, 2), 0.3), table) for _ in range(2)]
    policy.commit(policy.decide(rounds[0]))
    decision, before = policy.decide(rounds[1]), text(policy)
    with pytest.raises(ValueError, match=r"lists no time for the subset \(1,\)"):
        policy.commit(decision, executed=[False, True])
    assert text(policy) == before
    policy.commit(decision)


@pytest.mark.parametrize("key", [None, "patch 7"])
@pytest.mark.parametrize("scored", [False, True])
def test_a_second_commit_is_refused(key: str | None, scored: bool) -> None:
    policy = COAF(dim=2)
    decision = taken(policy, key)
    policy.commit(decision)
    if scored:
        policy.learn(decision, [0, 1, 2, 3], [1.0, 0.0, 0.0, 1.0])
    before = text(policy)
    with pytest.raises(ValueError, match="closed" if scored else "committed already"):
        policy.commit(decision)
    assert text(policy) == before


def test_nothing_more_can_be_said_of_a_closed_decision() -> None:
    policy = COAF(dim=2)
    decision = taken(policy)
    policy.commit(decision, executed=[True, False, False, False])
    policy.learn(decision, [0], [1.0])
    with pytest.raises(ValueError, match="decision 0 is closed: all its rewards are in"):
        policy.learn(decision, [1], [1.0])
    policy.learn(decision, [], [])


def test_rewards_may_come_before_the_commit_for_chosen_arms() -> None:
    early, late = COAF(dim=2), COAF(dim=2)
    decision = taken(early)
    early.learn(decision, [2], [1.0])
    early.commit(decision)
    late.commit(decision)
    late.learn(decision, [2], [1.0])
    assert text(early) == text(late)


def test_not_for_arms_that_were_not_chosen() -> None:
    policy = COAF(belief=Linear.tuned(2))
    costly = Round(patch().features, Additive(5.0, [0.0, 0.0, 0.0, 1e3]))
    for _ in range(2):
        decision = policy.decide(costly)
        if decision.rate == 0.0:
            policy.commit(decision)
    assert decision.chosen.tolist() == [True, True, True, False]
    before = text(policy)
    with pytest.raises(ValueError, match=r"arms\[0\] is 3, which was not chosen, and nothing is"):
        policy.learn(decision, [3], [1.0])
    assert text(policy) == before


def test_a_commit_may_not_exclude_an_arm_whose_reward_is_in() -> None:
    policy = COAF(dim=2)
    decision = taken(policy)
    policy.learn(decision, [2], [1.0])
    before = text(policy)
    with pytest.raises(ValueError, match=r"executed lacks arm 2, whose reward is in"):
        policy.commit(decision, executed=[True, True, False, True])
    assert text(policy) == before
    policy.commit(decision, executed=[False, False, True, False])


def test_an_arm_executed_against_our_choice_is_learned() -> None:
    policy = COAF(belief=Linear.tuned(2))
    costly = Round(patch().features, Additive(5.0, [0.0, 0.0, 0.0, 1e3]))
    policy.commit(policy.decide(costly))
    decision = policy.decide(costly)
    assert not decision.chosen[3]
    policy.commit(decision, executed=ALL)
    rows = policy.state()["belief"]
    policy.learn(decision, [3], [1.0])
    assert policy.state()["belief"] != rows


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_scores_may_come_late_and_in_any_order(order: tuple[int, ...]) -> None:
    """Three committed rounds, scored arm by arm in any order: the same belief (to 1e-12)."""
    rewards = np.random.default_rng(3).random((3, 4))
    policy, reference = COAF(dim=2), COAF(dim=2)
    decisions = []
    for j in range(3):
        decisions.append(policy.decide(patch(j, key=f"patch {j}")))
        policy.commit(decisions[-1], executed=ALL)
        reference.commit(decisions[-1], executed=ALL)
        reference.learn(decisions[-1], range(4), rewards[j])
    for arm, j in itertools.product((2, 0, 3, 1), order):
        policy.learn(decisions[j], [arm], [rewards[j, arm]])
    a, b = (one.decide(patch(9)) for one in (policy, reference))
    np.testing.assert_allclose(a.estimates, b.estimates, rtol=1e-12)
    assert a.rate == b.rate  # rewards are no part of the rate, the estimates that chose are


def test_keyless_rounds_decided_before_the_commit_share_a_number() -> None:
    policy = COAF(dim=2)
    first, second = policy.decide(patch(0)), policy.decide(patch(1))
    assert first.id == second.id == 0
    policy.commit(first)
    before = text(policy)
    with pytest.raises(ValueError, match=r"open for another round .*need a key"):
        policy.commit(second)
    other = policy.decide(Round(np.zeros((1, 2)), Additive(1.0, 1.0)))
    assert other.id == 1
    assert text(policy) == before


def test_another_number_of_arms_under_the_same_number_is_noticed() -> None:
    policy = COAF(dim=2)
    first = policy.decide(patch(0))
    second = policy.decide(Round(np.full((2, 2), 0.1), Additive(1.0, 0.0)))
    policy.commit(first)
    with pytest.raises(ValueError, match=r"decision 0 is open for another round .*need a key"):
        policy.learn(second, [0], [1.0])


def test_rounds_with_keys_may_be_open_together() -> None:
    policy = COAF(dim=2)
    first, second = policy.decide(patch(0, "a")), policy.decide(patch(1, "b"))
    assert (first.id, second.id) == ("a", "b")
    policy.commit(second, executed=ALL)
    policy.commit(first, executed=ALL)
    policy.learn(first, [1], [0.5])
    policy.learn(second, [1], [0.5])
    policy.learn(first, [0, 2, 3], [0.5] * 3)
    again = policy.decide(patch(0, "a"))
    with pytest.raises(ValueError, match="key 'a' was used before"):
        policy.commit(again)


def test_numbers_count_commits() -> None:
    policy = COAF(dim=2)
    for count in range(3):
        decision = policy.decide(patch(count))
        assert decision.id == count
        policy.commit(decision)
    policy.commit(policy.decide(patch(0, key="named")))
    assert policy.decide(patch(5)).id == 4


class Model:
    """The rules in sets: what may be said of one decision, and when."""

    def __init__(self, chosen: set[int]) -> None:
        self.done, self.scored, self.committed = chosen, set[int](), False

    def commit(self, done: set[int]) -> bool:
        if self.committed or not self.scored <= done:
            return False
        self.done, self.committed = done, True
        return True

    def learn(self, arms: list[int]) -> bool:
        fresh = set(arms)
        if len(fresh) < len(arms) or not fresh <= self.done or fresh & self.scored:
            return False
        self.scored |= fresh
        return True


@pytest.mark.parametrize("seed", range(8))
def test_any_sequence_of_calls_follows_the_rules(seed: int) -> None:
    """Random commits and rewards, right and wrong, with restarts between: as the model says."""
    rng = np.random.default_rng(seed)
    policy = COAF(belief=Linear.tuned(2))
    policy.commit(policy.decide(patch(99, key="first")))
    rounds = [
        Round(patch(j).features, Additive(5.0, [0.0, 0.1, 9.0, 9.0]), key=f"{j}") for j in range(6)
    ]
    decisions = [policy.decide(one) for one in rounds]
    models = [Model(set(np.flatnonzero(one.chosen).tolist())) for one in decisions]
    assert any(0 < len(model.done) < 4 for model in models)
    accepted = 0
    for _ in range(150):
        j = int(rng.integers(6))
        arms = rng.integers(0, 4, int(rng.integers(1, 3))).tolist()
        before = text(policy)
        try:
            if rng.random() < 0.2:
                executed = None if rng.random() < 0.3 else rng.random(4) < 0.7
                mask = decisions[j].chosen if executed is None else executed
                allowed = models[j].commit(set(np.flatnonzero(mask).tolist()))
                policy.commit(decisions[j], executed=executed)
            else:
                allowed = models[j].learn(arms)
                policy.learn(decisions[j], arms, np.ones(len(arms)))
        except ValueError:
            assert not allowed
            assert text(policy) == before
        else:
            assert allowed
            accepted += 1
        if rng.random() < 0.2:
            policy = COAF.restore(text(policy))
    assert accepted >= 10
    waiting = {row["decision"] for row in policy.pending()}
    for j, model in enumerate(models):
        known = model.committed or bool(model.scored)
        closed = model.committed and model.scored == model.done
        assert (f"{j}" in waiting) == (known and not closed)


def test_a_decision_scored_before_its_commit_closes_with_the_last_reward() -> None:
    policy = COAF(dim=2)
    decision = taken(policy)
    policy.learn(decision, [1], [1.0])
    policy.commit(decision, executed=[True, True, False, False])
    assert len(policy.state()["ledger"]["open"]) == 1
    policy.learn(decision, [0], [1.0])
    assert policy.state()["ledger"]["open"] == []


class TestGivenUp:
    def test_what_will_never_come_is_missing_and_not_0(self) -> None:
        policy, other = COAF(dim=2), COAF(dim=2)
        decision = taken(policy)
        for one in (policy, other):
            one.commit(decision)
            one.learn(decision, [0, 2], [1.0, 0.5])
        policy.abandon(decision, [1])
        assert policy.pending() == [
            {
                "decision": 0,
                "committed": True,
                "commits_ago": 0,
                "seconds_ago": 0.0,
                "missing": 1,
                "arms": [3],
            }
        ]
        policy.abandon(decision)
        assert policy.pending() == []
        assert policy.given_up == 2
        assert policy.state()["belief"] == other.state()["belief"]
        with pytest.raises(
            ValueError, match="decision 0 is closed: all its rewards are in or given"
        ):
            policy.learn(decision, [1], [1.0])

    @pytest.mark.parametrize(
        ("arms", "mistake"),
        [
            ([4], r"arms\[0\] is 4; the round has arms 0 to 3"),
            ([1, 0], r"arms\[1\] is 0, of which no reward is to come"),
            ([2], r"arms\[0\] is 2, of which no reward is to come"),
            ([0.5], "arms must be a list of arm numbers"),
        ],
    )
    def test_what_is_not_due_cannot_be_given_up(self, arms: Any, mistake: str) -> None:
        policy = COAF(dim=2)
        decision = taken(policy)
        policy.commit(decision, executed=[True, True, False, True])
        policy.learn(decision, [0], [1.0])
        before = text(policy)
        with pytest.raises(ValueError, match=mistake):
            policy.abandon(decision, arms)
        assert text(policy) == before

    def test_before_the_commit(self) -> None:
        policy = COAF(dim=2)
        decision = taken(policy)
        policy.abandon(decision, [3])
        policy.commit(decision)
        policy.learn(decision, [0, 1, 2], [1.0, 0.0, 1.0])
        assert policy.pending() == []

    def test_it_expires_after_so_many_commits(self) -> None:
        policy = COAF(dim=2, expire_commits=2)
        first = taken(policy, "a")
        policy.commit(first)
        policy.learn(first, [0], [1.0])
        policy.commit(taken(policy, "b"))
        assert [row["decision"] for row in policy.pending()] == ["a", "b"]
        restored = COAF.restore(json.loads(text(policy)))
        for one in (policy, restored):
            one.commit(one.decide(patch(key="c")))
            assert [row["decision"] for row in one.pending()] == ["b", "c"]
            assert one.given_up == 3
            with pytest.raises(ValueError, match="key 'a' was used before"):
                one.learn(first, [1], [1.0])

    def test_it_expires_after_so_many_committed_seconds(self) -> None:
        policy = COAF(dim=2, expire_seconds=100.0)
        for j in range(4):
            policy.commit(policy.decide(patch(j, key=str(j))), seconds=40.0)
        assert [row["decision"] for row in policy.pending()] == ["1", "2", "3"]
        assert [row["seconds_ago"] for row in policy.pending()] == [80.0, 40.0, 0.0]

    def test_one_that_was_never_committed_does_not_keep_others(self) -> None:
        policy = COAF(dim=2, expire_commits=1)
        early = taken(policy, "early")
        policy.learn(early, [0], [1.0])
        policy.commit(taken(policy, "a"))
        policy.commit(policy.decide(patch(1, key="b")))
        assert [row["decision"] for row in policy.pending()] == ["early", "b"]

    def test_ten_thousand_rounds_of_which_one_reward_each_is_lost(self) -> None:
        """The state stays below a megabyte once they have expired, and small before."""
        policy = TakeAll(expire_commits=100)
        X, latency = np.zeros((500, 1)), Additive(1.0, 0.1)
        arms, rewards = np.arange(499), np.ones(499)
        for j in range(10_000):
            decision = policy.decide(Round(X, latency, key=f"round {j}"))
            policy.commit(decision)
            policy.learn(decision, arms, rewards)
        assert len(policy.pending()) == 100
        assert policy.given_up == 9900
        assert len(json.dumps(policy.state())) < 1_000_000
        waiting = policy.state()["ledger"]["open"]
        assert len(json.dumps(waiting)) < 100 * 300


class TestCorrected:
    """A score that was wrong: the belief is what it would be had it been right."""

    rewards = np.random.default_rng(0).random((6, 4))
    wrong = np.random.default_rng(1).random((6, 4))

    def lived(self, policy: COAF, rewards: Any) -> list[Decision]:
        decisions = []
        for j in range(6):
            decision = policy.decide(patch(j, key=str(j)))
            policy.commit(decision, executed=ALL)
            policy.learn(decision, [0, 1, 2, 3], rewards[j])
            decisions.append(decision)
        return decisions

    @pytest.mark.parametrize(("keep", "told"), [(False, True), (True, False), (True, True)])
    @pytest.mark.parametrize("belief", [Linear, Linear.tuned, ScaleFree])
    def test_it_equals_a_fresh_fit_and_leaves_the_rate(
        self, belief: Any, told: bool, keep: bool
    ) -> None:
        policy = COAF(belief=belief(2), keep_rows=keep)
        decisions = self.lived(policy, self.wrong)
        rate = policy.rate
        for j in (4, 1):
            before = self.wrong[j, [3, 0]] if told else None
            policy.correct(decisions[j], [3, 0], self.rewards[j, [3, 0]], previous=before)
        right = self.wrong.copy()
        for j in (4, 1):
            right[j, [3, 0]] = self.rewards[j, [3, 0]]
        fresh = belief(2)
        fresh.learn(np.concatenate([d.round.features for d in decisions]), right.ravel())
        X = patch(9).features
        assert policy.belief is not None
        np.testing.assert_allclose(policy.belief.mean(X), fresh.mean(X), rtol=1e-9)
        np.testing.assert_allclose(policy.belief.upper(X), fresh.upper(X), rtol=1e-9)
        assert policy.rate == rate
        restored = COAF.restore(json.loads(text(policy)))
        if keep:
            restored.correct(decisions[0], [1], [0.3])
            policy.correct(decisions[0], [1], [0.3])
            assert text(restored) == text(policy)

    def test_any_belief_can_where_rows_are_kept(self) -> None:
        policy, fresh = COAF(belief=Logistic(2), keep_rows=True), Logistic(2)
        coins = (self.wrong > 0.5).astype(float)
        decisions = self.lived(policy, coins)
        policy.correct(decisions[2], [1], [1.0 - coins[2, 1]])
        coins[2, 1] = 1.0 - coins[2, 1]
        fresh.refit(np.concatenate([d.round.features for d in decisions]), coins.ravel())
        X = patch(9).features
        assert policy.belief is not None
        np.testing.assert_allclose(policy.belief.mean(X), fresh.mean(X), rtol=1e-9)

    @pytest.mark.parametrize(
        ("settings", "call", "mistake"),
        [
            ({}, {"arms": [0], "rewards": [1.0]}, "give previous, .* or use keep_rows=True"),
            (
                {"belief": "logistic"},
                {"arms": [0], "rewards": [1.0], "previous": [0.0]},
                "Logistic cannot take a row back: use keep_rows=True",
            ),
            (
                {"keep_rows": True},
                {"arms": [0], "rewards": [1.0], "previous": [9.0]},
                r"arms\[0\] is 0, for which no reward of 9.0 was learned",
            ),
            ({"keep_rows": True}, {"arms": [7], "rewards": [1.0]}, "the round has arms 0 to 3"),
            ({"keep_rows": True}, {"arms": [0], "rewards": [math.nan]}, r"rewards\[0\] is nan"),
            ({"keep_rows": True}, {"arms": [0, 1], "rewards": [1.0]}, "for 2 arms"),
            ({"keep_rows": True}, {"arms": [0, 0], "rewards": [1.0, 0.5]}, "no reward was learned"),
        ],
    )
    def test_what_cannot_be_corrected(self, settings: Any, call: Any, mistake: str) -> None:
        belief: Any = Logistic(2) if settings.pop("belief", None) else ScaleFree(2)
        policy = COAF(belief=belief, **settings)
        decisions = self.lived(policy, np.round(self.wrong))
        before = text(policy)
        with pytest.raises(ValueError, match=mistake):
            policy.correct(decisions[0], **call)
        assert text(policy) == before

    def test_a_reward_that_is_not_in_yet_cannot_be_corrected(self) -> None:
        policy = COAF(dim=2, keep_rows=True)
        decision = taken(policy)
        policy.commit(decision)
        policy.learn(decision, [0], [1.0])
        with pytest.raises(ValueError, match=r"arms\[0\] is 1, whose reward is not in yet"):
            policy.correct(decision, [1], [0.5])
