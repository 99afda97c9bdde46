"""The finite belief: a list of functions, one of which is the mean reward."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import BoolArray, FloatArray, number
from coaf.bandit.beliefs.assumptions import check_noise, compare
from coaf.bandit.beliefs.functions import Function, class_of, load_function, save_function
from coaf.bandit.beliefs.registry import register
from coaf.bandit.beliefs.rows import check_dim, check_factor, check_features, check_rewards
from coaf.bandit.groups import Groups
from coaf.bandit.shown import Shown
from coaf.bandit.state import entry, pack, seal, unpack, unseal
from coaf.bandit.threads import on_one_thread

# Losses nearer than this, relatively, are ties: the order of a sum must not choose a function.
_TIE = 1e-12
_DOUBT = 2.0  # rows that fit no better than the usual function, when noise is learned
_SETTINGS = ("noise", "mean_bound", "delta", "scale", "within")


@register("finite")
@on_one_thread()
class Finite(Shown):
    """The mean reward is one of k given functions Ψ; rows rule out those that fit badly.

    Parameters
    ----------
    dim
        Number of features.
    functions
        Functions from features (n, dim), which they must not change, to mean rewards (n,). Or an
        array (k, dim) whose rows θ stand for the linear functions θ·x.
    noise
        Sub-Gaussian scale σ of a reward around its mean (at most half its range). Unless given, it
        is learned from how well the best function fits.
    mean_bound
        How far from 0 mean rewards may lie, if known: functions are cut off at ±mean_bound, which
        brings none of them further from the truth.
    delta
        The set holds the truth ψ*, if it is in the list and `noise` is given, at all times at once
        with probability 1 − δ.
    scale
        A factor on σ. Below 1 the guarantee is given up for speed of learning.
    within
        Which confidence set: "likelihood", the smaller one, or "paper", the paper's with β̃.

    Notes
    -----
    With the cumulative loss L(ψ) = Σ (ψ(x) − y)² and weights w(ψ) ∝ exp(−L(ψ)/2σ²) that add up to
    1, the confidence set within="likelihood" is

        {ψ : w(ψ) ≥ δ/k}  =  {ψ : L(ψ) − min L ≤ 2σ² [ln(k/δ) − ln Σ_ψ' exp(−(L(ψ') − min L)/2σ²)]}.

    It holds ψ* because, for σ-subgaussian noise, exp((L(ψ*) − L(ψ))/2σ²) is a supermartingale for
    every ψ, and so is their average 1/(k w(ψ*)): by Ville's inequality it ever exceeds 1/δ with
    probability at most δ. The radius lies between 2σ² ln(1/δ) and 2σ² ln(k/δ).

    The paper's set (the general case before `th: cmbub2`, from Russo and Van Roy 2013),
    within="paper", is {ψ : Σ (ψ(x) − ψ̄(x))² ≤ β̃} around the best fit ψ̄. Its β̃ = 8σ² ln(k/δ), at
    α = 0, is right for a finite class, and with probability 1 − δ rather than 1 − 2δ;
    `lemma: eluder` slips where it fits ψ̄ to one round more than it sums over, and its proof where
    β̃ counts rounds in place of rows. It keeps k² numbers, as ψ̄ moves, where the smaller one
    keeps k. `th: cmbub2` covers that one too: with probability 1 − 2δ every ψ in it has
    Σ (ψ − ψ*)² ≤ 12σ² ln(k/δ), and the proof only uses that members of its set are no further
    than 4β̃ = 32σ² ln(k/δ) from ψ*.

    A noise that is not given is σ̂² = (min L + 2m)/n after n rows, where m is the mean squared
    error of the usual function, the median of all but the best. Few rows are fitted well by some
    function or other, and σ̂ then says how far functions are from each other. Rewards and functions
    times c change no decision. The guarantee is for a noise that is given; without, the set held
    ψ* as often wherever we tried (docs/beliefs/finite.md).

    `mean` is the function of least loss, as in the paper; before any row that is
    functions[0]. `sample` draws a function with probability w: the posterior, under Gaussian noise
    and a uniform prior. Those outside the set have less than δ of the weight between them.

    `restore` imports the functions that a state names: restore only what you trust.

    Examples
    --------
    >>> belief = Finite(2, [[100.0, 0.0], [0.0, 100.0]], noise=10.0)
    >>> belief.upper([[0.9, 0.1], [0.1, 0.9]])
    array([90., 90.])
    >>> belief.learn([[0.9, 0.1]], [80.0])
    >>> belief.upper([[0.9, 0.1], [0.1, 0.9]])
    array([90., 10.])
    """

    def __init__(
        self,
        dim: int,
        functions: Sequence[Function] | npt.ArrayLike,
        *,
        noise: float | None = None,
        mean_bound: float | None = None,
        delta: float = 0.05,
        scale: float = 1.0,
        within: Literal["likelihood", "paper"] = "likelihood",
    ) -> None:
        self.dim = check_dim(dim)
        self.noise = None if noise is None else number("noise", noise, low=0.0)
        self.mean_bound = (
            None if mean_bound is None else number("mean_bound", mean_bound, above=0.0)
        )
        self.delta = number("delta", delta, above=0.0)
        if self.delta >= 1.0:
            raise ValueError(f"delta is {self.delta}; it must be less than 1")
        self.scale = number("scale", scale, low=0.0)
        if within not in ("likelihood", "paper"):
            raise ValueError(f'within is {within!r}; it must be "likelihood" or "paper"')
        self.within = within
        self.functions, self.parameters = class_of(functions, self.dim)
        self.size = len(self.functions) if self.parameters is None else len(self.parameters)
        # A row for each function: its loss and, for the paper's set, how far it is from the others.
        self._prior = np.zeros((self.size, 1 + self.size * (within == "paper")))
        self._learned = np.zeros_like(self._prior)
        # Rows and Σ y²: of the prior, and of what was learned since.
        self._counts = np.zeros((2, 2))
        self._beyond = (0.0, 0.0)
        self._warned: set[str] = set()

    @property
    def losses(self) -> FloatArray:
        """L, the cumulative squared loss of each function, that of the prior included."""
        return self._prior[:, 0] + self._learned[:, 0]

    @property
    def apart(self) -> FloatArray:
        """Σ (ψ(x) − ψ̄(x))² over the rows, of each function from the best fit; the paper's set."""
        return self._prior[:, 1 + self.best] + self._learned[:, 1 + self.best]

    @property
    def sigma(self) -> float:
        """σ, given or learned, times `scale`; 0 before any row if it is to be learned."""
        if self.noise is not None:
            return self.scale * self.noise
        losses, (_, tied) = self.losses, self._excess()
        n = float(self._counts[:, 0].sum())
        if n == 0.0:
            return 0.0
        others = losses[~tied]
        usual = float(np.median(others) if len(others) else losses.min()) / n
        return self.scale * math.sqrt((float(losses.min()) + _DOUBT * usual) / n)

    def _excess(self) -> tuple[FloatArray, BoolArray]:
        """L − min L, and which functions share the least loss."""
        losses = self.losses
        least = losses.min()
        excess = losses - least
        if self.mean_bound is not None:
            usual = self.mean_bound**2
        else:
            n, squares = self._counts.sum(axis=0)
            usual = squares / n if n > 0.0 else 0.0
        return excess, excess <= _TIE * (usual + least)

    def _chances(self) -> FloatArray:
        """exp(−(L − min L)/2σ²)."""
        excess, tied = self._excess()
        s = self.sigma
        return tied.astype(np.float64) if s == 0.0 else np.exp(-0.5 * excess / s / s)

    @property
    def weights(self) -> FloatArray:
        """The weights w ∝ exp(−L/2σ²), which add up to 1."""
        weights: FloatArray = self._chances() / self._chances().sum()
        return weights

    @property
    def radius(self) -> float:
        """How much worse than the best a function may fit, and still be in the set.

        Within the paper's set it is β̃, how far from the best it may be.
        """
        if self.within == "paper":
            return 8.0 * self.sigma**2 * math.log(self.size / self.delta)
        room = math.log(self.size / self.delta) - math.log(self._chances().sum())
        return 2.0 * self.sigma**2 * room

    @property
    def members(self) -> BoolArray:
        """Which functions are in the confidence set."""
        if self.within == "paper":
            return self.apart <= self.radius
        excess, tied = self._excess()
        return (excess <= self.radius) | tied

    @property
    def best(self) -> int:
        """The function of least loss; the first, where several tie."""
        return int(self._excess()[1].argmax())

    def _values(self, X: FloatArray, which: Iterable[int]) -> FloatArray:
        """ψ(x) within ±mean_bound, (functions, arms)."""
        return self._cut(self._uncut(X, which))

    def _cut(self, values: FloatArray) -> FloatArray:
        if self.mean_bound is None:
            return values
        return np.clip(values, -self.mean_bound, self.mean_bound)

    def _uncut(self, X: FloatArray, which: Iterable[int]) -> FloatArray:
        if self.parameters is not None:
            return np.asarray(self.parameters[list(which)] @ X.T)
        return np.array([self._value(X, i) for i in which])

    def _value(self, X: FloatArray, i: int) -> FloatArray:
        values = np.asarray(self.functions[i](X), dtype=np.float64)
        # No ValueError: the function broke, not the caller, and policies can go on without it.
        if values.shape != (n := len(X),):
            raise RuntimeError(f"functions[{i}] gave shape {values.shape} for {n} arms, not ({n},)")
        if not np.isfinite(values).all():
            row = int((~np.isfinite(values)).argmax())
            raise RuntimeError(f"functions[{i}] gave {values[row]} for features[{row}], {X[row]}")
        return values

    def mean(self, features: npt.ArrayLike, groups: Groups | None = None) -> FloatArray:
        """The best-fitting function's value for each arm; groups make no difference here."""
        return self._values(check_features(features, self.dim), [self.best]).ravel()

    def upper(self, features: npt.ArrayLike, groups: Groups | None = None) -> FloatArray:
        """The exact maximum over the confidence set, which holds the best-fitting function."""
        X = check_features(features, self.dim)
        values: FloatArray = self._values(X, np.flatnonzero(self.members)).max(axis=0)
        return values

    def draw(self, rng: np.random.Generator) -> int:
        """One function, drawn with probability w."""
        sums = np.cumsum(self._chances())
        found = int(np.searchsorted(sums, rng.random() * sums[-1], side="right"))
        return min(found, self.size - 1)

    def sample(
        self, features: npt.ArrayLike, rng: np.random.Generator, groups: Groups | None = None
    ) -> FloatArray:
        """The values of one function drawn with probability w."""
        return self._values(check_features(features, self.dim), [self.draw(rng)]).ravel()

    def learn(
        self, features: npt.ArrayLike, rewards: npt.ArrayLike, groups: Groups | None = None
    ) -> None:
        """Add any number of rows."""
        self._take(features, rewards, self._learned, self._counts[1])

    def _take(self, features: Any, rewards: Any, learned: FloatArray, counts: FloatArray) -> None:
        """Know these rows beside what was learned of others."""
        X = check_features(features, self.dim)
        y = check_rewards(rewards, len(X))
        uncut = self._uncut(X, range(self.size))
        values, new, count = self._cut(uncut), learned.copy(), counts.copy()
        with np.errstate(over="ignore"):
            # Row by row: learning in pieces adds the same numbers in the same order.
            for own, reward in zip(values.T, y, strict=True):
                new[:, 0] += (own - reward) ** 2
                count += (1.0, reward**2)
                if self.within == "paper":
                    new[:, 1:] += (own[:, None] - own) ** 2
        if np.isinf(count).any() or not np.isfinite(self._prior + new).all():
            row = int(np.abs(y).argmax())
            raise ValueError(f"rewards[{row}] is {y[row]:g}; its square must be a finite number")
        self._learned, self._counts = new, np.array([self._counts[0], count])
        self._compare(uncut, y)

    def _compare(self, uncut: FloatArray, y: FloatArray) -> None:
        """Do rewards keep to what was stated?"""
        if self.mean_bound is not None:
            noise = self.sigma if self.noise is None else self.noise
            compare(self, uncut[self.best], y, self.mean_bound, noise)
        if self.noise:
            rows = float(self._counts[:, 0].sum())
            how = "leave it out, and it is learned"
            check_noise(self, self.noise, float(self.losses.min()), rows, instead=how)

    def refit(
        self, features: npt.ArrayLike, rewards: npt.ArrayLike, groups: Groups | None = None
    ) -> None:
        """Start again from the prior with these rows."""
        counted, self._beyond = self._beyond, (0.0, 0.0)
        try:
            self._take(features, rewards, np.zeros_like(self._prior), np.zeros(2))
        except ValueError:
            self._beyond = counted
            raise

    def forget(self, factor: float) -> None:
        """Let losses since the prior count `factor`: valid at any one time, if ψ* has not moved."""
        self._learned = check_factor(factor) * self._learned
        self._counts = self._counts * [[1.0], [float(factor)]]

    def settle(self) -> None:
        """Let the present losses be the prior."""
        self._prior, self._learned = self._prior + self._learned, np.zeros_like(self._prior)
        self._counts = np.array([self._counts.sum(axis=0), np.zeros(2)])

    def state(self) -> dict[str, Any]:
        """Everything, as JSON; functions as the names they can be imported by.

        Callable objects whose class has `state()` and `restore(state)` are saved through these.
        """
        return seal(
            "finite",
            {
                **{name: getattr(self, name) for name in ("dim", *_SETTINGS)},
                "functions": [
                    save_function(i, function) for i, function in enumerate(self.functions)
                ],
                "parameters": None if self.parameters is None else pack(self.parameters),
                "prior": pack(self._prior),
                "learned": pack(self._learned),
                "counts": pack(self._counts),
                "beyond": list(self._beyond),
                "warned": sorted(self._warned),
            },
        )

    @classmethod
    def restore(cls, state: Mapping[str, Any] | str) -> Self:
        """The belief that `state` was taken from."""
        state = unseal("finite", state)
        functions: Any = [load_function(saved) for saved in entry(state, "functions")]
        if entry(state, "parameters") is not None:
            functions = unpack(state, "parameters")
        settings = {name: entry(state, name) for name in _SETTINGS}
        belief = cls(entry(state, "dim"), functions, **settings)
        for name in ("prior", "learned"):
            saved, wanted = unpack(state, name), belief._prior.shape
            if saved.shape != wanted:
                raise ValueError(f"state entry {name!r} has shape {saved.shape}, not {wanted}")
            setattr(belief, f"_{name}", saved)
        if entry(state, "counts") is None:  # of a release that did not count rows
            known = [belief._prior.any(), belief._learned.any()]
            belief._counts[known] = np.nan
        else:
            belief._counts = unpack(state, "counts")
        belief._beyond = tuple(entry(state, "beyond"))
        belief._warned = set(entry(state, "warned"))
        return belief
