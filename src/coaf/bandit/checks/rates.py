"""The contract of a rate, for the tests of those who bring one."""

import json
import math
import numbers
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import asdict, replace

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.checks.contract import as_json, require, require_parts
from coaf.bandit.groups import Groups
from coaf.bandit.latency import Additive, Setup
from coaf.bandit.problem import Round
from coaf.bandit.rates.rate import Rate, Visit


def check_rate(rate: Rate, rounds: Sequence[Round] | None = None) -> None:
    """Check a rate: as given, after visits, within one, and restored.

    Parameters
    ----------
    rate
        It is copied, never changed. `restore` is checked where its class has it.
    rounds
        At least four entry rounds, whose first feature is the estimate of each arm. Made up unless
        given.
    """
    require_parts(rate, "a rate", ("value", "enter", "update", "state"))
    made = list(_rounds()) if rounds is None else list(rounds)
    half = len(made) // 2
    for before in ([], made[:half]):
        for check in (value_is_pure, a_visit_moves_it_once, blind_visits_tell_nothing, it_resumes):
            known = deepcopy(rate)
            _enter(known, before)
            check(known, made[half:])


def _rounds() -> Iterator[Round]:
    rng = np.random.default_rng(0)
    for i in range(8):
        features = rng.uniform(-0.5, 1.0, (2 + i % 4, 1))
        yield Round(features, Additive(3.0, 0.5) if i % 2 else Setup(2.0, 3.0, 1.0), key=f"#{i}")


def _score(features: FloatArray, groups: Groups | None) -> FloatArray:
    return features[:, 0].copy()


def _visit(rate: Rate, one: Round) -> Visit:
    """An entry round as a policy would take it at this rate."""
    value, estimates = rate.value(_score), _score(one.features, one.groups)
    choice = one.best(value, estimates)
    spent = (choice.seconds, choice.reward)
    return Visit(str(one.key), value, *spent, *spent, late_seconds=0.0, late_reward=0.0)


def _later(visit: Visit) -> Visit:
    """The visit with a follow-up more."""
    return replace(
        visit,
        planned_seconds=visit.planned_seconds + 2.0,
        planned_reward=visit.planned_reward + 1.5,
        spent_seconds=visit.spent_seconds + 2.5,
        spent_reward=visit.spent_reward + 1.0,
        overrun=0.5,
    )


def _enter(rate: Rate, rounds: Sequence[Round]) -> None:
    for one in rounds:
        visit = _visit(rate, one)
        before = asdict(visit)
        rate.enter(visit, one)
        require(
            asdict(visit) == before, rate, "enter changed the visit, to which follow-ups are added"
        )


def value_is_pure(rate: Rate, rounds: Sequence[Round]) -> None:
    for one in rounds:
        before, value = as_json(rate), rate.value(_score)
        said = f"value is {value!r}; it must be"
        require(isinstance(value, numbers.Real), rate, f"{said} a number: what a second is worth")
        require(math.isfinite(value), rate, f"{said} finite, also before any visit")
        require(
            rate.value(_score) == value, rate, "value differs when asked again: it must be pure"
        )
        require(as_json(rate) == before, rate, "value changed the rate: only visits may")
        _enter(rate, [one])


def a_visit_moves_it_once(rate: Rate, rounds: Sequence[Round]) -> None:
    """However often it is told of: `update` takes the step again from where the visit began."""
    for one in rounds:
        visit = _visit(rate, one)
        rate.enter(visit, one)
        entered = rate.value(_score)
        rate.update(replace(visit))
        require(
            rate.value(_score) == entered,
            rate,
            "update with nothing new moved it: take the step again from where the visit began",
        )
        longer = _later(visit)
        rate.update(replace(longer))
        once = rate.value(_score)
        rate.update(replace(longer))
        require(
            rate.value(_score) == once,
            rate,
            "update told of the same twice moved it twice: take the step again from where the "
            "visit began",
        )
        require(math.isfinite(once), rate, f"value is {once!r} after a follow-up")


def blind_visits_tell_nothing(rate: Rate, rounds: Sequence[Round]) -> None:
    one, other = rate, deepcopy(rate)
    for at in rounds:
        visit = replace(_visit(rate, at), blind=True)
        wild = replace(visit, planned_reward=1e6, spent_reward=1e6, late_reward=1e6)
        for known, told in ((one, visit), (other, wild)):
            known.enter(replace(told), at)
            known.update(_later(told))
        require(
            one.value(_score) == other.value(_score),
            rate,
            "what a blind visit seemed to bring counts: it is no number (Visit.blind)",
        )


def it_resumes(rate: Rate, rounds: Sequence[Round]) -> None:
    state = json.loads(as_json(rate))
    restore = getattr(type(rate), "restore", None)
    if restore is None:
        return
    again = restore(state)
    mistake = "differs once restored: state() misses something"
    require(again.value(_score) == rate.value(_score), rate, f"value {mistake}")
    for one in rounds:
        visit = _visit(rate, one)
        for known in (rate, again):
            known.enter(replace(visit), one)
        again = restore(json.loads(as_json(again)))  # in the middle of a visit
        for known in (rate, again):
            known.update(_later(visit))
        require(again.value(_score) == rate.value(_score), rate, f"value of a visit {mistake}")
