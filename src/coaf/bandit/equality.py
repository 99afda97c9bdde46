"""Equality for dataclasses that hold arrays."""

from dataclasses import fields
from typing import ClassVar

import numpy as np


class ByFields:
    """Equal when all fields are; the equality that a dataclass writes itself fails on arrays."""

    __slots__ = ()

    # Arrays cannot be hashed, so neither can what holds them.
    __hash__: ClassVar[None]  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        pairs = (
            (getattr(self, entry.name), getattr(other, entry.name))
            for entry in fields(self)  # type: ignore[arg-type]
        )
        return all(
            np.array_equal(a, b) if isinstance(a, np.ndarray) else type(a) is type(b) and a == b
            for a, b in pairs
        )
