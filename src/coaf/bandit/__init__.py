"""The algorithm: rounds, beliefs, indices, rates and policies."""
