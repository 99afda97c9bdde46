"""Worlds as gymnasium environments: gymnasium's own checks, and the numbers of `play`."""

import itertools
import re
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coaf
from coaf.bandit.actions import AtMost
from coaf.bandit.latency import ByCount
from coaf.bandit.problem import Round
from coaf.worlds import ContextualBandit, Patches, SemiBandit, Synthetic, World, play
from coaf.worlds.batch import Scene

gymnasium = pytest.importorskip("gymnasium", reason="environments need coaf[gym]")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from coaf.worlds.gym import WORLDS, RoundsEnv, round_of  # noqa: E402


@pytest.mark.parametrize("kind", WORLDS)
def test_gymnasium_finds_nothing_wrong(kind: str) -> None:
    check_env(gymnasium.make(f"coaf.worlds.gym:coaf/{kind}-v0").unwrapped)


def played(env: Any, policy: Any, replicate: int) -> list[tuple[float, float, float]]:
    """Seconds, reward and mean of each round that a policy plays from observations alone."""
    rows: list[tuple[float, float, float]] = []
    observation, info = env.reset(options={"replicate": replicate})
    assert info == {"replicate": replicate}
    over = False
    while not over:
        decision = policy.decide(round_of(observation))
        action = np.zeros(env.action_space.n, dtype=np.int8)
        action[decision.arms] = 1
        observation, reward, terminated, over, info = env.step(action)
        policy.commit(decision)
        policy.learn(decision, decision.arms, info["rewards"][decision.arms])
        assert not terminated
        assert info["chosen"].tolist() == action.tolist()
        rows.append((info["seconds"], reward, info["mean"]))
    return rows


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("Synthetic", {"dim": 3, "arms": (0, 5), "seed": 2}),
        ("Synthetic", {"dim": 3, "setup": 4.0}),
        ("Types", {"arms": (2, 6)}),
        ("Mortal", {"noise": 0.1}),
        ("Patches", {}),
    ],
)
def test_a_policy_does_as_in_play(kind: str, settings: dict[str, Any]) -> None:
    env = gymnasium.make(f"coaf/{kind}-v0", rounds=60, **settings)
    world: World = WORLDS[kind][0](**settings)
    rows = play(coaf.COAF(world.dim), world, rounds=60, replicate=4)
    expected = [(row["seconds"], row["reward"], row["mean"]) for row in rows]
    assert played(env, coaf.COAF(world.dim), 4) == expected


def test_an_episode_ends_with_its_seconds() -> None:
    env = RoundsEnv(Synthetic(3), arms=20, seconds=100.0)
    rows = played(env, coaf.TakeAll(), 0)
    seconds = [row[0] for row in rows]
    assert sum(seconds[:-1]) < 100.0 <= sum(seconds)
    with pytest.raises(ValueError, match="call reset"):
        env.step(env.action_space.sample())


def test_seconds_have_a_price_and_regret_is_paired() -> None:
    world = Synthetic(3, arms=(4, 4))
    env = RoundsEnv(world, arms=4, price=0.1, gamma_star=0.2)
    env.reset(seed=0)
    regrets = []
    for action in itertools.product((0, 1), repeat=4):
        env.reset(options={"replicate": 7})
        _, reward, _, _, info = env.step(np.array(action, dtype=np.int8))
        assert reward == pytest.approx(info["earned"] - 0.1 * info["seconds"], rel=1e-12)
        assert info["earned"] == pytest.approx(info["rewards"].sum(), rel=1e-12)
        regrets.append(info["regret"])
    assert min(regrets) == pytest.approx(0.0, abs=1e-12)
    assert max(regrets) > 0.1


def test_the_same_seed_is_the_same_replicate() -> None:
    env = RoundsEnv(Synthetic(3), arms=20)
    (first, a), (second, b), (_, c) = (env.reset(seed=seed) for seed in (5, 5, 6))
    assert a == b != c
    assert all((first[key] == second[key]).all() for key in first)


def test_absent_arms_are_ignored() -> None:
    env = RoundsEnv(Synthetic(3, arms=(2, 2)), arms=5)
    observation, _ = env.reset(seed=0)
    assert observation["present"].tolist() == [1, 1, 0, 0, 0]
    assert observation["each"].tolist() == [1.0, 1.0, 0.0, 0.0, 0.0]
    info = env.step(np.ones(5, dtype=np.int8))[-1]
    assert info["chosen"].tolist() == [True, True, False, False, False]


class Counted:
    """A world whose latency no observation can show."""

    dim = 1

    def means(self, features: Any) -> Any:
        return features[:, 0]

    def scenes(self, rounds: int, replicate: int) -> Any:
        latency = ByCount(base=1.0, by_count=[0.0, 1.0, 1.0])
        for _ in range(rounds):
            yield Scene(Round(np.ones((2, 1)), latency), np.ones(2), np.ones(2))


def test_what_is_not_supported_is_said() -> None:
    with pytest.raises(ValueError, match="Additive and Setup only"):
        RoundsEnv(Counted(), arms=2).reset()
    with pytest.raises(ValueError, match="shows 6 arms, but arms is 3; give at least 6"):
        RoundsEnv(Patches(arms=6), arms=3).reset()
    env = RoundsEnv(SemiBandit(3, actions=AtMost(1)), arms=10)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"arms \[0, 1\]: not one of AtMost"):
        env.step(np.array([1, 1] + [0] * 8, dtype=np.int8))
    one = RoundsEnv(ContextualBandit(3), arms=10)
    one.reset(seed=0)
    assert one.step(np.eye(10, dtype=np.int8)[3])[-1]["seconds"] == 1.0


def test_the_page_runs() -> None:
    page = Path(__file__).parents[2] / "docs" / "howto" / "gymnasium.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block, names)
        assert names["over"]
    assert names["policy"].rate > 0.0


def test_the_package_has_an_entry_point_that_registers_its_worlds() -> None:
    (found,) = entry_points(group="gymnasium.envs", name="__root__")
    for name in list(gymnasium.registry):
        if name.startswith("coaf/"):
            del gymnasium.registry[name]
    found.load()()
    assert {f"coaf/{kind}-v0" for kind in WORLDS} <= set(gymnasium.registry)
