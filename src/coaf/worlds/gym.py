"""Worlds as gymnasium environments, for agents that are written for those.

Importing this module registers `coaf/Synthetic-v0`, `coaf/Types-v0`, `coaf/Mortal-v0` and
`coaf/Patches-v0`. It needs an extra: `pip install 'coaf[gym]'`.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import FloatArray, number
from coaf.bandit.latency import Additive, Setup
from coaf.bandit.problem import Round
from coaf.worlds.batch import Scene
from coaf.worlds.classic import Mortal, Types
from coaf.worlds.optimum import STREAM
from coaf.worlds.patches import Patches
from coaf.worlds.synthetic import Synthetic
from coaf.worlds.world import World

try:
    import gymnasium
    from gymnasium import spaces
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "environments need gymnasium: pip install 'coaf[gym]'", name="gymnasium"
    ) from error

Observation = dict[str, npt.NDArray[Any]]
Action = npt.NDArray[np.int8]

LARGE = 1e6  # no feature is larger in size and no time longer; gymnasium wants finite spaces

# Worlds by name, and how many arms their rounds may show.
WORLDS: dict[str, tuple[Callable[..., Any], Callable[[Any], int]]] = {
    "Synthetic": (Synthetic, lambda world: world.arms[1]),
    "Types": (Types, lambda world: world.arms[1]),
    "Mortal": (Mortal, lambda world: world.n_max),
    "Patches": (Patches, lambda world: world.arms),
}


class RoundsEnv(gymnasium.Env[Any, Action]):
    """The rounds of a world: a step takes a subset of the arms shown, and shows the next round.

    An observation holds `features` (arms, dim), `present` (arms,), and the seconds of `eq:
    microscope`: `base` (1,), `setup` (1,) and `each` (arms,). What is absent is 0. Latencies must
    be `Additive` or `Setup`; groups are not shown. `round_of` makes a `Round` of an observation.

    An action says of each arm whether to take it. Arms that are absent are ignored; a subset that
    the round does not allow is a ValueError. `info` holds `seconds`, `chosen` and `rewards` (arms,
    0 where not taken), their sum `earned`, its true `mean`, and with `gamma_star` the paired
    `regret`.

    Parameters
    ----------
    world
        Where the rounds come from.
    arms
        How many arms a round may show.
    rounds, seconds
        An episode is truncated after so many rounds, or once so many seconds have passed.
    price
        What a second costs. The reward of a step is what was earned, less price·seconds: with
        Γ* as the price, the best policy per second is also the best over so many rounds.
    gamma_star
        The best possible rate, for `regret`.

    Examples
    --------
    >>> name = "coaf.worlds.gym:coaf/Synthetic-v0"  # the module to import, and the world
    >>> env = gymnasium.make(name, dim=3, arms=(2, 4), rounds=100)
    >>> observation, _ = env.reset(seed=1)
    >>> observation["features"].shape
    (4, 3)
    >>> observation, reward, terminated, truncated, info = env.step(observation["present"])
    >>> bool(reward == info["rewards"].sum()), truncated
    (True, False)
    """

    metadata = {"render_modes": []}  # noqa: RUF012 (as gymnasium declares it)

    def __init__(
        self,
        world: World,
        *,
        arms: int,
        rounds: int = 1000,
        seconds: float | None = None,
        price: float = 0.0,
        gamma_star: float | None = None,
    ) -> None:
        self.world, self.arms = world, int(number("arms", arms, low=1))
        self.rounds = int(number("rounds", rounds, low=1))
        self.seconds = None if seconds is None else number("seconds", seconds, above=0.0)
        self.price = number("price", price)
        self.gamma_star = None if gamma_star is None else number("gamma_star", gamma_star)
        self.observation_space = spaces.Dict(
            {
                "features": spaces.Box(-LARGE, LARGE, (self.arms, world.dim), np.float64),
                "present": spaces.MultiBinary(self.arms),
                "base": spaces.Box(0.0, LARGE, (1,), np.float64),
                "setup": spaces.Box(0.0, LARGE, (1,), np.float64),
                "each": spaces.Box(0.0, LARGE, (self.arms,), np.float64),
            }
        )
        self.action_space = spaces.MultiBinary(self.arms)
        self._scenes: Iterator[Scene] = iter(())
        self._scene: Scene | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin a replicate: a random one, or that of `options={"replicate": 0}`."""
        super().reset(seed=seed)
        replicate = (options or {}).get("replicate")
        if replicate is None:
            replicate = int(self.np_random.integers(STREAM - 1))  # above are the optimum's
        # One more than is played, so that the last step has something to show.
        self._scenes = self.world.scenes(self.rounds + 1, replicate)
        self._played, self._clock = 0, 0.0
        return self._next(), {"replicate": replicate}

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take a subset of the round's arms."""
        scene = self._scene
        if scene is None:
            raise ValueError("there is no round to decide: call reset")
        shown, absent = scene.round, (0, self.arms - scene.round.n)
        chosen = np.array(action[: shown.n], dtype=np.bool_)
        if not shown.actions.allows(chosen, shown.groups):
            raise ValueError(f"arms {np.flatnonzero(chosen).tolist()}: not one of {shown.actions}")
        seconds, mean = shown.latency.seconds(chosen), float(scene.means[chosen].sum())
        earned = float(scene.rewards[chosen].sum())
        info = {
            "seconds": seconds,
            "chosen": np.pad(chosen, absent),
            "rewards": np.pad(np.where(chosen, scene.rewards, 0.0), absent),
            "earned": earned,
            "mean": mean,
        }
        if self.gamma_star is not None:
            least = shown.best(self.gamma_star, scene.means).gap
            info["regret"] = seconds * self.gamma_star - mean - least
        self._played, self._clock = self._played + 1, self._clock + seconds
        late = self.seconds is not None and self._clock >= self.seconds
        observation, over = self._next(), late or self._played >= self.rounds
        if over:
            self._scene = None
        return observation, earned - self.price * seconds, False, over, info

    def _next(self) -> Observation:
        """Go on to the next round, and show it."""
        self._scene = scene = next(self._scenes)
        n, latency = scene.round.n, scene.round.latency
        if not isinstance(latency, Additive | Setup):
            raise ValueError(
                f"a round has latency {latency}; an observation can show Additive and Setup only"
            )
        if n > self.arms:
            raise ValueError(f"a round shows {n} arms, but arms is {self.arms}; give at least {n}")
        absent = (0, self.arms - n)
        return {
            "features": np.pad(scene.round.features, (absent, (0, 0))),
            "present": np.pad(np.ones(n, dtype=np.int8), absent),
            "base": np.array([latency.base]),
            "setup": np.array([latency.setup]),
            "each": np.pad(np.broadcast_to(latency.each, n), absent),
        }


def round_of(observation: Observation) -> Round:
    """The round that an observation shows, for policies."""
    n = int(observation["present"].sum())
    each: FloatArray = observation["each"][:n]
    latency = Setup(float(observation["base"][0]), float(observation["setup"][0]), each)
    return Round(observation["features"][:n], latency)


def make(kind: str, **settings: Any) -> RoundsEnv:
    """The environment of one of `WORLDS`; settings are the world's, or those of `RoundsEnv`."""
    names = ("rounds", "seconds", "price", "gamma_star")
    own = {name: settings.pop(name) for name in names if name in settings}
    create, most = WORLDS[kind]
    world = create(**settings)
    return RoundsEnv(world, arms=most(world), **own)


def register() -> None:
    """Make gymnasium know the worlds; it may be called again."""
    for kind in WORLDS:
        name = f"coaf/{kind}-v0"
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point="coaf.worlds.gym:make", kwargs={"kind": kind})


register()
