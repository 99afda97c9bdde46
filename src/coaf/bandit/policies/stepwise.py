"""Take arms one by one, and count what it is worth to be free to stop."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from math import inf, isinf
from typing import Any, Self

import numpy as np

from coaf.bandit.arrays import BoolArray, FloatArray, number
from coaf.bandit.index import Mean
from coaf.bandit.latency import arm_by_arm
from coaf.bandit.policies.faults import is_fault
from coaf.bandit.policies.policy import Policy
from coaf.bandit.policies.prospects import Prospects, checked
from coaf.bandit.policies.stopping import Shared, Stopping
from coaf.bandit.problem import Decision, Round
from coaf.bandit.rates.memory_root import load_round, save_round
from coaf.bandit.rates.price import Setups, Worth, bundled, price
from coaf.bandit.select import Selection
from coaf.bandit.state import entry


def _place_of(round: Round) -> tuple[str, ...] | None:
    """The groups that a round lies in, if it has any."""
    if round.groups is None or round.n == 0:
        return None
    return tuple(map(str, np.atleast_1d(round.groups[0]).tolist()))


def _beside(shared: Setups, more: int) -> Setups:
    """The same with further prospects that need no set-up."""
    of, seconds = shared
    new = len(seconds) + np.arange(more)
    return Setups(np.append(of, new), np.append(seconds, np.zeros(more)))


def _all(rounds: Prospects) -> BoolArray:
    return np.ones(len(rounds), dtype=np.bool_)


def _spread(values: FloatArray, where: BoolArray) -> FloatArray:
    """The values at these places, and 0 at others."""
    every = np.zeros(len(where))
    every[where] = values
    return every


def _entered(
    values: FloatArray, seconds: FloatArray, rate: float, setup: FloatArray, fits: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """The gains and seconds of rounds that are entered where that pays."""
    enters = fits & (values > rate * setup)
    return np.where(enters, values - rate * setup, 0.0), np.where(enters, seconds + setup, 0.0)


class _Falling:
    """What open rounds are worth at a price; what does not pay at one is not asked at higher ones.

    So it is quick where most rounds pay at no price that comes up, and prices do not fall far.
    """

    def __init__(self, table: Stopping, setup: FloatArray, fits: BoolArray) -> None:
        self._all, self._setup = (table, fits), setup
        self._lowest, self._some, self._which = inf, table, fits

    def __call__(self, rate: float) -> tuple[FloatArray, FloatArray]:
        lower = rate < self._lowest
        if lower:
            table, fits = self._all
            which = fits & table.hopeful(rate, self._setup)
            self._lowest, self._some, self._which = rate, table.of(which), which
        which, setup = self._which, self._setup[self._which]
        gains, seconds = _entered(
            *self._some.worth(rate), rate, setup, np.ones(len(setup), dtype=np.bool_)
        )
        found = _spread(gains, which), _spread(seconds, which)
        if lower:
            self._some, self._which = self._some.of(gains > 0.0), found[0] > 0.0
        return found


def _side_by_side(rounds: Prospects | Iterable[Round]) -> Prospects:
    return rounds if isinstance(rounds, Prospects) else Prospects.of(rounds)


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
        self.expected = [checked(r) for r in expect]
        # The entry decision, its rate, and whether rewards had no size yet.
        self._visit: tuple[int | str, float, bool] | None = None
        self._seconds, self._rounds = inf, inf
        self._again: Prospects | list[Round] = []
        self._setups: list[Setups] = []
        self._known_rate: float | None = None
        self._told = False  # whether `remain` was called since the last entry
        self._tables: list[tuple[Prospects, bool, Stopping]] | None = None

    def remain(
        self,
        *,
        seconds: float = inf,
        rounds: float = inf,
        again: Prospects | Iterable[Round] = (),
        setups: Iterable[Setups] = (),
        rate: float | None = None,
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
        rate
            What a second is worth then, if that was asked for before.
        """
        self._seconds = inf if isinf(seconds) else number("seconds", seconds, low=0.0)
        self._rounds = inf if isinf(rounds) else number("rounds", rounds, low=0.0)
        self._again = again if isinstance(again, Prospects) else [checked(r) for r in again]
        self._setups = list(setups)
        self._known_rate = rate
        self._told = True

    @contextmanager
    def remaining(self, **left: Any) -> Iterator[None]:
        """As `remain`, for as long as a with statement lasts."""
        names = ("_seconds", "_rounds", "_again", "_setups", "_known_rate", "_told")
        before = [getattr(self, name) for name in names]
        self.remain(**left)
        try:
            yield
        finally:
            for name, value in zip(names, before, strict=True):
                setattr(self, name, value)

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Make tables of the same prospects once, for as long as a with statement lasts.

        Nothing may be learned in it.
        """
        before, self._tables = self._tables, []
        try:
            yield
        finally:
            self._tables = before

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
        self.remembered.extend([checked(r) for r in rounds])

    def _is_new(self, round: Round) -> bool:
        """Whether a round was not met before: by its groups, or as one to return to."""
        if self._is_again(round):
            return False
        where = _place_of(round)
        return where is None or all(_place_of(r) != where for r in self.remembered)

    def _table(self, rounds: Prospects, *, anew: bool) -> Stopping:
        """The rounds as one table; `anew` as if their innermost groups had never been seen."""
        for of, was_anew, table in self._tables or ():
            if of is rounds and was_anew == anew:
                return table
        held = rounds.anew() if anew else rounds
        assert isinstance(self.belief, Shared)
        table = Stopping(
            self.belief,
            held.features,
            held.groups,
            held.each,
            held.counts,
            lag=self.lag,
            parts=held.parts,
        )
        if self._tables is not None:
            self._tables.append((rounds, anew, table))
        return table

    def worth(
        self,
        rounds: Prospects | Iterable[Round],
        rate: float,
        *,
        anew: bool = True,
        before: FloatArray | float = 0.0,
        paying: bool = False,
    ) -> FloatArray:
        """What entering each round would bring beyond what its time is worth at this rate.

        What a round takes whatever is chosen does not count. `anew`: as if the innermost groups
        had never been seen, and with time enough; else what does not fit in the time left counts
        for nothing, where set-ups that rounds share take the seconds `before` from it. Negative
        where it does not pay. `paying`: only of those that pay it matters how much, which is much
        quicker where they are few.
        """
        held = _side_by_side(rounds)
        if not len(held):
            return np.zeros(0)
        part, fits = (held, _all(held)) if anew else self._within(held, before)
        try:
            table = self._table(part, anew=anew)
            if paying:
                fits = fits & table.hopeful(rate, held.setup)
                table = table.of(fits)
                values = _spread(table.worth(rate)[0], fits)
            else:
                values = np.where(fits, table.worth(rate)[0], 0.0)
        except Exception as error:
            if not is_fault(error):
                raise
            average = self._total / self._count if self._count else 0.0
            gains = np.maximum(average - rate * held.each, 0.0)
            values = np.bincount(held.owner, gains, len(held)).astype(np.float64)
        return values - rate * held.setup

    def _within(
        self, rounds: Prospects, before: FloatArray | float = 0.0
    ) -> tuple[Prospects, BoolArray]:
        """What fits of each round in the time left, and of which rounds anything does."""
        belief = self.belief
        if isinf(self._seconds) or belief is None:
            return rounds, _all(rounds)
        return rounds.within(
            self._seconds - before, lambda these: belief.mean(these.features, these.groups)
        )

    def _typical(self, here: list[Round]) -> Worth | None:
        """What a round is worth that is not opened yet: like those met, and those expected."""
        # The round here was drawn like any other.
        met = [*self.remembered, *(r for r in here if self._is_new(r))]
        stays = 1.0 - len(met) / len(self.expected) if self.expected else 0.0
        if stays <= 0.0:
            return self._anew(Prospects.of(met), np.ones(len(met)))
        weights = np.repeat([stays, 1.0], [len(self.expected), len(met)])
        every = Prospects.of([*self.expected, *met])
        return self._anew(every, weights / weights.mean())

    def _anew(self, rounds: Prospects, weights: FloatArray) -> Worth | None:
        """What rounds are worth if they come anew, one like the other, with what they take."""
        if not len(rounds):
            return None
        rounds, fits = self._within(rounds)
        table = self._table(rounds, anew=True)

        def worth(rate: float) -> tuple[FloatArray, FloatArray]:
            values, seconds = table.worth(rate)
            gains, times = _entered(values, seconds, rate, rounds.setup, fits)
            return weights * (gains - rate * rounds.base), weights * (times + rounds.base)

        return worth

    def _open(self, here: list[Round]) -> Worth | None:
        """What is open is worth: the rounds to return to, in their bundles, and the one here."""
        rounds = _side_by_side(self._again).beside(Prospects.of(here))
        if not len(rounds):
            return None
        before, at = np.zeros(len(rounds)), np.arange(len(rounds))
        setups = [_beside(shared, len(here)) for shared in self._setups]
        for of, seconds in setups:
            at = of[at]
            before += seconds[at]
        rounds, fits = self._within(rounds, before)
        worth: Worth = _Falling(self._table(rounds, anew=False), rounds.setup, fits)
        return reduce(bundled, setups, worth)

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
        if self._known_rate is not None:
            return self._known_rate
        here = [] if round is None or self._is_again(checked(round)) else [round]
        try:
            typical = self._typical(here)
            if typical is None:
                return 0.0
            usual = price(seconds=0.0, typical=typical)
            if isinf(self._seconds) or isinf(self._rounds):
                return usual
            # What is not opened yet fills the time at that price already: what is open would only
            # raise it.
            if self._rounds * float(typical(usual)[1].mean()) >= self._seconds:
                return usual * (1.0 - 1e-9)
            # What only just pays is taken: the time has no better use. The price does not rise:
            # that a few good rounds fill the time is often an error of their estimates.
            found = price(
                seconds=self._seconds,
                open=self._open(here),
                typical=typical,
                rounds=self._rounds,
                most=usual,
            )
            return found * (1.0 - 1e-9)
        except Exception as error:
            if not is_fault(error):
                raise
            faults.append(f"{type(self.belief).__name__} could not price a second: {error}")
            return self._visit[1] if self._visit else 0.0

    def _is_again(self, round: Round) -> bool:
        if isinstance(self._again, Prospects):
            return False
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
            table = self._table(Prospects.of([round]), anew=False)
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
        again = self._again.rounds() if isinstance(self._again, Prospects) else self._again
        return {
            "size": self.size,
            "lag": self.lag,
            "rounds": [save_round(r) for r in self.remembered],
            "expected": [save_round(r) for r in self.expected],
            "visit": None if self._visit is None else list(self._visit),
            "seconds left": None if isinf(self._seconds) else self._seconds,
            "rounds left": None if isinf(self._rounds) else self._rounds,
            "again": [save_round(r) for r in again],
            "setups": [[one.tolist() for one in shared] for shared in self._setups],
            "rate": self._known_rate,
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
        policy._known_rate = state.get("rate")
        policy._told = entry(state, "told")
        return policy
