"""Algorithm 1 as a pilot: a whole patch is decided at once, and the rate moves with each."""

from collections.abc import Callable, Sequence
from functools import partial
from warnings import catch_warnings, simplefilter

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.groups import Groups
from coaf.bandit.policies.coaf import COAF
from coaf.bandit.policies.faults import AssumptionWarning
from coaf.bandit.problem import Decision, Round
from coaf.cryoem.grid import Patch
from coaf.cryoem.microscope import Score, Survey
from coaf.cryoem.pilot import Choice, Left, Open, Scored
from coaf.cryoem.pilots import reasons
from coaf.cryoem.pilots.baselines import ORDER, Rule
from coaf.cryoem.pilots.square_order import SquareOrder
from coaf.cryoem.reward import Reward
from coaf.cryoem.timing import Timing
from coaf.cryoem.unit import MICROGRAPHS, Unit, unit_of

BEST = 3.0  # Å: what a network predicts of the best holes
FULL = 150.0  # particles of a micrograph among the best, on average


class WholePatch(Rule):
    """The subset of a patch with the smallest gap, by a policy that decides rounds.

    What is in play of a patch is one round, decided when it is looked at; the holes chosen are
    taken best first, whatever scores say meanwhile. Patches are looked at in order. When nothing
    is left to open it returns, to what gains most first; when no hole is chosen anywhere, it takes
    them all the same: the paper's rounds never end, but a grid does. Holes are grouped by square
    and patch, for beliefs that know what these share.

    Parameters
    ----------
    policy
        Which decides the rounds.
    prepare
        From the features of a survey to those of the policy.
    unit
        What rewards are counted in, for its reasons.
    order
        Of squares.
    """

    def __init__(
        self,
        policy: COAF,
        prepare: Callable[[FloatArray], FloatArray],
        *,
        unit: Unit = MICROGRAPHS,
        order: SquareOrder = "listed",
    ) -> None:
        super().__init__(order=order)
        self.policy, self.prepare, self.unit = policy, prepare, unit
        self._where: dict[str, tuple[Patch, int]] = {}  # by hole: its patch, and its place there
        self._under_way: tuple[Open, Decision] | None = None
        self._taken: set[str] = set()  # during this visit
        self._visits = 0

    def opened(self, survey: Survey, timing: Timing) -> None:
        for patch in survey.patches:
            self.features[patch.name] = self.prepare(survey.features[patch.name])
            self._where |= {hole.name: (patch, i) for i, hole in enumerate(patch.holes)}

    def patch(self, patches: Sequence[Open], left: Left) -> Choice:
        if not left.returning:
            return super().patch(patches, left)
        decisions = [self.decide(one, left) for one in patches]
        # Where nothing is chosen, what is hoped for is all there is to go by.
        best = max(
            range(len(patches)),
            key=lambda k: (_gain(decisions[k]), decisions[k].estimates.mean()),
        )
        return Choice(patches[best].patch.name, f"The best of the {len(patches)} patches left.")

    def hole(self, here: Open, left: Left, *, inside: bool) -> Choice:
        if inside and self._under_way is not None:
            begun, decision = self._under_way
        else:
            begun, decision = here, self.decide(here, left)
        hopes = dict(zip(begun.rest, decision.estimates.tolist(), strict=True))
        chosen = {begun.rest[k] for k in decision.arms.tolist()}
        there, why = [i for i in here.rest if i in chosen], self._why(decision, begun)
        if not there and left.returning and self._idle(left):
            there, why = [i for i in here.rest if i in hopes], "All that was left, as time remains."
        if not there:
            return Choice(None, why, rate=decision.rate)
        best = max(there, key=lambda i: hopes[i])
        # What it hopes for decides; what it expects is what an instrument can be judged by.
        expected = float(self.estimates(here.patch)[best])
        return Choice(here.patch.holes[best].name, why, expected, decision.rate)

    def _why(self, decision: Decision, here: Open) -> str:
        """What it hopes for, in words: its estimates are optimistic."""
        if decision.blind:
            return decision.why
        taken = int(decision.chosen.sum())
        best = int(decision.estimates.argmax())
        now = reasons.Facing(
            len(here.rest),
            decision.reward if taken else float(decision.estimates[best]),
            decision.rate,
            seconds=decision.seconds - decision.round.floor,
            shots=here.patch.holes[here.rest[best]].shots,
        )
        fault = f" {decision.fault}" if decision.fault else ""
        return reasons.whole_patch(self.unit, taken, now) + fault

    def _idle(self, left: Left) -> bool:
        """Whether no hole would be chosen in any patch."""
        return not any(self.decide(one, left).chosen.any() for one in left.patches if one.rest)

    def decide(self, here: Open, left: Left) -> Decision:
        """The round that a patch is, decided now; its estimates are the optimistic ones."""
        shots = [here.patch.holes[i].shots for i in here.rest]
        return self.policy.decide(
            Round(
                self.features[here.patch.name][list(here.rest)],
                left.timing.latency(shots=shots, opens=False if here.entered else None),
                groups=_groups([here.patch] * len(shots)),
                key=f"{self._visits}/{here.patch.name}",
                parts=np.array(shots, dtype=np.int64),
            )
        )

    def estimates(self, patch: Patch) -> FloatArray:
        belief = self.policy.belief
        assert belief is not None
        shots = np.array([hole.shots for hole in patch.holes])
        groups = _groups([patch] * len(shots))
        found: FloatArray = shots * belief.mean(self.features[patch.name], groups)
        return found

    def moved(self, here: Open, left: Left, rate: float | None) -> None:
        self._under_way, self._taken = (here, self.decide(here, left)), set()

    def exposed(self, hole: str) -> None:
        self._taken.add(hole)

    def done(self, here: Open, left: Left) -> None:
        begun, decision = self._under_way or (here, self.decide(here, left))
        names = [begun.patch.holes[i].name for i in begun.rest]
        executed = np.array([name in self._taken for name in names], dtype=np.bool_)
        self.policy.commit(decision, None if (executed == decision.chosen).all() else executed)
        self._under_way, self._taken = None, set()
        self._visits += 1

    def scored(self, scores: Sequence[Scored]) -> None:
        where = [self._where[score.hole] for score in scores]
        with catch_warnings():
            # Grids that are not as the paper assumes (‖θ‖ ≤ 1) are no news to who compares.
            simplefilter("ignore", AssumptionWarning)
            self.policy.absorb(
                np.array([self.features[patch.name][i] for patch, i in where]),
                [score.reward for score in scores],
                _groups([patch for patch, _ in where]),
            )


