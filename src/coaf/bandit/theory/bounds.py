"""The paper's regret bounds as functions: as printed, and repaired where the proofs slip.

`docs/proofs.md` proves the repaired forms and marks every step that differs from the paper's;
`docs/bounds.md` is the summary. In short, the repaired forms bound the *expected* regret (`eqdef:
regret`), count k(T) + 1 rounds (which is a stopping time; k(T) is not), and do not change with the
unit of time.
"""

import math
from dataclasses import KW_ONLY, dataclass, replace
from typing import Literal

from coaf.bandit.arrays import number
from coaf.bandit.theory.eluder import beta_general

Form = Literal["repaired", "printed"]


@dataclass(frozen=True, slots=True)
class Scale:
    """How large a problem is (`ass: bounded`), in one unit of time and one unit of reward.

    Parameters
    ----------
    horizon
        T, the time the regret is counted over.
    n_max
        The most arms in a round.
    l_min, l_max
        The least and greatest latency of any action in any round.
    mean_bound, noise
        Mean rewards lie within `mean_bound` of 0, and rewards are `noise`-subgaussian; the paper
        has 1 and 1.

    Examples
    --------
    >>> patch = Scale(3600.0, n_max=20, l_min=12.0, l_max=200.0)
    >>> patch.samples, round(patch.rate_bound, 3)
    (6000.0, 1.667)
    """

    horizon: float
    _: KW_ONLY
    n_max: int
    l_min: float
    l_max: float
    mean_bound: float = 1.0
    noise: float = 1.0

    def __post_init__(self) -> None:
        number("horizon", self.horizon, above=0.0)
        if number("n_max", self.n_max, low=1.0) != int(self.n_max):
            raise ValueError(f"n_max is {self.n_max}; it counts arms and must be a whole number")
        number("l_min", self.l_min, above=0.0)
        number("l_max", self.l_max, low=self.l_min)
        number("mean_bound", self.mean_bound, above=0.0)
        number("noise", self.noise, low=0.0)

    @property
    def rounds(self) -> float:
        """The most rounds that fit into the horizon, T / l_min."""
        return self.horizon / self.l_min

    @property
    def samples(self) -> float:
        """The most rewards that can be seen in those rounds."""
        return self.rounds * self.n_max

    @property
    def rate_bound(self) -> float:
        """Γ_max: no rate, optimal or estimated, is further from zero."""
        return self.n_max * self.mean_bound / self.l_min

    @property
    def gap_bound(self) -> float:
        """G: no smallest gap is further from zero at any rate within `rate_bound` of it."""
        return self.n_max * self.mean_bound * (1.0 + self.l_max / self.l_min)

    def counted(self, form: Form) -> "Scale":
        """The scale whose rounds a proof sums over: one round more when repaired.

        The k(T) + 1 rounds that end after T number at most (T + l_min) / l_min.
        """
        if form not in ("repaired", "printed"):
            raise ValueError(f"form is {form!r}; it must be 'repaired' or 'printed'")
        return replace(self, horizon=self.horizon + self.l_min) if form == "repaired" else self


def beta(
    n: float,
    *,
    delta: float,
    dim: int,
    regularization: float = 1.0,
    noise: float = 1.0,
    norm_bound: float = 1.0,
    feature_bound: float = 1.0,
) -> float:
    """The squared radius β(n, δ) of the linear confidence set after `n` rewards.

    Examples
    --------
    >>> round(beta(0, delta=math.exp(-0.5), dim=3), 12)  # √λ = 1 and 2 ln(1/δ) = 1
    4.0
    """
    number("n", n, low=0.0)
    number("dim", dim, low=1.0)
    prior = number("regularization", regularization, above=0.0)
    if not 0.0 < number("delta", delta) < 1.0:
        raise ValueError(f"delta is {delta}; it must be in (0, 1)")
    spread = 2.0 * math.log(1.0 / delta) + dim * math.log1p(n * feature_bound**2 / (dim * prior))
    return (math.sqrt(prior) * norm_bound + noise * math.sqrt(spread)) ** 2


def elliptical_factor(n_max: int, *, form: Form = "repaired") -> float:
    """The c in Σ min(1, x'V⁻¹x) ≤ c · ln det V_k / det V_0 when V waits for the end of the round.

    `lm: LCB` prints 2, which is false for batches; n_max / ln 2 is enough, and
    n_max / ln(1 + n_max) is the least that always holds: equal unit arms at V = 1 attain it.

    Examples
    --------
    >>> elliptical_factor(20, form="printed") * math.log(21) < 20  # 20 equal unit arms
    True
    >>> round(elliptical_factor(20) * math.log(21), 12)
    20.0
    """
    return 2.0 if form == "printed" else n_max / math.log1p(n_max)


def resolution(scale: Scale, *, form: Form = "repaired") -> float:
    """The ε at which `w_general` needs the eluder dimension: mean bound over rewards seen."""
    return scale.mean_bound / scale.counted(form).samples


def u_term(scale: Scale, *, form: Form = "repaired") -> float:
    """U_T, the squared regret of learning the rate (`lm: coaf_orc`).

    Examples
    --------
    >>> hour = Scale(3600.0, n_max=1, l_min=1.0, l_max=1.0)
    >>> u_term(hour, form="printed") == 3600 * 4 * (1 + math.log(3600))
    True
    """
    counted = scale.counted(form)
    logarithm = 1.0 + math.log(counted.rounds)
    if logarithm < 0.0:
        raise ValueError(
            f"horizon is {scale.horizon}; below l_min/e U_T as printed is negative, repaired not"
        )
    return counted.rounds * (scale.l_max / scale.l_min * scale.gap_bound) ** 2 * logarithm


