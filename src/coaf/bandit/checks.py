"""Contracts for what you bring yourself: run these in your own tests.

What you pass is copied, never changed. Where the same calls were made, answers must be the same
bits; where the same is computed in another order, they must agree to `CLOSE`.
"""

import json
import math
import numbers
from collections.abc import Iterable, Sequence
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import BoolArray, FloatArray
from coaf.bandit.beliefs.belief import Belief
from coaf.bandit.beliefs.linear import Linear
from coaf.bandit.contract import CLOSE, as_json, close, refuses, require
from coaf.bandit.latency import Additive, Latency, Setup, Table
from coaf.bandit.problem import Decision, Round


def _features(belief: Any, n: int | None = None, seed: int = 0) -> FloatArray:
    dim, bound = getattr(belief, "dim", 3), getattr(belief, "feature_bound", 1.0)
    X = np.random.default_rng(seed).normal(size=(n or 16 + 8 * dim, dim))
    return np.asarray(bound * X / (1.0 + np.linalg.norm(X, axis=1, keepdims=True)))


def _coins(n: int) -> FloatArray:
    return np.random.default_rng(1).integers(0, 2, n).astype(np.float64)


def check_latency(latency: Latency, n: int, *, follow_up: bool = False) -> None:
    """Check a latency for rounds of `n` arms: each alone, none, all and a sample.

    `follow_up=True` is for latencies of follow-up rounds only, which may take no time at all.
    """
    latency.check(n)
    some = np.random.default_rng(0).random((200, n)) < np.linspace(0.0, 1.0, 200)[:, None]
    subsets: list[BoolArray] = [*some, *np.eye(n, dtype=np.bool_)]
    if isinstance(latency, Table):
        subsets = [np.isin(np.arange(n), subset) for subset in latency.subsets]
    for chosen in subsets:
        seconds_is_a_time(latency, chosen)
    if not follow_up:
        floor_is_positive(latency, subsets)


def seconds_is_a_time(latency: Latency, chosen: BoolArray) -> None:
    seconds, again = latency.seconds(chosen.copy()), latency.seconds(chosen)
    said = f"seconds of arms {np.flatnonzero(chosen).tolist()} is {seconds!r}, which is"
    require(isinstance(seconds, numbers.Real), latency, f"{said} not a number")
    require(math.isfinite(seconds), latency, f"{said} not finite")
    require(seconds >= 0.0, latency, f"{said} negative")
    require(again == seconds, latency, f"{said} not deterministic: asked again it is {again!r}")


def floor_is_positive(latency: Latency, subsets: Iterable[BoolArray]) -> None:
    least = min(latency.seconds(chosen) for chosen in subsets)
    require(least > 0.0, latency, f"the floor of an entry round must be positive, is {least:g} s")


def check_belief(
    belief: Belief, *, features: npt.ArrayLike | None = None, rewards: npt.ArrayLike | None = None
) -> None:
    """Check a belief, as given and with rows learned.

    `features` (n, dim) and `rewards` (n,) are rows that it can learn; unless given, arms in the
    ball of its `feature_bound` (1 if it has none), and rewards 0 or 1.
    """
    X = _features(belief) if features is None else np.array(features, dtype=np.float64)
    y = _coins(len(X)) if rewards is None else np.array(rewards, dtype=np.float64)
    learned = deepcopy(belief)
    learned.learn(X, y)
    for known in (belief, learned):
        for check in (scores_are_numbers, scoring_is_pure, upper_is_above_mean, sample_uses_rng):
            check(deepcopy(known), X)
        for learns in (learn_adds_rows, refit_starts_again, belief_resumes, belief_refuses):
            learns(deepcopy(known), X, y)


def _scores(belief: Belief, X: FloatArray, seed: int = 0) -> dict[str, FloatArray]:
    draw = belief.sample(X, np.random.default_rng(seed))
    return {"mean": belief.mean(X), "upper": belief.upper(X), "sample": draw}


def _agree(a: Belief, b: Belief, X: FloatArray, mistake: str, *, bits: bool = False) -> None:
    theirs = _scores(b, X)
    for name, values in _scores(a, X).items():
        same = np.array_equal(values, theirs[name]) if bits else close(values, theirs[name])
        require(same, a, f"{name} {mistake}")


def scores_are_numbers(belief: Belief, X: FloatArray) -> None:
    together = _scores(belief, X)
    for rows in (X, X[:1], X[:0]):
        for name, values in _scores(belief, rows).items():
            n, shape = len(rows), np.shape(values)
            require(shape == (n,), belief, f"{name} of {n} arms has shape {shape}")
            require(np.isfinite(values).all(), belief, f"{name} is not finite")
            same = close(values, together[name][:n])
            require(same, belief, f"{name} of an arm depends on the arms scored with it")


def scoring_is_pure(belief: Belief, X: FloatArray) -> None:
    before = as_json(belief)
    _agree(belief, belief, X, "differs when asked again: scoring must be pure", bits=True)
    require(as_json(belief) == before, belief, "scoring changed the belief: it must be pure")


def upper_is_above_mean(belief: Belief, X: FloatArray) -> None:
    # Before anything is learned: later an estimate may leave the confidence set, and be undercut.
    prior = deepcopy(belief)
    prior.refit(X[:0], np.empty(0))
    mean, upper = prior.mean(X), prior.upper(X)
    below = upper < mean - CLOSE * (1.0 + np.abs(mean))
    require(not below.any(), belief, f"upper is below mean for features[{int(below.argmax())}]")


