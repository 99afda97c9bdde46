"""Starting from what is known already."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from coaf.bandit.beliefs.belief import Belief
from coaf.bandit.beliefs.registry import restore_belief


def start_from(
    earlier: Belief | Mapping[str, Any] | str,
    *,
    discount: float = 1.0,
    belief: type[Belief] | None = None,
) -> Belief:
    """A belief for a new session, whose prior is what an earlier one knew.

    Parameters
    ----------
    earlier
        A belief, which is copied, or the saved state of one (`policy.state()["belief"]`).
    discount
        What the rows that it learned count, in (0, 1]: 0.3 trusts ten of them as much as three
        new ones. What had been its own prior stays as it is.
    belief
        The class of a belief of your own, unless it is registered.

    Examples
    --------
    Labelled examples are a prior, too: a refit of the session starts from them.

    >>> from coaf.bandit.beliefs.linear import Linear
    >>> taught = Linear(2)
    >>> taught.learn([[1.0, 0.0], [0.0, 1.0]], [0.8, 0.2])
    >>> tomorrow = start_from(taught)
    >>> tomorrow.learn([[1.0, 0.0]], [0.0])
    >>> tomorrow.refit([[0.0, 0.0]], [0.0])
    >>> tomorrow.mean([[1.0, 0.0]])
    array([0.4])
    """
    if isinstance(earlier, Mapping | str):
        known = restore_belief(earlier, belief)
    else:
        known = deepcopy(earlier)
    known.forget(discount)
    known.settle()
    return known
