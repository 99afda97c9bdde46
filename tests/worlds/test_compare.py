"""Comparisons: the same numbers however they are computed, and however often interrupted."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pytest
import xarray
from xarray.testing import assert_identical

import coaf
from coaf.bandit.arrays import BoolArray, FloatArray
from coaf.bandit.policies.policy import Policy
from coaf.bandit.problem import Decision, Round
from coaf.bandit.select import best
from coaf.worlds import ContextualBandit, Scene, SemiBandit, Surface, Synthetic, World, optimum
from coaf.worlds import compare as function
from coaf.worlds.optimum import STREAM
from coaf.worlds.world import BulkWorld

ROUNDS, REPLICATES = 40, 3


class Mine(coaf.COAF):
    """A user's own policy: COAF that takes two arms at the most."""

    def decide(self, round: Round) -> Decision:
        return super().decide(Round(round.features, round.latency, coaf.AtMost(2)))


class Same(coaf.COAF):
    """A user's own policy that differs in nothing but its name."""


class Fragile(coaf.COAF):
    """A policy that fails from the second replicate on, until it is mended."""

    broken = False

    def decide(self, round: Round) -> Decision:
        if Fragile.broken and self.seed >= 1_000_003:
            raise RuntimeError("out of order")
        return super().decide(round)


def world() -> Synthetic:
    return Synthetic(3, setup=1.0, items=100, seed=1)


def compiled(place: World) -> dict[str, Policy]:
    return {
        "coaf": coaf.COAF(3),
        "paper": coaf.COAF.paper(3),
        "thompson": coaf.COAF(belief=coaf.Linear.tuned(3), index=coaf.Thompson(), seed=7),
        "threshold": coaf.Threshold(0.2),
        "oracle": coaf.COAF(index=coaf.Truth(place.means), rate=coaf.RobbinsMonro(xi=1.0)),
    }


def run(
    policies: dict[str, Policy] | None = None, place: World | None = None, **settings: Any
) -> xarray.Dataset:
    place = world() if place is None else place
    settings = {"rounds": ROUNDS, "replicates": REPLICATES, "gamma_star": 0.2} | settings
    return coaf.compare(compiled(place) if policies is None else policies, place, **settings)


EXECUTORS: dict[str, Callable[[], AbstractContextManager[Executor | None]]] = {
    "none given": nullcontext,
    "one thread": lambda: ThreadPoolExecutor(1),
    "three threads": lambda: ThreadPoolExecutor(3),
    "one process": lambda: ProcessPoolExecutor(1),
    "two processes": lambda: ProcessPoolExecutor(2),
}


@pytest.mark.parametrize("kind", EXECUTORS)
@pytest.mark.parametrize("mixed", [False, True], ids=["compiled", "with Python"])
def test_whoever_computes_it(kind: str, mixed: bool) -> None:
    place = world()
    policies = compiled(place) | ({"mine": Mine(3)} if mixed else {})
    with ThreadPoolExecutor(1) as pool:
        expected = run(policies, place, executor=pool)
    with EXECUTORS[kind]() as executor:
        assert_identical(run(policies, place, executor=executor), expected)


def test_replicates_stand_alone() -> None:
    few, many = run(replicates=2), run()
    assert_identical(many.isel(replicate=slice(2)), few)
    assert len({float(x) for x in many.seconds.sel(policy="coaf").sum("round")}) == REPLICATES


def test_what_is_in_a_result() -> None:
    result = run()
    assert dict(result.sizes) == {"policy": 5, "replicate": REPLICATES, "round": ROUNDS}
    assert list(result.policy.values) == ["coaf", "paper", "thompson", "threshold", "oracle"]
    assert result.attrs["gamma_star"] == 0.2
    terms = result.seconds * 0.2 - result["mean"]
    np.testing.assert_allclose(result.regret, terms.cumsum("round"), atol=1e-10)
    played = list(coaf.play(coaf.COAF(3), world(), rounds=ROUNDS, replicate=2))
    mine = result.sel(policy="coaf", replicate=2)
    np.testing.assert_array_equal(mine.seconds, [row["seconds"] for row in played])
    # Rewards may be added up in another order.
    np.testing.assert_allclose(mine["mean"], [row["mean"] for row in played], atol=1e-12)
    np.testing.assert_allclose(mine.rate, [row["rate"] for row in played], atol=1e-12)


