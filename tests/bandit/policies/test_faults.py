"""A belief that fails leaves the policy usable, and the policy says so."""

import json
import math
from typing import Any

import numpy as np
import pytest

import coaf
from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.linear import Linear
from coaf.bandit.groups import Groups
from coaf.bandit.policies.policy import Policy
from coaf.bandit.problem import Decision, Round
from coaf.bandit.rates.rate import Rate

X = np.random.default_rng(0).uniform(-0.4, 0.4, (4, 3))
EVERY = np.ones(4, dtype=np.bool_)


class Faulty(Linear):
    """A belief that does as it is told: raises, or gives other estimates."""

    wrong: Any = None  # an error to raise, or a function of the estimates
    deaf: Exception | None = None  # an error to raise when there is something to learn

    def _spoilt(self, estimates: FloatArray) -> FloatArray:
        if isinstance(self.wrong, Exception):
            raise self.wrong
        return estimates if self.wrong is None else self.wrong(estimates)

    def mean(self, features: Any, groups: Groups | None = None) -> FloatArray:
        return self._spoilt(super().mean(features))

    def upper(self, features: Any, groups: Groups | None = None) -> FloatArray:
        return self._spoilt(super().upper(features))

    def sample(
        self, features: Any, rng: np.random.Generator, groups: Groups | None = None
    ) -> FloatArray:
        return self._spoilt(super().sample(features, rng))

    def learn(self, features: Any, rewards: Any, groups: Groups | None = None) -> None:
        if self.deaf is not None:
            raise self.deaf
        super().learn(features, rewards)


def patch(**more: Any) -> Round:
    return Round(X, coaf.Setup(base=2.0, setup=1.0, each=0.5), **more)


def put(index: int, value: float) -> Any:
    def change(estimates: FloatArray) -> FloatArray:
        changed = estimates.copy()
        changed[index] = value
        return changed

    return change


def started(belief: Faulty, **settings: Any) -> coaf.COAF:
    """A policy that has learned rewards of average 0.25."""
    policy = coaf.COAF(belief=belief, **settings)
    decision = policy.decide(patch())
    policy.commit(decision, executed=EVERY)
    policy.learn(decision, [0, 1], [1.0, 0.0])
    policy.learn(decision, [2, 3], [0.0, 0.0])
    return policy


def decide(policy: Policy, one: Round, warning: str) -> Decision:
    with pytest.warns(coaf.BeliefWarning, match=warning) as warned:
        decision = policy.decide(one)
    assert len(warned) == 1
    assert str(warned[0].message) == decision.fault
    assert decision.why.endswith(decision.fault)
    assert np.isfinite(decision.estimates).all()
    return decision


