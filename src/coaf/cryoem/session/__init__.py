"""A session: what drives a microscope, hears its scores and guards it."""
