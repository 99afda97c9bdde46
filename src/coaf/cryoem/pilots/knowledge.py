"""What an earlier grid taught, for the next one to begin with."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from coaf.bandit.arrays import FloatArray, number
from coaf.bandit.beliefs.mixture import Mixture
from coaf.bandit.beliefs.nested.nested import Nested
from coaf.bandit.state import entry, seal, unseal
from coaf.cryoem.session.codec import plain, read

FILE = "knowledge.json"  # in the folder of a session
# How much of what earlier grids told is trusted before any score, and how far grids may differ:
# in the deviations that were expected when nothing was known (`python benchmarks/knowledge.py`).
SHARE, DOUBT = 0.3, 0.25


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What COAF learned on a grid that may hold on another: no square and no patch is known there.

    Attributes
    ----------
    reward, columns
        What was rewarded, and what was known of holes; on another grid these must be the same.
    centre, spread
        The coefficients of the log odds, last the intercept, and how well they are known.
    effects, near
        Deviations of squares and patches, and of what holes near each other share.
    scores
        How many scores taught it.
    """

    reward: str
    columns: tuple[str, ...]
    centre: tuple[float, ...]
    spread: tuple[float, ...]
    effects: tuple[float, ...]
    near: float
    scores: int

    def __post_init__(self) -> None:
        if len(self.centre) != len(self.spread) or not self.effects:
            raise ValueError(
                f"knowledge has {len(self.centre)} coefficients, {len(self.spread)} spreads and "
                f"{len(self.effects)} effects; give as many spreads as coefficients, and effects"
            )
        for i, value in enumerate(self.centre):
            number(f"centre[{i}]", value)
        for name in ("spread", "effects"):
            for i, value in enumerate(getattr(self, name)):
                number(f"{name}[{i}]", value, above=0.0)
        number("near", self.near, above=0.0)

    def suits(self, columns: Sequence[str], reward: str) -> bool:
        """Whether the same was known of holes, and the same rewarded."""
        return (tuple(columns), reward) == (self.columns, self.reward)

    def check(self, columns: Sequence[str], reward: str) -> None:
        """Refuse to be used where it does not suit."""
        if not self.suits(columns, reward):
            raise ValueError(
                f"what was learned for {self.reward} by columns {_listed(self.columns)} does not "
                f"suit a session for {reward} by columns {_listed(columns)}"
            )

    @classmethod
    def of(
        cls, belief: Nested | Mixture, *, columns: Sequence[str], reward: str, features: int
    ) -> Self:
        """What a belief has learned; of its coefficients the first `features`, and the last."""
        kept = [*range(features), -1]
        *effects, near = belief.deviations.tolist()
        return cls(
            reward,
            tuple(columns),
            tuple(belief.theta[kept].tolist()),
            tuple(belief.spread[kept].tolist()),
            tuple(effects),
            near,
            belief.rows,
        )

    def state(self) -> dict[str, Any]:
        """All of it, as JSON."""
        return seal("knowledge", {"learned": plain(self)})

    @classmethod
    def restore(cls, state: Mapping[str, Any] | str) -> Self:
        """The one whose state this is."""
        found: Self = read(cls, entry(unseal("knowledge", state), "learned"), "knowledge")
        return found

    def save(self, path: Path) -> Path:
        """Write it as JSON."""
        path.write_text(json.dumps(self.state(), indent=1) + "\n", encoding="utf-8")
        return path

    @classmethod
    def load(cls, path: Path) -> Self:
        """That of a file, or of the folder of a session."""
        file = path / FILE if path.is_dir() else path
        if not file.is_file():
            raise ValueError(
                f"{path} holds no knowledge: give the folder of a session of coaf, or its {FILE}"
            )
        try:
            return cls.restore(file.read_text("utf-8"))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{file} is not what a session has learned: {error}") from error


def informed(own: Nested | Mixture, earlier: Sequence[Knowledge]) -> Mixture:
    """A belief that begins with what earlier grids taught, beside what it expects otherwise.

    Grids differ, so the coefficients may be off by more than they were unsure. Scores tell which
    foretells them better: an earlier grid, or what is expected of any grid.
    """
    parts = own.beliefs if isinstance(own, Mixture) else [own]
    shares = own.weights if isinstance(own, Mixture) else np.ones(1)
    each = SHARE / max(len(earlier), 1)
    weights = [each] * len(earlier) + ((1.0 - each * len(earlier)) * shares).tolist()
    return Mixture([*(_as_prior(one, parts[0]) for one in earlier), *parts], weights=weights)


def _as_prior(known: Knowledge, like: Nested) -> Nested:
    wide = np.broadcast_to(np.asarray(like.scale, dtype=np.float64), len(known.spread))
    scale: FloatArray = np.hypot(known.spread, DOUBT * wide)
    return Nested(
        like.dim, centre=known.centre, scale=scale.tolist(), effects=known.effects, near=known.near
    )


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(columns) or "(none)"
