"""COAF as a pilot: squares, patches and holes, each taken if it is worth its time."""

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.bandit.policies.stepwise import Stepwise
from coaf.bandit.problem import Decision, Round
from coaf.cryoem.grid import Patch, Square
from coaf.cryoem.microscope import Survey
from coaf.cryoem.pilot import Choice, Left
from coaf.cryoem.pilots.designs import Design, design_for
from coaf.cryoem.pilots.known_patch import KnownPatch
from coaf.cryoem.pilots.square_choice import SquareChoice
from coaf.cryoem.reward import Reward
from coaf.cryoem.timing import LearnedTiming, Timing
from coaf.cryoem.vision.features import HOLE_FEATURES


class CoafPilot:
    """Decide by what a second is worth, hole by hole (`Stepwise`), and square by square.

    Parameters
    ----------
    timing
        What to expect of the microscope; what it takes in fact is learned.
    reward
        What a score is worth: it says which belief suits, and at which cut.
    columns
        The names of the features that surveys bring.
    seed
        Not used: nothing here is drawn. It is there because pilots have one.

    Notes
    -----
    The rest of a patch is a follow-up round. Before each entry the policy is told the time left,
    how many patches are to be expected of the squares not opened, and which patches could be
    returned to, so that the price of a second falls when the grid runs out.
    """

    def __init__(
        self,
        timing: Timing,
        *,
        reward: Reward,
        columns: Sequence[str] = HOLE_FEATURES,
        seed: int = 0,
    ) -> None:
        self.design: Design = design_for(columns, reward)
        self.policy = Stepwise(self.design.belief(), expect=self.design.typical(timing.latency()))
        self.times = LearnedTiming(timing)
        self.squares = SquareChoice()
        self._known: dict[str, KnownPatch] = {}
        self._opened: dict[str, list[KnownPatch]] = {}  # by square; one may hold no patch
        self._atlas: dict[str, Square] = {}
        self._scored: set[tuple[str, int]] = set()  # holes and shots
        self._arms: dict[str, tuple[Decision, int]] = {}  # by hole: what its reward is learned for
        self._at: str | None = None  # the patch that is being decided
        self._entry: Decision | None = None
        self._open: Decision | None = None  # decided, and neither exposed nor left yet
        self._arm_of: dict[str, int] = {}
        self._visits = 0
        self._told: object = None  # what the policy was told last of what is left
        self._newest = ""  # the square that was opened last, while its patches are looked at
        self._rows: dict[str, list[float]] = {}  # by hole: what was learned of its shots
        self._forgotten: set[str] = set()
        self._waits: list[float] = []
        self._elapsed = 0.0
        self._exposed_at: dict[str, float] = {}

    @property
    def rate(self) -> float:
        """What a second is worth in the next patch."""
        return self.policy.rate

    # Squares

    def square(self, squares: Sequence[Square], left: Left) -> Choice:
        self._atlas.update({square.name: square for square in squares})
        self._remain(left)
        self._newest = ""
        if not squares:
            return Choice(None, "No square is left to open.", rate=self.policy.rate)
        rate, opens = self.policy.rate, self.times.timing.square
        rows = [
            (self._atlas[name], self._worth(held, rate))
            for name, held in self._opened.items()
            if name in self._atlas
        ]
        choice = self.squares.choose(squares, rows, rate=rate, seconds=opens)
        if (
            choice.name is None
            and not (self.policy.worth(self._again(), rate, anew=False) > 0).any()
        ):
            best, worth = self.squares.ranking[0]
            why = f"{choice.why} Nothing else does either, so the best is opened: time is left."
            return Choice(best, why, estimate=worth, rate=rate)
        return choice

    def opened(self, survey: Survey, seconds: float) -> None:
        self.times.learn_together(("stage", "height", "image"), seconds)
        self._elapsed += seconds
        self._newest = survey.square
        self.squares.opened(survey.square, len(survey.patches))
        for patch in survey.patches:
            features = self.design.features(survey.features[patch.name])
            self._known[patch.name] = KnownPatch(patch, features)
        self._opened[survey.square] = [self._known[patch.name] for patch in survey.patches]
        timing = self.times.timing
        self.policy.meet([known.left(timing) for known in self._opened[survey.square]])

    def _worth(self, held: Iterable[KnownPatch], rate: float) -> float:
        """What the patches of a square were worth beyond their time, as if they came anew."""
        timing = self.times.timing
        rounds = [known.round(timing, range(len(known.patch.holes))) for known in held]
        return float(np.maximum(self.policy.worth(rounds, rate), 0.0).sum())

    # Patches

    def patch(self, patches: Sequence[Patch], left: Left) -> Choice:
        self._remain(left)
        rate = self.policy.rate
        timing = self.times.timing
        rounds = [self._known[patch.name].left(timing) for patch in patches]
        worth = self.policy.worth(rounds, rate, anew=False)
        best = int(np.argmax(worth))
        # Of a square just opened each patch is looked at, so that each has its own reason to be
        # skipped; when returning, nothing is looked at in vain.
        if worth[best] <= 0.0 and any(p.square != self._newest for p in patches):
            return Choice(
                None,
                f"None of {len(patches)} patches pays for its time: the best would bring "
                f"{-worth[best]:.2g} less than that is worth.",
                rate=rate,
            )
        more = "more" if worth[best] > 0.0 else "less"
        return Choice(
            patches[best].name,
            f"The best of {len(patches)} patches: it should bring {abs(worth[best]):.2g} {more} "
            "than its time is worth.",
            estimate=float(worth[best]),
            rate=rate,
        )

    # Holes

    def hole(self, patch: Patch, rest: Sequence[int], left: Left) -> Choice:
        if self._at != patch.name:
            self._at, self._entry = patch.name, None
            self._visits += 1
            self._remain(left)
        elif left.seconds < self.times.timing.enter + self.times.timing.hole():
            self._remain(left)  # nothing else can be started: what is left here is free
        known, timing = self._known[patch.name], self.times.timing
        needed = timing.hole(max(patch.holes[i].shots for i in rest)) if rest else 0.0
        needed += timing.enter if self._entry is None else 0.0
        # The number of the visit first: then no name of a patch can make two keys equal.
        key = f"{self._visits}/{patch.name}" + (f"/{len(rest)}" if self._entry else "")
        decision = self.policy.decide(known.round(timing, rest, key=key, follows=self._entry))
        self._open = decision
        self._arm_of = {patch.holes[i].name: k for k, i in enumerate(rest)}
        if needed > left.seconds:
            return Choice(None, f"It would take {needed:.0f} s, and {left.seconds:.0f} s are left.")
        if not decision.chosen.any():
            return Choice(None, decision.why, rate=decision.rate)
        k = int(decision.chosen.argmax())
        return Choice(
            patch.holes[rest[k]].name, decision.why, float(decision.estimates[k]), decision.rate
        )

    def exposed(self, hole: str, seconds: float) -> None:
        decision = self._open
        if decision is None or hole not in self._arm_of:
            raise ValueError(f"hole {hole!r} was exposed, but no decision is open for it")
        known = self._known[str(self._at)]
        arm, self._open = self._arm_of[hole], None
        timing, shots = self.times.timing, self._shots(decision, arm)
        if self._entry is None:
            self._entry, known.entered = decision, True
            moved = max(seconds - timing.hole(shots), 0.0)
            self.times.learn_together(("move", "focus"), moved)
        else:
            self.times.learn("expose", max(seconds - (shots - 1) * timing.shot, 0.0))
        self.policy.commit(decision, executed=np.arange(decision.round.n) == arm)
        self._arms[hole] = (decision, arm)
        known.taken.add(hole)
        self._elapsed += seconds
        self._exposed_at[hole] = self._elapsed

    def left(self, patch: Patch) -> None:
        if self._open is not None:
            none = np.zeros(self._open.round.n, dtype=np.bool_)
            self.policy.commit(self._open, executed=none)
        self._open = self._entry = self._at = None

    # Scores

    def scored(self, hole: str, shot: int, reward: float) -> None:
        if hole not in self._arms:
            raise ValueError(f"hole {hole!r} has a score, but was never exposed")
        if (hole, shot) in self._scored:
            raise ValueError(f"the score of shot {shot} of hole {hole!r} is in already")
        decision, arm = self._arms[hole]
        target = self.design.target(reward)
        if hole in self._forgotten:  # its rewards are in already, as far as the policy knows
            belief, groups = self.policy.belief, decision.round.groups
            assert belief is not None
            assert groups is not None
            belief.learn(decision.round.features[arm, None], np.array([target]), groups[arm, None])
        else:
            self.policy.learn(decision, [arm], [target])
        self._rows.setdefault(hole, []).append(target)
        self._scored.add((hole, shot))
        if shot == 0:
            self._waits = [*self._waits[-49:], self._elapsed - self._exposed_at[hole]]
            expose = max(self.times.timing.hole(self._shots(decision, arm)), 1e-6)
            self.policy.lag = min(round(float(np.median(self._waits)) / expose), 20)

    def unlearn(self, holes: Collection[str]) -> None:
        """Forget what was learned of these holes: the instrument was at fault.

        Their rewards may be told again, should the fault turn out not to have been one.
        """
        for hole in holes:
            if self._rows.pop(hole, None) is not None:
                self._forgotten.add(hole)
        self._scored = {at for at in self._scored if at[0] not in set(holes)}
        X, y, labels = [], [], []
        for hole, targets in self._rows.items():
            decision, arm = self._arms[hole]
            assert decision.round.groups is not None
            X += [decision.round.features[arm]] * len(targets)
            labels += [decision.round.groups[arm]] * len(targets)
            y += targets
        dim = next(iter(self._known.values())).features.shape[1]
        groups = np.array(labels) if labels else None
        self.policy.refit(np.array(X).reshape(-1, dim), y, groups)

    def estimates(self, patch: Patch) -> FloatArray:
        known = self._known[patch.name]
        shots = np.array([hole.shots for hole in patch.holes])
        mean = self.policy.belief.mean(known.features, known.labels(len(shots)))  # type: ignore[union-attr]
        return shots * mean

    # Rounds

    @staticmethod
    def _shots(decision: Decision, arm: int) -> int:
        parts = decision.round.parts
        return 1 if parts is None else int(parts[arm])

    def _remain(self, left: Left) -> None:
        """Tell the policy how much time and how many patches there are."""
        now = (left, self._at, self._entry, len(self._scored), self._elapsed)
        if now == self._told:
            return
        self._told, timing = now, self.times.timing
        opens = left.seconds >= timing.square + timing.enter + timing.hole()
        rounds = left.squares * self.squares.patches(timing.patches) if opens else 0.0
        self.policy.remain(seconds=max(left.seconds, 0.0), rounds=rounds, again=self._again())

    def _again(self) -> list[Round]:
        """What is left of patches that can be returned to."""
        timing = self.times.timing
        return [
            known.left(timing)
            for name, known in self._known.items()
            if name != self._at and len(known.taken) < len(known.patch.holes)
        ]
