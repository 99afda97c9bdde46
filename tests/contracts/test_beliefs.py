"""Every belief keeps the contract that `check_belief` ships to users."""

import json

import numpy as np
import pytest

from coaf.bandit.checks import check_belief

from .subjects import BELIEFS, Average


@pytest.mark.parametrize("name", BELIEFS)
def test_ours(name: str) -> None:
    check_belief(BELIEFS[name]())


@pytest.mark.parametrize("rows", [5, 40, 200])
def test_ours_with_rows_waiting(rows: int) -> None:
    """Above 64 features, rows wait before they are folded in; nobody may notice."""
    rng = np.random.default_rng(rows)
    X = rng.normal(size=(rows, 70)) / 20.0
    check_belief(BELIEFS["dim 70, determinant, ball"](), features=X, rewards=X[:, 0])


def test_a_users() -> None:
    check_belief(Average())


def test_what_is_checked_is_not_changed() -> None:
    belief = BELIEFS["tuned"]()
    before = json.dumps(belief.state())
    check_belief(belief)
    assert json.dumps(belief.state()) == before
