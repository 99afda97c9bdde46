"""The contract of a belief, for the tests of those who bring one."""

import json
import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import FloatArray
from coaf.bandit.beliefs.belief import Belief
from coaf.bandit.checks.contract import (
    CLOSE,
    as_json,
    close,
    coins,
    refuses,
    require,
    require_parts,
    some_features,
)
from coaf.bandit.groups import Groups, check_groups


@dataclass(frozen=True)
class Trial:
    """Rows to learn, and how well what is computed in two ways must agree."""

    X: FloatArray
    y: FloatArray
    groups: Groups | None
    tolerance: float
    exact_online: bool

    def part(self, rows: slice) -> "Trial":
        groups = None if self.groups is None else self.groups[rows]
        return replace(self, X=self.X[rows], y=self.y[rows], groups=groups)

    def halves(self) -> "tuple[Trial, Trial]":
        half = len(self.y) // 2
        return self.part(slice(half)), self.part(slice(half, None))


PARTS = (
    *("dim", "mean", "upper", "sample", "learn", "refit"),
    *("forget", "settle", "state", "restore"),
)


def check_belief(
    belief: Belief,
    *,
    features: npt.ArrayLike | None = None,
    rewards: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    tolerance: float = CLOSE,
    exact_online: bool = True,
) -> None:
    """Check a belief: as given, with rows learned, and started from an earlier session.

    Parameters
    ----------
    belief
        It is copied, never changed.
    features, rewards, groups : (n, dim), (n,), (n,) or (n, levels)
        Rows that it can learn. Unless given: arms in the ball of its `feature_bound` (1 if it has
        none); rewards 0 or 1; and groups of one level, of two levels, and none, each in turn.
    tolerance
        How well scores must agree that are computed in another order, absolute plus relative.
    exact_online
        Whether learning in pieces must give what learning at once does. With False, `learn` may
        be an online approximation: `refit` is the reference, and only it must not depend on how
        its rows were learned before.
    """
    require_parts(belief, "a belief", PARTS)
    X = some_features(belief) if features is None else np.array(features, dtype=np.float64)
    y = coins(len(X)) if rewards is None else np.array(rewards, dtype=np.float64)
    plain = Trial(X, y, None, tolerance, exact_online)
    arms = np.arange(len(X))
    nested = np.column_stack([arms % 2, arms % 3])
    kinds = [arms % 3, np.array(["a", "b"])[arms % 2], nested] if groups is None else [groups]
    grouped = [replace(plain, groups=check_groups(labels, len(X))) for labels in kinds]

    learned = deepcopy(belief)
    learned.learn(X, y)
    carried = deepcopy(learned)
    carried.forget(0.5)
    carried.settle()
    carried.learn(X, y)
    upper_is_above_mean(deepcopy(belief), plain)
    for known in (belief, learned, carried):
        for check in (scores_are_numbers, scoring_is_pure, sample_uses_rng):
            check(deepcopy(known), plain)
        for trial in grouped:
            groups_are_scored(deepcopy(known), trial)
        for trial in (plain, *grouped):
            for learns in (learn_adds_rows, refit_starts_again, belief_resumes):
                learns(deepcopy(known), trial)
        for check in (belief_refuses, forget_counts_less, settle_is_a_prior, forget_refuses):
            check(deepcopy(known), plain)


def _scores(belief: Belief, trial: Trial, seed: int = 0) -> dict[str, FloatArray]:
    X, groups = trial.X, trial.groups
    if groups is None:  # as beliefs are asked where arms have no groups, and by people
        draw = belief.sample(X, np.random.default_rng(seed))
        return {"mean": belief.mean(X), "upper": belief.upper(X), "sample": draw}
    draw = belief.sample(X, np.random.default_rng(seed), groups)
    return {"mean": belief.mean(X, groups), "upper": belief.upper(X, groups), "sample": draw}


def _agree(a: Belief, b: Belief, trial: Trial, mistake: str, *, bits: bool = False) -> None:
    theirs = _scores(b, trial)
    for name, ours in _scores(a, trial).items():
        other = theirs[name]
        same = np.array_equal(ours, other) if bits else close(ours, other, trial.tolerance)
        require(same, a, f"{name} {mistake}")


def _after(belief: Belief, *steps: Callable[[Belief], None]) -> Belief:
    result = deepcopy(belief)
    for step in steps:
        step(result)
    return result


def _learn(trial: Trial) -> Callable[[Belief], None]:
    return lambda belief: belief.learn(trial.X, trial.y, trial.groups)


def _refit(trial: Trial) -> Callable[[Belief], None]:
    return lambda belief: belief.refit(trial.X, trial.y, trial.groups)


def scores_are_numbers(belief: Belief, trial: Trial) -> None:
    together = _scores(belief, trial)
    for few in (trial, trial.part(slice(1)), trial.part(slice(0))):
        for name, values in _scores(belief, few).items():
            n, shape = len(few.X), np.shape(values)
            require(shape == (n,), belief, f"{name} of {n} arms has shape {shape}")
            require(np.isfinite(values).all(), belief, f"{name} is not finite")
            same = close(values, together[name][:n], trial.tolerance)
            require(same, belief, f"{name} of an arm depends on the arms scored with it")


def scoring_is_pure(belief: Belief, trial: Trial) -> None:
    before = as_json(belief)
    _agree(belief, belief, trial, "differs when asked again: scoring must be pure", bits=True)
    require(as_json(belief) == before, belief, "scoring changed the belief: it must be pure")


