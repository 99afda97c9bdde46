"""One suite per contract: a new implementation joins a list in `subjects` and inherits it."""
