"""What is known of the mean reward; every belief is imported here, which registers it."""

from coaf.bandit.beliefs.linear import Linear

__all__ = ["Linear"]