def test_the_optimum_is_computed_unless_given() -> None:
    place = world()
    result = coaf.compare({"all": coaf.TakeAll()}, place, rounds=5, replicates=1)
    assert result.attrs["gamma_star"] == coaf.worlds.optimum(place).rate


def test_templates_are_left_as_they_were() -> None:
    policies: dict[str, Policy] = {"coaf": coaf.COAF(3), "mine": Mine(3)}
    before = [policy.state() for policy in policies.values()]
    run(policies, executor=ThreadPoolExecutor(1))
    assert [policy.state() for policy in policies.values()] == before


def test_a_policy_of_ones_own() -> None:
    result = run({"coaf": coaf.COAF(3), "same": Same(3), "mine": Mine(3)})
    ours, theirs = (result.sel(policy=name, drop=True) for name in ("coaf", "same"))
    np.testing.assert_array_equal(theirs.seconds, ours.seconds)
    np.testing.assert_allclose(theirs.regret, ours.regret, atol=1e-10)
    assert float(result.regret.sel(policy="mine").isel(round=-1).mean()) != pytest.approx(
        float(ours.regret.isel(round=-1).mean())
    )


def test_worlds_without_batches() -> None:
    place = ContextualBandit(3)
    policies: dict[str, Policy] = {
        "linucb": coaf.COAF(3),
        "oracle": coaf.COAF(index=coaf.Truth(place.means)),
    }
    result = run(policies, place)
    assert np.all(result.seconds == 1.0)
    assert np.all(abs(result.paired.sel(policy="oracle")) < 1e-12)


def test_an_oracle_is_compiled_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **settings: Any) -> Iterator[dict[str, Any]]:
        raise AssertionError("played in Python")

    monkeypatch.setitem(function.__globals__, "play", refuse)
    assert isinstance(world(), BulkWorld)
    run(executor=ThreadPoolExecutor(1))


class Calls:
    """What progress was told; it stops the run at some point, if asked to."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.told: list[tuple[int, int]] = []
        self.stop_at = stop_at

    def __call__(self, done: int, of: int) -> None:
        self.told.append((done, of))
        if done == self.stop_at:
            raise KeyboardInterrupt


def test_progress_is_told() -> None:
    calls = Calls()
    run(progress=calls)
    assert calls.told == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_the_best_rate_is_a_task_of_its_own() -> None:
    calls = Calls()
    run({"all": coaf.TakeAll()}, place=world(), gamma_star=None, replicates=2, progress=calls)
    assert calls.told[0] == (0, 3)
    assert sorted(set(calls.told)) == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert calls.told.count((0, 3)) > 2  # every step is told


def test_the_result_prints_as_a_table_and_plots(tmp_path: Path) -> None:
    result = run()
    head, titles, *lines = str(result).splitlines()
    assert head == "3 replicates of 40 rounds; the best possible is 0.2 a second"
    assert str(result).encode("cp1252"), "as outputs of Windows are encoded"
    assert titles.split()[0] == "policy"
    assert [line.split()[0] for line in lines] == list(compiled(world()))
    oracle = result.rows()[-1]
    seconds, reward = (result[name][-1].sum("round") for name in ("seconds", "mean"))
    assert oracle["rate"] == pytest.approx(float((reward / seconds).mean()), rel=1e-12)
    assert oracle["paired"] == pytest.approx(float(result.paired[-1, :, -1].mean()), rel=1e-12)
    assert "Dimensions" in str(result.isel(round=-1))  # a part of it is xarray's own
    result.figure(tmp_path / "regret.png")
    assert (tmp_path / "regret.png").stat().st_size > 10_000


def test_what_cannot_be_sent_to_a_process_is_played_in_threads() -> None:
    place = Surface(2, lambda features: features[:, 0])
    policies: dict[str, Policy] = {"finite": coaf.COAF(belief=coaf.Kernel(2))}
    result = run(policies, place=place, rounds=5, replicates=2)
    assert dict(result.sizes) == {"policy": 1, "replicate": 2, "round": 5}


class Slow:
    """A latency of one's own that counts how often it is asked about part of the arms."""

    asked = 0

    def seconds(self, chosen: BoolArray) -> float:
        Slow.asked += not chosen.all()
        return 2.0 + float(np.sqrt(np.count_nonzero(chosen)))

    def check(self, n: int) -> None:
        pass


