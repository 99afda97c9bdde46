"""The contract of an action space, for the tests of those who bring one."""

import numpy as np
import numpy.typing as npt

from coaf.bandit.actions import Actions, uncapped
from coaf.bandit.arrays import BoolArray
from coaf.bandit.checks.contract import ContractError, require, require_parts
from coaf.bandit.groups import Groups, check_groups
from coaf.bandit.latency import Setup
from coaf.bandit.select import best
from coaf.bandit.selection.listed import every_subset

MOST = 12  # arms
_TIMES = Setup(base=1.0, setup=1.0, each=0.5)


def check_actions(actions: Actions, n: int, groups: npt.ArrayLike | None = None) -> None:
    """Check an action space for rounds of up to `n` arms, by all of their subsets.

    `n` is at most 12. `groups` are labels of that many arms, for actions that read them.
    """
    require_parts(actions, "an action space", ("allows", "check"))
    if not 0 <= n <= MOST:
        raise ValueError(f"n is {n}; it must be from 0 to {MOST}, to look at every subset")
    labels = None if groups is None else check_groups(groups, n)
    actions.check(n, labels)
    for arms in range(n + 1):
        some = None if labels is None else labels[:arms]
        if check_is_honest(actions, arms, some) and arms == n:
            selection_keeps_to_it(actions, arms, some)


def _allows(actions: Actions, chosen: BoolArray, groups: Groups | None) -> bool:
    """What it says of this subset, which must be one thing."""
    asked = chosen.copy()
    said, again = actions.allows(asked, groups), actions.allows(asked, groups)
    what = f"allows of arms {np.flatnonzero(chosen).tolist()}"
    require(
        isinstance(said, bool | np.bool_), actions, f"{what} is {said!r}; it must be True or False"
    )
    require(said == again, actions, f"{what} is {said}, and {again} when asked again")
    require(np.array_equal(asked, chosen), actions, f"{what} changed the mask that it was given")
    return bool(said)


def check_is_honest(actions: Actions, n: int, groups: Groups | None) -> bool:
    """Whether it serves rounds of `n` arms; if it says so, something must be allowed."""
    try:
        actions.check(n, groups)
    except ValueError:
        return False
    except Exception as error:
        raise ContractError(
            f"{type(actions).__name__}: check({n}) raised {type(error).__name__} ({error}); where "
            "it does not serve rounds of so many arms it must raise ValueError"
        ) from error
    found = [_allows(actions, chosen, groups) for chosen in every_subset(n)]
    require(
        any(found),
        actions,
        f"check({n}) finds nothing wrong, but no subset of {n} arms is allowed: it must raise "
        "ValueError",
    )
    return True


def selection_keeps_to_it(actions: Actions, n: int, groups: Groups | None) -> None:
    """Selection finds the best of what is allowed, by brute force."""
    rng, (cap, _) = np.random.default_rng(0), uncapped(actions)
    allowed = [
        (chosen, seconds)
        for chosen in every_subset(n)
        if _allows(actions, chosen, groups) and (seconds := _TIMES.seconds(chosen)) <= cap
    ]
    if not allowed:
        return  # nothing fits in the cap, and selection says so
    for rate in (0.0, 0.3, 2.0):
        mu = rng.uniform(-0.5, 1.0, n)
        found = best(rate, mu, _TIMES, actions, groups)
        said = f"selection takes arms {np.flatnonzero(found.chosen).tolist()}, "
        require(_allows(actions, found.chosen, groups), actions, f"{said}which it does not allow")
        least = min(rate * seconds - float(mu[chosen].sum()) for chosen, seconds in allowed)
        require(
            found.gap <= least + 1e-9, actions, f"{said}though it allows a subset of smaller gap"
        )
