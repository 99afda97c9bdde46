"""Contracts for what you bring yourself: run these in your own tests.

What you pass is copied, never changed. Where the same calls were made, answers must be the same
bits; where the same is computed in another order, they must agree to 1e-8.
"""

from coaf.bandit.checks.actions import check_actions
from coaf.bandit.checks.beliefs import check_belief
from coaf.bandit.checks.contract import ContractError
from coaf.bandit.checks.indices import check_index
from coaf.bandit.checks.latencies import check_latency
from coaf.bandit.checks.policies import check_policy
from coaf.bandit.checks.rates import check_rate

__all__ = [
    "ContractError",
    "check_actions",
    "check_belief",
    "check_index",
    "check_latency",
    "check_policy",
    "check_rate",
]