def _gain(decision: Decision) -> float:
    """By how much its gap is smaller than that of taking nothing."""
    return decision.rate * decision.round.floor - decision.gap


def _groups(patches: Sequence[Patch]) -> Groups:
    return np.array([[patch.square, patch.name] for patch in patches])


def paper_pilot(
    columns: Sequence[str], reward: Reward, *, scale: float = 1.0, order: SquareOrder = ORDER
) -> WholePatch:
    """The paper's algorithm for surveys with these columns; its radius times `scale`.

    The paper says nothing of the order of squares: it has that of the rules it is compared with.
    """
    policy = paper_policy(scale=scale, columns=columns, bound=_largest(reward))
    prepare = partial(printed_features, columns=columns)
    return WholePatch(policy, prepare, unit=unit_of(reward), order=order)


def paper_policy(
    *, scale: float, columns: Sequence[str] = ("prediction",), bound: float = 1.0
) -> COAF:
    """Algorithm 1 with the printed radius times `scale`; `bound` is the largest mean reward.

    The paper's rewards have means of at most 1 and 1-sub-Gaussian noise. What is rewarded more,
    as particles are, is the same problem in another unit: ‖θ‖ and noise are bounded by `bound`.
    With the paper's two features all is as printed; for a prediction alone the confidence set is
    the ellipsoid capped at the mean bound, as its square needs coefficients beyond the ball.
    """
    two = _two(columns)
    return COAF.paper(
        2 if two else 3,
        norm_bound=bound,
        noise=bound,
        scale=scale,
        within="ball" if two else "ellipsoid",
    )


def printed_features(rows: FloatArray, *, columns: Sequence[str]) -> FloatArray:
    """The paper's features of holes, with a norm of at most 1.

    With "ice" and "prediction" these are the paper's two, over √2: the mean pixel value, and the
    score of a network. Ice is −ln(mean pixel value / vacuum), so exp(−ice) is the mean pixel value
    with vacuum as 1, which is what `vision.features.paper_features` measures. The score is 3 Å
    over the resolution that the network predicts: 1 for the best, as a classifier's would be. The
    paper tells of no constant, so there is none.

    With a prediction alone: 1, u and u² of u = prediction/10 − 1, for predictions to 20 Å, over
    √3. Without one all holes are alike: u is 0.

    Examples
    --------
    >>> rows = np.array([[0.0, 3.0], [0.5, 6.0]])
    >>> (printed_features(rows, columns=("ice", "prediction")) * np.sqrt(2.0)).round(2)
    array([[1.  , 1.  ],
           [0.61, 0.5 ]])
    """
    names = list(columns)
    if _two(columns):
        pixel = np.clip(np.exp(-rows[:, names.index("ice")]), 0.0, 1.0)
        score = BEST / np.maximum(rows[:, names.index("prediction")], BEST)
        both: FloatArray = np.column_stack([pixel, score]) / np.sqrt(2.0)
        return both
    u = np.zeros(len(rows))
    if "prediction" in names:
        u = np.clip(rows[:, names.index("prediction")] / 10.0 - 1.0, -1.0, 1.0)
    prepared: FloatArray = np.column_stack([np.ones(len(u)), u, u * u]) / np.sqrt(3.0)
    return prepared


def _two(columns: Sequence[str]) -> bool:
    return "ice" in columns and "prediction" in columns


def _largest(reward: Reward) -> float:
    """What the best micrograph is worth on average; 1 where that cannot be told."""
    best = Score("the best", 0, ctf=BEST, particles=FULL, exposed_at=0.0, arrived_at=0.0)
    return max(reward(best) or 0.0, 0.0) or 1.0
