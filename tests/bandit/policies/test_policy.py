"""The three verbs: decide is pure, a patch is one round for the rate, propensities are honest."""

import json
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from coaf.bandit.actions import AtMost, Exactly
from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.linear import Linear
from coaf.bandit.index import Mean, Thompson, Truth
from coaf.bandit.latency import Additive, Setup
from coaf.bandit.policies.baselines import TakeAll, Threshold
from coaf.bandit.policies.coaf import COAF
from coaf.bandit.policies.explore import Explore
from coaf.bandit.policies.policy import Policy
from coaf.bandit.problem import Decision, Round
from coaf.bandit.rates.memory_root import MemoryRoot
from coaf.bandit.rates.rate import Fixed, Rate, Renewal, RobbinsMonro
from coaf.bandit.rates.restarting import Restarting


def unit(rng: np.random.Generator, n: int, dim: int = 3) -> FloatArray:
    X = rng.normal(size=(n, dim))
    return np.asarray(X / (1.0 + np.linalg.norm(X, axis=1, keepdims=True)))


def patches(count: int, seed: int = 0, **more: Any) -> list[Round]:
    rng = np.random.default_rng(seed)
    return [
        Round(unit(rng, int(rng.integers(2, 8))), Additive(rng.uniform(2, 5), 0.7), **more)
        for _ in range(count)
    ]


def play(policy: Policy, rounds: list[Round], seed: int = 1) -> None:
    rng = np.random.default_rng(seed)
    for patch in rounds:
        decision = policy.decide(patch)
        policy.commit(decision)
        arms = np.flatnonzero(decision.chosen)
        policy.learn(decision, arms, rng.integers(0, 2, len(arms)))


def bits(decision: Decision) -> list[Any]:
    p = decision.propensities
    return [
        decision.id,
        decision.chosen.tolist(),
        decision.estimates.tobytes(),
        decision.seconds,
        decision.reward,
        decision.gap,
        decision.rate,
        decision.exact,
        None if p is None else p.tobytes(),
    ]


def many() -> dict[str, Policy]:
    return {
        "coaf": COAF(dim=3),
        "paper": COAF.paper(dim=3),
        "thompson": COAF.paper(dim=3, index="thompson", seed=4),
        "memory root": COAF(dim=3, index=Thompson(), rate=MemoryRoot(size=4), draws=20),
        "mean": COAF(dim=3, index=Mean(), rate=Fixed(0.05)),
        "threshold": Threshold(0.2),
        "take all": TakeAll(),
    }


@pytest.mark.parametrize("name", many())
def test_decide_is_pure(name: str) -> None:
    policy, (probe, other) = many()[name], patches(2, seed=9)
    for patch in patches(12):
        before = json.dumps(policy.state())
        first = bits(policy.decide(probe))
        policy.decide(other)
        assert bits(policy.decide(probe)) == first
        assert json.dumps(policy.state()) == before
        play(policy, [patch])


@pytest.mark.parametrize("name", many())
def test_the_same_calls_give_the_same_bits(name: str) -> None:
    one, two = many()[name], many()[name]
    play(one, patches(30))
    play(two, patches(30))
    assert json.dumps(one.state()) == json.dumps(two.state())


def test_a_decision_is_never_recomputed() -> None:
    """What a decision says stays, whatever is learned after it, and the rate steps by that."""
    policy = COAF(belief=Linear(3, noise=0.1), rate=RobbinsMonro(n_max=100))
    decision = policy.decide(patches(1)[0])
    said = bits(decision)
    policy.learn(decision, np.flatnonzero(decision.chosen), -np.ones(decision.chosen.sum()))
    assert policy.decide(decision.round).gap > decision.gap
    policy.commit(decision)
    step = -decision.gap / (0.5 * decision.round.floor)
    assert policy.rate == pytest.approx(step, rel=1e-14)
    assert bits(decision) == said
    for array in (decision.chosen, decision.round.features):
        assert not array.flags.writeable


def truth(features: FloatArray) -> FloatArray:
    return features[:, 0]


def oracle(rate: Rate) -> COAF:
    return COAF(index=Truth(truth), rate=rate)


def arms(*means: float, base: float = 4.0, each: float = 1.0, **more: Any) -> Round:
    return Round(np.array(means)[:, None], Additive(base, each), **more)


