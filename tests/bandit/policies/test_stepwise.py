"""Arms taken one by one: when to go on, when to leave, and what a second is worth meanwhile."""

import json
from typing import Any

import numpy as np
import pytest

from coaf.bandit.actions import AtMost
from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.factors import Factors
from coaf.bandit.beliefs.linear import Linear
from coaf.bandit.beliefs.nested.nested import Nested
from coaf.bandit.groups import Groups
from coaf.bandit.index import Upper
from coaf.bandit.latency import Additive, ByCount, Setup
from coaf.bandit.policies.faults import BeliefWarning
from coaf.bandit.policies.prospects import Prospects
from coaf.bandit.policies.stepwise import Stepwise
from coaf.bandit.problem import Decision, Round
from coaf.bandit.rates.price import break_even

MICROSCOPE = Setup(base=12.0, setup=52.0, each=6.7)


def belief(**settings: Any) -> Nested:
    """A patch is good for .4 of its holes, as a rule; patches differ much."""
    chosen: dict[str, Any] = {
        "variances": "fixed",
        "effects": (0.5, 1.5),
        "centre": (0.0, -0.5),
        "scale": 0.3,
    }
    return Nested(1, **(chosen | settings))


def patch(name: str, holes: int = 12, *, x: float = 0.0, latency: Any = MICROSCOPE) -> Round:
    groups = np.array([["s", name]] * holes)
    return Round(np.full((holes, 1), x), latency, groups=groups, key=name)


def rest(entry: Decision, holes: int, key: str) -> Round:
    groups = np.array([entry.round.groups[0]] * holes)  # type: ignore[index]
    return Round(
        entry.round.features[:holes], Additive(0.0, 6.7), groups=groups, follows=entry, key=key
    )


def visit(policy: Stepwise, name: str, reward: float, holes: int = 12) -> list[Decision]:
    """Take holes of one patch, all with the same reward, until the policy leaves."""
    made = [policy.decide(patch(name, holes))]
    policy.commit(made[0])
    while made[-1].chosen.any():
        policy.learn(made[-1], np.flatnonzero(made[-1].chosen), [reward])
        if len(made) == holes:
            break
        made.append(policy.decide(rest(made[0], holes - len(made), f"{name}/{len(made)}")))
        policy.commit(made[-1])
    return made


def test_a_bad_patch_is_left_and_a_good_one_finished() -> None:
    policy = Stepwise(belief())
    for k in range(3):
        visit(policy, f"before {k}", reward=float(k % 2))
    bad, good = visit(policy, "bad", 0.0), visit(policy, "good", 1.0)
    assert 2 <= sum(d.chosen.any() for d in bad) <= 5
    assert not bad[-1].chosen.any()
    assert [int(d.chosen.sum()) for d in good] == [1] * 12
    for made in (bad, good):
        assert {d.rate for d in made} == {made[0].rate}, "a patch is one round for the rate"
    assert len(policy.remembered) == 5, "follow-ups are no rounds of their own"


def test_it_enters_what_no_single_arm_pays_for() -> None:
    policy = Stepwise(belief(effects=(0.5, 2.5), centre=(1.0, -0.5)))
    for k in range(3):
        policy.commit(policy.decide(patch(f"{k}", x=0.3)))
    decision = policy.decide(patch("new"))
    alone = decision.rate * (52.0 + 6.7)
    assert decision.estimates.max() < alone, "by itself, no hole pays for the way to it"
    every = decision.estimates.sum() - decision.rate * (52.0 + 12 * 6.7)
    assert every < 0.0, "nor do all of them together"
    assert decision.chosen.sum() == 1
    assert decision.option is not None
    assert decision.option > 0.0
    assert "and look again" in decision.why
    assert f"{decision.option:.3g} more than its time is worth" in decision.why


def test_the_best_arm_is_taken_first() -> None:
    policy = Stepwise(belief(centre=(2.0, 0.0), scale=0.1))
    X = np.array([[0.1], [0.9], [0.3]])
    decision = policy.decide(Round(X, Setup(12.0, 5.0, 6.7), groups=[["s", "p"]] * 3))
    assert decision.chosen.tolist() == [False, True, False]
    dear = Setup(12.0, 5.0, np.array([1.0, 20.0, 6.7]))
    decision = policy.decide(Round(X, dear, groups=[["s", "p"]] * 3))
    assert decision.chosen.tolist() == [True, False, False], "by what it brings in a second"


