"""How those who wait are told how far long work is."""

from collections.abc import Callable

Progress = Callable[[int, int], None]  # done, of how many
Tell = Callable[[str, int, int | None], None]  # the stage, done, of how many if that is known