class Places:
    """A world whose rounds share one latency."""

    dim = 2

    def __init__(self) -> None:
        self.latency = Slow()

    def means(self, features: FloatArray) -> FloatArray:
        return np.asarray(features @ np.array([0.6, 0.2]))

    def scenes(self, rounds: int, replicate: int) -> Iterator[Scene]:
        rng = np.random.default_rng(replicate)
        for _ in range(rounds):
            X = rng.uniform(-1.0, 1.0, (4, 2))
            yield Scene(Round(X, self.latency), self.means(X), self.means(X))


def test_a_latency_of_ones_own_is_asked_once_for_each_subset() -> None:
    """Its 16 but the largest, by rounds that are made, Γ*, regret, and policies."""
    Slow.asked, places = 0, Places()
    found = optimum(places, rounds=100)
    assert Slow.asked == 15
    policies: dict[str, Policy] = {"coaf": coaf.COAF(2), "all": coaf.TakeAll()}
    with ThreadPoolExecutor(1) as pool:
        settings: dict[str, Any] = {"replicates": 2, "gamma_star": found.rate, "executor": pool}
        coaf.compare(policies, places, rounds=20, **settings)
    assert Slow.asked == 15
    scenes = list(places.scenes(100, STREAM))
    gaps = [best(found.rate, s.means, s.round.latency, s.round.actions).gap for s in scenes]
    assert abs(sum(gaps)) < 1e-9


@pytest.mark.parametrize("kind", ["none given", "one thread", "two processes"])
@pytest.mark.parametrize("stop_at", [0, 1, 2, 3])
def test_interrupted_and_resumed(kind: str, stop_at: int, tmp_path: Path) -> None:
    expected = run()
    with EXECUTORS[kind]() as executor, pytest.raises(KeyboardInterrupt):
        run(executor=executor, progress=Calls(stop_at), resume=tmp_path)
    calls = Calls()
    with EXECUTORS[kind]() as executor:
        assert_identical(run(executor=executor, progress=calls, resume=tmp_path), expected)
    assert calls.told == [(done, 3) for done in range(stop_at, 4)]


def test_resumed_again_and_again(tmp_path: Path) -> None:
    for stop_at in (1, 2, 3):
        with pytest.raises(KeyboardInterrupt):
            run(progress=Calls(stop_at), resume=tmp_path)
    assert_identical(run(resume=tmp_path), run())


def test_a_policy_that_fails_midway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policies: dict[str, Policy] = {"fragile": Fragile(3), "coaf": coaf.COAF(3)}
    expected = run(policies)
    monkeypatch.setattr(Fragile, "broken", True)
    with ThreadPoolExecutor(1) as pool, pytest.raises(RuntimeError, match="out of order"):
        run(policies, executor=pool, resume=tmp_path)
    monkeypatch.setattr(Fragile, "broken", False)
    calls = Calls()
    assert_identical(run(policies, progress=calls, resume=tmp_path), expected)
    assert calls.told[0] == (1, 3)


class Refusing(Executor):
    """An executor that must not be asked."""

    def submit(self, *args: Any, **settings: Any) -> Future[Any]:
        raise AssertionError("something was computed")


def test_nothing_is_computed_twice(tmp_path: Path) -> None:
    expected = run(resume=tmp_path)
    calls = Calls()
    again = run(executor=Refusing(), progress=calls, resume=tmp_path)
    assert_identical(again, expected)
    assert calls.told == [(3, 3)]


@pytest.mark.parametrize(("first", "then"), [(6, 10), (10, 6), (2, 3), (4, 8)])
def test_resumed_with_another_number_of_replicates(first: int, then: int, tmp_path: Path) -> None:
    run(replicates=first, resume=tmp_path)
    for _ in range(2):
        assert_identical(run(replicates=then, resume=tmp_path), run(replicates=then))


