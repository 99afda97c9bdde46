"""Grids that were collected in full once, and policies played over them again."""
