"""Saved state: the same next decision bit for bit, and clear words about damaged files."""

import base64
import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from coaf.bandit import actions, latency
from coaf.bandit.beliefs.linear import Linear
from coaf.bandit.beliefs.scale_free import ScaleFree
from coaf.bandit.index import Thompson, Truth
from coaf.bandit.policies.baselines import TakeAll, Threshold
from coaf.bandit.policies.coaf import COAF
from coaf.bandit.problem import Decision, Round
from coaf.bandit.rates.memory_root import MemoryRoot, load_round, save_round
from coaf.bandit.rates.rate import RobbinsMonro
from coaf.bandit.state import VERSION, decode, encode, pack, seal, unpack, unseal

MADE: dict[str, Callable[[], Any]] = {
    "coaf": lambda: COAF(dim=3),
    "paper": lambda: COAF.paper(dim=3, n_max=9),
    "thompson": lambda: COAF.paper(dim=3, index="thompson", seed=11),
    "memory root": lambda: COAF(dim=3, index=Thompson(), rate=MemoryRoot(size=4), draws=5),
    "robbins-monro": lambda: COAF(dim=3, rate=RobbinsMonro(initial=0.2)),
    "threshold": lambda: Threshold(0.2),
    "take all": TakeAll,
}


def patch(rng: np.random.Generator, key: str | None) -> Round:
    n = int(rng.integers(1, 7))
    X = rng.normal(size=(n, 3))
    X /= 1.0 + np.linalg.norm(X, axis=1, keepdims=True)
    setup = latency.Setup(rng.uniform(2, 5), 1.0, rng.uniform(0.1, 0.9, n))
    limit = actions.Grouped({"a": 2}) if n % 2 else actions.AtMost(3)
    return Round(X, setup, actions=limit, groups=np.array(["a", "b"] * 3)[:n], key=key)


def bits(decision: Decision) -> list[Any]:
    p = decision.propensities
    return [
        decision.id,
        decision.chosen.tolist(),
        decision.estimates.tobytes(),
        decision.gap,
        decision.rate,
        None if p is None else p.tobytes(),
    ]


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("seed", range(3))
def test_a_restart_at_any_point_changes_nothing(name: str, seed: int) -> None:
    """At random moments the policy is replaced by what its JSON text restores."""
    rng, moments = np.random.default_rng(seed), np.random.default_rng(seed + 100)
    policy, restarted = MADE[name](), MADE[name]()
    waiting: list[tuple[Decision, int]] = []
    for j in range(25):
        one = patch(rng, key=f"patch {j}" if j % 3 else None)
        decision = policy.decide(one)
        assert bits(restarted.decide(one)) == bits(decision)
        executed = rng.random(one.n) < 0.7 if j % 4 == 0 else None
        seconds = float(rng.uniform(1, 9)) if j % 5 == 0 else None
        done = decision.chosen if executed is None else executed
        waiting += [(decision, arm) for arm in np.flatnonzero(done).tolist()]
        scores = [waiting.pop(int(rng.integers(len(waiting)))) for _ in range(len(waiting) // 2)]
        rewards = rng.integers(0, 2, len(scores))
        for who in (policy, restarted):
            who.commit(decision, executed, seconds)
            for (scored, arm), reward in zip(scores, rewards, strict=True):
                who.learn(scored, [arm], [reward])
        if moments.random() < 0.5:
            restarted = type(restarted).restore(json.dumps(restarted.state()))
    assert restarted.state() == policy.state()
    assert restarted.rate == policy.rate


def test_state_is_plain_json_with_a_version() -> None:
    policy = COAF.paper(dim=3)
    policy.commit(policy.decide(patch(np.random.default_rng(0), None)))
    state = policy.state()
    assert json.loads(json.dumps(state, allow_nan=False)) == state
    assert (state["coaf"], state["version"]) == ("coaf", VERSION)
    fresh = COAF.paper(dim=3).state()
    assert json.loads(json.dumps(fresh, allow_nan=False)) == fresh


def saved(name: str = "memory root") -> dict[str, Any]:
    policy = MADE[name]()
    rng = np.random.default_rng(4)
    for j in range(3):
        decision = policy.decide(patch(rng, f"{j}"))
        policy.commit(decision)
        policy.learn(decision, np.flatnonzero(decision.chosen)[:1], [1.0][: decision.chosen.sum()])
    state: dict[str, Any] = json.loads(json.dumps(policy.state()))
    return state


@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.999])
def test_truncated_text(part: float) -> None:
    text = json.dumps(saved())
    with pytest.raises(ValueError, match=r"state is not complete JSON.*is the file truncated\?"):
        COAF.restore(text[: int(part * len(text))])