class TestFollowUps:
    """Entry: 0.8 and 0.4 of three are chosen, 6 s; only 0.8 is executed, 5 s.

    Then the rest of the patch, for which the move is paid: 0.3 of two is chosen, 1 s.
    """

    def visit(self, policy: COAF, *, seconds: tuple[float | None, float | None]) -> None:
        entry = policy.decide(arms(0.8, 0.4, 0.05))
        assert entry.chosen.tolist() == [True, True, False]
        policy.commit(entry, executed=[True, False, False], seconds=seconds[0])
        rest = policy.decide(arms(0.3, 0.05, base=0.0, follows=entry.id))
        assert rest.rate == entry.rate == 0.1
        assert rest.chosen.tolist() == [True, False]
        assert rest.seconds == 1.0
        policy.commit(rest, executed=[False, True], seconds=seconds[1])

    def test_robbins_monro_steps_once_by_executed_and_then_chosen(self) -> None:
        """What was executed of the entry, and the last decision's own choice: 1.1 in 6 s."""
        policy = oracle(RobbinsMonro(xi=0.5, initial=0.1))
        self.visit(policy, seconds=(None, None))
        expected = 0.1 - (6.0 * 0.1 - 1.1) / (0.5 * 4.0)
        assert policy.rate == pytest.approx(expected, rel=1e-14)
        after = policy.decide(arms(0.2))
        policy.commit(after)
        assert after.rate == pytest.approx(expected, rel=1e-14)
        assert policy.rate == pytest.approx(expected - after.gap / (0.5 * 8.0), rel=1e-13)

    def test_measured_seconds_are_no_sample_of_the_bellman_equation(self) -> None:
        plain, measured = (oracle(RobbinsMonro(initial=0.1)) for _ in range(2))
        self.visit(plain, seconds=(None, None))
        self.visit(measured, seconds=(70.0, 20.0))
        assert plain.rate == measured.rate

    def test_renewal_counts_all_that_was_executed(self) -> None:
        modelled, measured = (oracle(Renewal(initial=0.1)) for _ in range(2))
        self.visit(modelled, seconds=(None, None))
        assert modelled.rate == pytest.approx(0.85 / 6.0, rel=1e-14)
        self.visit(measured, seconds=(7.0, 2.0))
        assert measured.rate == pytest.approx(0.85 / 9.0, rel=1e-14)

    def test_restarting_counts_executed_and_then_chosen_in_measured_seconds(self) -> None:
        """1.1 in 6 s as modelled; in all 3 s longer as measured."""
        modelled, measured = (oracle(Restarting(initial=0.1)) for _ in range(2))
        self.visit(modelled, seconds=(None, None))
        assert modelled.rate == pytest.approx(1.1 / 6.0, rel=1e-14)
        self.visit(measured, seconds=(7.0, 2.0))
        assert measured.rate == pytest.approx(1.1 / 9.0, rel=1e-14)

    def test_three_decisions_of_one_visit(self) -> None:
        """Executed, executed, chosen: 0.8 in 5 s, 0.05 in 1 s and 0.2 in 1 s."""
        policy = oracle(RobbinsMonro(xi=0.5, initial=0.1))
        self.visit(policy, seconds=(None, None))
        last = policy.decide(arms(0.2, base=0.0, follows=0))
        policy.commit(last, executed=[False])
        expected = 0.1 - (7.0 * 0.1 - 1.05) / (0.5 * 4.0)
        assert policy.rate == pytest.approx(expected, rel=1e-14)

    def test_only_entries_define_gamma_and_the_extremes(self) -> None:
        rate = RobbinsMonro(initial=0.1)
        policy = oracle(rate)
        self.visit(policy, seconds=(None, None))
        policy.commit(policy.decide(arms(*[0.01] * 9, base=0.5, follows=0)))
        policy.commit(policy.decide(arms(0.2, base=8.0)))
        policy.commit(policy.decide(arms(0.2, base=8.0)))
        assert (rate.elapsed_floor, rate.least, rate.most) == (4.0 + 8.0 + 8.0, 4.0, 3.0)

    def test_memory_root_remembers_entries(self) -> None:
        rate = MemoryRoot()
        policy = oracle(rate)
        entry = policy.decide(arms(0.8))
        policy.commit(entry)
        before = policy.rate
        policy.commit(policy.decide(arms(0.5, base=0.0, follows=entry.id)))
        assert policy.rate == before
        policy.commit(policy.decide(arms(0.8)))
        assert [patch.follows for patch in rate.rounds] == [None, None]

    def test_each_arm_counts_by_the_estimate_that_chose_it(self) -> None:
        policy = COAF.paper(dim=3, noise=0.1)
        first, second = patches(2, seed=3)
        entry = policy.decide(first)
        policy.commit(entry)
        policy.learn(entry, np.flatnonzero(entry.chosen), -np.ones(entry.chosen.sum()))
        rest = policy.decide(Round(first.features, Additive(0.0, 0.7), follows=entry.id))
        assert (rest.estimates < entry.estimates).any()  # it has learned meanwhile
        assert rest.rate == entry.rate
        policy.commit(rest)
        reward = entry.estimates[entry.chosen].sum() + rest.estimates[rest.chosen].sum()
        gap = (entry.seconds + rest.seconds) * entry.rate - reward
        bound = first.n * 1.0 / first.floor
        expected = float(np.clip(entry.rate - gap / (0.5 * first.floor), -bound, bound))
        assert policy.rate == policy.decide(second).rate == pytest.approx(expected, rel=1e-13)

    @pytest.mark.parametrize("follows", ["elsewhere", 0, 7])
    def test_another_entry_cannot_be_followed(self, follows: int | str) -> None:
        policy = COAF(dim=1)
        with pytest.raises(ValueError, match=r"round.follows is .*nothing was entered yet"):
            policy.decide(arms(0.1, follows=follows))
        for _ in range(2):
            policy.commit(policy.decide(arms(0.1)))
        before = json.dumps(policy.state())
        with pytest.raises(ValueError, match=r"round.follows is .*the last entered is 1"):
            policy.decide(arms(0.1, follows=follows))
        assert json.dumps(policy.state()) == before

    def test_a_follow_up_may_not_be_committed_after_leaving(self) -> None:
        policy = COAF(dim=1)
        entry = policy.decide(arms(0.1, key="a"))
        policy.commit(entry)
        rest = policy.decide(arms(0.1, base=0.0, follows="a", key="a again"))
        policy.commit(policy.decide(arms(0.1, key="b")))
        before = json.dumps(policy.state())
        with pytest.raises(ValueError, match=r"round.follows is 'a', but the last entered is 'b'"):
            policy.commit(rest)
        assert json.dumps(policy.state()) == before
        policy.learn(entry, [0], [1.0])  # scores of a patch may come after leaving it

    @pytest.mark.parametrize(
        "policy",
        [
            COAF.paper(dim=3, index="thompson"),
            COAF(dim=3),
            COAF(dim=3, rate=MemoryRoot(size=2)),
        ],
    )
    def test_a_visit_survives_a_restart(self, policy: COAF) -> None:
        rounds = patches(4, seed=6)
        play(policy, rounds[:2])
        entry = policy.decide(rounds[2])
        policy.commit(entry, executed=np.ones(entry.round.n, dtype=bool), seconds=9.0)
        policy.learn(entry, [0], [1.0])
        restored = COAF.restore(json.dumps(policy.state()))
        rest = Round(rounds[2].features[1:], Additive(0.0, 0.7), follows=entry.id)
        for one in (policy, restored):
            decision = one.decide(rest)
            one.commit(decision, executed=~decision.chosen)
            one.learn(entry, [1], [0.0])
        assert restored.rate == policy.rate
        assert bits(restored.decide(rounds[3])) == bits(policy.decide(rounds[3]))
        assert restored.state() == policy.state()


