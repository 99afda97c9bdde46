"""Grids that were collected in full once, and pilots played over them again."""