def upper_is_above_mean(belief: Belief, trial: Trial) -> None:
    # Before anything is learned: later an estimate may leave the confidence set, and be undercut.
    prior = _scores(_after(belief, _refit(trial.part(slice(0)))), trial)
    below = prior["upper"] < prior["mean"] - trial.tolerance * (1.0 + np.abs(prior["mean"]))
    require(not below.any(), belief, f"upper is below mean for features[{int(below.argmax())}]")


def sample_uses_rng(belief: Belief, trial: Trial) -> None:
    # Several seeds: a belief over a few functions may well draw the same one twice.
    first, *others = (_scores(belief, trial, seed) for seed in range(1, 9))
    certain = close(first["upper"], first["mean"])
    noisy = any(not np.array_equal(first["sample"], other["sample"]) for other in others)
    require(certain or noisy, belief, "sample ignores rng")
    twice = replace(trial, X=np.concatenate([trial.X, trial.X]))
    one, twin = _scores(belief, twice)["sample"].reshape(2, -1)
    same = close(one, twin, trial.tolerance)
    require(same, belief, "sample gives equal arms two means: it must be a joint draw")


def groups_are_scored(belief: Belief, trial: Trial) -> None:
    assert trial.groups is not None
    what = f"groups of shape {trial.groups.shape} and {trial.groups.dtype}"
    words = trial.groups.dtype.kind == "U"
    unseen = np.char.add(trial.groups, "'") if words else trial.groups + 1000
    others = replace(trial, groups=unseen)
    for known in (belief, _after(belief, _learn(trial))):
        for asked in (trial, others):
            before = as_json(known)
            try:
                scores = _scores(known, asked)
            except Exception as error:
                require(False, belief, f"scoring {what} raised {type(error).__name__}: {error}")
            for name, values in scores.items():
                fine = np.shape(values) == (len(trial.y),) and np.isfinite(values).all()
                require(fine, belief, f"{name} with {what} must be a finite number for each arm")
            _agree(known, known, asked, f"with {what} differs when asked again", bits=True)
            require(as_json(known) == before, belief, f"scoring {what} changed the belief")


def learn_adds_rows(belief: Belief, trial: Trial) -> None:
    at_once = _after(belief, _learn(trial))
    halves = _after(belief, *map(_learn, trial.halves()))
    if trial.exact_online:
        _agree(at_once, halves, trial, "after learn in two halves differs from learn at once")
    for one in (at_once, halves):
        one.refit(trial.X, trial.y, trial.groups)
    _agree(at_once, halves, trial, "after refit depends on how rows were learned before")


def refit_starts_again(belief: Belief, trial: Trial) -> None:
    once = _after(belief, _refit(trial))
    again = _after(once, _refit(trial))
    _agree(again, once, trial, "changed after refit with the same rows: start again from the prior")
    if trial.exact_online:
        first, second = trial.halves()
        pieces = _after(belief, _refit(first), _learn(second))
        _agree(once, pieces, trial, "after refit differs from learn of the same rows")


def belief_resumes(belief: Belief, trial: Trial) -> None:
    if trial.groups is not None:
        belief.learn(trial.X, trial.y, trial.groups)
    restored = type(belief).restore(json.loads(as_json(belief)))
    _agree(belief, restored, trial, "differs once restored: state() misses something", bits=True)
    for name, step in (("learns", _learn), ("is refitted", _refit)):
        ours, theirs = (_after(one, step(trial)) for one in (belief, restored))
        _agree(ours, theirs, trial, f"differs once a restored belief {name}", bits=True)


def belief_refuses(belief: Belief, trial: Trial) -> None:
    X, y = trial.X, trial.y
    wide, broken = np.hstack([X, X[:, :1]]), np.where(np.arange(len(y)) == 1, np.nan, y)
    for score in (belief.mean, belief.upper):
        refuses(belief, True, "features of another dimension", partial(score, wide))
    refuses(belief, True, "a reward that is not finite", lambda: belief.learn(X, broken))
    refuses(belief, True, "fewer rewards than rows", lambda: belief.learn(X, y[1:]))


def forget_counts_less(belief: Belief, trial: Trial) -> None:
    belief.learn(trial.X, trial.y)
    before = as_json(belief)
    belief.forget(1.0)
    require(as_json(belief) == before, belief, "forget(1.0) changed the belief: it forgets nothing")
    belief.forget(0.5)
    require(as_json(belief) != before, belief, "forget(0.5) changed nothing: rows must count less")


def settle_is_a_prior(belief: Belief, trial: Trial) -> None:
    belief.learn(trial.X, trial.y)
    belief.forget(0.5)
    settled = deepcopy(belief)
    settled.settle()
    _agree(settled, belief, trial, "changed after settle: only refit and forget may notice")
    again = _after(settled, _learn(trial), _refit(trial.part(slice(0))))
    _agree(again, settled, trial, "after refit with no rows is not what was settled")
    again = _after(settled, lambda one: one.forget(0.5))
    _agree(
        again, settled, trial, "of the prior changed after forget: only rows since may count less"
    )
    if trial.exact_online:
        learned, refitted = (_after(settled, step(trial)) for step in (_learn, _refit))
        _agree(learned, refitted, trial, "after settle and refit differs from settle and learn")
    restored = type(belief).restore(json.loads(as_json(settled)))
    ours, theirs = (_after(one, _refit(trial)) for one in (settled, restored))
    _agree(ours, theirs, trial, "differs once restored: state() misses the prior", bits=True)


def forget_refuses(belief: Belief, trial: Trial) -> None:
    belief.learn(trial.X, trial.y)
    for factor in (0.0, -0.5, 2.0, math.nan):
        refuses(belief, True, f"forget({factor})", partial(belief.forget, factor))