def test_other_versions_and_kinds() -> None:
    state = saved("coaf")
    with pytest.raises(ValueError, match=f"state has version 99, .* reads versions 1 to {VERSION}"):
        COAF.restore(state | {"version": 99})
    with pytest.raises(ValueError, match="state has version None"):
        COAF.restore({name: value for name, value in state.items() if name != "version"})
    with pytest.raises(ValueError, match="state is of a 'coaf', expected a 'threshold'"):
        Threshold.restore(state)
    with pytest.raises(ValueError, match="state is of a 'coaf', expected a 'linear'"):
        Linear.restore(state)
    for other in ("[]", "3", "{}", '"text"', "null"):
        with pytest.raises(ValueError, match="state is not a saved coaf: it has no 'coaf' entry"):
            COAF.restore(other)
    for name, unknown in (("belief", {"coaf": "oracle"}), ("rate", {"rate": "exchange"})):
        with pytest.raises(ValueError, match=f"state names an unknown {name}"):
            COAF.restore(state | {name: unknown})
    with pytest.raises(ValueError, match="state names an unknown index 'best'"):
        COAF.restore(state | {"index": "best"})


def entries(state: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every dictionary entry, however deep."""
    if isinstance(state, dict):
        for name, value in state.items():
            yield (*path, name)
            yield from entries(value, (*path, name))
    elif isinstance(state, list):
        for i, value in enumerate(state):
            yield from entries(value, (*path, i))


@pytest.mark.parametrize("name", MADE)
def test_any_missing_entry_is_named(name: str) -> None:
    """However deep: never another error, and never a policy that quietly lacks something."""
    kind = type(MADE[name]())
    for path in entries(saved(name)):
        state = saved(name)
        inner: Any = state
        for step in path[:-1]:
            inner = inner[step]
        del inner[path[-1]]
        with pytest.raises(
            ValueError, match=f"'{path[-1]}'|damaged|truncated|(version|belief) None"
        ):
            kind.restore(state)


@pytest.mark.parametrize(
    ("damage", "mistake"),
    [
        (lambda text: text[:-3], "is damaged"),
        (lambda text: text[: len(text) // 2 // 4 * 4], "is damaged"),
        (lambda text: "*" + text[1:], "is damaged"),
        (lambda text: text + "AAAA", "is damaged"),
        (lambda text: "é" * len(text), "is damaged"),
        (lambda text: None, "is damaged"),
        (lambda text: [1.0], "is damaged"),
    ],
)
def test_damaged_arrays(damage: Callable[[str], Any], mistake: str) -> None:
    state = saved("coaf")
    packed = state["belief"]["learner"]["precision"]
    packed["float64"] = damage(packed["float64"])
    with pytest.raises(ValueError, match=f"state entry 'precision' {mistake}"):
        COAF.restore(state)


def test_a_learner_that_is_none() -> None:
    with pytest.raises(ValueError, match="state entry 'learner' is damaged: it is None"):
        Linear.restore(Linear(3).state() | {"learner": None})


def test_an_array_of_another_learner() -> None:
    state, other = Linear(3).state(), Linear(9).state()
    with pytest.raises(ValueError, match=r"'precision' has shape \(9, 9\), but .* \(3, 3\)"):
        Linear.restore(state | {"learner": other["learner"]})
    whole = pack(Linear(9).learner())
    with pytest.raises(ValueError, match=r"'learner' has shape \(40, 16\), but .* \(24, 8\)"):
        Linear.restore(state | {"learner": whole})


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((0, 3)),
        np.array([[0.1, -0.0], [5e-324, 1.7976931348623157e308]]),
        np.arange(6.0).reshape(2, 3).T,
        np.arange(10.0)[::-3],
    ],
)
def test_arrays_keep_every_bit(array: Any) -> None:
    text = json.dumps({"x": pack(array)})
    again = unpack(json.loads(text), "x")
    assert again.shape == array.shape
    assert again.tobytes() == np.ascontiguousarray(array).tobytes()
    again[:] = 1.0  # and can be written to
    data = base64.b64decode(json.loads(text)["x"]["float64"])
    assert data == array.astype("<f8").tobytes()


PLACES = [[3.0, 4.0], [0.0, 1.0], [2.0, 2.0]]
ROUNDS = [
    {"latency": latency.Additive(5.0, 1.0)},
    {"latency": latency.Additive(5.0, [1.0, 0.1, 0.3]), "actions": actions.AtMost(2)},
    {"latency": latency.Setup(5.0, 0.1, 0.3), "actions": actions.Exactly(1)},
    {"latency": latency.ByCount(5.0, [0, 1, 3, 4]), "actions": actions.OneOf()},
    {"latency": latency.Tree(5.0, [-1, 0], [1.0, 2.0], [0, 1, -1], 0.1)},
    {"latency": latency.Tree(5.0, [], [], [-1, -1, -1], 0.1)},
    {"latency": latency.Tour(5.0, PLACES, 0.1, [0, 0], 2.0)},
    {"latency": latency.Table([(), (0, 2)], [1.0, 2.0])},
    {"latency": latency.Additive(5.0, 1.0), "actions": actions.Listed([(), (1, 2)])},
    {
        "latency": latency.Additive(5.0, 1.0),
        "actions": actions.Capped(20.0, actions.Grouped({"x": 1, "y": 2})),
        "groups": ["x", "y", "x"],
    },
    {"latency": latency.Setup(5.0, 0.1, 0.3), "actions": actions.Grouped(1), "groups": [4, 4, 7]},
    {
        "latency": latency.Additive(5.0, 1.0),
        "actions": actions.Grouped({("x", "1"): 1}),
        "groups": [["x", "1"], ["x", "1"], ["y", "1"]],
    },
    {"latency": latency.Additive(5.0, 1.0), "groups": [[1, 2], [1, 3], [2, 2]]},
    {"latency": latency.Additive(0.0, 1.0), "follows": 3, "key": "the rest"},
    {"latency": latency.Additive(0.0, 1.0), "follows": "patch 1"},
]


@pytest.mark.parametrize("arguments", ROUNDS)
def test_rounds_survive_json(arguments: dict[str, Any]) -> None:
    one = Round(features=np.random.default_rng(0).random((3, 2)), **arguments)
    again = load_round(json.loads(json.dumps(save_round(one))))
    assert again.latency == one.latency
    assert again.actions == one.actions
    assert (again.follows, again.key, again.n, again.floor) == (
        one.follows,
        one.key,
        one.n,
        one.floor,
    )
    np.testing.assert_array_equal(again.features, one.features)
    assert (again.groups is None) == (one.groups is None)
    if one.groups is not None and again.groups is not None:
        assert again.groups.tolist() == one.groups.tolist()
        assert again.groups.dtype.kind == one.groups.dtype.kind


@pytest.mark.parametrize("shape", [(0,), (0, 3)])
def test_a_round_without_arms_survives_json(shape: tuple[int, ...]) -> None:
    empty = Round(np.zeros((0, 2)), latency.Additive(1.0, 1.0), groups=np.zeros(shape, np.int64))
    again = load_round(json.loads(json.dumps(save_round(empty))))
    assert (again.n, again.features.shape) == (0, (0, 2))
    assert again.groups is not None
    assert again.groups.shape == shape


def test_states_from_before_there_were_priors_are_read() -> None:
    policy = MADE["coaf"]()
    state = saved("coaf")
    old = {name: value for name, value in state.items() if name != "rewards"} | {"version": 1}
    belief = {name: value for name, value in state["belief"].items() if name != "prior"}
    old["belief"] = belief | {"version": 1}
    one = patch(np.random.default_rng(9), "next")
    restored = type(policy).restore(old)
    assert bits(restored.decide(one)) == bits(type(policy).restore(state).decide(one))
    assert restored.belief is not None
    restored.belief.refit(np.zeros((0, 3)), np.zeros(0))
    np.testing.assert_array_equal(restored.belief.mean(one.features), np.zeros(one.n))


def test_what_cannot_be_saved_says_so() -> None:
    class Queue:
        def seconds(self, chosen: Any) -> float:
            return 1.0

        def check(self, n: int) -> None:
            pass

    with pytest.raises(ValueError, match=r"Queue cannot be saved: .* the library's own"):
        encode(Queue())
    policy = COAF(dim=1, rate=MemoryRoot())  # it remembers rounds, and so their latencies
    policy.commit(policy.decide(Round(np.zeros((1, 1)), Queue())))
    with pytest.raises(ValueError, match="Queue cannot be saved"):
        policy.state()
    plain = COAF(dim=1)
    plain.commit(plain.decide(Round(np.zeros((1, 1)), Queue())))
    assert COAF.restore(plain.state()).rate == plain.rate
    with pytest.raises(ValueError, match="a policy with index Truth cannot be saved"):
        COAF(index=Truth(lambda features: features[:, 0])).state()
    with pytest.raises(ValueError, match="state names an unknown class 'Queue'"):
        decode({"class": "Queue", "fields": {}})


def test_seals() -> None:
    sealed = seal("policy", {"x": 1})
    assert unseal("policy", sealed)["x"] == unseal("policy", json.dumps(sealed))["x"] == 1


@pytest.mark.filterwarnings("ignore::coaf.AssumptionWarning")
@pytest.mark.parametrize("make", [Linear, ScaleFree], ids=["linear", "scale-free"])
@pytest.mark.parametrize("dim", [1, 3, 8, 70])
def test_a_learner_is_saved_without_its_lanes(make: type[Linear | ScaleFree], dim: int) -> None:
    """By name and in the size of the problem; whole arrays, as states had them before, load too."""
    rng, belief = np.random.default_rng(0), make(dim)
    X = rng.normal(size=(45, dim)) / (3.0 * dim**0.5)
    belief.learn(X[:20], X[:20, 0])
    belief.settle()
    belief.learn(X[20:40], np.where(np.arange(20) == 7, 50.0, X[20:40, 0]))
    state, size = belief.state(), dim + (make is ScaleFree)
    for name in ("precision", "inverse"):
        assert state["learner"][name]["shape"] == [size, size]
        assert state["prior"][name]["shape"] == [size, size]
    settled = deepcopy(belief)
    settled.refit(X[:0], [])
    whole = state | {"learner": pack(belief.learner()), "prior": pack(settled.learner())}
    for saved in (state, whole):
        again = make.restore(json.dumps(saved))
        assert again.state() == state
        one, two = deepcopy(belief), again
        for steps in (slice(40, 43), slice(43, 45)):
            one.learn(X[steps], X[steps, 0])
            two.learn(X[steps], X[steps, 0])
            assert one.state() == two.state()
            np.testing.assert_array_equal(one.upper(X), two.upper(X))
        for known in (one, two):
            known.refit(X[:3], [1.0, 2.0, 3.0])
        assert one.state() == two.state()
