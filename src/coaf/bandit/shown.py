"""How beliefs, indices, rates and worlds print, and what is none of them in an error."""

import inspect
from collections.abc import Iterable
from typing import Any

import numpy as np

_LONG = 60  # characters, of one setting


def shown(thing: Any) -> str:
    """What was given in place of something else: None, a class, or a thing of some kind.

    Examples
    --------
    >>> shown([1, 2]), shown(3), shown(int), shown(None)
    ('a list', 'an int', 'the class int', 'None')
    """
    if isinstance(thing, type):
        return f"the class {thing.__name__}"
    return "None" if thing is None else with_article(type(thing).__name__)


def with_article(noun: str) -> str:
    """The noun with its article."""
    return f"an {noun}" if noun[:1].lower() in tuple("aeiou") else f"a {noun}"


def require_kind(name: str, thing: Any, parts: Iterable[str], wanted: str) -> None:
    """An error that says what is wanted and what `thing` lacks of it, unless it has all parts.

    Examples
    --------
    >>> require_kind("coin", 3, ("real", "toss"), "a coin, as Coin(2)")
    Traceback (most recent call last):
    ...
    TypeError: coin is an int, which lacks toss; it must be a coin, as Coin(2)
    """
    missing = [part for part in parts if not hasattr(thing, part)]
    if missing or isinstance(thing, type):
        nothing = thing is None or isinstance(thing, type)
        lacks = "" if nothing else f", which lacks {', '.join(missing)}"
        raise TypeError(f"{name} is {shown(thing)}{lacks}; it must be {wanted}")


class Shown:
    """Prints as what makes it: its class, and the settings that are not those it has by itself.

    A setting is an argument of `__init__` that is kept under its own name.

    Examples
    --------
    >>> class Coin(Shown):
    ...     def __init__(self, sides: int, *, bias: float = 0.5, seed: int = 0) -> None:
    ...         self.sides, self.bias, self.seed = sides, bias, seed
    >>> Coin(2, bias=0.6)
    Coin(2, bias=0.6)
    """

    def __repr__(self) -> str:
        settings = []
        for name, argument in inspect.signature(type(self)).parameters.items():
            usual, derived = argument.default, hasattr(type(self), name)
            value = usual if derived else getattr(self, name, usual)
            data = isinstance(value, np.ndarray) or value == []  # made of what was given
            if not data and repr(value) != repr(usual):
                text = f"{value:.6g}" if isinstance(value, float) else repr(value)
                if len(text) > _LONG or "\n" in text:
                    text = f"<{type(value).__name__}>"
                first = usual is argument.empty and argument.kind is not argument.KEYWORD_ONLY
                settings.append(text if first else f"{name}={text}")
        return f"{type(self).__name__}({', '.join(settings)})"
