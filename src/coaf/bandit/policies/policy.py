"""The verbs that every policy has."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import inf
from os import PathLike
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from coaf.bandit import index as indices
from coaf.bandit.arrays import (
    LARGEST,
    BoolArray,
    FloatArray,
    IntArray,
    floats,
    guards,
    number,
)
from coaf.bandit.beliefs.belief import Belief, Bounded, Corrects, LearnsSize, require_belief
from coaf.bandit.beliefs.registry import restore_belief
from coaf.bandit.beliefs.rows import check_rewards
from coaf.bandit.beliefs.runs import Run
from coaf.bandit.groups import Groups, check_groups
from coaf.bandit.index import Index, Noise, Upper
from coaf.bandit.policies.faults import BeliefError, BeliefWarning, is_fault, mend
from coaf.bandit.policies.history import History
from coaf.bandit.policies.ledger import Ledger, arm_numbers, reward_values
from coaf.bandit.policies.report import Recent, Report
from coaf.bandit.policies.saved import write
from coaf.bandit.problem import Decision, Round, require_decision, require_round
from coaf.bandit.rates.memory_root import root
from coaf.bandit.select import WORK, Selection
from coaf.bandit.shown import require_kind
from coaf.bandit.state import entry, seal, unseal
from coaf.bandit.subsets import whole

_UPPER = Upper()


def _no_noise() -> np.random.Generator:
    raise ValueError("an index that says it is not random asked for random numbers")


class Policy:
    """Three verbs, which never call each other; subclasses say how to price and to choose.

    `decide` is pure, `commit` says that time was spent, and `learn` that scores arrived. Every
    argument is checked before anything changes, so an error leaves the policy as it was. What will
    never come is given up by `abandon`, a score that was wrong is mended by `correct`, and rows
    that no decision led to are learned by `absorb`.

    A belief that fails does not stop a policy: what it cannot score, or scores with no finite
    number, is estimated at the average reward so far, and a `BeliefWarning` and the decision's
    `fault` say so. What it cannot learn is a `BeliefError`.

    One thread at a time may `commit`, `learn`, `absorb`, `abandon`, `correct` or `refit`, while
    none decides; between these, any number of threads may call `decide` at once, on rounds that
    have keys.

    While a belief does not know how large rewards are (`LearnsSize`), all that is allowed is taken,
    least known arms first, the decision is `blind`, and the rate does not move.

    Parameters
    ----------
    belief, index, seed
        What is known, how it becomes estimates, and where a random index begins.
    draws
        How many further draws estimate the propensities of a random index; 0 records none.
    reward_range
        The least and the largest reward there is: `learn` refuses others, as a marker for no score.
    keep_rows
        Keep what is learned, so that `correct` works with every belief.
    expire_commits, expire_seconds
        After how many further commits, or committed seconds, rewards that have not come are given
        up; never unless given.
    work
        How much a single decision may look at, where the best subset is hard to find: about a
        second's worth unless given. The answer depends on it, never on the clock.
    """

    kind = ""
    rule = ""  # why arms are taken, if not because they pay for their time

    def __init__(
        self,
        *,
        belief: Belief | None,
        index: Index,
        seed: int = 0,
        draws: int = 0,
        reward_range: tuple[float, float] | None = None,
        keep_rows: bool = False,
        expire_commits: float = inf,
        expire_seconds: float = inf,
        work: int = WORK,
    ) -> None:
        require_belief(belief)
        self.belief = belief
        self.index = index
        self.seed = int(seed)
        self.draws = int(number("draws", draws, low=0))
        self.reward_range = _range(reward_range)
        self.work = whole("work", work)
        for name, limit in (("expire_commits", expire_commits), ("expire_seconds", expire_seconds)):
            if limit != inf:
                number(name, limit, above=0.0)
        self._history = History() if keep_rows else None
        self._ledger = Ledger(float(expire_commits), float(expire_seconds))
        self._total, self._count = 0.0, 0  # of the rewards learned, or fitted
        self._earned, self._came = 0.0, 0  # of the rewards of decisions
        self._recent = Recent()

    @property
    def belief(self) -> Belief | None:
        """What is known of the mean reward."""
        return self._belief

    @belief.setter
    def belief(self, belief: Belief | None) -> None:
        self._belief = belief
        self._sizing = belief if isinstance(belief, LearnsSize) else None

    @property
    def blind(self) -> bool:
        """Whether nothing is known yet of how large rewards are."""
        return (
            self._sizing is not None and self.index.needs_belief and self._sizing.reward_size == 0.0
        )

    def _price(self, round: Round | None, name: int | str, faults: list[str]) -> float:
        """What a second is worth in this round, or in the next entry round.

        What goes wrong with the belief is added to `faults`.
        """
        raise NotImplementedError

    def _select(
        self,
        rate: float,
        estimates: FloatArray,
        round: Round,
        faults: list[str],
        work: int,
    ) -> Selection:
        return round.best(rate, estimates, work=work)

    def _grope(self, estimates: FloatArray, round: Round) -> Selection:
        """What to take while rewards have no size: all that is allowed, least known arms first."""
        return round.best(0.0, estimates, work=self.work)

    def _spend(self, decision: Decision, executed: BoolArray, seconds: float | None) -> float:
        """Time was spent: how much."""
        if seconds is not None:
            return seconds
        if executed is decision.chosen:
            return decision.seconds
        return float(decision.round.latency.seconds(executed))

    def _estimates(
        self,
        features: FloatArray,
        groups: Groups | None,
        noise: Noise,
        faults: list[str],
        index: Index | None = None,
    ) -> FloatArray:
        """Finite estimates, whatever the belief does."""
        found: FloatArray | Exception
        index = self.index if index is None else index
        try:
            found = index.estimates(self._belief, features, noise, groups)
            if found.shape == (len(features),) and guards().all_within(found, LARGEST):
                return found
        except Exception as error:
            if not index.needs_belief or not is_fault(error):
                raise
            found = error
        average = self._total / self._count if self._count else 0.0
        estimates, fault = mend(found, len(features), average)
        who = self._belief if index.needs_belief else index
        faults.append(f"{type(who).__name__} {fault}")
        return estimates

    def _noise(self, name: int | str) -> Noise:
        """The random numbers of a round, from their beginning each time they are asked for."""
        return (lambda: indices.generator(self.seed, name)) if self.index.random else _no_noise

    @property
    def rate(self) -> float:
        """What a second is worth in the next entry round, by the estimates that choose."""
        faults: list[str] = []
        rate = self._price(None, self._ledger.new_id(None), faults)
        if faults:
            warnings.warn(faults[0], BeliefWarning, stacklevel=2)
        return rate

    def decide(self, round: Round) -> Decision:
        """Choose a subset. Pure: the same state and the same round give the same answer.

        Any number of threads may decide at once, on rounds that have keys, while none commits or
        learns.
        """
        require_round(round)
        name = self._ledger.new_id(round.key)
        faults: list[str] = []
        rate = self._price(round, name, faults)
        blind, random = self.blind, self.index.random
        index = _UPPER if blind else self.index
        estimates = self._estimates(round.features, round.groups, self._noise(name), faults, index)
        if round.parts is not None:
            estimates = estimates * round.parts
        if blind:
            choice = self._grope(estimates, round)
            choice = choice._replace(gap=choice.seconds * rate - choice.reward)
        else:
            choice = self._select(rate, estimates, round, faults, self.work)
        estimates.setflags(write=False)
        propensities = None
        if random and self.draws:
            propensities = self._propensities(round, name, rate, choice.chosen, blind, faults)
            propensities.setflags(write=False)
        if faults:
            warnings.warn(faults[0], BeliefWarning, stacklevel=2)
        return Decision(
            round,
            name,
            choice.chosen,
            choice.seconds,
            choice.reward,
            choice.gap,
            estimates,
            rate,
            choice.exact,
            propensities,
            faults[0] if faults else "",
            choice.option,
            choice.lost,
            blind,
            1.0 if blind or not random else None,
            rule=self.rule,
        )

    def _propensities(
        self,
        round: Round,
        name: int | str,
        rate: float,
        chosen: BoolArray,
        blind: bool,
        faults: list[str],
    ) -> FloatArray:
        """Each arm's probability of being chosen, by further draws; the one made counts too.

        Without it, an arm that was chosen against the odds could have probability 0. With it, the
        inverse of what is recorded is almost unbiased for the inverse of the probability.
        """
        counts = chosen.astype(np.float64)
        if blind:
            return counts
        rng, work = indices.generator(self.seed, name, "propensities"), self.work // self.draws
        for _ in range(self.draws):
            estimates = self._estimates(round.features, round.groups, lambda: rng, faults)
            if round.parts is not None:
                estimates = estimates * round.parts
            counts += self._select(rate, estimates, round, faults, work).chosen
        return counts / (self.draws + 1)

    def commit(
        self,
        decision: Decision,
        executed: npt.ArrayLike | None = None,
        seconds: float | None = None,
    ) -> None:
        """Time was spent, perhaps on another subset, perhaps longer than planned: the rate moves.

        Parameters
        ----------
        decision
            What was decided.
        executed : (n,) or (k,)
            The arms taken in fact, if not those chosen: a mask, their numbers, or their names.
        seconds
            The time it took in fact, if measured.
        """
        require_decision(decision)
        done = self._ledger.check_commit(decision, executed)
        if seconds is not None:
            seconds = number("seconds", seconds, low=0.0)
            if decision.round.follows is None and not seconds >= 1e-9 * decision.round.floor:
                raise ValueError(
                    f"seconds is {seconds}, but an entry round takes time: at least "
                    f"{decision.round.floor:g} s by its latency"
                )
        spent = self._spend(decision, done, seconds)
        self._ledger.commit(decision, done, spent)
        self._recent.decisions.append(decision)

    def learn(self, decision: Decision, arms: npt.ArrayLike, rewards: npt.ArrayLike) -> None:
        """Scores arrived for some of the executed arms: now or an hour later, in any order.

        Arms are given by number, or by name where the round has names.
        """
        require_decision(decision)
        numbers, values = self._ledger.check_learn(decision, arms, rewards)
        if len(values) == 0:
            return
        self._check_range(values, decision, numbers)
        groups = decision.round.groups
        labels = None if groups is None else groups[numbers]
        features = decision.round.features.take(numbers, axis=0)
        self._begin(features.shape[1])
        doubt = None
        if self._belief is not None:
            doubt = self._teach(self._belief.learn, features, values, labels)
        self._ledger.learn(decision, numbers)
        if self._history is not None:
            self._history.add(Run(features, values.copy(), labels), decision.id, numbers)
        total = sum(values.tolist(), 0.0)
        self._total, self._count = self._total + total, self._count + len(values)
        self._earned, self._came = self._earned + total, self._came + len(values)
        self._recent.learned(decision, numbers, values)
        if doubt is not None:
            raise doubt

    def absorb(
        self,
        features: npt.ArrayLike,
        rewards: npt.ArrayLike,
        groups: npt.ArrayLike | None = None,
    ) -> None:
        """Rows that no decision of this policy led to: learn them as well.

        An operator's own choice, or what a log says. They teach the belief and leave the rate
        alone, and `report` does not count them as earned.

        Parameters
        ----------
        features : (n, d)
            Of what was taken.
        rewards : (n,)
            What each row brought.
        groups
            As in a `Round`.
        """
        X, y, labels = _rows(features, rewards, groups)
        self._check_range(y)
        if len(y) == 0:
            return
        self._begin(X.shape[1])
        doubt = None
        if self._belief is not None:
            doubt = self._teach(self._belief.learn, X, y, labels)
        if self._history is not None:
            self._history.add(Run(X, y, labels))
        self._total, self._count = self._total + sum(y.tolist(), 0.0), self._count + len(y)
        if doubt is not None:
            raise doubt

    def _begin(self, dim: int) -> None:
        """The first rows have come, with so many features."""

    def _check_range(
        self, rewards: FloatArray, decision: Decision | None = None, arms: IntArray | None = None
    ) -> None:
        if self.reward_range is not None:
            low, high = self.reward_range
            bad = ~((rewards >= low) & (rewards <= high))
            if bad.any():
                at = int(bad.argmax())
                whose = ""
                if decision is not None and arms is not None:
                    whose = f", of arm {decision.round.called(int(arms[at]))!r},"
                raise ValueError(
                    f"rewards[{at}]{whose} is {rewards[at]:g}, outside of "
                    f"reward_range=({low:g}, {high:g}): what stands for a missing score is to be "
                    "abandoned, not learned"
                )

    def abandon(self, decision: Decision, arms: npt.ArrayLike | None = None) -> None:
        """Rewards of these arms will never come; of all that are missing, unless `arms` is given.

        They are missing, not 0: nothing is learned of them.
        """
        require_decision(decision)
        self._ledger.abandon(decision, self._ledger.check_abandon(decision, arms))

    def pending(self) -> list[dict[str, Any]]:
        """What is still to come: a flat row for each decision that has rewards missing.

        Columns: `decision` (its id), `committed`, `commits_ago`, `seconds_ago`, `missing` (how many
        arms), `arms` (their names, or numbers where the round has no names; None for all executed).
        """
        return list(self._ledger.pending())

    def report(self) -> Report:
        """How this policy is doing, so far and in its last rounds.

        What needs the last rounds and rewards knows those since the policy was made or loaded.
        """
        seconds, pending, bound = self._ledger.seconds, self.pending(), None
        if isinstance(self._belief, Bounded):
            bound = self._belief.mean_bound
        at_bound, of = (0, 0) if bound is None else self._recent.at_bound(bound)
        return Report(
            rounds=self._ledger.commits,
            seconds=seconds,
            rewards=self._came,
            earned=self._earned,
            realised=self._earned / seconds if seconds > 0.0 else 0.0,
            price=None if self.rule else self.rate,
            price_by_means=self._price_by_means(),
            index=type(self.index).__name__,
            pending=len(pending),
            missing=sum(row["missing"] for row in pending),
            given_up=self.given_up,
            calibration=() if self._belief is None else self._recent.calibration(),
            at_bound=at_bound,
            of=of,
        )

    def _price_by_means(self) -> float | None:
        """What a second would be worth in the last entry rounds, if means were the truth."""
        rounds = [d.round for d in self._recent.decisions if d.round.follows is None]
        if self._belief is None or self.rule or self.blind or not rounds:
            return None
        return root(rounds, self._belief.mean, 0.0)

    @property
    def commits(self) -> int:
        """How many decisions were committed."""
        return self._ledger.commits

    @property
    def given_up(self) -> int:
        """How many arms' rewards were abandoned, or expired."""
        return self._ledger.given_up

    def correct(
        self,
        decision: Decision,
        arms: npt.ArrayLike,
        rewards: npt.ArrayLike,
        *,
        previous: npt.ArrayLike | None = None,
    ) -> None:
        """Scores that were learned turned out otherwise: learn these in their place.

        The belief is then what it would be had it learned them at first. Past decisions stand, and
        so does the rate.

        Parameters
        ----------
        decision, arms, rewards
            As for `learn`.
        previous
            What was learned before. It may be left out where rows are kept (`keep_rows=True`), as
            they must be for beliefs that cannot take a row back: all but linear ones.
        """
        require_decision(decision)
        numbers = arm_numbers(decision.round, arms)
        values = reward_values(rewards, numbers)
        before = None if previous is None else reward_values(previous, numbers, "previous")
        self._ledger.check_correct(decision, numbers, values, before)
        self._check_range(values, decision, numbers)
        if self._history is not None:
            history, change = self._history.corrected(decision.id, numbers, values, before)
            if self._belief is not None:
                self.belief = self._taught(history)
            self._history = history
        elif before is None:
            raise ValueError("give previous, the rewards learned before, or use keep_rows=True")
        else:
            change = float((values - before).sum())
            groups = decision.round.groups
            labels = None if groups is None else groups[numbers]
            if isinstance(self._belief, Corrects):
                X = decision.round.features.take(numbers, axis=0)
                self._belief.correct(X, before, values, labels)
            elif self._belief is not None:
                raise ValueError(
                    f"{type(self._belief).__name__} cannot take a row back: use keep_rows=True"
                )
        self._total += change
        self._earned += change

    def _taught(self, history: History) -> Belief:
        assert self._belief is not None
        try:
            return history.taught(self._belief)
        except Exception as error:
            if not is_fault(error):
                raise
            raise BeliefError(
                f"{type(self._belief).__name__} could not learn its rows again: "
                f"{type(error).__name__} ({error}); nothing was corrected"
            ) from error

    def refit(
        self,
        features: npt.ArrayLike,
        rewards: npt.ArrayLike,
        groups: npt.ArrayLike | None = None,
    ) -> None:
        """Start the belief again from these rows: for a changed target, or many corrections.

        A policy that has no belief (`TakeAll`, the oracle) has nothing to fit, and stays as it is.
        """
        X, y, labels = _rows(features, rewards, groups)
        self._begin(X.shape[1])
        if self._belief is not None:
            doubt = self._teach(self._belief.refit, X, y, labels)
            self._total, self._count = sum(y.tolist(), 0.0), len(y)
            if self._history is not None:
                self._history = History()
                self._history.add(Run(X, y, labels))
            if doubt is not None:
                raise doubt

    def _teach(
        self,
        verb: Callable[[FloatArray, FloatArray, Groups | None], None],
        features: FloatArray,
        rewards: FloatArray,
        groups: Groups | None,
    ) -> Warning | None:
        """Teach the belief; a warning that is raised, as by `python -W error`, comes after."""
        try:
            verb(features, rewards, groups)
        except Warning as doubt:
            return doubt
        except Exception as error:
            if not is_fault(error):
                raise
            raise BeliefError(
                f"{type(self._belief).__name__}.{verb.__name__} raised {type(error).__name__} "
                f"({error}): the {len(rewards)} rows were not learned, and can be given again"
            ) from error
        return None

    def __repr__(self) -> str:
        """What it is made of, and how far it is."""
        parts = (*self._described(), f"{self._ledger.commits} commits")
        return f"<{type(self).__name__}: {', '.join(parts)}>"

    def _described(self) -> Iterator[str]:
        """The parts that make a difference, for `repr`."""
        if self._belief is not None:
            yield f"{type(self._belief).__name__}({self._belief.dim})"
        if self.index.needs_belief:
            yield type(self.index).__name__

    def save(self, path: str | PathLike[str]) -> None:
        """Write the state to a file, whole or not at all: see `coaf.load`."""
        write(path, self.state())

    def _settings(self) -> dict[str, Any]:
        """What a subclass adds to the state."""
        return {}

    @classmethod
    def _build(cls, state: Mapping[str, Any], **shared: Any) -> Self:
        """The subclass's part of `restore`."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """Everything, as JSON; what `restore` makes of it takes the same next decision."""
        return seal(
            self.kind,
            {
                **indices.save(self.index),
                "belief": None if self._belief is None else self._belief.state(),
                "seed": self.seed,
                "draws": self.draws,
                "reward_range": None if self.reward_range is None else list(self.reward_range),
                "work": self.work,
                "history": None if self._history is None else self._history.state(),
                "ledger": self._ledger.state(),
                "rewards": [self._total, self._count],
                "earned": [self._earned, self._came],
                **self._settings(),
            },
        )

    @classmethod
    def restore(cls, state: Mapping[str, Any] | str, *, belief: type[Belief] | None = None) -> Self:
        """The policy that `state` (a dictionary or its JSON text) was taken from.

        A belief of your own needs its class as `belief`, unless it is registered.
        """
        state = unseal(cls.kind, state)
        saved = entry(state, "belief")
        policy = cls._build(
            state,
            belief=None if saved is None else restore_belief(saved, belief),
            index=indices.load(state),
            seed=entry(state, "seed"),
            draws=entry(state, "draws"),
            reward_range=entry(state, "reward_range"),
            work=entry(state, "work"),
        )
        policy._ledger.restore(entry(state, "ledger"))
        if entry(state, "history") is not None:
            policy._history = History.restore(state["history"])
        policy._total, policy._count = entry(state, "rewards")
        policy._earned, policy._came = entry(state, "earned")
        return policy


def _rows(
    features: npt.ArrayLike, rewards: npt.ArrayLike, groups: npt.ArrayLike | None
) -> tuple[FloatArray, FloatArray, Groups | None]:
    """Rows to learn, checked as far as that needs no belief."""
    X = floats("features", features, ndim=2)
    y = check_rewards(rewards, len(X))
    return X, y, None if groups is None else check_groups(groups, len(X))


def _range(given: Iterable[float] | None) -> tuple[float, float] | None:
    if given is None:
        return None
    low, high = (number(f"reward_range[{i}]", end) for i, end in enumerate(given))
    if not low < high:
        raise ValueError(f"reward_range is ({low:g}, {high:g}); the first must be below the second")
    return low, high


def require_policy(name: str, policy: Any) -> None:
    """An error that says what a policy is, unless this is one."""
    require_kind(name, policy, ("decide", "commit", "learn"), "a policy, as COAF(dim=3)")