def test_a_half_written_task_does_not_count(tmp_path: Path) -> None:
    run(resume=tmp_path)
    task = sorted(tmp_path.glob("*/*.npy"))[1]
    task.rename(task.with_suffix(".part"))
    task.with_suffix(".part").write_bytes(b"torn")
    assert_identical(run(resume=tmp_path), run())


@pytest.mark.parametrize("damage", [b"", b"\x93NUMPY torn"])
def test_a_damaged_task_is_played_again(damage: bytes, tmp_path: Path) -> None:
    run(resume=tmp_path)
    sorted(tmp_path.glob("*/*.npy"))[1].write_bytes(damage)
    assert_identical(run(resume=tmp_path), run())


def semi(count: int) -> SemiBandit:
    return SemiBandit(3, actions=coaf.AtMost(count))


def xi(value: float) -> dict[str, Policy]:
    means = world().means
    return {"oracle": coaf.COAF(index=coaf.Truth(means), rate=coaf.RobbinsMonro(xi=value))}


def scaled(value: float) -> dict[str, Policy]:
    return {"mine": Mine(belief=coaf.Linear.tuned(3, scale=value))}


OTHERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "rounds": ({"rounds": 10}, {"rounds": 11}),
    "optimum": ({"gamma_star": 0.2}, {"gamma_star": 0.21}),
    "policy names": ({"policies": {"a": coaf.TakeAll()}}, {"policies": {"b": coaf.TakeAll()}}),
    "policy settings": (
        {"policies": {"a": coaf.Threshold(0.1)}},
        {"policies": {"a": coaf.Threshold(0.2)}},
    ),
    "policy seeds": (
        {"policies": {"a": coaf.COAF(3, seed=0)}},
        {"policies": {"a": coaf.COAF(3, seed=1)}},
    ),
    "policy classes": ({"policies": {"a": coaf.COAF(3)}}, {"policies": {"a": Same(3)}}),
    "an oracle's rate": ({"policies": xi(1.0)}, {"policies": xi(0.5)}),
    "a belief": ({"policies": scaled(0.1)}, {"policies": scaled(0.2)}),
    "world seeds": ({"place": Synthetic(3, seed=1)}, {"place": Synthetic(3, seed=2)}),
    "world noise": ({"place": Synthetic(3, noise=0.1)}, {"place": Synthetic(3, noise=0.2)}),
    "world actions": (
        {"place": semi(2), "policies": {"a": coaf.COAF(3)}},
        {"place": semi(3), "policies": {"a": coaf.COAF(3)}},
    ),
}


@pytest.mark.parametrize("what", OTHERS)
def test_experiments_that_differ_share_a_folder_and_nothing_else(what: str, tmp_path: Path) -> None:
    small = {"replicates": 1, "rounds": 10}
    both = [small | settings for settings in OTHERS[what]]
    first = [run(**one, resume=tmp_path) for one in both]
    assert len(list(tmp_path.glob("*/*.npy"))) == 2
    for one, result in zip(both, first, strict=True):
        assert_identical(run(**one), result)
        calls = Calls()
        assert_identical(run(**one, progress=calls, resume=tmp_path), result)
        assert calls.told == [(1, 1)]


def test_oracles_that_differ_are_different_experiments(tmp_path: Path) -> None:
    world = Synthetic(dim=2, seed=1)
    right = coaf.COAF(index=coaf.Truth(lambda X: X @ world.theta))
    wrong = coaf.COAF(index=coaf.Truth(lambda X: -X @ world.theta))
    with ThreadPoolExecutor(1) as pool:
        settings: dict[str, Any] = {"rounds": 20, "replicates": 1, "gamma_star": 0.1}
        first = function({"a": right}, world, resume=tmp_path, executor=pool, **settings)
        second = function({"a": wrong}, world, resume=tmp_path, executor=pool, **settings)
    assert float(first.paired[0, 0, -1]) < float(second.paired[0, 0, -1])