def test_to_look_and_to_leave_is_not_exploration_by_luck() -> None:
    """Pure: the same answer again, and nothing changed by asking."""
    policy = Stepwise(belief())
    visit(policy, "a", 1.0)
    before = json.dumps(policy.state())
    one, two = policy.decide(patch("b")), policy.decide(patch("b"))
    assert (one.chosen == two.chosen).all()
    assert (one.rate, one.option, one.gap) == (two.rate, two.option, two.gap)
    assert policy.rate == policy.rate
    policy.worth([patch("c")], 0.01)
    assert json.dumps(policy.state()) == before


def test_worth_is_what_the_decision_goes_by() -> None:
    policy = Stepwise(belief(), lag=1)
    visit(policy, "a", 1.0, holes=4)
    decision = policy.decide(patch("b"))
    option = policy.worth([patch("b")], decision.rate, anew=False)[0]
    assert option == pytest.approx(decision.option)
    known, fresh = (policy.worth([patch("a")], 0.02, anew=anew)[0] for anew in (False, True))
    assert known > fresh, "four good holes speak for the rest of their patch"
    assert policy.worth([], 0.02).shape == (0,)
    dearer = policy.worth([patch("b")], 0.5, anew=False)[0]
    assert dearer == pytest.approx(-0.5 * 52.0), "where nothing pays, the way there is lost"


def test_who_asks_what_pays_is_told_the_same_of_that() -> None:
    policy = Stepwise(belief())
    visit(policy, "a", 1.0, holes=4)
    patches = [patch(name, 6, x=x) for name in ("b", "c") for x in (-2.0, 0.0, 2.0)]
    rounds = Prospects.of(patches)
    for rate in (0.0, 0.01, 0.03035):
        exact = policy.worth(rounds, rate, anew=False)
        told = policy.worth(rounds, rate, anew=False, paying=True)
        np.testing.assert_array_equal(told > 0.0, exact > 0.0)
        np.testing.assert_allclose(told[told > 0.0], exact[exact > 0.0], rtol=1e-12)
        with policy.keeping():
            for _ in range(2):
                np.testing.assert_array_equal(policy.worth(rounds, rate, anew=False), exact)
    assert 0 < (exact > 0.0).sum() < 6


def same_next(policy: Stepwise, round: Round) -> None:
    again = Stepwise.restore(json.loads(json.dumps(policy.state())))
    one, two = policy.decide(round), again.decide(round)
    assert (one.chosen == two.chosen).all()
    assert (one.rate, one.option, one.id) == (two.rate, two.option, two.id)
    assert (one.estimates == two.estimates).all()
    assert again.state() == policy.state()


def test_restored_it_decides_the_same_also_in_the_middle_of_a_visit() -> None:
    policy = Stepwise(belief(variances="empirical"), size=4, lag=2)
    same_next(policy, patch("first"))
    for k in range(6):
        visit(policy, f"{k}", float(k % 2), holes=5)
    same_next(policy, patch("new"))
    entry = policy.decide(patch("middle"))
    policy.commit(entry)
    same_next(policy, rest(entry, 11, "middle/1"))
    policy.learn(entry, np.flatnonzero(entry.chosen), [1.0])
    same_next(policy, rest(entry, 11, "middle/1"))
    policy.remain(seconds=500.0, rounds=2.0, again=[patch("back", 3), patch("3", 2)])
    same_next(policy, patch("new"))
    same_next(policy, patch("back", 3))
    same_next(policy, rest(entry, 11, "middle/1"))


def test_a_snapshot_is_not_moved_by_what_comes_after() -> None:
    policy = Stepwise(belief())
    groups = np.array([["s", "p"]] * 2)
    entry = policy.decide(Round([[0.0]] * 2, Setup(1.0, 0.0, 1.0), groups=groups, parts=3))
    policy.commit(entry)
    arm = np.flatnonzero(entry.chosen)
    policy.learn(entry, arm, [1.0])
    saved = policy.state()
    text = json.dumps(saved)
    policy.learn(entry, arm, [1.0])
    assert json.dumps(saved) == text
    restored = [Stepwise.restore(saved) for _ in range(2)]
    for one in restored:  # each has two parts to come, whatever the other learned
        one.learn(entry, arm, [1.0])
        one.learn(entry, arm, [0.0])


