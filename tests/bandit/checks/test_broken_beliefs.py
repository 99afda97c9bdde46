"""Each check of a belief can fail: one mistake is caught, and the message names it."""

from typing import Any

import numpy as np
import pytest

from bandit.checks.subjects import Average, PerGroup
from coaf.bandit.arrays import FloatArray
from coaf.bandit.checks import check_belief
from coaf.bandit.checks.contract import ContractError
from coaf.bandit.groups import Groups


class Pessimist(Average):
    def upper(self, features: FloatArray, groups: Groups | None = None) -> FloatArray:
        return self.mean(features) - 1e-6


class Scalar(Average):
    def mean(self, features: FloatArray, groups: Groups | None = None) -> FloatArray:
        return np.array(0.5)


class Infinite(Average):
    def upper(self, features: FloatArray, groups: Groups | None = None) -> FloatArray:
        return np.full(len(features), np.inf)


class Relative(Average):
    def mean(self, features: FloatArray, groups: Groups | None = None) -> FloatArray:
        return super().mean(features) - float(features[:, 0].sum())


class Counting(Average):
    def upper(self, features: FloatArray, groups: Groups | None = None) -> FloatArray:
        self.count += 1
        return super().upper(features)


class Stateful(Average):
    """Counts what it scored, and scores the same."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def mean(self, features: FloatArray, groups: Groups | None = None) -> FloatArray:
        self.asked += 1
        return super().mean(features)

    def state(self) -> dict[str, Any]:
        return super().state() | {"asked": self.asked}


class Deaf(Average):
    def sample(
        self, features: FloatArray, rng: np.random.Generator, groups: Groups | None = None
    ) -> FloatArray:
        return super().sample(features, np.random.default_rng(0))


class Global(Average):
    others = np.random.default_rng(0)

    def sample(
        self, features: FloatArray, rng: np.random.Generator, groups: Groups | None = None
    ) -> FloatArray:
        return super().sample(features, self.others)


class Apart(Average):
    def sample(
        self, features: FloatArray, rng: np.random.Generator, groups: Groups | None = None
    ) -> FloatArray:
        return self.mean(features) + np.resize(rng.standard_normal(97), len(features))


class LastBatch(Average):
    def learn(
        self, features: FloatArray, rewards: FloatArray, groups: Groups | None = None
    ) -> None:
        self.total, self.count = 0.0, 0
        super().learn(features, rewards, groups)


class Hoarder(Average):
    def refit(
        self, features: FloatArray, rewards: FloatArray, groups: Groups | None = None
    ) -> None:
        self.learn(features, rewards, groups)


class Refitted(Average):
    def refit(
        self, features: FloatArray, rewards: FloatArray, groups: Groups | None = None
    ) -> None:
        super().refit(features, 0.5 * np.asarray(rewards), groups)


class Forgetful(Average):
    def state(self) -> dict[str, Any]:
        return super().state() | {"count": 0}


class Unwritable(Average):
    def state(self) -> dict[str, Any]:
        return {"total": self.total, "count": np.arange(self.count)}


class Careless(Average):
    def learn(
        self, features: FloatArray, rewards: FloatArray, groups: Groups | None = None
    ) -> None:
        self._check(features)
        self.total += float(np.nansum(rewards))
        self.count += len(rewards)


class Hasty(Average):
    """Refuses, but has counted by then."""

    def learn(
        self, features: FloatArray, rewards: FloatArray, groups: Groups | None = None
    ) -> None:
        self.total += float(np.nansum(rewards))
        self.count += len(rewards)
        if len(rewards) != len(features) or not np.isfinite(rewards).all():
            raise ValueError("rewards must be one finite number per row")


class AnyWidth(Average):
    def _check(self, features: FloatArray) -> None:
        pass


class OneLevel(Average):
    """Knows what to do with a label, and not with a row of them."""

    def mean(self, features: FloatArray, groups: Groups | None = None) -> FloatArray:
        assert groups is None or groups.ndim == 1
        return super().mean(features)


class Strangers(PerGroup):
    """Has no estimate for a group that it has not seen."""

    def upper(self, features: FloatArray, groups: Groups | None = None) -> FloatArray:
        upper = super().upper(features, groups)
        known = [label in self.groups for label in self._labels(len(features), groups)]
        return upper if groups is None else np.where(known, upper, np.inf)


class Curious(Average):
    """Notes the groups that it is asked about."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def mean(self, features: FloatArray, groups: Groups | None = None) -> FloatArray:
        if groups is not None:
            self.seen.append(groups.tolist())
        return super().mean(features)

    def state(self) -> dict[str, Any]:
        return super().state() | {"seen": self.seen}


