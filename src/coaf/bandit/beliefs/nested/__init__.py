"""Effects of groups in groups."""
