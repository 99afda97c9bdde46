"""A Gaussian process on inducing points."""
