"""A grid and a microscope on a virtual clock."""
