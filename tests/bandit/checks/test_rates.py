"""Every rate keeps the contract that `check_rate` ships to users."""

from typing import Any

import pytest

from bandit.checks.subjects import RATES, Halfway
from coaf.bandit.checks import ContractError, check_rate
from coaf.bandit.problem import Round
from coaf.bandit.rates.rate import Fixed, Rate, Renewal, Scoring, Visit


@pytest.mark.parametrize("name", RATES)
def test_ours(name: str) -> None:
    check_rate(RATES[name]())


def test_a_users() -> None:
    check_rate(Halfway())


class Nameless(Halfway):
    def value(self, score: Scoring) -> float:
        return "0.1"  # type: ignore[return-value]


class Divides(Halfway):
    """Knows nothing before it has seen something."""

    def value(self, score: Scoring) -> float:
        return self.rate if self.rate else float("nan")


class Counts(Halfway):
    """Moves when it is asked."""

    def value(self, score: Scoring) -> float:
        self.rate += 1e-6
        return self.rate


class Notes(Halfway):
    """Says the same, and changes nevertheless."""

    def value(self, score: Scoring) -> float:
        self.before += 1.0
        return self.rate


class Meddles(Halfway):
    def enter(self, visit: Visit, round: Round) -> None:
        super().enter(visit, round)
        visit.spent_seconds = 0.0


class Twice(Halfway):
    """Steps from where it is, not from where the visit began."""

    def update(self, visit: Visit) -> None:
        if not visit.blind:
            self.rate = self.before = self.step(visit)


class Eager(Renewal):
    """Steps at every follow-up, which the same told again is not."""

    def update(self, visit: Visit) -> None:
        if visit.overrun:
            self._reward_before, self._seconds_before = self.reward, self.seconds
        super().update(visit)


class Overflows(Halfway):
    def update(self, visit: Visit) -> None:
        super().update(visit)
        if visit.overrun:
            self.rate = float("inf")


class Gullible(Halfway):
    def update(self, visit: Visit) -> None:
        self.rate = self.step(visit)


class Opaque(Halfway):
    def state(self) -> dict[str, Any]:
        return {"rate": self}


class Forgets(Halfway):
    def state(self) -> dict[str, Any]:
        return super().state() | {"value": 0.0}


class LosesItsPlace(Halfway):
    """Restored in the middle of a visit, it does not know where that began."""

    def state(self) -> dict[str, Any]:
        return super().state() | {"before": self.rate}


@pytest.mark.parametrize(
    ("rate", "mistake"),
    [
        (Fixed, "Fixed is a class, not a rate: give Fixed"),
        (0.1, "float: lacks value, enter, update, state, which a rate has"),
        (Nameless(), "value is '0.1'; it must be a number"),
        (Divides(), "value is nan; it must be finite, also before any visit"),
        (Counts(), "value differs when asked again"),
        (Notes(), "value changed the rate: only visits may"),
        (Meddles(), "enter changed the visit"),
        (Twice(), "update with nothing new moved it"),
        (Eager(), "update told of the same twice moved it twice"),
        (Overflows(), "value is inf after a follow-up"),
        (Gullible(), "what a blind visit seemed to bring counts"),
        (Opaque(), "is not JSON"),
        (Forgets(), "value differs once restored: state.. misses something"),
        (LosesItsPlace(), "value of a visit differs once restored"),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_mistakes_are_named(rate: Rate, mistake: str) -> None:
    with pytest.raises(ContractError, match=mistake):
        check_rate(rate)