def test_a_wide_learner_with_rows_waiting_survives_a_restart() -> None:
    rng = np.random.default_rng(0)
    policy: COAF = COAF.paper(dim=70)
    rounds = [Round(unit(rng, 5, 70), Additive(1.0, 0.1)) for _ in range(30)]
    for patch in rounds:
        restored = COAF.restore(json.dumps(policy.state()))
        assert bits(restored.decide(patch)) == bits(policy.decide(patch))
        play(policy, [patch])


class TestPropensities:
    def thompson(self, draws: int) -> COAF:
        belief = Linear(3, noise=0.4, regularization=2.0)
        X = unit(np.random.default_rng(2), 12)
        belief.learn(X, X[:, 0])
        return COAF(belief=belief, index=Thompson(), rate=Fixed(0.3), seed=5, draws=draws)

    def test_close_to_the_gaussian_probability(self) -> None:
        """P(x·θ > Γ c) for θ from N(θ̄, β V⁻¹), to 3 standard errors of 4000 draws."""
        policy = self.thompson(draws=4000)
        costs = np.array([0.0, 0.2, 0.5, 1.0, 1.5])
        X = unit(np.random.default_rng(3), 5)
        decision = policy.decide(Round(X, Additive(2.0, costs)))
        belief = policy.belief
        assert isinstance(belief, Linear)
        width = np.sqrt(np.einsum("ij,ij->i", X, np.linalg.solve(belief.precision, X.T).T))
        exact = norm.sf((0.3 * costs - X @ belief.theta) / (belief.radius * width))
        assert decision.propensities is not None
        error = np.sqrt(exact * (1.0 - exact) / 4001)
        assert (np.abs(decision.propensities - exact) <= 3.0 * error).all()
        assert (exact > 0.05).all()
        assert (exact < 0.95).all()

    def test_probabilities_and_positive_where_chosen(self) -> None:
        policy = self.thompson(draws=3)
        for patch in patches(40, seed=8):
            decision = policy.decide(patch)
            p = decision.propensities
            assert p is not None
            assert ((p >= 0.0) & (p <= 1.0)).all()
            assert (p[decision.chosen] >= 0.25).all()  # the draw that chose counts as one of 4

    def test_of_constrained_choices_they_add_up(self) -> None:
        patch = Round(unit(np.random.default_rng(1), 6), Setup(2.0, 1.0, 0.5), actions=Exactly(2))
        p = self.thompson(draws=50).decide(patch).propensities
        assert p is not None
        assert p.sum() == pytest.approx(2.0, rel=1e-12)

    @pytest.mark.parametrize("policy", [COAF(dim=3), COAF(dim=3, index=Mean()), TakeAll()])
    def test_none_where_nothing_is_random(self, policy: Policy) -> None:
        assert policy.decide(patches(1)[0]).propensities is None

    def test_none_when_not_asked_for(self) -> None:
        quiet, loud = self.thompson(draws=0), self.thompson(draws=7)
        patch = patches(1)[0]
        assert quiet.decide(patch).propensities is None
        np.testing.assert_array_equal(quiet.decide(patch).chosen, loud.decide(patch).chosen)


