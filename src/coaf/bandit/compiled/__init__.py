"""Everything that numba compiles. Loads on first use, so that `import coaf` is quick."""
