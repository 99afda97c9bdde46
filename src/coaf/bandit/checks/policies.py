"""The contract of a policy, for the tests of those who bring one."""

import json
import math
from collections.abc import Iterable, Sequence
from copy import deepcopy
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np

from coaf.bandit.arrays import BoolArray
from coaf.bandit.beliefs.registry import is_registered
from coaf.bandit.checks.contract import (
    as_json,
    close,
    coins,
    refuses,
    require,
    require_parts,
    some_features,
)
from coaf.bandit.latency import Additive, Setup, Table
from coaf.bandit.problem import Decision, Round


def check_policy(
    policy: Any,
    rounds: Sequence[Round] | None = None,
    *,
    saved: bool = True,
    any_order: bool = True,
) -> None:
    """Check anything with the three verbs, `state` and `restore`.

    `rounds` are at least four entry rounds. `saved=False` is for an oracle, which has no state;
    `any_order=False` for a belief to which the order of rewards matters, as one that forgets.
    """
    require_parts(policy, "a policy", ("decide", "commit", "learn", *("state", "restore") * saved))
    belief, kinds = _belief_of(policy), (Setup(2.0, 3.0, 1.0), Additive(2.0, 0.5))
    some = [Round(some_features(belief, 3 + i % 4, seed=i), kinds[i % 2]) for i in range(8)]
    used = enumerate(rounds or some)
    keyed = [Round(r.features, r.latency, r.actions, groups=r.groups, key=f"#{i}") for i, r in used]
    checks = [decision_adds_up, decide_is_pure, only_learn_learns, policy_refuses]
    checks += [policy_resumes] * saved + [order_makes_no_difference] * any_order
    for check in checks:
        check(deepcopy(policy), keyed, saved)


@runtime_checkable
class Believing(Protocol):
    """A policy that decides by a belief."""

    belief: Any


def _belief_of(policy: Any) -> Any:
    """None for a policy without one."""
    return policy.belief if isinstance(policy, Believing) else None


def _done(decision: Decision) -> BoolArray:
    """Every arm if that may be taken, so that there is something to learn."""
    one, every = decision.round, np.ones(decision.round.n, dtype=np.bool_)
    free = not isinstance(one.latency, Table) and one.actions.allows(every, one.groups)
    return every if free else decision.chosen


def _score(policy: Any, decision: Decision, part: slice = slice(None)) -> None:
    arms = np.flatnonzero(_done(decision))
    policy.learn(decision, arms[part], coins(len(arms))[part])


def _serve(policy: Any, rounds: Iterable[Round]) -> None:
    for one in rounds:
        decision = policy.decide(one)
        policy.commit(decision, _done(decision))
        _score(policy, decision)


def _same(a: Decision, b: Decision) -> bool:
    names = (
        "id",
        "chosen",
        "seconds",
        "reward",
        "gap",
        "estimates",
        "rate",
        "propensities",
        "fault",
    )
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in names)


def decision_adds_up(policy: Any, rounds: Sequence[Round], _saved: bool) -> None:
    for one in rounds:
        d = policy.decide(one)
        allowed = d.chosen.shape == (one.n,) and one.actions.allows(d.chosen, one.groups)
        require(allowed, policy, "chosen is not a subset that round.actions allow")
        finite = d.estimates.shape == (one.n,) and np.isfinite(d.estimates).all()
        require(finite, policy, "estimates must be one finite number per arm")
        seconds = one.latency.seconds(d.chosen)
        require(close(d.seconds, seconds), policy, "seconds is not the latency of chosen")
        reward = d.estimates[d.chosen].sum()
        require(close(d.reward, reward), policy, "reward is not the sum of the chosen estimates")
        gap = seconds * d.rate - reward
        require(close(d.gap, gap), policy, "gap is not seconds * rate - reward")
        p = np.full(one.n, 0.5) if d.propensities is None else d.propensities
        proper = p.shape == (one.n,) and (p >= 0.0).all() and (p <= 1.0).all()
        require(proper and (p[d.chosen] > 0.0).all(), policy, "propensities are not probabilities")
        _serve(policy, [one])


def decide_is_pure(policy: Any, rounds: Sequence[Round], saved: bool) -> None:
    for served in ([], rounds[2:]):
        _serve(policy, served)
        before = as_json(policy, saved)
        first, _, again = [policy.decide(rounds[i]) for i in (0, 1, 0)]
        require(_same(first, again), policy, "decide answers otherwise when asked again: not pure")
        require(as_json(policy, saved) == before, policy, "decide changed the policy: not pure")


def only_learn_learns(policy: Any, rounds: Sequence[Round], _saved: bool) -> None:
    decisions = [policy.decide(one) for one in rounds[:3]]
    for decision in decisions[:2]:
        policy.commit(decision, _done(decision))
    same = np.array_equal(policy.decide(rounds[2]).estimates, decisions[2].estimates)
    require(same, policy, "commit changed the estimates: only learn may")


def order_makes_no_difference(policy: Any, rounds: Sequence[Round], _saved: bool) -> None:
    pieces, decisions = deepcopy(policy), [policy.decide(one) for one in rounds[:2]]
    for decision in decisions:
        policy.commit(decision, _done(decision))
        pieces.commit(decision, _done(decision))
    for decision in decisions:
        _score(policy, decision)
    for part in (slice(2, None), slice(0, 2)):
        _score(pieces, decisions[1], part)
        _score(pieces, decisions[0], part)
    a, b = policy.decide(rounds[2]), pieces.decide(rounds[2])
    same = close(a.estimates, b.estimates) and close(a.rate, b.rate)
    require(same, policy, "learn in pieces, in another order, differs from learn at once")


def policy_refuses(policy: Any, rounds: Sequence[Round], saved: bool) -> None:
    decision = max(map(policy.decide, rounds), key=lambda d: _done(d).sum())
    done = _done(decision)
    require(done.any(), policy, "takes no arm in any of these rounds: check it with others")
    policy.commit(decision, done)
    arm, learn = np.flatnonzero(done)[:1], partial(policy.learn, decision)
    refuses(policy, saved, "a second commit", lambda: policy.commit(decision))
    refuses(policy, saved, "an arm out of range", lambda: learn([len(done)], [1.0]))
    refuses(policy, saved, "fewer rewards than arms", lambda: learn(arm, []))
    refuses(policy, saved, "a reward that is not finite", lambda: learn(arm, [math.nan]))
    learn(arm, [1.0])
    refuses(policy, saved, "a second reward for one arm", lambda: learn(arm, [1.0]))


def policy_resumes(policy: Any, rounds: Sequence[Round], _saved: bool) -> None:
    _serve(policy, rounds[2:])
    decision = policy.decide(rounds[1])
    policy.commit(decision, _done(decision))
    belief = _belief_of(policy)
    own = {} if belief is None or is_registered(belief) else {"belief": type(belief)}
    restored = type(policy).restore(json.loads(as_json(policy)), **own)
    _score(policy, decision)
    _score(restored, decision)
    same = _same(policy.decide(rounds[0]), restored.decide(rounds[0]))
    require(same, policy, "restored policy decides differently: state() misses something")
