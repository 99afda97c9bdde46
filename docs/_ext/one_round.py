"""Plays one round with the default policy, and prints which functions call which, as JSON.

A program of its own, because it watches every call of the interpreter. Compiled functions are seen
where Python calls them, not inside.
"""

import inspect
import json
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

import coaf

PACKAGE = "coaf."
Call = dict[str, Any]
_COMPILED: Any = Dispatcher  # what a function is once it is compiled


def about(module: str, function: str) -> str:
    """The docstring of a function, or of the class that it makes, or of its module."""
    found: Any = sys.modules[module]
    for name in function.removesuffix(".__init__").split("."):
        found = getattr(found, name, None)
    found = getattr(found, "py_func", found)
    return inspect.getdoc(found) or sys.modules[module].__doc__ or ""


class Watch:
    """Calls that enter another module, each once, in order, with how deep they are."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._stack: list[Call] = []
        self._seen: set[tuple[str, str]] = set()

    def enter(self, module: str, function: str) -> None:
        above: Call = self._stack[-1] if self._stack else {"module": "", "depth": -1}
        if module == above["module"]:
            self._stack.append(above)
            return
        call = {"depth": above["depth"] + 1, "module": module, "function": function, "about": ""}
        self._stack.append(call)
        if (module, function) not in self._seen:
            self._seen.add((module, function))
            # A caller that was seen before, and calls something new this time, is shown again.
            for one in self._stack:
                if not any(one is shown for shown in self.calls):
                    one["about"] = about(one["module"], one["function"])
                    self.calls.append(one)

    def leave(self) -> None:
        self._stack.pop()

    def profile(self, frame: FrameType, event: str, _argument: object) -> None:
        module = frame.f_globals.get("__name__", "")
        if not module.startswith(PACKAGE):
            return
        if event == "call":
            self.enter(module, frame.f_code.co_qualname)
        elif event == "return" and self._stack:
            self.leave()


def watch(verb: Callable[[], Any]) -> tuple[list[Call], Any]:
    """What `verb` calls, and what it returns."""
    seen, kind = Watch(), _COMPILED
    plain = kind.__call__

    def compiled(self: Any, *args: Any, **named: Any) -> Any:
        function = self.py_func
        seen.enter(function.__module__, function.__qualname__)
        try:
            return plain(self, *args, **named)
        finally:
            seen.leave()

    kind.__call__ = compiled
    sys.setprofile(seen.profile)
    try:
        result = verb()
    finally:
        sys.setprofile(None)
        kind.__call__ = plain
    return seen.calls, result


def play() -> list[dict[str, Any]]:
    """The calls of making a round, deciding, committing and learning."""
    rng = np.random.default_rng(0)
    policy, latency = coaf.COAF(dim=3, seed=0), coaf.Setup(base=12.1, setup=52.0, each=6.7)
    features = rng.random((6, 3))
    for _ in range(20):  # until rewards have a size, and everything is compiled and loaded
        decision = policy.decide(coaf.Round(features, latency))
        policy.commit(decision)
        policy.learn(decision, decision.arms, rng.random(len(decision.arms)))
    made, patch = watch(lambda: coaf.Round(features, latency))
    decided, decision = watch(lambda: policy.decide(patch))
    committed, _ = watch(lambda: policy.commit(decision))
    arms, rewards = decision.arms, np.ones(len(decision.arms))
    assert len(arms), "the round shown must have something to learn"
    learned, _ = watch(lambda: policy.learn(decision, arms, rewards))
    return [
        {"step": "patch = Round(features, latency)", "calls": made},
        {"step": "decision = policy.decide(patch)", "calls": decided},
        {"step": "policy.commit(decision)", "calls": committed},
        {"step": "policy.learn(decision, arms, rewards)", "calls": learned},
    ]


if __name__ == "__main__":
    print(json.dumps(play()))
