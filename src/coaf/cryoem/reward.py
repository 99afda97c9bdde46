"""Rewards: what a score is worth, and what a score that failed is worth.

A reward is a function of a `Score` and gives a number, or None where there is nothing to learn
from. A fit that failed is either bad or missing: `failed` says which, and it is never guessed.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from coaf.bandit.arrays import number
from coaf.bandit.beliefs.nested.nested import Family
from coaf.cryoem.microscope import Score

FailedFit = Literal["bad", "missing"]


NO_FIT = 100_000.0  # what programs write for the resolution of a fit that they gave up


class Reward(Protocol):
    """What a score is worth."""

    @property
    def family(self) -> Family:
        """The belief that suits: "logistic" for rewards of 0 and 1, "gaussian" for others."""

    def __call__(self, score: Score) -> float | None:
        """The reward, or None where it is missing."""


def fit_of(score: Score) -> float | None:
    """The resolution of a CTF fit in Å; None where the fit failed: no number, NaN, inf, 100000.

    Raises
    ------
    ValueError
        If it is 0 or negative, which no fit gives: another column was read, or another unit.

    Examples
    --------
    >>> fit_of(Score("h1", 0, ctf=100000.0, particles=None, exposed_at=0.0, arrived_at=40.0))
    """
    ctf = score.ctf
    if ctf is None or not math.isfinite(ctf) or ctf >= NO_FIT:
        if ctf != -math.inf:
            return None
    elif ctf > 0.0:
        return float(ctf)
    raise ValueError(
        f"the CTF fit of hole {score.hole!r}, shot {score.shot}, is {ctf} Å; a resolution is "
        f"above 0, and a fit that failed is None, nan, inf or {NO_FIT:g}"
    )


def _check_failed(failed: str) -> None:
    if failed not in ("bad", "missing"):
        raise ValueError(f'failed is {failed!r}; it must be "bad" or "missing"')


def _plain(value: float) -> str:
    """A number as a person writes it, with as many digits as it needs to be read again."""
    short = f"{value:g}"
    return short if float(short) == value else repr(float(value))


def _if_failed(failed: FailedFit) -> float | None:
    return 0.0 if failed == "bad" else None


@dataclass(frozen=True, slots=True)
class GoodBelow:
    """1 if the CTF fit is better than `cut` Å, else 0.

    Parameters
    ----------
    cut
        In Å.
    failed
        What a fit that failed counts as: "bad" is 0, "missing" is None.

    Examples
    --------
    >>> score = Score("h1", 0, ctf=3.2, particles=None, exposed_at=0.0, arrived_at=40.0)
    >>> GoodBelow(3.8)(score), GoodBelow(3.0)(score)
    (1.0, 0.0)
    """

    cut: float = 3.8
    failed: FailedFit = "bad"

    def __post_init__(self) -> None:
        number("cut", self.cut, above=0.0)
        _check_failed(self.failed)

    @property
    def family(self) -> Family:
        return "logistic"

    def __call__(self, score: Score) -> float | None:
        fit = fit_of(score)
        return _if_failed(self.failed) if fit is None else float(fit < self.cut)

    def __str__(self) -> str:
        return f"ctf<{_plain(self.cut)}"


@dataclass(frozen=True, slots=True)
class Graded:
    """1 at `best` Å and below, 0 at `worst` and above, a straight line between.

    Examples
    --------
    >>> score = Score("h1", 0, ctf=4.5, particles=None, exposed_at=0.0, arrived_at=40.0)
    >>> Graded(best=3.0, worst=6.0)(score)
    0.5
    """

    best: float = 3.0
    worst: float = 8.0
    failed: FailedFit = "bad"

    def __post_init__(self) -> None:
        number("best", self.best, above=0.0)
        if number("worst", self.worst) <= self.best:
            raise ValueError(
                f"worst is {self.worst:g} Å and best {self.best:g} Å; worst must be larger"
            )
        _check_failed(self.failed)

    @property
    def family(self) -> Family:
        return "gaussian"

    def __call__(self, score: Score) -> float | None:
        fit = fit_of(score)
        if fit is None:
            return _if_failed(self.failed)
        return min(max((self.worst - fit) / (self.worst - self.best), 0.0), 1.0)

    def __str__(self) -> str:
        return f"ctf {_plain(self.best)}..{_plain(self.worst)}"


@dataclass(frozen=True, slots=True)
class Particles:
    """The number of particles, divided by `scale`.

    Picking that was not done is missing unless `failed` says that it is bad: often it just comes
    later than the fit.

    Examples
    --------
    >>> score = Score("h1", 0, ctf=3.2, particles=94, exposed_at=0.0, arrived_at=40.0)
    >>> Particles(scale=100)(score)
    0.94
    """

    scale: float = 100.0
    failed: FailedFit = "missing"

    def __post_init__(self) -> None:
        number("scale", self.scale, above=0.0)
        _check_failed(self.failed)

    @property
    def family(self) -> Family:
        return "gaussian"

    def __call__(self, score: Score) -> float | None:
        count = score.particles
        if count is None or math.isnan(count):
            return _if_failed(self.failed)
        if not 0.0 <= count < math.inf:
            raise ValueError(
                f"hole {score.hole!r}, shot {score.shot}, has {count} particles; give a count of "
                "at least 0, or None where picking was not done"
            )
        return count / self.scale

    def __str__(self) -> str:
        return f"particles/{_plain(self.scale)}"


@dataclass(frozen=True, slots=True)
class Combined:
    """The product of several rewards or, with weights, their weighted sum.

    Missing where any part is missing; each part has its own choice for what failed.

    Examples
    --------
    >>> score = Score("h1", 0, ctf=3.2, particles=94, exposed_at=0.0, arrived_at=40.0)
    >>> Combined((GoodBelow(3.8), Particles()))(score)
    0.94
    >>> Combined((GoodBelow(3.8), Particles()), weights=(0.5, 1.0))(score)
    1.44
    """

    parts: tuple[Reward, ...]
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if not self.parts:
            raise ValueError("a combination has at least one part")
        if self.weights is not None:
            if len(self.weights) != len(self.parts):
                raise ValueError(f"{len(self.weights)} weights for {len(self.parts)} parts")
            for i, weight in enumerate(self.weights):
                number(f"weights[{i}]", weight)

    @property
    def family(self) -> Family:
        binary = self.weights is None and all(part.family == "logistic" for part in self.parts)
        return "logistic" if binary else "gaussian"

    def __call__(self, score: Score) -> float | None:
        values = []
        for part in self.parts:
            value = part(score)
            if value is None:
                return None
            values.append(value)
        if self.weights is None:
            return math.prod(values)
        return math.fsum(w * v for w, v in zip(self.weights, values, strict=True))

    def __str__(self) -> str:
        sums = [isinstance(p, Combined) and p.weights is not None for p in self.parts]
        parts = [f"({p})" if is_sum else str(p) for p, is_sum in zip(self.parts, sums, strict=True)]
        if self.weights is None:
            return " * ".join(parts)
        both = zip(self.weights, parts, strict=True)
        return " + ".join(f"{_plain(weight)} * {part}" for weight, part in both)


_NUMBER = r"([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)"
_BELOW = re.compile(rf"ctf\s*<\s*{_NUMBER}")
_BETWEEN = re.compile(rf"ctf\s*{_NUMBER}\s*\.\.\s*{_NUMBER}")
_COUNT = re.compile(rf"particles(?:\s*/\s*{_NUMBER})?")
_HELP = 'write "ctf<3.8", "ctf 3..8", "particles/100", "a * b" or "0.3 * a + 0.7 * b"'


RewardFrom = Callable[[str], Reward]


def known_as(reward: Reward) -> RewardFrom:
    """What makes this reward of its text, and others of theirs: it may be one of a user's own.

    Examples
    --------
    >>> rewards = known_as(own := GoodBelow(3.8, failed="missing"))
    >>> rewards("ctf<3.8") is own
    True
    >>> print(rewards("particles/100"))
    particles/100
    """
    return lambda text: reward if text == str(reward) else parse_reward(text)


def parse_reward(text: str, *, failed: FailedFit = "bad") -> Reward:
    """The reward that a person writes on the command line.

    Parameters
    ----------
    text
        "ctf<3.8" is `GoodBelow`, "ctf 3..8" is `Graded`, "particles/100" is `Particles`; parts
        joined by * are multiplied, and those joined by + added with the weights before them.
    failed
        What a CTF fit that failed counts as. Particles not picked are missing.

    Examples
    --------
    >>> parse_reward("ctf<3.8 * particles/100")(
    ...     Score("h1", 0, ctf=3.2, particles=50, exposed_at=0.0, arrived_at=40.0))
    0.5
    >>> parse_reward("ctf 8..3")
    Traceback (most recent call last):
    ...
    ValueError: in the reward 'ctf 8..3': worst is 3 Å and best 8 Å; worst must be larger
    """
    terms = [_term(term, text, failed) for term in text.split("+")]
    if len(terms) == 1 and terms[0][0] is None:
        return terms[0][1]
    weights = tuple(1.0 if weight is None else weight for weight, _ in terms)
    return Combined(tuple(reward for _, reward in terms), weights)


def _term(term: str, text: str, failed: FailedFit) -> tuple[float | None, Reward]:
    """A weight, if there is one, and the product of the rest."""
    factors = [factor.strip() for factor in term.split("*")]
    weight = None
    if len(factors) > 1 and re.fullmatch(f"-?{_NUMBER}", factors[0]):
        weight = float(factors.pop(0))
    parts = tuple(_factor(factor, text, failed) for factor in factors)
    return weight, parts[0] if len(parts) == 1 else Combined(parts)


def _factor(factor: str, text: str, failed: FailedFit) -> Reward:
    try:
        if found := _BELOW.fullmatch(factor):
            return GoodBelow(float(found[1]), failed)
        if found := _BETWEEN.fullmatch(factor):
            return Graded(float(found[1]), float(found[2]), failed)
        if found := _COUNT.fullmatch(factor):
            return Particles(float(found[1] or 100.0))
    except ValueError as error:
        raise ValueError(f"in the reward {text!r}: {error}") from None
    where = "" if factor == text.strip() else f" at {factor!r}"
    raise ValueError(f"cannot read the reward {text!r}{where}: {_HELP}")