@pytest.mark.parametrize(
    ("policies", "place", "message"),
    [
        ({"a": "b"}, "world", r"policies\['a'\] is a str, which lacks decide, commit, learn; it"),
        ({"a": coaf.TakeAll}, "world", r"policies\['a'\] is the class TakeAll; it must be"),
        (coaf.TakeAll(), "world", r"policies is a TakeAll; give them by name, as \{\"coaf\":"),
        ({}, "world", "policies is empty; give them by name"),
        ({"all": coaf.TakeAll()}, "w", "world is a str, which lacks dim, means, scenes; it must"),
        ({"all": coaf.TakeAll()}, Synthetic, "world is the class Synthetic; it must be a world"),
    ],
)
def test_what_is_compared_is_named(policies: Any, place: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        coaf.compare(policies, world() if place == "world" else place, rounds=3, replicates=1)


def test_what_is_played_is_named_at_once() -> None:
    for policy, place in ((coaf.TakeAll(), "x"), ("x", world())):
        with pytest.raises(
            TypeError, match=r"is a str, which lacks .*; it must be a (world|policy)"
        ):
            coaf.play(policy, place, rounds=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="world is a str"):
        optimum("x")  # type: ignore[arg-type]


class Shown:
    """A terminal, and the bar that was drawn there."""

    is_terminal = True
    drawn: ClassVar[list[tuple[str, float, float | None]]] = []

    def __init__(self, **_: object) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def add_task(self, description: str, total: float | None) -> int:
        return 0

    def update(self, bar: int, description: str, completed: float, total: float | None) -> None:
        self.drawn.append((description, completed, total))


def test_the_bar_says_what_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("Console", "Bars"):
        monkeypatch.setattr(sys.modules["coaf.worlds.compare"], name, Shown)
    Shown.drawn.clear()
    one_by_one = Own(dim=2)
    coaf.compare({"all": coaf.TakeAll()}, one_by_one, rounds=3, replicates=2)
    assert ("the best possible rate, step 1", 50, 5000) in Shown.drawn
    assert ("the best possible rate, step 2", 5000, 5000) in Shown.drawn
    assert Shown.drawn[-1] == ("comparing", 3, 3)
    first = [bar[0] for bar in Shown.drawn].index("comparing")
    assert not any("rate" in bar[0] for bar in Shown.drawn[first:])


class Own:
    """A world that has no batches."""

    def __init__(self, dim: int) -> None:
        self.dim, self._inside = dim, Synthetic(dim, items=20)

    def means(self, features: FloatArray) -> FloatArray:
        return self._inside.means(features)

    def scenes(self, rounds: int, replicate: int) -> Iterator[Scene]:
        return self._inside.scenes(rounds, replicate)


def test_a_figure_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run({"all": coaf.TakeAll()})
    monkeypatch.setattr(sys.modules["coaf.bandit.extras"], "find_spec", lambda _: None)
    with pytest.raises(ModuleNotFoundError, match=r"needs matplotlib: pip install 'coaf\[exp"):
        result.figure()


UNGUARDED = """
import multiprocessing
from collections.abc import Iterator

import numpy as np

import coaf

multiprocessing.set_start_method("spawn", force=True)


class Coins:
    dim = 1

    def means(self, features):
        return features[:, 0]

    def scenes(self, rounds, replicate):
        for _ in range(rounds):
            means = np.array([0.5, 1.0])
            tossed = coaf.Round(means[:, None], coaf.Additive(1.0, 1.0))
            yield coaf.worlds.Scene(tossed, means, means)


coaf.compare({"all": coaf.TakeAll()}, Coins(), rounds=3, replicates=2)
"""


def test_a_script_without_a_guard_is_told_what_it_needs(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED)
    command = [sys.executable, str(script)]
    ended = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    if (os.cpu_count() or 1) == 1:
        assert ended.returncode == 0  # played in this very process
        return
    assert ended.returncode == 1
    said = ended.stderr.rstrip().splitlines()[-1]
    assert said.startswith("concurrent.futures.process.BrokenProcessPool: a worker process ended")
    assert 'must stand under `if __name__ == "__main__":`' in said
