"""Rounds whose arms are taken one by one: what they must be, and what is read off them."""

import numpy as np

from coaf.bandit.actions import AnySubset
from coaf.bandit.arrays import FloatArray
from coaf.bandit.groups import Groups
from coaf.bandit.latency import Additive, Setup
from coaf.bandit.problem import Round


def check_stepwise(round: Round) -> Round:
    if type(round.actions) is not AnySubset or type(round.latency) not in (Additive, Setup):
        raise ValueError(
            f"arms are taken one by one with Additive or Setup latency and any subset allowed, "
            f"not with {round.latency!r} and {round.actions!r}"
        )
    return round


def place_of(round: Round) -> tuple[str, ...] | None:
    """The groups that a round lies in, if it has any."""
    if round.groups is None or round.n == 0:
        return None
    return tuple(map(str, np.atleast_1d(round.groups[0]).tolist()))


def each_of(round: Round) -> float | FloatArray:
    assert isinstance(round.latency, Additive | Setup)
    return round.latency.each


def setup_of(round: Round) -> float:
    return round.latency.setup if isinstance(round.latency, Setup) else 0.0


def labels_of(rounds: list[Round], *, anew: bool) -> Groups | None:
    """The labels of all rounds; `anew` with another innermost one, which was never seen."""
    labels = [r.groups for r in rounds]
    known = [g for g in labels if g is not None]
    if len(known) < len(labels):
        return None
    joined: Groups = np.concatenate([g if g.ndim == 2 else g[:, None] for g in known])
    if anew and joined.shape[1]:
        joined = joined.copy()
        kind = joined.dtype
        joined[:, -1] = "\x01" if kind.kind == "U" else np.iinfo(kind).max
    return joined