def test_the_price_falls_when_rounds_run_out() -> None:
    policy = Stepwise(belief())
    for k in range(6):
        visit(policy, f"{k}", float(k % 2))
    usual = policy.rate
    prices = []
    for rounds in (1e6, 100.0, 30.0, 10.0, 3.0, 0.0):
        policy.remain(seconds=3600.0, rounds=rounds)
        prices.append(policy.rate)
    assert prices == sorted(prices, reverse=True)
    assert prices[0] == pytest.approx(usual, rel=1e-6), "while rounds abound it is the usual rate"
    assert prices[-1] == 0.0, "time without use is worth nothing"
    policy.remain(seconds=100.0, rounds=0.0, again=[patch(f"back {k}") for k in range(5)])
    scarce = policy.rate
    assert scarce > 0.0
    policy.remain(seconds=4000.0, rounds=0.0, again=[patch(f"back {k}") for k in range(5)])
    assert policy.rate < scarce
    policy.remain()
    assert policy.rate == usual


def test_without_an_end_it_is_the_break_even_of_what_is_remembered() -> None:
    policy = Stepwise(belief())
    remembered = [patch(f"{k}", holes=3 + k, x=0.5 * k) for k in range(4)]
    for r in remembered:
        policy.commit(policy.decide(r))

    def worth(rate: float) -> tuple[FloatArray, FloatArray]:
        """By differences: the slope of the value is the time."""
        values = [
            np.maximum(policy.worth(remembered, at), 0.0) - 12.0 * at for at in (rate, rate + 1e-7)
        ]
        return values[0], (values[0] - values[1]) / 1e-7

    assert policy.rate == pytest.approx(break_even(worth), rel=1e-4)
    total = np.maximum(policy.worth(remembered, policy.rate), 0.0) - 12.0 * policy.rate
    assert total.sum() == pytest.approx(0.0, abs=1e-9)


def test_who_returns_is_not_a_new_example() -> None:
    policy = Stepwise(belief())
    visit(policy, "a", 1.0, holes=3)
    back = patch("back", 2)
    policy.remain(seconds=1000.0, rounds=0.0, again=[back])
    policy.commit(policy.decide(patch("back", 2)))  # equal by key, as after a restart
    assert [r.key for r in policy.remembered] == ["a"]


@pytest.mark.parametrize("enters", [True, False])
def test_what_is_expected_fades_with_what_is_met(enters: bool) -> None:
    """Whether what is met is entered, or skipped as not worth it beside what was expected."""
    rich = [patch(f"expected {k}", x=3.0) for k in range(3)]
    policy = Stepwise(belief(centre=(1.0, -0.5)), expect=rich)
    bare = Stepwise(belief(centre=(1.0, -0.5)))
    ahead = []
    for k in range(3):
        for one in (policy, bare):
            decision = one.decide(patch(f"{k}"))
            one.commit(decision, executed=decision.chosen if enters else np.zeros(12, np.bool_))
        ahead.append(policy.rate - bare.rate)
    assert ahead[0] > ahead[1] > 0.0
    assert ahead[2] == 0.0


def test_an_empty_round_costs_its_base_and_harms_nothing() -> None:
    policy = Stepwise(belief())
    visit(policy, "a", 1.0)
    empty = Round(np.zeros((0, 1)), MICROSCOPE, groups=np.zeros((0, 2), dtype=np.str_))
    decision = policy.decide(empty)
    assert (decision.seconds, decision.fault) == (12.0, "")
    policy.commit(decision)
    lower = policy.rate
    assert 0.0 < lower < decision.rate or lower == pytest.approx(decision.rate)
    assert policy.decide(patch("b")).fault == ""