def sample_uses_rng(belief: Belief, X: FloatArray) -> None:
    first, other = (_scores(belief, X, seed)["sample"] for seed in (1, 2))
    certain = close(belief.upper(X), belief.mean(X))
    require(certain or not np.array_equal(first, other), belief, "sample ignores rng")
    twins = _scores(belief, np.concatenate([X, X]))["sample"].reshape(2, -1)
    require(close(*twins), belief, "sample gives equal arms two means: it must be a joint draw")


def learn_adds_rows(belief: Belief, X: FloatArray, y: FloatArray) -> None:
    halves, half, groups = deepcopy(belief), len(X) // 2, np.arange(len(X)) % 2
    belief.learn(X, y, groups)
    halves.learn(X[:half], y[:half], groups[:half])
    halves.learn(X[half:], y[half:], groups[half:])
    _agree(belief, halves, X, "after learn in two halves differs from learn at once")


def refit_starts_again(belief: Belief, X: FloatArray, y: FloatArray) -> None:
    fresh, half = deepcopy(belief), len(X) // 2
    belief.refit(X, y)
    again = deepcopy(belief)
    again.refit(X, y)
    _agree(again, belief, X, "changed after refit with the same rows: start again from the prior")
    fresh.refit(X[:half], y[:half])
    fresh.learn(X[half:], y[half:])
    _agree(belief, fresh, X, "after refit differs from learn of the same rows")


def belief_resumes(belief: Belief, X: FloatArray, y: FloatArray) -> None:
    restored = type(belief).restore(json.loads(as_json(belief)))
    _agree(belief, restored, X, "differs once restored: state() misses something", bits=True)
    belief.learn(X, y)
    restored.learn(X, y)
    _agree(belief, restored, X, "differs once a restored belief learns", bits=True)


def belief_refuses(belief: Belief, X: FloatArray, y: FloatArray) -> None:
    wide, broken = np.hstack([X, X[:, :1]]), np.where(np.arange(len(y)) == 1, np.nan, y)
    for score in (belief.mean, belief.upper):
        refuses(belief, True, "features of another dimension", partial(score, wide))
    refuses(belief, True, "a reward that is not finite", lambda: belief.learn(X, broken))
    refuses(belief, True, "fewer rewards than rows", lambda: belief.learn(X, y[1:]))


def check_policy(policy: Any, rounds: Sequence[Round] | None = None, *, saved: bool = True) -> None:
    """Check anything with the three verbs, `state` and `restore`.

    `rounds` are at least four entry rounds. `saved=False` is for an oracle, which has no state.
    """
    belief, kinds = getattr(policy, "belief", None), (Setup(2.0, 3.0, 1.0), Additive(2.0, 0.5))
    some = [Round(_features(belief, 3 + i % 4, seed=i), kinds[i % 2]) for i in range(8)]
    used = enumerate(rounds or some)
    keyed = [Round(r.features, r.latency, r.actions, groups=r.groups, key=f"#{i}") for i, r in used]
    checks = [decision_adds_up, decide_is_pure, only_learn_learns, policy_refuses]
    for check in [*checks, policy_resumes] if saved else checks:
        check(deepcopy(policy), keyed, saved)


def _done(decision: Decision) -> BoolArray:
    """Every arm if that may be taken, so that there is something to learn."""
    one, every = decision.round, np.ones(decision.round.n, dtype=np.bool_)
    free = not isinstance(one.latency, Table) and one.actions.allows(every, one.groups)
    return every if free else decision.chosen


def _score(policy: Any, decision: Decision, part: slice = slice(None)) -> None:
    arms = np.flatnonzero(_done(decision))
    policy.learn(decision, arms[part], _coins(len(arms))[part])


def _serve(policy: Any, rounds: Iterable[Round]) -> None:
    for one in rounds:
        decision = policy.decide(one)
        policy.commit(decision, _done(decision))
        _score(policy, decision)


def _same(a: Decision, b: Decision) -> bool:
    names = ("id", "chosen", "seconds", "reward", "gap", "estimates", "rate", "propensities")
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
    pieces, decisions = deepcopy(policy), [policy.decide(one) for one in rounds[:3]]
    for decision in decisions[:2]:
        policy.commit(decision, _done(decision))
        pieces.commit(decision, _done(decision))
    same = np.array_equal(policy.decide(rounds[2]).estimates, decisions[2].estimates)
    require(same, policy, "commit changed the estimates: only learn may")
    for decision in decisions[:2]:
        _score(policy, decision)
    for part in (slice(2, None), slice(0, 2)):
        _score(pieces, decisions[1], part)
        _score(pieces, decisions[0], part)
    a, b = policy.decide(rounds[2]), pieces.decide(rounds[2])
    same = close(a.estimates, b.estimates) and close(a.rate, b.rate)
    require(same, policy, "learn in two halves differs from learn at once")


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
    belief = getattr(policy, "belief", None)
    own = {} if isinstance(belief, Linear | None) else {"belief": type(belief)}
    restored = type(policy).restore(json.loads(as_json(policy)), **own)
    _score(policy, decision)
    _score(restored, decision)
    same = _same(policy.decide(rounds[0]), restored.decide(rounds[0]))
    require(same, policy, "restored policy decides differently: state() misses something")
