"""States that earlier releases saved still load, and decide as they did."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coaf
from coaf.bandit.policies.policy import Policy
from coaf.bandit.problem import Round

STATES = Path(__file__).parents[2] / "states"
SAVED: dict[str, Any] = {
    name: saved
    for path in sorted(STATES.glob("*.json"))
    for name, saved in json.loads(path.read_text())["policies"].items()
}
KINDS: dict[str, type[Policy]] = {
    kind.kind: kind for kind in (coaf.COAF, coaf.Threshold, coaf.TakeAll, coaf.Stepwise)
}


def rounds(count: int, first: int) -> list[Round]:
    """The rounds that these policies lived through, and those that they were asked about."""
    result = []
    for j in range(first, first + count):
        X = np.random.default_rng(j).uniform(-0.5, 0.5, (4, 3))
        setup = coaf.Setup(2.0, 3.0, [0.5, 1.0, 1.5, 0.7])
        latency = setup if j % 2 else coaf.Additive(3.0, 0.5)
        labels = [[f"s{j % 3}", f"p{j}"]] * 4
        result.append(Round(X, latency, groups=labels, key=f"r{j}"))
    return result


def restored(name: str) -> Policy:
    state: dict[str, Any] = SAVED[name]["state"]
    return KINDS[state["coaf"]].restore(json.dumps(state))


def as_saved(numbers: Any) -> Any:
    """Equal to the last bits, in which linear algebra differs from one processor to another."""
    return pytest.approx(numbers, rel=1e-12)


@pytest.mark.parametrize("name", SAVED)
def test_the_next_decisions_are_the_same(name: str) -> None:
    policy = restored(name)
    for patch, saved in zip(rounds(3, first=20), SAVED[name]["next"], strict=True):
        decision = policy.decide(patch)
        assert decision.chosen.tolist() == saved["chosen"]
        assert decision.estimates.tolist() == as_saved(saved["estimates"])
        assert decision.rate == as_saved(saved["rate"])
        if saved["propensities"] is not None:
            assert decision.propensities is not None
            assert decision.propensities.tolist() == as_saved(saved["propensities"])


@pytest.mark.parametrize("name", [name for name in SAVED if "fresh" not in name])
def test_what_was_due_still_is(name: str) -> None:
    """Of two rounds only the first arm was scored when it was saved."""
    due = {row["decision"]: row for row in restored(name).pending()}
    assert set(due) == set() if name == "stepwise" else set(due) <= {"r6", "r7"}
    for row in due.values():
        assert row["committed"]
        assert row["missing"] == len(row["arms"]) > 0
