"""What `import coaf` offers, which `coaf` loads when the first of it is asked for."""

import importlib
from typing import TYPE_CHECKING, Any

from coaf.bandit.actions import AnySubset, AtMost, Capped, Exactly, Grouped, Listed, OneOf
from coaf.bandit.beliefs import (
    Drift,
    Ensemble,
    Finite,
    Kernel,
    Linear,
    Logistic,
    Mapped,
    Mixture,
    Nested,
    Poisson,
    Regression,
    ScaleFree,
)
from coaf.bandit.beliefs.choose import choose_belief
from coaf.bandit.beliefs.prior import start_from
from coaf.bandit.index import Mean, Thompson, Truth, Upper
from coaf.bandit.latency import Additive, ByCount, Setup, Table, Tour, Tree
from coaf.bandit.policies.baselines import TakeAll, Threshold
from coaf.bandit.policies.coaf import COAF
from coaf.bandit.policies.explore import Explore, load
from coaf.bandit.policies.faults import AssumptionWarning, BeliefError, BeliefWarning, RepeatedError
from coaf.bandit.policies.report import Report
from coaf.bandit.policies.stepwise import Stepwise
from coaf.bandit.problem import Decision, Round
from coaf.bandit.rates.budget import Budget
from coaf.bandit.rates.memory_root import MemoryRoot
from coaf.bandit.rates.rate import Fixed, Renewal, RobbinsMonro
from coaf.bandit.rates.restarting import Restarting
from coaf.version import __version__

if TYPE_CHECKING:
    from coaf import cryoem, worlds
    from coaf.worlds import compare, play
    from coaf.worlds.warm import warm

__all__ = [
    "COAF",
    "Additive",
    "AnySubset",
    "AssumptionWarning",
    "AtMost",
    "BeliefError",
    "BeliefWarning",
    "Budget",
    "ByCount",
    "Capped",
    "Decision",
    "Drift",
    "Ensemble",
    "Exactly",
    "Explore",
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
    "Mixture",
    "Nested",
    "OneOf",
    "Poisson",
    "Regression",
    "Renewal",
    "RepeatedError",
    "Report",
    "Restarting",
    "RobbinsMonro",
    "Round",
    "ScaleFree",
    "Setup",
    "Stepwise",
    "Table",
    "TakeAll",
    "Thompson",
    "Threshold",
    "Tour",
    "Tree",
    "Truth",
    "Upper",
    "__version__",
    "choose_belief",
    "compare",
    "cryoem",
    "load",
    "play",
    "start_from",
    "warm",
    "worlds",
]

_LATER = {"compare": "coaf.worlds", "play": "coaf.worlds", "warm": "coaf.worlds.warm"}


def __getattr__(name: str) -> Any:
    """Rooms further in load on first use, so that `import coaf` is quick."""
    if name in ("bandit", "worlds", "cryoem"):
        return importlib.import_module(f"coaf.{name}")
    if name in _LATER:
        return getattr(importlib.import_module(_LATER[name]), name)
    raise AttributeError(f"module 'coaf' has no attribute {name!r}")
