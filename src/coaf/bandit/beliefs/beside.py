"""What rewards owe to circumstances, learned beside what they owe to arms."""

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import FloatArray, floats
from coaf.bandit.beliefs.factors import Factors
from coaf.bandit.beliefs.mixture import Mixture
from coaf.bandit.beliefs.nested.nested import Nested
from coaf.bandit.beliefs.registry import register, restore_belief
from coaf.bandit.beliefs.rows import check_features
from coaf.bandit.groups import Groups
from coaf.bandit.shown import Shown, shown
from coaf.bandit.state import entry, pack, seal, unpack, unseal


@register("beside")
class Beside(Shown):
    """A belief whose rows may say more than its arms: under which circumstances they were had.

    Nobody chooses circumstances, and no arm has them before it is taken. So arms are judged at
    usual ones. What is learned of circumstances is not learned of arms and groups.

    Parameters
    ----------
    belief
        Of arms and circumstances: the columns of circumstances come last.
    usual : (k,)
        What these are usually; all other columns are features of arms. Rows that say nothing of
        their circumstances were had under usual ones.

    Examples
    --------
    All of patch a was taken under circumstances that spoil every hole, as patch b tells; so a may
    be as good as another.

    >>> belief = Beside(Nested(2, scale=2.5), [0.0])
    >>> rows = [[0.5, 1.0]] * 4 + [[0.5, 1.0], [0.5, -1.0]] * 4
    >>> belief.learn(rows, [0.0] * 4 + [0.0, 1.0] * 4, groups=["a"] * 4 + ["b"] * 8)
    >>> belief.mean([[0.5], [0.5]], groups=["a", "c"]).round(2)
    array([0.38, 0.43])
    """

    def __init__(self, belief: Nested | Mixture, usual: npt.ArrayLike) -> None:
        self.belief = belief
        self.usual = floats("usual", usual, ndim=1)
        self.dim = belief.dim - len(self.usual)
        if self.dim < 1:
            raise ValueError(
                f"{len(self.usual)} of the belief's {belief.dim} columns are circumstances; arms "
                "need at least one"
            )

    def _at_usual(self, features: npt.ArrayLike) -> FloatArray:
        X = check_features(features, self.dim)
        return np.hstack([X, np.broadcast_to(self.usual, (len(X), len(self.usual)))])

    @property
    def family(self) -> str:
        """Which rewards it learns."""
        return self.belief.family

    @property
    def rows(self) -> int:
        """How many rows were learned, forgotten or not."""
        return self.belief.rows

    @property
    def deviations(self) -> FloatArray:
        """Standard deviations of effects, outermost first, and of gaussian noise."""
        return self.belief.deviations

    @property
    def reward_size(self) -> float:
        """The belief's `reward_size`; infinite where it is stated."""
        return self.belief.reward_size if isinstance(self.belief, Nested) else np.inf

    def mean(self, features: npt.ArrayLike, groups: Groups | None = None) -> FloatArray:
        """The mean reward of each arm under usual circumstances."""
        return self.belief.mean(self._at_usual(features), groups)

    def upper(self, features: npt.ArrayLike, groups: Groups | None = None) -> FloatArray:
        """The upper end for each arm under usual circumstances."""
        return self.belief.upper(self._at_usual(features), groups)

    def sample(
        self, features: npt.ArrayLike, rng: np.random.Generator, groups: Groups | None = None
    ) -> FloatArray:
        """A joint draw under usual circumstances."""
        return self.belief.sample(self._at_usual(features), rng, groups)

    def factors(self, features: npt.ArrayLike, groups: Groups | None = None) -> Factors:
        """What arms share under usual circumstances, as `Nested.factors`."""
        return self.belief.factors(self._at_usual(features), groups)

    def learn(
        self, features: npt.ArrayLike, rewards: npt.ArrayLike, groups: Groups | None = None
    ) -> None:
        """Add rows, with their circumstances or without."""
        self._teach(self.belief.learn, features, rewards, groups)

    def refit(
        self, features: npt.ArrayLike, rewards: npt.ArrayLike, groups: Groups | None = None
    ) -> None:
        """Start again from the prior with these rows."""
        self._teach(self.belief.refit, features, rewards, groups)

    def _teach(
        self,
        verb: Callable[..., None],
        features: npt.ArrayLike,
        rewards: npt.ArrayLike,
        groups: Groups | None,
    ) -> None:
        X = floats("features", features, ndim=2)
        verb(X if X.shape[1] == self.belief.dim else self._at_usual(X), rewards, groups)

    def forget(self, factor: float) -> None:
        """Let what was learned count `factor` of what it did."""
        self.belief.forget(factor)

    def settle(self) -> None:
        """Let what is known now be the prior."""
        self.belief.settle()

    def leave(self) -> None:
        """Settle, and let labels stand for other groups from now on: a new grid."""
        self.belief.leave()

    def state(self) -> dict[str, Any]:
        """Everything, as JSON."""
        return seal("beside", {"usual": pack(self.usual), "belief": self.belief.state()})

    @classmethod
    def restore(cls, state: Mapping[str, Any] | str) -> Self:
        """The belief that `state` was taken from."""
        saved = unseal("beside", state)
        belief = restore_belief(entry(saved, "belief"))
        if not isinstance(belief, Nested | Mixture):
            raise ValueError(f"state entry 'belief' is {shown(belief)}, not a Nested")
        return cls(belief, unpack(saved, "usual"))
