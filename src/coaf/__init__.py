"""Decide, while the clock runs, which options are worth their time."""

from typing import TYPE_CHECKING, Any

from coaf.bandit.actions import AnySubset, AtMost, Capped, Exactly, Grouped, Listed, OneOf
from coaf.bandit.baselines import TakeAll, Threshold
from coaf.bandit.beliefs import (
    Drift,
    Ensemble,
    Finite,
    Kernel,
    Linear,
    Logistic,
    Mapped,
    Nested,
    Poisson,
    Regression,
)
from coaf.bandit.beliefs.prior import start_from
from coaf.bandit.choose import choose_belief
from coaf.bandit.faults import BeliefError, BeliefWarning
from coaf.bandit.index import Mean, Thompson, Truth, Upper
from coaf.bandit.latency import Additive, ByCount, Setup, Table, Tour, Tree
from coaf.bandit.memory_root import MemoryRoot
from coaf.bandit.policy import COAF
from coaf.bandit.problem import Decision, Round
from coaf.bandit.rate import Fixed, Renewal, RobbinsMonro

if TYPE_CHECKING:
    from coaf import worlds
    from coaf.worlds import compare, play

__version__ = "0.1.0"

__all__ = [
    "COAF",
    "Additive",
    "AnySubset",
    "AtMost",
    "BeliefError",
    "BeliefWarning",
    "ByCount",
    "Capped",
    "Decision",
    "Drift",
    "Ensemble",
    "Exactly",
    "Finite",
    "Fixed",
    "Grouped",
    "Kernel",
    "Linear",
    "Listed",
    "Logistic",
    "Mapped",
    "Mean",
    "MemoryRoot",
    "Nested",
    "OneOf",
    "Poisson",
    "Regression",
    "Renewal",
    "RobbinsMonro",
    "Round",
    "Setup",
    "Table",
    "TakeAll",
    "Thompson",
    "Threshold",
    "Tour",
    "Tree",
    "Truth",
    "Upper",
    "choose_belief",
    "compare",
    "play",
    "start_from",
    "worlds",
]


def __getattr__(name: str) -> Any:
    """Rooms further in load on first use, so that `import coaf` is quick."""
    if name in ("worlds", "compare", "play"):
        import importlib

        room = importlib.import_module("coaf.worlds")
        return room if name == "worlds" else getattr(room, name)
    raise AttributeError(f"module 'coaf' has no attribute {name!r}")