def test_what_cannot_be_taken_one_by_one_is_refused() -> None:
    policy = Stepwise(belief())
    X, groups = np.zeros((3, 1)), np.array([["s", "p"]] * 3)
    wrong = [
        Round(X, ByCount(1.0, [0.0, 2.0, 3.0, 4.0]), groups=groups),
        Round(X, MICROSCOPE, AtMost(2), groups=groups),
    ]
    for bad in wrong:
        before = json.dumps(policy.state())
        with pytest.raises(ValueError, match="Additive or Setup latency and any subset allowed"):
            policy.decide(bad)
        with pytest.raises(ValueError, match="one by one"):
            policy.remain(again=[bad])
        with pytest.raises(ValueError, match="one by one"):
            policy.worth([bad], 0.1)
        assert json.dumps(policy.state()) == before
    with pytest.raises(ValueError, match="seconds is -1"):
        policy.remain(seconds=-1.0)
    with pytest.raises(ValueError, match="the last entered: nothing"):
        policy.decide(Round(X, Additive(0.0, 1.0), groups=groups, follows="never"))
    first = policy.decide(patch("a"))
    policy.commit(first)
    policy.commit(policy.decide(patch("b")))
    with pytest.raises(ValueError, match="follows is 'a', but the last entered: 'b'"):
        policy.decide(rest(first, 3, "late"))


def test_only_what_knows_of_sharing_will_do() -> None:
    with pytest.raises(TypeError, match=r"must know what arms share, as Nested\(dim\) does"):
        Stepwise(Linear(2))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="counts as an option instead"):
        Stepwise(belief(), index=Upper())  # type: ignore[arg-type]


class Breaks(Nested):
    """A belief whose factors can be broken."""

    broken = False

    def factors(self, features: Any, groups: Groups | None = None) -> Factors:
        if self.broken:
            raise ArithmeticError("no factors today")
        return super().factors(features, groups)


def test_a_belief_that_fails_does_not_stop_it() -> None:
    held = Breaks(1, variances="fixed")
    policy = Stepwise(held)
    entry = policy.decide(patch("a"))
    policy.commit(entry)
    held.broken = True
    with pytest.warns(BeliefWarning, match="could not say what arms share: no factors today"):
        decision = policy.decide(rest(entry, 11, "a/1"))
    assert "no factors today" in decision.fault
    assert decision.rate == entry.rate
    policy.commit(decision)
    with pytest.warns(BeliefWarning, match="could not price a second: no factors today"):
        decision = policy.decide(patch("b"))
    assert decision.rate == entry.rate, "the last price that was known"
    policy.commit(decision)
    held.broken = False
    assert policy.decide(patch("c")).fault == ""


def test_a_visit_for_which_there_is_time_enough_keeps_its_price() -> None:
    """A second is worth nothing then, and the rest of the round is not judged by what one usually
    is; in a policy restored in the middle of it as well.
    """
    policy = Stepwise(belief(), expect=[patch(f"{k}", x=3.0) for k in range(3)])
    visits: list[Stepwise] = []
    with policy.remaining(seconds=1e6, rounds=2.0):
        entry = policy.decide(patch("a"))
        assert entry.rate == 0.0
    policy.commit(entry)
    visits.append(policy)
    visits.append(Stepwise.restore(json.loads(json.dumps(policy.state()))))
    told = Stepwise(belief(), expect=[patch(f"{k}", x=3.0) for k in range(3)])
    told.visit(entry.id, 0.0)
    visits.append(told)
    for one in visits:
        assert one.rate > 0.0
        follow = one.decide(rest(entry, 11, "a/1"))
        assert follow.rate == 0.0
        assert follow.chosen.any()


def test_a_visit_begun_blindly_is_priced_once_rewards_have_a_size() -> None:
    policy = Stepwise(Nested(1, family="gaussian", variances="fixed"))
    entry = policy.decide(patch("a"))
    assert entry.blind
    policy.commit(entry)
    policy.learn(entry, [0], [5.0])
    assert not policy.blind
    again = Stepwise.restore(json.loads(json.dumps(policy.state())))
    old = policy.state()
    old["visit"] = old["visit"][:2]  # as earlier releases wrote it
    for one in (policy, again, Stepwise.restore(json.loads(json.dumps(old)))):
        assert one.decide(rest(entry, 11, "a/1")).rate == pytest.approx(one.rate)
        assert one.rate > 0.0