class Fading(Average):
    """Takes forgetting nothing for forgetting a little."""

    def forget(self, factor: float) -> None:
        super().forget(factor)
        self.total *= 0.999


class Clinging(Average):
    def forget(self, factor: float) -> None:
        if not 0.0 < factor <= 1.0:
            raise ValueError(f"factor is {factor}; it must be in (0, 1]")


class Uprooted(Average):
    """Forgets its prior, too."""

    def forget(self, factor: float) -> None:
        if not 0.0 < factor <= 1.0:
            raise ValueError(f"factor is {factor}; it must be in (0, 1]")
        self.total, self.count = factor * self.total, factor * self.count


class Lenient(Average):
    def forget(self, factor: float) -> None:
        if np.isfinite(factor) and factor > 0.0:
            super().forget(min(factor, 1.0))


class Unsettled(Average):
    def settle(self) -> None:
        pass


class Restless(Average):
    def settle(self) -> None:
        self.total *= 0.5
        super().settle()


class PriorLost(Average):
    def state(self) -> dict[str, Any]:
        return super().state() | {"prior": [0.0, 0.0]}


@pytest.mark.parametrize(
    ("belief", "mistake"),
    [
        (Pessimist(), "Pessimist: upper is below mean"),
        (Scalar(), r"mean of 32 arms has shape \(\)"),
        (Infinite(), "upper is not finite"),
        (Relative(), "mean of an arm depends on the arms scored with it"),
        (Counting(), "upper .*"),
        (Stateful(), "scoring changed the belief: it must be pure"),
        (Deaf(), "sample ignores rng"),
        (Global(), "sample .*"),
        (Apart(), "sample gives equal arms two means"),
        (LastBatch(), "mean after learn in two halves differs from learn at once"),
        (Hoarder(), "mean changed after refit with the same rows"),
        (Refitted(), "mean after refit differs from learn of the same rows"),
        (Forgetful(), "mean differs once restored: state.. misses something"),
        (Unwritable(), "state.. is not JSON"),
        (Careless(), "a reward that is not finite must raise ValueError, raised nothing"),
        (Hasty(), "refusing a reward that is not finite changed the state"),
        (AnyWidth(), "features of another dimension must raise ValueError"),
        (OneLevel(), r"scoring groups of shape \(32, 2\) and int64 raised AssertionError"),
        (Strangers(), r"upper with groups of shape \(32,\) and int64 must be a finite number"),
        (Curious(), r"scoring groups of shape \(32,\) and int64 changed the belief"),
        (Fading(), r"forget\(1.0\) changed the belief: it forgets nothing"),
        (Clinging(), r"forget\(0.5\) changed nothing: rows must count less"),
        (Uprooted(), "of the prior changed after forget: only rows since may count less"),
        (Lenient(), r"forget\(0.0\) must raise ValueError, raised nothing"),
        (Unsettled(), "after refit with no rows is not what was settled"),
        (Restless(), "changed after settle: only refit and forget may notice"),
        (PriorLost(), "mean differs once .*restored"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_beliefs(belief: Average, mistake: str) -> None:
    with pytest.raises(ContractError, match=mistake):
        check_belief(belief)
