"""The drifting belief: any other, with old rows fading or leaving as new ones arrive."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import FloatArray, number
from coaf.bandit.beliefs.belief import Belief, Bounded, FeaturesBounded, LearnsSize
from coaf.bandit.beliefs.registry import is_registered, register, restore_belief
from coaf.bandit.beliefs.rows import check_features, check_rewards
from coaf.bandit.beliefs.runs import Run, joined, last_of, taught
from coaf.bandit.groups import Groups, check_groups
from coaf.bandit.shown import Shown, shown
from coaf.bandit.state import entry, seal, unseal

_LEAST = 1e-300  # a factor must stay above 0 however often one forgets


@register("drift")
class Drift(Shown):
    """What another belief knows, for conditions that change: old rows fade, or leave.

    Parameters
    ----------
    belief
        Any belief; it is copied. To be saved, its class must be registered (`register`).
    half_life
        Rows after which a row counts half of what it did, at least 1: before each row is added,
        `forget` lets everything learned so far count 0.5^(1/half_life).
    window
        Only this many rows count, the last ones to arrive. Rows are kept, and each time some leave
        `refit` starts again with the rest.

    Notes
    -----
    Give either `half_life` or `window`. Time is counted in rows, in the order in which they are
    learned: a reward that comes an hour late is as fresh as one that comes at once, and while
    nothing is learned nothing fades. Learning in pieces equals learning at once.

    What the belief had learned before fades like any row; with a window it leaves with the first
    row that does. Its prior stays: `settle` puts what is known now beyond fading.

    A row learned costs one `forget` and one `learn` of the belief with a half-life; with a window,
    each call of `learn` costs one `refit` of `window` rows, once it is full.

    The guarantee of the belief's set is for a mean reward that stays. For `Linear`, what fades
    leaves less precision and so a wider ellipsoid; what changed since is bias, which no radius
    counts.

    Examples
    --------
    >>> from coaf.bandit.beliefs.linear import Linear
    >>> today = Drift(Linear(1), window=2)
    >>> today.learn([[1.0], [1.0], [1.0]], [0.0, 0.9, 0.9])
    >>> today.mean([[1.0]])  # (0.9 + 0.9) / (1 + 2): λ = 1
    array([0.6])
    """

    def __init__(
        self, belief: Belief, *, half_life: float | None = None, window: int | None = None
    ) -> None:
        if isinstance(belief, type) or not hasattr(belief, "forget"):
            raise TypeError(f"belief is {belief!r}; it must be a belief, as Linear(3)")
        if (half_life is None) == (window is None):
            raise ValueError(
                f"half_life is {half_life} and window is {window}; give one of the two, in rows"
            )
        if window is not None and number("window", window, low=1) != int(window):
            raise ValueError(f"window is {window}; it counts rows and must be a whole number")
        self.belief = deepcopy(belief)
        self.dim = int(belief.dim)
        self.half_life = None if half_life is None else number("half_life", half_life, low=1)
        self.window = None if window is None else int(window)
        self._kept: list[Run] = []
        # What holds for the belief holds here.
        if isinstance(belief, FeaturesBounded):
            self.feature_bound = belief.feature_bound
        if isinstance(belief, Bounded):
            self.mean_bound = belief.mean_bound

    @property
    def reward_size(self) -> float:
        """The belief's `reward_size`; infinite where it is stated."""
        return self.belief.reward_size if isinstance(self.belief, LearnsSize) else np.inf

    def mean(self, features: FloatArray, groups: Groups | None = None) -> FloatArray:
        """The belief's `mean`."""
        return self.belief.mean(features, groups)

    def upper(self, features: FloatArray, groups: Groups | None = None) -> FloatArray:
        """The belief's `upper`."""
        return self.belief.upper(features, groups)

    def sample(
        self, features: FloatArray, rng: np.random.Generator, groups: Groups | None = None
    ) -> FloatArray:
        """The belief's `sample`."""
        return self.belief.sample(features, rng, groups)

    def _rows(
        self, features: npt.ArrayLike, rewards: npt.ArrayLike, groups: npt.ArrayLike | None
    ) -> Run:
        X = check_features(features, self.dim)
        labels = None if groups is None else check_groups(groups, len(X))
        return Run(X, check_rewards(rewards, len(X)), labels)

    def learn(
        self, features: npt.ArrayLike, rewards: npt.ArrayLike, groups: npt.ArrayLike | None = None
    ) -> None:
        """Add rows, the oldest first; those before them fade, or leave."""
        rows = self._rows(features, rewards, groups)
        if self.half_life is not None:
            self.belief = self._faded(self.belief, rows)
        elif self.window is not None and len(rows):
            kept = joined([*self._kept, rows])
            if sum(map(len, kept)) <= self.window:
                self.belief.learn(rows.X, rows.y, rows.groups)
            else:
                new = deepcopy(self.belief)
                new.learn(rows.X, rows.y, rows.groups)  # refuses what it must, even if it leaves
                kept = last_of(kept, self.window)
                self.belief = taught(new, kept)
            self._kept = kept

    def _faded(self, belief: Belief, rows: Run) -> Belief:
        """A copy of the belief with rows added one by one, each letting those before it fade."""
        assert self.half_life is not None
        new, factor = deepcopy(belief), 0.5 ** (1.0 / self.half_life)
        try:
            for i in range(len(rows)):
                row = rows.part(slice(i, i + 1))
                new.forget(factor)
                new.learn(row.X, row.y, row.groups)
        except ValueError:
            deepcopy(belief).learn(rows.X, rows.y, rows.groups)  # names the row as it was given
            raise
        return new

    def refit(
        self, features: npt.ArrayLike, rewards: npt.ArrayLike, groups: npt.ArrayLike | None = None
    ) -> None:
        """Start again from the belief's prior with these rows, the oldest first."""
        rows = self._rows(features, rewards, groups)
        new, kept = deepcopy(self.belief), last_of([rows], self.window or 0)
        if self.half_life is not None:
            new.refit(rows.X[:0], rows.y[:0])
            new = self._faded(new, rows)
        else:
            new.refit(rows.X, rows.y, rows.groups)  # refuses what it must, even if it leaves
            if sum(map(len, kept)) < len(rows):
                new = taught(new, kept)
        self.belief, self._kept = new, kept

    def forget(self, factor: float) -> None:
        """Let what was learned count `factor` of what it did, beyond its fading."""
        self.belief.forget(factor)
        if self._kept:
            last = self._kept[-1]
            self._kept[-1] = replace(last, factor=max(last.factor * float(factor), _LEAST))

    def settle(self) -> None:
        """Let what is known now be the prior, which neither fades nor leaves."""
        self.belief.settle()
        self._kept = []

    def state(self) -> dict[str, Any]:
        """Everything, as JSON."""
        if not is_registered(self.belief):
            kind = type(self.belief).__name__.lower()
            raise ValueError(
                f"belief is {shown(self.belief)}, which cannot be saved inside of Drift unless its "
                f'class is registered: decorate it with @register("{kind}")'
            )
        return seal(
            "drift",
            {
                "half_life": self.half_life,
                "window": self.window,
                "belief": self.belief.state(),
                "kept": [rows.state() for rows in self._kept],
            },
        )

    @classmethod
    def restore(cls, state: Mapping[str, Any] | str) -> Self:
        """The belief that `state` was taken from."""
        state = unseal("drift", state)
        drift = cls(
            restore_belief(entry(state, "belief")),
            half_life=entry(state, "half_life"),
            window=entry(state, "window"),
        )
        drift._kept = [Run.restore(saved) for saved in entry(state, "kept")]
        for rows in drift._kept:
            if rows.X.shape != (len(rows), drift.dim):
                raise ValueError(
                    f"state entry 'kept' has features of shape {rows.X.shape} for {len(rows)} "
                    f"rewards and dim={drift.dim}"
                )
        return drift
