"""What the ice can explain: how likely a measured value is where nothing is wrong.

A value is a patch's level and a deviation; the levels of a square's patches lie about that of the
square, those of squares about that of the session, and a patch is like the one taken before it.
All of them are logarithms, on a grid of levels, so that every distribution may have the tails that
ice has. A patch is judged by its own scores, the latest most, since ice changes within patches,
too. So a bad place is always an explanation, as likely as such places are. How far levels and
deviations spread is learned from the session with a lag, and from nothing under suspicion.
"""

from dataclasses import dataclass, field
from math import exp, lgamma, log, pi

import numpy as np

from coaf.bandit.arrays import FloatArray

LOW, HIGH = (
    log(2.0),
    log(50.0),
)  # of what is usually about 5: Å of a fit, or another value so scaled
FLAT = 1.0 / (HIGH - LOW)  # density of a value of which nothing is known
USUAL = log(5.0)
_LEVELS = np.linspace(LOW, HIGH, 36)
_APART: FloatArray = _LEVELS[None, :] - _LEVELS[:, None]
_SPREADS = np.array([0.12, 0.28, 0.6])[:, None]  # of deviations within a patch: one of these
STRAY = 0.01  # share of values, with a fault or without, that have no reason at all
_FAR = 3e-4  # share of places that are like no other
_FADE = 0.85  # what a patch's earlier scores count, with each new one
_LIKE_LAST = 0.5  # how often a patch is like the one before it, rather than like its square
_FAILING = (0.03, 30.0)  # share of fits that fail, and how many scores that counts as
_LAG = 20  # scores
_ABSOLUTE = 1.128  # mean absolute difference of two normal draws


def student(z: FloatArray, freedom: float) -> FloatArray:
    """The density of Student's t."""
    half = (freedom + 1.0) / 2.0
    scale = exp(lgamma(half) - lgamma(freedom / 2.0)) / (freedom * pi) ** 0.5
    density: FloatArray = scale * (1.0 + z * z / freedom) ** -half
    return density


def _shares(logs: FloatArray) -> FloatArray:
    shares: FloatArray = np.exp(logs - logs.max())
    shares /= shares.sum()
    return shares


def _about(spread: float) -> FloatArray:
    """By row: how levels lie about this one."""
    shares = student(_APART / spread, 8.0)
    shares /= shares.sum(axis=1, keepdims=True)
    return (1.0 - _FAR) * shares + _FAR / len(_LEVELS)


@dataclass(slots=True)
class _Patch:
    """By spread and level: how likely its scores are; and by level of the square, all spreads."""

    before: "_Patch | None"
    likely: FloatArray = field(default_factory=lambda: np.zeros((len(_SPREADS), len(_LEVELS))))
    square: FloatArray = field(default_factory=lambda: np.zeros(len(_LEVELS)))
    failed: int = 0
    scores: int = 0
    learned: list[float] = field(default_factory=list)


@dataclass(slots=True)
class _Square:
    """By level: what was expected of it, and how likely its scores are; and its last patch."""

    expected: FloatArray
    likely: FloatArray = field(default_factory=lambda: np.zeros(len(_LEVELS)))
    last: str = ""
    learned: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Spread:
    """How far places are apart; in the beginning a guess, worth so many pairs of places."""

    spread: float
    pairs: float

    def learn(self, one: float, other: float) -> None:
        self.pairs += 1.0
        self.spread += (abs(one - other) / _ABSOLUTE - self.spread) / self.pairs

    def least(self, low: float) -> float:
        return max(self.spread, low)


@dataclass(frozen=True, slots=True)
class _Score:
    square: str
    patch: str
    value: float | None


