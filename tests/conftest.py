"""The same examples in every run: a test that fails now and then tells nobody anything."""

from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")
