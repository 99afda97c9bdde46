"""What users do that nobody expects: it works, or it is refused with nothing changed."""

import json
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import pytest

import coaf
from coaf.bandit.arrays import BoolArray, FloatArray
from coaf.bandit.checks import check_belief, check_policy
from coaf.bandit.groups import Groups
from coaf.bandit.problem import Decision

ADDITIVE = coaf.Additive(base=5.0, each=1.0)
ANY = coaf.AnySubset()


def rounds(count: int, n: int = 4, dim: int = 3) -> list[coaf.Round]:
    X = np.random.default_rng(0).normal(size=(count, n, dim)) / 4.0
    return [coaf.Round(x, ADDITIVE) for x in X]


class Counting:
    """A latency that answers as NumPy does."""

    def seconds(self, chosen: BoolArray) -> Any:
        return 5 + chosen.sum()

    def check(self, n: int) -> None:
        pass


class Broken(Counting):
    def seconds(self, chosen: BoolArray) -> Any:
        return np.nan


def test_a_latency_may_answer_with_numpy_numbers() -> None:
    policy = coaf.COAF(3)
    decision = policy.decide(coaf.Round(np.eye(3), Counting()))
    policy.commit(decision)
    assert type(decision.seconds) is float
    assert coaf.COAF.restore(json.dumps(policy.state())).rate == policy.rate


def test_a_latency_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match=r"seconds.* is nan"):
        coaf.Round(np.eye(3), Broken())


def test_rewards_of_another_round_with_the_same_number_are_refused() -> None:
    policy, (one, two) = coaf.COAF(3), rounds(2)
    first, second = policy.decide(one), policy.decide(two)
    assert first.id == second.id
    policy.commit(first)
    before = policy.state()
    with pytest.raises(ValueError, match="open for another round"):
        policy.learn(second, [0], [1.0])
    assert policy.state() == before
    restored = coaf.COAF.restore(json.dumps(before))
    with pytest.raises(ValueError, match="open for another round"):
        restored.learn(second, [0], [1.0])
    restored.learn(first, [0], [1.0])


def test_a_decision_cannot_be_changed() -> None:
    policy = coaf.COAF(belief=coaf.Linear(3), index=coaf.Thompson(), draws=5)
    decision = policy.decide(rounds(1)[0])
    for array in (decision.chosen, decision.estimates, decision.propensities):
        assert array is not None
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    again = policy.decide(rounds(1)[0])
    assert decision != again
    assert not decision == again  # noqa: SIM201 (both operators are meant)


def test_executing_just_what_was_chosen_makes_no_difference() -> None:
    X = np.random.default_rng(1).normal(size=(30, 3)) / 4.0
    plain, said = coaf.COAF(3), coaf.COAF(3)
    for policy in (plain, said):
        decision = policy.decide(coaf.Round(X, ADDITIVE))
        policy.commit(decision, None if policy is plain else decision.chosen.tolist())
    assert plain.rate == said.rate


def test_measured_seconds_stand_in_for_a_subset_the_table_does_not_list() -> None:
    table = coaf.Table([(), (0,), (0, 1)], [1.0, 2.0, 3.0])
    policy = coaf.COAF(belief=coaf.Linear.tuned(3), rate=coaf.Renewal())
    decision = policy.decide(coaf.Round(np.eye(3), table))
    other = [False, False, True]
    with pytest.raises(ValueError, match="lists no time"):
        policy.commit(decision, other)
    policy.commit(decision, other, seconds=4.0)
    assert policy.rate == decision.estimates[2] / 4.0


@pytest.mark.parametrize("seconds", [0.0, 1e-320])
def test_an_entry_round_that_took_no_time_is_refused(seconds: float) -> None:
    policy = coaf.COAF(3)
    decision = policy.decide(rounds(1)[0])
    with pytest.raises(ValueError, match="an entry round takes time"):
        policy.commit(decision, seconds=seconds)
    policy.commit(decision)


def test_a_threshold_can_be_fitted_before_it_has_learned() -> None:
    policy = coaf.Threshold(0.35)
    policy.refit(np.eye(2), [1.0, 0.0])
    assert policy.belief is not None
    assert policy.belief.dim == 2


