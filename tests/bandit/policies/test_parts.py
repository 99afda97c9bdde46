"""Arms that bring several rewards: the shots of a hole, each learned as it arrives."""

import json

import numpy as np
import pytest

from coaf.bandit.beliefs.linear import Linear
from coaf.bandit.index import Mean, Truth
from coaf.bandit.latency import Additive, Setup
from coaf.bandit.policies.coaf import COAF
from coaf.bandit.problem import Decision, Round
from coaf.bandit.rates.memory_root import MemoryRoot, load_round, save_round

ALL = np.ones(3, dtype=np.bool_)


def policy() -> COAF:
    return COAF(belief=Linear(2), index=Mean(), rate=MemoryRoot())


def decided(learner: COAF, parts: object = (3, 1, 2)) -> Decision:
    X = [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]
    decision = learner.decide(Round(X, Setup(1.0, 1.0, 1.0), key="p", parts=parts))  # type: ignore[arg-type]
    learner.commit(decision, executed=ALL)
    return decision


def test_each_part_is_learned_as_a_reward_of_its_own() -> None:
    learner, plain = policy(), policy()
    decision = decided(learner)
    learner.learn(decision, [0, 1], [1.0, 0.0])
    learner.learn(decision, [0, 2, 0], [0.5, 1.0, 0.0])  # two parts of one arm together
    learner.learn(decision, [2], [0.25])
    rows = decision.round.features[[0, 1, 0, 2, 0, 2]]
    plain.refit(rows, [1.0, 0.0, 0.5, 1.0, 0.0, 0.25])
    X = np.eye(2)
    assert learner.belief is not None
    assert plain.belief is not None
    assert learner.belief.mean(X) == pytest.approx(plain.belief.mean(X), abs=1e-12)


def test_no_part_is_learned_twice() -> None:
    learner = policy()
    decision = decided(learner)
    learner.learn(decision, [0, 0, 1], [1.0, 1.0, 1.0])
    before = json.dumps(learner.state())
    for arms in ([1], [0, 0], [2, 2, 2], [0, 2, 0]):
        with pytest.raises(ValueError, match="whose reward is in already, or given up"):
            learner.learn(decision, arms, [1.0] * len(arms))
        assert json.dumps(learner.state()) == before, "an error changes nothing"
    learner.learn(decision, [0, 2], [1.0, 1.0])
    with pytest.raises(ValueError, match=r"arms\[0\] is 0, whose reward is in"):
        learner.learn(decision, [0], [1.0])
    learner.learn(decision, [2], [1.0])
    with pytest.raises(ValueError, match="'p' was used before, and its decision is closed"):
        learner.learn(decision, [2], [1.0])


def test_what_is_wrong_with_a_part_is_named() -> None:
    learner = policy()
    X = [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]
    decision = learner.decide(Round(X, Additive(1.0, 1.0), key="p", parts=2))
    learner.commit(decision, executed=[True, True, False])
    before = json.dumps(learner.state())
    for arms, rewards, wrong in (
        ([0, 2], [1.0, 1.0], r"arms\[1\] is 2, which was not executed"),
        ([0, 3], [1.0, 1.0], r"arms\[1\] is 3; the round has arms 0 to 2"),
        ([-1], [1.0], r"arms\[0\] is -1; the round has arms"),
        ([0, 0], [1.0, np.nan], r"rewards\[1\] is nan"),
    ):
        with pytest.raises(ValueError, match=wrong):
            learner.learn(decision, arms, rewards)
    assert json.dumps(learner.state()) == before


def test_parts_may_come_before_the_commit() -> None:
    learner = COAF(belief=Linear(1), index=Mean(), rate=MemoryRoot())
    learner.refit([[1.0]] * 9, [1.0] * 9)
    decision = learner.decide(Round([[1.0], [0.9]], Additive(1.0, 0.01), key="p", parts=[2, 2]))
    assert decision.chosen.all()
    learner.learn(decision, [0], [1.0])
    with pytest.raises(ValueError, match=r"executed lacks arm 0, whose reward is in"):
        learner.commit(decision, executed=[False, True])
    learner.commit(decision, executed=[True, False])
    learner.learn(decision, [0], [1.0])
    with pytest.raises(ValueError, match="is closed"):
        learner.learn(decision, [0], [1.0])


def test_estimates_are_sums_over_parts() -> None:
    """An arm of three parts is worth three times as much; so is a remembered one."""
    truth = Truth(lambda X: X[:, 0])
    X, each = [[0.2], [0.2], [0.3]], 1.0
    learner = COAF(index=truth, rate=MemoryRoot())
    decision = learner.decide(Round(X, Additive(1.0, each), key="a", parts=[3, 1, 1]))
    assert decision.estimates == pytest.approx([0.6, 0.2, 0.3])
    assert decision.reward == pytest.approx(decision.estimates[decision.chosen].sum())
    learner.commit(decision)
    whole = COAF(index=truth, rate=MemoryRoot())
    whole.commit(whole.decide(Round([[0.6], [0.2], [0.3]], Additive(1.0, each), key="a")))
    assert learner.rate == pytest.approx(whole.rate)
    assert learner.rate > 0.0


def test_saved_and_restored_with_parts_to_come() -> None:
    learner = policy()
    decision = decided(learner)
    learner.learn(decision, [0, 2], [1.0, 0.0])
    again = COAF.restore(json.loads(json.dumps(learner.state())))
    for one in (learner, again):
        one.learn(decision, [0, 0, 1], [1.0, 0.0, 1.0])
        with pytest.raises(ValueError, match="reward is in already"):
            one.learn(decision, [0], [1.0])
        one.learn(decision, [2], [1.0])
    assert again.state() == learner.state()
    old = learner.state()
    old["ledger"]["open"] = [row[:5] for row in old["ledger"]["open"]]
    assert COAF.restore(old).rate == learner.rate


def test_rounds_are_saved_with_their_parts() -> None:
    made = Round([[1.0], [2.0]], Additive(1.0, 1.0), parts=[2, 1])
    loaded = load_round(json.loads(json.dumps(save_round(made))))
    assert loaded.parts is not None
    assert loaded.parts.tolist() == [2, 1]
    old = {name: value for name, value in save_round(made).items() if name != "parts"}
    assert load_round(old).parts is None
    assert Round([[1.0]] * 2, Additive(1.0, 1.0), parts=1).parts is None, "one each: nothing to say"


@pytest.mark.parametrize("parts", [0, -1, 1.5, [1, 2, 3], [1, 0], [[1, 1]], True, "2"])
def test_parts_that_cannot_be(parts: object) -> None:
    with pytest.raises(ValueError, match="whole numbers above 0, one or 2"):
        Round([[1.0], [2.0]], Additive(1.0, 1.0), parts=parts)  # type: ignore[arg-type]
