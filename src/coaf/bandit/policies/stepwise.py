"""Take arms one by one, and count what it is worth to be free to stop."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from math import inf, isinf
from typing import Any, Self

import numpy as np

from coaf.bandit.actions import AnySubset
from coaf.bandit.arrays import BoolArray, FloatArray, number
from coaf.bandit.groups import Groups
from coaf.bandit.index import Mean
from coaf.bandit.latency import arm_by_arm, is_arm_by_arm
from coaf.bandit.policies.faults import is_fault
from coaf.bandit.policies.policy import Policy
from coaf.bandit.policies.stopping import Shared, Stopping
from coaf.bandit.problem import Decision, Round
from coaf.bandit.rates.memory_root import load_round, save_round
from coaf.bandit.rates.price import Setups, Worth, bundled, fitting, price
from coaf.bandit.select import Selection
from coaf.bandit.state import entry


def _checked(round: Round) -> Round:
    if type(round.actions) is not AnySubset or not is_arm_by_arm(round.latency):
        raise ValueError(
            f"arms are taken one by one with Additive or Setup latency and any subset allowed, "
            f"not with {round.latency!r} and {round.actions!r}"
        )
    return round


def _place_of(round: Round) -> tuple[str, ...] | None:
    """The groups that a round lies in, if it has any."""
    if round.groups is None or round.n == 0:
        return None
    return tuple(map(str, np.atleast_1d(round.groups[0]).tolist()))


def _labels_of(rounds: list[Round], *, anew: bool) -> Groups | None:
    """The labels of all rounds; `anew` with another innermost one, which was never seen."""
    labels = [r.groups for r in rounds]
    known = [g for g in labels if g is not None]
    if len(known) < len(labels):
        return None
    joined: Groups = np.concatenate([g if g.ndim == 2 else g[:, None] for g in known])
    if anew and joined.shape[1]:
        joined = joined.copy()
        kind = joined.dtype
        joined[:, -1] = "\x01" if kind.kind == "U" else np.iinfo(kind).max
    return joined


def _beside(shared: Setups, more: int) -> Setups:
    """The same with further prospects that need no set-up."""
    of, seconds = shared
    new = len(seconds) + np.arange(more)
    return Setups(np.append(of, new), np.append(seconds, np.zeros(more)))


class Stepwise(Policy):
    """COAF for arms that share a secret: decide after each reward whether to go on.

    A decision takes the best arm left, or none. The rest of the round is a follow-up, decided
    again as rewards arrive, so that a bad patch is left after a few arms and a surprisingly good
    one is finished. That this is possible counts when deciding to enter (`Stopping`).

    The rate is the exact root over the rounds remembered, each worth what it would be if it came
    anew under today's belief; with `remain`, the price at which the time left is used up.

    Parameters
    ----------
    belief
        One that knows what arms of a group share: `Nested`. The innermost groups are the rounds.
    size
        How many entry rounds are remembered.
    lag
        How many further arms are taken before the reward of an arm is in. May be set at any time.
    expect
        Rounds to expect before any was seen, so that the first are not judged by themselves alone.
        Each round that is met takes the place of one of them: when as many were met they count no
        more, whatever was made of those.

    Examples
    --------
    >>> from coaf.bandit.beliefs.nested.nested import Nested
    >>> from coaf.bandit.latency import Additive, Setup
    >>> policy = Stepwise(Nested(1))
    >>> holes = np.array([[0.5], [0.5], [0.5]])
    >>> patch = Round(holes, Setup(base=12.0, setup=52.0, each=30.0), groups=[["s", "p"]] * 3)
    >>> first = policy.decide(patch)
    >>> first.chosen
    array([ True, False, False])
    >>> policy.commit(first)
    >>> policy.learn(first, arms=[0], rewards=[0.0])
    >>> rest = Round(holes[1:], Additive(0.0, 30.0), groups=[["s", "p"]] * 2, follows=first)
    >>> policy.decide(rest).chosen
    array([False, False])
    """

    kind = "stepwise"

    def __init__(
        self,
        belief: Shared,
        *,
        size: int = 100,
        lag: int = 0,
        expect: Iterable[Round] = (),
        index: Mean | None = None,
        **shared: Any,
    ) -> None:
        if not isinstance(belief, Shared):
            raise TypeError(
                f"belief is {belief!r}; it must know what arms share, as Nested(dim) does"
            )
        if index is not None and type(index) is not Mean:
            raise TypeError(f"index is {index!r}; what is not known counts as an option instead")
        super().__init__(belief=belief, index=Mean(), **shared)  # type: ignore[arg-type]
        self.size = int(number("size", size, low=1))
        self.lag = int(number("lag", lag, low=0))
        self.remembered: deque[Round] = deque(maxlen=self.size)
        self.expected = [_checked(r) for r in expect]
        # The entry decision, its rate, and whether rewards had no size yet.
        self._visit: tuple[int | str, float, bool] | None = None
        self._seconds, self._rounds = inf, inf
        self._again: list[Round] = []
        self._setups: list[Setups] = []
        self._told = False  # whether `remain` was called since the last entry

    def remain(
        self,
        *,
        seconds: float = inf,
        rounds: float = inf,
        again: Iterable[Round] = (),
        setups: Iterable[Setups] = (),
    ) -> None:
        """Say how things stand before an entry round is decided.

        Said in the middle of a visit, the rest of it is priced anew: near the end there may be
        nothing else to do with the time.

        Parameters
        ----------
        seconds
            The time left.
        rounds
            How many rounds are not opened yet, not counting the one that is decided next.
        again
            Rounds that were left and can be returned to, with the latency of returning.
        setups
            What those share beyond that, from the inside out: a square that must be gone to for
            any of its patches, and a tile for any of its squares.
        """
        self._seconds = inf if isinf(seconds) else number("seconds", seconds, low=0.0)
        self._rounds = inf if isinf(rounds) else number("rounds", rounds, low=0.0)
        self._again = [_checked(r) for r in again]
        self._setups = list(setups)
        self._told = True

    @contextmanager
    def remaining(self, **left: Any) -> Iterator[None]:
        """As `remain`, for as long as a with statement lasts."""
        before = self._seconds, self._rounds, self._again, self._setups, self._told
        self.remain(**left)
        try:
            yield
        finally:
            self._seconds, self._rounds, self._again, self._setups, self._told = before

    def visit(self, name: int | str, rate: float) -> None:
        """Say that a visit is under way which nobody committed, and what a second is worth there.

        Follow-ups name it. A person may have gone there, or a decision that was written down.
        """
        self._visit, self._told = (name, number("rate", rate), self.blind), False

    def meet(self, rounds: Iterable[Round]) -> None:
        """Say which rounds were seen, whether or not they will be decided.

        What a second is worth rests on all that is met. Who looks at many rounds and decides only
        the best of them says so here; the rest meets rounds by deciding them.
        """
        self.remembered.extend([_checked(r) for r in rounds])

    def _is_new(self, round: Round) -> bool:
        """Whether a round was not met before: by its groups, or as one to return to."""
        if self._is_again(round):
            return False
        where = _place_of(round)
        return where is None or all(_place_of(r) != where for r in self.remembered)

    def _table(self, rounds: list[Round], *, anew: bool) -> Stopping:
        """The rounds as one table; `anew` as if their innermost groups had never been seen."""
        features = np.concatenate([r.features for r in rounds])
        counts = np.array([r.n for r in rounds])
        each = np.concatenate([np.broadcast_to(arm_by_arm(r.latency).each, r.n) for r in rounds])
        labels = _labels_of(rounds, anew=anew)
        assert isinstance(self.belief, Shared)
        parts = np.concatenate([np.ones(r.n) if r.parts is None else r.parts for r in rounds])
        return Stopping(self.belief, features, labels, each, counts, lag=self.lag, parts=parts)

    def worth(
        self,
        rounds: Sequence[Round],
        rate: float,
        *,
        anew: bool = True,
        before: FloatArray | float = 0.0,
    ) -> FloatArray:
        """What entering each round would bring beyond what its time is worth at this rate.

        What a round takes whatever is chosen does not count. `anew`: as if the innermost groups
        had never been seen, and with time enough; else what does not fit in the time left counts
        for nothing, where set-ups that rounds share take the seconds `before` from it. Negative
        where it does not pay.
        """
        if not rounds:
            return np.zeros(0)
        checked = [_checked(r) for r in rounds]
        part, fits = (checked, True) if anew else self._within(checked, before)
        try:
            values = np.where(fits, self._table(part, anew=anew).worth(rate)[0], 0.0)
        except Exception as error:
            if not is_fault(error):
                raise
            average = self._total / self._count if self._count else 0.0
            values = np.array(
                [np.maximum(average - rate * arm_by_arm(r.latency).each, 0.0).sum() for r in rounds]
            )
        return values - rate * np.array([arm_by_arm(r.latency).setup for r in rounds])

    def _within(
        self, rounds: list[Round], before: FloatArray | float = 0.0
    ) -> tuple[list[Round], BoolArray]:
        """What fits of each round in the time left, and of which rounds anything does."""
        if isinf(self._seconds) or self.belief is None:
            return rounds, np.ones(len(rounds), dtype=np.bool_)
        mean = self.belief.mean
        left = np.broadcast_to(self._seconds - before, len(rounds)).tolist()
        part = [
            fitting(r, partial(mean, r.features, r.groups), seconds)
            for r, seconds in zip(rounds, left, strict=True)
        ]
        fits = np.array([p is not None for p in part], dtype=np.bool_)
        return [r if p is None else p for r, p in zip(rounds, part, strict=True)], fits

    def _typical(self, here: list[Round]) -> Worth | None:
        """What a round is worth that is not opened yet: like those met, and those expected."""
        # The round here was drawn like any other.
        met = [*self.remembered, *(r for r in here if self._is_new(r))]
        stays = 1.0 - len(met) / len(self.expected) if self.expected else 0.0
        if stays <= 0.0:
            return self._worth(met, anew=True)
        weights = np.repeat([stays, 1.0], [len(self.expected), len(met)])
        return self._worth([*self.expected, *met], anew=True, weights=weights / weights.mean())

    def _open(self, here: list[Round]) -> Worth | None:
        """What is open is worth: the rounds to return to, in their bundles, and the one here."""
        rounds = [*self._again, *here]
        before, at = np.zeros(len(rounds)), np.arange(len(rounds))
        setups = [_beside(shared, len(here)) for shared in self._setups]
        for of, seconds in setups:
            at = of[at]
            before += seconds[at]
        worth = self._worth(rounds, anew=False, before=before)
        return None if worth is None else reduce(bundled, setups, worth)

    def _worth(
        self,
        rounds: list[Round],
        *,
        anew: bool,
        weights: FloatArray | float = 1.0,
        before: FloatArray | float = 0.0,
    ) -> Worth | None:
        if not rounds:
            return None
        rounds, fits = self._within(rounds, before)
        table = self._table(rounds, anew=anew)
        base = np.array([r.floor if anew else 0.0 for r in rounds])
        setup = np.array([arm_by_arm(r.latency).setup for r in rounds])

        def worth(rate: float) -> tuple[FloatArray, FloatArray]:
            values, seconds = table.worth(rate)
            enters = fits & (values > rate * setup)
            values = np.where(enters, values - rate * setup, 0.0) - rate * base
            return weights * values, weights * (np.where(enters, seconds + setup, 0.0) + base)

        return worth

    def _price(self, round: Round | None, name: int | str, faults: list[str]) -> float:
        if round is not None and round.follows is not None:
            if self._visit is None or self._visit[0] != round.follows:
                at = "nothing was entered yet" if self._visit is None else repr(self._visit[0])
                raise ValueError(f"round.follows is {round.follows!r}, but the last entered: {at}")
            # What was entered while rewards had no size yet is priced once they have one.
            _, rate, groping = self._visit
            if not self._told and not groping:
                return rate
        if self.blind:
            return 0.0
        here = [] if round is None or self._is_again(_checked(round)) else [round]
        try:
            typical = self._typical(here)
            if typical is None:
                return 0.0
            usual = price(seconds=0.0, typical=typical)
            if isinf(self._seconds) or isinf(self._rounds):
                return usual
            found = price(
                seconds=self._seconds,
                open=self._open(here),
                typical=typical,
                rounds=self._rounds,
            )
            # What only just pays is taken: the time has no better use. The price does not rise:
            # that a few good rounds fill the time is often an error of their estimates.
            return min(found, usual) * (1.0 - 1e-9)
        except Exception as error:
            if not is_fault(error):
                raise
            faults.append(f"{type(self.belief).__name__} could not price a second: {error}")
            return self._visit[1] if self._visit else 0.0

    def _is_again(self, round: Round) -> bool:
        return any(r is round or r.key == round.key is not None for r in self._again)

    def _select(
        self,
        rate: float,
        estimates: FloatArray,
        round: Round,
        faults: list[str],
        work: int,
    ) -> Selection:
        none = np.zeros(round.n, dtype=np.bool_)
        least = float(round.latency.seconds(none))
        if round.n == 0:
            return Selection(none, least, 0.0, least * rate, True, 0.0)
        try:
            table = self._table([_checked(round)], anew=False)
            value, first = float(table.worth(rate)[0][0]), int(table.order[0])
        except Exception as error:
            if not is_fault(error):
                raise
            faults.append(f"{type(self.belief).__name__} could not say what arms share: {error}")
            first = int(estimates.argmax())  # the estimates were mended, and know of no option
            value = float(estimates[first]) - rate * float(
                np.broadcast_to(arm_by_arm(round.latency).each, round.n)[first]
            )
        option = value - rate * arm_by_arm(round.latency).setup
        if option <= 0.0:
            return Selection(none, least, 0.0, least * rate, True, option)
        chosen = none.copy()
        chosen[first] = True
        seconds, reward = float(round.latency.seconds(chosen)), float(estimates[first])
        return Selection(chosen, seconds, reward, seconds * rate - reward, True, option)

    def _grope(self, estimates: FloatArray, round: Round) -> Selection:
        chosen = np.zeros(round.n, dtype=np.bool_)
        chosen[estimates.argmax() if round.n else []] = True
        seconds, reward = float(round.latency.seconds(chosen)), float(estimates[chosen].sum())
        return Selection(chosen, seconds, reward, -reward, True, None)

    def _spend(self, decision: Decision, executed: BoolArray, seconds: float | None) -> float:
        spent = super()._spend(decision, executed, seconds)
        if decision.round.follows is None:
            self._visit, self._told = (decision.id, decision.rate, decision.blind), False
            if self._is_new(decision.round):
                self.remembered.append(decision.round)
        return spent

    def _settings(self) -> dict[str, Any]:
        return {
            "size": self.size,
            "lag": self.lag,
            "rounds": [save_round(r) for r in self.remembered],
            "expected": [save_round(r) for r in self.expected],
            "visit": None if self._visit is None else list(self._visit),
            "seconds left": None if isinf(self._seconds) else self._seconds,
            "rounds left": None if isinf(self._rounds) else self._rounds,
            "again": [save_round(r) for r in self._again],
            "setups": [[one.tolist() for one in shared] for shared in self._setups],
            "told": self._told,
        }

    @classmethod
    def _build(cls, state: Mapping[str, Any], **shared: Any) -> Self:
        policy = cls(size=entry(state, "size"), lag=entry(state, "lag"), **shared)
        policy.remembered.extend(load_round(r) for r in entry(state, "rounds"))
        # Earlier releases remembered what they expected as if it had been met.
        policy.expected = [load_round(r) for r in state.get("expected", [])]
        visit = entry(state, "visit")
        if visit is not None:
            # States of earlier releases do not tell, and took every rate of 0 for a blind one.
            groping = visit[2] if len(visit) > 2 else visit[1] == 0.0 and policy._sizing is not None
            policy._visit = (visit[0], visit[1], groping)
        seconds, rounds = entry(state, "seconds left"), entry(state, "rounds left")
        policy._seconds = inf if seconds is None else seconds
        policy._rounds = inf if rounds is None else rounds
        policy._again = [load_round(r) for r in entry(state, "again")]
        policy._setups = [  # states of earlier releases have none
            Setups(np.array(of, dtype=np.int64), np.array(seconds, dtype=np.float64))
            for of, seconds in state.get("setups", [])
        ]
        policy._told = entry(state, "told")
        return policy
