"""What is known of the mean reward; every belief is imported here, which registers it."""

from coaf.bandit.beliefs.beside import Beside
from coaf.bandit.beliefs.drift import Drift
from coaf.bandit.beliefs.ensemble import Ensemble
from coaf.bandit.beliefs.finite import Finite
from coaf.bandit.beliefs.glm import Logistic, Poisson
from coaf.bandit.beliefs.kernel.kernel import Kernel
from coaf.bandit.beliefs.linear import Linear
from coaf.bandit.beliefs.mapped import Mapped
from coaf.bandit.beliefs.mixture import Mixture
from coaf.bandit.beliefs.nested.nested import Nested
from coaf.bandit.beliefs.regression import Regression
from coaf.bandit.beliefs.scale_free import ScaleFree

__all__ = [
    "Beside",
    "Drift",
    "Ensemble",
    "Finite",
    "Kernel",
    "Linear",
    "Logistic",
    "Mapped",
    "Mixture",
    "Nested",
    "Poisson",
    "Regression",
    "ScaleFree",
]