def test_a_follow_up_may_name_the_decision_itself() -> None:
    policy = coaf.COAF(3)
    decision = policy.decide(rounds(1)[0])
    policy.commit(decision)
    rest = coaf.Round(np.eye(3), coaf.Additive(base=0.0, each=1.0), follows=decision)
    assert policy.decide(rest).rate == decision.rate


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rate": coaf.Renewal}, "rate is"),
        ({"rate": 0.5}, "rate is 0.5"),
        ({"index": "upper"}, "index is 'upper'"),
        ({"index": coaf.Thompson}, "index is"),
    ],
)
def test_the_wrong_kind_of_part_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        coaf.COAF(3, **settings)


class Silent:
    """A latency and an action space without `check`."""

    def seconds(self, chosen: BoolArray) -> float:
        return 1.0

    def allows(self, chosen: BoolArray, groups: Groups | None = None) -> bool:
        return True


@pytest.mark.parametrize(
    ("latency", "actions", "message"),
    [
        (5.0, ANY, "latency is a float, which lacks seconds, check; it must be a latency, as Add"),
        (coaf.Additive, ANY, "latency is the class Additive; it must be a latency"),
        (Silent(), ANY, r"latency is a Silent, which lacks check; .*\.check_latency checks"),
        (ADDITIVE, coaf.OneOf, "actions is the class OneOf; it must be an action space, as OneOf"),
        (ADDITIVE, Silent(), r"actions is a Silent, which lacks check; .*\.check_actions checks"),
    ],
)
def test_what_latency_or_actions_lack_is_named(latency: Any, actions: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        coaf.Round(np.eye(2), latency, actions)


class Mistaken(Silent):
    """A latency with a mistake in it."""

    def check(self, n: int) -> None:
        raise AttributeError("a mistake of one's own")


def test_a_mistake_in_a_latency_of_ones_own_is_shown_as_it_is() -> None:
    with pytest.raises(AttributeError, match="a mistake of one's own"):
        coaf.Round(np.eye(2), Mistaken())


class Own:
    """A belief of one's own: the library's, under another name."""

    def __init__(self, dim: int) -> None:
        self.dim, self._inner = dim, coaf.Linear(dim)

    def mean(self, features: FloatArray, groups: Groups | None = None) -> FloatArray:
        return self._inner.mean(features)

    def upper(self, features: FloatArray, groups: Groups | None = None) -> FloatArray:
        return self._inner.upper(features)

    def sample(
        self, features: FloatArray, rng: np.random.Generator, groups: Groups | None = None
    ) -> FloatArray:
        return self._inner.sample(features, rng)

    def learn(
        self, features: FloatArray, rewards: FloatArray, groups: Groups | None = None
    ) -> None:
        self._inner.learn(features, rewards)

    def refit(
        self, features: FloatArray, rewards: FloatArray, groups: Groups | None = None
    ) -> None:
        self._inner.refit(features, rewards)

    def forget(self, factor: float) -> None:
        self._inner.forget(factor)

    def settle(self) -> None:
        self._inner.settle()

    def state(self) -> dict[str, Any]:
        return {"coaf": "own", "inner": self._inner.state()}

    @classmethod
    def restore(cls, state: Mapping[str, Any] | str) -> Self:
        assert not isinstance(state, str)
        found = cls(state["inner"]["dim"])
        found._inner = coaf.Linear.restore(state["inner"])
        return found


def test_a_belief_of_ones_own_passes_the_checks_and_is_restored() -> None:
    check_belief(Own(3))
    check_policy(coaf.COAF(belief=Own(3)))
    policy = coaf.COAF(belief=Own(3))
    with pytest.raises(ValueError, match="pass its class as belief"):
        coaf.COAF.restore(policy.state())
    assert isinstance(coaf.COAF.restore(policy.state(), belief=Own).belief, Own)


@pytest.mark.filterwarnings("ignore::coaf.AssumptionWarning")
def test_an_estimate_outside_the_ball_is_no_broken_contract() -> None:
    check_belief(coaf.Linear(3, norm_bound=0.05, noise=0.01))


def test_why_is_a_sentence() -> None:
    first: Decision = coaf.COAF(3).decide(rounds(1)[0])
    assert first.why.startswith("Take 4 of 4, all that is allowed: nothing is known yet of how")
    taken: Decision = coaf.COAF(belief=coaf.Linear(3)).decide(rounds(1)[0])
    assert taken.why.startswith("Take 4 of 4: they should bring")
    policy = coaf.COAF(belief=coaf.Linear(3), rate=coaf.Fixed(10.0))
    assert policy.decide(rounds(1)[0]).why.startswith("Take none of 4: nothing here pays")
