"""Compiled code between runs: where it is kept, how, and what is said while there is none yet."""