def test_a_round_of_another_dimension() -> None:
    with pytest.raises(ValueError, match="features have 2 columns, but this belief has dim=3"):
        COAF(dim=3).decide(Round(np.zeros((4, 2)), Additive(1.0, 1.0)))


@pytest.mark.parametrize("name", ["paper", "thompson"])
def test_features_beyond_the_bound(name: str) -> None:
    features = np.zeros((4, 3))
    features[2, 1] = 1.5
    with pytest.raises(ValueError, match=r"features\[2\] has norm 1.5, beyond feature_bound=1: "):
        many()[name].decide(Round(features, Additive(1.0, 1.0)))


@pytest.mark.parametrize("name", ["coaf", "mean", "threshold"])
def test_without_a_bound_only_what_overflows_is_refused(name: str) -> None:
    features = np.zeros((4, 3))
    features[2, 1] = 1e140
    many()[name].decide(Round(features, Additive(1.0, 1.0)))
    features[2, 1] = 1e160
    with pytest.raises(ValueError, match=r"features\[2, 1\] is 1e\+160; every entry must be"):
        many()[name].decide(Round(features, Additive(1.0, 1.0)))


@pytest.mark.parametrize(
    ("arguments", "mistake"),
    [
        ({}, "give dim, the number of features, or a belief"),
        ({"dim": 3, "belief": Linear(2)}, "belief has dim=2, but dim=3 was given"),
        ({"dim": 0}, "dim is 0; it must be a positive integer"),
        ({"dim": 2, "draws": -1}, "draws is -1.0; it must be at least 0"),
    ],
)
def test_policies_that_cannot_be_made(arguments: dict[str, Any], mistake: str) -> None:
    with pytest.raises(ValueError, match=mistake):
        COAF(**arguments)


def test_the_paper_has_two_indices() -> None:
    with pytest.raises(ValueError, match='index is \'mean\'; it must be "upper" or "thompson"'):
        COAF.paper(dim=2, index="mean")  # type: ignore[arg-type]


def test_refit_starts_the_belief_again_and_leaves_the_rate() -> None:
    policy, fresh = COAF(dim=3), COAF(dim=3)
    play(policy, patches(6))
    rate, X = policy.rate, unit(np.random.default_rng(0), 9)
    policy.refit(X, X[:, 0])
    assert policy.rate == rate
    fresh.refit(X, X[:, 0])
    probe = patches(1, seed=4)[0]
    np.testing.assert_array_equal(policy.decide(probe).estimates, fresh.decide(probe).estimates)
    with pytest.raises(ValueError, match=r"rewards\[1\] is nan"):
        policy.refit(X[:2], [0.0, np.nan])


def test_threshold_takes_what_exceeds_the_cut() -> None:
    policy = Threshold(0.35, index=Truth(truth))
    decision = policy.decide(arms(0.3, 0.4, 0.35, 0.9, each=100.0))
    assert decision.chosen.tolist() == [False, True, False, True]
    assert decision.rate == 0.0
    assert decision.gap == pytest.approx(-1.3)
    at_most = policy.decide(arms(0.3, 0.4, 0.35, 0.9, actions=AtMost(1)))
    assert at_most.chosen.tolist() == [False, False, False, True]


