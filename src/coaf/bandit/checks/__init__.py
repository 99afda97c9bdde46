"""Contracts for what you bring yourself: run these in your own tests."""

from coaf.bandit.checks.beliefs import check_belief
from coaf.bandit.checks.contract import ContractError
from coaf.bandit.checks.policies import check_latency, check_policy

__all__ = ["ContractError", "check_belief", "check_latency", "check_policy"]