RATES: list[Any] = [
    coaf.Renewal,
    coaf.RobbinsMonro,
    coaf.MemoryRoot,
    lambda: coaf.Fixed(0.1),
]


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("index", [coaf.Upper(), coaf.Mean(), coaf.Thompson()])
@pytest.mark.parametrize(
    ("wrong", "warning"),
    [
        (ZeroDivisionError("by zero"), r"Faulty raised ZeroDivisionError \(by zero\): 0.25, the"),
        (np.linalg.LinAlgError("singular"), r"raised LinAlgError \(singular\): .* 4 of 4"),
        (put(1, math.nan), "estimates arm 1 at nan: 0.25, the average reward so far, .* 1 of 4"),
        (put(2, -math.inf), "estimates arm 2 at -inf"),
        (put(0, 1e300), r"estimates arm 0 at 1e\+300"),
        (lambda estimates: estimates[:2], r"gave estimates of shape \(2,\) for 4 arms: .* 4 of 4"),
        (lambda estimates: estimates[:, None], r"gave estimates of shape \(4, 1\) for 4 arms"),
        (lambda estimates: None, "raised AttributeError"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_policy_goes_on_with_the_average_reward(
    rate: Any, index: Any, wrong: Any, warning: str
) -> None:
    made: Rate = rate()
    belief = Faulty(3)
    policy = started(belief, rate=made, index=index, draws=3)
    before = json.dumps(policy.state())
    healthy = policy.decide(patch())
    assert healthy.fault == ""
    belief.wrong = wrong
    faulty = decide(policy, patch(), warning)
    kept = faulty.estimates == healthy.estimates
    assert (faulty.estimates[~kept] == 0.25).all()
    assert kept.sum() in (0, 3)
    assert json.dumps(policy.state()) == before
    with np.errstate(all="raise"):
        policy.commit(faulty)
    belief.wrong = None
    assert math.isfinite(policy.rate)
    recovered = policy.decide(patch())
    assert recovered.fault == ""
    assert math.isfinite(recovered.gap)


def test_before_any_reward_the_average_is_nothing() -> None:
    belief = Faulty(3)
    belief.wrong = KeyError("weights")
    decision = decide(coaf.COAF(belief=belief), patch(), r"KeyError \('weights'\): 0, the average")
    assert decision.estimates.tolist() == [0.0] * 4


def test_remembered_rounds_are_scored_whatever_happens() -> None:
    belief = Faulty(3)
    policy = started(belief, rate=coaf.MemoryRoot())
    belief.wrong = RuntimeError("gone")
    with pytest.warns(coaf.BeliefWarning, match="Faulty raised RuntimeError"):
        rate = policy.rate
    # Four arms at 0.25 for 2 + 1 + 4·0.5 seconds.
    assert rate == pytest.approx(1.0 / 5.0)


def test_a_threshold_goes_on_too() -> None:
    belief = Faulty(3)
    belief.wrong = put(3, math.nan)
    decision = decide(coaf.Threshold(-1.0, belief=belief), patch(), "estimates arm 3 at nan")
    assert decision.chosen.all()


def test_what_the_caller_did_wrong_is_an_error() -> None:
    policy = started(Faulty(3))
    with pytest.raises(ValueError, match="features have 2 columns, but this belief has dim=3"):
        policy.decide(Round(X[:, :2], coaf.Additive(1.0, 1.0)))
    with pytest.raises(ValueError, match="beyond feature_bound=1"):
        policy.decide(Round(10.0 * X, coaf.Additive(1.0, 1.0)))


def test_an_oracle_that_fails_is_an_error() -> None:
    """It is no belief: nothing stands in for the truth."""
    policy = coaf.COAF(index=coaf.Truth(lambda features: features[:, 7]))
    with pytest.raises(IndexError):
        policy.decide(patch())


@pytest.mark.parametrize("error", [MemoryError("full"), np.linalg.LinAlgError("singular")])
def test_rows_that_were_not_learned_can_be_given_again(error: Exception) -> None:
    belief = Faulty(3)
    policy, other = coaf.COAF(belief=belief), coaf.COAF(belief=Faulty(3))
    decision = policy.decide(patch())
    for one in (policy, other):
        one.commit(decision, executed=EVERY)
    before = json.dumps(policy.state())
    belief.deaf = error
    with pytest.raises(
        coaf.BeliefError, match=r"Faulty.learn raised .*: the 2 rows were not"
    ) as at:
        policy.learn(decision, [0, 1], [1.0, 0.5])
    assert at.value.__cause__ is error
    assert json.dumps(policy.state()) == before
    assert policy.decide(patch()).fault == ""
    with pytest.raises(coaf.BeliefError, match=r"Faulty.refit raised"):
        policy.refit(X, np.ones(4))
    assert json.dumps(policy.state()) == before
    belief.deaf = None
    for one in (policy, other):
        one.learn(decision, [0, 1], [1.0, 0.5])
    assert json.dumps(policy.state()) == json.dumps(other.state())


def test_rewards_that_make_no_sense_are_still_the_callers_mistake() -> None:
    belief = Faulty(3)
    belief.deaf = ValueError("rewards must be 0 or 1")
    policy = coaf.COAF(belief=belief)
    decision = policy.decide(patch())
    policy.commit(decision, executed=EVERY)
    with pytest.raises(ValueError, match="rewards must be 0 or 1"):
        policy.learn(decision, [0], [0.5])


def test_the_average_follows_refits_and_restarts() -> None:
    belief = Faulty(3)
    policy = started(belief)
    policy.refit(X, [0.5, 0.5, 1.0, 1.0])
    policy = coaf.COAF.restore(json.dumps(policy.state()), belief=Faulty)
    assert isinstance(policy.belief, Faulty)
    policy.belief.wrong = OSError("no disk")
    decision = decide(policy, patch(), "0.75, the average reward so far")
    assert decision.estimates.tolist() == [0.75] * 4