def test_threshold_of_unknown_dim_learns_like_one_of_known_dim() -> None:
    unknown, known = Threshold(0.2), Threshold(0.2, dim=3)
    play(unknown, patches(5))
    play(known, patches(5))
    assert json.dumps(unknown.state()) == json.dumps(known.state())


def test_take_all_takes_all_that_is_allowed() -> None:
    assert TakeAll().decide(arms(-1.0, 0.0, 1.0)).chosen.all()
    assert TakeAll().decide(arms(-1.0, 0.0, 1.0, actions=AtMost(2))).chosen.sum() == 2


class TestAbsorb:
    """Rows that no decision led to."""

    X = unit(np.random.default_rng(3), 7)
    y = X[:, 0]

    @pytest.mark.parametrize("name", [name for name in many() if name != "take all"])
    def test_the_belief_learns_them_and_nothing_else_moves(self, name: str) -> None:
        policy, other = many()[name], many()[name]
        for one in (policy, other):
            play(one, patches(6))
        before, report = policy.state(), policy.report()
        policy.absorb(self.X, self.y)
        assert other.belief is not None
        other.belief.learn(self.X, self.y)
        after = policy.state()
        assert after["belief"] == other.belief.state()
        assert after["rewards"] == [
            pytest.approx(before["rewards"][0] + self.y.sum()),
            before["rewards"][1] + 7,
        ]
        same = set(before) - {"belief", "rewards"}
        assert {k: after[k] for k in same} == {k: before[k] for k in same}
        assert (policy.report().earned, policy.report().rewards) == (report.earned, report.rewards)

    def test_kept_rows_survive_a_correction(self) -> None:
        """Learned by a decision, absorbed, and corrected: as if it had been right at first."""
        policy, right = (COAF(dim=3, keep_rows=True) for _ in range(2))
        patch = patches(1)[0]
        for one, reward in ((policy, 5.0), (right, 1.0)):
            decision = one.decide(patch)
            one.commit(decision)
            one.learn(decision, [0], [reward])
            one.absorb(self.X, self.y)
        policy.correct(decision, [0], [1.0])
        assert policy.belief is not None
        assert right.belief is not None
        np.testing.assert_allclose(
            policy.belief.upper(self.X), right.belief.upper(self.X), rtol=1e-12
        )
        restored = COAF.restore(json.dumps(policy.state()))
        assert json.dumps(restored.state()) == json.dumps(policy.state())

    @pytest.mark.parametrize(
        ("rows", "mistake"),
        [
            (([[0.1, 0.2, 0.3]], [np.nan]), r"rewards\[0\] is nan"),
            (([[0.1, 0.2, 0.3]], [1.0, 2.0]), r"rewards has shape \(2,\) for 1 rows"),
            (([[0.1, 0.2]], [1.0]), r"features have 2 columns, but this belief has dim=3"),
            (([[0.1, 0.2, 0.3]] * 2, [1.0, -1.0]), r"rewards\[1\] is -1, outside of reward_range"),
            (([[0.1, 0.2, 0.3]], [1.0], [0.5]), "groups must be integers or strings"),
        ],
    )
    def test_a_mistake_leaves_the_policy_as_it_was(self, rows: Any, mistake: str) -> None:
        policy = COAF(dim=3, reward_range=(0.0, 2.0), keep_rows=True)
        before = json.dumps(policy.state())
        with pytest.raises(ValueError, match=mistake):
            policy.absorb(*rows)
        assert json.dumps(policy.state()) == before

    def test_no_rows_are_nothing_to_learn(self) -> None:
        policy = Threshold(0.2)
        policy.absorb(np.zeros((0, 3)), [])
        assert policy.belief is None

    def test_a_threshold_learns_from_them_how_many_features_there_are(self) -> None:
        policy, other = Threshold(0.2), Threshold(0.2, dim=3)
        with pytest.raises(ValueError, match="rewards has shape"):
            policy.absorb(self.X, self.y[:2])
        assert policy.belief is None
        for one in (policy, other):
            one.absorb(self.X, self.y)
        assert json.dumps(policy.state()) == json.dumps(other.state())

    def test_what_explores_passes_them_on(self) -> None:
        policy, plain = Explore(COAF(dim=3), 0.5), COAF(dim=3)
        policy.absorb(self.X, self.y)
        plain.absorb(self.X, self.y)
        assert json.dumps(policy.policy.state()) == json.dumps(plain.state())
