"""Beliefs by the kind that their saved state names."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from coaf.bandit.beliefs.belief import Belief
from coaf.bandit.state import kind_of

B = TypeVar("B", bound=Belief)

_KINDS: dict[str, type[Belief]] = {}


def register(kind: str) -> Callable[[type[B]], type[B]]:
    """Decorate a class of beliefs whose state says that it is of this `kind`.

    Policies then restore it by themselves.

    Examples
    --------
    >>> from coaf.bandit.beliefs.linear import Linear
    >>> type(restore_belief(Linear(2).state())).__name__
    'Linear'
    """

    def add(belief: type[B]) -> type[B]:
        _KINDS[kind] = belief
        return belief

    return add


def is_registered(belief: Belief) -> bool:
    """Whether `restore_belief` finds this belief's class."""
    return type(belief) in _KINDS.values()


def restore_belief(state: Mapping[str, Any] | str, kind: type[Belief] | None = None) -> Belief:
    """The belief that `state` was taken from; one that is not registered needs its class."""
    if kind is not None:
        return kind.restore(state)
    name, saved = kind_of(state, "belief")
    if name not in _KINDS:
        raise ValueError(
            f"state names an unknown belief {name!r}, expected one of {sorted(_KINDS)}: if it is "
            "your own, pass its class as belief, as in COAF.restore(state, belief=MyBelief)"
        )
    return _KINDS[name].restore(saved)
