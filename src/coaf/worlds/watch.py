"""How work that takes long says how far it is."""

from collections.abc import Callable

Watch = Callable[[str, int, int | None], None]  # stage, done, of how many if that is known
