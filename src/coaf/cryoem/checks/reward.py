"""The contract of a reward: run it in the tests of your own."""

import math
from itertools import product
from numbers import Real

from coaf.bandit.checks.contract import ContractError, close, require
from coaf.cryoem.microscope import Score
from coaf.cryoem.reward import NO_FIT, Combined, GoodBelow, Graded, Particles, Reward, parse_reward

_FITS = (2.0, 2.9, 3.2, 3.79, 4.6, 7.0, 15.0, 60.0)  # Å, best first
_COUNTS = (None, math.nan, 0.0, 1.0, 57.0, 412.0)  # None and nan: picking was not done
_FAILED = (None, math.nan, math.inf, NO_FIT)  # how programs write a fit that failed
_IMPOSSIBLE = ((0.0, 57.0), (-3.2, 57.0), (-math.inf, 57.0), (3.2, -1.0), (3.2, math.inf))


def check_reward(reward: Reward) -> None:
    """Check the promises of `coaf.cryoem.reward.Reward`.

    A broken promise raises `ContractError`, which says what was seen.

    Examples
    --------
    >>> check_reward(GoodBelow(3.8))
    >>> class Best:
    ...     family = "logistic"
    ...     def __call__(self, score):
    ...         return 10.0 / score.ctf
    >>> check_reward(Best())
    Traceback (most recent call last):
    ...
    coaf.bandit.checks.contract.ContractError: Best: a fit of 2.0 Å with None particles is worth \
5.0, and of the family "logistic" rewards are from 0 to 1
    """
    right = callable(reward)
    require(right, reward, "a reward is a function of a score; it needs __call__(score)")
    family = getattr(reward, "family", None)
    right = family in ("logistic", "gaussian")
    require(right, reward, f'family is {family!r}; it must be "logistic" or "gaussian"')
    values_are_numbers(reward)
    values_are_the_same_again(reward)
    failed_fits_are_handled(reward)
    impossible_scores_are_refused(reward)
    what_is_printed_is_read_again(reward)


def _score(ctf: float | None, particles: float | None) -> Score:
    return Score("hole", 0, ctf, particles, exposed_at=10.0, arrived_at=55.0)


def _what(ctf: float | None, particles: float | None) -> str:
    return f"a fit of {ctf} Å with {particles} particles"


def _value(reward: Reward, ctf: float | None, particles: float | None) -> float | None:
    """The reward of a score that can be, which must be a number or None."""
    what = _what(ctf, particles)
    try:
        value = reward(_score(ctf, particles))
    except Exception as error:
        name = type(reward).__name__
        raise ContractError(
            f"{name}: {what} must be worth a number, or None where there is nothing to learn; it "
            f"raised {type(error).__name__}: {error}"
        ) from error
    right = value is None or (isinstance(value, Real) and math.isfinite(value))
    require(right, reward, f"{what} is worth {value!r}; it must be a finite number, or None")
    inside = value is None or reward.family != "logistic" or 0.0 <= value <= 1.0
    bounds = 'of the family "logistic" rewards are from 0 to 1'
    require(inside, reward, f"{what} is worth {value!r}, and {bounds}")
    return value


def values_are_numbers(reward: Reward) -> None:
    values = [_value(reward, ctf, count) for ctf, count in product(_FITS, _COUNTS)]
    some = any(value is not None for value in values)
    require(some, reward, "no score is worth anything but None: there is nothing to learn from it")


def values_are_the_same_again(reward: Reward) -> None:
    scores = list(product((*_FITS, None), _COUNTS))
    first = {score: _value(reward, *score) for score in scores}
    for score in reversed(scores):
        again = _value(reward, *score)
        same = f"{_what(*score)} was worth {first[score]}, and then {again}"
        require(again == first[score], reward, f"{same}; a reward depends on its score alone")


def failed_fits_are_handled(reward: Reward) -> None:
    for count in _COUNTS:
        told = {str(ctf): _value(reward, ctf, count) for ctf in _FAILED}
        one = len(set(told.values())) == 1
        require(one, reward, f"a fit that failed must be worth the same however written: {told}")
        failed = told["None"]
        found = {value for ctf in _FITS if (value := _value(reward, ctf, count)) is not None}
        # Where fits are all worth the same the reward does not look at them.
        if failed is not None and len(found) > 1:
            less = failed < max(found)
            require(less, reward, f"a fit that failed is worth {failed}, as much as the best")


def impossible_scores_are_refused(reward: Reward) -> None:
    for ctf, count in _IMPOSSIBLE:
        try:
            reward(_score(ctf, count))
        except ValueError:
            continue
        except Exception as error:
            name = type(reward).__name__
            raise ContractError(
                f"{name}: {_what(ctf, count)}, which it cannot take, must raise ValueError; it "
                f"raised {type(error).__name__}: {error}"
            ) from error


def what_is_printed_is_read_again(reward: Reward) -> None:
    """Of the rewards that can be written; what a failed fit counts as is told beside them."""
    if not _can_be_written(reward):
        return
    try:
        read = parse_reward(str(reward))
    except ValueError as error:
        raise ContractError(f"{type(reward).__name__}: {error}") from error
    for ctf, count in product(_FITS, (0.0, 1.0, 57.0, 412.0)):
        ours, theirs = _value(reward, ctf, count), _value(read, ctf, count)
        same = ours == theirs or (ours is not None and theirs is not None and close(ours, theirs))
        what = f"{_what(ctf, count)} is worth {ours}, and by parse_reward({str(reward)!r}) {theirs}"
        require(same, reward, what)


def _can_be_written(reward: Reward) -> bool:
    """One of the library's, and no sum inside another combination: there are no brackets."""
    if not isinstance(reward, Combined):
        return isinstance(reward, GoodBelow | Graded | Particles)
    sums = any(isinstance(part, Combined) and part.weights is not None for part in reward.parts)
    return not sums and all(_can_be_written(part) for part in reward.parts)
