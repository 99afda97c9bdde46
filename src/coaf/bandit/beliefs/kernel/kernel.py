"""The kernel belief: a Gaussian process on a limited number of points."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import FloatArray, floats, number
from coaf.bandit.beliefs.assumptions import compare
from coaf.bandit.beliefs.kernel.basis import Covariance, KernelKind, Part, solve
from coaf.bandit.beliefs.kernel.likelihood import columns_of, lengths_of, likeliest
from coaf.bandit.beliefs.kernel.memory import Memory
from coaf.bandit.beliefs.registry import register
from coaf.bandit.beliefs.rows import check_dim, check_features, check_rewards
from coaf.bandit.beliefs.runs import Run
from coaf.bandit.beliefs.units import Unitless, Units
from coaf.bandit.groups import Groups
from coaf.bandit.state import entry, seal, unseal
from coaf.bandit.threads import on_one_thread

_SHARE = math.sqrt(0.5)  # of the spread of rewards, for signal and noise alike
_SETTINGS = (
    "signal",
    "noise",
    "kind",
    "space",
    "space_signal",
    "points",
    "width",
    "prior_mean",
    "mean_bound",
)


@register("kernel")
@on_one_thread("deviation")
class Kernel(Unitless):
    """Mean rewards drawn from a Gaussian process: arms that look alike have similar means.

    Parameters
    ----------
    dim
        Number of features.
    length_scale
        How far apart features must be for rewards to differ: a number, or one for each feature.
        Unless given, features count relative to their ranges in the rows learned, and it is the
        root mean square distance of rows from the middle of these.
    signal
        Standard deviation of mean rewards around `prior_mean`.
    noise
        Standard deviation of a reward around its mean. Of either that is not given, 0.7 of the
        spread of the rewards learned (`reward_size`).
    kind
        "rbf": e^(−D²/2), very smooth; "matern": (1 + √3 D) e^(−√3 D), rougher.
    space
        Columns that are coordinates, as of the stage. They leave the features and get a term of
        their own: the covariance is that of the features plus that of the place.
    space_length, space_signal
        Length scale of the coordinates, in their unit, and the standard deviation of what the
        place contributes (`signal` unless given).
    points
        How many points are kept. Learning a row costs their square.
    width
        `upper` is mean + width·sd.
    prior_mean
        The mean reward where nothing is known; the average reward unless given.
    mean_bound
        The largest mean reward there is, if known: `upper` is capped by it.

    Notes
    -----
    f(x) = prior_mean + w·φ(x) + rest(x), where φ are functions that are orthonormal in the
    kernel's space and span the points, w ~ N(0, I), and the rest has covariance
    k(x, z) − φ(x)·φ(z): an exact decomposition of the process. Rows teach w alone; their own rest
    counts as noise (FITC, Snelson and Ghahramani, 2006). The variance
    φ(x)ᵀ V⁻¹ φ(x) + k(x, x) − ‖φ(x)‖² returns to that of the prior far from all points.

    A row becomes a point if the points so far leave more than a share of its variance open: the
    share is 10⁻⁶ at first, and grows by a quarter, up to 0.4, whenever points run out, and those
    that are no news at that share are dropped. So points spread over what was seen, and which
    they are depends on the order of rows alone. While none was dropped this is the exact Gaussian
    process but for that 10⁻⁶. See `novelty` and `covered`.

    The truth kept is V and Σ φ y/s²; the factor of V is derived afresh after rows came.

    What is not given is found in the first 4,096 rows, at first with each of them and later when
    their number has doubled, and all is done over with it. Until a reward other than 0 is learned
    nothing is known of their size: `upper` then has no unit, and only says of which arm least is
    known.

    Examples
    --------
    Holes with two features each, at x and y in µm. Neighbours have similar ice.

    >>> belief = Kernel(4, space=(2, 3), space_length=20.0)
    >>> belief.learn([[0.1, 0.3, 100.0, 250.0], [0.2, 0.3, 400.0, 50.0]], [1.0, 0.0])
    >>> near, far = belief.mean([[0.9, -0.8, 102.0, 251.0], [0.9, -0.8, 700.0, 90.0]]).round(2)
    >>> float(near), float(far)
    (0.7, 0.5)

    Nobody knows such settings by heart: `Kernel.fitted` takes them from labelled examples.
    """

    def __init__(
        self,
        dim: int,
        *,
        length_scale: npt.ArrayLike | None = None,
        signal: float | None = None,
        noise: float | None = None,
        kind: KernelKind = "rbf",
        space: Sequence[int] = (),
        space_length: npt.ArrayLike | None = None,
        space_signal: float | None = None,
        points: int = 200,
        width: float = 2.0,
        prior_mean: float | None = None,
        mean_bound: float | None = None,
    ) -> None:
        if points < 1 or int(points) != points:
            raise ValueError(f"points is {points!r}; it must be a positive integer")
        if kind not in ("rbf", "matern"):
            raise ValueError(f'kind is {kind!r}; it must be "rbf" or "matern"')
        self.dim, self.points, self.kind = check_dim(dim), int(points), kind
        self.signal = None if signal is None else number("signal", signal, above=0.0)
        self.noise = None if noise is None else number("noise", noise, above=0.0)
        self.width = number("width", width, low=0.0)
        self.prior_mean = None if prior_mean is None else number("prior_mean", prior_mean)
        self.mean_bound = mean_bound if mean_bound is None else number("mean_bound", mean_bound)
        self._columns, self._coordinates = columns_of(space, self.dim)
        self.space = tuple(self._coordinates.tolist())
        self.length_scale, self.space_length, self.space_signal = None, None, None
        if length_scale is not None and len(self._columns):
            self.length_scale = lengths_of("length_scale", length_scale, self._columns)
        if self.space:
            if space_length is None:
                raise ValueError("give space_length, the length scale of the columns in space")
            self.space_length = lengths_of("space_length", space_length, self._coordinates)
            if space_signal is not None:
                self.space_signal = number("space_signal", space_signal, above=0.0)
        self._ranged = self.length_scale is None and len(self._columns) > 0
        self._sized = self.signal is None or self.noise is None
        found = self._ranged or self._sized or self.prior_mean is None
        self._units = Units.none(self.dim) if found else None
        self._warned: set[str] = set()
        self._beyond = (0.0, 0.0)
        self._derived: tuple[FloatArray, FloatArray] | None = None
        self._shrink: FloatArray | None = None
        self._start()

    def _start(self) -> None:
        units = Units.none(self.dim) if self._units is None else self._units
        usual = _SHARE * (units.size or 1.0)
        signal = usual if self.signal is None else self.signal
        self._noise = usual if self.noise is None else self.noise
        self._centre = units.mean if self.prior_mean is None else self.prior_mean
        parts = []
        if len(self._columns):
            lengths = self.length_scale
            if lengths is None:
                lengths = np.full(len(self._columns), math.sqrt(units.long or 1.0))
            parts.append(Part(self._columns, lengths, signal))
        if self.space_length is not None:
            strength = signal if self.space_signal is None else self.space_signal
            parts.append(Part(self._coordinates, self.space_length, strength))
        covariance = Covariance(tuple(parts), self.kind)
        self._prior = Memory.empty(covariance, self.dim)
        self._know(self._prior)

    @classmethod
    def fitted(
        cls,
        features: npt.ArrayLike,
        rewards: npt.ArrayLike,
        *,
        space: Sequence[int] = (),
        kind: KernelKind = "rbf",
        per_feature: bool = False,
        **settings: Any,
    ) -> Self:
        """A belief that starts from labelled examples: its settings and its prior are theirs.

        Length scales, signals, noise and prior mean are the likeliest (`likeliest` has the
        parameters); the examples are learned and settled. For the settings alone,
        `Kernel(dim, **likeliest(features, rewards))`. Further keywords are those of `Kernel`.
        """
        X = floats("features", features, ndim=2)
        found = likeliest(X, rewards, space=space, kind=kind, per_feature=per_feature)
        belief = cls(X.shape[1], **{**found, **settings})
        belief.learn(X, rewards)
        belief.settle()
        return belief

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_derived": None, "_shrink": None}

    @property
    def rows(self) -> float:
        """How many rows were learned; what was forgotten in part counts in part."""
        return self._memory.rows

    @property
    def kept(self) -> FloatArray:
        """The points."""
        return self._memory.basis.points.copy()

    @property
    def novelty(self) -> float:
        """The share of its variance that a row must bring to become a point.

        Where it has grown past a few per cent, more points or longer length scales would help.
        """
        return self._memory.novelty

    @property
    def covered(self) -> float:
        """The share of the variance of learned rows that the points stood for, 1 at best."""
        return 1.0 - self._memory.missed / max(self._memory.rows, 1.0)

    @property
    def precision(self) -> FloatArray:
        """V = I + Σ φ φᵀ/s²."""
        return self._memory.precision.copy()

    @property
    def _settled(self) -> bool:
        return self._prior.rows > 0.0

    def _seen(self, features: npt.ArrayLike) -> FloatArray:
        """Features as they are compared; coordinates stay as they are."""
        return self._in_units(check_features(features, self.dim))

    def _in_units(self, X: FloatArray) -> FloatArray:
        if not self._ranged:
            return X
        assert self._units is not None
        Z = self._units.centred(X)
        Z[:, self._coordinates] = X[:, self._coordinates]
        return Z

    def _posterior(self) -> tuple[FloatArray, FloatArray]:
        if self._derived is None:
            self._derived = self._memory.posterior()
        return self._derived

    def mean(self, features: npt.ArrayLike, groups: Groups | None = None) -> FloatArray:
        """The posterior mean of each arm; groups make no difference here."""
        return self._centre + self._memory.basis(self._seen(features)) @ self._posterior()[1]

    def deviation(self, features: npt.ArrayLike) -> FloatArray:
        """The posterior standard deviation of each arm's mean reward."""
        return self._scores(self._seen(features))[1]

    def _scores(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        R, weights = self._posterior()
        phi = self._memory.basis(X)
        known = solve(R, phi.T)
        variance = np.einsum("ij,ij->j", known, known) + self._memory.basis.residual(phi)
        return self._centre + phi @ weights, np.sqrt(variance)

    def upper(self, features: npt.ArrayLike, groups: Groups | None = None) -> FloatArray:
        """Mean + width·sd, capped at `mean_bound`."""
        mean, deviation = self._scores(self._seen(features))
        upper: FloatArray = mean + self.width * deviation
        return upper if self.mean_bound is None else np.minimum(upper, self.mean_bound)

    def sample(
        self, features: npt.ArrayLike, rng: np.random.Generator, groups: Groups | None = None
    ) -> FloatArray:
        """One joint draw of all mean rewards.

        A function g from the prior is drawn, and what the points say of it, w = its weights, is
        shrunk to what is known: g(x) + φ(x)·(V⁻¹ b + V^(−½) w − w). So the rest is drawn as well,
        an arm gets the same value whichever are asked with it, and the order of points does not
        matter.
        """
        X = self._seen(features)
        basis = self._memory.basis
        if self._shrink is None:
            self._shrink = self._memory.root()
        g = basis.covariance.draw(rng)
        w = basis.coefficients @ g(basis.points)
        shift = self._posterior()[1] + self._shrink @ w - w
        return self._centre + g(X) + basis(X) @ shift

    def _checked(
        self, features: npt.ArrayLike, rewards: npt.ArrayLike, groups: Groups | None
    ) -> Run:
        X = check_features(features, self.dim)
        return Run(X, check_rewards(rewards, len(X)), None)

    def _add(self, rows: Run) -> None:
        X, y = self._in_units(rows.X), rows.y - self._centre
        self._know(self._memory.learned(X, y, self._noise, self.points))

    def _compare(self, rows: Run) -> None:
        if self.mean_bound is not None:
            compare(self, self.mean(rows.X), rows.y, self.mean_bound, self._noise)

    def _know(self, memory: Memory) -> None:
        self._memory, self._derived, self._shrink = memory, None, None

    def _fade(self, factor: float) -> None:
        self._know(self._memory.faded(self._prior, factor))

    def _settle(self) -> None:
        self._prior = self._memory

    def _rewind(self) -> None:
        self._know(self._prior)

    def state(self) -> dict[str, Any]:
        """Everything, as JSON."""
        lengths = {name: getattr(self, name) for name in ("length_scale", "space_length")}
        return seal(
            "kernel",
            {
                **{name: getattr(self, name) for name in ("dim", *_SETTINGS)},
                **{name: None if at is None else at.tolist() for name, at in lengths.items()},
                "space": list(self.space),
                "memory": self._memory.state(),
                "prior": self._prior.state(),
                "units": None if self._units is None else self._units.state(),
                "beyond": list(self._beyond),
                "warned": sorted(self._warned),
            },
        )

    @classmethod
    def restore(cls, state: Mapping[str, Any] | str) -> Self:
        """The belief that `state` was taken from."""
        state = unseal("kernel", state)
        names = (*_SETTINGS, "length_scale", "space_length")
        belief = cls(entry(state, "dim"), **{name: entry(state, name) for name in names})
        if entry(state, "units") is not None:
            belief._units = Units.restore(state["units"])
            belief._start()
        covariance = belief._memory.basis.covariance
        belief._memory, belief._prior = (
            Memory.restore(entry(state, name), covariance, belief.dim)
            for name in ("memory", "prior")
        )
        belief._beyond = tuple(entry(state, "beyond"))
        belief._warned = set(entry(state, "warned"))
        return belief
