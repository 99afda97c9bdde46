"""Every belief keeps the contract that `check_belief` ships to users."""

import json
from functools import partial

import numpy as np
import pytest

from bandit.checks.subjects import BELIEFS, CHECKED, Average, PerGroup
from coaf.bandit.arrays import FloatArray
from coaf.bandit.checks import check_belief
from coaf.bandit.checks.contract import ContractError
from coaf.bandit.groups import Groups


@pytest.mark.parametrize("name", BELIEFS)
def test_ours(name: str) -> None:
    check_belief(BELIEFS[name](), **CHECKED.get(name, {}))


@pytest.mark.parametrize("rows", [5, 40, 200])
def test_ours_with_rows_waiting(rows: int) -> None:
    """Above 64 features, rows wait before they are folded in; nobody may notice."""
    rng = np.random.default_rng(rows)
    X = rng.normal(size=(rows, 70)) / 20.0
    check_belief(BELIEFS["dim 70, determinant, ball"](), features=X, rewards=X[:, 0])


@pytest.mark.parametrize(
    "belief", [Average(), PerGroup()], ids=lambda belief: type(belief).__name__
)
def test_a_users(belief: Average) -> None:
    check_belief(belief)


def test_with_groups_of_your_own() -> None:
    belief = PerGroup()
    X = np.random.default_rng(0).normal(size=(9, 2))
    check_belief(belief, features=X, groups=[[i % 2, i % 3, i] for i in range(9)])


class Rounded(Average):
    """Learns in passing only to three digits, and exactly when refitted."""

    def learn(
        self, features: FloatArray, rewards: FloatArray, groups: Groups | None = None
    ) -> None:
        super().learn(features, rewards, groups)
        self.total = round(self.total, 3)

    def refit(
        self, features: FloatArray, rewards: FloatArray, groups: Groups | None = None
    ) -> None:
        self.total, self.count = self.prior
        super().learn(features, rewards, groups)


def test_learning_online_may_approximate_what_refit_does() -> None:
    X = np.random.default_rng(0).normal(size=(20, 2))
    check = partial(check_belief, features=X, rewards=X[:, 0])
    check(Rounded(), exact_online=False)
    check(Rounded(), tolerance=1e-3)
    with pytest.raises(ContractError, match="mean after refit differs from learn of the same rows"):
        check(Rounded())


def test_what_is_checked_is_not_changed() -> None:
    belief = BELIEFS["tuned"]()
    before = json.dumps(belief.state())
    check_belief(belief)
    assert json.dumps(belief.state()) == before
