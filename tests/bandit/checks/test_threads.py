"""Several threads may decide at once on one policy, and decide what one thread would."""

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from bandit.checks.plays import rounds_for, teach
from bandit.checks.subjects import BELIEFS, ORACLES, POLICIES
from coaf.bandit.beliefs import Linear, Regression
from coaf.bandit.index import Thompson, Upper
from coaf.bandit.policies.coaf import COAF
from coaf.bandit.policies.policy import Policy
from coaf.bandit.problem import Decision, Round

THREADS, AGAIN = 4, 3


@pytest.fixture(autouse=True)
def _switch_often() -> Iterator[None]:
    """Let Python threads take turns after every few operations, not every 5 ms."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(ask: Callable[[], Any]) -> list[Any]:
    """What several threads are told that ask together."""
    start = threading.Barrier(THREADS)

    def wait_and_ask(_: int) -> Any:
        start.wait()
        return ask()

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(wait_and_ask, range(THREADS)))


def answers(policy: Policy, rounds: list[Round]) -> dict[str | None, list[Any]]:
    """All that is decided, but for the rounds themselves."""
    return {one.key: parts(policy.decide(one)) for one in rounds}


def parts(decision: Decision) -> list[Any]:
    """All of it but its round; what was decided before chance came in, too."""
    bare = decision._replace(instead=None)
    own = [None if part is None else np.asarray(part).tolist() for part in bare[1:]]
    return [*own, None if decision.instead is None else parts(decision.instead)]


def same_from_threads(make: Callable[[], Policy]) -> None:
    rounds = rounds_for(make())
    known, asked = rounds[:3], rounds[3:]
    for _ in range(AGAIN):
        policy = make()
        teach(policy, known)
        alone = deepcopy(policy)  # before anything that is worked out on first use
        expected = answers(alone, asked)
        for found in at_once(partial(answers, policy, asked)):
            assert found == expected


@pytest.mark.parametrize("name", POLICIES)
def test_policies(name: str) -> None:
    same_from_threads(POLICIES[name])


@pytest.mark.parametrize("name", ORACLES)
def test_oracles(name: str) -> None:
    same_from_threads(ORACLES[name])


@pytest.mark.parametrize("name", BELIEFS)
def test_beliefs_with_their_bounds(name: str) -> None:
    same_from_threads(lambda: COAF(belief=BELIEFS[name](), index=Upper()))


@pytest.mark.parametrize("name", BELIEFS)
def test_beliefs_with_their_draws(name: str) -> None:
    same_from_threads(lambda: COAF(belief=BELIEFS[name](), index=Thompson(), draws=2))


class Counting(DecisionTreeRegressor):  # type: ignore[misc]
    """A regressor that remembers how many rows each of its copies was fitted to."""

    fits: list[int] = []  # noqa: RUF012

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "Counting":
        self.fits.append(len(y))
        super().fit(X, y, sample_weight)
        return self


def test_threads_wait_for_one_fit() -> None:
    belief = Regression(2, Counting(), copies=2)
    belief.learn(np.eye(2), np.ones(2))
    Counting.fits.clear()
    at_once(lambda: belief.mean(np.eye(2)))
    assert Counting.fits == [2, 2, 2]  # the estimate and its two copies


def test_what_another_thread_has_scored_is_not_learned_for_this_one() -> None:
    """With many features, learning goes on from what scoring left in the thread's own scratch."""
    X, y = np.eye(600)[:3] * 0.5, np.ones(3)
    belief, other = Linear(600), Linear(600)
    other.learn(X, y)
    alone = deepcopy(belief)
    alone.learn(X, y)
    with ThreadPoolExecutor(1) as here, ThreadPoolExecutor(1) as there:
        here.submit(other.upper, X).result()
        there.submit(belief.upper, X).result()
        there.submit(other.upper, X).result()  # over what `belief` had left there
        here.submit(belief.learn, X, y).result()
    np.testing.assert_array_equal(belief.theta, alone.theta)