def w_linear(
    scale: Scale,
    *,
    delta: float,
    dim: int,
    regularization: float = 1.0,
    norm_bound: float = 1.0,
    feature_bound: float = 1.0,
    form: Form = "repaired",
) -> float:
    """W_T(δ): the time counted, times what the squared errors of linear estimates sum to.

    Estimates are the paper's upper ends of the confidence set, within `mean_bound` of 0.
    """
    counted = scale.counted(form)
    if not 0.0 < number("delta", delta) <= math.exp(-0.5):
        raise ValueError(f"delta is {delta}; the linear bound needs it in (0, 1/√e] = (0, 0.6065]")
    radius = beta(
        counted.samples,
        delta=delta,
        dim=dim,
        regularization=regularization,
        noise=scale.noise,
        norm_bound=norm_bound,
        feature_bound=feature_bound,
    )
    volume = dim * math.log1p(counted.samples * feature_bound**2 / (dim * regularization))
    # However wide the set, an error is at most 2·mean_bound; in the paper's units β ≥ 1 says it.
    squared = 4.0 * max(radius, scale.mean_bound**2)
    return counted.horizon * squared * elliptical_factor(scale.n_max, form=form) * volume


def w_general(
    scale: Scale,
    *,
    delta: float,
    alpha: float,
    log_covering: float,
    eluder: float,
    form: Form = "repaired",
) -> float:
    """W̃_T(δ): the same for a general class of eluder dimension `eluder` at `resolution(scale)`.

    As printed, β̃ takes T/n_min where n_min is not defined; it is read as 1.
    """
    counted = scale.counted(form)
    number("eluder", eluder, low=0.0)
    tolerance = beta_general(
        counted.samples if form == "repaired" else scale.horizon,
        delta=delta,
        alpha=alpha,
        log_covering=log_covering,
        noise=scale.noise,
        mean_bound=scale.mean_bound,
    )
    square = scale.mean_bound**2
    widths = 4.0 * (tolerance + 4.0 * square * scale.n_max) * (1.0 + math.log(counted.samples))
    return counted.horizon * (square + eluder * (4.0 * square + widths))


def failure_term(scale: Scale, *, probability: float) -> float:
    """What the rounds cost in which the confidence set may have lost the truth.

    One round's gap exceeds the smallest by at most n_max·mean_bound·l_max/l_min, whatever is taken.
    """
    chance = min(1.0, number("probability", probability, low=0.0))
    return chance * scale.counted("repaired").rounds * scale.rate_bound * scale.l_max


def oracle_bound(scale: Scale, *, form: Form = "repaired") -> float:
    """The regret when mean rewards are known and only the rate is learned, ξ = 1 (`lm: coaf_orc`).

    Examples
    --------
    >>> day = Scale(1440.0, n_max=20, l_min=0.2, l_max=3.3)  # minutes
    >>> round(oracle_bound(day) / oracle_bound(day, form="printed"), 4)
    1.0001
    """
    last = scale.gap_bound if form == "repaired" else scale.l_max * scale.rate_bound
    return math.sqrt(u_term(scale, form=form)) + last


def _bound(scale: Scale, xi: float, w: float, failure: float, form: Form) -> float:
    """`lm: COAF` with the sum of squared errors bounded by w/T."""
    if not 0.0 < number("xi", xi) < 1.0:
        raise ValueError(f"xi is {xi}; it must be in (0, 1), and xi = 1 belongs to oracle_bound")
    ratio = scale.l_max / scale.l_min
    per_arm = scale.n_max / scale.l_min
    batch = ratio**2 * per_arm if form == "repaired" else ratio**3
    learning = math.sqrt(u_term(scale, form=form) / xi + batch * w / (1.0 - xi))
    last = scale.l_max * scale.rate_bound
    if form == "repaired":
        last = scale.gap_bound + failure_term(scale, probability=failure)
    return learning + math.sqrt(per_arm * w) + last


def linear_bound(
    scale: Scale,
    *,
    xi: float,
    delta: float,
    dim: int,
    regularization: float = 1.0,
    norm_bound: float = 1.0,
    feature_bound: float = 1.0,
    form: Form = "repaired",
) -> float:
    """The regret of COAF with a linear mean reward (`th: cmbub`).

    Repaired, it bounds the expected regret and so pays for failure: let δ shrink like 1/T. As
    printed, it is said to hold with probability 1 − δ.

    Examples
    --------
    >>> hours, minutes = (Scale(24 * k, n_max=20, l_min=k / 300, l_max=k / 18) for k in (1, 60))
    >>> [f"{linear_bound(s, xi=0.5, delta=1e-4, dim=3):.3g}" for s in (hours, minutes)]
    ['3.16e+06', '3.16e+06']
    """
    w = w_linear(
        scale,
        delta=delta,
        dim=dim,
        regularization=regularization,
        norm_bound=norm_bound,
        feature_bound=feature_bound,
        form=form,
    )
    return _bound(scale, xi, w, delta, form)


def general_bound(
    scale: Scale,
    *,
    xi: float,
    delta: float,
    alpha: float,
    log_covering: float,
    eluder: float,
    form: Form = "repaired",
) -> float:
    """The regret of COAF with a general class (`th: cmbub2`); see `linear_bound` for the two forms.

    `eluder` is the dimension at `resolution(scale)`; the confidence sets fail with chance 2δ.
    """
    w = w_general(
        scale, delta=delta, alpha=alpha, log_covering=log_covering, eluder=eluder, form=form
    )
    return _bound(scale, xi, w, 2.0 * delta, form)
