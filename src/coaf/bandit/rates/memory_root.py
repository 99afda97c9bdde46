"""The rate as the exact root over remembered rounds."""

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from coaf.bandit.actions import AnySubset
from coaf.bandit.arrays import FloatArray, number
from coaf.bandit.latency import arm_by_arm, is_arm_by_arm
from coaf.bandit.problem import Round
from coaf.bandit.rates.dinkelbach import dinkelbach
from coaf.bandit.rates.rate import Scoring, Visit
from coaf.bandit.select import WORK
from coaf.bandit.shown import Shown
from coaf.bandit.state import decode, encode, entry


class MemoryRoot(Shown):
    """The root of Σ min_A g(Γ, A) over a bounded memory of recent rounds, scored as of today.

    Where stochastic approximation carries along what it once thought of a round, this asks anew
    what each remembered round is worth under today's belief, and solves for the rate at which they
    break even (`th: MBSP_ub`), by Dinkelbach's method.

    Parameters
    ----------
    size
        How many entry rounds are remembered.
    initial
        The rate before any round was committed; 0 unless given.
    """

    def __init__(self, *, size: int = 100, initial: float = 0.0) -> None:
        self.size = int(number("size", size, low=1))
        self.initial = number("initial", initial)
        self.rounds: deque[Round] = deque(maxlen=self.size)

    def value(self, score: Scoring) -> float:
        return root(list(self.rounds), score, self.initial)

    def enter(self, visit: Visit, round: Round) -> None:
        self.rounds.append(round)

    def update(self, visit: Visit) -> None:
        """A follow-up changes nothing: the round is remembered as it was entered."""

    def state(self) -> dict[str, Any]:
        rounds = [save_round(r) for r in self.rounds]
        return {"rate": "memory-root", "size": self.size, "initial": self.initial, "rounds": rounds}

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> "MemoryRoot":
        rate = cls(size=entry(state, "size"), initial=entry(state, "initial"))
        rate.rounds.extend(load_round(r) for r in entry(state, "rounds"))
        return rate


_FIELDS = ("features", "latency", "actions", "groups", "follows", "key")


def save_round(round: Round) -> dict[str, Any]:
    """A round as JSON."""
    saved = {name: encode(getattr(round, name)) for name in _FIELDS}
    return saved if round.parts is None else {**saved, "parts": encode(round.parts)}


def load_round(state: Mapping[str, Any]) -> Round:
    """The round that `save_round` was given."""
    parts = decode(state["parts"]) if "parts" in state else None
    return Round(**{name: decode(entry(state, name)) for name in _FIELDS}, parts=parts)


def score_all(rounds: list[Round], score: Scoring) -> FloatArray:
    """The estimates of every arm of every round: in one call, unless groups cannot be joined."""
    estimates = _score_parts(rounds, score)
    if any(r.parts is not None for r in rounds):
        parts = [np.ones(r.n) if r.parts is None else r.parts for r in rounds]
        estimates = estimates * np.concatenate(parts)
    return estimates


def _score_parts(rounds: list[Round], score: Scoring) -> FloatArray:
    labels = [r.groups for r in rounds]
    if all(groups is None for groups in labels):
        return score(np.concatenate([r.features for r in rounds]), None)
    known = [groups for groups in labels if groups is not None]
    # Joined, integers would turn into strings beside strings, and into floats beside unsigned ones.
    if len(known) == len(rounds) and len({(g.dtype.kind, g.shape[1:]) for g in known}) == 1:
        return score(np.concatenate([r.features for r in rounds]), np.concatenate(known))
    return np.concatenate([score(r.features, r.groups) for r in rounds])


def root(rounds: list[Round], score: Scoring, initial: float) -> float:
    """The rate at which `rounds` break even: the root of Σ_j min_A g(Γ, A, l_j, μ̂_j).

    It is found by Dinkelbach's method; in compiled code where arms are judged one by one.
    """
    if not rounds:
        return initial
    estimates = score_all(rounds, score)
    if all(type(r.actions) is AnySubset and is_arm_by_arm(r.latency) for r in rounds):
        return _root_by_threshold(rounds, estimates, initial)
    parts = np.split(estimates, np.cumsum([r.n for r in rounds])[:-1])
    # A decision asks this of every round some ten times over, and should take no longer for that.
    work = WORK // (10 * len(rounds))

    def ratio(rate: float) -> float:
        reward = seconds = 0.0
        for r, mu in zip(rounds, parts, strict=True):
            chosen = r.best(rate, mu, work=work)
            reward += float(mu[chosen.chosen].sum())
            seconds += chosen.seconds
        return reward / seconds

    return dinkelbach(ratio, initial)


def _root_by_threshold(rounds: list[Round], estimates: FloatArray, initial: float) -> float:
    from coaf.bandit.compiled.threshold import threshold_root  # loads numba

    counts = np.array([r.n for r in rounds])
    timing = [arm_by_arm(r.latency) for r in rounds]
    base, setup = np.array([t.base for t in timing]), np.array([t.setup for t in timing])
    each = [np.broadcast_to(t.each, r.n) for t, r in zip(timing, rounds, strict=True)]
    costs = np.concatenate(each)[None]
    return threshold_root(estimates, counts, base, setup, costs, initial)
