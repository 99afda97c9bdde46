"""Algorithm 1 as a pilot: a whole patch is decided at once, and the rate moves with each."""

from collections.abc import Callable, Sequence

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.groups import Groups
from coaf.bandit.policies.coaf import COAF
from coaf.bandit.problem import Decision, Round
from coaf.cryoem.grid import Patch
from coaf.cryoem.microscope import Survey
from coaf.cryoem.pilot import Choice, Left, Open, Scored
from coaf.cryoem.pilots.baselines import Rule
from coaf.cryoem.timing import Timing


class WholePatch(Rule):
    """The subset of a patch with the smallest gap, by a policy that decides rounds.

    What is in play of a patch is one round, decided when it is looked at; the holes chosen are
    taken best first, whatever scores say meanwhile. Squares are opened in order. Holes are grouped
    by square and patch, for beliefs that know what these share.

    Parameters
    ----------
    policy
        Which decides the rounds.
    prepare
        From the features of a survey to those of the policy.
    """

    def __init__(self, policy: COAF, prepare: Callable[[FloatArray], FloatArray]) -> None:
        super().__init__()
        self.policy, self.prepare = policy, prepare
        self._where: dict[str, tuple[Patch, int]] = {}  # by hole: its patch, and its place there
        self._under_way: tuple[Open, Decision] | None = None
        self._taken: set[str] = set()  # during this visit
        self._visits = 0

    def opened(self, survey: Survey, timing: Timing) -> None:
        for patch in survey.patches:
            self.features[patch.name] = self.prepare(survey.features[patch.name])
            self._where |= {hole.name: (patch, i) for i, hole in enumerate(patch.holes)}

    def hole(self, here: Open, left: Left, *, inside: bool) -> Choice:
        if inside and self._under_way is not None:
            begun, decision = self._under_way
        else:
            begun, decision = here, self._decide(here, left)
        wanted = {begun.rest[k]: float(decision.estimates[k]) for k in decision.arms.tolist()}
        there = [i for i in here.rest if i in wanted]
        if not there:
            return Choice(None, decision.why, rate=decision.rate)
        best = max(there, key=lambda i: wanted[i])
        # What it hopes for decides; what it expects is what an instrument can be judged by.
        expected = float(self.estimates(here.patch)[best])
        return Choice(here.patch.holes[best].name, decision.why, expected, decision.rate)

    def _decide(self, here: Open, left: Left) -> Decision:
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
        self._under_way, self._taken = (here, self._decide(here, left)), set()

    def exposed(self, hole: str) -> None:
        self._taken.add(hole)

    def done(self, here: Open, left: Left) -> None:
        begun, decision = self._under_way or (here, self._decide(here, left))
        names = [begun.patch.holes[i].name for i in begun.rest]
        executed = np.array([name in self._taken for name in names], dtype=np.bool_)
        self.policy.commit(decision, None if (executed == decision.chosen).all() else executed)
        self._under_way, self._taken = None, set()
        self._visits += 1

    def scored(self, scores: Sequence[Scored]) -> None:
        where = [self._where[score.hole] for score in scores]
        self.policy.absorb(
            np.array([self.features[patch.name][i] for patch, i in where]),
            [score.reward for score in scores],
            _groups([patch for patch, _ in where]),
        )


def _groups(patches: Sequence[Patch]) -> Groups:
    return np.array([[patch.square, patch.name] for patch in patches])


def paper_policy(*, scale: float) -> COAF:
    """Algorithm 1, its confidence set capped at the mean bound; its radius times `scale`."""
    return COAF.paper(3, within="ellipsoid", scale=scale)


def paper_features(rows: FloatArray, *, columns: Sequence[str]) -> FloatArray:
    """1, u and u² of u = prediction/10 − 1, with a norm of at most 1 for predictions to 20 Å.

    Without a prediction all holes are alike: u is 0.
    """
    u = np.zeros(len(rows))
    if "prediction" in columns:
        u = np.clip(rows[:, list(columns).index("prediction")] / 10.0 - 1.0, -1.0, 1.0)
    prepared: FloatArray = np.column_stack([np.ones(len(u)), u, u * u]) / np.sqrt(3.0)
    return prepared
