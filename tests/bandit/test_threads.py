"""BLAS and OpenMP have one thread while a belief works, and get back what they had."""

import copy
import inspect
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import sklearn.ensemble  # noqa: F401  (loads OpenMP)
import threadpoolctl
from sklearn.linear_model import Ridge

from coaf.bandit.beliefs import Ensemble, Finite, Kernel, Logistic, Mapped, Nested, Regression
from coaf.bandit.beliefs.belief import Belief
from coaf.bandit.threads import VERBS, OneThread, on_one_thread, one_thread

BELIEFS: dict[str, Callable[[], Belief]] = {
    "Logistic": lambda: Logistic(2),
    "Kernel": lambda: Kernel(2),
    "Nested": lambda: Nested(2),
    "Regression": lambda: Regression(2, Ridge(), copies=2),
    "Ensemble": lambda: Ensemble(2, Ridge(), copies=2),
    "Finite": lambda: Finite(2, np.eye(2)),
    "Mapped": lambda: Mapped(np.tanh, Logistic(2), dim=2),
}


def counts() -> list[int]:
    return [library["num_threads"] for library in threadpoolctl.threadpool_info()]


@pytest.fixture(autouse=True)
def _three_threads() -> Iterator[None]:
    """Whatever the machine has and the environment says."""
    with threadpoolctl.threadpool_limits(3):
        yield


def test_one_inside_and_as_before_outside() -> None:
    assert set(counts()) == {3}
    with one_thread:
        assert set(counts()) == {1}
        with one_thread:
            assert set(counts()) == {1}
        assert set(counts()) == {1}
    assert set(counts()) == {3}


def test_an_error_restores_too() -> None:
    with pytest.raises(ZeroDivisionError), one_thread:
        raise ZeroDivisionError
    assert set(counts()) == {3}


def test_the_last_thread_to_leave_restores() -> None:
    entered, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with one_thread:
            entered.set()
            leave.wait()

    blas = [library["user_api"] == "blas" for library in threadpoolctl.threadpool_info()]
    with ThreadPoolExecutor(1) as pool:
        with one_thread:
            other = pool.submit(stay)
            entered.wait()
        # Pools of the process are still limited; those of this thread are not.
        assert counts() == [1 if shared else 3 for shared in blas]
        leave.set()
        other.result()
    assert set(counts()) == {3}


def test_each_thread_has_one() -> None:
    def inside() -> list[int]:
        with one_thread:
            return counts()

    with ThreadPoolExecutor(3) as pool:
        for found in [pool.submit(inside) for _ in range(20)]:
            assert set(found.result()) == {1}
    assert set(counts()) == {3}


class Library:
    """One that was loaded late, as threadpoolctl shows it."""

    filepath, prefix, internal_api = "late.so", "late", "late"

    def __init__(self) -> None:
        self.count = 3

    def get_num_threads(self) -> int:
        return self.count

    def set_num_threads(self, count: int) -> None:
        self.count = count


def test_libraries_loaded_inside_are_limited_from_the_next_entry_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits, late = OneThread(), Library()
    found: list[Library] = []

    class Controller:
        lib_controllers = found

    monkeypatch.setattr(threadpoolctl, "ThreadpoolController", Controller)
    with limits:
        found.append(late)
        monkeypatch.setitem(sys.modules, "late", inspect)  # with a module, as they do
        assert late.count == 3
        with limits:
            assert late.count == 1
        assert late.count == 1
    assert late.count == 3


@pytest.mark.parametrize("name", BELIEFS)
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_of_every_belief_enters(
    name: str, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    belief, entered = BELIEFS[name](), list[OneThread]()
    X, y = np.eye(2) * 0.5, np.ones(2)
    belief.learn(X, y)
    arguments: dict[str, tuple[Any, ...]] = {
        "sample": (X, np.random.default_rng(0)),
        "learn": (X, y),
        "refit": (X, y),
        "forget": (0.5,),
        "settle": (),
    }

    def enter(limits: OneThread) -> None:
        entered.append(limits)

    monkeypatch.setattr(OneThread, "__enter__", enter)
    monkeypatch.setattr(OneThread, "__exit__", lambda *_: None)
    getattr(belief, verb)(*arguments.get(verb, (X,)))
    assert entered[0] is one_thread


@pytest.mark.parametrize("name", BELIEFS)
def test_decorated_classes_look_and_copy_as_before(name: str) -> None:
    belief = BELIEFS[name]()
    X = np.eye(2) * 0.5
    belief.learn(X, np.ones(2))
    for twin in (pickle.loads(pickle.dumps(belief)), copy.deepcopy(belief)):
        np.testing.assert_array_equal(twin.mean(X), belief.mean(X))
    assert list(inspect.signature(type(belief).learn).parameters)[1:] == [
        "features",
        "rewards",
        "groups",
    ]
    assert type(belief).mean.__doc__
    assert type(belief).mean.__name__ == "mean"


def test_a_name_that_is_no_method_is_refused() -> None:
    class Empty:
        pass

    with pytest.raises(AttributeError, match="Empty has no method 'forecast'"):
        on_one_thread("forecast")(Empty)