class Yardstick:
    """Says how likely a value is, given all before it, and takes it in.

    Attributes
    ----------
    usual
        The mean of what was learned.
    """

    def __init__(self) -> None:
        self._patches: dict[str, _Patch] = {}
        self._squares: dict[str, _Square] = {}
        self._session = np.log(student((_LEVELS - USUAL) / 0.4, 3.0))
        self._settled = ""  # the square that scores are learned of
        self._waiting: list[_Score] = []
        self._weights = np.ones((len(_SPREADS), 1)) / len(_SPREADS)
        self._counts = np.ones((len(_SPREADS), 1))
        self._patch_spread, self._square_spread = _Spread(0.25, 5.0), _Spread(0.30, 3.0)
        self._between_patches = _about(self._patch_spread.least(0.12))
        self._between_squares = _about(self._square_spread.least(0.25))
        self._failed, self._scores = _FAILING[0] * _FAILING[1], _FAILING[1]
        self._sum, self._count = 10.0 * USUAL, 10

    @property
    def usual(self) -> float:
        return self._sum / self._count

    def level(self, patch: str) -> float | None:
        """The mean of what was learned of a patch; None if that is less than two scores."""
        learned = self._patches[patch].learned if patch in self._patches else []
        return sum(learned) / len(learned) if len(learned) > 1 else None

    @property
    def patches(self) -> list[str]:
        """Patches with scores."""
        return list(self._patches)

    def failure(self, square: str, patch: str) -> float:
        """The chance that a fit fails here."""
        here, usual = self._at(square, patch)[1], self._failed / self._scores
        # Holes without ice lie together.
        return min(max((2.0 * usual + here.failed) / (2.0 + here.scores), usual), 0.9)

    def likelihood(self, square: str, patch: str, value: float) -> float:
        """The logarithm of the density of a value here."""
        _, here = self._at(square, patch)
        shares = np.log(self._prior(square, here)) + here.likely + np.log(self._weights)
        return log(float(np.vdot(_shares(shares), _density(value))))

    def _prior(self, square: str, here: _Patch) -> FloatArray:
        around = self._squares[square]
        level = _shares(around.expected + around.likely - here.square)
        prior: FloatArray = level @ self._between_patches
        if here.before is not None:
            last = _shares(here.before.likely + np.log(self._weights)).sum(axis=0)
            prior = (1.0 - _LIKE_LAST) * prior + _LIKE_LAST * (last @ self._between_patches)
        return prior

    def _at(self, square: str, patch: str) -> tuple[_Square, _Patch]:
        if square not in self._squares:
            expected = np.log(_shares(self._session) @ self._between_squares)
            self._squares[square] = _Square(expected)
        around = self._squares[square]
        if patch not in self._patches:
            self._patches[patch] = _Patch(self._patches.get(around.last))
            around.last = patch
        return around, self._patches[patch]

    def tell(self, square: str, patch: str, value: float | None, *, learn: bool) -> None:
        """A value came, None if a fit failed; what came before is learned if nothing is amiss."""
        around, here = self._at(square, patch)
        here.scores += 1
        if value is None:
            here.failed += 1
        else:
            here.likely = _FADE * here.likely + np.log(_density(value))
            most = here.likely.max()
            levels = (np.exp(here.likely - most) * self._weights).sum(axis=0)
            likely = np.log(self._between_patches @ levels) + most
            around.likely = around.likely + likely - here.square
            here.square = likely
        self._waiting.append(_Score(square, patch, value))
        while learn and len(self._waiting) > _LAG:
            self._learn(self._waiting.pop(0))

    def _learn(self, score: _Score) -> None:
        self._failed += score.value is None
        self._scores += 1
        if score.value is None:
            return
        self._sum += score.value
        self._count += 1
        self._patches[score.patch].learned.append(score.value)
        learned = self._squares[score.square].learned
        if learned and learned[-1] == score.patch:
            return
        if not learned and self._settled not in ("", score.square):
            self._learn_square(self._settled)
        self._learn_patches(learned[-2:])
        learned.append(score.patch)
        self._settled = score.square

    def _learn_patches(self, last: list[str]) -> None:
        """The stage has left a patch: how its scores spread, and how far it is from another."""
        if not last:
            return
        here = self._patches[last[-1]]
        if len(here.learned) > 3:
            self._counts += _shares(here.likely + np.log(self._weights)).sum(axis=1, keepdims=True)
            self._weights = self._counts / self._counts.sum()
        if len(last) > 1:
            self._patch_spread.learn(_mean(here.learned), _mean(self._patches[last[0]].learned))

    def _learn_square(self, name: str) -> None:
        likely = self._squares[name].likely
        self._session += np.log(self._between_squares @ np.exp(likely - likely.max()))
        self._session -= self._session.max()
        means = [self._mean(square) for square in self._squares.values() if square.learned]
        if len(means) > 1:
            self._square_spread.learn(means[-1], means[-2])
        self._between_patches = _about(self._patch_spread.least(0.12))
        self._between_squares = _about(self._square_spread.least(0.25))

    def _mean(self, square: _Square) -> float:
        return _mean([_mean(self._patches[patch].learned) for patch in square.learned])


def _density(value: float) -> FloatArray:
    """By spread and level."""
    near = student((value - _LEVELS[None, :]) / _SPREADS, 4.0) / _SPREADS
    density: FloatArray = (1.0 - STRAY) * near + STRAY * FLAT
    return density


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
